//! Build caches that a run takes over from an earlier run of the same project.
//!
//! A run that has ended offers the caches of its checkers: the stages that judge without hold-outs in reach. A later
//! run takes them if its key is the same. The key covers everything that decides what a cache may contain: toolchains,
//! settings of the sandbox, lock files, and what the stages can read. An offer is signed with the user's key and
//! identifies the folders by inode and creation time. So a folder that came with a project, or that was replaced by
//! another folder or a symbolic link, is never taken.
//!
//! Caches in which code of builders ran are never offered. Before that code runs in a checker, [`snapshot`] copies the
//! caches, and the copy is offered.
//!
//! Build tools compare modification times. A file of the project with the same content as in the earlier run keeps the
//! modification time that it had there. Any other file gets the current time, so that everything made from it is built
//! again.

use crate::cache::{self, CacheError, CacheSet, Domain, failed};
use crate::ignored_store::{self, IgnoredStore};
use crate::project::Base;
use crate::regular_file::{self, Links};
use crate::stage::{ViewOverrides, WorkspaceView};
use crate::tree::{self, Owner, Tree, WalkEntry, WalkError};
use crate::user_key::UserKey;
use glovebox_record::Digest;
use glovebox_record::scope::{Entry, Scope};
use rustix::fs::{FileType, Timespec, Timestamps, UTIME_NOW, futimens};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Name of the file with the offer, in a run's folder of caches.
const OFFER: &str = "offer";
/// Name of the folder with the snapshot, in a run's folder of caches.
const SNAPSHOT: &str = "snapshot";
/// Name of a folder that is being filled.
const UNFINISHED: &str = "unfinished";
const PURPOSE: &str = "glovebox 2026 caches of a run v1";
const OFFER_BYTES_MAX: u64 = 1 << 16;
/// Maximum number of programs in a folder that are part of a key.
const PROGRAMS_MAX: usize = 20_000;

/// Which caches a run may take over or offer.
#[derive(Debug, Clone, Copy)]
pub struct CacheReuse<'a> {
    /// Digest of everything that decides what a cache may contain.
    pub key: &'a Digest,
    /// Folders of files that git ignores and that later runs need.
    pub folders: &'a [Entry],
    /// The user's key.
    pub user_key: &'a UserKey,
    /// Maximum size of the caches in bytes. Larger ones are not offered.
    pub bytes_max: u64,
}

/// How caches come to the new run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// They are moved, because nothing needs them in the earlier run.
    Move,
    /// They are copied, because the earlier run may be resumed.
    Copy,
}

/// A signed statement about the caches of an ended run.
#[derive(Debug, Serialize, Deserialize)]
struct Offer {
    key: Digest,
    /// True if the caches are in the folder of the snapshot.
    is_snapshot: bool,
    /// The folder with the caches of the set.
    caches: Option<Identity>,
    /// The folder with the files that git ignores.
    ignored: Option<Identity>,
}

/// Identity of a folder. A copy of the folder, or another folder at the same path, has a different identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    inode: u64,
    born_seconds: u64,
    born_nanoseconds: u32,
}

impl Identity {
    /// Returns the identity of a folder. `None` for anything else, and on a file system without creation times.
    fn read(folder: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(folder).ok().filter(fs::Metadata::is_dir)?;
        let born = found.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Self { inode: found.ino(), born_seconds: born.as_secs(), born_nanoseconds: born.subsec_nanos() })
    }
}

/// The folders of one set: in a run's folder of caches, or in its snapshot.
struct SetFolders {
    caches: PathBuf,
    ignored: PathBuf,
}

impl SetFolders {
    fn below(folder: &Path, set: &CacheSet) -> Self {
        Self { caches: folder.join(set.as_str()), ignored: folder.join(ignored_store::FOLDER).join(set.as_str()) }
    }

    fn of_run(run: &Path, set: &CacheSet, is_snapshot: bool) -> Self {
        let all = run.join(cache::FOLDER);
        Self::below(&if is_snapshot { all.join(SNAPSHOT) } else { all }, set)
    }
}

fn checkers() -> CacheSet {
    Domain::Checker.into()
}

