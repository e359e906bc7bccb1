//! The operator's policies over the tool calls of a model.
//!
//! Each call of an answer is judged before a hook runs and before the component gets the answer. For a refused call, the component gets
//! the reason instead of the arguments. If a policy cannot judge, the call is refused, nothing more is asked of the model, and the
//! attempt fails. A policy gets no arguments of a stage that can read hold-outs.

use crate::attempt::Attempt;
use crate::bindings::chat::{Message, Part};
use crate::input::StageInput;
use crate::judgement::{Denial, JudgedCall, PolicySet, Question};
use crate::progress::LogLine;
use glovebox_record::Refusal;
use glovebox_schema::document;
use glovebox_workspace::refusal::escaped;
use serde_json::{Map, Value};
use std::sync::Arc;
use wasmtime::Result;

/// Maximum length of a tool's name in the stage's log, in characters. The component chooses the name.
const TOOL_CHARS_MAX: usize = 64;
const HELP: &str = "a policy under `[policy]` in glovebox.toml decides which calls are made; no grant overrides it";

/// The policies over the tool calls of an attempt's model. None of it comes from the guest.
#[derive(Debug, Clone)]
pub struct PolicySetting {
    /// The policies.
    pub policies: Arc<PolicySet>,
    /// True if the stage can read hold-outs, so that no policy gets the arguments of its calls.
    pub hides_arguments: bool,
}

/// The policies of one attempt, and the facts about its node that each of them gets.
#[derive(Debug)]
pub(crate) struct CallPolicy {
    setting: PolicySetting,
    node: String,
    handler: String,
    attributes: Map<String, Value>,
}

impl CallPolicy {
    pub(super) fn new(setting: PolicySetting, input: &StageInput) -> Self {
        let attributes = input.attributes.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
        let (node, handler) = (input.attempt.task.node.to_string(), input.handler_type.clone());
        Self { setting, node, handler, attributes: attributes.collect() }
    }

    fn judge(&self, call: &Part) -> std::result::Result<(), Denial> {
        let arguments = || document::read(call.text.as_bytes()).unwrap_or_else(|_| Value::from(call.text.as_str()));
        let call = JudgedCall {
            node: &self.node,
            handler: &self.handler,
            attributes: &self.attributes,
            tool: field(call, "name"),
            arguments: if self.setting.hides_arguments { Value::Null } else { arguments() },
        };
        self.setting.policies.judge(&Question::from(&call))
    }
}

impl Attempt {
    /// Judges each call in an answer.
    ///
    /// # Errors
    /// The stage was canceled, or its time is over.
    pub(super) fn judge_calls(&mut self, answer: &mut Message) -> Result<()> {
        let Some(policy) = self.llm.policy.clone() else { return Ok(()) };
        // The host has already marked the other calls with a problem, so that no component executes them.
        let is_open =
            |part: &&mut Part| part.kind == "tool-call" && !part.fields.iter().any(|(name, _)| name == "problem");
        for part in answer.parts.iter_mut().filter(is_open) {
            let judged = match &self.llm.policy_fault {
                Some(fault) => Err(fault.clone()),
                None => self.call.ticker.while_guest_waits(|| policy.judge(part)),
            };
            self.call.check_stop()?;
            let Err(denial) = judged else { continue };
            self.refuse_by_policy(part, &denial);
            if denial.is_fault {
                self.llm.policy_fault = Some(denial);
            }
        }
        Ok(())
    }

    fn refuse_by_policy(&mut self, part: &mut Part, denial: &Denial) {
        let tool: String = escaped(field(part, "name")).chars().take(TOOL_CHARS_MAX).collect();
        self.call.refuse(Refusal::new("call the tool", &tool, denial.to_string(), HELP));
        let fields = [("tool", tool.as_str()), ("policy", denial.policy.as_str())];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (level, message) = ("warn".to_owned(), denial.to_string());
        self.note(LogLine { level, message, fields: fields.to_vec() });
        // The component does not get the arguments, so it cannot execute the call by mistake.
        "{}".clone_into(&mut part.text);
        part.fields.push(("problem".to_owned(), format!("the call was refused and did not run: {denial}")));
    }
}

fn field<'p>(part: &'p Part, name: &str) -> &'p str {
    part.fields.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str())
}
