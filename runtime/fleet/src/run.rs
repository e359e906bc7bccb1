//! What this process knows of one run: the fold of the frames that it read or appended.
//!
//! The fold has the end of the journal, the head of each stream, the queue, and where each frame is. It never guesses: it
//! changes only by frames that are stored, in order, each verified against the one before it.

use crate::frame::{Tip, corrupt};
use glovebox_journal::event::{Digest, Record, StreamKey};
use glovebox_journal::ports::PortError;
use glovebox_journal::queue::Queue;
use std::collections::HashMap;

/// A stored frame.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Sequence number of its first record.
    pub(crate) first: u64,
    /// Sequence number of its message in the stream.
    pub(crate) message: u64,
    /// Hash of its last record.
    pub(crate) hash: Digest,
    /// The name that no other frame has.
    nonce: Box<str>,
}

/// The fold of a run's frames.
pub(crate) struct RunFold {
    /// Number of the last message on the run's subject; 0 if there is none.
    pub(crate) head: u64,
    pub(crate) tip: Tip,
    pub(crate) queue: Queue,
    heads: HashMap<StreamKey, u64>,
    places: Vec<Place>,
}

impl Default for RunFold {
    fn default() -> Self {
        Self { head: 0, tip: Tip::START, queue: Queue::default(), heads: HashMap::new(), places: Vec::new() }
    }
}

impl RunFold {
    /// Applies a stored frame that follows the tip.
    pub(crate) fn apply(&mut self, message: u64, nonce: &str, records: &[Record]) {
        let Some(last) = records.last() else { return };
        self.places.push(Place { first: self.tip.seq + 1, message, hash: last.hash, nonce: nonce.into() });
        self.head = message;
        self.tip = Tip { seq: last.seq, hash: last.hash };
        for record in records {
            self.heads.insert(record.event.stream(), record.seq);
            self.queue.apply(record);
        }
    }

    /// Checks that each stream has the expected last record.
    pub(crate) fn check(&self, expect: &[(StreamKey, u64)]) -> Result<(), PortError> {
        for (stream, expected) in expect {
            let head = self.heads.get(stream).copied().unwrap_or(0);
            if head != *expected {
                return Err(PortError::Conflict { stream: stream.clone(), expected: *expected, head });
            }
        }
        Ok(())
    }

    /// Returns the frames with the records from `from` on, and the end of the journal before the first of them.
    pub(crate) fn places(&self, from: u64) -> (Tip, &[Place]) {
        if from > self.tip.seq {
            return (self.tip, &[]);
        }
        let start = self.places.partition_point(|place| place.first <= from).saturating_sub(1);
        let before = start
            .checked_sub(1)
            .map_or(Tip::START, |at| Tip { seq: self.places[start].first - 1, hash: self.places[at].hash });
        (before, &self.places[start..])
    }

    /// Returns the nonce of the frame that begins with a record, or of the frame that has the record.
    pub(crate) fn nonce_at(&self, seq: u64) -> Option<&str> {
        self.places(seq).1.first().map(|place| &*place.nonce)
    }

    /// Returns the error of a subject whose last message is older than one that was read before.
    pub(crate) fn shrunk(&self) -> PortError {
        corrupt(self.tip.seq, "it is not in the stream any more")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Frame, texts};
    use glovebox_journal::event::{Event, RunCanceled};
    use jiff::Timestamp;

    #[test]
    fn the_frames_of_a_record_are_found() {
        let mut fold = RunFold::default();
        let mut tips = vec![Tip::START];
        for (message, count) in [(10, 2), (20, 1), (31, 3)] {
            let events = vec![Event::RunCanceled(RunCanceled { by: "a".to_owned() }); count];
            let frame = Frame::new(fold.tip, Timestamp::UNIX_EPOCH, &events, &texts(&events).unwrap(), String::new());
            fold.apply(message, &message.to_string(), &frame.records);
            tips.push(fold.tip);
        }
        let found = |from| {
            let (tip, places) = fold.places(from);
            (tip, places.iter().map(|place| place.message).collect::<Vec<_>>())
        };
        for (from, before, messages) in [
            (0, 0, vec![10, 20, 31]),
            (1, 0, vec![10, 20, 31]),
            (2, 0, vec![10, 20, 31]),
            (3, 1, vec![20, 31]),
            (4, 2, vec![31]),
            (6, 2, vec![31]),
            (7, 3, vec![]),
        ] {
            assert_eq!(found(from), (tips[before], messages), "{from}");
        }
        assert_eq!(fold.head, 31);
        assert_eq!([3, 4, 6, 7].map(|seq| fold.nonce_at(seq)), [Some("20"), Some("31"), Some("31"), None]);
    }
}
