//! Blobs that wait for the next append, which makes them durable.
//!
//! Small blobs wait in memory and are stored in the transaction of the append. Large blobs wait as temporary files,
//! which are flushed right before the append. Memory is bounded: a small blob that does not fit becomes a file. Small
//! blobs that were just stored stay in memory for a while, within a separate bound, because the workspace and the run's
//! files read them next.

use super::files::BlobFiles;
use crate::event::Digest;
use crate::ports::PortError;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Maximum size in bytes of a blob that is stored in the transaction of an append.
pub const SMALL_BYTES_MAX: usize = 64 * 1024;
/// Maximum total size in bytes of the small blobs that wait.
const WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Maximum total size in bytes of the stored small blobs that stay in memory.
const RECENT_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The bytes of a small blob.
type Bytes = Arc<[u8]>;

/// Blobs that wait for the next append, shared by the journal and the blob store of one run.
#[derive(Default)]
pub struct Outbox {
    held: Mutex<Waiting>,
    files: OnceLock<Arc<BlobFiles>>,
}

#[derive(Default)]
struct Waiting {
    waiting: HashMap<Digest, Bytes>,
    waiting_bytes: usize,
    recent: HashMap<Digest, Bytes>,
    recent_order: VecDeque<Digest>,
    recent_bytes: usize,
    is_closed: bool,
}

/// The small blobs that one append stores.
pub struct PendingBlobs(Vec<(Digest, Bytes)>);

impl PendingBlobs {
    /// Returns each blob with its digest.
    pub fn blobs(&self) -> impl Iterator<Item = (&Digest, &[u8])> {
        self.0.iter().map(|(digest, bytes)| (digest, &**bytes))
    }
}

impl Outbox {
    /// Sets the files that are flushed before each append.
    pub(super) fn flushes(&self, files: &Arc<BlobFiles>) {
        // A second store of the same run has the same folder, so the first one can flush for both.
        let _ = self.files.set(Arc::clone(files));
    }

    /// Adds a small blob. Returns false if it is too large or there is no room; the caller must then store it as a file.
    pub(super) fn offer(&self, digest: &Digest, bytes: &[u8]) -> Result<bool, PortError> {
        let mut held = self.lock();
        if held.is_closed {
            return Err(PortError::Unavailable("no journal is open to store the blob".into()));
        }
        if held.waiting.contains_key(digest) || held.recent.contains_key(digest) {
            return Ok(true);
        }
        if bytes.len() > SMALL_BYTES_MAX || held.waiting_bytes + bytes.len() > WAITING_BYTES_MAX {
            return Ok(false);
        }
        held.waiting_bytes += bytes.len();
        held.waiting.insert(*digest, bytes.into());
        Ok(true)
    }

    /// Returns a blob that waits or was just stored.
    pub(super) fn get(&self, digest: &Digest) -> Option<Bytes> {
        let held = self.lock();
        held.waiting.get(digest).or_else(|| held.recent.get(digest)).cloned()
    }

    /// Flushes the waiting files and returns the waiting small blobs. The caller must call [`Outbox::stored`] once they
    /// are durable. Until then, they continue to wait.
    pub fn parcel(&self) -> Result<PendingBlobs, PortError> {
        if let Some(files) = self.files.get() {
            files.flush()?;
        }
        let held = self.lock();
        Ok(PendingBlobs(held.waiting.iter().map(|(digest, bytes)| (*digest, Arc::clone(bytes))).collect()))
    }

    /// Marks the blobs of a parcel as durable.
    pub fn stored(&self, parcel: PendingBlobs) {
        let mut held = self.lock();
        for (digest, bytes) in parcel.0 {
            if held.waiting.remove(&digest).is_some() {
                held.waiting_bytes -= bytes.len();
                held.keep_recent(digest, bytes);
            }
        }
    }

    /// Refuses blobs from now on, because no journal would store them.
    pub fn close(&self) {
        self.lock().is_closed = true;
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn keep_recent(&mut self, digest: Digest, bytes: Bytes) {
        self.recent_bytes += bytes.len();
        self.recent_order.push_back(digest);
        self.recent.insert(digest, bytes);
        while self.recent_bytes > RECENT_BYTES_MAX {
            let Some(oldest) = self.recent_order.pop_front() else { return };
            self.recent_bytes -= self.recent.remove(&oldest).map_or(0, |bytes| bytes.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(seed: usize, bytes: usize) -> (Digest, Vec<u8>) {
        let bytes = [seed.to_le_bytes().as_slice(), &vec![7; bytes]].concat();
        (Digest::hash(&bytes), bytes)
    }

    #[test]
    fn memory_is_bounded_before_and_after_an_append() {
        let outbox = Outbox::default();
        let blobs: Vec<_> = (0..400).map(|seed| blob(seed, SMALL_BYTES_MAX - 8)).collect();
        let taken = blobs.iter().filter(|(digest, bytes)| outbox.offer(digest, bytes).unwrap()).count();
        assert_eq!(taken, WAITING_BYTES_MAX / SMALL_BYTES_MAX);
        outbox.stored(outbox.parcel().unwrap());
        let at_hand = blobs.iter().filter(|(digest, _)| outbox.get(digest).is_some()).count();
        assert_eq!(at_hand, RECENT_BYTES_MAX / SMALL_BYTES_MAX);
        assert!(outbox.offer(&blobs[399].0, &blobs[399].1).unwrap(), "there is room again");
        assert!(!outbox.offer(&blob(1, SMALL_BYTES_MAX).0, &blob(1, SMALL_BYTES_MAX).1).unwrap(), "too large");
    }

    #[test]
    fn what_an_append_did_not_store_goes_on_waiting() {
        let outbox = Outbox::default();
        let (first, second) = (blob(1, 10), blob(2, 10));
        outbox.offer(&first.0, &first.1).unwrap();
        drop(outbox.parcel().unwrap());
        let parcel = outbox.parcel().unwrap();
        outbox.offer(&second.0, &second.1).unwrap();
        outbox.stored(parcel);
        let waiting: Vec<Digest> = outbox.parcel().unwrap().blobs().map(|(digest, _)| *digest).collect();
        assert_eq!(waiting, [second.0], "what came after the parcel was made is of the next one");
        outbox.close();
        assert!(outbox.offer(&first.0, &first.1).is_err());
    }
}
