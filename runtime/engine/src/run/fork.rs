//! Forks a run: a new run that begins with the state, the context and the files that another run had before a visit.
//!
//! The new journal begins with copies of the other run's records up to that visit, with the id of the new run and new
//! signatures. Its first record names the other run. Everything that these records name is copied. The other run is
//! only read.

use super::restore::{BASE_BYTES_MAX, in_folder};
use super::{HOLDOUTS_DIR, RunDir, WORKSPACE_DIR};
use crate::driver::RunError;
use crate::stores::{self, OpenStores};
use glovebox_journal::blobs::DirBlobs;
use glovebox_journal::event::{BranchId, Digest, Event, ForkedFrom, NodeId, Record, RunId};
use glovebox_journal::ports::{BlobStore, PortError, RunLog};
use glovebox_record::FileChange;
use glovebox_state::run_state::resume_state;
use glovebox_workspace::flush::flush_all;
use glovebox_workspace::project::Base;
use glovebox_workspace::{branch_folder, restore};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// A visit of a run, which separates the records before it from the later ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisitPoint {
    /// The node's id.
    pub node: NodeId,
    /// The number of the visit of the node.
    pub visit: u32,
    /// The generation of the visit.
    pub generation: u32,
    /// The sequence number of the record that begins the visit.
    pub seq: u64,
}

/// Why a run does not have the requested visit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoVisit {
    /// The run never visited the node.
    #[error("the run never visited `{0}`")]
    Never(NodeId),
    /// The run visited the node fewer times.
    #[error("`{node}` has no visit {visit}, expected one from 1 to {visits}")]
    Fewer {
        /// The node's id.
        node: NodeId,
        /// The visit that was asked for.
        visit: u32,
        /// Number of visits of the node.
        visits: u32,
    },
    /// Only a branch of a parallel node visited the node.
    #[error("`{node}` was visited in branch `{branch}` only, and a run cannot begin inside a branch")]
    InBranch {
        /// The node's id.
        node: NodeId,
        /// The id of the branch.
        branch: BranchId,
    },
}

impl VisitPoint {
    /// Finds a visit in the records of a run, or the last visit of the node. If several generations have this visit, returns
    /// the last one.
    pub fn find(records: &[Record], node: NodeId, visit: Option<u32>) -> Result<Self, NoVisit> {
        let begun = records.iter().filter_map(|record| Some((record.seq, begun(&record.event)?)));
        let (mut found, mut visits, mut branch) = (None, 0, None);
        for (seq, begun) in begun.filter(|(_, begun)| *begun.node == node) {
            if *begun.branch != BranchId::main() {
                branch = Some(begun.branch);
                continue;
            }
            visits = visits.max(begun.visit);
            let here = (begun.visit, begun.generation);
            // A resume may make the task of a visit ready a second time.
            let is_known = found.is_some_and(|(known, _)| known == here);
            if visit.is_none_or(|visit| visit == begun.visit) && !is_known {
                found = Some((here, seq));
            }
        }
        match (found, visit, branch) {
            (Some(((visit, generation), seq)), ..) => Ok(Self { node, visit, generation, seq }),
            (None, Some(visit), _) if visits > 0 => Err(NoVisit::Fewer { node, visit, visits }),
            (None, _, Some(branch)) => Err(NoVisit::InBranch { node, branch: branch.clone() }),
            (None, ..) => Err(NoVisit::Never(node)),
        }
    }
}

/// Returns the visits to which a run can go back, in order, each once.
pub fn visits(records: &[Record]) -> Vec<(&NodeId, u32)> {
    let begun = records.iter().filter_map(|record| begun(&record.event));
    let mut known = BTreeSet::new();
    let of_main = begun.filter(|begun| *begun.branch == BranchId::main()).map(|begun| (begun.node, begun.visit));
    of_main.filter(|visit| known.insert(*visit)).collect()
}

/// The beginning of a visit.
struct VisitStart<'a> {
    generation: u32,
    branch: &'a BranchId,
    node: &'a NodeId,
    visit: u32,
}

fn begun(event: &Event) -> Option<VisitStart<'_>> {
    let (generation, branch, node, visit) = match event {
        Event::StageReady(ready) if ready.ordinal == 1 => {
            let task = &ready.task;
            (task.generation, &task.branch, &task.node, task.visit)
        }
        Event::StagePassed(passed) => (passed.generation, &passed.branch, &passed.node, passed.visit),
        Event::ParallelStarted(fork) => (fork.generation, &fork.branch, &fork.node, fork.visit),
        Event::QuestionAsked(asked) if asked.recovery.is_none() => {
            (asked.generation, &asked.branch, &asked.node, asked.visit)
        }
        Event::FanInFinished(finished) => (finished.generation, &finished.branch, &finished.node, finished.visit),
        _ => return None,
    };
    Some(VisitStart { generation, branch, node, visit })
}

/// The run that is forked.
pub struct Source<'a> {
    /// The directory of the run.
    pub dir: &'a Path,
    /// The records of the run.
    pub records: &'a [Record],
    /// The blobs of the run.
    pub blobs: &'a DirBlobs,
}

