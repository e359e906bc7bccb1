//! Every tool of the server.
//!
//! The answer to `tools/list`, the table in `docs/serve-mcp.md` and the tests are made from [`TOOLS`].

use glovebox_serve::right::{Right, Rights};
use glovebox_serve::route::{Endpoint, Field};
use serde_json::{Map, Value, json};

/// What a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// The same as this route of `glovebox serve`.
    Route(Endpoint),
    /// Waits for a run.
    Wait,
}

/// One tool.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// The right that it needs. Without it the tool does not exist.
    pub right: Right,
    /// Its arguments, except [`CURSOR`].
    pub fields: &'static [Field],
    /// The arguments that a call must have.
    pub required: &'static [&'static str],
    /// The command that prints or does the same.
    pub command: &'static str,
    /// What it does, in one or two sentences.
    pub about: &'static str,
    /// Its function.
    pub function: Function,
}

const fn text(name: &'static str, about: &'static str) -> Field {
    Field { name, kind: "string", about }
}

const fn number(name: &'static str, about: &'static str) -> Field {
    Field { name, kind: "integer", about }
}

/// The argument with which a client asks for the next page of an answer.
pub const CURSOR: Field = text("cursor", "the cursor at the end of the page before, with the same other arguments");
/// Longest time of a `wait`, seconds.
pub const WAIT_SECONDS_MAX: u64 = 600;
/// Time of a `wait` without `timeout_s`, seconds. Clients give up after a minute, if nothing else is configured.
pub const WAIT_SECONDS: u64 = 50;

const RUN: Field = text("run", "id of the run");
const NODE: Field = text("node", "only this stage");
const DOT: Field = text("dot", "the pipeline as DOT");
const FILE: Field = text("file", "instead of `dot`: a file of the project, relative to it");
const INPUTS: Field = Field { name: "inputs", kind: "object", about: "values of the pipeline's inputs, each a string" };
const BUDGET: Field = text("budget_usd", "limit of the cost of model calls, such as \"2.50\"");
const STEPS: Field = number("steps_max", "limit of the number of steps");
const ONE_RUN: &[Field] = &[RUN];
const RUN_NEEDED: &[&str] = &["run"];

const fn reading(name: &'static str, endpoint: Endpoint, command: &'static str, about: &'static str) -> Tool {
    let (right, function) = (Right::Builder, Function::Route(endpoint));
    Tool { name, right, fields: ONE_RUN, required: RUN_NEEDED, command, about, function }
}

const fn acting(name: &'static str, endpoint: Endpoint, command: &'static str, about: &'static str) -> Tool {
    Tool { right: Right::Operate, ..reading(name, endpoint, command, about) }
}