/// Copies the caches of a set before code of builders runs in a stage that uses them. Without a copy, a marked set is
/// not offered. Must be called before the set is marked.
///
/// # Errors
/// [`CacheError::Io`] if the system refuses.
pub fn snapshot(run: &Path, set: &CacheSet, folders: &[Entry]) -> Result<(), CacheError> {
    let (all, from) = (run.join(cache::FOLDER), SetFolders::of_run(run, set, false));
    let (made, unfinished) = (all.join(SNAPSHOT), all.join(UNFINISHED));
    if *set != checkers() || made.exists() || !(has_any(&from.caches) || has_any(&from.ignored)) {
        return Ok(());
    }
    tree::remove_all(&unfinished).map_err(failed("remove", &unfinished))?;
    let into = SetFolders::below(&unfinished, set);
    copy(&from.caches, &into.caches)?;
    DirBuilder::new().recursive(true).mode(0o700).create(&into.ignored).map_err(failed("make", &into.ignored))?;
    transfer_folders(&from.ignored, &into.ignored, folders, Transfer::Copy)?;
    fs::rename(&unfinished, &made).map_err(failed("move", &made))
}

fn has_any(folder: &Path) -> bool {
    folder.is_dir() && cache::has_content(folder)
}

/// Returns true if a run has caches that it could offer.
pub fn has_caches(run: &Path) -> bool {
    let set = checkers();
    let folders = SetFolders::of_run(run, &set, set.is_marked(run));
    has_any(&folders.caches) || has_any(&folders.ignored)
}

/// Returns true if a run has an offer, whether or not it is valid.
pub fn has_offer(run: &Path) -> bool {
    run.join(cache::FOLDER).join(OFFER).is_file()
}

impl CacheReuse<'_> {
    /// Offers the caches of a run that has ended. Offers nothing if they are incomplete, too large, or may contain
    /// files that builders' code wrote.
    ///
    /// # Errors
    /// [`CacheError::Io`] if the system refuses.
    pub fn offer(&self, run: &Path) -> Result<bool, CacheError> {
        withdraw(run)?;
        let set = checkers();
        let is_snapshot = set.is_marked(run);
        let is_incomplete = !is_snapshot && !is_usable(run, &set);
        let folders = SetFolders::of_run(run, &set, is_snapshot);
        let bytes = [&folders.caches, &folders.ignored].into_iter().filter(|folder| folder.is_dir());
        let bytes = bytes.map(|folder| cache::measure(folder, self.bytes_max).unwrap_or(u64::MAX));
        let bytes = bytes.fold(0_u64, u64::saturating_add);
        let (caches, ignored) = (Identity::read(&folders.caches), Identity::read(&folders.ignored));
        if is_incomplete || bytes > self.bytes_max || (caches.is_none() && ignored.is_none()) {
            return Ok(false);
        }
        let offer = Offer { key: *self.key, is_snapshot, caches, ignored };
        let text = serde_json::to_string(&offer).map_err(io::Error::other);
        let file = run.join(cache::FOLDER).join(OFFER);
        let written = text.and_then(|text| {
            let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?;
            write!(new, "{}\n{text}", self.user_key.mac(PURPOSE, text.as_bytes()).to_hex())
        });
        written.map(|()| true).map_err(failed("write", &file))
    }

    /// Takes over the caches that an earlier run offers. The caller must hold the lock of the earlier run, and no stage
    /// of the new run may have started. Returns false if the earlier run has no usable offer with this key.
    ///
    /// # Errors
    /// [`CacheError::Io`] if the system refuses. The new run then has no caches.
    pub fn take(&self, from: &Path, to: &Path, transfer: Transfer) -> Result<bool, CacheError> {
        let set = checkers();
        let Some(offer) = self.read_offer(from).filter(|offer| offer.is_snapshot || is_usable(from, &set)) else {
            return Ok(false);
        };
        let source = SetFolders::of_run(from, &set, offer.is_snapshot);
        let is_same =
            |expected: Option<Identity>, folder: &Path| expected.is_none() || Identity::read(folder) == expected;
        let all = to.join(cache::FOLDER);
        if !is_same(offer.caches, &source.caches) || !is_same(offer.ignored, &source.ignored) || all.exists() {
            return Ok(false);
        }
        // The offer is removed first, so that no other run takes caches that are being moved.
        if transfer == Transfer::Move {
            withdraw(from)?;
        }
        let unfinished = to.join(UNFINISHED_RUN);
        tree::remove_all(&unfinished).map_err(failed("remove", &unfinished))?;
        let into = SetFolders::below(&unfinished, &set);
        let taken = self
            .fill(&offer, &source, &into, transfer)
            .and_then(|()| fs::rename(&unfinished, &all).map_err(failed("move", &all)));
        if taken.is_err() {
            let _left_behind = tree::remove_all(&unfinished);
        }
        if transfer == Transfer::Move {
            // Nothing reads the other caches of a run that cannot be resumed.
            let _left_until_gc = tree::remove_all(&from.join(cache::FOLDER));
        }
        taken.map(|()| true)
    }

    fn fill(
        &self,
        offer: &Offer,
        source: &SetFolders,
        into: &SetFolders,
        transfer: Transfer,
    ) -> Result<(), CacheError> {
        DirBuilder::new().recursive(true).mode(0o700).create(&into.ignored).map_err(failed("make", &into.ignored))?;
        if offer.caches.is_some() {
            relocate(&source.caches, &into.caches, transfer)?;
        }
        if offer.ignored.is_some() {
            transfer_folders(&source.ignored, &into.ignored, self.folders, transfer)?;
        }
        Ok(())
    }

    /// Returns true if an earlier run offers caches with this key.
    pub fn is_offered_by(&self, run: &Path) -> bool {
        self.read_offer(run).is_some()
    }

    fn read_offer(&self, run: &Path) -> Option<Offer> {
        let file = run.join(cache::FOLDER).join(OFFER);
        // If the clock was set back since, files that the user has changed look older than the builds, and a build tool
        // would keep the builds.
        if fs::symlink_metadata(&file).and_then(|offer| offer.modified()).is_ok_and(|made| made > SystemTime::now()) {
            return None;
        }
        let text = regular_file::read_text(&file, Links::Within(run), OFFER_BYTES_MAX).ok()?;
        let (mac, text) = text.split_once('\n')?;
        let expected = self.user_key.mac(PURPOSE, text.as_bytes());
        // The comparison takes constant time.
        let is_own = blake3::Hash::from_hex(mac).ok()? == expected;
        let offer: Offer = is_own.then(|| serde_json::from_str(text).ok()).flatten()?;
        (offer.key == *self.key).then_some(offer)
    }
}

