//! The file with the answers: `[[answer]]` tables in the order in which they are used.
//!
//! An answer with `when` is for requests that contain this text. Any unknown field or value is an error with its line.

use glovebox_models::chat::Usage;
use glovebox_models::error::ERRORS;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A parsed script.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FakeScript {
    /// The key that a request must carry, if one must.
    pub(super) key: Option<String>,
    #[serde(default, rename = "answer")]
    pub(super) turns: Vec<Turn>,
}

/// The reason why a script cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct FakeScriptError {
    /// From 1.
    pub line: usize,
    /// The problem there.
    pub problem: String,
}

/// One answer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Turn {
    /// Only for requests that contain this text.
    pub(super) when: Option<String>,
    /// May be given more than once.
    pub(super) repeat: bool,
    pub(super) text: String,
    pub(super) tool: Vec<Call>,
    /// Thoughts in front of it, with a signature where the format has one.
    pub(super) thinking: Option<String>,
    pub(super) usage: Usage,
    /// The model it names, if not the one that was asked.
    pub(super) model: Option<String>,
    /// True if it reached its most tokens.
    pub(super) length: bool,
    /// This many bytes of text behind the text.
    pub(super) fill_bytes: usize,
    /// Text without an end.
    pub(super) endless: bool,
    /// Waits before it answers.
    pub(super) delay_ms: u64,
    /// Sends the first piece and then nothing.
    pub(super) stall: bool,
    /// Ends it in the middle.
    pub(super) cut: Option<Cut>,
    /// An error instead, by its name in the table of errors.
    pub(super) error: Option<String>,
    /// Its status, if not the usual one.
    pub(super) status: Option<u16>,
    /// The error is an event of the answer.
    pub(super) in_stream: bool,
    /// When to ask again, seconds.
    pub(super) retry_after: Option<u64>,
    /// The text of the error.
    pub(super) message: Option<String>,
}

/// A call of a tool.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: Map<String, Value>,
    /// Arguments as they are written, which need not be JSON.
    #[serde(default)]
    pub(super) raw_arguments: Option<String>,
}

impl Call {
    /// The arguments as a model writes them.
    pub(super) fn written(&self) -> String {
        match &self.raw_arguments {
            Some(raw) => raw.to_owned(),
            None => serde_json::to_string(&self.arguments).unwrap_or_default(),
        }
    }

    /// The arguments as JSON. Null if they are not valid JSON.
    pub(super) fn arguments(&self) -> Value {
        serde_json::from_str(&self.written()).unwrap_or_default()
    }
}

/// The way in which an answer is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Cut {
    /// The body ends as if it were complete.
    Body,
    /// The connection is lost.
    Connection,
}

impl FakeScript {
    /// Reads a script; the first thing that is not understood is the error.
    pub fn parse(text: &str) -> Result<Self, FakeScriptError> {
        let script: Self = toml::from_str(text).map_err(|error| FakeScriptError {
            line: error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count()),
            problem: error.message().to_owned(),
        })?;
        let known = |name: &String| ERRORS.iter().any(|row| row.name == name);
        match script.turns.iter().filter_map(|turn| turn.error.as_ref()).find(|name| !known(name)) {
            None => Ok(script),
            Some(name) => {
                let at = text.find(&format!("\"{name}\"")).unwrap_or_default();
                let names: Vec<&str> = ERRORS.iter().map(|row| row.name).collect();
                let problem = format!("`error` is `{name}`, expected one of {}", names.join(", "));
                Err(FakeScriptError { line: 1 + text[..at].matches('\n').count(), problem })
            }
        }
    }
}

impl Turn {
    /// An answer that is an error.
    pub(super) fn refusing(kind: &'static str) -> Self {
        Self { error: Some(kind.to_owned()), ..Self::default() }
    }

    /// True if it is for this request.
    pub(super) fn fits(&self, body: &[u8]) -> bool {
        let Some(when) = &self.when else { return true };
        // As it stands in a JSON string.
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
        assert!(FakeScript::parse("[[answer]]\ntext = 'x'").is_ok());
    }

    #[test]
    fn a_text_is_found_in_a_request_as_json_has_it() {
        let turn = Turn { when: Some("say \"hi\"\n".to_owned()), ..Turn::default() };
        assert!(turn.fits(br#"{"content":"please say \"hi\"\nnow"}"#));
        assert!(!turn.fits(br#"{"content":"please"}"#));
    }
}
