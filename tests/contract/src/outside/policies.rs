//! The checks of a policy: questions of the form that a run asks, and odd ones.

use super::{Check, report};
use crate::TestRequest;
use crate::error::TestError;
use crate::report::{Finding, TestReport};
use crate::text;
use glovebox_host::judgement::{AskPolicy, JudgedCall, JudgedEdge, PolicyAnswer, Question};
use glovebox_record::Limits;
use serde_json::{Map, json};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

/// Length of the long text, in bytes.
const LONG_BYTES: usize = 1 << 20;

struct Policy {
    ask: AskPolicy,
    calls: Rc<Cell<u64>>,
}

const CHECKS: &[Check<Policy>] = &[
    Check {
        name: "policy.answers",
        checks: "it judges a tool call and an edge within one second, without a trap",
        help: "return permission or a reason instead of a panic, and bound every loop: what it cannot judge is refused",
        run: answers,
    },
    Check {
        name: "policy.deterministic",
        checks: "it gives the same answer to the same question",
        help: "a policy has no imports, so only its memory can differ: initialise all of it",
        run: deterministic,
    },
    Check {
        name: "policy.odd",
        checks: "it answers questions with missing, unknown and long fields",
        help: "ignore unknown fields, and refuse with a reason what you do not expect",
        run: odd,
    },
];

pub(super) fn test(request: &TestRequest<'_>) -> Result<TestReport, TestError> {
    let (begin, calls) = (Instant::now(), Rc::new(Cell::new(0)));
    let loaded = request.host.load_policy(request.bytes, Limits::default().component_bytes);
    let loaded = loaded.map_err(|error| error.to_string());
    let loaded = loaded.map(|component| Policy { ask: component.to_ask(), calls: Rc::clone(&calls) });
    Ok(report(request, CHECKS, loaded, &calls, begin))
}

impl Policy {
    fn judge(&self, question: &Question) -> PolicyAnswer {
        self.calls.set(self.calls.get() + 1);
        self.ask.ask_outside(question)
    }
}

/// Returns the questions that a run asks.
fn normal() -> [Question; 3] {
    let attributes: Map<_, _> = [("prompt".to_owned(), json!("Do it"))].into_iter().collect();
    let call = |arguments| {
        let (node, handler, tool) = ("work", "codergen", "shell");
        Question::from(&JudgedCall { node, handler, attributes: &attributes, tool, arguments })
    };
    let edge = JudgedEdge {
        from: "work",
        to: "deploy",
        status: "success",
        how: "weight",
        attributes: Map::new(),
        target: attributes.clone(),
        succeeded: vec!["start", "work"],
    };
    [call(json!({ "command": "cargo test" })), call(json!(null)), Question::from(&edge)]
}

fn shown(question: &Question) -> String {
    match question {
        Question::Call(json) => format!("the call {}", text::quoted(json)),
        Question::Edge(json) => format!("the edge {}", text::quoted(json)),
    }
}

fn answers(policy: &Policy) -> Finding {
    Finding::of(normal().iter().find_map(|question| {
        let problem = policy.judge(question).err()?;
        Some(format!("{}: {}", shown(question), text::lines(&problem)))
    }))
}

fn deterministic(policy: &Policy) -> Finding {
    Finding::of(normal().iter().find_map(|question| {
        let is_same = policy.judge(question) == policy.judge(question);
        (!is_same).then(|| format!("{}: two answers differ", shown(question)))
    }))
}

fn odd(policy: &Policy) -> Finding {
    let long = json!({ "tool": "x".repeat(LONG_BYTES), "to": "y".repeat(LONG_BYTES) }).to_string();
    let texts = ["{}", "null", "[]", "{\"node\":7,\"to\":[],\"later\":{}}", "{\"tool\":\"\u{202e}\\u0000\"}", &long];
    let questions =
        texts.iter().flat_map(|text| [Question::Call((*text).to_owned()), Question::Edge((*text).to_owned())]);
    Finding::of(questions.into_iter().find_map(|question| {
        let problem = policy.judge(&question).err()?;
        Some(format!("{}: {}", shown(&question), text::lines(&problem)))
    }))
}