const fn taking(tool: Tool, fields: &'static [Field], required: &'static [&'static str]) -> Tool {
    Tool { fields, required, ..tool }
}

/// All tools.
pub const TOOLS: &[Tool] = &[
    taking(
        reading(
            "check",
            Endpoint::Check,
            "glovebox check FILE --format json",
            "Checks a pipeline, and returns its diagnostics.",
        ),
        &[DOT, FILE, INPUTS],
        &[],
    ),
    taking(
        reading(
            "plan",
            Endpoint::PlanOf,
            "glovebox plan FILE --json",
            "Returns all that a run of a pipeline could do. Its `digest` is what `start` needs.",
        ),
        &[DOT, FILE, INPUTS, BUDGET, STEPS],
        &[],
    ),
    taking(
        Tool {
            right: Right::Start,
            ..reading(
                "start",
                Endpoint::Start,
                "glovebox run FILE --plan DIGEST --json",
                "Starts a run with the plan that `plan` showed for the same arguments. Nothing starts if the plan has changed.",
            )
        },
        &[DOT, FILE, INPUTS, BUDGET, STEPS, text("plan_digest", "`digest` of the plan that was shown")],
        &["plan_digest"],
    ),
    taking(
        reading("runs", Endpoint::Runs, "glovebox ls --json", "Lists the runs, newest first."),
        &[
            text("state", "only runs in this state"),
            text("pipeline", "only runs whose pipeline's name contains this text"),
            text("before", "only runs older than the run with this id"),
            number("limit", "at most this number, default and maximum 100"),
        ],
        &[],
    ),
    reading("run", Endpoint::Run, "glovebox show RUN --json", "Returns the summary of a run."),
    taking(
        reading("why", Endpoint::Why, "glovebox why RUN --json", "Explains the path of a run, edge by edge."),
        &[RUN, NODE],
        RUN_NEEDED,
    ),
    taking(
        reading(
            "evidence",
            Endpoint::Evidence,
            "glovebox evidence RUN --json",
            "Lists every command of a run with its receipt and what it proves.",
        ),
        &[RUN, NODE],
        RUN_NEEDED,
    ),
    taking(
        reading("diff", Endpoint::Diff, "glovebox diff RUN --json", "Lists the files that a run changed."),
        &[RUN, text("question", "only the changes that this question is about")],
        RUN_NEEDED,
    ),
    Tool {
        name: "wait",
        right: Right::Builder,
        fields: &[RUN, number("timeout_s", "seconds, from 1 to 600; default 50")],
        required: RUN_NEEDED,
        command: "glovebox wait RUN",
        about: "Waits until a run ends or asks a question, or until the time is over, and returns its summary.",
        function: Function::Wait,
    },
    acting("gates", Endpoint::Gates, "glovebox gates RUN --json", "Lists the open questions of a run."),
    taking(
        acting(
            "answer",
            Endpoint::Answer,
            "glovebox answer RUN QUESTION VALUE --json",
            "Answers a question of a run. The first valid answer counts.",
        ),
        &[RUN, text("question", "id of the question"), text("value", "the answer"), text("text", "a comment")],
        &["run", "question", "value"],
    ),
    taking(
        acting(
            "steer",
            Endpoint::Steer,
            "glovebox steer RUN NODE TEXT --json",
            "Sends a message to the agent of a stage.",
        ),
        &[RUN, text("node", "the stage"), text("text", "the message, at most 16 KiB")],
        &["run", "node", "text"],
    ),
    acting("pause", Endpoint::Pause, "glovebox pause RUN --json", "Asks a run to stop when its current stages end."),
    acting("resume", Endpoint::Resume, "glovebox resume RUN --json", "Continues a run."),
    acting("cancel", Endpoint::Cancel, "glovebox cancel RUN --json", "Cancels a run for good."),
    taking(
        Tool {
            right: Right::Apply,
            ..reading(
                "apply",
                Endpoint::Apply,
                "glovebox apply RUN --json",
                "Writes the changes of a run to the project, as `diff` showed them. Nothing is written if the run has changed.",
            )
        },
        &[RUN, Field { name: "paths", kind: "array", about: "only these paths; default: every path" }],
        RUN_NEEDED,
    ),
];

impl Tool {
    /// Returns the tool with this name, if a client with these rights has it.
    pub fn offered(name: &str, rights: &Rights) -> Option<&'static Self> {
        TOOLS.iter().find(|tool| tool.name == name && rights.has(tool.right))
    }

    /// Returns true if a call changes nothing.
    pub fn is_reading(&self) -> bool {
        self.right == Right::Builder || self.function == Function::Route(Endpoint::Gates)
    }

    /// Returns all arguments.
    pub fn arguments(&self) -> impl Iterator<Item = Field> + '_ {
        self.fields.iter().copied().chain([CURSOR])
    }

    /// Returns the JSON Schema of the arguments.
    pub fn schema(&self) -> Map<String, Value> {
        let of = |field: Field| {
            let mut schema = json!({ "type": field.kind, "description": field.about });
            match field.kind {
                "object" => schema["additionalProperties"] = json!({ "type": "string" }),
                "array" => schema["items"] = json!({ "type": "string" }),
                _ => {}
            }
            (field.name.to_owned(), schema)
        };
        let properties: Map<String, Value> = self.arguments().map(of).collect();
        let schema = [
            ("type", json!("object")),
            ("properties", Value::Object(properties)),
            ("required", json!(self.required)),
            ("additionalProperties", json!(false)),
        ];
        schema.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_serve::route::{Body, ROUTES};
    use std::collections::BTreeSet;

    #[test]
    fn only_a_right_to_act_changes_something() {
        for tool in TOOLS {
            let acts = ROUTES.iter().any(|route| {
                tool.function == Function::Route(route.endpoint)
                    && matches!(route.right, Some(Right::Start | Right::Operate | Right::Apply))
            });
            assert_eq!(acts, !tool.is_reading(), "{}", tool.name);
        }
        let names: BTreeSet<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        assert_eq!(names.len(), TOOLS.len());
    }

    #[test]
    fn each_argument_is_one_of_the_route() {
        for tool in TOOLS {
            let Function::Route(endpoint) = tool.function else { continue };
            // Some functions have two routes, of which the last has the words of this product.
            let route = ROUTES.iter().rfind(|route| route.endpoint == endpoint).unwrap();
            let body: &[Field] = match route.body {
                Body::None => &[],
                Body::Json(fields) | Body::Pipeline(fields) => fields,
            };
            for field in tool.fields {
                let segment = if field.name == "run" { "id" } else { field.name };
                let is_known = route.path.contains(&format!("{{{segment}}}"))
                    || route.query.iter().chain(body).any(|known| known.name == field.name && known.kind == field.kind);
                assert!(is_known, "{} takes {}", tool.name, field.name);
            }
            assert!(tool.required.iter().all(|name| tool.fields.iter().any(|field| field.name == *name)));
        }
    }
}
