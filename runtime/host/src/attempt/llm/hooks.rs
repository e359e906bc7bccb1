//! Hooks around the tool calls of a model (spec §9.7): commands of the pipeline's author in their own sandbox.
//!
//! The pre hook runs for each call of an answer before the component gets the answer. It allows a call only with exit code 0. For a
//! refused call, the component gets the reason instead of the arguments. The post hook runs when the component returns the call's
//! result to the model. Hooks exist only for the model's tool calls; other actions of a component are bounded only by its grants.

use crate::attempt::Attempt;
use crate::attempt::exec::shorten;
use crate::bindings::chat::{Message, Part};
use crate::bindings::llm::Request;
use crate::progress::LogLine;
use crate::stop::Stop;
use glovebox_jail::exec::{CapturedOutput, Command, Exit, Program};
use glovebox_jail::lazy_jail::LazyJail;
use glovebox_models::chat::AgentId;
use glovebox_record::hook::{HookInput, HookResult};
use glovebox_record::path::ScopePath;
use glovebox_record::{CommandEnding, Hook, HookKind, LimitName, Receipt, Refusal, RunId};
use glovebox_schema::document;
use glovebox_workspace::refusal::escaped;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wasmtime::{Error, Result};

/// Maximum wall time of one hook.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Maximum number of bytes of a hook's output that are passed to the model and to the stage's log.
const OUTPUT_BYTES_MAX: usize = 2 << 10;
/// Maximum length of a tool's name in a receipt and in a hook's environment, in characters. The component chooses the name.
const TOOL_CHARS_MAX: usize = 64;

/// The hooks around the tool calls of an attempt's model, and their jail. None of it comes from the guest.
#[derive(Debug, Clone)]
pub struct HookSetting {
    /// Command that runs before each call. Any exit code other than 0 refuses the call.
    pub pre: Option<Program>,
    /// Command that runs after each call.
    pub post: Option<Program>,
    /// Jail of the hooks, opened for the first hook. It shares nothing with the jail of the stage's commands.
    pub jail: Arc<LazyJail>,
    /// Working directory of the hooks.
    pub workdir: ScopePath,
}

/// The hooks of one attempt, and the calls that have no result yet.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    context: Option<Arc<HookContext>>,
    open: Vec<OpenCall>,
}

/// Facts about the attempt that each hook gets.
#[derive(Debug)]
struct HookContext {
    setting: HookSetting,
    run: RunId,
    attempt: glovebox_record::Attempt,
}

/// A tool call of the model that has no result yet.
#[derive(Debug)]
struct OpenCall {
    /// The subagent whose model made the call; `None` for the stage itself.
    agent: Option<AgentId>,
    id: String,
    name: String,
    arguments: String,
}

impl Hooks {
    pub(super) fn new(setting: Option<HookSetting>, run: &RunId, attempt: &glovebox_record::Attempt) -> Self {
        let context = setting.map(|setting| HookContext { setting, run: run.clone(), attempt: attempt.clone() });
        Self { context: context.map(Arc::new), open: Vec::new() }
    }
}

/// The exit of a hook, or why it could not run.
type HookExit = std::result::Result<Exit, String>;

impl Attempt {
    /// Runs the pre hook for each call in an answer, before the component sees any of them.
    pub(super) fn before_calls(&mut self, answer: &mut Message, agent: Option<AgentId>) -> Result<()> {
        let Some(context) = self.llm.hooks.context.as_ref().map(Arc::clone) else { return Ok(()) };
        // While a subagent works, the stage's own call that started it stays open.
        self.llm.hooks.open.retain(|call| call.agent != agent);
        // The host has already marked the other calls with a problem, so that no component executes them.
        let calls = answer.parts.iter_mut().filter(|part| part.kind == "tool-call" && field(part, "problem").is_none());
        for part in calls {
            let call = OpenCall::new(part, agent.clone());
            let refused = match &context.setting.pre {
                Some(hook) => self.refused(&context, hook, &call)?,
                None => None,
            };
            match refused {
                // The component does not get the arguments, so it cannot execute the call by mistake.
                Some(problem) => {
                    "{}".clone_into(&mut part.text);
                    part.fields.push(("problem".to_owned(), problem));
                }
                None => self.llm.hooks.open.push(call),
            }
        }
        Ok(())
    }