/// Creates a run in an empty directory with the state before a visit of another run, and makes it durable. A resume continues
/// the new run at that visit, with `context` added to its context.
pub async fn fork(
    dir: &RunDir,
    run: &RunId,
    source: Source<'_>,
    point: VisitPoint,
    context: BTreeMap<String, String>,
) -> Result<(), RunError> {
    let kept: Vec<&Record> = source.records.iter().filter(|record| record.seq < point.seq).collect();
    let (OpenStores { journal, blobs, held: _held, .. }, _reserve) = stores::create(dir, run)?;
    if source.dir.join(HOLDOUTS_DIR).is_dir() {
        let copied = branch_folder::copy(&source.dir.join(HOLDOUTS_DIR), &dir.path.join(HOLDOUTS_DIR));
        copied.map_err(|error| RunError::Workspace(Box::new(error)))?;
    }
    let base = base(&source)?;
    let mut from = lineage(source.records, point, context);
    // The initial versions of files that stages replaced are copied too, because `diff` shows them.
    base.files.values().try_for_each(|fact| copy_blob(source.blobs, &*blobs, &fact.digest))?;
    // Events that were appended together are appended together again.
    for batch in kept.chunk_by(|one, other| one.at == other.at) {
        let events: Vec<Event> = batch.iter().map(|record| renamed(&record.event, run, &mut from)).collect();
        for digest in events.iter().filter_map(|event| serde_json::to_value(event).ok()).flat_map(|event| named(&event))
        {
            copy_blob(source.blobs, &*blobs, &digest)?;
        }
        let at = batch.first().map_or(jiff::Timestamp::UNIX_EPOCH, |record| record.at);
        journal.append(run, &[], at, &events).await?;
    }
    let records: Vec<Record> = kept.into_iter().cloned().collect();
    make_workspace(dir, &source, &records, &base)?;
    flush_all(&[&dir.path]).map_err(|error| RunError::Workspace(Box::new(error)))
}

/// Returns the list of files with which the other run's workspace began.
fn base(source: &Source<'_>) -> Result<Base, RunError> {
    let started = source.records.first().and_then(|first| first.event.run_started()).ok_or(RunError::NotStarted)?;
    let bytes = source.blobs.read_all(&started.workspace.base_digest, BASE_BYTES_MAX)?;
    serde_json::from_slice(&bytes).map_err(|error| RunError::Workspace(Box::new(error)))
}

/// Returns the run and the visit from which the new run is forked.
fn lineage(records: &[Record], point: VisitPoint, context: BTreeMap<String, String>) -> Option<Box<ForkedFrom>> {
    let started = records.first()?.event.run_started()?;
    let VisitPoint { node, visit, generation, seq } = point;
    let hash = records.iter().find(|record| record.seq + 1 == seq)?.hash;
    let run_id = started.run_id.clone();
    Some(Box::new(ForkedFrom { run_id, node, visit, generation, seq: seq - 1, hash, context }))
}

/// Returns an event with the id of the new run. The first record also names the other run.
fn renamed(event: &Event, run: &RunId, from: &mut Option<Box<ForkedFrom>>) -> Event {
    let mut event = event.clone();
    if let Event::RunStarted(started) = &mut event {
        started.run_id = run.clone();
        started.forked_from = from.take();
        // The new run begins with empty caches.
        started.workspace.caches_from = None;
    }
    event
}

/// Returns every digest that an event names.
pub(super) fn named(value: &Value) -> BTreeSet<Digest> {
    match value {
        Value::String(text) => text.parse().into_iter().collect(),
        Value::Array(list) => list.iter().flat_map(named).collect(),
        Value::Object(object) => object.values().flat_map(named).collect(),
        _ => BTreeSet::new(),
    }
}

/// Copies a blob. If there is no such blob, the digest is that of something else, such as the plan.
pub(super) fn copy_blob(from: &impl BlobStore, to: &impl BlobStore, digest: &Digest) -> Result<(), RunError> {
    match from.open_unverified(digest) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(PortError::Unavailable(error.to_string()).into()),
        Ok(mut bytes) => match to.put(&mut bytes)? {
            stored if stored == *digest => Ok(()),
            stored => {
                let (what, found) = (format!("blob {digest}"), format!("bytes with the digest {stored}"));
                Err(PortError::Corrupt { what, found }.into())
            }
        },
    }
}

/// Creates the files of the visit: from blobs, from the project, or from the other run's workspace, depending on which still
/// has them.
fn make_workspace(dir: &RunDir, source: &Source<'_>, records: &[Record], base: &Base) -> Result<(), RunError> {
    let (state, _) = resume_state(records).ok_or(RunError::NotStarted)?;
    let Some(started) = &state.run else { return Err(RunError::NotStarted) };
    let (project, other) = (Path::new(&started.workspace.source_dir), source.dir.join(WORKSPACE_DIR));
    let open = |digest: &Digest| -> io::Result<Box<dyn Read + Send>> {
        match source.blobs.open_unverified(digest) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let folder = [project, &other].into_iter().find(|folder| has(folder, base, digest));
                in_folder(folder.ok_or(ErrorKind::NotFound)?, base, digest)
            }
            found => found,
        }
    };
    dir.dir.create_dir_all(WORKSPACE_DIR).map_err(|error| RunError::Workspace(Box::new(error)))?;
    let changes: Vec<&FileChange> = state.main().changes.values().collect();
    restore::restore(&dir.workspace(), base, changes.into_iter(), &open)
        .map(drop)
        .map_err(|error| RunError::Workspace(Box::new(error)))
}

/// Returns true if a folder still has the file with this content.
fn has(folder: &Path, base: &Base, digest: &Digest) -> bool {
    let mut hasher = blake3::Hasher::new();
    let read = in_folder(folder, base, digest).and_then(|file| hasher.update_reader(file).map(drop));
    read.is_ok() && Digest::from(hasher.finalize()) == *digest
}
