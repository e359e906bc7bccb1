//! Writes projections into the run directory.
//!
//! A reader may open any of these files at any time, so a file is always complete: it is written under a temporary name
//! and renamed, or grows by whole lines. All access goes through one directory handle, and no name can lead out of the
//! run directory. Only the files at the end of the run are flushed to disk: after a power loss, the journal is valid
//! and the files are rebuilt from it.

use super::{CHECKPOINT_FILE, FINAL_FILE, LIVE_FILE, MANIFEST_FILE, PROGRESS_FILE, TRACE_FILE};
use crate::inbox::INBOX_DIR;
use crate::reserve::RESERVE_FILE;
use crate::run_dir::EXCHANGES_DIR;
use crate::run_dir::{APPLIED_FILE, BRANCHES_DIR, HOLDOUTS_DIR, OWNER_FILE, WORKSPACE_DIR};
use crate::run_dir::{LIVENESS_FILE, QUARANTINE_DIR, REPOSITORIES_DIR, STAGE_DIR};
use cap_std::fs::{Dir, MetadataExt, OpenOptions};
use glovebox_journal::blobs::BLOBS_DIR;
use glovebox_journal::event::{Attempt, BranchId, NodeId, Task, Work};
use glovebox_journal::sqlite::LOG_FILE;
use glovebox_workspace::cache;
use glovebox_workspace::regular_file;
use glovebox_workspace::run_folder::JOURNAL_FILE;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The block size of all common file systems.
const BLOCK_BYTES: u64 = 4096;
/// Number of bytes of a file that are compared at a time.
const COMPARED_BYTES: u64 = 64 * 1024;
/// The folder with the artifacts of every attempt.
const ARTIFACTS_DIR: &str = "artifacts";
/// The folder of the tasks of all generations but the first.
const GENERATIONS_DIR: &str = "generations";

/// The temporary name of a folder that is being filled.
const UNNAMED_DIR: &str = ".folder.new";

/// Names in the run directory that do not belong to nodes. A test runs everything that creates files there and finds no other
/// names.
pub const RUN_NAMES: [&str; 25] = [
    APPLIED_FILE,
    ARTIFACTS_DIR,
    BLOBS_DIR,
    BRANCHES_DIR,
    cache::FOLDER,
    CHECKPOINT_FILE,
    EXCHANGES_DIR,
    FINAL_FILE,
    GENERATIONS_DIR,
    HOLDOUTS_DIR,
    INBOX_DIR,
    JOURNAL_FILE,
    "journal.sqlite-shm",
    LOG_FILE,
    LIVENESS_FILE,
    LIVE_FILE,
    MANIFEST_FILE,
    OWNER_FILE,
    PROGRESS_FILE,
    QUARANTINE_DIR,
    REPOSITORIES_DIR,
    RESERVE_FILE,
    STAGE_DIR,
    TRACE_FILE,
    WORKSPACE_DIR,
];

/// Returns the name of a node's folder: its id, or `node-ID` if the id is one of [`RUN_NAMES`] in any case. Otherwise a
/// node called `workspace` would make the engine write into the workspace. The folder `node-ID` belongs to no other
/// node, because ids have no hyphen.
fn node_folder(node: &NodeId) -> String {
    if RUN_NAMES.iter().any(|taken| taken.eq_ignore_ascii_case(node.as_str())) {
        format!("node-{node}")
    } else {
        node.to_string()
    }
}

/// Returns the folder of a task's status, output and artifacts, relative to the run directory. All visits of a task share it,
/// and no other task uses it.
pub fn task_folder(task: &Task) -> String {
    let folder = folder_prefix(task.generation, &task.branch) + &node_folder(&task.node);
    match task.work {
        Work::Handler => folder,
        Work::Verify => folder + "/verify",
        Work::Join => folder + "/join",
    }
}

/// Returns the folder of an attempt's artifacts, which no later attempt replaces.
pub fn history_folder(attempt: &Attempt) -> String {
    let Attempt { task: Task { generation, branch, node, visit, work }, ordinal, .. } = attempt;
    let folder_prefix = folder_prefix(*generation, branch);
    let work = match work {
        Work::Handler => "",
        Work::Verify => ".verify",
        Work::Join => ".join",
    };
    format!("{folder_prefix}{ARTIFACTS_DIR}/{node}.{visit}.{ordinal}{work}")
}

/// Returns the prefix of the folders of a generation and branch. It is empty for the first generation and `main`, so
/// that the folders have the names that the specification gives.
fn folder_prefix(generation: u32, branch: &BranchId) -> String {
    let mut folder_prefix = if generation > 0 { format!("{GENERATIONS_DIR}/{generation}/") } else { String::new() };
    if *branch != BranchId::main() {
        folder_prefix += &format!("{BRANCHES_DIR}/{branch}/");
    }
    folder_prefix
}

/// Counts the bytes that are written, in blocks. Clones share the count.
#[derive(Debug, Clone, Default)]
pub struct BytesWritten(Arc<AtomicU64>);

