//! The changes of a run to its workspace.
//!
//! They are read from the journal and the blobs. The workspace is never read, and the project only for old versions
//! that the run did not store.

mod asked;

pub use asked::AskedAbout;

use crate::exit::{Exit, Stop};
use crate::patch::{Bytes, Delta, Version};
use crate::runs::RunFolder;
use crate::runs::journal;
use crate::terminal::visible;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use glovebox_journal::blobs::DirBlobs;
use glovebox_journal::event::{
    Attempt, AttemptId, BranchId, Event, FanInFinished, Record, RecoveryDecided, RunStarted, StageFiles, StageFinished,
    Task, Verdict, Work,
};
use glovebox_journal::ports::BlobStore;
use glovebox_journal::rewind;
use glovebox_journal::sqlite::{Provenance, VerifiedJournal};
use glovebox_record::path::ScopePath;
use glovebox_record::{ChangeOp, Digest, FileChange, Outcome};
use glovebox_state::evidence::RunSummary;
use glovebox_state::evidence::configuration::{self, EntryKind, NewConfiguration};
use glovebox_workspace::apply::open_before;
use glovebox_workspace::commit::fold;
use glovebox_workspace::project::Base;
use jiff::Timestamp;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;

/// Maximum size of a blob that is read, in bytes.
const BLOB_BYTES_MAX: u64 = 1 << 30;

/// The changes of a run, and everything else that `diff` and `apply` need.
pub struct Changes {
    /// The files that the run copied from the project.
    pub base: Base,
    /// All changes, in order.
    pub changes: Vec<FileChange>,
    /// The attempts that changed files, in order, with the time of the end of each.
    pub stages: Vec<(Timestamp, StageFinished)>,
    /// The project from which the run copied.
    pub project: PathBuf,
    /// How the run ended; `None` if it has not ended.
    pub verdict: Option<Verdict>,
    /// Whether this user started the run.
    pub provenance: Provenance,
    blobs: DirBlobs,
}

impl Changes {
    /// Reads the changes from a run's journal and blobs.
    pub fn read(run: &RunFolder) -> Result<Self, Stop> {
        Self::from_journal(run, &journal::read(run)?)
    }

    /// Reads the changes that a question asks a person to approve. `base` is then the list of files before these
    /// changes.
    pub fn read_for(run: &RunFolder, verified: &VerifiedJournal, about: &AskedAbout<'_>) -> Result<Self, Stop> {
        let all = Self::from_journal(run, verified)?;
        let (before, stages) = about.split();
        let base = all.base.after(&listed(&before));
        Ok(Self { base, changes: listed(&stages), stages, ..all })
    }

    fn from_journal(run: &RunFolder, verified: &VerifiedJournal) -> Result<Self, Stop> {
        let records = &verified.records;
        let started = journal::beginning(run, records)?;
        let blobs = open_blobs(run)?;
        let base = read_base(run, &blobs, &started.workspace.base_digest)?;
        let since_resumed = records.iter().rev().take_while(|record| record.event.run_resumed().is_none());
        let verdict = { since_resumed }.find_map(|record| record.event.run_finished()).map(|finished| finished.status);
        let is_main = |branch: &BranchId, _| *branch == BranchId::main();
        let stages = changing(&rewind::in_force(records), is_main);
        Ok(Self {
            base,
            changes: listed(&stages),
            stages,
            project: PathBuf::from(&started.workspace.source_dir),
            verdict,
            provenance: verified.provenance,
            blobs,
        })
    }

    /// Returns the files that a run copied.
    pub fn base(run: &RunFolder, started: &RunStarted) -> Result<Base, Stop> {
        read_base(run, &open_blobs(run)?, &started.workspace.base_digest)
    }

    /// Returns the configuration files among these changes that did not exist when the run began.
    pub fn new_configuration<'c>(&self, changes: impl IntoIterator<Item = &'c FileChange>) -> Vec<NewConfiguration> {
        configuration::new(&fold(changes), |path, kind| is_in(&self.base, path, kind))
    }

    /// Checks that the blob of a change is stored and unchanged. This is done before anything is written.
    pub fn verify(&self, change: &FileChange) -> Result<(), Stop> {
        let Some(digest) = change.digest.as_ref().filter(|_| change.op == ChangeOp::Write) else { return Ok(()) };
        self.blobs.verify(digest, change.bytes).map_err(|error| {
            let path = visible::line(change.path.as_str());
            let message = format!("read the blob of `{path}`: {error}; nothing was written");
            Stop::new(Exit::Mismatch, message).with_help("the run's folder is damaged: restore a copy, or run again")
        })
    }

    /// Opens the blob with this digest, without verifying its bytes.
    pub fn open(&self, digest: &Digest) -> io::Result<Box<dyn Read + Send>> {
        self.blobs.open_unverified(digest)
    }

    /// Reads both versions of a file. Returns `None` if the old version is not stored and the project's file has
    /// changed.
    pub fn bytes(&self, delta: &Delta) -> Result<Option<Bytes>, Stop> {
        let old = match &delta.old {
            Some(version) => match self.read_version(version, delta.old_path())? {
                Some(bytes) => Some(bytes),
                None => return Ok(None),
            },
            None => None,
        };
        let new = match &delta.new {
            Some(version) => self.read_version(version, &delta.path)?,
            None => None,
        };
        if delta.new.is_some() && new.is_none() {
            return Err(Stop::new(Exit::Mismatch, format!("the blob of `{}` is missing", delta.path)));
        }
        Ok(Some(Bytes { old, new }))
    }

    /// Reads the content of a path after a change; for a link, its target.
    pub fn bytes_after(&self, change: &FileChange) -> Result<Vec<u8>, Stop> {
        let missing = || Stop::new(Exit::Mismatch, format!("the content of `{}` is missing", change.path));
        self.read_version(&Version::after(change).ok_or_else(missing)?, &change.path)?.ok_or_else(missing)
    }

    fn read_version(&self, version: &Version, path: &ScopePath) -> Result<Option<Vec<u8>>, Stop> {
        let (digest, bytes) = match version {
            Version::Link(target) => return Ok(Some(target.as_bytes().to_vec())),
            Version::File { digest, bytes, .. } => (digest, *bytes),
        };
        match self.blobs.open_unverified(digest) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(self.in_project(path, digest, bytes)),
            _ => match self.blobs.read_all(digest, BLOB_BYTES_MAX) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) => Err(Stop::new(Exit::Mismatch, format!("read the blob of `{path}`: {error}"))),
            },
        }
    }

    /// Returns the content of the project's file, if it still has this digest.
    fn in_project(&self, path: &ScopePath, digest: &Digest, bytes: u64) -> Option<Vec<u8>> {
        let mut found = Vec::new();
        let file = open_before(&self.project, path.as_str()).ok()?;
        file.take(bytes.min(BLOB_BYTES_MAX).saturating_add(1)).read_to_end(&mut found).ok()?;
        (Digest::hash(&found) == *digest).then_some(found)
    }
}

