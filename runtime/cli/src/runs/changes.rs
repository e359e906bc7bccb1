//! The changes of a run to its copy of the project.
//!
//! It reads the journal and the blobs, and neither the workspace nor the project.

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

/// The largest blob that is read.
const BLOB_BYTES_MAX: u64 = 1 << 30;

/// The changes of a run, with all that `diff` and `apply` need.
pub struct Changes {
    /// The files that the run copied.
    pub base: Base,
    /// All changes, in order.
    pub changes: Vec<FileChange>,
    /// The attempts that changed something, in order, with the time of their end.
    pub stages: Vec<(Timestamp, StageFinished)>,
    /// The project that the run copied.
    pub project: PathBuf,
    /// How the run ended; none if it has not ended.
    pub verdict: Option<Verdict>,
    /// Whether this user started the run.
    pub provenance: Provenance,
    blobs: DirBlobs,
}

impl Changes {
    /// Reads them from a run's journal and blobs.
    pub fn read(run: &RunFolder) -> Result<Self, Stop> {
        Self::from_journal(run, &journal::read(run)?)
    }

    /// Those that a question asks a person to approve, and the files as they were before.
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

    /// The files that a run copied.
    pub fn base(run: &RunFolder, started: &RunStarted) -> Result<Base, Stop> {
        read_base(run, &open_blobs(run)?, &started.workspace.base_digest)
    }

    /// The configuration files among these changes that the run did not begin with.
    pub fn new_configuration<'c>(&self, changes: impl IntoIterator<Item = &'c FileChange>) -> Vec<NewConfiguration> {
        configuration::new(&fold(changes), |path, kind| is_in(&self.base, path, kind))
    }

    /// Checks that what a change leaves at its path is there as it was recorded, before anything is written.
    pub fn verify(&self, change: &FileChange) -> Result<(), Stop> {
        let Some(digest) = change.digest.as_ref().filter(|_| change.op == ChangeOp::Write) else { return Ok(()) };
        self.blobs.verify(digest, change.bytes).map_err(|error| {
            let path = visible::line(change.path.as_str());
            let message = format!("read the blob of `{path}`: {error}; nothing was written");
            Stop::new(Exit::Mismatch, message).with_help("the run's folder is damaged: restore a copy, or run again")
        })
    }

    /// Opens the bytes of a change by the digest it names.
    pub fn open(&self, digest: &Digest) -> io::Result<Box<dyn Read + Send>> {
        self.blobs.open_unverified(digest)
    }

    /// Reads both versions of a file. None if the old one is neither stored nor in the project as it was.
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

    /// Reads the bytes that a change leaves at its path: of a link its target.
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

    /// The project's file, if it is still this one.
    fn in_project(&self, path: &ScopePath, digest: &Digest, bytes: u64) -> Option<Vec<u8>> {
        let mut found = Vec::new();
        let file = open_before(&self.project, path.as_str()).ok()?;
        file.take(bytes.min(BLOB_BYTES_MAX).saturating_add(1)).read_to_end(&mut found).ok()?;
        (Digest::hash(&found) == *digest).then_some(found)
    }
}

/// The configuration files that are new in a run that began with these files.
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

/// Opens a run's blobs.
pub fn open_blobs(run: &RunFolder) -> Result<DirBlobs, Stop> {
    let dir = Dir::open_ambient_dir(&run.path, ambient_authority())
        .map_err(|error| Stop::io(format!("open run `{}`", run.id), &error))?;
    journal::open(run)?.into_blobs(&dir).map_err(|error| journal::unreadable(run, &error))
}

/// Reads a blob that is text.
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

/// The attempts and fan-ins of some branches that changed something. `is_of` gets the branch and the record's number.
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

/// The merged changes of a fan-in, as the changes of a stage there.
fn taken(merged: &FanInFinished) -> StageFinished {
    let FanInFinished { generation, branch, node, visit, changes, .. } = merged.clone();
    let task = Task { generation, branch, node, visit, work: Work::Join };
    let attempt = Attempt { task, ordinal: 1, id: AttemptId::new("") };
    let files = StageFiles { changes, ..StageFiles::default() };
    StageFinished { files, ..StageFinished::new(attempt, Outcome::new(merged.status)) }
}

/// The writes that a person allowed, as changes of the stage.
fn allowed(decided: &RecoveryDecided) -> StageFinished {
    let files = StageFiles { changes: decided.changes.clone(), ..StageFiles::default() };
    StageFinished { files, ..StageFinished::new(decided.attempt.clone(), Outcome::new(decided.outcome.status)) }
}

fn listed(stages: &[(Timestamp, StageFinished)]) -> Vec<FileChange> {
    stages.iter().flat_map(|(_, stage)| &stage.files.changes).cloned().collect()
}
