//! What a build knows about its provenance: the revision of the source, the command, the tools and the builder.
//!
//! A fact that cannot be found out is left out. Nothing is guessed.

use super::project_file::PluginProject;
use super::repository::{self, Revision};
use crate::exit::Stop;
use crate::plugin_language::Language;
use crate::replaced_file;
use glovebox_plan::prepare::admission::{provenance_file, read_provenance};
use glovebox_signing::plugin::PluginIdentity;
use glovebox_signing::provenance::{Provenance, ProvenanceFile, SourceRevision};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// Programs that are asked for their version. A program of the project could do something else.
const TOOLS: [&str; 8] =
    ["cargo", "rustc", "clang", "componentize-qjs", "componentize-py", "node", "python3", "tinygo"];
/// Maximum length of a version that is recorded, in characters.
const VERSION_CHARS_MAX: usize = 200;

/// Returns how the component of a project is built. Call this before the build, which may change files.
pub fn record(folder: &Path, project: &PluginProject, dist: &str, builder: &str) -> Provenance {
    let output = project.build.output.as_str();
    let stated = project.manifest.source.as_deref().and_then(repository::address);
    let source = repository::revision(folder, &[dist, output]).map(|revision| {
        let Revision { commit, folder, remote, is_clean } = revision;
        SourceRevision { commit, folder, is_clean, repository: stated.or(remote) }
    });
    let command = project.build.command.clone();
    let tools = tools(folder, &command, project.language);
    Provenance { command, output: output.to_owned(), source, builder: builder.to_owned(), tools }
}

fn tools(folder: &Path, command: &[String], language: Language) -> BTreeMap<String, String> {
    let program = command.first().map(String::as_str);
    let compiler = (language == Language::Rust).then_some("rustc");
    let asked = program.into_iter().chain(compiler).filter(|name| TOOLS.contains(name));
    let mut found: BTreeMap<String, String> =
        asked.filter_map(|name| Some((name.to_owned(), version(folder, name)?))).collect();
    found.insert("glovebox".to_owned(), format!("glovebox {}", env!("CARGO_PKG_VERSION")));
    found
}

/// Returns the first line that a tool prints about its version.
fn version(folder: &Path, name: &str) -> Option<String> {
    let mut command = Command::new(name);
    command.arg("--version").current_dir(if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    let printed = command.env("PATH", super::program::search_path(folder)).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(printed.stdout).ok()?;
    let line: String = text.lines().next()?.trim().chars().take(VERSION_CHARS_MAX).collect();
    (printed.status.success() && !line.is_empty()).then_some(line)
}

/// Writes the provenance beside a component. A signed one with the same statement stays.
///
/// # Errors
///
/// The file cannot be written.
pub fn write(component: &Path, provenance: &Provenance, plugin: &PluginIdentity) -> Result<(), Stop> {
    let text = provenance.to_json(plugin);
    let before = read_provenance(component).ok().and_then(|mut found| ProvenanceFile::read(&found.pop()?).ok());
    let is_same = before
        .zip(ProvenanceFile::read(text.as_bytes()).ok())
        .is_some_and(|(one, other)| one.is_same_statement(&other));
    if is_same { Ok(()) } else { replaced_file::put(&provenance_file(component), text) }
}
