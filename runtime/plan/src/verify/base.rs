//! Files of the project as they were when the run began, as input of a verification stage. A stage may have removed
//! what a command needs.
//!
//! Only files that the run has changed since are included. The first version of a file is a blob that the journal
//! names; the workspace is not read.

use glovebox_pipeline::ir::Node;
use glovebox_pipeline::key;
use glovebox_record::Digest;
use glovebox_workspace::project::{Base, FileFact};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The source file is shared with the plugin, so that host and component recognize the same files as tests.
#[path = "../../../../plugin-sdk/src/test_files.rs"]
#[expect(unreachable_pub, reason = "the plugin crate publishes it")]
mod test_files;

/// The files that decide whether a command can run: those of package managers and of make.
const NAMES: [&str; 4] = ["package.json", "GNUmakefile", "makefile", "Makefile"];
/// Maximum size of a file version that is included, in bytes. The component reads the same maximum.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Files of the project as they were when the run began, in the folder in which the stage's commands start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContextBase {
    /// The files that the run has changed since, by name.
    pub files: BTreeMap<&'static str, BaseFile>,
    /// True if some file had the name of a test.
    pub has_tests: bool,
}

/// The first version of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseFile {
    /// The file did not exist.
    Absent,
    /// A symbolic link, a file that is too long, or a file that is not text.
    Unreadable,
    /// The text of the file.
    Text(String),
}

impl ContextBase {
    /// Reads the files of the folder in which the commands of a stage start. `read` returns the bytes of a blob, up to a maximum.
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

/// Returns true if the run changed the path or a folder above it, which it may have replaced.
fn is_changed(path: &str, changed: &BTreeSet<&str>) -> bool {
    let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
    ends.into_iter().any(|end| changed.contains(&path[..end]))
}

/// Returns the first version of a file. The stage assumes that an unreadable file contained everything that a command needs.
fn file(path: &str, base: &Base, read: impl Fn(&Digest, u64) -> Option<Vec<u8>>) -> BaseFile {
    let Some(fact) = base.files.get(path) else {
        return if base.symlinks.contains_key(path) { BaseFile::Unreadable } else { BaseFile::Absent };
    };
    let is_short = |fact: &&FileFact| fact.bytes <= FILE_BYTES_MAX;
    let bytes = Some(fact).filter(is_short).and_then(|fact| read(&fact.digest, FILE_BYTES_MAX));
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).map_or(BaseFile::Unreadable, BaseFile::Text)
}

/// Returns the folder in which the commands of a verification stage start, without `.` parts. `None` for the root.
fn folder(node: &Node) -> Option<String> {
    let written =
        |key| node.attributes.get(key).map(|attribute| attribute.value.trim()).filter(|text| !text.is_empty());
    let text = written(key::VERIFICATION_WORKDIR).or_else(|| written(key::WORKING_DIR))?;
    let names: Vec<&str> = text.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    Some(names.join("/")).filter(|folder| !folder.is_empty())
}

#[cfg(test)]
mod tests;
