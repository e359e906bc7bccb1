//! Where the stages of a plan may run: what each asks of a machine, and what this machine lacks of it.
//!
//! A need narrows the machines of a stage and grants nothing. The needs are part of the plan's digest. What a machine lacks
//! depends on the machine, and is not.

use crate::config::{ExecSetting, Toolchain};
use glovebox_pipeline::ir::NodeId;
use glovebox_record::placement::{Lack, MachineFacts};
use glovebox_record::{Arch, Need};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of stages that a message names.
const STAGES_SHOWN_MAX: usize = 5;

/// Where commands of a run find programs, besides the system's folders.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramFolders {
    /// Toolchains that each machine finds by itself.
    pub toolchains: Vec<Toolchain>,
    /// Absolute folders.
    pub path: Vec<String>,
    /// The absolute folder of a Python environment.
    pub venv: Option<String>,
}

impl From<&ExecSetting> for ProgramFolders {
    fn from(exec: &ExecSetting) -> Self {
        let venv = exec.venv.as_ref().map(|venv| venv.path.clone());
        Self { toolchains: exec.toolchains.clone(), path: exec.path.clone(), venv }
    }
}

/// What the stages of a plan ask of their machines. The default is nothing.
#[derive(Debug, Clone, Default)]
pub struct PlannedPlacement {
    /// The need of each stage that has one, of project, graph and node together. A verification is a stage of its own.
    pub needs: BTreeMap<NodeId, Arc<Need>>,
    /// The stages that this machine cannot run. Empty in a plan that runs here.
    pub unmet: Vec<UnmetNeed>,
    /// How long the next stage of a branch waits for the machine that made the last one. `None` for the default.
    pub wait_warm: Option<Duration>,
    /// Where the programs of needs are looked for.
    pub program_folders: ProgramFolders,
}

/// A stage that a machine cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmetNeed {
    /// The stage.
    pub node: NodeId,
    /// What the machine lacks; never empty.
    pub lacks: Vec<Lack>,
}

impl PlannedPlacement {
    /// Returns what a stage asks of its machine. `None` for nothing.
    pub fn need(&self, node: &NodeId) -> Option<&Need> {
        self.needs.get(node).map(Arc::as_ref)
    }

    /// Returns the stages that a machine cannot run, by id. A verification that lacks the same as its stage is left out.
    pub fn unmet_on(&self, machine: &MachineFacts) -> Vec<UnmetNeed> {
        let is_shared = |node: &NodeId, need: &Arc<Need>| {
            let stage = node.verified().and_then(|stage| self.needs.get(&NodeId::new(stage)));
            stage.is_some_and(|of_stage| of_stage == need)
        };
        let own = self.needs.iter().filter(|(node, need)| !is_shared(node, need));
        let unmet = own.map(|(node, need)| UnmetNeed { node: node.clone(), lacks: machine.lacking(need) });
        unmet.filter(|unmet| !unmet.lacks.is_empty()).collect()
    }

    pub(super) fn printed(&self) -> Vec<PlanLacking<'_>> {
        self.unmet.iter().map(PlanLacking::new).collect()
    }
}

/// A stage that this machine cannot run, in a printed plan.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanLacking<'a> {
    /// The node's id.
    pub node: &'a str,
    /// What this machine lacks, such as "label `gpu`".
    pub lacks: Vec<String>,
}

impl<'a> PlanLacking<'a> {
    fn new(unmet: &'a UnmetNeed) -> Self {
        Self { node: unmet.node.as_str(), lacks: unmet.lacks.iter().map(ToString::to_string).collect() }
    }
}

/// The stages that a machine cannot run, as a message.
#[derive(Debug, Clone, Copy)]
pub struct UnmetNeeds<'a>(pub &'a [UnmetNeed]);

impl UnmetNeeds<'_> {
    /// Returns what the operator can do, one possibility per line.
    pub fn help(self) -> String {
        let lacks = || self.0.iter().flat_map(|unmet| &unmet.lacks);
        let mut labels: Vec<String> = lacks().filter_map(label).collect();
        labels.sort();
        labels.dedup();
        let labels = (!labels.is_empty()).then(|| format!("add {}, if this machine has it", labels.join(" ")));
        let archs: Option<Arch> = lacks().find_map(arch);
        let arch = archs.map(|arch| format!("run it on a machine with `arch={arch}`"));
        let has_tier = lacks().any(|lack| matches!(lack, Lack::Tier { .. }));
        let tier = has_tier.then(|| "`glovebox doctor` shows how this machine gets a higher tier".to_owned());
        let has_program = lacks().any(|lack| matches!(lack, Lack::Program(_)));
        let folder = "commands find programs in the system's folders, and in those of `toolchains`, `venv` and `path` under `[exec]` in glovebox.toml";
        let program = has_program.then(|| folder.to_owned());
        labels.into_iter().chain(arch).chain(tier).chain(program).collect::<Vec<_>>().join("\n")
    }
}

fn label(lack: &Lack) -> Option<String> {
    match lack {
        Lack::Label(label) => Some(format!("`--label {label}`")),
        Lack::Arch { .. } | Lack::Tier { .. } | Lack::Program(_) => None,
    }
}

fn arch(lack: &Lack) -> Option<Arch> {
    match lack {
        Lack::Arch { needed, .. } => Some(*needed),
        Lack::Label(_) | Lack::Tier { .. } | Lack::Program(_) => None,
    }
}

impl fmt::Display for UnmetNeeds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this machine cannot run every stage: ")?;
        for (index, unmet) in self.0.iter().take(STAGES_SHOWN_MAX).enumerate() {
            let lacks: Vec<String> = unmet.lacks.iter().map(ToString::to_string).collect();
            let before = if index == 0 { "" } else { "; " };
            write!(f, "{before}`{}` needs {}", unmet.node, lacks.join(", "))?;
        }
        match self.0.len().saturating_sub(STAGES_SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}
