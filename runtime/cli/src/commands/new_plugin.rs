//! `glovebox plugin new`, `wit` and `embed-manifest`: what an author of a plugin needs, without a clone of the
//! repository.
//!
//! The commands write only new files, except that `embed-manifest` without `--output` replaces its component.

use crate::arguments::{EmbedArguments, NewPluginArguments, WitArguments};
use crate::exit::{CommandResult, Exit, Stop};
use crate::replaced_file;
use crate::setup::sdk_files;
use crate::terminal::{self, visible};
use glovebox_host::component::LoadError;
use glovebox_plan::config::{Config, is_plugin_name};
use glovebox_plan::prepare::source;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Templates of the files of a new crate. `acme.example` is replaced by the plugin's name, `acme-example` by the
/// crate's name.
const HANDLER: &str = include_str!("../../templates/plugin/handler.rs");
const CRATE: &str = include_str!("../../templates/plugin/crate.toml");
/// The lock file of the repository's example `acme-review`. A new crate gets the same versions of its dependencies.
const LOCK: &str = include_str!("../../../../examples/quickstart/review-plugin/Cargo.lock");

/// Writes a crate with a handler, its test, the SDK and the WIT package.
pub fn new(arguments: &NewPluginArguments) -> CommandResult {
    let name = &arguments.name;
    if !is_plugin_name(name) {
        let message = format!("`{name}` is not a plugin name");
        let help = "write two or more words of a-z, 0-9 and `-`, joined by `.`, such as `acme.review`";
        return Err(Stop::new(Exit::Usage, message).with_help(help));
    }
    let crate_name = name.replace('.', "-");
    let folder = arguments.folder.clone().unwrap_or_else(|| PathBuf::from(&crate_name));
    let manifest = sdk_files::sdk_manifest().map_err(|error| Stop::new(Exit::Internal, error.to_string()))?;
    let (handler, own) = (HANDLER.replace("acme.example", name), CRATE.replace("acme-example", &crate_name));
    let lock = LOCK.replace("\"acme-review\"", &format!("\"{crate_name}\""));
    let mut files = vec![
        ("Cargo.toml", own.as_str()),
        ("Cargo.lock", &lock),
        (".gitignore", "target/\n"),
        ("src/lib.rs", &handler),
        ("sdk/Cargo.toml", &manifest),
    ];
    files.extend(sdk_files::SDK);
    files.extend(sdk_files::WIT);
    files.push(sdk_files::WORLDS);
    write_all(&folder, &files)?;
    let component = format!("target/wasm32-wasip2/release/{}.wasm", crate_name.replace('-', "_"));
    let place = folder.to_string_lossy();
    let place = visible::line(&place);
    terminal::print(format_args!(
        "wrote `{place}`: a handler with a test, the SDK (`sdk/`) and the WIT package (`wit/`)\n\
         \x20 cd {place}\n\
         \x20 cargo test\n\
         \x20 cargo build --release --target wasm32-wasip2\n\
         \x20 glovebox plugin inspect {component}\n\
         add to glovebox.toml of the project that uses the plugin:\n\
         \x20 [plugins.\"{name}\"]\n\
         \x20 path = \"{place}/{component}\"\n\
         \x20 grants = {{ filesystem = \"workspace\", read = [\"src/\"] }}\n"
    ));
    Ok(Exit::Ok)
}

/// Writes the WIT package of plugins, for tools of other languages.
pub fn wit(arguments: &WitArguments) -> CommandResult {
    let files: Vec<_> = sdk_files::WIT.into_iter().chain([sdk_files::WORLDS]).collect();
    let files: Vec<_> = files.into_iter().map(|(path, text)| (path.trim_start_matches("wit/"), text)).collect();
    write_all(&arguments.folder, &files)?;
    let place = arguments.folder.to_string_lossy();
    terminal::print(format_args!("wrote `{}`: {}\n", visible::line(&place), terminal::counted(files.len(), "file")));
    Ok(Exit::Ok)
}

/// Writes files into a folder that is empty or does not exist.
fn write_all(folder: &Path, files: &[(&str, &str)]) -> Result<(), Stop> {
    let shown = folder.display();
    match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) => {
            let stop = Stop::new(Exit::Usage, format!("the folder `{shown}` is not empty"));
            return Err(stop.with_help("name a folder that does not exist"));
        }
        Ok(false) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(Stop::io(format!("read `{shown}`"), &error)),
    }
    for (path, text) in files {
        let file = folder.join(path);
        let written = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&file)
                .and_then(|mut new| new.write_all(text.as_bytes()))
        });
        written.map_err(|error| Stop::io(format!("write `{}`", file.display()), &error))?;
    }
    Ok(())
}

/// Writes a manifest into a component that has none.
pub fn embed_manifest(arguments: &EmbedArguments) -> CommandResult {
    let file = &arguments.component;
    fs::metadata(file).map_err(|error| Stop::io(format!("read `{}`", file.display()), &error))?;
    let bytes = source::read_component(file, Config::default().component_bytes(""))
        .map_err(|reason| Stop::new(Exit::Plugin, format!("`{}` cannot be read: {reason}", file.display())))?;
    let manifest = source::read_text(&arguments.manifest)?;
    let embedded = glovebox_host::inspect::embed(&bytes, &manifest).map_err(|error| {
        let error = LoadError::from(error);
        Stop { help: error.help(), ..Stop::new(Exit::Plugin, format!("`{}`: {error}", file.display())) }
    })?;
    match &arguments.output {
        Some(output) => {
            fs::write(output, embedded).map_err(|error| Stop::io(format!("write `{}`", output.display()), &error))?
        }
        None => replaced_file::replace(file, embedded)?,
    }
    let output = arguments.output.as_ref().unwrap_or(file);
    terminal::print(format_args!("wrote `{}`\n", visible::line(&output.to_string_lossy())));
    Ok(Exit::Ok)
}
