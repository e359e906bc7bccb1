//! Settings of the operator's `[verify]` for this stage. The host determined them before the first stage, and no stage can change them.

use glovebox_plugin_sdk::{Stage, Value};
use std::collections::BTreeMap;

/// The commands of one phase.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Phase {
    /// Commands of the verify contract for this role and change.
    pub(crate) contract: Vec<String>,
    /// Fallback commands for the kind of project.
    pub(crate) fallback: Vec<String>,
    /// Maximum number of commands that are added.
    pub(crate) commands_max: usize,
}

/// Settings of a stage.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// True if the stage fails without a plan.
    pub(crate) needs_plan: bool,
    /// The phase that completes the plan.
    pub(crate) planner: Phase,
    /// True if the phase `planner` also completes a plan that already has commands.
    pub(crate) augment_nonempty: bool,
    /// The phase after `planner`.
    pub(crate) worker: Phase,
    /// True if a command of the phase `worker` that cannot run is left out.
    pub(crate) skips_invalid: bool,
    /// Maximum number of adjustments of the list.
    pub(crate) recovery_attempts: u64,
    /// True if a command of the plan may be dropped.
    pub(crate) recovers_explicit: bool,
    /// State of the project at the beginning of the run.
    pub(crate) base: Base,
}

/// Files in the working directory of the commands, at the beginning of the run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Base {
    /// The files that the run has changed since, by name.
    pub(crate) files: BTreeMap<String, BaseFile>,
    /// True if there was a test file.
    pub(crate) has_tests: bool,
}

/// A file at the beginning of the run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BaseFile {
    Absent,
    Unreadable,
    Text(String),
}

impl Settings {
    /// Reads the settings of a stage, or `None` if the operator has no `[verify]`. A missing field has its default, which allows nothing.
    pub(crate) fn for_stage(stage: &Stage) -> Option<Self> {
        let told: Value = stage.extra("verify")?.parse().ok()?;
        let flag = |name: &str| told[name].as_bool().unwrap_or_default();
        Some(Self {
            needs_plan: flag("needs_plan"),
            planner: phase(&told["planner"]),
            augment_nonempty: flag("augment_nonempty"),
            worker: phase(&told["worker"]),
            skips_invalid: flag("skips_invalid"),
            recovery_attempts: told["recovery_attempts"].as_u64().unwrap_or_default(),
            recovers_explicit: flag("recovers_explicit"),
            base: base(&told["base"]),
        })
    }

    /// Returns the commands of the verify contract for this role and change.
    pub(crate) fn contract(&self) -> impl Iterator<Item = &String> {
        self.planner.contract.iter().chain(&self.worker.contract)
    }
}

/// Reads the files of the base. A file in an unknown form is treated as unreadable.
fn base(told: &Value) -> Base {
    let files = told["files"].as_object().into_iter().flatten();
    let files = files.map(|(name, file)| {
        let file = match (file.as_str(), file["text"].as_str()) {
            (_, Some(text)) => BaseFile::Text(text.to_owned()),
            (Some("absent"), _) => BaseFile::Absent,
            _ => BaseFile::Unreadable,
        };
        (name.clone(), file)
    });
    Base { files: files.collect(), has_tests: told["has_tests"].as_bool().unwrap_or(true) }
}

fn phase(told: &Value) -> Phase {
    let lines = |name: &str| {
        let lines = told[name].as_array().into_iter().flatten();
        lines.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let commands_max = told["commands_max"].as_u64().and_then(|most| usize::try_from(most).ok());
    Phase { contract: lines("contract"), fallback: lines("fallback"), commands_max: commands_max.unwrap_or_default() }
}
