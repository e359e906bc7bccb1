//! The `[recovery]` table: what people may decide about writes outside of a stage's write scope.
//!
//! Write recovery is off unless the operator writes `mode = "ask"`. A path that no stage may ever write is an error here, and
//! is not left out silently.

use super::field::{Field, Fields};
use glovebox_pipeline::lower::duration;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Entry;
use glovebox_workspace::protect::Protected;
use std::fmt;
use std::time::Duration;

/// The settings of write recovery. By default there is no write recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoverySetting {
    /// Files that may be proposed for every building stage.
    pub paths: Vec<ScopePath>,
    /// True if each command that the author or the operator names proposes the files that it usually writes.
    pub command_rules: bool,
    /// Paths that may be discarded.
    pub discard: Vec<DiscardPattern>,
    /// Paths that fail the stage without a question. They have precedence over every proposal.
    pub deny: Vec<Entry>,
    /// Maximum time that a question waits before the stage fails. `None` for no maximum.
    pub timeout: Option<Duration>,
}

impl Default for RecoverySetting {
    fn default() -> Self {
        Self { paths: Vec::new(), command_rules: true, discard: Vec::new(), deny: Vec::new(), timeout: None }
    }
}

/// A pattern of generated files that may be discarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiscardPattern {
    /// A path, or a folder with everything below it.
    Path(Entry),
    /// All files whose names have this ending, such as `.log`, in all folders.
    Ending(String),
}

impl DiscardPattern {
    /// Returns true if the pattern matches the path.
    pub fn matches(&self, path: &ScopePath) -> bool {
        match self {
            Self::Path(entry) => entry.contains(path),
            Self::Ending(ending) => path.name().is_some_and(|name| name.ends_with(ending.as_str())),
        }
    }

    /// Parses `dir/`, `dir/file` or `*.ending`.
    fn parse(text: &str) -> Result<Self, String> {
        if let Some(ending) = text.strip_prefix('*') {
            let is_plain = ending.len() > 1 && ending.starts_with('.') && !ending.contains(['*', '/', '?', '[']);
            return match is_plain {
                true => Ok(Self::Ending(ending.to_owned())),
                false => Err("a pattern with `*` must be an ending such as `*.log`".to_owned()),
            };
        }
        let entry = Entry::parse(text).map_err(|error| error.to_string())?;
        match entry.path().is_root() {
            true => Err("it means the whole workspace: name a folder such as `coverage/`".to_owned()),
            false => Ok(Self::Path(entry)),
        }
    }
}

impl fmt::Display for DiscardPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(entry) => entry.fmt(f),
            Self::Ending(ending) => write!(f, "*{ending}"),
        }
    }
}

const FIELDS: [&str; 6] = ["mode", "paths", "command_rules", "discard", "deny", "timeout"];

pub(super) fn parse(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> Option<RecoverySetting> {
    let (mut setting, mut asks) = (RecoverySetting::default(), false);
    for field in fields.table(table) {
        match field.name {
            "mode" => asks = mode(fields, &field),
            "paths" => setting.paths = entries(fields, &field, file),
            "command_rules" => match field.value.as_bool() {
                Some(rules) => setting.command_rules = rules,
                None => fields.value_problem(field.at_value(), format!("`{field}` must be `true` or `false`")),
            },
            "discard" => setting.discard = entries(fields, &field, DiscardPattern::parse),
            "deny" => {
                setting.deny = entries(fields, &field, |text| Entry::parse(text).map_err(|error| error.to_string()));
            }
            "timeout" => setting.timeout = timeout(fields, &field),
            _ => fields.unknown(&field, &FIELDS),
        }
    }
    asks.then_some(setting)
}

fn mode(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> bool {
    match field.value.as_str() {
        Some("off") => false,
        Some("ask") => true,
        _ => {
            fields.value_problem(field.at_value(), format!("`{field}` must be `\"off\"` or `\"ask\"`"));
            false
        }
    }
}

/// Parses the texts of a list. A text that cannot be parsed becomes a problem at its place.
fn entries<T>(fields: &mut Fields<'_>, field: &Field<'_, '_>, read: fn(&str) -> Result<T, String>) -> Vec<T> {
    let mut found = Vec::new();
    for (text, place) in fields.texts(field) {
        match read(&text) {
            Ok(entry) => found.push(entry),
            Err(problem) => fields.value_problem(place, format!("`{field}` contains `{text}`: {problem}")),
        }
    }
    found
}

/// Parses the path of a file that a stage could be allowed to write.
fn file(text: &str) -> Result<ScopePath, String> {
    let entry = Entry::parse(text).map_err(|error| error.to_string())?;
    if entry.is_subtree() {
        return Err("it is a folder: name each file, such as `Cargo.lock`".to_owned());
    }
    match Protected::default().reason(entry.path().as_str()) {
        Some(reason) => Err(format!("no stage may ever write it, since {reason}: remove it")),
        None => Ok(entry.path().clone()),
    }
}

fn timeout(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Option<Duration> {
    let found = field.value.as_str().and_then(duration).filter(|timeout| !timeout.is_zero());
    if found.is_none() {
        fields.value_problem(field.at_value(), format!("`{field}` is not a time above 0 such as `\"30m\"`"));
    }
    found
}
