//! What the author of a plugin wants, and the part of it that the operator grants.
//!
//! Pure. A result allows nothing that one of the two does not allow.

use crate::config::PluginEntry;
use glovebox_host::grants::Grants;
use glovebox_host::inspect::Inspection;

/// Returns the wants of the author, narrowed by `wants` in `glovebox.toml`. For a component without a manifest, returns
/// `wants` alone.
pub fn wanted(inspection: &Inspection, plugin: Option<&PluginEntry>) -> Grants {
    let manifest = inspection.manifest.as_ref().map(|manifest| &manifest.wants);
    let configured = plugin.and_then(|plugin| plugin.wants.as_ref());
    match (manifest, configured) {
        (Some(manifest), Some(configured)) => manifest.intersect(configured),
        (Some(wants), None) | (None, Some(wants)) => wants.clone(),
        (None, None) => Grants::default(),
    }
}

/// Returns the grants on which author and operator agree, before a node narrows them.
pub fn granted(inspection: &Inspection, plugin: Option<&PluginEntry>) -> Grants {
    let wants = wanted(inspection, plugin);
    match plugin {
        None => wants,
        Some(plugin) => wants.intersect(plugin.grants.as_ref().unwrap_or(&Grants::default())),
    }
}
