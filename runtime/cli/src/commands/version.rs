//! `glovebox version`: what this binary is, down to the digests of the components in it.

use crate::arguments::VersionArguments;
use crate::builtins::BUILTINS;
use crate::exit::{CommandResult, Exit};
use crate::terminal;
use glovebox_record::Digest;
use schemars::JsonSchema;
use serde::Serialize;

/// What `version --json` prints.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "version.json")]
pub struct Version {
    /// Version of this document.
    schema_version: u32,
    /// The program.
    version: &'static str,
    /// The contract with plugins.
    plugin_package: &'static str,
    /// Version of the journal's records.
    event_schema: u32,
    /// The built-in components.
    components: Vec<ComponentVersion>,
}

#[derive(Serialize, JsonSchema)]
struct ComponentVersion {
    /// Its handler.
    name: &'static str,
    /// Digest of its bytes.
    digest: Digest,
    /// Their number.
    bytes: usize,
}

/// Prints versions; never fails.
pub fn version(arguments: &VersionArguments) -> CommandResult {
    let components = BUILTINS
        .iter()
        .map(|builtin| ComponentVersion {
            name: builtin.name,
            digest: Digest::hash(builtin.bytes),
            bytes: builtin.bytes.len(),
        })
        .collect();
    let version = Version {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION"),
        plugin_package: "glovebox:plugin@0.1.0",
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
