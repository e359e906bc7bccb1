//! The arguments of one tool call. Each is checked when it is read.
//!
//! A model may send anything. An invalid argument results in a sentence for the model and never in a crash.

use crate::path::NamedPath;
use glovebox_plugin_sdk::Value;
use serde_json::Map;
use std::fmt;

/// Name of an argument in the schemas of the tools.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Argument {
    AgentId,
    Command,
    Commands,
    Content,
    IgnoreCase,
    Include,
    Key,
    Limit,
    MaxTurns,
    Message,
    NewString,
    Offset,
    OldString,
    Patch,
    Path,
    Pattern,
    ReplaceAll,
    Task,
    TimeoutMs,
    WritePaths,
}

impl Argument {
    fn as_str(self) -> &'static str {
        match self {
            Self::AgentId => "agent_id",
            Self::Command => "command",
            Self::Commands => "commands",
            Self::Content => "content",
            Self::IgnoreCase => "ignore_case",
            Self::Include => "include",
            Self::Key => "key",
            Self::Limit => "limit",
            Self::MaxTurns => "max_turns",
            Self::Message => "message",
            Self::NewString => "new_string",
            Self::Offset => "offset",
            Self::OldString => "old_string",
            Self::Patch => "patch",
            Self::Path => "path",
            Self::Pattern => "pattern",
            Self::ReplaceAll => "replace_all",
            Self::Task => "task",
            Self::TimeoutMs => "timeout_ms",
            Self::WritePaths => "write_paths",
        }
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The arguments of one call.
#[derive(Debug)]
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Parses the JSON text of a call. An empty text means that there are no arguments.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self(Map::new()));
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(map)) => Ok(Self(map)),
            Ok(_) => Err("the arguments are not a JSON object".to_owned()),
            Err(error) => Err(format!("the arguments are not valid JSON: {error}")),
        }
    }

    /// Returns a required text.
    pub(crate) fn text(&self, name: Argument) -> Result<&str, String> {
        self.optional_text(name)?.ok_or_else(|| format!("the argument `{name}` is missing"))
    }

    /// Returns a required path.
    pub(crate) fn path(&self, name: Argument) -> Result<NamedPath<'_>, String> {
        self.text(name).map(NamedPath)
    }

    /// Returns an optional text.
    pub(crate) fn optional_text(&self, name: Argument) -> Result<Option<&str>, String> {
        match self.0.get(name.as_str()) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("the argument `{name}` is not a string")),
        }
    }

    /// Returns a list of texts, which is empty by default.
    pub(crate) fn texts(&self, name: Argument) -> Result<Vec<String>, String> {
        let problem = || format!("the argument `{name}` is not a list of strings");
        match self.0.get(name.as_str()) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(problem)).collect()
            }
            Some(_) => Err(problem()),
        }
    }

    /// Returns an optional whole number, at least 0.
    pub(crate) fn count(&self, name: Argument) -> Result<Option<u64>, String> {
        match self.0.get(name.as_str()) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                value.as_u64().map(Some).ok_or_else(|| format!("the argument `{name}` is not a whole number"))
            }
        }
    }

    /// Returns an optional number as `usize`.
    pub(crate) fn size(&self, name: Argument) -> Result<Option<usize>, String> {
        Ok(self.count(name)?.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
    }

    /// Returns a flag, which is false by default.
    pub(crate) fn flag(&self, name: Argument) -> Result<bool, String> {
        match self.0.get(name.as_str()) {
            None | Some(Value::Null) => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| format!("the argument `{name}` is neither true nor false")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Argument, Arguments};

    #[test]
    fn what_does_not_fit_is_a_sentence() {
        let arguments = Arguments::parse(r#"{"path":"a","limit":3,"replace_all":true,"content":null}"#).unwrap();
        assert_eq!(arguments.text(Argument::Path), Ok("a"));
        assert_eq!(arguments.count(Argument::Limit), Ok(Some(3)));
        assert_eq!((arguments.flag(Argument::ReplaceAll), arguments.flag(Argument::Content)), (Ok(true), Ok(false)));
        assert_eq!(arguments.text(Argument::Content).unwrap_err(), "the argument `content` is missing");
        assert_eq!(arguments.text(Argument::Limit).unwrap_err(), "the argument `limit` is not a string");
        assert_eq!(arguments.count(Argument::Path).unwrap_err(), "the argument `path` is not a whole number");
        assert_eq!(arguments.flag(Argument::Path).unwrap_err(), "the argument `path` is neither true nor false");
        assert_eq!(Arguments::parse("[]").unwrap_err(), "the arguments are not a JSON object");
        assert!(Arguments::parse("{").unwrap_err().starts_with("the arguments are not valid JSON: "));
        assert!(Arguments::parse("").unwrap().text(Argument::Path).is_err());
    }
}
