//! What the records of a run show of one plugin.
//!
//! A record becomes a flat map from places to values, such as `check/1/1/outcome/status` to `"success"`. Places whose value differs
//! between two runs with the same grants are not compared, so a plugin need not be deterministic in everything.

use glovebox_journal::event::{Event, Record, StageFinished};
use glovebox_record::scope::Entry;
use glovebox_record::{ChangeOp, CommandEnding, FileChange, LimitName, Refusal, ToolCall};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Limits whose use depends only on what the component does.
const COUNTED: &[LimitName] = &[
    LimitName::MemoryBytes,
    LimitName::TableElements,
    LimitName::OutputBytes,
    LimitName::WriteBytes,
    LimitName::WriteEntries,
    LimitName::Turns,
    LimitName::ToolRounds,
    LimitName::ArtifactBytes,
    LimitName::LogLines,
    LimitName::Commands,
    LimitName::OutcomeBytes,
];

/// What a run showed of one plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Values by their place in the records.
    values: BTreeMap<String, String>,
    /// Requests that the host refused, as operation and path.
    refused: BTreeSet<(String, String)>,
    /// Paths that the plugin changed. A folder that it created is an entry with everything below it.
    pub changed: BTreeSet<Entry>,
    /// The arguments of its commands.
    pub commands: BTreeSet<Vec<String>>,
    /// Number of attempts of its stages, and of calls of its tools.
    pub attempts: usize,
}

impl Facts {
    /// Reads the records of a run.
    pub fn of(records: &[Record], plugin: &str) -> Self {
        let mut facts = Self::default();
        for record in records {
            let Event::StageFinished(finished) = &record.event else { continue };
            if finished.handler == plugin {
                facts.add(finished);
            }
            let mut calls = finished.commands.tool_calls.iter().filter(|call| call.server == plugin).peekable();
            if calls.peek().is_some() {
                facts.add_calls(finished, calls);
            }
        }
        facts
    }

    /// Adds the calls of the plugin's tools in an attempt. The record does not say which of several plugins was refused a request, so all
    /// refusals of the attempt are compared.
    fn add_calls<'a>(&mut self, finished: &StageFinished, calls: impl Iterator<Item = &'a ToolCall>) {
        let place = place_of(finished);
        for (index, call) in calls.enumerate() {
            self.attempts += usize::from(call.tool.is_some());
            let ToolCall { tool, is_error, arguments, result, .. } = call;
            let parts = [
                ("tool", tool.clone().unwrap_or_default()),
                ("is_error", is_error.to_string()),
                ("arguments", arguments.to_string()),
                ("result", result.to_string()),
            ];
            let values = parts.map(|(name, value)| (format!("{place}/tool_calls/{index}/{name}"), value));
            self.values.extend(values);
        }
        self.refused.extend(finished.refusals.listed.iter().map(named));
    }

    fn add(&mut self, finished: &StageFinished) {
        self.attempts += 1;
        let place = place_of(finished);
        let parts = [
            ("outcome", serde_json::to_value(&finished.outcome)),
            ("ending", serde_json::to_value(&finished.ending)),
            ("changes", serde_json::to_value(&finished.files.changes)),
            ("artifacts", serde_json::to_value(&finished.files.artifacts)),
        ];
        for (name, value) in parts {
            self.flatten(&format!("{place}/{name}"), &value.unwrap_or_default());
        }
        for used in finished.usage.iter().filter(|used| COUNTED.contains(&used.name)) {
            self.values.insert(format!("{place}/usage/{}", used.name), format!("{:?}", used.used));
        }
        for receipt in &finished.commands.receipts {
            let end = format!("{} {:?}", receipt.how, receipt.code);
            self.values.insert(format!("{place}/commands/{}", receipt.id), format!("{:?} {end}", receipt.argv));
            if receipt.how == CommandEnding::Exited {
                self.commands.insert(receipt.argv.clone());
            }
        }
        self.refused.extend(finished.refusals.listed.iter().map(named));
        self.changed.extend(finished.files.changes.iter().filter_map(entry));
    }

    fn flatten(&mut self, place: &str, value: &Value) {
        match value {
            Value::Object(fields) => {
                fields.iter().for_each(|(key, value)| self.flatten(&format!("{place}/{key}"), value))
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, value)| self.flatten(&format!("{place}/{index}"), value));
            }
            value => {
                self.values.insert(place.to_owned(), value.to_string());
            }
        }
    }

    /// Returns the places whose value is the same in another run with the same grants.
    pub fn stable(&self, other: &Self) -> BTreeSet<String> {
        self.values
            .iter()
            .filter(|(place, value)| other.values.get(*place) == Some(value))
            .map(|(place, _)| place.clone())
            .collect()
    }

    /// Returns what differs in a run with fewer grants. `None` if the plugin did the same work and asked for nothing that it did
    /// not get.
    pub fn difference(&self, fewer: &Self, stable: &BTreeSet<String>) -> Option<String> {
        if let Some((operation, path)) = fewer.refused.difference(&self.refused).next() {
            return Some(format!("it asks to {operation} `{path}`"));
        }
        if fewer.attempts != self.attempts {
            return Some(format!("it is called {} times instead of {}", fewer.attempts, self.attempts));
        }
        let differs = |place: &&String| self.values.get(*place) != fewer.values.get(*place);
        // The status says most, so it is named first.
        let place = stable.iter().find(|place| place.ends_with("/outcome/status") && differs(place));
        let place = place.or_else(|| stable.iter().find(differs))?;
        let value = |facts: &Self| facts.values.get(place).map_or("nothing", String::as_str).to_owned();
        Some(format!("`{place}` is {} instead of {}", shortened(&value(fewer)), shortened(&value(self))))
    }
}

