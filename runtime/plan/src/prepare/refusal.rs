//! Why a plan cannot be prepared.

use super::findings::Findings;
use crate::components::PluginProblem;
use glovebox_pipeline::diagnostic::Severity;
use std::fmt;

/// The kind of a refusal. The command line ends with the exit code of the same name (`docs/exit-codes.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Something that the user named does not exist or cannot be read.
    Usage,
    /// A pipeline or a configuration is not valid.
    Invalid,
    /// A grant is missing, or the machine cannot confine what the plan starts.
    Policy,
    /// A plugin is missing, not in the lock file, or broken.
    Plugin,
    /// A model or a tool server cannot be asked.
    Provider,
    /// The current files differ from what a run recorded.
    Mismatch,
    /// A bug in Glovebox.
    Internal,
}

/// Why a plan cannot be prepared, with every problem that was found.
#[derive(Debug)]
pub struct Refusal {
    /// The kind of the refusal.
    pub class: Class,
    /// One line: what is wrong, where, and what was expected. Empty if `findings` or `plugins` say all of it.
    pub message: String,
    /// A command or a value to paste.
    pub help: Option<String>,
    /// The findings of a file.
    pub findings: Option<Box<Findings>>,
    /// Components that may not run.
    pub plugins: Vec<PluginProblem>,
}

impl Refusal {
    /// Creates a refusal with a message.
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), help: None, findings: None, plugins: Vec::new() }
    }

    /// Adds what the user can do.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Creates a refusal for a file that could not be read or written.
    pub fn io(what: impl fmt::Display, source: &std::io::Error) -> Self {
        Self::new(Class::Usage, format!("{what}: {source}"))
    }

    /// Creates a refusal for a file with errors.
    pub fn for_findings(findings: Findings) -> Self {
        let count = findings.count(Severity::Error);
        let noun = if count == 1 { "error" } else { "errors" };
        let message = format!("`{}` has {count} {noun}", findings.file);
        Self { findings: Some(Box::new(findings)), ..Self::new(Class::Invalid, message) }
    }

    /// Creates a refusal for components that may not run.
    pub fn for_plugins(plugins: Vec<PluginProblem>) -> Self {
        Self { plugins, ..Self::new(Class::Plugin, "") }
    }
}

/// Something that a user should know before a run and that does not prevent the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What is wrong.
    pub problem: String,
    /// What the user can do about it.
    pub help: String,
}
