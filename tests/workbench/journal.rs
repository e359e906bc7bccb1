//! How a run ended, and a copy of a run in the state in which a crash after some record could have left it.

use super::{Workbench, copy_tree};
use rusqlite::Connection;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How a run ended. It does not depend on how often the run was resumed.
#[derive(Debug, PartialEq)]
pub(crate) struct End {
    pub(crate) last: Value,
    pub(crate) visited: Value,
    pub(crate) context: Value,
    pub(crate) workspace: BTreeMap<String, String>,
}

pub(crate) fn end(run: &Path) -> End {
    let json = |name: &str| -> Value {
        let text = std::fs::read_to_string(run.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        serde_json::from_str(&text).unwrap()
    };
    let mut last = json("final.json");
    last.as_object_mut().unwrap().remove("timestamp");
    let checkpoint = json("checkpoint.json");
    let mut workspace = BTreeMap::new();
    read_tree(&run.join("workspace"), "", &mut workspace);
    End { last, visited: checkpoint["completed_nodes"].clone(), context: context(&checkpoint), workspace }
}

/// Returns the context value that the pipeline sets. Values of the engine may name an attempt, which differs between
/// runs.
fn context(checkpoint: &Value) -> Value {
    checkpoint["context"]["round"].clone()
}

fn read_tree(folder: &Path, prefix: &str, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            found.insert(format!("{name}/"), String::new());
            read_tree(&entry.path(), &format!("{name}/"), found);
        } else {
            found.insert(name, String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned());
        }
    }
}

/// Returns the key in the claim queue for the task of an event.
pub(crate) fn task_of(event: &Value) -> String {
    let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
    format!("{}/{}/{}#{}", event["generation"], text("branch"), text("node"), event["visit"])
}

/// Copies a run with only the first `kept` records of its journal, its blobs, and the project as its workspace.
pub(crate) fn copy_prefix(bench: &Workbench, run: &PathBuf, kept: i64) {
    let original = bench.run_folder("r");
    std::fs::create_dir_all(run).unwrap();
    copy_tree(&original.join("blobs"), &run.join("blobs"));
    copy_tree(&bench.project(), &run.join("workspace"));
    let source = Connection::open(original.join("journal.sqlite")).unwrap();
    source.execute("VACUUM INTO ?1", [run.join("journal.sqlite").to_str().unwrap()]).unwrap();
    let journal = Connection::open(run.join("journal.sqlite")).unwrap();
    journal.execute("DELETE FROM record WHERE seq > ?1", [kept]).unwrap();
}