/// Returns the configuration files that are new in a run whose list of copied files has the digest `base`.
pub fn new_configuration(run: &RunFolder, base: &Digest, summary: &RunSummary) -> Result<Vec<NewConfiguration>, Stop> {
    if !configuration::may_be_new(summary.files.changed.values()) {
        return Ok(Vec::new());
    }
    let base = read_base(run, &open_blobs(run)?, base)?;
    Ok(configuration::new(summary.files.changed.values(), |path, kind| is_in(&base, path, kind)))
}

fn is_in(base: &Base, path: &str, kind: EntryKind) -> bool {
    match kind {
        EntryKind::File => base.files.contains_key(path) || base.symlinks.contains_key(path),
        EntryKind::Folder => base.directories.contains(path),
    }
}

/// Opens the blobs of a run.
pub fn open_blobs(run: &RunFolder) -> Result<DirBlobs, Stop> {
    let dir = Dir::open_ambient_dir(&run.path, ambient_authority())
        .map_err(|error| Stop::io(format!("open run `{}`", run.id), &error))?;
    journal::open(run)?.into_blobs(&dir).map_err(|error| journal::unreadable(run, &error))
}

/// Reads a blob as text.
pub fn read_blob_text(run: &RunFolder, blobs: &DirBlobs, digest: &Digest) -> Result<String, Stop> {
    let bytes = blobs.read_all(digest, BLOB_BYTES_MAX).map_err(|error| journal::unreadable(run, &error))?;
    String::from_utf8(bytes)
        .map_err(|_| Stop::new(Exit::Mismatch, format!("blob {digest} of run `{}` is not text", run.id)))
}

fn read_base(run: &RunFolder, blobs: &DirBlobs, digest: &Digest) -> Result<Base, Stop> {
    let text = read_blob_text(run, blobs, digest)?;
    serde_json::from_str(&text).map_err(|error| {
        Stop::new(Exit::Mismatch, format!("read the list of copied files of run `{}`: {error}", run.id))
    })
}

/// Returns the attempts, fan-ins and recovery decisions that changed files. `is_of` gets the branch and the sequence
/// number of a record.
fn changing(records: &[&Record], is_of: impl Fn(&BranchId, u64) -> bool) -> Vec<(Timestamp, StageFinished)> {
    let finished = records.iter().filter_map(|record| match &record.event {
        Event::StageFinished(stage) if is_of(&stage.attempt.task.branch, record.seq) => {
            Some((record.at, (**stage).clone()))
        }
        Event::FanInFinished(merged) if is_of(&merged.branch, record.seq) => Some((record.at, taken(merged))),
        Event::RecoveryDecided(decided) if is_of(decided.branch(), record.seq) => Some((record.at, allowed(decided))),
        _ => None,
    });
    finished.filter(|(_, stage)| !stage.files.changes.is_empty()).collect()
}

/// Returns the merged changes of a fan-in in the form of a finished stage.
fn taken(merged: &FanInFinished) -> StageFinished {
    let FanInFinished { generation, branch, node, visit, changes, .. } = merged.clone();
    let task = Task { generation, branch, node, visit, work: Work::Join };
    let attempt = Attempt { task, ordinal: 1, id: AttemptId::new("") };
    let files = StageFiles { changes, ..StageFiles::default() };
    StageFinished { files, ..StageFinished::new(attempt, Outcome::new(merged.status)) }
}

/// Returns the writes that a person allowed in the form of a finished stage.
fn allowed(decided: &RecoveryDecided) -> StageFinished {
    let files = StageFiles { changes: decided.changes.clone(), ..StageFiles::default() };
    StageFinished { files, ..StageFinished::new(decided.attempt.clone(), Outcome::new(decided.outcome.status)) }
}

fn listed(stages: &[(Timestamp, StageFinished)]) -> Vec<FileChange> {
    stages.iter().flat_map(|(_, stage)| &stage.files.changes).cloned().collect()
}
