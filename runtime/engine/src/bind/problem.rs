//! Why a pipeline could not be bound: three classes, one exit code each.

use crate::config::sandbox::Tier;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::NodeId;
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

/// A plugin that may not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginProblem {
    /// The handler type.
    pub name: String,
    /// The thing, the place, the expected.
    pub message: String,
    /// How to mend it.
    pub help: Option<String>,
}

/// Nodes whose commands cannot be run as the operator's policy demands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyProblem {
    /// The nodes, by id.
    pub nodes: Vec<NodeId>,
    /// What the policy demands.
    pub kind: PolicyKind,
}

/// What of the policy is not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyKind {
    /// The machine's walls are too low.
    TierTooLow {
        /// The highest tier the machine can enforce, if any.
        available: Option<Tier>,
        /// The least the run accepts.
        require: Tier,
        /// Why there is no higher tier; may be empty.
        why: String,
        /// What to do about it; may be empty.
        remedy: String,
    },
    /// The tier cannot keep commands to a proxy.
    NoProxy(Tier),
    /// The tier cannot run the program of `verify_subject` apart from the nodes' own commands.
    NoSubject(Tier),
    /// The run has hold-outs, and commands were to run without walls.
    HoldoutsOpen,
}

impl PolicyProblem {
    /// What to do about it, one way per line.
    pub fn help(&self) -> String {
        let mut ways = Vec::new();
        match &self.kind {
            PolicyKind::TierTooLow { available, remedy, .. } => {
                ways.extend((!remedy.is_empty()).then(|| remedy.clone()));
                if let Some(tier) = available.filter(|tier| *tier != Tier::Unconfined) {
                    ways.push(format!("accept less with `require = \"{tier}\"` under `[sandbox]` in glovebox.toml"));
                }
                ways.push("`glovebox doctor` shows what this machine can enforce".to_owned());
                ways.push("run with `--dangerously-no-sandbox` if the commands and whatever they build may do all that you may".to_owned());
            }
            PolicyKind::HoldoutsOpen => {
                ways.push(
                    "run without `--dangerously-no-sandbox`; `glovebox doctor` shows what this machine can enforce"
                        .to_owned(),
                );
            }
            PolicyKind::NoSubject(_) => {
                ways.push("`verify_subject` needs the tier `bwrap`, `verify_subject_port` the tier `full`".to_owned());
                ways.push("`glovebox doctor` shows how this machine gets a higher tier".to_owned());
            }
            PolicyKind::NoProxy(_) => {
                ways.push(
                    "set `network=\"none\"` on the nodes, or `network = \"none\"` under `[sandbox]` in glovebox.toml"
                        .to_owned(),
                );
                ways.push("`glovebox doctor` shows how this machine gets a higher tier".to_owned());
            }
        }
        ways.join("\n")
    }
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.nodes.iter().map(|node| format!("`{node}`")).collect::<Vec<_>>().join(", ");
        match &self.kind {
            PolicyKind::TierTooLow { available, require, why, .. } => {
                match available {
                    Some(tier) => write!(f, "this machine can enforce `{tier}`, the run requires `{require}`")?,
                    None => write!(f, "this machine can enforce no sandbox, the run requires `{require}`")?,
                }
                if !why.is_empty() {
                    write!(f, ": {why}")?;
                }
                write!(f, " (commands of {nodes})")
            }
            PolicyKind::HoldoutsOpen => {
                write!(f, "the run has hold-outs, which commands without a sandbox could read: {nodes}")
            }
            PolicyKind::NoSubject(tier) => {
                write!(
                    f,
                    "tier `{tier}` cannot keep the program of `verify_subject` apart from the commands of {nodes}"
                )
            }
            PolicyKind::NoProxy(tier) => {
                write!(f, "tier `{tier}` cannot keep commands to a proxy, which these nodes are granted: {nodes}")
            }
        }
    }
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
