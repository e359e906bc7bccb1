//! Converts an `Ast` to a `Pipeline`. Only this module converts attribute text to types.
//!
//! The steps are: resolve defaults (`scope`), replace inputs, apply the style sheet, and convert the attributes of nodes, edges
//! and the graph (`reader`). Whether the graph makes sense is checked later by [`crate::lint`].

mod backend;
mod command_paths;
mod confine;
mod defaults;
mod document_schema;
pub mod handler;
mod holdout_attributes;
mod inputs;
mod joins;
mod node;
mod output;
mod parallel;
mod placement;
mod reader;
mod references;
mod scope;
mod verification;

pub use reader::duration;

use crate::condition::Condition;
use crate::diagnostic::Diagnostic;
use crate::dot::{Ast, Name, Statement};
use crate::files;
use crate::inputs::Inputs;
use crate::ir::{
    Attribute, Backoff, Edge, Handler, Node, NodeId, Pipeline, RESTARTS_MAX_DEFAULT, Restarts, RunBounds,
    STEPS_MAX_DEFAULT, SessionSettings,
};
use crate::key::{self, Key};
use crate::source::Source;
use crate::span::Span;
use crate::stylesheet::Stylesheet;
use glovebox_record::liveness::StallSettings;
use inputs::Expansion;
use node::GraphScope;
use reader::Findings;
use scope::{Attributes, Declarations, RawEdge, RawNode};
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Lowers a parsed file. After an error the pipeline is only a draft that must not run: it may have no start node, and its edges
/// may have undeclared targets. [`crate::check`] never returns a draft.
pub fn lower(source: Source<'_>, ast: Ast<'_>, inputs: &Inputs) -> (Pipeline, Vec<Diagnostic>) {
    let mut draft = Draft::new(source);
    ast.body.into_iter().for_each(|statement| draft.add(statement));
    draft.lower(ast.name.as_ref(), ast.span, inputs)
}

/// Lowers a text with final values, in which `$goal` and `@file` are plain text.
pub(crate) fn lower_settled(source: Source<'_>, ast: Ast<'_>) -> (Pipeline, Vec<Diagnostic>) {
    let mut draft = Draft::new(source);
    ast.body.into_iter().for_each(|statement| draft.add(statement));
    draft.lower_with(ast.name.as_ref(), ast.span, &Inputs::default(), Expansion::settled)
}

/// The declarations of a file, with defaults resolved and values still as text.
pub(crate) struct Draft<'a> {
    declarations: Declarations,
    findings: Findings<'a>,
}

impl<'a> Draft<'a> {
    /// Creates an empty draft.
    pub(crate) fn new(source: Source<'a>) -> Self {
        Self { declarations: Declarations::with_room_for(source.text().len()), findings: Findings::new(source) }
    }

    /// Adds the next outer statement of the file.
    pub(crate) fn add(&mut self, statement: Statement<'_>) {
        self.declarations.add(statement, &mut self.findings);
    }

    /// Returns the graph's attributes after the inputs are applied.
    pub(crate) fn graph(&self, inputs: &Inputs) -> Attributes {
        let mut graph = self.declarations.graph.clone();
        Expansion::new(inputs, &mut graph);
        graph
    }

    /// Returns the attribute with this key of each node that has one.
    pub(crate) fn of_nodes(&self, key: Key<'static>) -> impl Iterator<Item = &Attribute> {
        self.declarations.nodes.iter().filter_map(move |node| node.attributes.get(key))
    }

    /// Returns the hold-out folders that these graph attributes name. [`Draft::lower`] reports mistakes in them.
    pub(crate) fn sealed(graph: &Attributes) -> Vec<String> {
        files::sealed(holdout_attributes::scenarios(graph, &mut Findings::new(Source::default())).as_deref())
    }

    /// Converts all values to types.
    pub(crate) fn lower(self, name: Option<&Name<'_>>, whole: Span, inputs: &Inputs) -> (Pipeline, Vec<Diagnostic>) {
        self.lower_with(name, whole, inputs, Expansion::new)
    }

