//! `glovebox version`: what this binary is, down to the digests of the components in it.

use crate::arguments::VersionArguments;
use crate::builtins::BUILTINS;
use crate::exit::{Ended, Exit};
use crate::terminal;
use glovebox_record::Digest;
use serde::Serialize;

#[derive(Serialize)]
struct Version {
    version: &'static str,
    plugin_package: &'static str,
    event_schema: u32,
    components: Vec<ComponentVersion>,
}

#[derive(Serialize)]
struct ComponentVersion {
    name: &'static str,
    digest: Digest,
    bytes: usize,
}

/// Prints versions; never fails.
pub fn version(arguments: &VersionArguments) -> Ended {
    let components = BUILTINS
        .iter()
        .map(|builtin| ComponentVersion {
            name: builtin.name,
            digest: Digest::of(builtin.bytes),
            bytes: builtin.bytes.len(),
        })
        .collect();
    let version = Version {
        version: env!("CARGO_PKG_VERSION"),
        plugin_package: "glovebox:plugin@0.1.0",
        event_schema: glovebox_engine::event::SCHEMA_VERSION,
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
