//! Records as lines, and what of them a client may see.

use super::sight;
use crate::exit::{Exit, Stop};
use crate::runs::RunFolder;
use crate::runs::hidden::Hidden;
use crate::runs::journal;
use crate::terminal;
use glovebox_journal::event::Record;
use glovebox_journal::reading::ReadRecords;
use glovebox_record::{Digest, NodeId};
use glovebox_serve::desk::{Problem, RecordLine};
use glovebox_serve::right::Sight;
use glovebox_state::named_events::NamedEvent;
use serde_json::Value;

/// Returns the JSON document without what a client may not see.
pub(super) fn remove(hidden: &Hidden, text: &str, seen: Sight) -> Result<String, Problem> {
    if hidden.is_empty() {
        return Ok(text.to_owned());
    }
    let broken = |_| Problem::new(500, "internal", "the document could not be reduced");
    let mut value: Value = serde_json::from_str(text).map_err(broken)?;
    sight::remove(&mut value, &|node| hidden.has(&node.into()), seen);
    terminal::json(&value).map_err(super::problem::problem)
}

/// Returns a record as a line, with the events that it stands for.
pub(super) fn line(record: &Record, events: &[NamedEvent], hidden: &Hidden, seen: Sight) -> Result<RecordLine, Stop> {
    let reduced = |json: String| -> Result<String, Stop> {
        if seen == Sight::Everything || hidden.is_empty() {
            return Ok(json);
        }
        let broken = |error| Stop::new(Exit::Internal, format!("reduce record {}: {error}", record.seq));
        let mut value: Value = serde_json::from_str(&json).map_err(broken)?;
        sight::remove(&mut value, &|node| hidden.has(&node.into()), seen);
        terminal::json_line(&value)
    };
    let events = events.iter().zip(0_u32..).map(|(event, part)| {
        let mut value = serde_json::to_value(event).unwrap_or_default();
        value["seq"] = record.seq.into();
        value["part"] = part.into();
        Ok((event.name(), reduced(terminal::json_line(&value)?)?))
    });
    Ok(RecordLine {
        seq: record.seq,
        kind: record.event.kind(),
        node: record.event.node().cloned(),
        events: events.collect::<Result<_, Stop>>()?,
        json: reduced(terminal::json_line(record)?)?,
    })
}

/// Returns the nodes of the records that name a digest; `None` for a record without a node.
pub(super) fn naming(run: &RunFolder, digest: &Digest) -> Result<Vec<Option<NodeId>>, Stop> {
    let journal = journal::open_to_show(run)?;
    let (mut found, digest) = (Vec::new(), digest.to_string());
    let read = journal.read(1..=journal.last_seq(), &mut |record: &Record| {
        if serde_json::to_string(&record.event).is_ok_and(|text| text.contains(&digest)) {
            found.push(record.event.node().cloned());
        }
    });
    read.map_err(|error| journal::unreadable(run, &error))?;
    Ok(found)
}

/// Returns the hash of the last record of a run.
pub(super) fn head(run: &RunFolder) -> Result<Digest, Stop> {
    let journal = journal::open_to_show(run)?;
    let mut head = Digest::ZERO;
    let last = journal.last_seq();
    let read = journal.read(last..=last, &mut |record: &Record| head = record.hash);
    read.map_err(|error| journal::unreadable(run, &error))?;
    Ok(head)
}