    /// Runs the post hook once for each call whose result the component returns.
    pub(super) fn after_calls(&mut self, request: &Request, agent: Option<&AgentId>) -> Result<()> {
        let Some(context) = self.llm.hooks.context.as_ref().map(Arc::clone) else { return Ok(()) };
        let Some(hook) = &context.setting.post else { return Ok(()) };
        let of_tools = request.messages.iter().filter(|message| message.role == "tool");
        for part in of_tools.flat_map(|message| &message.parts).filter(|part| part.kind == "tool-result") {
            let is_answered =
                |call: &OpenCall| call.agent.as_ref() == agent && field(part, "call-id") == Some(&call.id);
            let at = self.llm.hooks.open.iter().position(is_answered);
            let Some(call) = at.map(|at| self.llm.hooks.open.remove(at)) else { continue };
            let result = HookResult { text: &part.text, is_error: field(part, "is-error") == Some("true") };
            let ended = self.run_hook(&context, hook, &call, Some(result))?;
            if let Some(problem) = self.problem_of(HookKind::Post, &ended) {
                self.note_hook(&call, problem);
            }
        }
        Ok(())
    }

    /// Returns why a call is refused, or `None` if the pre hook allows it.
    fn refused(&mut self, context: &Arc<HookContext>, hook: &Program, call: &OpenCall) -> Result<Option<String>> {
        let ended = self.run_hook(context, hook, call, None)?;
        let Some(problem) = self.problem_of(HookKind::Pre, &ended) else { return Ok(None) };
        let answer = format!("the call was refused and did not run: {problem}");
        self.call.refuse(Refusal::new("call the tool", &call.name, problem.as_str(), PRE_HELP));
        self.note_hook(call, problem);
        Ok(Some(answer))
    }

    /// Adds a line to the stage's log. The component cannot forge it or add too many, because there is at most one line for each hook.
    fn note_hook(&mut self, call: &OpenCall, message: String) {
        let tool = call.tool();
        let fields = [("tool", tool.as_str()), ("call", call.id.as_str())];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let line = LogLine { level: "warn".to_owned(), message, fields: fields.to_vec() };
        self.note(line);
    }

    /// Runs a hook and records its receipt.
    fn run_hook(
        &mut self,
        context: &HookContext,
        hook: &Program,
        call: &OpenCall,
        result: Option<HookResult<'_>>,
    ) -> Result<HookExit> {
        let kind = if result.is_some() { HookKind::Post } else { HookKind::Pre };
        if self.call.is_canceled() {
            return Err(Error::new(Stop::Canceled));
        }
        if self.exec.started >= self.call.limits.commands {
            return Ok(Err(format!("limit `commands` ({}) reached", self.call.limits.commands)));
        }
        let jail = self.call.opened(&context.setting.jail)?;
        let command = Command {
            program: hook.clone(),
            cwd: context.setting.workdir.clone(),
            env: context.environment(kind, call),
            stdin: Some(context.input(kind, call, result)?),
            timeout: TIME_MAX.min(Duration::from_millis(self.call.limits.command_ms)).min(self.call.remaining()),
        };
        let line = jail.line(&command);
        self.exec.started += 1;
        let _call = self.call.observer.pulse().tool_call();
        let begin = Instant::now();
        let hook = Hook { kind, tool: call.tool(), call: call.id.clone() };
        let mut exit = match self.call.ticker.while_guest_waits(|| jail.run(&command, &self.call.canceled)) {
            Ok(exit) => exit,
            Err(problem) if problem.is_lost() => {
                let id = self.exec.next_id(&self.call.id);
                let receipt = line.lost_receipt(id, begin.elapsed(), jail.status());
                self.exec.receipts.push(Receipt { hook: Some(hook), ..receipt });
                return Err(Error::new(problem));
            }
            Err(problem) => return Ok(Err(problem.to_string())),
        };
        shorten(&mut exit.stdout, self.call.limits.command_output_bytes);
        shorten(&mut exit.stderr, self.call.limits.command_output_bytes);
        let receipt =
            Receipt { hook: Some(hook), ..line.receipt(self.exec.next_id(&self.call.id), &exit, jail.status()) };
        self.exec.add(receipt, &exit);
        match exit.how {
            CommandEnding::Canceled => Err(Error::new(Stop::Canceled)),
            CommandEnding::TimedOut if self.call.remaining().is_zero() => {
                Err(Error::new(Stop::Limit(LimitName::WallMs)))
            }
            _ => Ok(Ok(exit)),
        }
    }

