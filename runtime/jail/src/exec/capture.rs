//! The part of an output stream that is kept: head, tail, length and digest.
//!
//! The maximum size bounds memory. Digest and length always cover the whole stream.

use super::CapturedOutput;
use std::collections::VecDeque;

/// A stream that is being read.
pub(super) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_max: usize,
    tail_max: usize,
    total_bytes: u64,
    hasher: blake3::Hasher,
}

impl Capture {
    /// Keeps at most `bytes_max` bytes: half from the beginning of the stream and half from the end.
    pub(super) fn new(bytes_max: u64) -> Self {
        let max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let (head_max, tail_max) = (max.div_ceil(2), max / 2);
        let (head, tail) = (Vec::new(), VecDeque::new());
        Self { head, tail, head_max, tail_max, total_bytes: 0, hasher: blake3::Hasher::new() }
    }

    /// Returns the length of the stream so far.
    pub(super) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Adds the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        self.hasher.update(bytes);
        let (first, rest) = bytes.split_at(bytes.len().min(self.head_max - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.tail_max)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_max);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Ends the stream. `cut` is true if the stream was still open.
    pub(super) fn finish(self, cut: bool) -> CapturedOutput {
        let kept = (self.head.len() + self.tail.len()) as u64;
        CapturedOutput {
            head: self.head,
            tail: self.tail.into(),
            total_bytes: self.total_bytes,
            truncated: self.total_bytes > kept,
            cut,
            digest: self.hasher.finalize().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn head_and_tail_are_those_of_the_whole(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20), max in 0_u64..60) {
            let whole = chunks.concat();
            let mut capture = Capture::new(max);
            chunks.iter().for_each(|chunk| capture.push(chunk));
            let kept = capture.finish(false);
            prop_assert!(whole.starts_with(&kept.head) && whole.ends_with(&kept.tail));
            prop_assert!((kept.head.len() + kept.tail.len()) as u64 <= max);
            prop_assert_eq!(kept.truncated, whole.len() as u64 > max);
            prop_assert_eq!(kept.total_bytes, whole.len() as u64);
            prop_assert_eq!(kept.digest, glovebox_record::Digest::hash(&whole));
            if !kept.truncated {
                prop_assert_eq!([kept.head, kept.tail].concat(), whole);
            }
        }
    }
}