/// Returns true if the caches of a set are complete, and no code of builders ran in a stage that used them.
fn is_usable(run: &Path, set: &CacheSet) -> bool {
    !set.is_marked(run) && !set.is_unsettled(run) && !IgnoredStore::is_changing(run, set)
}

/// Withdraws the offer of a run that continues, because its caches may change.
///
/// # Errors
/// [`CacheError::Io`] if the system refuses.
pub fn withdraw(run: &Path) -> Result<(), CacheError> {
    let file = run.join(cache::FOLDER).join(OFFER);
    match fs::remove_file(&file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", &file)(error)),
        _ => Ok(()),
    }
}

/// Name of a folder of caches that is being filled, in the folder of a run.
const UNFINISHED_RUN: &str = ".cache.new";

/// Moves or copies the folders of files that git ignores. An entry is skipped if its path leads through anything but
/// folders: the content of a store comes from stages, so it may contain symbolic links.
fn transfer_folders(from: &Path, to: &Path, folders: &[Entry], transfer: Transfer) -> Result<(), CacheError> {
    let Ok(mut source) = Tree::open(from) else { return Ok(()) };
    source.owner = Owner::ThisProgram;
    for entry in folders {
        let path = Path::new(entry.path().as_str());
        let is_covered = folders.iter().any(|other| other != entry && other.covers(entry));
        if is_covered || source.directory(path).is_err() {
            continue;
        }
        let target = to.join(path);
        let above = target.parent().unwrap_or(to);
        DirBuilder::new().recursive(true).mode(0o755).create(above).map_err(failed("make", above))?;
        relocate(&from.join(path), &target, transfer)?;
    }
    Ok(())
}

fn relocate(from: &Path, to: &Path, transfer: Transfer) -> Result<(), CacheError> {
    match transfer {
        Transfer::Move => match fs::rename(from, to) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy(from, to),
            moved => moved.map_err(failed("move", to)),
        },
        Transfer::Copy => copy(from, to),
    }
}

