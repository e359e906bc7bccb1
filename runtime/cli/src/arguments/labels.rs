//! The flag for the labels of this machine, in the commands that plan, start or continue runs.

use clap::Args;
use glovebox_record::Label;
use std::collections::BTreeSet;

/// The labels of this machine.
#[derive(Debug, Clone, Default, Args)]
pub struct LabelArguments {
    /// A label of this machine, such as `gpu`, for stages that need it with `runs_on`. Repeatable
    #[arg(long = "label", value_name = "LABEL")]
    pub labels: Vec<Label>,
}

impl LabelArguments {
    /// Returns each label once.
    pub fn set(&self) -> BTreeSet<Label> {
        self.labels.iter().cloned().collect()
    }

    /// Returns the words of a command line with these labels.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.labels.iter().flat_map(|label| ["--label", label.as_str()])
    }
}
