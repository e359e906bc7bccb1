//! Every route of the server.
//!
//! The router, the OpenAPI document, the table in `docs/serve.md` and the tests are made from [`ROUTES`].

use crate::right::Right;

/// The method of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// `GET`.
    Get,
    /// `POST`.
    Post,
}

impl Verb {
    /// Returns the name of the method.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// The body of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// None. A body is refused.
    None,
    /// A JSON object with these fields.
    Json(&'static [Field]),
    /// DOT as text, or a JSON object with these fields.
    Pipeline(&'static [Field]),
}

/// A field of a body, or a parameter of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its JSON type.
    pub kind: &'static str,
    /// What it means.
    pub about: &'static str,
}

/// What a route answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The document with this schema in `docs/schemas`.
    Document(&'static str),
    /// Lines of JSON with this schema.
    Lines(&'static str),
    /// Server-sent events.
    Events,
    /// Bytes, or a picture.
    Bytes(&'static str),
}

/// The function of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is described by its row of `ROUTES`")]
pub enum Endpoint {
    Page,
    PageFile,
    Session,
    Health,
    OpenApi,
    Start,
    Check,
    PlanOf,
    Run,
    PipelineEvents,
    Cancel,
    Graph,
    Questions,
    Answer,
    Checkpoint,
    Context,
    Runs,
    Events,
    Records,
    Evidence,
    Why,
    Gates,
    AllGates,
    Diff,
    Patch,
    Holdouts,
    Stage,
    Transcript,
    Logs,
    Output,
    Blob,
    Plan,
    Quarantine,
    Pause,
    Resume,
    Fork,
    Steer,
    Apply,
    Tasks,
    Task,
    AllLogs,
}

/// One route.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// Its method.
    pub verb: Verb,
    /// Its path. A name in braces is one segment.
    pub path: &'static str,
    /// The right that it needs; `None` if it needs no token.
    pub right: Option<Right>,
    /// Parameters of the query.
    pub query: &'static [Field],
    /// The body.
    pub body: Body,
    /// The answer.
    pub answer: Answer,
    /// The command that prints the same, or does the same; empty if there is none.
    pub command: &'static str,
    /// What the route is for, in one sentence.
    pub about: &'static str,
    /// The function.
    pub endpoint: Endpoint,
}

const fn text(name: &'static str, about: &'static str) -> Field {
    Field { name, kind: "string", about }
}

const fn number(name: &'static str, about: &'static str) -> Field {
    Field { name, kind: "integer", about }
}

/// Fields of a submitted pipeline.
const SUBMITTED: &[Field] = &[
    text("dot", "the pipeline as DOT"),
    text("file", "instead of `dot`: a file of the project, without `..`"),
    Field { name: "inputs", kind: "object", about: "values of the pipeline's inputs" },
    text("budget_usd", "limit of the cost of model calls"),
    number("steps_max", "limit of the number of steps"),
    text("plan_digest", "digest of the plan that was seen"),
];
const VISIT: &[Field] = &[number("visit", "only this visit of the node")];
const NODE: &[Field] = &[text("node", "only this node")];
const NO_FIELDS: &[Field] = &[];

const fn get(
    path: &'static str,
    endpoint: Endpoint,
    answer: Answer,
    command: &'static str,
    about: &'static str,
) -> Route {
    let (verb, right, query, body) = (Verb::Get, Some(Right::View), NO_FIELDS, Body::None);
    Route { verb, path, right, query, body, answer, command, about, endpoint }
}

const fn post(
    path: &'static str,
    endpoint: Endpoint,
    right: Right,
    body: Body,
    answer: Answer,
    command: &'static str,
    about: &'static str,
) -> Route {
    Route { verb: Verb::Post, path, right: Some(right), query: NO_FIELDS, body, answer, command, about, endpoint }
}

const fn asking(route: Route, query: &'static [Field]) -> Route {
    Route { query, ..route }
}

const fn open(route: Route) -> Route {
    Route { right: None, ..route }
}

const fn with_holdouts(route: Route) -> Route {
    Route { right: Some(Right::Withheld), ..route }
}

const fn for_builders(route: Route) -> Route {
    Route { right: Some(Right::Builder), ..route }
}

use Answer::{Bytes, Document, Events, Lines};

/// All routes.
pub const ROUTES: &[Route] = &[
    open(get("/", Endpoint::Page, Bytes("text/html"), "", "The page. It has no data.")),
    open(get("/page/{file}", Endpoint::PageFile, Bytes("text/javascript"), "", "A script or style sheet of the page.")),
    open(post(
        "/session",
        Endpoint::Session,
        Right::View,
        Body::Json(&[text("code", "a one-time code, from the link that the server printed")]),
        Document("serve-session"),
        "",
        "Exchanges a one-time code for a token of the page.",
    )),
    open(get(
        "/health",
        Endpoint::Health,
        Document("serve-health"),
        "glovebox version --json",
        "Says that the server works.",
    )),
    for_builders(get("/openapi.json", Endpoint::OpenApi, Bytes("application/json"), "", "This list, as OpenAPI 3.1.")),
    post(
        "/pipelines",
        Endpoint::Start,
        Right::Start,
        Body::Pipeline(SUBMITTED),
        Document("serve-start"),
        "glovebox run FILE --json",
        "Starts a run of a pipeline. Without `plan_digest` this needs the right `start-unseen`.",
    ),
    post(
        "/check",
        Endpoint::Check,
        Right::View,
        Body::Pipeline(SUBMITTED),
        Document("check"),
        "glovebox check FILE --format json",
        "Checks a pipeline.",
    ),
    post(
        "/plan",
        Endpoint::PlanOf,
        Right::View,
        Body::Pipeline(SUBMITTED),
        Document("plan"),
        "glovebox plan FILE --json",
        "Returns all that a run of a pipeline could do.",
    ),
    get(
        "/pipelines/{id}",
        Endpoint::Run,
        Document("verdict"),
        "glovebox show ID --json",
        "Returns the summary of a run.",
    ),
    get(
        "/pipelines/{id}/events",
        Endpoint::PipelineEvents,
        Events,
        "",
        "Follows a run: events with the names of the specification.",
    ),
    post(
        "/pipelines/{id}/cancel",
        Endpoint::Cancel,
        Right::Operate,
        Body::None,
        Document("control"),
        "glovebox cancel ID --json",
        "Cancels a run for good.",
    ),
    asking(
        get(
            "/pipelines/{id}/graph",
            Endpoint::Graph,
            Bytes("image/svg+xml"),
            "glovebox graph ID",
            "Returns the picture of a run.",
        ),
        &[text("format", "`svg`, `json` or `dot`; default `svg`")],
    ),
    get(
        "/pipelines/{id}/questions",
        Endpoint::Questions,
        Document("gates"),
        "glovebox gates ID --json",
        "Lists the open questions of a run.",
    ),
    post(
        "/pipelines/{id}/questions/{question}/answer",
        Endpoint::Answer,
        Right::Operate,
        Body::Json(&[text("value", "the answer"), text("text", "a comment")]),
        Document("answer"),
        "glovebox answer ID QUESTION VALUE --json",
        "Answers a question. The first valid answer counts; a later one gets 409 with the first.",
    ),
    get(
        "/pipelines/{id}/checkpoint",
        Endpoint::Checkpoint,
        Document("checkpoint"),
        "",
        "Returns the checkpoint of a run.",
    ),
    get("/pipelines/{id}/context", Endpoint::Context, Bytes("application/json"), "", "Returns the context of a run."),
    asking(
        for_builders(get(
            "/runs",
            Endpoint::Runs,
            Document("ls"),
            "glovebox ls --json",
            "Lists the runs, newest first.",
        )),
        &[
            text("state", "only runs in this state"),
            text("pipeline", "only runs whose pipeline's name contains this text"),
            text("before", "only runs older than the run with this id"),
            number("limit", "at most this number, default and maximum 100"),
        ],
    ),
    get("/runs/{id}", Endpoint::Run, Document("verdict"), "glovebox show ID --json", "Returns the summary of a run."),
    asking(
        get(
            "/runs/{id}/events",
            Endpoint::Events,
            Events,
            "glovebox attach ID --json --all",
            "Follows a run: its records, and after each batch its state.",
        ),
        &[
            number("after", "only records with a larger number; as `Last-Event-ID`"),
            text("kind", "only events of this kind"),
            text("node", "only events of this node"),
        ],
    ),
    asking(
        get(
            "/runs/{id}/records",
            Endpoint::Records,
            Lines("event"),
            "glovebox attach ID --json --all",
            "Returns a page of records, at most 1 MiB.",
        ),
        &[
            number("after", "only records with a larger number"),
            number("limit", "at most this number, default and maximum 200"),
        ],
    ),
    asking(
        get(
            "/runs/{id}/evidence",
            Endpoint::Evidence,
            Document("evidence"),
            "glovebox evidence ID --json",
            "Lists every command with its receipt.",
        ),
        NODE,
    ),
    asking(
        get("/runs/{id}/why", Endpoint::Why, Document("why"), "glovebox why ID --json", "Explains the path of a run."),
        NODE,
    ),
    get(
        "/runs/{id}/gates",
        Endpoint::Gates,
        Document("gates"),
        "glovebox gates ID --json",
        "Lists the open questions of a run.",
    ),
    get(
        "/gates",
        Endpoint::AllGates,
        Document("gates"),
        "glovebox gates --json",
        "Lists the open questions of all runs.",
    ),
    asking(
        get(
            "/runs/{id}/diff",
            Endpoint::Diff,
            Document("diff"),
            "glovebox diff ID --json",
            "Lists the changes of a run.",
        ),
        &[text("question", "only the changes that this question is about")],
    ),
    asking(
        get(
            "/runs/{id}/patch",
            Endpoint::Patch,
            Bytes("text/plain"),
            "glovebox diff ID",
            "Returns the changes of a run as a patch in git's format, as an attachment.",
        ),
        &[text("question", "only the changes that this question is about")],
    ),
    get(
        "/runs/{id}/holdouts",
        Endpoint::Holdouts,
        Document("holdout-status"),
        "glovebox holdout status ID --json",
        "Returns what is recorded about the hold-outs of a run.",
    ),
    get(
        "/runs/{id}/stages/{node}",
        Endpoint::Stage,
        Lines("event"),
        "glovebox show ID NODE --json",
        "Returns the records about one node.",
    ),
    asking(
        get(
            "/runs/{id}/stages/{node}/transcript",
            Endpoint::Transcript,
            Lines("transcript"),
            "glovebox transcript ID NODE --json",
            "Returns the conversations of a node.",
        ),
        VISIT,
    ),
    asking(
        get(
            "/runs/{id}/stages/{node}/logs",
            Endpoint::Logs,
            Lines("logs"),
            "glovebox logs ID NODE --json",
            "Returns the output of the commands of a node.",
        ),
        VISIT,
    ),
    get(
        "/runs/{id}/stages/{node}/output",
        Endpoint::Output,
        Events,
        "glovebox logs ID NODE --follow",
        "Follows a running stage: the last 64 KiB of its output, what follows, each turn with its model, and the answer that the model writes. Never for a stage that can read hold-outs.",
    ),
    get(
        "/runs/{id}/blobs/{digest}",
        Endpoint::Blob,
        Bytes("application/octet-stream"),
        "",
        "Returns the bytes with a digest that a record of the run names, as an attachment.",
    ),
    get(
        "/runs/{id}/plan",
        Endpoint::Plan,
        Document("run-plan"),
        "glovebox plan --run ID --json",
        "Returns what the plan of a run allowed, as its record has it.",
    ),
    with_holdouts(get(
        "/runs/{id}/quarantine/{n}",
        Endpoint::Quarantine,
        Bytes("text/plain"),
        "",
        "Returns the content of a file that a stage wrote outside of its scope, as an attachment. `n` is its `number` in `quarantined` of the summary.",
    )),
    post(
        "/runs/{id}/pause",
        Endpoint::Pause,
        Right::Operate,
        Body::None,
        Document("control"),
        "glovebox pause ID --json",
        "Asks a run to stop when its current stages end.",
    ),
    post(
        "/runs/{id}/resume",
        Endpoint::Resume,
        Right::Operate,
        Body::None,
        Document("serve-start"),
        "glovebox resume ID --json",
        "Continues a run.",
    ),
    post(
        "/runs/{id}/fork",
        Endpoint::Fork,
        Right::Operate,
        Body::Json(&[
            text("node", "the node to begin at"),
            number("visit", "before this visit; default: the last one"),
        ]),
        Document("serve-start"),
        "glovebox fork ID NODE --json",
        "Begins a new run with what this run had before a visit of a node.",
    ),
    post(
        "/runs/{id}/stages/{node}/steer",
        Endpoint::Steer,
        Right::Operate,
        Body::Json(&[text("text", "the message, at most 16 KiB")]),
        Document("steer"),
        "glovebox steer ID NODE TEXT --json",
        "Sends a message to the agent of a node.",
    ),
    post(
        "/runs/{id}/apply",
        Endpoint::Apply,
        Right::Apply,
        Body::Json(&[
            Field { name: "paths", kind: "array", about: "only these paths; default: every path" },
            text("head", "`journal.hash` of the summary that was seen"),
        ]),
        Document("apply"),
        "glovebox apply ID --json",
        "Writes the changes of a run to the project. If the run has another head by then, nothing is written (409).",
    ),
    asking(
        get(
            "/tasks",
            Endpoint::Tasks,
            Document("tasks"),
            "glovebox tasks --json",
            "Lists the visits of stages with their states.",
        ),
        &[text("state", "only tasks in this state"), text("run", "only tasks of this run")],
    ),
    get(
        "/tasks/{id}",
        Endpoint::Task,
        Document("task"),
        "glovebox tasks ID --json",
        "Returns one visit of a stage with its attempts, retries and decisions.",
    ),
    asking(
        get(
            "/logs/all",
            Endpoint::AllLogs,
            Lines("log-line"),
            "",
            "Returns events and ends of output of all runs, by time.",
        ),
        &[
            text("run", "only this run"),
            text("node", "only this node"),
            text("since", "only lines after this time, as RFC 3339"),
            number("limit", "at most this number, default and maximum 1,000"),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_route_is_listed_twice() {
        let all: BTreeSet<_> = ROUTES.iter().map(|route| (route.verb.as_str(), route.path)).collect();
        assert_eq!(all.len(), ROUTES.len());
    }

    #[test]
    fn only_the_page_needs_no_token() {
        let open: Vec<&str> = ROUTES.iter().filter(|route| route.right.is_none()).map(|route| route.path).collect();
        assert_eq!(open, ["/", "/page/{file}", "/session", "/health"]);
    }

    #[test]
    fn only_a_right_to_act_changes_something() {
        for route in ROUTES.iter().filter(|route| route.verb == Verb::Post && route.right.is_some()) {
            let acts = !matches!(route.endpoint, Endpoint::Check | Endpoint::PlanOf);
            let right = route.right.unwrap();
            assert_eq!(acts, matches!(right, Right::Start | Right::Operate | Right::Apply), "{}", route.path);
        }
    }
}
