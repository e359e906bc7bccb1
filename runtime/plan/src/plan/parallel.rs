//! A parallel node in a printed plan: how many branches it begins, how many run at a time, and when the parallel node
//! succeeds. A node that runs a child pipeline is a parallel node with one branch.

use glovebox_pipeline::ir::{Handler, Node, NodeId, Pipeline};
use glovebox_pipeline::keyed::Text;
use schemars::JsonSchema;
use serde::Serialize;

/// How the branches of a parallel node run and end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanParallel {
    /// Number of branches.
    pub branches: usize,
    /// Maximum number of branches at a time. The run's own limit counts the stages of all parallel nodes together.
    pub max_parallel: u32,
    /// The join policy: `wait_all`, `first_success`, `k_of_n` or `quorum`.
    pub join_policy: &'static str,
    /// Minimum number of branches that must succeed.
    pub needed: usize,
    /// The error policy: `continue`, `fail_fast` or `ignore`.
    pub error_policy: &'static str,
    /// The child pipeline that is the only branch. Absent for any other parallel node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<PlanChild>,
}

/// A child pipeline. The id of each of its stages is the id of the node, two underscores and the stage's own id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanChild {
    /// The path of the child's file, relative to the folder of the file that names it.
    pub file: String,
    /// Number of nodes of the child, including those of its own children.
    pub nodes: usize,
    /// The context keys that the child gets at its start.
    pub context_in: Vec<String>,
    /// The context keys that are copied back from the child.
    pub context_out: Vec<String>,
    /// Maximum number of nodes that the child may visit. Absent if it has no limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_max: Option<u64>,
    /// How a supervisor observes the child. Absent for a node that only runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervision: Option<PlanSupervision>,
}

/// How a supervisor observes its child pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanSupervision {
    /// Milliseconds between two observations.
    pub interval_ms: u64,
    /// Maximum number of observations.
    pub cycles_max: u32,
    /// The condition that ends the child early. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_condition: Option<String>,
    /// True if the supervisor sends messages to the models of its child.
    pub steers: bool,
}

impl PlanParallel {
    /// Returns the branches of a parallel node. `None` for any other node.
    pub(super) fn for_node(pipeline: &Pipeline, node: &Node) -> Option<Self> {
        let setting = Some(&node.parallel).filter(|_| node.handler == Handler::Parallel)?;
        let branches = pipeline.outgoing(&node.id).count();
        Some(Self {
            branches,
            max_parallel: setting.parallel_max,
            join_policy: setting.join.as_str(),
            needed: setting.join.needed(branches),
            error_policy: setting.error.as_str(),
            child: PlanChild::for_node(pipeline, node),
        })
    }
}

impl PlanChild {
    fn for_node(pipeline: &Pipeline, node: &Node) -> Option<Self> {
        let child = node.child.as_deref()?;
        let keys = |keys: &[Text]| keys.iter().map(ToString::to_string).collect();
        let supervision = child.supervision.as_ref().map(|supervision| PlanSupervision {
            interval_ms: u64::try_from(supervision.interval.as_millis()).unwrap_or(u64::MAX),
            cycles_max: supervision.cycles_max,
            stop_condition: supervision.stop.as_ref().map(|stop| stop.text.to_string()),
            steers: supervision.steering.is_some(),
        });
        Some(Self {
            file: child.file.to_string(),
            nodes: pipeline.nodes.iter().filter(|stage| is_inside(pipeline, stage, &node.id)).count(),
            context_in: keys(&child.context_in),
            context_out: keys(&child.context_out),
            steps_max: child.steps_max,
            supervision,
        })
    }
}

/// Returns true if the stage belongs to the node's child, or to a child of that child.
fn is_inside(pipeline: &Pipeline, stage: &Node, owner: &NodeId) -> bool {
    let mut around = stage.child_of.as_ref();
    while let Some(node) = around.filter(|node| *node != owner) {
        around = pipeline.node(node).and_then(|node| node.child_of.as_ref());
    }
    around.is_some()
}
