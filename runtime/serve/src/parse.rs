//! From path, query and body of a request to a [`Read`] or an [`Act`].
//!
//! No parameter is a path of the machine: ids are run ids, names of nodes, digests or numbers, and everything else is
//! refused. Unknown parameters and fields are refused, so that a misspelt limit is not ignored.

use crate::desk::{Act, Drawing, Pipeline, Problem, Read, Submitted};
use crate::route::{Body, Endpoint, Route};
use glovebox_record::{Digest, NodeId, QuestionId, RunId};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Maximum length of a text in a body: an answer's comment, or a message to an agent.
pub const TEXT_BYTES_MAX: usize = 16 << 10;
/// Maximum number of runs in a list.
const RUNS_MAX: usize = 100;
/// Maximum number of records in a page.
const RECORDS_MAX: usize = 200;
/// Maximum number of lines of `/logs/all`.
const LINES_MAX: usize = 1_000;
/// Maximum length of one parameter.
const PARAMETER_BYTES_MAX: usize = 4 << 10;

/// The parts of a request that a route uses.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    /// Segments of the path by name, decoded.
    pub path: BTreeMap<String, String>,
    /// Parameters of the query, decoded.
    pub query: BTreeMap<String, String>,
    /// Type of the body, without parameters.
    pub media: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// What a route does with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Returns a document.
    Read(Read),
    /// Does something.
    Act(Act),
    /// Follows the records of a run.
    Follow(Followed),
    /// Follows the output of a running stage.
    Output(RunId, NodeId),
    /// Exchanges a one-time code.
    Session(String),
    /// Returns a file of the page.
    Page(String),
    /// Returns the OpenAPI document.
    OpenApi,
    /// Says that the server works.
    Health,
}

