//! Putting projections into the run directory.
//!
//! A reader may open any of these files at any moment, so a file is always whole: it is written beside its place and renamed
//! into it, or grows by whole lines. Everything goes through one directory handle; no name can lead out of the run directory.
//! Nothing is synced: after a power loss the journal is the truth and the files are made again.

use super::{CHECKPOINT_FILE, FINAL_FILE, LIVE_FILE, MANIFEST_FILE, PROGRESS_FILE, TRACE_FILE};
use crate::attempt::{QUARANTINE_DIR, REPOSITORIES_DIR, STAGE_DIR};
use crate::blobs::BLOBS_DIR;
use crate::event::{Attempt, BranchId, NodeId, Task, Work};
use crate::run::{HOLDOUTS_DIR, OWNER_FILE, WORKSPACE_DIR};
use cap_std::fs::{Dir, OpenOptions};
use glovebox_sandbox::cache;
use glovebox_sandbox::run::JOURNAL_FILE;
use std::io::{self, Read, Write};

/// What every attempt left behind.
const ARTIFACTS_DIR: &str = "artifacts";
/// Folders of the tasks of branches other than `main`.
const BRANCHES_DIR: &str = "branches";
/// Folders of the tasks of generations other than the first.
const GENERATIONS_DIR: &str = "generations";

/// Folders and files of the run directory that are not a node's. A test runs what makes them and finds no other.
pub const RUN_NAMES: [&str; 20] = [
    ARTIFACTS_DIR,
    BLOBS_DIR,
    BRANCHES_DIR,
    cache::FOLDER,
    CHECKPOINT_FILE,
    FINAL_FILE,
    GENERATIONS_DIR,
    HOLDOUTS_DIR,
    JOURNAL_FILE,
    "journal.sqlite-shm",
    "journal.sqlite-wal",
    LIVE_FILE,
    MANIFEST_FILE,
    OWNER_FILE,
    PROGRESS_FILE,
    QUARANTINE_DIR,
    REPOSITORIES_DIR,
    STAGE_DIR,
    TRACE_FILE,
    WORKSPACE_DIR,
];

/// The name of a node's folder: its id, or `node-ID` where that name means something else in any case, so that a node
/// called `workspace` cannot make the engine write into the workspace, and none called `cache` into the caches. No id has a hyphen.
fn node_folder(node: &NodeId) -> String {
    if RUN_NAMES.iter().any(|taken| taken.eq_ignore_ascii_case(node.as_str())) {
        format!("node-{node}")
    } else {
        node.to_string()
    }
}

/// The folder of a task's status, output and artifacts, relative to the run directory. All visits of a task share it; no other task does.
pub fn task_folder(task: &Task) -> String {
    let folder = lane(task.generation, &task.branch) + &node_folder(&task.node);
    match task.work {
        Work::Handler => folder,
        Work::Verify => folder + "/verify",
        Work::Join => folder + "/join",
    }
}

/// The folder of an attempt's artifacts, which no later attempt replaces.
pub fn history_folder(attempt: &Attempt) -> String {
    let Attempt { task: Task { generation, branch, node, visit, work }, ordinal, .. } = attempt;
    let lane = lane(*generation, branch);
    let work = match work {
        Work::Handler => "",
        Work::Verify => ".verify",
        Work::Join => ".join",
    };
    format!("{lane}{ARTIFACTS_DIR}/{node}.{visit}.{ordinal}{work}")
}

/// What the folders of a generation and branch begin with: nothing for the first one and `main`, so that its names are those of the
/// specification.
fn lane(generation: u32, branch: &BranchId) -> String {
    let mut lane = if generation > 0 { format!("{GENERATIONS_DIR}/{generation}/") } else { String::new() };
    if *branch != BranchId::main() {
        lane += &format!("{BRANCHES_DIR}/{branch}/");
    }
    lane
}

/// Puts a whole file in place, making its folder. Readers see the old bytes or the new ones, never a part.
pub(crate) fn replace(dir: &Dir, path: &str, bytes: &mut dyn Read) -> io::Result<()> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    if !folder.is_empty() {
        dir.create_dir_all(folder)?;
    }
    let beside = if folder.is_empty() { format!(".{name}.new") } else { format!("{folder}/.{name}.new") };
    let mut file = dir.open_with(&beside, OpenOptions::new().write(true).create(true).truncate(true))?;
    io::copy(bytes, &mut file)?;
    drop(file);
    dir.rename(&beside, dir, path)
}

/// Removes a file; one that is not there is fine.
pub(crate) fn remove(dir: &Dir, path: &str) -> io::Result<()> {
    match dir.remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Adds whole lines to a file by one write.
pub(crate) fn append(dir: &Dir, path: &str, lines: &[u8]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    dir.open_with(path, OpenOptions::new().append(true).create(true))?.write_all(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_never_gets_a_folder_with_another_meaning() {
        assert_eq!(node_folder(&"implement".into()), "implement");
        assert_eq!(node_folder(&"workspace".into()), "node-workspace");
        assert_eq!(node_folder(&"Stage".into()), "node-Stage");
        for taken in RUN_NAMES {
            assert_eq!(node_folder(&taken.into()), format!("node-{taken}"));
            assert_eq!(node_folder(&taken.to_uppercase().into()), format!("node-{}", taken.to_uppercase()));
        }
    }

    #[test]
    fn tasks_that_differ_in_more_than_the_visit_have_different_folders() {
        let task = |generation, branch: &str, node: &str, work| Task {
            generation,
            branch: branch.into(),
            node: node.into(),
            visit: 1,
            work,
        };
        let folders = [
            (task(0, "main", "build", Work::Handler), "build"),
            (task(0, "main", "branches", Work::Handler), "node-branches"),
            (task(0, "main", "build", Work::Verify), "build/verify"),
            (task(0, "main", "build", Work::Join), "build/join"),
            (task(0, "left", "build", Work::Handler), "branches/left/build"),
            (task(2, "main", "build", Work::Handler), "generations/2/build"),
            (task(2, "left", "build", Work::Handler), "generations/2/branches/left/build"),
        ];
        for (task, folder) in folders {
            assert_eq!(task_folder(&task), folder);
        }
        let attempt = |task| Attempt { task, ordinal: 3, id: "a".into() };
        assert_eq!(history_folder(&attempt(task(0, "main", "build", Work::Handler))), "artifacts/build.1.3");
        assert_eq!(
            history_folder(&attempt(task(1, "left", "build", Work::Join))),
            "generations/1/branches/left/artifacts/build.1.3.join"
        );
    }

    #[test]
    fn replacing_leaves_nothing_beside_and_appending_keeps_what_was() {
        let folder = tempfile::tempdir().expect("tempdir");
        let dir = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).expect("open");
        replace(&dir, "a/status.json", &mut &b"one"[..]).expect("first");
        replace(&dir, "a/status.json", &mut &b"two"[..]).expect("second");
        assert_eq!(dir.read("a/status.json").expect("read"), b"two");
        assert_eq!(dir.read_dir("a").expect("list").count(), 1);
        append(&dir, "lines", b"1\n").expect("append");
        append(&dir, "lines", b"2\n").expect("append");
        assert_eq!(dir.read("lines").expect("read"), b"1\n2\n");
        assert!(replace(&dir, "../out", &mut &b"x"[..]).is_err(), "the run directory has no outside");
    }
}
