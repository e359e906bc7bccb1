//! Chooses the pipeline that a command works on if none is named: `pipeline.dot` of the project, else its only DOT
//! file.

use crate::exit::{Exit, Stop};
use crate::terminal::visible;
use std::fs;
use std::path::{Path, PathBuf};

/// The name of the pipeline that `glovebox init` writes.
pub const NAME: &str = "pipeline.dot";
/// Maximum number of names that a message lists.
const LISTED_MAX: usize = 5;

/// Returns the named file, or else the pipeline of the project.
pub fn choose(named: Option<&Path>, workdir: &Path) -> Result<PathBuf, Stop> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let usual = in_folder(workdir, NAME);
    if usual.is_file() {
        return Ok(usual);
    }
    let mut found = dot_files(workdir);
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(in_folder(workdir, &only)),
        (None, _) => {
            let stop = Stop::new(Exit::Usage, format!("no pipeline is named, and there is no `{NAME}` in the project"));
            Err(stop.with_help("write one that fits the project: `glovebox init`"))
        }
        (Some(last), false) => {
            found.push(last);
            let names: Vec<String> =
                found.iter().take(LISTED_MAX).map(|name| format!("`{}`", visible::line(name))).collect();
            let more = if found.len() > LISTED_MAX { ", …" } else { "" };
            let message = format!("no pipeline is named, and the project has several: {}{more}", names.join(", "));
            Err(Stop::new(Exit::Usage, message)
                .with_help(format!("name one, or rename the default pipeline to `{NAME}`")))
        }
    }
}

/// Returns the path of a file in a folder, as short as a user would type it.
fn in_folder(folder: &Path, name: impl AsRef<Path>) -> PathBuf {
    if folder == Path::new(".") { name.as_ref().to_owned() } else { folder.join(name) }
}

/// Returns the names of regular files `*.dot` directly in a folder, sorted.
fn dot_files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| entry.path().is_file());
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".dot")).collect();
    names.sort();
    names
}
