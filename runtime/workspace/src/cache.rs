//! Build caches: folders of the workspace and of toolchains that are kept from one stage of a run to the next, and never
//! committed.
//!
//! Caches are stored in the run's folder, in sets: one for builders, one for checkers, one for verifiers, and one for
//! each stage with restricted reads. Files that a verifier compiles from hold-outs must not reach a builder. Stages of
//! one set share caches, and one stage can corrupt them for the others, so a set in which code of builders ran is
//! marked. The content is untrusted: this module measures and removes it, and never reads it.

use crate::stage::{ViewOverrides, WorkspaceView};
use crate::tree::{self, Owner, Tree, WalkEntry, WalkError};
use glovebox_jail_helper::policy::{Bind, HOME_INSIDE};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Entry, Scope};
use glovebox_record::{NodeId, Tier};
use rustix::fs::{FileType, FlockOperation, flock};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Maximum size in bytes of all caches of one set after a stage. If they are larger, all are removed.
pub const BYTES_MAX: u64 = 4 << 30;

/// Minimum number of bytes that are counted for an entry: an inode and a name.
const ENTRY_BYTES: u64 = 1024;
/// Name of the caches' folder in a run's folder.
pub const FOLDER: &str = "cache";
const LOCK: &str = "lock";
/// File name extension of the mark of a set in which code of builders ran.
const MARK: &str = "builders";
/// File name extension of the mark of a set that a running attempt uses.
const UNSETTLED: &str = "unsettled";

/// Role of the stages that use a set of caches. A domain never sees the caches of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Domain {
    /// Stages that may not see hold-outs.
    Builder,
    /// Stages that may see hold-outs.
    Verifier,
    /// Stages that judge the work of builders and may not see hold-outs.
    Checker,
}

impl Domain {
    /// Returns the name of the domain's folder.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Builder => "builder",
            Self::Verifier => "verifier",
            Self::Checker => "checker",
        }
    }
}

/// A set of caches that stages share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSet(String);

impl From<Domain> for CacheSet {
    /// Returns the set that all stages of a domain share.
    fn from(domain: Domain) -> Self {
        Self(domain.as_str().to_owned())
    }
}

impl CacheSet {
    /// Returns the set of a single node.
    pub fn for_node(domain: Domain, node: &NodeId) -> Self {
        Self(format!("{}-{}", domain.as_str(), &blake3::hash(node.as_str().as_bytes()).to_hex()[..16]))
    }

    /// Returns the name of the set's folder.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if code of builders may have run in a stage that used the set.
    pub fn is_marked(&self, run: &Path) -> bool {
        self.mark_file(run).exists()
    }

    /// Marks the set because code of builders may run in a stage that uses it. Must be called before that stage starts.
    ///
    /// # Errors
    /// [`CacheError::Io`] if the system refuses.
    pub fn mark(&self, run: &Path) -> Result<(), CacheError> {
        let file = self.mark_file(run);
        let all = run.join(FOLDER);
        DirBuilder::new().recursive(true).mode(0o700).create(&all).map_err(failed("make", &all))?;
        fs::write(&file, []).map_err(failed("write", &file))
    }

    /// Returns true if an attempt that used the set did not end normally.
    pub(crate) fn is_unsettled(&self, run: &Path) -> bool {
        self.unsettled_file(run).exists()
    }

    /// Starts an attempt that uses the set. If the previous attempt did not end normally, the caches are removed first,
    /// because they may contain incomplete files. Only one attempt at a time may use a set.
    ///
    /// # Errors
    /// [`CacheError::Io`] if the system refuses.
    pub fn begin(&self, run: &Path) -> Result<(), CacheError> {
        let file = self.unsettled_file(run);
        if file.exists() {
            let folder = run.join(FOLDER).join(&self.0);
            tree::remove_all(&folder).map_err(failed("remove", &folder))?;
        }
        let all = run.join(FOLDER);
        DirBuilder::new().recursive(true).mode(0o700).create(&all).map_err(failed("make", &all))?;
        fs::write(&file, []).map_err(failed("write", &file))
    }

    /// Ends an attempt in which no command was killed. The next stage gets the caches.
    ///
    /// # Errors
    /// [`CacheError::Io`] if the system refuses.
    pub fn settle(&self, run: &Path) -> Result<(), CacheError> {
        let file = self.unsettled_file(run);
        fs::remove_file(&file).map_err(failed("remove", &file))
    }

    fn mark_file(&self, run: &Path) -> PathBuf {
        run.join(FOLDER).join(format!("{}.{MARK}", self.0))
    }

    fn unsettled_file(&self, run: &Path) -> PathBuf {
        run.join(FOLDER).join(format!("{}.{UNSETTLED}", self.0))
    }
}