impl BytesWritten {
    /// Returns the number of bytes so far.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.0.fetch_add(in_blocks(bytes), Ordering::Relaxed);
    }
}

/// Returns the disk space of a file of this length.
pub(crate) fn in_blocks(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK_BYTES)
}

/// A folder in the run directory into which files are written.
pub(crate) struct Folder<'a> {
    dir: FolderHandle<'a>,
    written: &'a BytesWritten,
}

/// The handle of a folder.
enum FolderHandle<'a> {
    Run(&'a Dir),
    Below(Dir),
}

impl Deref for FolderHandle<'_> {
    type Target = Dir;

    fn deref(&self) -> &Dir {
        match self {
            Self::Run(dir) => dir,
            Self::Below(dir) => dir,
        }
    }
}

impl<'a> Folder<'a> {
    /// Opens the run directory itself for an empty path, else a folder in it, which is created if it does not exist.
    pub(crate) fn open(run: &'a Dir, path: impl AsRef<Path>, written: &'a BytesWritten) -> io::Result<Self> {
        let path = path.as_ref();
        if path.as_os_str().is_empty() {
            return Ok(Self { dir: FolderHandle::Run(run), written });
        }
        // Most folders are new.
        match run.create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => run.create_dir_all(path)?,
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let dir = run.open_dir(path)?;
        Ok(Self { dir: FolderHandle::Below(dir), written })
    }

    /// Creates a folder that gets its name after all its files are written, so that readers see it complete or not at all.
    pub(crate) fn begin(run: &'a Dir, written: &'a BytesWritten) -> io::Result<Self> {
        match run.create_dir(UNNAMED_DIR) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                forget_unnamed(run)?;
                run.create_dir(UNNAMED_DIR)?;
            }
            made => made?,
        }
        Ok(Self { dir: FolderHandle::Below(run.open_dir(UNNAMED_DIR)?), written })
    }

    /// Writes a file into a folder that has no name yet.
    pub(crate) fn fill(&self, name: impl AsRef<Path>, bytes: &mut dyn Read) -> io::Result<()> {
        let mut file = self.dir.open_with(name, OpenOptions::new().write(true).create_new(true))?;
        self.written.add(io::copy(bytes, &mut file)?);
        Ok(())
    }

    /// Gives the folder its name. Returns false if the name is taken; the files are then removed.
    pub(crate) fn name(&self, run: &Dir, path: impl AsRef<Path>) -> io::Result<bool> {
        let path = path.as_ref();
        let named = match (run.rename(UNNAMED_DIR, run, path), path.parent()) {
            (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
                run.create_dir_all(parent)?;
                run.rename(UNNAMED_DIR, run, path)
            }
            (named, _) => named,
        };
        match named {
            Ok(()) => Ok(true),
            Err(_) => forget_unnamed(run).map(|()| false),
        }
    }

    /// Writes a whole file. Readers see the old bytes or the new ones, never a part.
    pub(crate) fn put(&self, name: impl AsRef<Path>, bytes: &mut dyn Read) -> io::Result<()> {
        self.put_beside(name.as_ref(), bytes, false)
    }

    /// As [`Folder::put`], but for a file that probably exists: if it has these bytes, it is not written. `open` returns the
    /// bytes from the beginning at each call.
    pub(crate) fn put_if_other<R: Read, E: From<io::Error>>(
        &self,
        name: impl AsRef<Path>,
        open: impl Fn() -> Result<R, E>,
    ) -> Result<(), E> {
        let name = name.as_ref();
        if self.has(name, &mut open()?)? { Ok(()) } else { Ok(self.put(name, &mut open()?)?) }
    }

    /// Returns true if a file has exactly these bytes.
    fn has(&self, name: &Path, bytes: &mut dyn Read) -> io::Result<bool> {
        if !self.dir.symlink_metadata(name).is_ok_and(|found| found.is_file()) {
            return Ok(false);
        }
        let mut file = regular_file::open_in(&self.dir, name)?;
        let (mut wanted, mut found) = (Vec::new(), Vec::new());
        loop {
            wanted.clear();
            found.clear();
            bytes.take(COMPARED_BYTES).read_to_end(&mut wanted)?;
            // Reads at least one byte, so that a file that is longer is recognized as different.
            Read::by_ref(&mut file).take(wanted.len().max(1) as u64).read_to_end(&mut found)?;
            match wanted == found {
                false => return Ok(false),
                true if wanted.is_empty() => return Ok(true),
                true => {}
            }
        }
    }

    /// As [`Folder::put`], but durably.
    pub(crate) fn put_durably(&self, name: impl AsRef<Path>, bytes: &mut dyn Read) -> io::Result<()> {
        self.put_beside(name.as_ref(), bytes, true)?;
        regular_file::flush_dir(&self.dir)
    }

    /// Creates a hard link to the file with this name in another folder. It replaces an existing file.
    pub(crate) fn link(&self, from: &Folder<'_>, name: impl AsRef<Path>) -> io::Result<()> {
        let name = name.as_ref();
        match from.dir.hard_link(name, &self.dir, name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other,
        }
        let inode = |dir: &Dir| dir.symlink_metadata(name).map(|found| (found.dev(), found.ino()));
        if inode(&from.dir)? == inode(&self.dir)? {
            return Ok(());
        }
        let beside = beside(name);
        remove(&self.dir, &beside)?;
        from.dir.hard_link(name, &self.dir, &beside)?;
        self.dir.rename(&beside, &self.dir, name)?;
        // `rename` does nothing if both names are hard links to the same file, so the temporary name must be removed.
        remove(&self.dir, &beside)
    }

    /// Removes a file. It is not an error if the file does not exist.
    pub(crate) fn remove(&self, name: impl AsRef<Path>) -> io::Result<()> {
        remove(&self.dir, name.as_ref())
    }

    fn put_beside(&self, name: &Path, bytes: &mut dyn Read, is_durable: bool) -> io::Result<()> {
        let beside = beside(name);
        let mut file = self.dir.open_with(&beside, OpenOptions::new().write(true).create(true).truncate(true))?;
        self.written.add(io::copy(bytes, &mut file)?);
        if is_durable {
            file.sync_all()?;
        }
        drop(file);
        self.dir.rename(&beside, &self.dir, name)
    }
}

