//! Why a component cannot be loaded, and how to fix it.

use crate::inspect::{Import, InspectError};
use crate::interfaces::{ImportState, PLUGIN_VERSION};

/// Why a component cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The component is larger than the limit.
    #[error("the component has {bytes} bytes, expected at most {limit} (limit `component_bytes`)")]
    TooLarge {
        /// Size of the component.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The bytes cannot be read as a component.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// The component has imports that this host does not provide; all of them are listed.
    #[error("the component imports interfaces that this host does not provide:{}", imports_text(.0))]
    Imports(Vec<Import>),
    /// The component exports no stage. The list contains its exports.
    #[error("the component exports no `glovebox:plugin/stage@0.1.0`, so it cannot be a handler; it exports {}", exports_text(.0))]
    NoStage(Vec<String>),
    /// The component was built against a later version of the plugin interface.
    #[error("the component needs `glovebox:plugin` {needed}, and this host has {PLUGIN_VERSION}")]
    TooNew {
        /// The version that the component needs.
        needed: String,
    },
    /// The component exports no rules. The list contains its exports.
    #[error("the component exports no `glovebox:plugin/graph-rules@0.1.0`, so it has no rules; it exports {}", exports_text(.0))]
    NoRules(Vec<String>),
    /// The component is a rule plugin with imports, which are not allowed. The list contains the imports.
    #[error("the component imports {}: rules must not import anything", exports_text(.0))]
    RulesImport(Vec<String>),
    /// The component exports no policy. The list contains its exports.
    #[error("the component exports no `glovebox:plugin/policy-rules@0.1.0`, so it is no policy; it exports {}", exports_text(.0))]
    NoPolicy(Vec<String>),
    /// The component is a policy with imports, which are not allowed. The list contains the imports.
    #[error("the component imports {}: a policy must not import anything", exports_text(.0))]
    PolicyImport(Vec<String>),
    /// The component exports no tools. The list contains its exports.
    #[error("the component exports no `glovebox:plugin/tool@0.1.0`, so it provides no tools; it exports {}", exports_text(.0))]
    NoTools(Vec<String>),
    /// The component is a tool provider and imports interfaces of other worlds. The list contains these imports.
    #[error("the component imports {}: a tool provider may import only `files` and `control`", exports_text(.0))]
    ProviderImport(Vec<String>),
    /// The component creates too many instances.
    #[error("the component creates {count} core instances, expected at most {limit} (limit `instances`)")]
    TooManyInstances {
        /// Number of instances.
        count: u64,
        /// The limit.
        limit: u64,
    },
    /// Compiling the component exceeded a bound.
    #[error("compiling the component takes more than {limit} (bound `{bound}`)")]
    CompileOver {
        /// Name of the bound.
        bound: &'static str,
        /// Value of the bound with its unit.
        limit: String,
    },
    /// The compiler failed or could not be started.
    #[error("the compiler failed, so the component was not compiled: {0}")]
    Compiler(String),
    /// The compiler refused the component.
    #[error("the component does not compile: {0}")]
    Compile(String),
    /// An interface of the component has another type than in this host.
    #[error("the component does not link: {0}")]
    Link(String),
}

impl LoadError {
    /// Returns help, unless rebuilding the component is the only fix.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::CompileOver { bound, .. } if bound.starts_with("GLOVEBOX_") => Some(format!(
                "build the component with optimisation and smaller functions; if you trust it, raise the environment variable `{bound}`"
            )),
            Self::Inspect(error) => error.help(),
            Self::Imports(refused) => imports_help(refused),
            Self::TooNew { needed } => Some(format!(
                "install a Glovebox with `glovebox:plugin` {needed} (`glovebox version` names the version of a program), or build the \
                 component against {PLUGIN_VERSION}: `glovebox plugin wit DIR`"
            )),
            Self::NoStage(_) => Some(
                "build it for a world of `wit/` that exports `stage`: `handler`, `agent` or `verifier`; components of the world \
                 `rules` belong under `[rules]` in glovebox.toml, those of `policy` under `[policy]`, and agents call those of the world `tool-provider`: \
                 `tools=\"acme.search\"` on a node"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// Returns help for building a component without these imports, for each language whose tools are known to add them.
fn imports_help(refused: &[Import]) -> Option<String> {
    let any = |prefix: &str| refused.iter().any(|import| import.name.starts_with(prefix));
    let mut lines = Vec::new();
    if any("wasi:sockets") || any("wasi:http") {
        lines.extend([
            "Rust: remove the use of `std::net` and the crates that need it",
            "Python: build with `componentize-py … --stub-wasi`",
            "JavaScript: componentize-js with `disableFeatures: [\"http\", \"fetch-event\"]`; componentize-qjs with `--stub-wasi`",
        ]);
    }
    if refused.iter().any(|import| matches!(import.state, ImportState::OtherVersion { .. })) {
        lines.push("another version: build against the WIT files of this program: `glovebox plugin wit DIR`");
    }
    if lines.is_empty() && refused.iter().any(|import| import.state == ImportState::Unknown) {
        lines.push(
            "import only interfaces of `wit/` and WASI 0.2; tools that link more have a flag such as `--stub-wasi`",
        );
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn imports_text(imports: &[Import]) -> String {
    let line = |import: &Import| {
        let reason = match &import.state {
            ImportState::Provided => "provided".to_owned(),
            ImportState::Newer { provided, .. } => format!("this host has the earlier version {provided}"),
            ImportState::OtherVersion { provided } => format!("this host has version {provided}"),
            ImportState::Denied { reason } => (*reason).to_owned(),
            ImportState::Unknown => "unknown to this host".to_owned(),
        };
        format!("\n  `{}`: {reason}", import.name)
    };
    imports.iter().map(line).collect()
}

fn exports_text(exports: &[String]) -> String {
    if exports.is_empty() { "nothing".to_owned() } else { format!("`{}`", exports.join("`, `")) }
}