/// Why caches could not be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// An entry is not a folder.
    #[error("`{0}` cannot be a cache: expected a folder of the workspace with a final `/`")]
    Entry(Entry),
    /// The operating system refused.
    #[error("could not use the caches: failed to {act} `{path}`: {source}")]
    Io {
        /// The failed action.
        act: &'static str,
        /// Path on which it failed.
        path: String,
        /// The system's error.
        source: io::Error,
    },
}

/// The caches of one stage. No other stage can remove them while this value exists.
#[derive(Debug)]
pub struct Caches {
    domain: PathBuf,
    held: File,
    folders: Vec<(ScopePath, PathBuf)>,
    /// Folders of toolchains: the path below HOME, and the folder of the cache.
    tools: Vec<(PathBuf, PathBuf)>,
}

/// Size of a set's caches after a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheUsage {
    /// Size on disk in bytes; a lower bound if the caches were removed.
    pub bytes: u64,
    /// True if the caches were removed because they exceeded the limit or could not be measured.
    pub dropped: bool,
}

impl Caches {
    /// Opens or creates the cache folders of these entries. An entry inside the folder of another entry is part of that one.
    ///
    /// # Errors
    /// [`CacheError::Entry`] for the whole workspace and for an entry without a final `/`.
    pub fn open(run: &Path, set: &CacheSet, entries: &[Entry]) -> Result<Self, CacheError> {
        Self::in_folder(run.join(FOLDER).join(set.as_str()), entries)
    }

    /// Creates a set for a single stage in the new folder `at`, with a copy of the folder `base` if that exists. No
    /// other stage sees changes to it.
    ///
    /// # Errors
    /// As [`Caches::open`]. Also [`CacheError::Io`] if `base` cannot be copied.
    pub fn private(at: &Path, base: Option<&Path>, entries: &[Entry]) -> Result<Self, CacheError> {
        if let Some(base) = base.filter(|base| base.is_dir()) {
            let copied = WorkspaceView::copy(base, at, &Scope::everything(), &ViewOverrides::default());
            copied.map_err(|error| failed("copy", base)(io::Error::other(error)))?;
        }
        Self::in_folder(at.to_owned(), entries)
    }

    fn in_folder(domain: PathBuf, entries: &[Entry]) -> Result<Self, CacheError> {
        if let Some(entry) = entries.iter().find(|entry| !entry.is_subtree() || entry.path().is_root()) {
            return Err(CacheError::Entry(entry.clone()));
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&domain).map_err(failed("make", &domain))?;
        let held = lock_file(&domain)?;
        let outer = |entry: &&Entry| !entries.iter().any(|other| other.covers(entry) && other != *entry);
        let mut folders: Vec<(ScopePath, PathBuf)> = Vec::new();
        for entry in entries.iter().filter(outer) {
            let folder = domain.join(folder_name(entry));
            make_private(&folder).map_err(failed("make", &folder))?;
            if !folders.iter().any(|(path, _)| path == entry.path()) {
                folders.push((entry.path().clone(), folder));
            }
        }
        Ok(Self { domain, held, folders, tools: Vec::new() })
    }

    /// Adds cache folders of toolchains, each given as its path below the HOME of commands.
    ///
    /// # Errors
    /// [`CacheError::Io`] if the system refuses.
    pub fn with_tools(mut self, below_home: &[PathBuf]) -> Result<Self, CacheError> {
        for path in below_home {
            let name = blake3::hash(&[b"tools:", path.as_os_str().as_encoded_bytes()].concat());
            let folder = self.domain.join(&name.to_hex()[..16]);
            make_private(&folder).map_err(failed("make", &folder))?;
            let folder = fs::canonicalize(&folder).map_err(failed("find", &folder))?;
            self.tools.push((path.to_owned(), folder));
        }
        Ok(self)
    }

    /// Returns the mounts of the toolchains' folders for a sandbox of this tier. Without a private root, a folder has
    /// the same path inside and outside of the sandbox. Then only the first toolchain folder is available, through
    /// environment variables.
    ///
    /// # Errors
    /// [`CacheError::Io`] if a path is not UTF-8.
    pub fn tool_binds(&self, tier: Tier) -> Result<Vec<Bind>, CacheError> {
        let bind = |(below_home, folder): &(PathBuf, PathBuf)| {
            let folder = utf8(folder.to_owned())?;
            let at = if tier.has_own_root() { Path::new(HOME_INSIDE).join(below_home) } else { folder.to_owned() };
            Ok(Bind { writable: true, ..Bind::read_only(folder, utf8(at)?) })
        };
        let had = if tier.has_own_root() { self.tools.len() } else { 1 };
        self.tools.iter().take(had).map(bind).collect()
    }