/// Which records of a run a client follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    /// The run.
    pub run: RunId,
    /// Only records with a larger number. `None` if the request has `Last-Event-ID` or nothing.
    pub after: Option<u64>,
    /// Only events of this kind.
    pub kind: Option<String>,
    /// Only events of this node.
    pub node: Option<NodeId>,
    /// True for events with the names of the specification, false for records.
    pub is_named_by_specification: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SubmittedBody {
    dot: Option<String>,
    file: Option<String>,
    #[serde(default)]
    inputs: BTreeMap<String, String>,
    budget_usd: Option<String>,
    steps_max: Option<u64>,
    plan_digest: Option<Digest>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerBody {
    value: String,
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForkBody {
    node: String,
    visit: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SteerBody {
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApplyBody {
    #[serde(default)]
    paths: Vec<String>,
    head: Digest,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionBody {
    code: String,
}

/// Returns what a request asks for.
///
/// # Errors
///
/// Returns a problem with status 400, 404, 413 or 415 that names the wrong part.
pub fn wanted(route: &Route, parts: &Parts) -> Result<Wanted, Problem> {
    check_query(route, parts)?;
    check_body(route, parts)?;
    if let Some(act) = act(route.endpoint, parts)? {
        return Ok(Wanted::Act(act));
    }
    if let Some(read) = read(route.endpoint, parts)? {
        return Ok(Wanted::Read(read));
    }
    Ok(match route.endpoint {
        Endpoint::Events | Endpoint::PipelineEvents => Wanted::Follow(Followed {
            run: run(parts)?,
            after: number(parts, "after")?,
            kind: parts.query.get("kind").cloned(),
            node: parts.query.get("node").map(|name| node_named(name)).transpose()?,
            is_named_by_specification: route.endpoint == Endpoint::PipelineEvents,
        }),
        Endpoint::Output => Wanted::Output(run(parts)?, node(parts)?),
        Endpoint::Session => Wanted::Session(json::<SessionBody>(parts)?.code),
        Endpoint::PageFile => Wanted::Page(parts.path.get("file").cloned().unwrap_or_default()),
        Endpoint::OpenApi => Wanted::OpenApi,
        Endpoint::Health => Wanted::Health,
        _ => Wanted::Page("index.html".to_owned()),
    })
}

fn act(endpoint: Endpoint, parts: &Parts) -> Result<Option<Act>, Problem> {
    Ok(Some(match endpoint {
        Endpoint::Start => Act::Start(submitted(parts)?),
        Endpoint::Cancel => Act::Cancel(run(parts)?),
        Endpoint::Pause => Act::Pause(run(parts)?),
        Endpoint::Resume => Act::Resume(run(parts)?),
        Endpoint::Fork => {
            let ForkBody { node, visit } = json(parts)?;
            Act::Fork { run: run(parts)?, node: node_named(&node)?, visit }
        }
        Endpoint::Answer => {
            let AnswerBody { value, text } = json(parts)?;
            let (value, text) = (bounded("value", value)?, bounded("text", text)?);
            Act::Answer { run: run(parts)?, question: question(segment(parts, "question")), value, text }
        }
        Endpoint::Steer => {
            let text = bounded("text", json::<SteerBody>(parts)?.text)?;
            Act::Steer { run: run(parts)?, node: node(parts)?, text }
        }
        Endpoint::Apply => {
            let ApplyBody { paths, head } = json(parts)?;
            Act::Apply { run: run(parts)?, paths, head }
        }
        _ => return Ok(None),
    }))
}

fn read(endpoint: Endpoint, parts: &Parts) -> Result<Option<Read>, Problem> {
    let text = |name: &str| parts.query.get(name).cloned();
    let visit = || number(parts, "visit");
    Ok(Some(match endpoint {
        Endpoint::Runs => Read::Runs {
            state: text("state"),
            pipeline: text("pipeline"),
            before: text("before").map(|id| run_named(&id)).transpose()?,
            limit: limit(parts, RUNS_MAX)?,
        },
        Endpoint::Run => Read::Run(run(parts)?),
        Endpoint::Evidence => Read::Evidence(run(parts)?, wanted_node(parts)?),
        Endpoint::Why => Read::Why(run(parts)?, wanted_node(parts)?),
        Endpoint::Gates | Endpoint::Questions => Read::Gates(Some(run(parts)?)),
        Endpoint::AllGates => Read::Gates(None),
        Endpoint::Diff => Read::Diff(run(parts)?, text("question").map(|id| question(&id))),
        Endpoint::Patch => Read::Patch(run(parts)?, text("question").map(|id| question(&id))),
        Endpoint::Holdouts => Read::Holdouts(run(parts)?),
        Endpoint::Stage => Read::Stage(run(parts)?, node(parts)?),
        Endpoint::Transcript => Read::Transcript(run(parts)?, node(parts)?, visit()?),
        Endpoint::Logs => Read::Logs(run(parts)?, node(parts)?, visit()?),
        Endpoint::Graph => Read::Graph(run(parts)?, drawing(parts)?),
        Endpoint::Checkpoint => Read::Checkpoint(run(parts)?),
        Endpoint::Context => Read::Context(run(parts)?),
        Endpoint::Tasks => Read::Tasks { run: text("run").map(|id| run_named(&id)).transpose()?, state: text("state") },
        Endpoint::Task => Read::Task(segment(parts, "id").to_owned()),
        Endpoint::AllLogs => Read::AllLogs {
            run: text("run").map(|id| run_named(&id)).transpose()?,
            node: wanted_node(parts)?,
            since: text("since"),
            limit: limit(parts, LINES_MAX)?,
        },
        Endpoint::Records => Read::Records {
            run: run(parts)?,
            after: number(parts, "after")?.unwrap_or_default(),
            limit: limit(parts, RECORDS_MAX)?,
        },
        Endpoint::Blob => Read::Blob(run(parts)?, digest(segment(parts, "digest"))?),
        Endpoint::Plan => Read::Plan(run(parts)?),
        Endpoint::Quarantine => Read::SetAside(run(parts)?, position(segment(parts, "n"))?),
        Endpoint::Check => Read::Check(submitted(parts)?),
        Endpoint::PlanOf => Read::PlanOf(submitted(parts)?),
        _ => return Ok(None),
    }))
}

fn check_query(route: &Route, parts: &Parts) -> Result<(), Problem> {
    for (name, value) in &parts.query {
        if !route.query.iter().any(|field| field.name == name) {
            let known: Vec<&str> = route.query.iter().map(|field| field.name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(bad(format!("the query has an unknown parameter; this route takes: {known}")));
        }
        if value.len() > PARAMETER_BYTES_MAX {
            return Err(bad(format!("parameter `{name}` is longer than {PARAMETER_BYTES_MAX} bytes")));
        }
    }
    Ok(())
}

fn check_body(route: &Route, parts: &Parts) -> Result<(), Problem> {
    let media = parts.media.as_deref();
    match route.body {
        Body::None if parts.body.is_empty() => Ok(()),
        Body::None => Err(bad("this route takes no body")),
        Body::Json(_) if media == Some("application/json") => Ok(()),
        Body::Json(_) => Err(Problem::new(415, "media-type", "this route takes `Content-Type: application/json`")),
        Body::Pipeline(_) => match media {
            Some("application/json" | "text/vnd.graphviz" | "text/plain") => Ok(()),
            _ => Err(Problem::new(
                415,
                "media-type",
                "this route takes DOT as `text/vnd.graphviz` or `text/plain`, or `application/json`",
            )),
        },
    }
}

fn submitted(parts: &Parts) -> Result<Submitted, Problem> {
    if parts.media.as_deref() != Some("application/json") {
        let text = String::from_utf8(parts.body.clone()).map_err(|_| bad("the pipeline is not UTF-8"))?;
        let pipeline = Pipeline::Text(text);
        return Ok(Submitted { pipeline, inputs: Vec::new(), budget_usd: None, steps_max: None, plan_digest: None });
    }
    let SubmittedBody { dot, file, inputs, budget_usd, steps_max, plan_digest } = json(parts)?;
    let pipeline = match (dot, file) {
        (Some(text), None) => Pipeline::Text(text),
        (None, Some(file)) if is_inside(&file) => Pipeline::File(file),
        (None, Some(_)) => return Err(bad("`file` is not a relative path below the project")),
        _ => return Err(bad("the body must have either `dot` or `file`")),
    };
    Ok(Submitted { pipeline, inputs: inputs.into_iter().collect(), budget_usd, steps_max, plan_digest })
}

/// Returns true for a relative path that does not begin like an option and that names nothing above its beginning.
fn is_inside(file: &str) -> bool {
    let has_only_names = file.split('/').all(|name| !matches!(name, "" | "." | ".."));
    has_only_names && !file.starts_with('-') && !file.contains(['\0', '\\', '\n'])
}

fn json<T: for<'a> Deserialize<'a>>(parts: &Parts) -> Result<T, Problem> {
    serde_json::from_slice(&parts.body).map_err(|error| bad(format!("the body is not as described: {error}")))
}

fn bounded(name: &str, text: String) -> Result<String, Problem> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Problem::new(413, "too-long", format!("`{name}` is longer than {TEXT_BYTES_MAX} bytes")));
    }
    Ok(text)
}

fn segment<'a>(parts: &'a Parts, name: &str) -> &'a str {
    parts.path.get(name).map_or("", String::as_str)
}

fn run(parts: &Parts) -> Result<RunId, Problem> {
    run_named(segment(parts, "id"))
}

fn run_named(text: &str) -> Result<RunId, Problem> {
    match RunId::is_folder_name(text) {
        true => Ok(text.into()),
        false => Err(Problem::new(404, "unknown-run", "this is not the id of a run")
            .with_help("GET /runs lists the runs with their ids")),
    }
}

fn node(parts: &Parts) -> Result<NodeId, Problem> {
    node_named(segment(parts, "node"))
}

fn node_named(text: &str) -> Result<NodeId, Problem> {
    let is_name = !text.is_empty() && text.len() <= PARAMETER_BYTES_MAX;
    if is_name { Ok(text.into()) } else { Err(Problem::new(404, "unknown-node", "this is not the name of a node")) }
}

fn wanted_node(parts: &Parts) -> Result<Option<NodeId>, Problem> {
    parts.query.get("node").map(|name| node_named(name)).transpose()
}

fn question(text: &str) -> QuestionId {
    text.into()
}

fn digest(text: &str) -> Result<Digest, Problem> {
    text.parse().map_err(|_| bad("the digest is not `blake3:` and 64 hexadecimal digits"))
}

fn position(text: &str) -> Result<u64, Problem> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unknown = || Problem::new(404, "unknown-change", "this is not the number of a change that was set aside");
    text.parse().ok().filter(|_| is_number).ok_or_else(unknown)
}

