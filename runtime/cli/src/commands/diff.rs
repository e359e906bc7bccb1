//! `glovebox diff`: prints the changes of a run as a patch in git's format.
//!
//! `git apply` with the patch has the same effect as `glovebox apply`, except for empty directories. If a version of a
//! file no longer exists, the patch is incomplete; the command prints all the rest and then exits with 6.

use crate::arguments::DiffArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::patch::{self, Counts, Delta, Mode, Reader, Version};
use crate::runs;
use crate::runs::RunFolder;
use crate::runs::changes::Changes;
use crate::runs::journal;
use crate::runs::review;
use crate::runs::selection;
use crate::terminal::paint::{self, Paint};
use crate::terminal::{self, pager, visible};
use clap::ColorChoice;
use glovebox_record::Digest;
use glovebox_record::path::ScopePath;
use glovebox_state::evidence::configuration::NewConfiguration;
use schemars::JsonSchema;
use serde::Serialize;

/// The document that `diff --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "diff.json")]
pub struct DiffFile {
    /// Version of this document.
    schema_version: u32,
    /// Id of the run.
    run_id: String,
    /// Every file and link that the run changed, by path.
    files: Vec<ChangedFile>,
    /// New files and folders of the run from which programs take settings or code.
    new_configuration: Vec<NewConfiguration>,
    /// Directories that a patch cannot express, because they were created or removed, or have no file left.
    #[schemars(with = "Vec<String>")]
    directories: Vec<ScopePath>,
}

/// One file or link that changed.
#[derive(Debug, Serialize, JsonSchema)]
struct ChangedFile {
    /// Path relative to the project, after the run.
    #[schemars(with = "String")]
    path: ScopePath,
    /// Path before the run, if the run moved the file; null otherwise.
    #[schemars(with = "Option<String>")]
    moved_from: Option<ScopePath>,
    /// Version before the run; null for a new file.
    before: Option<FileVersion>,
    /// Version after the run; null for a file that was removed.
    after: Option<FileVersion>,
}

/// One version of a file.
#[derive(Debug, Serialize, JsonSchema)]
struct FileVersion {
    /// Mode of the file in git.
    mode: Mode,
    /// Length of the file in bytes; for a link, length of its target.
    bytes: u64,
    /// Digest of the file's bytes; null for a link.
    digest: Option<Digest>,
    /// Target of a link; null for a file.
    target: Option<String>,
}

impl FileVersion {
    fn from_version(version: &Version) -> Self {
        let (digest, target) = match version {
            Version::File { digest, .. } => (Some(*digest), None),
            Version::Link(target) => (None, Some(target.clone())),
        };
        Self { mode: version.mode(), bytes: version.bytes(), digest, target }
    }
}

/// Prints every path that the run changed, or only the selected paths.
pub fn diff(arguments: &DiffArguments) -> CommandResult {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    if arguments.json {
        terminal::print_json(&document(&run, arguments.question.as_deref(), &arguments.paths)?)?;
        return Ok(Exit::Ok);
    }
    let changes = changes(&run, arguments.question.as_deref())?;
    let Differences { deltas, directories, new } = Differences::of(&changes, &arguments.paths)?;
    if deltas.is_empty() && directories.is_empty() {
        terminal::say(format_args!("run `{}` changed nothing\n", visible::line(&run.id)));
    }
    let lost = match arguments.stat {
        true => print_stat(&changes, &deltas)?,
        false => print_patch(&changes, &deltas)?,
    };
    for directory in &directories {
        let path = visible::line(directory.as_str());
        terminal::say(format_args!(
            "note: a patch cannot contain an empty directory: `{path}/` differs; `glovebox apply` applies this change\n"
        ));
    }
    terminal::say_new_configuration(&new);
    refuse_incomplete(&run, &lost)
}

/// Returns the document that `diff --json` prints: every change of a run or, for a question, those since the last
/// answer of the same gate. Empty `paths` select every path.
pub fn document(run: &RunFolder, question: Option<&str>, paths: &[String]) -> Result<DiffFile, Stop> {
    let changes = changes(run, question)?;
    let Differences { deltas, directories, new: new_configuration } = Differences::of(&changes, paths)?;
    let files = deltas.into_iter().map(|delta| ChangedFile {
        before: delta.old.as_ref().map(FileVersion::from_version),
        after: delta.new.as_ref().map(FileVersion::from_version),
        moved_from: delta.renamed.map(|(path, _)| path),
        path: delta.path,
    });
    Ok(DiffFile { schema_version: 1, run_id: run.id.clone(), files: files.collect(), new_configuration, directories })
}

