//! Makes the stages of a child pipeline (spec §4.11, §9.4) part of the pipeline that runs it.
//!
//! The node that runs the child becomes a parallel node with one branch. The branch contains the stages of the child,
//! and a fan-in after the branch merges its changes. So grants, plan, budgets, cancellation and resume apply to a child
//! as to all other stages. [`splice`] works on graphs in which defaults, style sheets and inputs are already applied.
//! It returns canonical text, which a run stores. A child inherits settings from the outer pipeline. A setting of the
//! child that cannot apply to only a part of a run is refused.

mod part;

use crate::diagnostic::Diagnostic;
use crate::ir::{Node, NodeId, Pipeline};
use crate::transform::{self, SettledGraph, TransformedGraph};
use part::Part;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of stages of a pipeline, including its children.
pub const STAGES_MAX: usize = 10_000;

/// Inserts the stages of child pipelines into a pipeline. `children` contains a checked pipeline for each node for which
/// [`Node::wants_child`] returns true.
///
/// # Errors
/// Returns diagnostics at the node that runs the child, for settings of the child that cannot apply to only a part of a
/// run.
pub fn splice(
    parent: &Pipeline,
    children: &BTreeMap<NodeId, Arc<Pipeline>>,
) -> Result<TransformedGraph, Vec<Diagnostic>> {
    let mut graph = SettledGraph::from_pipeline(parent);
    let mut faults = Vec::new();
    // Maps each inserted stage to the span of the node that runs its child pipeline.
    let mut spans = BTreeMap::new();
    for node in &parent.nodes {
        let Some(child) = children.get(&node.id) else { continue };
        match Part::new(parent, node, child).and_then(|part| part.put_into(&mut graph)) {
            Ok(added) => spans.extend(added.into_iter().map(|id| (id, node.span))),
            Err(found) => faults.extend(found),
        }
        if graph.nodes.len() > STAGES_MAX {
            let message = format!("the pipeline and its child pipelines have more than {STAGES_MAX} stages");
            faults.push(fault(node, message, "run the larger part as a pipeline of its own"));
            break;
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let unread = |reason| {
        vec![Diagnostic::error(RULE, format!("cannot insert the stages of its child pipelines: {reason}"), parent.span)]
    };
    let mut applied = transform::apply(parent, &graph).map_err(unread)?;
    // Warnings and remarks about a child are reported when the child's own file is checked.
    applied.lowered.diagnostics.retain(Diagnostic::is_error);
    transform::place(&mut applied.lowered.pipeline, &spans);
    Ok(applied)
}

/// The rule name of the diagnostics of this module.
const RULE: &str = "child_pipeline";

/// Reports a node that runs a child pipeline but does not name one.
pub fn names_none(node: &Node) -> Diagnostic {
    let message = format!("`{}` runs a child pipeline, but does not name its file", node.id);
    fault(node, message, "add `stack.child_dotfile=\"children/build.dot\"`")
}

fn fault(node: &Node, message: impl Into<String>, help: impl Into<String>) -> Diagnostic {
    Diagnostic::error(RULE, message.into(), node.span).with_node(node.id.as_str()).with_help(help.into())
}