fn drawing(parts: &Parts) -> Result<Drawing, Problem> {
    match parts.query.get("format").map(String::as_str) {
        None | Some("svg") => Ok(Drawing::Svg),
        Some("json") => Ok(Drawing::Json),
        Some("dot") => Ok(Drawing::Dot),
        Some(_) => Err(bad("parameter `format` is not `svg`, `json` or `dot`")),
    }
}

fn number<T: std::str::FromStr>(parts: &Parts, name: &str) -> Result<Option<T>, Problem> {
    let parsed = parts.query.get(name).map(|text| text.parse().map_err(|_| bad(format!("`{name}` is not a number"))));
    parsed.transpose()
}

fn limit(parts: &Parts, most: usize) -> Result<usize, Problem> {
    match number(parts, "limit")?.unwrap_or(most) {
        limit if (1..=most).contains(&limit) => Ok(limit),
        _ => Err(bad(format!("parameter `limit` is not from 1 to {most}"))),
    }
}

fn bad(message: impl Into<String>) -> Problem {
    Problem::new(400, "usage", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::ROUTES;

    fn parts(path: &[(&str, &str)], query: &[(&str, &str)], body: &str) -> Parts {
        let owned = |list: &[(&str, &str)]| list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let media = (!body.is_empty()).then(|| "application/json".to_owned());
        Parts { path: owned(path), query: owned(query), media, body: body.into() }
    }

    fn of(endpoint: Endpoint, parts: &Parts) -> Result<Wanted, u16> {
        let route = ROUTES.iter().find(|route| route.endpoint == endpoint).unwrap();
        wanted(route, parts).map_err(|problem| problem.status)
    }

    #[test]
    fn no_id_is_a_path() {
        for id in ["..", "../x", "a/b", ".hidden", "-x", "latest", "", "a b", "a\0", "%2e%2e", &"a".repeat(65)] {
            assert_eq!(of(Endpoint::Run, &parts(&[("id", id)], &[], "")), Err(404), "{id:?}");
        }
        assert!(of(Endpoint::Run, &parts(&[("id", "01ABC-x_y")], &[], "")).is_ok());
        for file in ["/etc/passwd", "../x.dot", "a/../../x", "", "a//b", "--help", "./x", "a\\b"] {
            let body = serde_json::json!({ "file": file }).to_string();
            assert_eq!(of(Endpoint::PlanOf, &parts(&[], &[], &body)), Err(400), "{file:?}");
        }
    }

    #[test]
    fn nothing_unknown_is_ignored() {
        assert_eq!(of(Endpoint::Runs, &parts(&[], &[("limt", "3")], "")), Err(400));
        assert_eq!(of(Endpoint::Runs, &parts(&[], &[("limit", "0")], "")), Err(400));
        assert_eq!(of(Endpoint::Runs, &parts(&[], &[("limit", "101")], "")), Err(400));
        let sandboxed = r#"{"dot":"digraph g {}","dangerously_no_sandbox":true}"#;
        assert_eq!(of(Endpoint::Start, &parts(&[], &[], sandboxed)), Err(400));
        assert_eq!(of(Endpoint::Cancel, &parts(&[("id", "x")], &[], "{}")), Err(400));
        assert_eq!(of(Endpoint::Start, &parts(&[], &[], r#"{"dot":"a","file":"b"}"#)), Err(400));
    }

    #[test]
    fn long_texts_are_refused() {
        let body = |text: String| serde_json::json!({ "text": text }).to_string();
        let told = |length| of(Endpoint::Steer, &parts(&[("id", "x"), ("node", "n")], &[], &body("a".repeat(length))));
        assert!(told(TEXT_BYTES_MAX).is_ok());
        assert_eq!(told(TEXT_BYTES_MAX + 1), Err(413));
    }

    #[test]
    fn a_body_needs_its_type() {
        let mut with_text = parts(&[("id", "x"), ("node", "n")], &[], r#"{"text":"a"}"#);
        with_text.media = Some("text/plain".into());
        assert_eq!(of(Endpoint::Steer, &with_text), Err(415));
        let mut dot = parts(&[], &[], "digraph g {}");
        dot.media = Some("text/vnd.graphviz".into());
        assert!(matches!(of(Endpoint::Check, &dot), Ok(Wanted::Read(Read::Check(_)))));
    }
}