fn place_of(finished: &StageFinished) -> String {
    let task = &finished.attempt.task;
    format!("{}/{}/{}/{}", task.branch, task.node, task.visit, finished.attempt.ordinal)
}

fn entry(change: &FileChange) -> Option<Entry> {
    let is_folder = matches!(change.op, ChangeOp::Mkdir | ChangeOp::Rmdir);
    Entry::parse(&format!("{}{}", change.path, if is_folder { "/" } else { "" })).ok()
}

fn named(refusal: &Refusal) -> (String, String) {
    (refusal.operation.clone(), refusal.path.clone())
}

fn shortened(value: &str) -> String {
    const CHARS_MAX: usize = 60;
    match value.chars().count() > CHARS_MAX {
        true => value.chars().take(CHARS_MAX).chain(['…']).collect(),
        false => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(values: &[(&str, &str)], refused: &[(&str, &str)]) -> Facts {
        Facts {
            values: values.iter().map(|(place, value)| ((*place).to_owned(), (*value).to_owned())).collect(),
            refused: refused.iter().map(|(operation, path)| ((*operation).to_owned(), (*path).to_owned())).collect(),
            attempts: 1,
            ..Facts::default()
        }
    }

    #[test]
    fn what_changes_by_itself_is_not_compared() {
        let (first, second) = (facts(&[("a", "1"), ("b", "1")], &[]), facts(&[("a", "1"), ("b", "2")], &[]));
        let stable = first.stable(&second);
        assert_eq!(first.difference(&facts(&[("a", "1"), ("b", "3")], &[]), &stable), None);
        assert_eq!(first.difference(&facts(&[("a", "2")], &[]), &stable).as_deref(), Some("`a` is 2 instead of 1"));
        assert_eq!(first.difference(&facts(&[], &[]), &stable).as_deref(), Some("`a` is nothing instead of 1"));
    }

    #[test]
    fn a_new_refusal_is_a_difference_and_a_known_one_is_not() {
        let first = facts(&[("a/outcome/status", "1"), ("a", "1")], &[("read", "x")]);
        let stable = first.stable(&first);
        assert_eq!(first.difference(&first, &stable), None);
        let fewer = facts(&[("a/outcome/status", "1"), ("a", "1")], &[("read", "x"), ("read", "y")]);
        assert_eq!(first.difference(&fewer, &stable).as_deref(), Some("it asks to read `y`"));
        let failed = facts(&[("a/outcome/status", "2"), ("a", "2")], &[]);
        assert!(first.difference(&failed, &stable).unwrap().starts_with("`a/outcome/status`"));
    }
}
