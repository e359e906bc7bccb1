//! A script: for each node, the turns that a model would have answered. Used by tests, demos and machines without a key.
//!
//! A later visit of a node continues after the last turn that was used, so a turn is identified by node and position and does not
//! depend on the attempt. An unknown field or value is an error that names its line.

use super::DeclaredOutcome;
use glovebox_models::chat::{Answer, Finish, Usage, call_part, text_part};
use glovebox_models::error::{ErrorKind, ModelError};
use glovebox_record::NodeId;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A parsed script.
#[derive(Debug, Clone, Default)]
pub struct Script {
    nodes: BTreeMap<NodeId, Vec<ScriptTurn>>,
}

/// Why a script cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the script: {problem}")]
pub struct ScriptError {
    /// Line number, counted from 1.
    pub line: usize,
    /// Description of the problem.
    pub problem: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    #[serde(default)]
    node: BTreeMap<NodeId, Vec<ScriptTurn>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "TurnEntry")]
struct ScriptTurn {
    tools: Vec<ToolEntry>,
    text: String,
    outcome: Option<DeclaredOutcome>,
    usage: Usage,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TurnEntry {
    #[serde(default)]
    tool: Vec<ToolEntry>,
    text: Option<String>,
    outcome: Option<DeclaredOutcome>,
    #[serde(default)]
    usage: Usage,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolEntry {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

impl TryFrom<TurnEntry> for ScriptTurn {
    type Error = String;

    fn try_from(written: TurnEntry) -> Result<Self, String> {
        let TurnEntry { tool, text, outcome, usage } = written;
        if tool.is_empty() && text.is_none() && outcome.is_none() {
            return Err("the turn is empty, expected `tool`, `text` or `outcome`".to_owned());
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if let Some(wrong) =
            tool.iter().find(|tool| !(1..=64).contains(&tool.name.len()) || !tool.name.chars().all(allowed))
        {
            return Err(format!(
                "`{}` is not a tool name, expected 1 to 64 letters, digits, `_`, `-` or `.`",
                wrong.name
            ));
        }
        Ok(ScriptTurn { tools: tool, text: text.unwrap_or_default(), outcome, usage })
    }
}

impl Script {
    /// Parses a script. Returns the first problem as the error.
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        let written: ScriptFile = toml::from_str(text).map_err(|error| ScriptError {
            line: error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count()),
            problem: error.message().to_owned(),
        })?;
        Ok(Script { nodes: written.node })
    }

    /// Creates the script of one node from its turns, which have the same fields as in a script file.
    ///
    /// # Errors
    /// Returns the first problem.
    pub fn for_node(node: NodeId, turns: Vec<Value>) -> Result<Script, String> {
        let turn = |(index, turn): (usize, Value)| {
            serde_json::from_value(turn).map_err(|problem| format!("turn {} of the model: {problem}", index + 1))
        };
        let turns = turns.into_iter().enumerate().map(turn).collect::<Result<_, _>>()?;
        Ok(Script { nodes: BTreeMap::from([(node, turns)]) })
    }

    /// Returns true if the script has turns for this node.
    pub fn mentions(&self, node: &NodeId) -> bool {
        self.nodes.contains_key(node)
    }

    /// Returns every node for which the script has turns.
    pub fn node_ids(&self) -> impl Iterator<Item = &NodeId> {
        self.nodes.keys()
    }

    /// Returns true if every turn with a token count has a cost.
    pub fn names_costs(&self) -> bool {
        self.nodes.values().flatten().all(|turn| turn.usage.cost_usd.is_some() || turn.usage == Usage::default())
    }

    pub(super) fn usage(&self, node: &NodeId, position: u32) -> Usage {
        let at = usize::try_from(position).unwrap_or(usize::MAX);
        self.nodes.get(node).and_then(|turns| turns.get(at)).map(|turn| turn.usage).unwrap_or_default()
    }

    pub(super) fn turn(&self, node: &NodeId, position: u32) -> Result<Answer, ModelError> {
        let turns = self.nodes.get(node).map_or(&[][..], Vec::as_slice);
        let at = usize::try_from(position).unwrap_or(usize::MAX);
        let turn = turns.get(at).ok_or_else(|| {
            let (scripted, next) = (turns.len(), position.saturating_add(1));
            let noun = if scripted == 1 { "turn" } else { "turns" };
            let message = format!("the script has {scripted} {noun} for node `{node}`, expected one for turn {next}");
            ModelError::new(ErrorKind::ScriptExhausted, message)
        })?;
        let text = (!turn.text.is_empty()).then(|| text_part(turn.text.as_str()));
        let call = |(index, tool): (usize, &ToolEntry)| {
            let arguments = serde_json::to_string(&tool.arguments).unwrap_or_default();
            call_part(format!("call-{}-{}", position + 1, index + 1), tool.name.as_str(), arguments)
        };
        let calls = turn.tools.iter().enumerate().map(call);
        let declared = turn.outcome.as_ref().map(DeclaredOutcome::part);
        let parts = text.into_iter().chain(calls).chain(declared).collect();
        let finish = if turn.tools.is_empty() { Finish::Stop } else { Finish::ToolCalls };
        Ok(Answer { parts, finish, usage: turn.usage, is_estimated: false, model: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_models::chat::FieldName;
    use glovebox_record::Status;

    const SCRIPT: &str = r#"
[[node.implement]]
tool = [
  { name = "write_file", arguments = { path = "src/lib.rs", content = "…" } },
  { name = "glob" },
]
[[node.implement]]
text = "done"
outcome = { status = "success", context_updates = { tests_passed = "true" } }
usage = { input = 10, output = 2 }
"#;

    #[test]
    fn turns_are_answered_in_order_and_run_dry() {
        let script = Script::parse(SCRIPT).unwrap();
        let first = script.turn(&"implement".into(), 0).unwrap();
        let calls: Vec<_> = first.tool_calls().collect();
        assert_eq!(calls[0].text, r#"{"content":"…","path":"src/lib.rs"}"#);
        assert_eq!((FieldName::Id.value_in(calls[1]), calls[1].text.as_str()), ("call-1-2", "{}"));
        let second = script.turn(&"implement".into(), 1).unwrap();
        assert_eq!((second.text().as_str(), second.usage.input), ("done", 10));
        let declared: DeclaredOutcome = serde_json::from_str(&second.parts[1].text).unwrap();
        assert_eq!(declared.status, Status::Success);
        let dry = script.turn(&"implement".into(), 2).unwrap_err();
        assert_eq!(dry.to_string(), "the script has 2 turns for node `implement`, expected one for turn 3");
        assert!(script.turn(&"review".into(), 0).is_err());
    }

    #[test]
    fn what_is_not_understood_names_its_line() {
        let check = |text: &str, line: usize, problem: &str| {
            let error = Script::parse(text).unwrap_err();
            assert_eq!(error.line, line, "{error}");
            assert!(error.problem.contains(problem), "{error}");
        };
        check("[[node.a]]\ntext = 'x'\nreply = 'y'", 3, "unknown field `reply`");
        check("nodes = {}", 1, "unknown field `nodes`");
        check("[[node.a]]\ntext = 'x'\noutcome = { status = 'fine' }", 3, "unknown variant `fine`");
        check("\n[[node.a]]\n", 2, "the turn is empty");
        check("[[node.a]]\ntool = [{ name = '' }]", 1, "is not a tool name");
        check("[[node.a]\n", 1, "");
    }
}
