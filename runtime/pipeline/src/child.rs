//! Child pipelines: the stages of a node that runs another pipeline (spec §4.11, §9.4), as part of the pipeline around it.
//!
//! The node becomes a parallel node with one branch, which has the child's stages. A fan-in behind them takes their changes. So grants, plan,
//! budgets, cancellation and resume apply to a child as to any stage. [`splice`] works on graphs with final values and returns canonical
//! text, which a run keeps. Settings that a child omits come from the outer pipeline; a setting that cannot apply to a part is refused.

mod part;

use crate::diagnostic::Diagnostic;
use crate::ir::{Node, NodeId, Pipeline};
use crate::transform::{self, SettledGraph, TransformedGraph};
use part::Part;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most stages of a pipeline with its children.
pub const STAGES_MAX: usize = 10_000;

/// Puts the stages of children into a pipeline. `children` has a checked pipeline for each node that [`Node::wants_child`].
///
/// # Errors
/// The settings of a child that cannot apply to a part of a pipeline, at the node that runs the child.
pub fn splice(
    parent: &Pipeline,
    children: &BTreeMap<NodeId, Arc<Pipeline>>,
) -> Result<TransformedGraph, Vec<Diagnostic>> {
    let mut graph = SettledGraph::from_pipeline(parent);
    let mut faults = Vec::new();
    // The places of new stages in the user's file.
    let mut spans = BTreeMap::new();
    for node in &parent.nodes {
        let Some(child) = children.get(&node.id) else { continue };
        match Part::new(parent, node, child).and_then(|part| part.put_into(&mut graph)) {
            Ok(added) => spans.extend(added.into_iter().map(|id| (id, node.span))),
            Err(found) => faults.extend(found),
        }
        if graph.nodes.len() > STAGES_MAX {
            let message = format!("with its child pipelines it has more than {STAGES_MAX} stages");
            faults.push(fault(node, message, "run the larger part as a pipeline of its own"));
            break;
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let unread =
        |reason| vec![Diagnostic::error(RULE, format!("its child pipelines cannot be put in: {reason}"), parent.span)];
    let mut applied = transform::apply(parent, &graph).map_err(unread)?;
    // Advice is given in the file that it is about.
    applied.lowered.diagnostics.retain(Diagnostic::is_error);
    transform::place(&mut applied.lowered.pipeline, &spans);
    Ok(applied)
}

/// The rule of these findings.
const RULE: &str = "child_pipeline";

/// Reports a node without a child to run.
pub fn names_none(node: &Node) -> Diagnostic {
    let message = format!("`{}` runs a child pipeline and names none", node.id);
    fault(node, message, "add `stack.child_dotfile=\"children/build.dot\"`")
}

fn fault(node: &Node, message: impl Into<String>, help: impl Into<String>) -> Diagnostic {
    Diagnostic::error(RULE, message.into(), node.span).with_node(node.id.as_str()).with_help(help.into())
}
