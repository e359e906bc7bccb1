//! A parallel node as a plan shows it: how many branches begin, how many run at a time, and what lets the parallel node succeed; or the child pipeline
//! that is its one branch.

use glovebox_pipeline::ir::{Handler, Node, NodeId, Pipeline};
use glovebox_pipeline::keyed::Text;
use schemars::JsonSchema;
use serde::Serialize;

/// How the branches of a parallel node run and end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanParallel {
    /// How many there are.
    pub branches: usize,
    /// Most of them at a time. The run's bound counts the stages of all parallel nodes together.
    pub max_parallel: u32,
    /// `wait_all`, `first_success`, `k_of_n` or `quorum`.
    pub join_policy: &'static str,
    /// How many must succeed at least.
    pub needed: usize,
    /// `continue`, `fail_fast` or `ignore`.
    pub error_policy: &'static str,
    /// The child pipeline that is its one branch; absent for any other parallel node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<PlanChild>,
}

/// A child pipeline. Its stages have the name of the node, two underscores and their own name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanChild {
    /// Its file, from the folder of the file that names it.
    pub file: String,
    /// How many nodes it has, those of its own children included.
    pub nodes: usize,
    /// The keys of the context that it begins with.
    pub context_in: Vec<String>,
    /// The keys of its context that come back.
    pub context_out: Vec<String>,
    /// Most nodes that it may visit; absent without a bound of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_max: Option<u64>,
    /// How a supervisor looks at it; absent for a node that only runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervision: Option<PlanSupervision>,
}

/// How a supervisor looks at its child pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanSupervision {
    /// Milliseconds between two looks.
    pub interval_ms: u64,
    /// Most looks.
    pub cycles_max: u32,
    /// What ends the child early; absent without a condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_condition: Option<String>,
    /// True if it says something to the models of its child.
    pub steers: bool,
}

impl PlanParallel {
    /// None for a node that is not a parallel node.
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

/// True for a stage of a node's child, or of a child of that.
fn is_inside(pipeline: &Pipeline, stage: &Node, owner: &NodeId) -> bool {
    let mut around = stage.child_of.as_ref();
    while let Some(node) = around.filter(|node| *node != owner) {
        around = pipeline.node(node).and_then(|node| node.child_of.as_ref());
    }
    around.is_some()
}
