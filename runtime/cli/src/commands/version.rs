//! `glovebox version`: prints the versions of the program and its formats, and the digests of the built-in components.

use crate::arguments::VersionArguments;
use crate::builtins::BUILTINS;
use crate::exit::{CommandResult, Exit};
use crate::terminal;
use glovebox_host::interfaces::PLUGIN_VERSION;
use glovebox_record::Digest;
use schemars::JsonSchema;
use serde::Serialize;

/// The document that `version --json` prints.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "version.json")]
pub struct Version {
    /// Version of this document.
    schema_version: u32,
    /// Version of the program.
    version: &'static str,
    /// Name and version of the WIT package for plugins.
    plugin_package: String,
    /// Version of the journal's record format.
    event_schema: u32,
    /// The built-in components.
    components: Vec<ComponentVersion>,
}

#[derive(Serialize, JsonSchema)]
struct ComponentVersion {
    /// Name of the handler that the component implements.
    name: &'static str,
    /// Digest of the component's bytes.
    digest: Digest,
    /// Size of the component in bytes.
    bytes: usize,
}

/// Prints the versions. Fails only if the JSON document cannot be written.
pub fn version(arguments: &VersionArguments) -> CommandResult {
    let components = BUILTINS
        .iter()
        .map(|(name, builtin)| ComponentVersion { name, digest: builtin.digest, bytes: builtin.bytes.len() })
        .collect();
    let version = Version {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION"),
        plugin_package: format!("glovebox:plugin@{PLUGIN_VERSION}"),
        event_schema: glovebox_journal::event::SCHEMA_VERSION,
        components,
    };
    if arguments.json {
        terminal::print_json(&version)?;
        return Ok(Exit::Ok);
    }
    terminal::print(format_args!("glovebox {} ({})\n", version.version, version.plugin_package));
    for component in &version.components {
        terminal::print(format_args!("{:<9} {} {} bytes\n", component.name, component.digest, component.bytes));
    }
    Ok(Exit::Ok)
}
