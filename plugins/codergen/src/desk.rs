//! What becomes of the calls of one answer: each is done in turn, and its result goes back with the next question.

use crate::agent::Kept;
use crate::subagents::Subagents;
use crate::toolbox::{Said, Toolbox};
use glovebox_plugin_sdk::llm::{Message, Part, ToolDef};
use glovebox_plugin_sdk::{control, json, log};

/// The tools of one conversation.
pub(crate) struct Desk {
    toolbox: Toolbox,
    /// Those that this one begins; a subagent begins none.
    subagents: Option<Subagents>,
    /// Texts of tools that were kept whole.
    kept: u32,
    /// What their names begin with.
    prefix: String,
}

impl Desk {
    /// The tools of a stage.
    pub(crate) fn of_stage(toolbox: Toolbox, subagents: Subagents) -> Self {
        Self { toolbox, subagents: Some(subagents), kept: 0, prefix: String::new() }
    }

    /// The tools of a subagent.
    pub(crate) fn of_subagent(toolbox: Toolbox, id: usize) -> Self {
        Self { toolbox, subagents: None, kept: 0, prefix: format!("agent-{id}-") }
    }

    /// Describes the tools to the model.
    pub(crate) fn definitions(&self) -> Vec<ToolDef> {
        let of_subagents = self.subagents.iter().flat_map(|_| Subagents::definitions());
        self.toolbox.definitions().into_iter().chain(of_subagents).collect()
    }

    /// Makes the calls of an answer; `before` is the conversation up to them.
    pub(crate) fn results(&mut self, calls: &[Part], before: &[Message]) -> Message {
        let mut results = Vec::new();
        for call in calls {
            self.answer(call, before, &mut results);
        }
        Message { role: "tool".to_owned(), parts: results }
    }

    /// Adds the result of a call to those before it, and the picture that it shows.
    fn answer(&mut self, call: &Part, before: &[Message], results: &mut Vec<Part>) {
        let (name, id) = (call.field("name").unwrap_or_default(), call.field("id").unwrap_or_default());
        control::emit("tool-call-start", &json!({ "name": name, "id": id }));
        let reply = match call.field("problem") {
            Some(problem) => Err(problem.to_owned()),
            None => self.call(call),
        };
        let reply = reply.and_then(|said| with_room(said, before, results));
        control::emit("tool-call-end", &json!({ "name": name, "id": id, "ok": reply.is_ok() }));
        let part = |text: String| Part::new("tool-result", text).with("call-id", id);
        match reply {
            Ok(said) => {
                if let Some(whole) = &said.whole {
                    self.kept += 1;
                    Kept { name: &format!("{}tool-{}.txt", self.prefix, self.kept), text: whole }.keep();
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

    fn call(&mut self, call: &Part) -> Result<Said, String> {
        match &mut self.subagents {
            Some(subagents) if Subagents::has(call) => subagents.call(call, &self.toolbox),
            _ => self.toolbox.call(call),
        }
    }
}

/// Refuses a picture that the conversation has no room for.
fn with_room(said: Said, before: &[Message], results: &[Part]) -> Result<Said, String> {
    if let Some(picture) = &said.picture {
        picture.fits(before.iter().flat_map(|message| &message.parts).chain(results))?;
    }
    Ok(said)
}
