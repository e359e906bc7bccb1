//! From the output of a build to the component of a plugin: core modules become components, the manifest is embedded, and what the
//! manifest says is compared with what the component imports.

use super::project_file::{PROJECT_FILE, PluginProject};
use crate::exit::{Exit, Stop};
use crate::plugin_language::{Language, World};
use crate::terminal::visible;
use glovebox_host::component::{LoadError, check_handler};
use glovebox_host::inspect::{InspectError, Inspection, UnusableWant, UnwantedImport, embed, inspect};
use glovebox_host::{policy, rules, tool_provider};
use glovebox_plan::config::Config;
use glovebox_plan::prepare::source::read_component;
use std::path::Path;
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME as ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER as ADAPTER,
};
use wit_component::ComponentEncoder;

/// First bytes of a core module.
const CORE_MODULE: &[u8] = b"\0asm\x01\0\0\0";
/// Prefix of the interfaces of the WIT package.
const PACKAGE: &str = "glovebox:plugin/";

/// A plugin's component, with its manifest.
pub struct BuiltComponent {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// What they contain.
    pub inspection: Inspection,
    /// What the author should know, although the component is usable.
    pub warnings: Vec<String>,
}

/// Reads the output of a project's build, and makes the component of it.
///
/// # Errors
/// Exit 7 if the output cannot be a component of this project, or if the manifest and the imports disagree.
pub fn finish(folder: &Path, project: &PluginProject) -> Result<BuiltComponent, Stop> {
    let output = folder.join(project.build.output.as_str());
    let shown = output.display();
    let built =
        read_component(&output, Config::default().component_bytes(&project.manifest.name)).map_err(|reason| {
            let help = format!("`build.output` in {PROJECT_FILE} must name the file that the build command writes");
            Stop::new(Exit::Plugin, format!("the build wrote no usable `{shown}`: {reason}")).with_help(help)
        })?;
    let component = if built.starts_with(CORE_MODULE) { encoded(&built, project.language)? } else { built };
    let manifest =
        serde_json::to_string(&project.manifest).map_err(|error| Stop::new(Exit::Internal, error.to_string()))?;
    let bytes = embed(&component, &manifest).map_err(|error| match error {
        InspectError::TwoManifests => Stop::new(Exit::Plugin, format!("`{shown}` has a manifest already"))
            .with_help(format!("remove `manifest = …` from the source code: {PROJECT_FILE} has the manifest")),
        other => refused(&shown.to_string(), &LoadError::from(other)),
    })?;
    let inspection = inspect(&bytes).map_err(|error| refused(&shown.to_string(), &LoadError::from(error)))?;
    check_world(project.world, &inspection)?;
    let checked = match project.world {
        World::Handler | World::Agent | World::Verifier => check_handler(&inspection),
        World::ToolProvider => tool_provider::check(&inspection),
        World::Rules => rules::check(&inspection),
        World::Policy => policy::check(&inspection),
    };
    checked.map_err(|error| refused(&shown.to_string(), &error))?;
    check_wants(&inspection)?;
    let warnings = unused_imports(&inspection);
    Ok(BuiltComponent { bytes, inspection, warnings })
}

fn refused(file: &str, error: &LoadError) -> Stop {
    Stop { help: error.help(), ..Stop::new(Exit::Plugin, format!("`{file}` cannot be a plugin: {error}")) }
}

/// Makes a component of a core module that was linked with the bindings of the WIT package.
fn encoded(module: &[u8], language: Language) -> Result<Vec<u8>, Stop> {
    let mut encoder = ComponentEncoder::default();
    let encoded = encoder.validate(true).module(module).and_then(|encoder| {
        // Without such an import, the adapter would only add its own world to that of the module.
        if module.windows(ADAPTER_NAME.len()).any(|part| part == ADAPTER_NAME.as_bytes()) {
            encoder.adapter(ADAPTER_NAME, ADAPTER)?;
        }
        encoder.encode()
    });
    encoded.map_err(|error| {
        let problem = format!("{error:#}");
        let stop = Stop::new(Exit::Plugin, format!("no component can be made: {}", visible::line(&problem)));
        match language {
            Language::C => {
                stop.with_help("link `bindings/WORLD.c` and `bindings/WORLD_component_type.o` into the module")
            }
            _ => stop,
        }
    })
}

/// Compares the component with the world in `plugin.toml`.
fn check_world(world: World, found: &Inspection) -> Result<(), Stop> {
    let name = world.name();
    let export = format!("{PACKAGE}{}@", world.export());
    if !found.exports.iter().any(|own| own.starts_with(&export)) {
        let message =
            format!("the component does not export `{}`, which the world `{name}` has", export.trim_end_matches('@'));
        return Err(
            Stop::new(Exit::Plugin, message).with_help(format!("correct `world` in {PROJECT_FILE}, or the code"))
        );
    }
    let is_foreign = |own: &&str| !world.imports().contains(own) && !matches!(*own, "types" | "chat");
    match interfaces(found).find(is_foreign) {
        None => Ok(()),
        Some(foreign) => {
            let message = format!("the component imports `{foreign}`, which the world `{name}` does not have");
            Err(Stop::new(Exit::Plugin, message).with_help(format!("correct `world` in {PROJECT_FILE}, or the code")))
        }
    }
}

/// Returns the names of the interfaces of the WIT package that a component imports.
fn interfaces(found: &Inspection) -> impl Iterator<Item = &str> {
    found.imports.iter().filter_map(|import| Some(import.name.strip_prefix(PACKAGE)?.split_once('@')?.0))
}

/// Returns the name of an interface without the package of plugins.
fn own_name(interface: &str) -> &str {
    interface.strip_prefix(PACKAGE).unwrap_or(interface)
}

/// Refuses wants that the component cannot use: the operator would be asked for more than the plugin needs.
fn check_wants(found: &Inspection) -> Result<(), Stop> {
    let Some(UnusableWant { want, import }) = found.unusable_want() else { return Ok(()) };
    let import = own_name(import);
    let message =
        format!("the plugin wants `{want}`, but the component does not import `{import}`, so it cannot use it");
    Err(Stop::new(Exit::Plugin, message)
        .with_help(format!("remove `{want}` from `[wants]` in {PROJECT_FILE}, or use it in the code")))
}

/// Returns a warning for each import whose calls will all be refused, because the manifest does not want them.
fn unused_imports(found: &Inspection) -> Vec<String> {
    let warning = |UnwantedImport { import, want }| {
        let import = own_name(import);
        format!(
            "the component imports `{import}`, but `[wants]` has no `{want}`: the host will refuse every call of it"
        )
    };
    found.unwanted_imports().into_iter().map(warning).collect()
}
