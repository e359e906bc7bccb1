//! Reads the stage files of `--input` and `--cases`, and the cases of `plugin dev`. Their number and their lengths are bounded, and links lead nowhere else.

use crate::exit::{Exit, Stop};
use crate::terminal::visible;
use glovebox_contract::stage_file::{BYTES_MAX, StageFile};
use glovebox_workspace::regular_file::{self, Links};
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of cases in a folder.
const CASES_MAX: usize = 1000;
/// Maximum number of entries of a folder of cases.
const ENTRIES_MAX: usize = 10_000;
/// The help for a file that is not a stage file.
const SCHEMA: &str = "the fields of a stage file: `glovebox schema plugin-stage`; examples: docs/plugin-tests.md";

/// The help for a folder that has no cases.
const CASE: &str = "a case is a file `NAME.json` with what is expected, such as `{\"expect\": {\"status\": \"success\"}}`; its other \
                    fields: docs/plugin-tests.md";

/// Reads the file of `--input`.
pub(super) fn input(file: &Path) -> Result<StageFile, Stop> {
    let text = read(file, Links::Follow)?;
    StageFile::parse(&text).map_err(|problem| {
        Stop::new(Exit::Invalid, format!("`{}` is not a stage file: {problem}", shown(file))).with_help(SCHEMA)
    })
}

/// Reads all cases of a folder, in the order of their names. All files that are not cases are reported together.
pub fn cases(folder: &Path) -> Result<Vec<(String, StageFile)>, Stop> {
    let (mut cases, mut problems) = (Vec::new(), String::new());
    for file in case_files(folder)? {
        let text = read(&file, Links::Within(folder))?;
        let name = visible::line(&file.file_stem().unwrap_or_default().to_string_lossy()).into_owned();
        match StageFile::parse_case(&text) {
            Ok(case) => cases.push((name, case)),
            Err(problem) => problems.push_str(&format!("error: `{}`: {}\n", shown(&file), visible::block(&problem))),
        }
    }
    if problems.is_empty() {
        return Ok(cases);
    }
    let stop = Stop::new(Exit::Invalid, format!("`{}` has files that are not cases", shown(folder)));
    Err(Stop { details: problems, ..stop.with_help(SCHEMA) })
}

fn case_files(folder: &Path) -> Result<Vec<PathBuf>, Stop> {
    let failed = |error| Stop::io(format!("read the cases in `{}`", shown(folder)), &error).with_help(CASE);
    let mut found = Vec::new();
    for (number, entry) in fs::read_dir(folder).map_err(failed)?.enumerate() {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            found.push(path);
        }
        if found.len() > CASES_MAX || number >= ENTRIES_MAX {
            let message =
                format!("the folder `{}` has more than {CASES_MAX} cases or {ENTRIES_MAX} entries", shown(folder));
            return Err(Stop::new(Exit::Usage, message).with_help("divide it into several folders"));
        }
    }
    found.sort();
    if found.is_empty() {
        let message = format!("the folder `{}` has no case", shown(folder));
        return Err(Stop::new(Exit::Usage, message).with_help(CASE));
    }
    Ok(found)
}

fn read(file: &Path, links: Links<'_>) -> Result<String, Stop> {
    regular_file::read_text(file, links, BYTES_MAX).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Stop::io(format!("read `{}`", shown(file)), &error),
        _ => Stop::new(Exit::Invalid, format!("`{}` cannot be read: {error}", shown(file))).with_help(SCHEMA),
    })
}

fn shown(path: &Path) -> String {
    visible::line(&path.to_string_lossy()).into_owned()
}