    fn lower_with<'b>(
        self,
        name: Option<&Name<'_>>,
        whole: Span,
        inputs: &'b Inputs,
        expansion: fn(&'b Inputs, &mut Attributes) -> Expansion<'b>,
    ) -> (Pipeline, Vec<Diagnostic>) {
        let Self { mut declarations, mut findings } = self;
        let mut raw_nodes = std::mem::take(&mut declarations.nodes);
        let raw_edges = std::mem::take(&mut declarations.edges);
        let subgraphs = std::mem::take(&mut declarations.subgraphs);
        let mut graph = std::mem::take(&mut declarations.graph);
        let mut expansion = expansion(inputs, &mut graph);
        apply_stylesheet(&graph, &mut raw_nodes, &mut findings);
        let graph_turns_max = findings.count(&graph, key::MAX_TURNS, 1);
        let policy = node::retry_policy(&graph, &mut findings);
        let graph_visits_max = findings.count(&graph, key::MAX_VISITS, 0);
        let feedback = holdout_attributes::feedback(&graph, &mut findings);
        let scenarios = holdout_attributes::scenarios(&graph, &mut findings);
        let sealed = files::sealed(scenarios.as_deref());
        files::child_fault(&graph, &sealed).into_iter().for_each(|fault| findings.push(fault));
        let mut scope = GraphScope {
            graph: &graph,
            graph_turns_max,
            graph_visits_max,
            // The graph's preset sets only the default number of retries, which is for `retry` and transient failures.
            // The preset of a node repeats every failure.
            graph_backoff: Backoff { attempts: None, ..policy.unwrap_or_default() },
            feedback,
            need: placement::graph(&graph, &mut findings),
            declarations: &declarations,
            expansion: &mut expansion,
            inputs,
            sealed: &sealed,
        };
        let mut nodes: Vec<Node> =
            raw_nodes.into_iter().map(|raw| node::lower(raw, &mut scope, &mut findings)).collect();
        defaults::drop_ignored_hooks(&mut nodes);
        command_paths::check(&nodes, &mut findings);
        let edges = raw_edges.into_iter().map(|raw| lower_edge(raw, &mut findings)).collect();
        let span = name.map_or(whole, |name| name.span);
        let name = name.map_or_else(|| "pipeline".to_owned(), |name| name.text.to_string());
        let pipeline = Pipeline {
            label: findings.text(&graph, key::LABEL).unwrap_or(&name).to_owned(),
            name,
            goal: expansion.goal().to_owned(),
            start: start(&nodes),
            nodes,
            edges,
            subgraphs,
            default_max_retries: default_max_retries(&graph, policy, &mut findings),
            signature_limit: findings.count(&graph, key::LOOP_RESTART_SIGNATURE_LIMIT, 1),
            restarts: restarts(&graph, &mut findings),
            retry_target: declarations.target(&graph, key::RETRY_TARGET),
            fallback_retry_target: declarations.target(&graph, key::FALLBACK_RETRY_TARGET),
            scenarios,
            scenarios_found: inputs.scenarios_found,
            sources: Vec::new(),
            verifiers: BTreeSet::new(),
            scenario_copies: holdout_attributes::copies(&graph, &mut findings),
            bounds: bounds(&graph, &mut findings),
            session: node::session(&graph, None),
            keeps_conversations: false,
            attributes: Attributes::new(),
            span,
            index: OnceLock::new(),
        };
        expansion.finish(&graph, span, &mut findings);
        let written = pipeline.nodes.len();
        let mut pipeline = joins::with_joins(pipeline, &mut findings);
        style_joins(&mut pipeline.nodes[written..], &graph, &findings);
        let keeps_conversations = continues_conversations(&pipeline);
        (Pipeline { attributes: graph, keeps_conversations, ..pipeline }, findings.diagnostics)
    }
}

/// Returns true if some stage may continue the conversation of an earlier stage.
fn continues_conversations(pipeline: &Pipeline) -> bool {
    let of_edges = pipeline.edges.iter().map(|edge| &edge.session);
    let of_nodes = pipeline.nodes.iter().map(|node| &node.agent.session);
    of_nodes.chain(of_edges).chain([&pipeline.session]).any(SessionSettings::is_full)
}

fn start(nodes: &[Node]) -> NodeId {
    let first = nodes.iter().find(|node| node.handler == Handler::Start);
    first.map_or_else(|| NodeId::new(""), |node| node.id.clone())
}

/// Returns the default number of retries. An explicit number takes precedence over the number of attempts of the retry preset.
fn default_max_retries(graph: &Attributes, policy: Option<Backoff>, findings: &mut Findings<'_>) -> u32 {
    let by_older_name = findings.count(graph, key::DEFAULT_MAX_RETRY, 0);
    let by_policy = policy.and_then(|policy| policy.attempts).map(|attempts| attempts.saturating_sub(1));
    findings.count(graph, key::DEFAULT_MAX_RETRIES, 0).or(by_older_name).or(by_policy).unwrap_or(0)
}

fn bounds(graph: &Attributes, findings: &mut Findings<'_>) -> RunBounds {
    let steps_max = findings.integer(graph, key::MAX_STEPS, 1, i64::MAX).and_then(|steps| u64::try_from(steps).ok());
    RunBounds {
        steps_max: steps_max.unwrap_or(STEPS_MAX_DEFAULT),
        wall_max: findings.duration(graph, key::MAX_WALL_TIME),
        spend_max: findings.spend(graph),
        stall: stall(graph, findings),
    }
}

