//! Which role a component is bound in, and why a plugin may not be a verifier.
//!
//! Pure. Only the operator makes a plugin a verifier. What judges must not be able to build: no model, no agents, no tools, no
//! person, no files of its own. It works through commands, and the host makes a receipt for each of them.

use crate::config::PluginEntry;
use glovebox_host::grants::{FileTier, Grants};
use glovebox_host::inspect::Inspection;
use glovebox_pipeline::lower::handler::{HandlerKind, Role};

/// What the world `verifier` imports, and the interface with the types it uses.
const IMPORTS: [&str; 3] = ["control", "exec", "types"];

/// The role of a handler type: the operator's word for a plugin, else what the built-in handler is.
pub(super) fn role(handler: &str, plugin: Option<&PluginEntry>) -> Role {
    match plugin {
        Some(entry) => entry.role,
        None => HandlerKind::of(handler).role().unwrap_or_default(),
    }
}

/// Why a component with these grants may not be bound as a verifier; none when it may.
pub fn verifier_fault(inspection: &Inspection, granted: &Grants) -> Option<String> {
    let ours = inspection.imports.iter().filter_map(|import| import.name.strip_prefix("glovebox:plugin/"));
    let names = ours.map(|rest| rest.split('@').next().unwrap_or(rest)).filter(|name| !IMPORTS.contains(name));
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if !names.is_empty() {
        let names = names.join(", ");
        return Some(format!("it imports {names}, and a verifier may import `control` and `exec` only"));
    }
    if granted.filesystem == FileTier::Posix {
        return Some(
            "it is granted `filesystem = \"posix\"`, and only the commands of a verifier reach files".to_owned(),
        );
    }
    None
}
