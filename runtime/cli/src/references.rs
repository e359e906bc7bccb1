//! Files that a pipeline refers to, read from the folder of its own file.
//!
//! Whoever wrote the pipeline chose the paths, and the text ends in a prompt. So a path is followed inside of the folder only,
//! also where links lead, never into hold-outs, and no pipe or device is waited for. What cannot be read is told by the
//! pipeline's findings.

use crate::scenarios;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use glovebox_pipeline::Source;
use glovebox_pipeline::files::References;
use glovebox_pipeline::inputs::Files;
use glovebox_pipeline::{Inputs, Lowered};
use rustix::fs::OFlags;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The largest prompt that is read from a file.
const PROMPT_BYTES_MAX: u64 = 1 << 20;
/// The most bytes of all prompts from files.
const PROMPTS_BYTES_MAX: usize = 16 << 20;

/// A pipeline that was read together with the files it refers to.
pub struct Referring {
    /// What was read, not linted.
    pub lowered: Lowered,
    /// What it refers to.
    pub wanted: References,
    /// The texts of its prompts' files.
    pub files: Files,
}

/// Reads a pipeline's text with the texts of the files that it refers to.
pub fn read(file: &Path, source: &str, inputs: &Inputs) -> Referring {
    let text = glovebox_pipeline::parse(Source::new(source));
    let wanted = text.references(inputs);
    let mut inputs = inputs.clone();
    inputs.files = prompts(file, &wanted);
    inputs.scenarios_found = wanted.sealed.iter().any(|folder| scenarios::place(file, folder).is_some());
    Referring { lowered: text.lower(&inputs), wanted, files: inputs.files }
}

fn prompts(file: &Path, wanted: &References) -> Files {
    let folder = if wanted.prompts.is_empty() { None } else { Some(Folder::of(file)) };
    let mut left = PROMPTS_BYTES_MAX;
    let mut read = |path: &String| {
        let text = match &folder {
            Some(Ok(folder)) => folder.read(path, &wanted.sealed, PROMPT_BYTES_MAX),
            Some(Err(reason)) => Err(reason.clone()),
            None => return None,
        };
        let text = text.and_then(|text| {
            let rest = left.checked_sub(text.len());
            left = rest.ok_or_else(|| format!("the prompt files have more than {PROMPTS_BYTES_MAX} bytes"))?;
            plain(&text).ok_or_else(|| "it is empty".to_owned())
        });
        Some((path.clone(), text))
    };
    wanted.prompts.iter().filter_map(&mut read).collect()
}

/// The prompt that a file holds, whatever editor and checkout it went through: no byte order mark, one kind of line end. None for one
/// without a word, which would be sent as it is.
fn plain(text: &str) -> Option<String> {
    let text = text.trim_start_matches('\u{feff}');
    (!text.trim().is_empty()).then(|| text.replace("\r\n", "\n"))
}

/// The folder of a pipeline's file.
pub struct Folder {
    dir: Dir,
    path: PathBuf,
}

impl Folder {
    /// Opens the folder that a file is in; says why not.
    pub fn of(file: &Path) -> Result<Self, String> {
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let path = std::fs::canonicalize(parent).map_err(|error| reason(&error))?;
        let dir = Dir::open_ambient_dir(&path, ambient_authority()).map_err(|error| reason(&error))?;
        Ok(Self { dir, path })
    }

    /// Where a path of the folder leads, links followed; says why it leads nowhere.
    pub fn place(&self, path: &str) -> Result<PathBuf, String> {
        Ok(self.path.join(self.dir.canonicalize(path).map_err(|error| reason(&error))?))
    }

    /// Reads a text of at most `bytes_max`; says why not.
    pub fn read(&self, path: &str, sealed: &[String], bytes_max: u64) -> Result<String, String> {
        let place = self.place(path)?;
        if let Some(folder) = sealed.iter().find(|folder| is_inside(&place, folder)) {
            return Err(format!("it is among the hold-outs in `{folder}`"));
        }
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        let opened = self.dir.open_with(path, OpenOptions::new().read(true).custom_flags(nonblocking));
        let opened = opened.map_err(|error| reason(&error))?;
        if !opened.metadata().map_err(|error| reason(&error))?.is_file() {
            return Err("it is not a regular file".to_owned());
        }
        let mut bytes = Vec::new();
        opened.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| reason(&error))?;
        if bytes.len() as u64 > bytes_max {
            return Err(format!("it has more than {bytes_max} bytes"));
        }
        String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
    }
}

/// True for a place with the folder's names in a row: which folder above is the project is not known here, so each may be.
fn is_inside(place: &Path, folder: &str) -> bool {
    let names: Vec<&std::ffi::OsStr> = Path::new(folder).iter().collect();
    let steps: Vec<&std::ffi::OsStr> = place.iter().collect();
    steps.windows(names.len().max(1)).any(|window| window == names)
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "the file does not exist".to_owned(),
        ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
            "it leads out of the pipeline's folder".to_owned()
        }
        _ => error.to_string(),
    }
}
