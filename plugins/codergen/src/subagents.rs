//! Subagents: separate conversations that the agent of a stage starts for parts of its task (coding-agent-loop specification §7).
//!
//! A subagent has the stage's model, workspace and limits. It may write only a part of the stage's write scope and cannot start
//! subagents. A component has one thread, so the agent waits while a subagent works. The subagent's answer is the result of a tool
//! call.

use crate::arguments::{Argument, Arguments};
use crate::conversation::{ContextUse, Conversation};
use crate::prompt;
use crate::tool_calls::ToolCalls;
use crate::tool_result::ToolResult;
use crate::toolbox::Toolbox;
use crate::truncate;
use glovebox_plugin_sdk::llm::{Message, Part, Request, Response, ToolDef};
use glovebox_plugin_sdk::{WriteScope, control};

/// Maximum number of subagents of one attempt.
const AGENTS_MAX: usize = 16;

const SPAWN: &str = "spawn_agent";
const SEND: &str = "send_input";
const WAIT: &str = "wait";
const CLOSE: &str = "close_agent";

/// Name, description and JSON Schema of the arguments of each tool.
const TOOLS: [(&str, &str, &str); 4] = [
    (
        SPAWN,
        "Starts a subagent for a part of the task, waits until it has finished, and returns its answer and its id. The subagent knows only the text of `task`. It can read what you can read, and can write only `write_paths`, which must be within your own write scope. With `commands` it can also run commands; then `write_paths` must be your whole write scope.",
        r#"{"type":"object","properties":{"task":{"type":"string"},"write_paths":{"type":"array","items":{"type":"string"},"description":"folders such as `src/`, or files; none by default"},"commands":{"type":"boolean"},"max_turns":{"type":"integer","minimum":1}},"required":["task"]}"#,
    ),
    (
        SEND,
        "Sends a message to a subagent, and returns its next answer. The subagent remembers the earlier messages.",
        r#"{"type":"object","properties":{"agent_id":{"type":"string"},"message":{"type":"string"}},"required":["agent_id","message"]}"#,
    ),
    (
        WAIT,
        "Returns the last answer of a subagent again.",
        r#"{"type":"object","properties":{"agent_id":{"type":"string"}},"required":["agent_id"]}"#,
    ),
    (
        CLOSE,
        "Ends a subagent that is not needed any more.",
        r#"{"type":"object","properties":{"agent_id":{"type":"string"}},"required":["agent_id"]}"#,
    ),
];

/// The subagents of one attempt.
pub(crate) struct Subagents {
    /// Write scope of the stage.
    stage: WriteScope,
    /// The project's notes for agents.
    notes: String,
    context: ContextUse,
    /// Number of subagents that were started.
    count: usize,
    open: Vec<Subagent>,
}

impl Subagents {
    pub(crate) fn new(stage: WriteScope, notes: String, context: ContextUse) -> Self {
        Self { stage, notes, context, count: 0, open: Vec::new() }
    }

    /// Returns true if the call is for one of these tools.
    pub(crate) fn has(call: &Part) -> bool {
        TOOLS.iter().any(|(name, ..)| call.field("name") == Some(name))
    }

    /// Returns the definitions of the tools for the model.
    pub(crate) fn definitions() -> impl Iterator<Item = ToolDef> {
        TOOLS.iter().map(|(name, description, parameters)| ToolDef {
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            parameters: (*parameters).to_owned(),
        })
    }

    /// Executes a call.
    ///
    /// # Errors
    /// The error text is a sentence for the model.
    pub(crate) fn call(&mut self, call: &Part, toolbox: &Toolbox) -> Result<ToolResult, String> {
        let name = call.field("name").unwrap_or_default();
        let arguments = Arguments::parse(&call.text)?;
        let said = match name {
            SPAWN => self.spawn(&arguments, toolbox),
            SEND => {
                let message = arguments.text(Argument::Message)?;
                self.named(&arguments).map(|agent| agent.work(Message::text("user", message)))
            }
            WAIT => self.named(&arguments).map(|agent| agent.last.said()),
            _ => self.close(&arguments).map(ToolResult::from),
        };
        said.map_err(|reason| format!("{name}: {reason}"))
    }

    fn spawn(&mut self, arguments: &Arguments, toolbox: &Toolbox) -> Result<ToolResult, String> {
        if self.count == AGENTS_MAX {
            return Err(format!(
                "a stage has at most {AGENTS_MAX} subagents; give one of them more work with send_input"
            ));
        }
        let task = arguments.text(Argument::Task)?;
        let bounds = self.stage.narrow(arguments.texts(Argument::WritePaths)?);
        let bounds = bounds
            .map_err(|path| format!("`{path}` is outside of the write scope; this stage may write {}", self.stage))?;
        let has_commands = arguments.flag(Argument::Commands)?;
        if has_commands && !toolbox.has_commands() {
            return Err("this stage runs no commands, so its subagents cannot run commands either".to_owned());
        }
        if has_commands && !bounds.covers_all(&self.stage) {
            let stage = &self.stage;
            return Err(format!(
                "a command can write everything that this stage may write, so with `commands`, `write_paths` must name all of it: \
                 this stage may write {stage}"
            ));
        }
        let turns_max = arguments.size(Argument::MaxTurns)?.unwrap_or(usize::MAX);
        self.count += 1;
        let id = self.count;
        let system = prompt::subagent(&bounds) + &self.notes;
        let tool_calls = ToolCalls::for_subagent(toolbox.narrowed(bounds, has_commands), id);
        let request = Request {
            messages: vec![Message::text("system", system)],
            tools: tool_calls.definitions(),
            options: vec![("agent".to_owned(), id.to_string())],
        };
        let conversation = Conversation::new(request, 1, self.context).for_subagent(id);
        let mut agent = Subagent { tool_calls, conversation, turns_max, last: Answer::none(id) };
        let said = agent.work(Message::text("user", task));
        self.open.push(agent);
        Ok(said)
    }