    /// Returns true if any cache has content. Folders of toolchains at or below `but` are ignored.
    pub fn has_content(&self, but: Option<&Path>) -> bool {
        let counts = |below_home: &Path| but.is_none_or(|but| !below_home.starts_with(but));
        let of_tools = self.tools.iter().filter(|(below_home, _)| counts(below_home)).map(|(_, folder)| folder);
        self.folders.iter().map(|(_, folder)| folder).chain(of_tools).any(|folder| has_content(folder))
    }

    /// Returns the paths at which the caches are mounted, for [`crate::stage::ViewOverrides`].
    pub fn mount_points(&self) -> Vec<ScopePath> {
        self.folders.iter().map(|(path, _)| path.clone()).collect()
    }

    /// Returns the mounts for a jail whose workspace is at `inside`.
    ///
    /// # Errors
    /// [`CacheError::Io`] if a path is not UTF-8.
    pub fn binds(&self, inside: &Path) -> Result<Vec<Bind>, CacheError> {
        let bind = |(path, folder): &(ScopePath, PathBuf)| {
            let at = inside.join(path.as_str());
            Ok(Bind { writable: true, ..Bind::read_only(utf8(folder.to_owned())?, utf8(at)?) })
        };
        self.folders.iter().map(bind).collect()
    }

    /// Measures the set's caches after the stage's jail has ended, and removes all of them if they exceed `bytes_max`.
    /// If another stage uses them, they are kept, and the limit is enforced at the end of that stage.
    ///
    /// # Errors
    /// [`CacheError::Io`] if the caches cannot be removed.
    pub fn enforce_limit(self, bytes_max: u64) -> Result<CacheUsage, CacheError> {
        let measured = measure(&self.domain, bytes_max);
        let bytes = measured.unwrap_or(bytes_max);
        let over = measured.is_none_or(|bytes| bytes > bytes_max);
        if !over || flock(&self.held, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(CacheUsage { bytes, dropped: false });
        }
        for entry in fs::read_dir(&self.domain).map_err(failed("list", &self.domain))? {
            let path = entry.map_err(failed("list", &self.domain))?.path();
            if !path.ends_with(LOCK) {
                tree::remove_all(&path).map_err(failed("remove", &path))?;
            }
        }
        Ok(CacheUsage { bytes, dropped: true })
    }
}

/// Moves the private caches of a finished stage from `from` to `to`, unless they exceed `bytes_max`. Does nothing if
/// `from` does not exist.
///
/// # Errors
/// [`CacheError::Io`] if the system refuses.
pub fn keep(from: &Path, to: &Path, bytes_max: u64) -> Result<(), CacheError> {
    if !from.is_dir() || measure(from, bytes_max).is_none_or(|bytes| bytes > bytes_max) {
        return Ok(());
    }
    let above = to.parent().unwrap_or(to);
    DirBuilder::new().recursive(true).mode(0o700).create(above).map_err(failed("make", above))?;
    fs::rename(from, to).map_err(failed("move", to))
}

/// Takes the shared lock of a set. Waits while another stage removes the caches.
fn lock_file(domain: &Path) -> Result<File, CacheError> {
    let path = domain.join(LOCK);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(failed("open", &path))?;
    flock(&file, FlockOperation::LockShared).map_err(|error| failed("lock", &path)(error.into()))?;
    Ok(file)
}

/// Returns the folder name of an entry. It depends only on the path.
fn folder_name(entry: &Entry) -> String {
    blake3::hash(entry.path().as_str().as_bytes()).to_hex()[..16].to_owned()
}

/// Creates a private folder, or resets its permissions, which a command may have changed.
fn make_private(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
        }
        other => other,
    }
}

/// Returns true if a folder has an entry or cannot be read.
pub fn has_content(folder: &Path) -> bool {
    fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_some())
}

/// Returns the size of a folder in bytes; counting stops above `bytes_max`. Returns `None` if the folder cannot be read.
pub(crate) fn measure(folder: &Path, bytes_max: u64) -> Option<u64> {
    let mut tree = Tree::open(folder).ok()?;
    tree.owner = Owner::ThisProgram;
    let mut bytes = 0_u64;
    let mut count = |entry: &WalkEntry<'_>| -> Result<bool, WalkError> {
        let blocks = u64::try_from(entry.stat.st_blocks).unwrap_or(0);
        bytes = bytes.saturating_add((blocks * 512).max(ENTRY_BYTES));
        Ok(bytes <= bytes_max && entry.kind() == FileType::Directory)
    };
    tree::walk(&tree, &mut count).ok()?;
    Some(bytes)
}

