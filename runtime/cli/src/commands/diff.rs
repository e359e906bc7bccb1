//! `glovebox diff`: what a run would bring into the project, as a unified diff.
//!
//! The side before is read from the project and shown only while it still is what the run copied.

use crate::arguments::DiffArguments;
use crate::changes::Changes;
use crate::exit::{Ended, Exit, Stop};
use crate::terminal::{self, visible};
use crate::{journal, runs};
use glovebox_record::{ChangeOp, Digest, FileChange};
use glovebox_sandbox::apply::{Difference, differences, open_before};
use similar::TextDiff;
use std::io::Read;

/// Files beyond this are named and not shown.
const SHOWN_BYTES_MAX: u64 = 1 << 20;

/// The project has no longer what the run began with, but what it came to.
const APPLIED: &str = "the project has the run's version";

/// One side of a file.
enum Side {
    Absent,
    Text(String),
    /// Not text, too large, or not what it was; in words.
    Other(String),
}

/// Prints every path that the run changed.
pub fn diff(arguments: &DiffArguments) -> Ended {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    let changes = Changes::read(&run)?;
    journal::tell_foreign(&run, changes.provenance);
    let found = differences(&changes.base, &changes.changes);
    if arguments.json {
        terminal::print_json(&found)?;
        return Ok(Exit::Ok);
    }
    if found.is_empty() {
        terminal::say(&format!("run `{}` changed nothing\n", visible::line(&run.id)));
    }
    for difference in &found {
        terminal::print(&render(&changes, difference)?);
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
        (Side::Absent, Side::Text(new)) => unified("", &new, "/dev/null", &format!("b/{path}")),
        (Side::Text(old), Side::Absent) => unified(&old, "", &format!("a/{path}"), "/dev/null"),
        (Side::Text(old), Side::Text(new)) => unified(&old, &new, &format!("a/{path}"), &format!("b/{path}")),
        (Side::Absent, Side::Other(words)) => format!("new     {path}: {words}\n"),
        (Side::Other(words), Side::Absent) => format!("removed {path}: {words}\n"),
        (Side::Other(words), _) | (_, Side::Other(words)) => format!("differs {path}: {words}\n"),
    })
}

fn unified(old: &str, new: &str, before: &str, after: &str) -> String {
    let (old, new) = (visible::block(old), visible::block(new));
    TextDiff::from_lines(old.as_ref(), new.as_ref()).unified_diff().header(before, after).to_string()
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
    read.map_err(|error| Stop::new(Exit::Mismatch, format!("blob of `{}`: {error}", change.path)))?;
    Ok(text(bytes))
}

fn text(bytes: Vec<u8>) -> Side {
    let length = bytes.len();
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Side::Text(text),
        _ => Side::Other(format!("binary, {length} bytes")),
    }
}