fn changes(run: &RunFolder, question: Option<&str>) -> Result<Changes, Stop> {
    let changes = match question {
        Some(question) => review::changes_for(run, &question.into())?,
        None => Changes::read(run)?,
    };
    journal::warn_if_foreign(run, changes.provenance);
    Ok(changes)
}

/// The differences that a run made at the selected paths.
struct Differences {
    deltas: Vec<Delta>,
    directories: Vec<ScopePath>,
    new: Vec<NewConfiguration>,
}

impl Differences {
    fn of(changes: &Changes, paths: &[String]) -> Result<Self, Stop> {
        let selected = selection::select(&changes.changes, paths)?;
        let read = |delta: &Delta| changes.bytes(delta).ok().flatten().and_then(|bytes| bytes.old.or(bytes.new));
        let deltas = patch::pair(patch::deltas(&changes.base, &selected), &read);
        let directories = patch::lost_directories(&changes.base, &selected);
        let new = changes.new_configuration(&selected);
        Ok(Self { deltas, directories, new })
    }
}

/// Returns the changes of a run as a patch, as `diff` prints it into a file. A file whose old version no longer exists has a
/// line before the patch.
pub fn patch_bytes(run: &RunFolder, question: Option<&str>) -> Result<Vec<u8>, Stop> {
    let changes = changes(run, question)?;
    let Differences { deltas, .. } = Differences::of(&changes, &[])?;
    let (mut lost, mut patch) = (String::new(), Vec::new());
    for delta in &deltas {
        match changes.bytes(delta)? {
            Some(bytes) => patch.extend(patch::render(delta, &bytes, Reader::Program)),
            None => {
                let path = visible::line(delta.old_path().as_str());
                lost.push_str(&format!(
                    "glovebox: the old version of `{path}` no longer exists, so this patch lacks it\n"
                ));
            }
        }
    }
    Ok([lost.into_bytes(), patch].concat())
}

/// Prints a patch. Returns the paths of files that it lacks.
fn print_patch<'a>(changes: &Changes, deltas: &'a [Delta]) -> Result<Vec<&'a ScopePath>, Stop> {
    // A program gets every byte, and gets colours only on request: `CLICOLOR_FORCE` must not break
    // `glovebox diff | git apply`.
    let is_for_people = terminal::is_terminal() || paint::choice() == ColorChoice::Always;
    let (mut shown, mut lost) = (String::new(), Vec::new());
    for delta in deltas {
        match changes.bytes(delta)? {
            Some(bytes) if is_for_people => {
                let patch = patch::render(delta, &bytes, Reader::Terminal);
                shown.push_str(&Paint::stdout().patch(&String::from_utf8_lossy(&patch)));
            }
            Some(bytes) => terminal::print_bytes(&patch::render(delta, &bytes, Reader::Program)),
            None => lost.push(delta.old_path()),
        }
    }
    pager::show(&shown);
    Ok(lost)
}

fn print_stat<'a>(changes: &Changes, deltas: &'a [Delta]) -> Result<Vec<&'a ScopePath>, Stop> {
    let (mut rows, mut lost) = (Vec::new(), Vec::new());
    for delta in deltas {
        match changes.bytes(delta)? {
            Some(bytes) => rows.push((delta, Counts::count(&bytes))),
            None => lost.push(delta.old_path()),
        }
    }
    if !rows.is_empty() {
        pager::show(&Paint::stdout().stat(&patch::render_stat(&rows)));
    }
    Ok(lost)
}

fn refuse_incomplete(run: &RunFolder, lost: &[&ScopePath]) -> CommandResult {
    let Some(first) = lost.first() else { return Ok(Exit::Ok) };
    let more = if lost.len() > 1 { format!(" and {} more", lost.len() - 1) } else { String::new() };
    let path = visible::line(first.as_str());
    let message =
        format!("run `{}` has no copy of the old version of `{path}`{more}, so the patch is incomplete", run.id);
    Err(Stop::new(Exit::Policy, message)
        .with_help("the project changed after the run began; `glovebox diff --json` lists the new version"))
}