/// Removes a folder that never got its name. It is not an error if there is none.
pub(crate) fn forget_unnamed(run: &Dir) -> io::Result<()> {
    match run.remove_dir_all(UNNAMED_DIR) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns the temporary name of a file while it is written.
fn beside(name: &Path) -> PathBuf {
    format!(".{}.new", name.display()).into()
}

fn remove(dir: &Dir, name: &Path) -> io::Result<()> {
    match dir.remove_file(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
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
    fn a_file_with_the_same_bytes_is_not_written_again() {
        let folder = tempfile::tempdir().expect("tempdir");
        let run = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).expect("open");
        let written = BytesWritten::default();
        let a = Folder::open(&run, "a", &written).expect("folder");
        let put = |bytes: &[u8]| a.put_if_other("file", || Ok::<_, io::Error>(bytes)).expect("put");
        let long = vec![7; 3 * 64 * 1024];
        for bytes in [&b""[..], b"one", b"two", b"twofold", b"two", &long, &long[1..], b""] {
            let before = written.bytes();
            put(bytes);
            assert_eq!(run.read("a/file").expect("read"), bytes);
            assert!(bytes.is_empty() || written.bytes() > before, "other bytes are written");
            let (before, inode) = (written.bytes(), run.metadata("a/file").expect("there").ino());
            put(bytes);
            assert_eq!((written.bytes(), run.metadata("a/file").expect("there").ino()), (before, inode));
        }
    }

    #[test]
    fn a_folder_is_there_as_a_whole_and_replaces_none() {
        let folder = tempfile::tempdir().expect("tempdir");
        let run = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).expect("open");
        let written = BytesWritten::default();
        let begin = |bytes: &[u8]| {
            let begun = Folder::begin(&run, &written).expect("begun");
            begun.fill("prompt.md", &mut &*bytes).expect("filled");
            begun
        };
        drop(begin(b"killed here"));
        let begun = begin(b"one");
        assert!(run.symlink_metadata("artifacts/a.1.1").is_err(), "it has no name yet");
        assert!(begun.name(&run, "artifacts/a.1.1").expect("named"));
        assert!(!begin(b"other").name(&run, "artifacts/a.1.1").expect("refused"));
        assert_eq!(run.read("artifacts/a.1.1/prompt.md").expect("read"), b"one");
        drop(begin(b"killed here"));
        forget_unnamed(&run).expect("forgotten");
        forget_unnamed(&run).expect("forgotten before");
        assert_eq!(run.entries().expect("list").count(), 1);
    }

    #[test]
    fn replacing_leaves_nothing_beside_and_a_link_follows_the_last() {
        let folder = tempfile::tempdir().expect("tempdir");
        let run = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).expect("open");
        let written = BytesWritten::default();
        let open = |path| Folder::open(&run, path, &written).expect("folder");
        open("a").put("status.json", &mut &b"one"[..]).expect("first");
        open("a").put("status.json", &mut &b"two"[..]).expect("second");
        assert_eq!(run.read("a/status.json").expect("read"), b"two");
        for (history, text) in [("artifacts/a.1.1", "x"), ("artifacts/a.2.1", "y")] {
            open(history).put("prompt.md", &mut text.as_bytes()).expect("kept");
            for _ in 0..2 {
                open("a").link(&open(history), "prompt.md").expect("linked");
            }
        }
        assert_eq!(run.read_to_string("a/prompt.md").expect("read"), "y");
        assert_eq!(run.read_to_string("artifacts/a.1.1/prompt.md").expect("read"), "x", "what was kept stays");
        assert_eq!(run.read_dir("a").expect("list").count(), 2);
        assert_eq!(written.bytes(), 4 * BLOCK_BYTES);
        assert!(Folder::open(&run, "../out", &written).is_err(), "the run directory has no outside");
    }
}
