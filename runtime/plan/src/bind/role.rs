//! Where the component of a handler comes from, its role, and why a plugin may not be a verifier.
//!
//! Pure. Only the operator makes a plugin a verifier. A verifier must not be able to build: it cannot use a model, agents,
//! tools or questions to people, and writes no files itself. It reads files and works through commands, and the host makes a
//! receipt for each command.

use super::request::Place;
use crate::config::PluginEntry;
use glovebox_host::grants::{FileTier, Grants};
use glovebox_host::inspect::Inspection;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::{HandlerKind, Node, Role};
use glovebox_pipeline::key;

/// The interfaces that the world `verifier` imports, the interface with the types they use, and `files`, which a verifier
/// only reads.
const IMPORTS: [&str; 4] = ["control", "exec", "files", "types"];

/// Where the component of a handler comes from.
#[derive(Debug, Clone, Copy)]
pub struct HandlerSource<'a> {
    /// The handler type.
    pub name: &'a str,
    /// The operator's `[plugins]` table. `None` for a built-in handler.
    pub plugin: Option<&'a PluginEntry>,
}

impl HandlerSource<'_> {
    /// Returns the role of the handler's stages. The operator decides the role of a plugin; a built-in handler has a fixed role.
    pub fn role(self) -> Role {
        match self.plugin {
            Some(entry) => entry.role,
            None => HandlerKind::from_name(self.name).role().unwrap_or_default(),
        }
    }
}

/// Returns the finding about a node whose verifying component does not have the role verifier.
pub fn no_verifier(node: &Node, verified: &str, source: HandlerSource<'_>) -> Diagnostic {
    let handler = source.name;
    let help = match source.plugin {
        Some(entry) => {
            format!("add `role = \"verifier\"` to `[plugins.\"{handler}\"]` (glovebox.toml:{})", entry.line)
        }
        None => {
            format!("name a plugin of glovebox.toml that has `role = \"verifier\"` under `[plugins.\"{handler}\"]`")
        }
    };
    let message = format!("`{handler}` must verify `{verified}`, but it is not a verifier");
    let span = Place::for_node(node).span_of(key::VERIFY_PLUGIN);
    Diagnostic::error("verifier_needed", message, span).with_node(verified).with_help(help)
}

/// Returns why a component with these grants may not be bound as a verifier. `None` if it may.
pub fn verifier_fault(inspection: &Inspection, granted: &Grants) -> Option<String> {
    let ours = inspection.imports.iter().filter_map(|import| import.name.strip_prefix("glovebox:plugin/"));
    let names = ours.map(|rest| rest.split('@').next().unwrap_or(rest)).filter(|name| !IMPORTS.contains(name));
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if !names.is_empty() {
        let names = names.join(", ");
        return Some(format!("it imports {names}, but a verifier may import only `control`, `exec` and `files`"));
    }
    if granted.filesystem == FileTier::Posix {
        return Some(
            "it is granted `filesystem = \"posix\"`, but only the commands of a verifier may access files".to_owned(),
        );
    }
    None
}
