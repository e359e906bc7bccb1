//! Why a pipeline could not be bound: three classes of errors, each with its exit code.

use crate::components::PluginProblem;
use crate::plan::{PolicyProblem, UnmetNeed, UnmetNeeds};
use glovebox_pipeline::diagnostic::Diagnostic;
use std::fmt;

/// All reasons why a pipeline has no plan.
#[derive(Debug, Default)]
pub struct BindErrors {
    /// The diagnostics of the pipeline file, including warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// Plugins that may not run.
    pub plugins: Vec<PluginProblem>,
    /// Why no sandbox confines commands as the operator requires. `None` if a sandbox does so.
    pub policy: Option<Box<PolicyProblem>>,
    /// The stages that this machine cannot run.
    pub unmet: Vec<UnmetNeed>,
}

/// The class of errors that decides the exit code (decision exit-codes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindClass {
    /// Exit 3: an error in the pipeline file.
    Invalid,
    /// Exit 7: a plugin may not run.
    Plugin,
    /// Exit 6: the operator's policy is not met, or this machine lacks what a stage needs.
    Policy,
}

impl BindErrors {
    /// Returns true if there is no error.
    pub fn is_empty(&self) -> bool {
        !self.diagnostics.iter().any(Diagnostic::is_error) && self.plugins.is_empty() && self.policy_message().is_none()
    }

    /// Returns why the operator's policy or the needs of stages are not met here. `None` if they are met.
    pub fn policy_message(&self) -> Option<String> {
        let unmet = (!self.unmet.is_empty()).then(|| UnmetNeeds(&self.unmet).to_string());
        let policy = self.policy.as_ref().map(ToString::to_string);
        let parts: Vec<String> = unmet.into_iter().chain(policy).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Returns what the operator can do about [`BindErrors::policy_message`], one possibility per line.
    pub fn policy_help(&self) -> String {
        let unmet = (!self.unmet.is_empty()).then(|| UnmetNeeds(&self.unmet).help());
        unmet.into_iter().chain(self.policy.as_ref().map(|policy| policy.help())).collect::<Vec<_>>().join("\n")
    }

    /// Returns the class that decides the exit code. An error in the pipeline file comes first, then plugins, then policy.
    pub fn class(&self) -> BindClass {
        if self.diagnostics.iter().any(Diagnostic::is_error) {
            BindClass::Invalid
        } else if !self.plugins.is_empty() {
            BindClass::Plugin
        } else {
            BindClass::Policy
        }
    }
}

impl fmt::Display for BindErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = self.policy_message();
        let diagnostics = self.diagnostics.iter().filter(|found| found.is_error()).map(|found| found.message.as_str());
        let plugins = self.plugins.iter().map(|problem| problem.message.as_str());
        let lines: Vec<&str> = diagnostics.chain(plugins).chain(policy.as_deref()).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for BindErrors {}
