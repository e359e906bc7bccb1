//! Reads the files that a pipeline refers to, from the folder of the pipeline's file.
//!
//! The author of the pipeline chooses the paths, and the texts become prompts. So a path, after its symbolic links are
//! resolved, must stay inside of the folder and must not lead into hold-outs. Pipes and devices are refused. A file
//! that cannot be read becomes a finding of the pipeline.

use super::{scenarios, survey};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use glovebox_pipeline::Source;
use glovebox_pipeline::files::References;
use glovebox_pipeline::inputs::Files;
use glovebox_pipeline::{Inputs, LoweredFile};
use rustix::fs::OFlags;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Maximum size of a prompt that is read from a file, in bytes.
const PROMPT_BYTES_MAX: u64 = 1 << 20;
/// Maximum size of all prompts from files together, in bytes.
const PROMPTS_BYTES_MAX: usize = 16 << 20;

/// A pipeline together with the files that it refers to.
pub struct Referring {
    /// The lowered pipeline, which is not linted.
    pub lowered: LoweredFile,
    /// The files that the pipeline refers to.
    pub wanted: References,
    /// The texts of the pipeline's prompt files.
    pub files: Files,
}

/// Lowers a pipeline's text together with the texts of the files that it refers to.
pub fn read(file: &Path, source: Source<'_>, inputs: &Inputs) -> Referring {
    let text = glovebox_pipeline::parse(source);
    let wanted = text.references(inputs);
    let scenarios_found = wanted.sealed.iter().any(|folder| scenarios::find_folder(file, Path::new(folder)).is_some());
    let inputs = Inputs { files: prompts(file, &wanted), scenarios_found, ..inputs.clone() };
    let mut lowered = text.lower(&inputs);
    if lowered.pipeline.has_open_scope() {
        lowered.pipeline.sources = survey::sources(Path::new("."));
    }
    Referring { lowered, wanted, files: inputs.files }
}

fn prompts(file: &Path, wanted: &References) -> Files {
    let folder = if wanted.prompts.is_empty() { None } else { Some(Folder::containing(file)) };
    let mut left = PROMPTS_BYTES_MAX;
    let mut read = |path: &String| {
        let text = match &folder {
            Some(Ok(folder)) => folder.read(Path::new(path), &wanted.sealed, PROMPT_BYTES_MAX),
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

/// Returns the prompt in a file, without byte order mark and with `\n` as line ending. `None` for an empty prompt.
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
    /// Opens the folder of a file. The error is the reason as text.
    pub fn containing(file: &Path) -> Result<Self, String> {
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let path = std::fs::canonicalize(parent).map_err(|error| reason(&error))?;
        let dir = Dir::open_ambient_dir(&path, ambient_authority()).map_err(|error| reason(&error))?;
        Ok(Self { dir, path })
    }

    /// Returns the file to which a path in the folder leads, with symbolic links resolved. The error is the reason as
    /// text.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf, String> {
        Ok(self.path.join(self.dir.canonicalize(path).map_err(|error| reason(&error))?))
    }

    /// Reads a text of at most `bytes_max` bytes. The error is the reason as text.
    pub fn read(&self, path: &Path, sealed: &[String], bytes_max: u64) -> Result<String, String> {
        let target = self.resolve(path)?;
        if let Some(folder) = sealed.iter().find(|folder| is_inside(&target, Path::new(folder))) {
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

/// Returns true if the components of `folder` occur in `path` one after the other. The project is not known here, so
/// any folder of the path may be the project.
fn is_inside(path: &Path, folder: &Path) -> bool {
    let names: Vec<&std::ffi::OsStr> = folder.iter().collect();
    let steps: Vec<&std::ffi::OsStr> = path.iter().collect();
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
