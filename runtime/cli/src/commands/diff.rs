//! `glovebox diff`: the changes of a run, as a unified diff.
//!
//! The old text comes from the project. It is shown only if it is still what the run copied.

use crate::arguments::DiffArguments;
use crate::changes::Changes;
use crate::exit::{Ended, Exit, Stop};
use crate::terminal::{self, visible};
use crate::{journal, runs};
use glovebox_record::{ChangeOp, Digest, FileChange};
use glovebox_sandbox::apply::{Difference, differences, open_before};
use similar::TextDiff;
use std::borrow::Cow;
use std::io::Read;

/// The largest file that is shown; a larger one is only named.
const SHOWN_BYTES_MAX: u64 = 1 << 20;

/// The project already has the result of the run.
const APPLIED: &str = "the project has the run's version";

/// One side of a file.
enum Side {
    Absent,
    Text(String),
    /// The reason why it is not shown: not text, too large, or changed since.
    Other(String),
}

/// Prints every path that the run changed.
pub fn diff(arguments: &DiffArguments) -> Ended {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    let changes = Changes::read(&run)?;
    journal::warn_if_foreign(&run, changes.provenance);
    let found = differences(&changes.base, &changes.changes);
    if arguments.json {
        terminal::print_json(&found)?;
        return Ok(Exit::Ok);
    }
    if found.is_empty() {
        terminal::say(format_args!("run `{}` changed nothing\n", visible::line(&run.id)));
    }
    for difference in &found {
        terminal::print(render(&changes, difference)?);
    }
    Ok(Exit::Ok)
}

fn render(changes: &Changes, difference: &Difference) -> Result<String, Stop> {
    let path = visible::line(&difference.path);
    if let Some(change) = difference.after.as_ref().filter(|change| change.op != ChangeOp::Write) {
        let target =
            change.target.as_deref().map(|target| format!(" -> {}", visible::line(target))).unwrap_or_default();
        let what = if change.op == ChangeOp::Symlink { "link" } else { "directory" };
        return Ok(format!("{what} {path}{target}\n"));
    }
    let after = match &difference.after {
        Some(change) => after(changes, change)?,
        None => Side::Absent,
    };
    Ok(match (before(changes, difference), after) {
        (Side::Absent, Side::Absent) => format!("removed {path}\n"),
        (Side::Absent, Side::Text(new)) => unified(&Version::ABSENT, &Version::new(format!("b/{path}"), &new)),
        (Side::Text(old), Side::Absent) => unified(&Version::new(format!("a/{path}"), &old), &Version::ABSENT),
        (Side::Text(old), Side::Text(new)) => {
            unified(&Version::new(format!("a/{path}"), &old), &Version::new(format!("b/{path}"), &new))
        }
        (Side::Absent, Side::Other(words)) => format!("new     {path}: {words}\n"),
        (Side::Other(words), Side::Absent) => format!("removed {path}: {words}\n"),
        (Side::Other(words), _) | (_, Side::Other(words)) => format!("differs {path}: {words}\n"),
    })
}

/// One version of a file: its name in the diff, and its text as it is shown.
struct Version<'a> {
    name: Cow<'static, str>,
    text: Cow<'a, str>,
}

impl<'a> Version<'a> {
    const ABSENT: Version<'static> = Version { name: Cow::Borrowed("/dev/null"), text: Cow::Borrowed("") };

    fn new(name: String, text: &'a str) -> Self {
        Self { name: Cow::Owned(name), text: visible::block(text) }
    }
}

fn unified(old: &Version<'_>, new: &Version<'_>) -> String {
    TextDiff::from_lines(&*old.text, &*new.text).unified_diff().header(&old.name, &new.name).to_string()
}

fn before(changes: &Changes, difference: &Difference) -> Side {
    let Some(fact) = &difference.before else { return Side::Absent };
    let Ok(file) = open_before(&changes.project, &difference.path) else {
        let words = if difference.after.is_none() { APPLIED } else { "the project no longer has it" };
        return Side::Other(words.to_owned());
    };
    let mut bytes = Vec::new();
    if fact.bytes > SHOWN_BYTES_MAX || file.take(SHOWN_BYTES_MAX + 1).read_to_end(&mut bytes).is_err() {
        return Side::Other(format!("{} bytes before", fact.bytes));
    }
    let found = Digest::of(&bytes);
    if difference.after.as_ref().and_then(|change| change.digest) == Some(found) {
        return Side::Other(APPLIED.to_owned());
    }
    if found != fact.digest {
        return Side::Other("the project's file changed after the run copied it".to_owned());
    }
    text(bytes)
}

fn after(changes: &Changes, change: &FileChange) -> Result<Side, Stop> {
    if change.bytes > SHOWN_BYTES_MAX {
        return Ok(Side::Other(format!("{} bytes now", change.bytes)));
    }
    let Some(digest) = change.digest else { return Ok(Side::Absent) };
    let mut bytes = Vec::new();
    let read = changes.open(&digest).and_then(|file| file.take(SHOWN_BYTES_MAX).read_to_end(&mut bytes));
    read.map_err(|error| Stop::new(Exit::Mismatch, format!("read the blob of `{}`: {error}", change.path)))?;
    Ok(text(bytes))
}

fn text(bytes: Vec<u8>) -> Side {
    let length = bytes.len();
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Side::Text(text),
        _ => Side::Other(format!("binary, {length} bytes")),
    }
}