    /// Returns the problem of a hook that did not exit with code 0, or `None` if it did.
    fn problem_of(&self, kind: HookKind, ended: &HookExit) -> Option<String> {
        let exit = match ended {
            Err(reason) => return Some(format!("`tool_hooks.{kind}` could not run: {reason}")),
            Ok(exit) => exit,
        };
        let how = match (exit.how, exit.code, exit.over) {
            (CommandEnding::Exited, Some(0), None) => return None,
            (_, _, Some(over)) => format!("was ended at the limit `{over}`"),
            (CommandEnding::Exited, Some(code), _) => format!("exited with code {code}"),
            (CommandEnding::TimedOut, ..) => format!("ran longer than {}", longest(self.call.limits.command_ms)),
            (how, ..) => format!("ended: {how}"),
        };
        let text = [&exit.stderr, &exit.stdout].into_iter().map(stream_text).find(|text| !text.is_empty());
        let text = text.map(|text| format!(": {text}")).unwrap_or_default();
        Some(format!("`tool_hooks.{kind}` {how}{text}"))
    }
}

/// Returns the time limit of a hook: [`TIME_MAX`], or the limit of every command of the stage if that is lower.
fn longest(command_ms: u64) -> String {
    match Duration::from_millis(command_ms) < TIME_MAX {
        true => format!("`limits.command_ms` ({command_ms} ms)"),
        false => format!("{} s", TIME_MAX.as_secs()),
    }
}

const PRE_HELP: &str = "`tool_hooks.pre` of the pipeline decides which calls are made; no grant overrides it";

impl HookContext {
    fn environment(&self, kind: HookKind, call: &OpenCall) -> Vec<(String, String)> {
        let task = &self.attempt.task;
        let (tool, visit) = (call.tool(), task.visit.to_string());
        let variables = [
            ("TOOL_HOOK", kind.as_str()),
            ("TOOL_NAME", &tool),
            ("TOOL_CALL_ID", &call.id),
            ("TOOL_RUN_ID", self.run.as_str()),
            ("TOOL_NODE_ID", task.node.as_str()),
            ("TOOL_VISIT", &visit),
        ];
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    }

    fn input(&self, hook: HookKind, call: &OpenCall, result: Option<HookResult<'_>>) -> Result<Vec<u8>> {
        let text = || Value::from(call.arguments.as_str());
        let input = HookInput {
            schema_version: 1,
            hook,
            run_id: &self.run,
            node_id: &self.attempt.task.node,
            visit: self.attempt.task.visit,
            attempt_id: &self.attempt.id,
            call: &call.id,
            tool: &call.name,
            arguments: document::read(call.arguments.as_bytes()).unwrap_or_else(|_| text()),
            result,
        };
        serde_json::to_vec(&input).map_err(Error::new)
    }
}

impl OpenCall {
    fn new(part: &Part, agent: Option<AgentId>) -> Self {
        let of = |name| field(part, name).unwrap_or_default().to_owned();
        Self { agent, id: of("id"), name: of("name"), arguments: part.text.clone() }
    }

    /// Returns the name of the tool, cut and without deceptive characters.
    fn tool(&self) -> String {
        escaped(&self.name).chars().take(TOOL_CHARS_MAX).collect()
    }
}

fn field<'p>(part: &'p Part, name: &str) -> Option<&'p str> {
    part.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Returns the beginning of a stream as text.
fn stream_text(stream: &CapturedOutput) -> String {
    let bytes: Vec<u8> = stream.head.iter().chain(&stream.tail).copied().take(OUTPUT_BYTES_MAX).collect();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}