fn stall(graph: &Attributes, findings: &mut Findings<'_>) -> StallSettings {
    let mut milliseconds =
        |key, least| findings.integer(graph, key, least, i64::MAX).and_then(|found| u64::try_from(found).ok());
    StallSettings {
        timeout_ms: milliseconds(key::STALL_TIMEOUT_MS, 0),
        check_interval_ms: milliseconds(key::STALL_CHECK_INTERVAL_MS, 1),
    }
}

fn restarts(graph: &Attributes, findings: &mut Findings<'_>) -> Restarts {
    let keys = findings.text(graph, key::LOOP_RESTART_PERSIST_KEYS).unwrap_or_default();
    Restarts {
        most: findings.count(graph, key::MAX_RESTARTS, 0).unwrap_or(RESTARTS_MAX_DEFAULT),
        kept: keys.split(',').map(str::trim).filter(|key| !key.is_empty()).map(Into::into).collect(),
    }
}

fn lower_edge(raw: RawEdge, findings: &mut Findings<'_>) -> Edge {
    let ((from, from_span), (to, to_span)) = (raw.from, raw.to);
    let condition = condition(&raw.attributes, findings)
        .map_err(|fault| findings.push(fault.with_edge(from.as_str(), to.as_str())));
    condition.iter().flatten().for_each(|condition| report_other_spellings(condition, findings));
    Edge {
        from,
        to,
        label: raw.attributes.get(key::LABEL).map(|label| label.value.clone()).unwrap_or_default(),
        condition: condition.ok().flatten(),
        weight: findings.integer(&raw.attributes, key::WEIGHT, i64::MIN, i64::MAX).unwrap_or(0),
        default: findings.boolean(&raw.attributes, key::DEFAULT),
        loop_restart: findings.boolean(&raw.attributes, key::LOOP_RESTART),
        session: node::session(&raw.attributes, None),
        attributes: raw.attributes,
        from_span,
        to_span,
        span: from_span.to(to_span),
    }
}

/// Reports outcomes in the spelling of another engine. The finding has a fix if the value is not quoted.
fn report_other_spellings(condition: &Condition, findings: &mut Findings<'_>) {
    for clause in condition.clauses.iter().filter(|clause| clause.is_foreign) {
        let theirs = if clause.literal.as_str() == "fail" { "failed" } else { "succeeded" };
        let mut found = Diagnostic::other_spelling(theirs, &clause.literal, clause.literal_span);
        found.fix = found.fix.filter(|edit| edit.span.end - edit.span.start == theirs.len());
        findings.push(found);
    }
}

/// Parses the condition of an edge. `None` if it is absent or empty (spec §10.5).
#[expect(
    clippy::result_large_err,
    reason = "a diagnostic ends the reading of one value; it is built once and moved twice"
)]
fn condition(attributes: &Attributes, findings: &Findings<'_>) -> Result<Option<Condition>, Diagnostic> {
    match attributes.get(key::CONDITION).filter(|attribute| !attribute.value.trim().is_empty()) {
        Some(attribute) => Condition::parse(&attribute.value, &findings.places(attribute)).map(Some),
        None => Ok(None),
    }
}

/// Applies the style sheet and the graph's model settings to added fan-ins, as if the file contained them. Otherwise the
/// canonical text, which contains these fan-ins, would parse to another graph.
fn style_joins(joins: &mut [Node], graph: &Attributes, findings: &Findings<'_>) {
    let sheet = graph.get(key::MODEL_STYLESHEET).filter(|attribute| !attribute.value.trim().is_empty());
    // The mistakes in the style sheet have already been reported.
    let sheet = sheet.map(|attribute| Stylesheet::parse(&attribute.value, &findings.places(attribute)).0);
    for node in joins {
        for (property, value) in sheet.iter().flat_map(|sheet| sheet.apply(&node.id, &node.shape, &[])) {
            node.attributes.get_or_insert_with(property, || value);
        }
        node::inherit_model(&mut node.attributes, graph);
    }
}

/// Sets missing model attributes of nodes from the rules of `model_stylesheet` (spec §8.5).
fn apply_stylesheet(graph: &Attributes, nodes: &mut [RawNode], findings: &mut Findings<'_>) {
    let Some(attribute) = graph.get(key::MODEL_STYLESHEET).filter(|attribute| !attribute.value.trim().is_empty())
    else {
        return;
    };
    let (stylesheet, faults) = Stylesheet::parse(&attribute.value, &findings.places(attribute));
    faults.into_iter().for_each(|fault| findings.push(fault));
    for node in nodes {
        let own = node.attributes.get(key::CLASS).map(|class| class.value.as_str()).unwrap_or_default();
        let classes = own.split(',').map(str::trim).chain(node.derived.iter().map(String::as_str));
        for (property, value) in stylesheet.apply(&node.id, node::shape(node), &classes.collect::<Vec<_>>()) {
            node.attributes.get_or_insert_with(property, || value);
        }
    }
}
