//! The languages in which a plugin can be written, and the worlds of the WIT package. Each language has a template of each world.
//!
//! To add a language, add it here: the compiler names what else must change in `authoring/`. Then add its templates in
//! `runtime/cli/templates/`, its tools in `xtask/src/plugin_tools.rs`, its row in `tests/plugin_languages.rs`, and its page in `docs/`.

use clap::ValueEnum;
use serde::Deserialize;

/// A language of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Rust, with the SDK.
    Rust,
    /// JavaScript, on QuickJS.
    #[value(name = "js")]
    #[serde(rename = "js")]
    JavaScript,
    /// Python, on CPython.
    Python,
    /// C, with generated bindings.
    C,
}

/// A world of the WIT package: what a component imports and exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum World {
    /// Files, without a model and without commands.
    Handler,
    /// A handler with a model, commands and tools.
    Agent,
    /// A handler that judges with commands, and has no model.
    Verifier,
    /// Tools for agents.
    ToolProvider,
    /// Lint rules and transforms of the graph.
    Rules,
    /// An organisation's policy over tool calls and edges.
    Policy,
}

impl Language {
    /// Returns the name for messages.
    pub fn title(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::JavaScript => "JavaScript",
            Self::Python => "Python",
            Self::C => "C",
        }
    }

    /// Returns the name in `plugin.toml` and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::JavaScript => "js",
            Self::Python => "python",
            Self::C => "c",
        }
    }

    /// Returns the command that brings the tools of the language, to be run in a project.
    pub fn install(self) -> &'static str {
        match self {
            Self::Rust => "rustup target add wasm32-wasip2",
            Self::JavaScript => "npm install",
            Self::Python => "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
            Self::C => "apt install clang lld wasi-libc libclang-rt-dev-wasm32",
        }
    }
}

impl World {
    /// Returns the name in the WIT package.
    pub fn name(self) -> &'static str {
        match self {
            Self::Handler => "handler",
            Self::Agent => "agent",
            Self::Verifier => "verifier",
            Self::ToolProvider => "tool-provider",
            Self::Rules => "rules",
            Self::Policy => "policy",
        }
    }

    /// Returns the interfaces of the WIT package with functions that a component of the world may import.
    pub fn imports(self) -> &'static [&'static str] {
        match self {
            Self::Handler | Self::ToolProvider => &["files", "control"],
            Self::Agent => &["files", "control", "llm", "exec", "tools", "agents", "human"],
            // The operator may grant a verifier to read files.
            Self::Verifier => &["files", "control", "exec"],
            Self::Rules | Self::Policy => &[],
        }
    }

    /// Returns true if a component of the world executes nodes, so that it can have cases.
    pub fn is_stage(self) -> bool {
        self.export() == "stage"
    }

    /// Returns the interface that a component of the world exports.
    pub fn export(self) -> &'static str {
        match self {
            Self::Handler | Self::Agent | Self::Verifier => "stage",
            Self::ToolProvider => "tool",
            Self::Rules => "graph-rules",
            Self::Policy => "policy-rules",
        }
    }
}
