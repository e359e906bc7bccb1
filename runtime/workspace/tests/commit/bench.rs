//! A workspace, a blob store, and a witness next to them.

use glovebox_record::scope::{Entry, Scope};
use glovebox_record::{Digest, FileChange};
use glovebox_workspace::change::{ChangeLimits, FoundChange};
use glovebox_workspace::commit;
use glovebox_workspace::protect::Protected;
use glovebox_workspace::stage::Copy;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let made = Self { dir };
        fs::create_dir(made.workspace()).unwrap();
        fs::create_dir(made.blobs()).unwrap();
        for (path, content) in files {
            put(&made.workspace().join(path), content);
        }
        made
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    pub(crate) fn blobs(&self) -> PathBuf {
        self.dir.path().join("blobs")
    }

    pub(crate) fn copy(&self, scope: &Scope) -> Copy {
        Copy::create(&self.workspace(), &self.dir.path().join("copy"), scope).unwrap()
    }

    pub(crate) fn store(&self, found: &[FoundChange], copy: &Copy) -> Vec<FileChange> {
        let blobs = self.blobs();
        let mut keep = |content: &mut dyn Read| -> io::Result<Digest> {
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes)?;
            let digest = Digest::hash(&bytes);
            fs::write(blobs.join(digest.hex()), &bytes)?;
            Ok(digest)
        };
        commit::store(found, copy, &mut keep).unwrap()
    }

    pub(crate) fn apply(&self, changes: &[FileChange]) -> Result<(), commit::CommitError> {
        commit::apply(&self.workspace(), changes, &|digest| self.blob(digest))
    }

    pub(crate) fn blob(&self, digest: &Digest) -> io::Result<File> {
        File::open(self.blobs().join(digest.hex()))
    }

    /// Runs a shell in the copy, lists and commits the changes, and returns the disallowed paths.
    pub(crate) fn round(&self, scope: &Scope, script: &str) -> Vec<String> {
        let copy = self.copy(scope);
        sh(copy.root(), script);
        let found = look(&copy);
        let changes = self.store(&found, &copy);
        self.apply(&changes).unwrap();
        copy.remove().unwrap();
        assert!(!self.dir.path().join("copy").exists());
        found.iter().filter(|change| !change.is_allowed()).map(|change| change.path.clone()).collect()
    }
}

pub(crate) fn put(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

pub(crate) fn sh(at: &Path, script: &str) {
    let done = Command::new("/bin/sh").args(["-ec", script]).current_dir(at).output().unwrap();
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
}

pub(crate) fn look(copy: &Copy) -> Vec<FoundChange> {
    copy.changes(&ChangeLimits::default(), &Protected::default()).unwrap()
}

pub(crate) fn entries(texts: &[&str]) -> Vec<Entry> {
    texts.iter().map(|text| Entry::parse(text).unwrap()).collect()
}

pub(crate) fn scope(read: &[&str], write: &[&str], hidden: &[&str]) -> Scope {
    Scope::new(entries(read), entries(write), entries(hidden))
}

/// Returns everything below a folder: each path with its content, `dir` or link target, and with the executable bit.
pub(crate) fn snapshot(root: &Path) -> BTreeMap<String, String> {
    fn go(root: &Path, at: &Path, into: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                into.insert(name, "dir".to_owned());
                go(root, &path, into);
            } else if meta.is_symlink() {
                into.insert(name, format!("-> {}", fs::read_link(&path).unwrap().display()));
            } else if !meta.is_file() {
                into.insert(name, "special".to_owned());
            } else {
                let executable = meta.permissions().mode() & 0o100 != 0;
                into.insert(name, format!("{executable} {}", String::from_utf8_lossy(&fs::read(&path).unwrap())));
            }
        }
    }
    let mut all = BTreeMap::new();
    go(root, root, &mut all);
    all
}
