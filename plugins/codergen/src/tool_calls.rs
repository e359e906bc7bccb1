//! Executes the tool calls of an answer one after the other, and returns the results for the next request to the model.

use crate::artifact::Artifact;
use crate::tool_result::ToolResult;
use crate::toolbox::Toolbox;
use glovebox_plugin_sdk::llm::{Message, Part, ToolDef};
use glovebox_plugin_sdk::{control, json, log};

/// Executes one call.
type Execute<'a> = &'a mut dyn FnMut(&mut Toolbox, &Part) -> Result<ToolResult, String>;

/// Executes the tool calls of one conversation.
pub(crate) struct ToolCalls {
    toolbox: Toolbox,
    /// Number of artifacts that contain whole outputs of tools.
    kept: u32,
    /// Prefix of the artifacts' names.
    prefix: String,
}

impl ToolCalls {
    /// Creates the executor of a stage's tool calls.
    pub(crate) fn for_stage(toolbox: Toolbox) -> Self {
        Self { toolbox, kept: 0, prefix: String::new() }
    }

    /// Creates the executor of a subagent's tool calls.
    pub(crate) fn for_subagent(toolbox: Toolbox, id: usize) -> Self {
        Self { toolbox, kept: 0, prefix: format!("agent-{id}-") }
    }

    /// Returns the definitions of the tools for the model.
    pub(crate) fn definitions(&self) -> Vec<ToolDef> {
        self.toolbox.definitions()
    }

    /// Executes the tool calls of an answer with `execute`. `before` is the conversation up to that answer.
    pub(crate) fn results(&mut self, calls: &[Part], before: &[Message], execute: Execute<'_>) -> Message {
        let mut results = Vec::new();
        for call in calls {
            self.add_result(call, before, &mut results, execute);
        }
        Message { role: "tool".to_owned(), parts: results }
    }

    /// Executes a call, and adds the result and its picture to `results`.
    fn add_result(&mut self, call: &Part, before: &[Message], results: &mut Vec<Part>, execute: Execute<'_>) {
        let (name, id) = (call.field("name").unwrap_or_default(), call.field("id").unwrap_or_default());
        control::emit("tool-call-start", &json!({ "name": name, "id": id }));
        let reply = match call.field("problem") {
            Some(problem) => Err(problem.to_owned()),
            None => execute(&mut self.toolbox, call),
        };
        let reply = reply.and_then(|said| with_room(said, before, results));
        control::emit("tool-call-end", &json!({ "name": name, "id": id, "ok": reply.is_ok() }));
        let part = |text: String| Part::new("tool-result", text).with("call-id", id);
        match reply {
            Ok(said) => {
                if let Some(whole) = &said.whole {
                    self.kept += 1;
                    Artifact { name: &format!("{}tool-{}.txt", self.prefix, self.kept), text: whole }.keep();
                }
                let result = part(said.text);
                let result = if said.is_error { result.with("is-error", "true") } else { result };
                results.push(said.evidence.iter().fold(result, |result, receipt| result.with("evidence", receipt)));
                results.extend(said.picture.map(|picture| picture.part(id)));
            }
            Err(reason) => {
                log::warn("tool call failed", &[("tool", name), ("reason", &reason)]);
                results.push(part(reason).with("is-error", "true"));
            }
        }
    }
}

/// Returns the result, or an error if the conversation has no room for its picture.
fn with_room(said: ToolResult, before: &[Message], results: &[Part]) -> Result<ToolResult, String> {
    if let Some(picture) = &said.picture {
        picture.fits(before.iter().flat_map(|message| &message.parts).chain(results))?;
    }
    Ok(said)
}