    fn named(&mut self, arguments: &Arguments) -> Result<&mut Subagent, String> {
        let at = self.place(arguments)?;
        Ok(&mut self.open[at])
    }

    fn place(&self, arguments: &Arguments) -> Result<usize, String> {
        let id = arguments.text(Argument::AgentId)?;
        let ids: Vec<String> = self.open.iter().map(|agent| agent.last.id.to_string()).collect();
        ids.iter().position(|known| known == id.trim()).ok_or_else(|| match ids.is_empty() {
            true => "no subagent is running; call spawn_agent to start one".to_owned(),
            false => format!("there is no subagent `{id}`; there are {}", ids.join(", ")),
        })
    }

    fn close(&mut self, arguments: &Arguments) -> Result<String, String> {
        let at = self.place(arguments)?;
        let Answer { id, .. } = self.open.remove(at).last;
        Ok(format!("subagent {id} is closed"))
    }
}

/// One subagent with its conversation.
struct Subagent {
    tool_calls: ToolCalls,
    conversation: Conversation,
    /// Maximum number of turns for one message.
    turns_max: usize,
    last: Answer,
}

impl Subagent {
    /// Works on a message until an answer has no tool call.
    fn work(&mut self, message: Message) -> ToolResult {
        self.conversation.push(message);
        let (mut turns, id) = (0, self.last.id);
        let ended = loop {
            if control::canceled() {
                break Err("the run was canceled".to_owned());
            }
            if turns >= self.turns_max {
                break Err("it reached `max_turns`; call send_input to let it continue".to_owned());
            }
            match self.turn() {
                Ok(Some(text)) => break Ok(text),
                Ok(None) => turns += 1,
                Err(reason) => break Err(reason),
            }
        };
        self.last = Answer { id, turns: turns + usize::from(ended.is_ok()), ended };
        self.last.said()
    }

    /// Executes one turn. Returns the answer if it has no tool call.
    fn turn(&mut self) -> Result<Option<String>, String> {
        let response = self.conversation.ask().map_err(|error| format!("{}: {}", error.kind, error.message))?;
        let calls: Vec<Part> = response.message.parts.iter().filter(|part| part.kind == "tool-call").cloned().collect();
        self.conversation.push(response.message.clone());
        if calls.is_empty() {
            return answer(&response).map(Some);
        }
        let before = &self.conversation.request.messages;
        let results = self.tool_calls.results(&calls, before, &mut Toolbox::call);
        self.conversation.push(results);
        Ok(None)
    }
}

/// Returns the text of a final answer. A truncated answer is an error.
fn answer(response: &Response) -> Result<String, String> {
    match response.finish.as_str() {
        "length" => Err("its answer was cut off at its length limit".to_owned()),
        "content-filter" => Err("the provider's filter withheld its answer".to_owned()),
        _ => Ok(response.message.whole_text()),
    }
}

/// The last answer of a subagent.
struct Answer {
    id: usize,
    turns: usize,
    ended: Result<String, String>,
}

impl Answer {
    fn none(id: usize) -> Self {
        Self { id, turns: 0, ended: Err("it was not asked".to_owned()) }
    }

    /// Returns the answer as the result of a tool call.
    fn said(&self) -> ToolResult {
        let Self { id, turns, ended } = self;
        let plural = if *turns == 1 { "" } else { "s" };
        let head = |end: &str| format!("subagent {id}, {turns} turn{plural}: {end}");
        match ended {
            Ok(text) => {
                let whole = format!("{}\n\n{}", head("answered"), text.trim());
                let shown = truncate::AGENT.keep_ends(&whole);
                ToolResult { whole: Some(whole).filter(|whole| whole.len() > shown.len()), ..shown.into() }
            }
            Err(reason) => ToolResult { is_error: true, ..head(&format!("no answer: {reason}")).into() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_plugin_sdk::Value;

    #[test]
    fn every_schema_is_json_and_names_what_it_requires() {
        for tool in Subagents::definitions() {
            let schema: Value = serde_json::from_str(&tool.parameters).unwrap();
            let required = schema["required"].as_array().unwrap();
            assert!(
                required.iter().all(|name| schema["properties"][name.as_str().unwrap()].is_object()),
                "{}",
                tool.name
            );
        }
    }

    #[test]
    fn an_answer_says_whose_it_is() {
        let answer = |turns, ended| Answer { id: 2, turns, ended }.said();
        assert_eq!(answer(1, Ok("done\n".to_owned())).text, "subagent 2, 1 turn: answered\n\ndone");
        let failed = answer(3, Err("llm: no".to_owned()));
        assert_eq!((failed.text.as_str(), failed.is_error), ("subagent 2, 3 turns: no answer: llm: no", true));
        let long = answer(1, Ok("x".repeat(30_000)));
        assert!(long.text.contains("characters left out") && long.whole.is_some_and(|whole| whole.len() > 30_000));
    }
}