/// Copies a folder with its times, if it exists.
fn copy(from: &Path, to: &Path) -> Result<(), CacheError> {
    if !from.is_dir() {
        return Ok(());
    }
    let above = to.parent().unwrap_or(to);
    DirBuilder::new().recursive(true).mode(0o700).create(above).map_err(failed("make", above))?;
    let copied = WorkspaceView::copy(from, to, &Scope::everything(), &ViewOverrides::default());
    copied.map(drop).map_err(|error| failed("copy", from)(io::Error::other(error)))
}

/// Returns one line for each program in a folder, with its path, size and modification time. Another version of a
/// compiler has another size or time.
pub fn programs(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(PROGRAMS_MAX);
    let program = |entry: fs::DirEntry| {
        let stat = fs::metadata(entry.path()).ok()?;
        Some(format!("{:?} {} {}.{}\n", entry.path(), stat.len(), stat.mtime(), stat.mtime_nsec()))
    };
    let mut found: Vec<String> = entries.filter_map(program).collect();
    found.sort();
    found
}

/// Returns true if a workspace still has every file and link with which its run began.
///
/// # Errors
/// An [`io::Error`] if the workspace cannot be read.
pub fn keeps_base(workspace: &Path, base: &Base) -> io::Result<bool> {
    let tree = Tree::open(workspace)?;
    for path in base.files.keys().chain(base.symlinks.keys()) {
        if tree.stat_below_folders(Path::new(path))?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns true if the project still has every file of an earlier workspace, except those that `may_lack` selects. Build
/// output may contain files made from a removed source file, and not every build tool removes them.
///
/// # Errors
/// An [`io::Error`] if the earlier workspace cannot be read.
pub fn has_all_files(earlier: &Path, base: &Base, may_lack: impl Fn(&str) -> bool) -> io::Result<bool> {
    let tree = Tree::open(earlier)?;
    let mut has_all = true;
    let mut visit = |entry: &WalkEntry<'_>| -> Result<bool, WalkError> {
        let is_folder = entry.kind() == FileType::Directory;
        let path = entry.path.to_str();
        let is_known = |path| base.files.contains_key(path) || base.symlinks.contains_key(path);
        has_all &= is_folder || path.is_some_and(|path| is_known(path) || may_lack(path));
        Ok(is_folder && has_all)
    };
    tree::walk(&tree, &mut visit).map_err(|error| error.source)?;
    Ok(has_all)
}

/// Gives the files of a new workspace the modification times of the same files in an earlier one. A file with other
/// content, and a file that `may_change` selects, gets the current time.
///
/// # Errors
/// An [`io::Error`] if a file of the new workspace cannot be changed. Its caches must then not be used.
pub fn keep_times(earlier: &Path, new: &Path, base: &Base, may_change: impl Fn(&str) -> bool) -> io::Result<()> {
    let (mut before, mut now) = (Tree::open(earlier)?, Tree::open(new)?);
    (before.owner, now.owner) = (Owner::ThisProgram, Owner::ThisProgram);
    let present = present()?;
    for (path, fact) in &base.files {
        let known = if may_change(path) { None } else { time_of(&before, Path::new(path), &fact.digest) };
        let (parent, name) = now.parent(Path::new(path))?;
        let file = tree::open_regular(&parent, name, Owner::ThisProgram)?;
        let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW as _ };
        futimens(&file, &Timestamps { last_access, last_modification: known.unwrap_or(present) })?;
    }
    Ok(())
}

fn present() -> io::Result<Timespec> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?;
    Ok(Timespec { tv_sec: now.as_secs().cast_signed(), tv_nsec: now.subsec_nanos().into() })
}

/// Returns the modification time of a file if the file has this content.
fn time_of(tree: &Tree, path: &Path, digest: &Digest) -> Option<Timespec> {
    let (parent, name) = tree.parent(path).ok()?;
    let stat = tree::stat_at(&parent, name).ok()??;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let file: File = tree::open_regular(&parent, name, Owner::ThisProgram).ok()?;
    let found = file.metadata().ok()?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(&file).ok()?;
    (Digest::from(hasher.finalize()) == *digest)
        .then(|| Timespec { tv_sec: found.mtime(), tv_nsec: found.mtime_nsec() })
}

#[cfg(test)]
mod tests;
