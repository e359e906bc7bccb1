//! What the project's files were when the run began, for a verification stage: a stage may have removed what a command needs.
//!
//! Only files that the run changed since are told. Their first version is a blob, as the journal names it; the workspace is not read.

use glovebox_pipeline::ir::Node;
use glovebox_pipeline::key;
use glovebox_record::Digest;
use glovebox_workspace::project::{Base, FileFact};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The same text as the plugin's own: host and component must find tests alike.
#[path = "../../../../plugin-sdk/src/test_files.rs"]
#[expect(unreachable_pub, reason = "the plugin crate publishes it")]
mod test_files;

/// The files that say whether a command can run: those of package managers and of make.
const NAMES: [&str; 4] = ["package.json", "GNUmakefile", "makefile", "Makefile"];
/// Longest version of such a file that is told; the component reads as much.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The project when the run began, in the folder where a stage's commands start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContextBase {
    /// By name, those files that the run has changed since.
    pub files: BTreeMap<&'static str, BaseFile>,
    /// Whether some file had the name of a test.
    pub has_tests: bool,
}

/// What a file was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseFile {
    /// There was none.
    Absent,
    /// A link, or what is too long or no text.
    Unreadable,
    /// Its text.
    Text(String),
}

impl ContextBase {
    /// Looks at the files of the folder in which commands of a stage start. `read` gives the bytes of a file, up to a bound.
    pub fn new(
        node: &Node,
        changed: &BTreeSet<&str>,
        base: &Base,
        read: impl Fn(&Digest, u64) -> Option<Vec<u8>>,
    ) -> Self {
        let above = folder(node).map(|folder| format!("{folder}/")).unwrap_or_default();
        let told = NAMES.into_iter().filter_map(|name| {
            let path = format!("{above}{name}");
            is_changed(&path, changed).then(|| (name, file(&path, base, &read)))
        });
        let inside = base.files.keys().filter_map(|path| path.strip_prefix(&above));
        Self { files: told.collect(), has_tests: inside.into_iter().any(test_files::is_test_file) }
    }
}

/// True if the run changed the path or a folder above it, which it may have replaced.
fn is_changed(path: &str, changed: &BTreeSet<&str>) -> bool {
    let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
    ends.into_iter().any(|end| changed.contains(&path[..end]))
}

/// A file that cannot be read counts as one that has everything.
fn file(path: &str, base: &Base, read: impl Fn(&Digest, u64) -> Option<Vec<u8>>) -> BaseFile {
    let Some(fact) = base.files.get(path) else {
        return if base.symlinks.contains_key(path) { BaseFile::Unreadable } else { BaseFile::Absent };
    };
    let is_short = |fact: &&FileFact| fact.bytes <= FILE_BYTES_MAX;
    let bytes = Some(fact).filter(is_short).and_then(|fact| read(&fact.digest, FILE_BYTES_MAX));
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).map_or(BaseFile::Unreadable, BaseFile::Text)
}

/// The folder in which commands of a verification stage start, without `.` parts; none for the root.
fn folder(node: &Node) -> Option<String> {
    let written =
        |key| node.attributes.get(key).map(|attribute| attribute.value.trim()).filter(|text| !text.is_empty());
    let text = written(key::VERIFICATION_WORKDIR).or_else(|| written(key::WORKING_DIR))?;
    let names: Vec<&str> = text.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    Some(names.join("/")).filter(|folder| !folder.is_empty())
}

#[cfg(test)]
mod tests;
