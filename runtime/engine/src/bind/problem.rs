//! Why a pipeline could not be bound: three classes, one exit code each.

use crate::components::PluginProblem;
use crate::plan::PolicyProblem;
use glovebox_pipeline::diagnostic::Diagnostic;
use std::fmt;

/// Everything that stands against a plan.
#[derive(Debug, Default)]
pub struct BindErrors {
    /// What is wrong in the pipeline's file; warnings are among them.
    pub diagnostics: Vec<Diagnostic>,
    /// Plugins that are not what was agreed to.
    pub plugins: Vec<PluginProblem>,
    /// Commands that nothing would confine as the operator demands.
    pub policy: Option<Box<PolicyProblem>>,
}

/// Which exit code the errors mean (design §9 #16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindClass {
    /// Exit 3: the pipeline's file.
    Invalid,
    /// Exit 7: a plugin.
    Plugin,
    /// Exit 6: the operator's policy.
    Policy,
}

impl BindErrors {
    /// True when nothing stands against the plan.
    pub fn is_empty(&self) -> bool {
        !self.diagnostics.iter().any(Diagnostic::is_error) && self.plugins.is_empty() && self.policy.is_none()
    }

    /// The class that decides the exit code: the file first, then plugins, then policy.
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
        let diagnostics = self.diagnostics.iter().filter(|d| d.is_error()).map(|d| d.message.clone());
        let plugins = self.plugins.iter().map(|problem| problem.message.clone());
        let policy = self.policy.iter().map(ToString::to_string);
        let lines: Vec<String> = diagnostics.chain(plugins).chain(policy).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for BindErrors {}
