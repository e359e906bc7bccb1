//! The file with the answers: `[[answer]]` tables in the order in which they are used.
//!
//! An answer with `when` is used only for requests that contain this text. An unknown field or value is an error with
//! its line number.

use super::misbehave::is_of_provider;
use glovebox_models::chat::Usage;
use glovebox_models::error::ERRORS;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A parsed script.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FakeScript {
    /// Key that requests must carry, if any.
    pub(super) key: Option<String>,
    #[serde(default, rename = "answer")]
    pub(super) turns: Vec<Turn>,
}

/// The reason why a script cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct FakeScriptError {
    /// Line number, from 1.
    pub line: usize,
    /// Description of the problem.
    pub problem: String,
}

/// One answer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Turn {
    /// Text that the request must contain, if any.
    pub(super) when: Option<String>,
    /// True if the answer may be used more than once.
    pub(super) repeat: bool,
    pub(super) text: String,
    /// Pieces in which the text after `text` is streamed.
    pub(super) pieces: Vec<String>,
    pub(super) tool: Vec<Call>,
    /// Thoughts before the answer, with a signature if the wire format has one.
    pub(super) thinking: Option<String>,
    pub(super) usage: Usage,
    /// Model that the answer names, if not the requested one.
    pub(super) model: Option<String>,
    /// True if the answer ends because it reached the maximum number of tokens.
    pub(super) length: bool,
    /// Number of bytes of filler after the text.
    pub(super) fill_bytes: usize,
    /// True if the text never ends.
    pub(super) endless: bool,
    /// Delay before the answer, in milliseconds.
    pub(super) delay_ms: u64,
    /// Pause before each event of a streamed answer except the first, in milliseconds.
    pub(super) pause_ms: u64,
    /// True if only the first piece is sent and the connection then stays open.
    pub(super) stall: bool,
    /// How the answer is cut off in the middle, if at all.
    pub(super) cut: Option<Cut>,
    /// Error that is sent instead, by its name in the table of errors.
    pub(super) error: Option<String>,
    /// HTTP status of the error, if not the usual one.
    pub(super) status: Option<u16>,
    /// True if the error is sent as an event of a streamed answer.
    pub(super) in_stream: bool,
    /// Seconds after which the caller may repeat the request.
    pub(super) retry_after: Option<u64>,
    /// Further headers of an error.
    pub(super) headers: BTreeMap<String, String>,
    /// Message of the error.
    pub(super) message: Option<String>,
}

/// A tool call.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: Map<String, Value>,
    /// Arguments as raw text, which need not be valid JSON.
    #[serde(default)]
    pub(super) raw_arguments: Option<String>,
}

impl Call {
    /// Returns the arguments as the model writes them.
    pub(super) fn written(&self) -> String {
        match &self.raw_arguments {
            Some(raw) => raw.to_owned(),
            None => serde_json::to_string(&self.arguments).unwrap_or_default(),
        }
    }

    /// Returns the arguments as JSON, or null if they are not valid JSON.
    pub(super) fn arguments(&self) -> Value {
        serde_json::from_str(&self.written()).unwrap_or_default()
    }
}

/// How an answer is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Cut {
    /// The body ends early as if it were complete.
    Body,
    /// The connection is closed early.
    Connection,
}

impl FakeScript {
    /// Parses a script. The error describes the first problem.
    pub fn parse(text: &str) -> Result<Self, FakeScriptError> {
        let script: Self = toml::from_str(text).map_err(|error| FakeScriptError {
            line: error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count()),
            problem: error.message().to_owned(),
        })?;
        let wrong = |name: &String| match ERRORS.iter().find(|row| row.name == name) {
            Some(row) if is_of_provider(row.kind) => None,
            Some(_) => Some(format!("`error` is `{name}`, which no provider can cause")),
            None => {
                let possible = ERRORS.iter().filter(|row| is_of_provider(row.kind));
                let names: Vec<&str> = possible.map(|row| row.name).collect();
                Some(format!("`error` is `{name}`, expected one of {}", names.join(", ")))
            }
        };
        let errors = script.turns.iter().filter_map(|turn| turn.error.as_ref());
        match errors.filter_map(|name| Some((name, wrong(name)?))).next() {
            None => Ok(script),
            Some((name, problem)) => {
                let at = text.find(&format!("\"{name}\"")).unwrap_or_default();
                Err(FakeScriptError { line: 1 + text[..at].matches('\n').count(), problem })
            }
        }
    }
}

impl Turn {
    /// Creates an answer that is an error.
    pub(super) fn refusing(kind: &'static str) -> Self {
        Self { error: Some(kind.to_owned()), ..Self::default() }
    }

    /// Returns true if the answer may be used for this request.
    pub(super) fn fits(&self, body: &[u8]) -> bool {
        let Some(when) = &self.when else { return true };
        // The text is compared in its JSON encoding.
        let written = Value::from(when.as_str()).to_string();
        let inside = &written.as_bytes()[1..written.len() - 1];
        body.windows(inside.len().max(1)).any(|window| window == inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_names_its_line() {
        let check = |text: &str, line: usize, problem: &str| {
            let error = FakeScript::parse(text).unwrap_err();
            assert_eq!(error.line, line, "{error}");
            assert!(error.problem.contains(problem), "{error}");
        };
        check("[[answer]]\ntext = 'x'\nreply = 'y'", 3, "unknown field `reply`");
        check("[[answer]]\ncut = 'soon'", 2, "unknown variant `soon`");
        check("[[answer]]\n\nerror = \"down\"", 3, "`error` is `down`, expected one of authentication");
        check("[[answer]]\n\nerror = \"canceled\"", 3, "`error` is `canceled`, which no provider can cause");
        assert!(FakeScript::parse("[[answer]]\ntext = 'x'").is_ok());
    }

    #[test]
    fn a_text_is_found_in_a_request_as_json_has_it() {
        let turn = Turn { when: Some("say \"hi\"\n".to_owned()), ..Turn::default() };
        assert!(turn.fits(br#"{"content":"please say \"hi\"\nnow"}"#));
        assert!(!turn.fits(br#"{"content":"please"}"#));
    }
}