fn utf8(path: PathBuf) -> Result<PathBuf, CacheError> {
    if path.to_str().is_some() {
        return Ok(path);
    }
    Err(failed("name", &path)(io::Error::new(io::ErrorKind::InvalidData, "it is not valid UTF-8")))
}

pub(crate) fn failed<'p>(act: &'static str, path: &'p Path) -> impl Fn(io::Error) -> CacheError + 'p {
    move |source| CacheError::Io { act, path: tree::shown(path), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn entries(texts: &[&str]) -> Vec<Entry> {
        texts.iter().map(|text| Entry::parse(text).unwrap()).collect()
    }

    fn sources(run: &Path, domain: Domain, texts: &[&str]) -> Vec<PathBuf> {
        let caches = Caches::open(run, &domain.into(), &entries(texts)).unwrap();
        caches.binds(Path::new("/w")).unwrap().into_iter().map(|bind| bind.source).collect()
    }

    #[test]
    fn a_path_keeps_its_folder_within_a_domain_and_nowhere_else() {
        let run = tempfile::tempdir().unwrap();
        let builders = sources(run.path(), Domain::Builder, &["target/", "web/.cache/"]);
        fs::write(builders[0].join("kept"), "x").unwrap();
        let again = sources(run.path(), Domain::Builder, &["web/.cache/", "target/"]);
        assert_eq!([&again[1], &again[0]], [&builders[0], &builders[1]]);
        assert!(again[1].join("kept").exists());
        let verifiers = sources(run.path(), Domain::Verifier, &["target/"]);
        assert!(!builders.contains(&verifiers[0]) && fs::read_dir(&verifiers[0]).unwrap().next().is_none());
        for folder in builders.iter().chain(&verifiers) {
            assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn mounts_are_writable_and_lie_in_the_workspace() {
        let run = tempfile::tempdir().unwrap();
        let caches = Caches::open(run.path(), &Domain::Builder.into(), &entries(&["a/b/", "a/", "a/", "c/"])).unwrap();
        let at: Vec<_> =
            caches.binds(Path::new("/w")).unwrap().into_iter().map(|bind| (bind.at, bind.writable)).collect();
        assert_eq!(at, [("/w/a".into(), true), ("/w/c".into(), true)]);
        assert_eq!(caches.mount_points().iter().map(ScopePath::as_str).collect::<Vec<_>>(), ["a", "c"]);
        for text in ["./", "target"] {
            let refused = Caches::open(run.path(), &Domain::Builder.into(), &entries(&[text]));
            assert!(matches!(refused, Err(CacheError::Entry(_))), "{text}");
        }
    }

    #[test]
    fn what_is_over_the_bound_is_dropped_and_links_lead_nowhere() {
        let run = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("canary"), vec![1; 1 << 20]).unwrap();
        let open = || Caches::open(run.path(), &Domain::Builder.into(), &entries(&["target/"])).unwrap();
        let folder = sources(run.path(), Domain::Builder, &["target/"]).remove(0);
        symlink(outside.path(), folder.join("way")).unwrap();
        fs::create_dir(folder.join("deep")).unwrap();
        fs::write(folder.join("deep/file"), vec![1; 64 << 10]).unwrap();
        fs::set_permissions(folder.join("deep"), fs::Permissions::from_mode(0o000)).unwrap();
        let usage = open().enforce_limit(1 << 20).unwrap();
        assert!(!usage.dropped && usage.bytes > 64 << 10, "{usage:?}");
        let other = open();
        assert!(!open().enforce_limit(32 << 10).unwrap().dropped, "a stage uses it");
        assert!(folder.join("deep/file").exists());
        assert!(other.enforce_limit(32 << 10).unwrap().dropped);
        assert!(!folder.exists() && outside.path().join("canary").exists());
        assert!(sources(run.path(), Domain::Builder, &["target/"])[0].exists());
    }

    #[test]
    fn what_a_killed_attempt_left_is_gone() {
        let run = tempfile::tempdir().unwrap();
        let set = CacheSet::from(Domain::Builder);
        let attempt = |ends: bool| {
            set.begin(run.path()).unwrap();
            let folder = sources(run.path(), Domain::Builder, &["target/"]).remove(0);
            let found = has_content(&folder);
            fs::write(folder.join("left"), "x").unwrap();
            ends.then(|| set.settle(run.path()).unwrap());
            found
        };
        assert_eq!([attempt(true), attempt(false), attempt(true), attempt(true)], [false, true, false, true]);
    }

    #[test]
    fn permissions_a_command_took_are_given_back() {
        let run = tempfile::tempdir().unwrap();
        let folder = sources(run.path(), Domain::Verifier, &["target/"]).remove(0);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).unwrap();
        sources(run.path(), Domain::Verifier, &["target/"]);
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
