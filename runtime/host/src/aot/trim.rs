//! Size limit of the store of compiled components. Adding a component removes the least recently used ones.
//!
//! A file's modification time is the time of its last use. Several processes may use the folder at the same time: a file that another
//! process has removed is not an error, and a process that has it open can still read it. Files with other names are not touched.

use super::ArtefactName;
use cap_std::fs::{Dir, File, Metadata};
use cap_std::time::{Duration, SystemTime};
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, futimens};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Minimum age of the recorded last use before a new use is recorded. The order of uses is then known to the minute, and a load seldom
/// writes.
const NOTED_AFTER: Duration = Duration::from_secs(60);

/// Age after which an unfinished file is removed, because its writer must have crashed.
const UNFINISHED: Duration = Duration::from_secs(3600);

/// Records that an artefact was used now. If this fails, the artefact only looks older than it is.
pub(super) fn note_use(file: &File) {
    let is_recent = file.metadata().is_ok_and(|found| age(&found) < NOTED_AFTER);
    if !is_recent {
        let now = || Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let _ = futimens(file, &Timestamps { last_access: now(), last_modification: now() });
    }
}

/// One artefact with its MAC.
struct StoredArtefact {
    used: SystemTime,
    bytes: u64,
}

/// Removes artefacts until the rest has at most `bytes_max` bytes. The artefact that was just added is never removed.
pub(super) fn trim(dir: &Dir, bytes_max: u64, added: &ArtefactName) -> io::Result<()> {
    let kept = artefacts(dir)?;
    let mut total: u64 = kept.values().map(|one| one.bytes).sum();
    let mut oldest: Vec<(&ArtefactName, &StoredArtefact)> = kept.iter().filter(|(name, _)| *name != added).collect();
    oldest.sort_by_key(|(_, one)| one.used);
    for (name, one) in oldest {
        if total <= bytes_max {
            break;
        }
        remove(dir, name.as_path())?;
        remove(dir, &name.mac_path())?;
        total = total.saturating_sub(one.bytes);
    }
    Ok(())
}

/// Returns every artefact by its name, with the size of artefact and MAC. Removes unfinished files that a crashed process has left.
fn artefacts(dir: &Dir) -> io::Result<BTreeMap<ArtefactName, StoredArtefact>> {
    let mut kept: BTreeMap<ArtefactName, StoredArtefact> = BTreeMap::new();
    for entry in dir.entries()? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let found = match entry.metadata() {
            Err(gone) if gone.kind() == io::ErrorKind::NotFound => continue,
            found => found?,
        };
        let Some((stem, rest)) = name.split_once(".cwasm").filter(|_| found.is_file()) else { continue };
        if !matches!(rest, "" | ".mac") {
            if age(&found) > UNFINISHED {
                remove(dir, Path::new(&name))?;
            }
            continue;
        }
        let used = found.modified().unwrap_or(SystemTime::from_std(std::time::UNIX_EPOCH));
        let one = kept.entry(ArtefactName(format!("{stem}.cwasm"))).or_insert(StoredArtefact { used, bytes: 0 });
        one.bytes += found.len();
        // Uses are recorded in the modification time of the artefact, not of the MAC.
        if rest.is_empty() {
            one.used = used;
        }
    }
    Ok(kept)
}

fn age(found: &Metadata) -> Duration {
    let now = SystemTime::from_std(std::time::SystemTime::now());
    found.modified().ok().and_then(|changed| now.duration_since(changed).ok()).unwrap_or_default()
}

fn remove(dir: &Dir, path: &Path) -> io::Result<()> {
    match dir.remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
