//! Rules about parallel nodes: the join of their branches, their policies, and paths that two branches may both write.

use super::{LintContext, Rule, RuleFindings};
use crate::diagnostic::Diagnostic;
use crate::ir::{Attribute, Handler, JoinPolicy, Merge, Node, NodeId, Pipeline};
use crate::key::{self, Key};
use crate::parallel::{JoinFault, NESTED_MAX};
use glovebox_record::scope::{Entry, intersect};
use std::collections::BTreeSet;

/// Maximum number of branches of a parallel node whose write scopes are compared with each other.
const COMPARED_MAX: usize = 64;

fn parallel_nodes<'a>(context: &LintContext<'a>) -> impl Iterator<Item = &'a Node> + use<'a> {
    context.pipeline.nodes.iter().filter(|node| node.handler == Handler::Parallel)
}

pub(super) fn join(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    if !context.has_declared_ends() {
        return RuleFindings::none();
    }
    let found = parallel_nodes(context).filter_map(|parallel| {
        let fault = context.pipeline.region(&parallel.id).err()?;
        let message = match fault {
            JoinFault::NoBranch => {
                format!("the parallel node `{}` has no edge, expected one for each branch", parallel.id)
            }
            JoinFault::NoJoin => format!("no branch of the parallel node `{}` leads to a fan-in", parallel.id),
            JoinFault::ManyJoins(one, other) => {
                format!(
                    "branches of the parallel node `{}` lead to two fan-ins, `{one}` and `{other}`, expected one",
                    parallel.id
                )
            }
            JoinFault::Exit(exit) => {
                format!("a branch of the parallel node `{}` leads to the exit `{exit}` without its fan-in", parallel.id)
            }
            JoinFault::Back(to) => format!("a branch of the parallel node `{}` leads back to `{to}`", parallel.id),
            // The finding is reported at the inner node.
            JoinFault::Inner(_) => return None,
            JoinFault::Deep(_) => {
                format!("the parallel node `{}` has more than {NESTED_MAX} levels of nested branches", parallel.id)
            }
        };
        let found = rule.found(message, parallel.span).with_node(parallel.id.as_str());
        Some(match fan_in_before(context, &parallel.id).filter(|_| !matches!(fault, JoinFault::NoBranch)) {
            Some(help) => found.with_help(help),
            None => found,
        })
    });
    found.collect()
}

/// Returns the lines to add so that a fan-in joins the branches of a parallel node at the node where they meet. `None`
/// if they meet at no stage.
fn fan_in_before(context: &LintContext<'_>, parallel: &NodeId) -> Option<String> {
    let meeting = context.pipeline.meeting(parallel)?;
    let does_work = |node: &&Node| !matches!(node.handler, Handler::Exit | Handler::FanIn(_) | Handler::Parallel);
    context.node(meeting).filter(does_work)?;
    let join = format!("join_{parallel}");
    Some(format!(
        "its branches meet at `{meeting}`: add `{join} [shape=tripleoctagon, merge=all]` and `{join} -> {meeting}`, and lead \
         every branch to `{join}`"
    ))
}

pub(super) fn edges(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let of_parallel = context.pipeline.edges.iter().filter_map(|edge| {
        let is_parallel = context.node(&edge.from).is_some_and(|node| node.handler == Handler::Parallel);
        let written = edge.attributes.get(key::CONDITION).filter(|_| is_parallel && edge.condition.is_some())?;
        let message =
            format!("the edge `{} -> {}` begins a branch, so its condition has no effect", edge.from, edge.to);
        Some(rule.found(message, written.span).with_edge(edge.from.as_str(), edge.to.as_str()))
    });
    of_parallel.collect()
}

