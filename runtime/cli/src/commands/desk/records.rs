//! Records as lines, and what of them a client may see.

use super::builder;
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

/// Returns an open question of any run, without what a client with this sight may not see. `None` if it sees nothing of it.
pub(super) fn gate(mut gate: Value, hidden: &Hidden, seen: Sight) -> Option<Value> {
    if seen == Sight::Builder && hidden.is_sealed() {
        return builder::of_gate(&gate, hidden);
    }
    if !hidden.is_empty() {
        sight::remove(&mut gate, &|node| hidden.has(&node.into()), seen);
    }
    Some(gate)
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_question_of_a_run_with_a_judge_shows_builders_the_question_alone() {
        let gate = json!({
            "run_id": "r", "node": "gate", "question": "gate#1", "text": "Ship?", "choices": [],
            "review": { "checked": [{ "node": "judge", "notes": "secret", "exit": 3 }] },
        });
        let asked = json!({ "run_id": "r", "node": "gate", "question": "gate#1", "text": "Ship?", "choices": [] });
        let judged = Hidden::with_reach(&["judge"]);
        assert_eq!(super::gate(gate.clone(), &judged, Sight::Builder), Some(asked));
        let seen = super::gate(gate.clone(), &judged, Sight::Person).unwrap();
        assert!(!seen.to_string().contains("secret") && seen["review"]["checked"][0]["exit"] == 3, "{seen}");
        // Builders do not see questions of the judge itself.
        let own = json!({ "run_id": "r", "node": "judge", "question": "judge#1", "text": "secret" });
        assert_eq!(super::gate(own, &judged, Sight::Builder), None);
        // Without hold-outs there is nothing to hide.
        assert_eq!(super::gate(gate.clone(), &Hidden::default(), Sight::Builder), Some(gate));
    }
}
