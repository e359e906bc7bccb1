//! `glovebox plan --run RUN`: what the plan of a run allowed, as its record has it.
//!
//! Nothing is bound again: a run keeps what its plan allowed, and no change of the project or of its configuration since
//! then is in the answer. If a resume made another plan, this is the last one.

use crate::exit::Stop;
use crate::runs::RunFolder;
use crate::runs::journal;
use crate::runs::recorded;
use crate::terminal::{self, visible};
use glovebox_plan::plan::{CapabilityLists, CapabilitySet};
use glovebox_record::{Digest, NodeId, RunBounds};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The document that `plan --run RUN --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "run-plan.json")]
pub struct RunPlanFile {
    /// Version of this document.
    schema_version: u32,
    /// Id of the run.
    run_id: String,
    /// Number of the record with the plan: 1, or that of the last resume with another plan.
    record: u64,
    /// Digest of the plan, as `glovebox plan --json` prints it.
    plan_digest: Digest,
    /// Name of the pipeline.
    pipeline: String,
    /// Digest of the pipeline's source.
    pipeline_digest: Digest,
    /// Source of model answers: `scripted`, `live` or `simulated`.
    model: String,
    /// Sandbox tier of commands when the run began; `none` if no stage runs commands.
    sandbox_tier: String,
    /// Bounds of the whole run, with those that a resume changed.
    #[serde(flatten)]
    bounds: RunBounds,
    /// Digest of each component that executes nodes, by handler. Absent without components.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    components: BTreeMap<String, Digest>,
    /// Nodes that could read hold-outs; absent if the run has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    holdout_readers: Option<Vec<String>>,
    /// Capabilities of all nodes together, and of the run as a whole.
    #[serde(flatten)]
    run: Allowed,
    /// The nodes, by id.
    nodes: Vec<RunPlanNode>,
}

/// A node of the plan of a run.
#[derive(Debug, Serialize, JsonSchema)]
struct RunPlanNode {
    /// Id of the node.
    id: NodeId,
    /// What the node could do.
    #[serde(flatten)]
    own: Allowed,
}

/// What a node, or a run, could do.
#[derive(Debug, Serialize, JsonSchema)]
struct Allowed {
    /// What could be read, written, executed, reached and asked.
    could: CapabilityLists,
    /// Every capability as one line of text, with those that `could` has no list for, such as limits and variables.
    capabilities: Vec<String>,
}

impl Allowed {
    fn new(capabilities: &CapabilitySet) -> Self {
        Self { could: CapabilityLists::from_set(capabilities), capabilities: capabilities.lines() }
    }
}

/// Returns what the plan of a run allowed.
pub fn document(run: &RunFolder) -> Result<RunPlanFile, Stop> {
    let records = journal::open_to_show(run)?.close().records;
    let mut terms = journal::beginning(run, &records)?.clone();
    let mut record = 1;
    for (seq, resumed) in records.iter().filter_map(|record| Some((record.seq, record.event.run_resumed()?))) {
        terms = terms.resumed(resumed);
        if let Some(replanned) = &resumed.replanned {
            record = seq;
            terms.model.provider = replanned.model.clone().unwrap_or(terms.model.provider);
        }
    }
    let allowed = recorded::allowed(run, &terms)?;
    let nodes = allowed.nodes.iter().map(|(id, own)| RunPlanNode { id: id.clone(), own: Allowed::new(own) });
    Ok(RunPlanFile {
        schema_version: 1,
        run_id: run.id.clone(),
        record,
        plan_digest: terms.plan.digest,
        pipeline: terms.pipeline.name,
        pipeline_digest: terms.pipeline.digest,
        model: terms.model.provider,
        sandbox_tier: terms.commands.tier,
        bounds: terms.bounds,
        components: terms.plan.components,
        holdout_readers: terms.workspace.holdouts.map(|sealed| sealed.reach),
        run: Allowed::new(&allowed.run),
        nodes: nodes.collect(),
    })
}

/// Renders the plan of a run as text.
pub(super) fn render(plan: &RunPlanFile) -> String {
    let (id, pipeline) = (visible::line(&plan.run_id), visible::line(&plan.pipeline));
    let since = if plan.record == 1 { String::new() } else { format!(", since record {}", plan.record) };
    let wall =
        plan.bounds.wall_max_ms.map(|wall| format!(", at most {}", terminal::duration(wall))).unwrap_or_default();
    let (model, tier) = (visible::line(&plan.model), visible::line(&plan.sandbox_tier));
    let mut text = format!(
        "plan of run {id}{since}: {pipeline}, at most {} steps{wall}, model {model}, sandbox {tier}\nall nodes\n",
        plan.bounds.steps_max
    );
    let add = |text: &mut String, allowed: &Allowed| {
        allowed.capabilities.iter().for_each(|line| text.push_str(&format!("  {}\n", visible::line(line))));
    };
    add(&mut text, &plan.run);
    for node in &plan.nodes {
        text.push_str(&format!("{}\n", visible::line(node.id.as_str())));
        add(&mut text, &node.own);
    }
    text
}