/// Attributes that have an effect only on a parallel node.
const OF_PARALLEL: [Key<'static>; 5] =
    [key::JOIN_POLICY, key::ERROR_POLICY, key::MAX_PARALLEL, key::K, key::QUORUM_FRACTION];

pub(super) fn policy(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let mut found = RuleFindings::default();
    for node in &context.pipeline.nodes {
        faults(rule, context.pipeline, node).into_iter().for_each(|fault| found.push(fault));
    }
    found
}

/// Reports a limit or a retry setting on a node that has no attempts. The lowering has already removed inherited
/// settings.
fn useless_bound(rule: &Rule, node: &Node, key: Key<'static>) -> Option<Diagnostic> {
    let asks = |attribute: &&Attribute| !matches!(attribute.value.trim(), "" | "0" | "none");
    let attribute = node.attributes.get(key).filter(asks)?;
    let kind = match node.handler {
        Handler::Parallel => "parallel node",
        Handler::FanIn(_) => "fan-in without a prompt",
        Handler::Human => "human gate",
        _ => "control node",
    };
    let why = format!("`{key}` has no effect on the {kind} `{}`, which makes no attempts", node.id);
    let help = match node.handler {
        Handler::Parallel | Handler::Human if key == key::MAX_WALL_TIME => "set its `timeout`",
        Handler::FanIn(_) => "remove it, or add the `prompt` of a judge",
        Handler::Parallel => {
            "set it on the stages of the branches; to handle a failure of the parallel node, set its `retry_target`"
        }
        _ => "remove it, or set it on a stage",
    };
    Some(rule.found(why, attribute.span).with_help(help.to_owned()).with_node(node.id.as_str()))
}

fn faults(rule: &Rule, pipeline: &Pipeline, node: &Node) -> Vec<Diagnostic> {
    let is_parallel = node.handler == Handler::Parallel;
    let written = |key: Key<'static>| node.attributes.get(key).filter(|attribute| !attribute.value.is_empty());
    let useless = |key: Key<'static>, why: &str, help: &str| {
        let span = written(key)?.span;
        Some(rule.found(format!("`{key}` has no effect {why}"), span).with_help(help).with_node(node.id.as_str()))
    };
    let elsewhere = |key: Key<'static>, kind: &str, help: &str| {
        written(key).and_then(|_| useless(key, &format!("on `{}`, which is not a {kind}", node.id), help))
    };
    let mut found: Vec<Diagnostic> = Vec::new();
    if !node.handler.is_fan_in() {
        found.extend(elsewhere(key::MERGE, "fan-in", "set it on the node with `shape=tripleoctagon`"));
    }
    found.extend(node.handler.ignored_bounds().iter().filter_map(|key| useless_bound(rule, node, *key)));
    if !is_parallel {
        let help = "set it on the node with `shape=component`";
        found.extend(OF_PARALLEL.iter().filter_map(|key| elsewhere(*key, "parallel node", help)));
        return found;
    }
    let branches = pipeline.outgoing(&node.id).count();
    let policy = node.parallel.join.as_str();
    match node.parallel.join {
        JoinPolicy::KOfN(k) if usize::try_from(k).is_ok_and(|k| k > branches) && branches > 0 => {
            let why = format!("the parallel node `{}` needs {k} branches to succeed and has {branches}", node.id);
            let span = written(key::K).map_or(node.span, |attribute| attribute.span);
            found.push(rule.found(why, span).with_node(node.id.as_str()));
        }
        JoinPolicy::KOfN(_) => {}
        _ => {
            let why = format!("with `join_policy={policy}`");
            found.extend(useless(key::K, &why, "set `join_policy=k_of_n`, or remove `k`"));
        }
    }
    if !matches!(node.parallel.join, JoinPolicy::Quorum(_)) {
        let why = format!("with `join_policy={policy}`");
        found.extend(useless(key::QUORUM_FRACTION, &why, "set `join_policy=quorum`, or remove it"));
    }
    found
}

pub(super) fn lonely(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let pipeline = context.pipeline;
    if !context.has_declared_ends() || pipeline.nodes.iter().all(|node| !node.handler.is_fan_in()) {
        return RuleFindings::none();
    }
    let joins: Option<BTreeSet<&NodeId>> =
        parallel_nodes(context).map(|parallel| pipeline.region(&parallel.id).ok().map(|region| region.join)).collect();
    // A parallel node without a valid join may be meant for any fan-in.
    let Some(joins) = joins else { return RuleFindings::none() };
    let lonely = pipeline.nodes.iter().filter(|node| node.handler.is_fan_in() && !joins.contains(&&node.id));
    let found = lonely.map(|node| {
        rule.found(format!("no parallel node leads to the fan-in `{}`", node.id), node.span).with_node(node.id.as_str())
    });
    found.collect()
}

pub(super) fn writes(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let pipeline = context.pipeline;
    if !context.has_declared_ends() {
        return RuleFindings::none();
    }
    let found = parallel_nodes(context).filter_map(|parallel| {
        let join = pipeline.region(&parallel.id).ok()?.join;
        let merges = pipeline.node(join).is_some_and(|join| join.parallel.merge == Merge::All);
        let (one, other, path) = if merges { shared_path(pipeline, parallel)? } else { return None };
        let message = format!(
            "the branches `{one}` and `{other}` of the parallel node `{}` may both write `{path}`",
            parallel.id
        );
        Some(rule.found(message, parallel.span).with_node(parallel.id.as_str()))
    });
    found.collect()
}

/// Returns a path that two branches may both write, with the first nodes of these branches. `None` if there is none.
fn shared_path<'a>(pipeline: &'a Pipeline, parallel: &'a Node) -> Option<(&'a NodeId, &'a NodeId, String)> {
    let scopes: Vec<(&NodeId, Vec<Entry>)> = pipeline
        .outgoing(&parallel.id)
        .take(COMPARED_MAX)
        .map(|(_, edge)| (&edge.to, scope(pipeline, &pipeline.branch_nodes(&parallel.id, &edge.to))))
        .collect();
    scopes.iter().enumerate().find_map(|(index, (one, of_one))| {
        scopes[index + 1..].iter().find_map(|(other, of_other)| {
            let shared = intersect(of_one, of_other).into_iter().next()?;
            Some((*one, *other, shared.to_string()))
        })
    })
}

/// Returns the paths that the stages of a branch may write.
fn scope(pipeline: &Pipeline, nodes: &BTreeSet<&NodeId>) -> Vec<Entry> {
    let working = nodes.iter().filter_map(|id| pipeline.node(id)).filter(|node| node.handler.component().is_some());
    working
        .flat_map(|node| match &node.access.allowed_write_paths {
            Some(entries) => entries.clone(),
            None if node.handler.kind().is_first_party() => vec![Entry::whole()],
            None => Vec::new(),
        })
        .collect()
}
