//! Mutations of inputs: bits, lengths, numbers, tokens, cuts, repetitions, and combinations of two inputs.
//!
//! The sequence is the same in every run, because the generator starts with a constant seed. The mutations do not
//! depend on the format of an input.

/// Maximum length of an input in bytes. It exceeds every limit that a reader has for a head or a message, except for
/// limits on whole bodies.
const INPUT_BYTES_MAX: usize = 72 << 10;
/// One in this many inputs is stretched, because stretched inputs take the most time to read.
const STRETCHED: usize = 32;

/// Bytes with a special meaning for some reader.
const BYTES: &[u8] = b"\0\x01\x7f\x80\xff\r\n\t \"'\\{}[](),:;=/?#&%+-.0";
/// Lengths that overflow, wrap, or are off by one.
const LENGTHS: [u64; 10] = [0, 1, 2, 0x7f, 0xff, 0x100, 0x3fff, 0x4000, 0xffff, u64::MAX];
/// Numbers as text, near the limits of readers.
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "-1",
    "+1",
    "00",
    "255",
    "65535",
    "65536",
    "33554432",
    "33554433",
    "18446744073709551615",
    "18446744073709551616",
    "ffffffffffffffff",
    "1e400",
];
/// Inserted texts: line ends, invalid encodings, texts that hide or change the direction of text, empty and nested
/// values.
const TOKENS: [&[u8]; 18] = [
    b"\r\n",
    b"\r\n\r\n",
    b"\n\n",
    b"\r\n ",
    b"\xff\xfe",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xae",
    b"\xe2\x80\x8b",
    b"\xc3\xa9",
    b"\x1b[2J",
    b"\\ud800",
    b"\\u0000",
    b"\"\"",
    b"[[[[",
    b"{\"\":",
    b"Content-Length: 1\r\n",
];
/// Repeated texts: nested values, lines and fields.
const REPEATED: [&[u8]; 6] = [b"[", b"{", b"{\"\":", b"(", b"\r\n", b"a: b\r\n"];

/// A generator of mutations.
#[derive(Debug, Default)]
pub(crate) struct Mutator {
    state: u64,
}

impl Mutator {
    /// Returns the next number of the sequence (splitmix64).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, or 0 if `end` is 0.
    fn below(&mut self, end: usize) -> usize {
        let end = end.max(1) as u64;
        (self.next() % end) as usize
    }

    /// Returns an item of a non-empty list.
    pub(crate) fn one_of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Returns a range of at most `most` bytes within `length` bytes.
    fn range(&mut self, length: usize, most: usize) -> std::ops::Range<usize> {
        let start = self.below(length);
        let end = start + self.below(most.min(length - start) + 1);
        start..end
    }

    /// Applies one to four mutations to an input. A mutation may copy a part of `other`.
    pub(crate) fn mutated(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=self.below(4) {
            self.mutate(&mut bytes, other);
        }
        if self.below(STRETCHED) == 0 {
            self.stretch(&mut bytes);
        }
        bytes.truncate(INPUT_BYTES_MAX);
        bytes
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        match self.below(9) {
            0 => self.flip(bytes),
            1 => self.overwrite(bytes),
            2 => bytes.truncate(self.below(bytes.len() + 1)),
            3 => drop(bytes.drain(self.range(bytes.len(), 16))),
            4 => self.repeat(bytes),
            5 => self.insert(bytes),
            6 => self.splice(bytes, other),
            7 => self.change_length(bytes),
            _ => self.change_number(bytes),
        }
    }

    fn flip(&mut self, bytes: &mut [u8]) {
        let (at, bit) = (self.below(bytes.len()), self.below(8));
        bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << bit);
    }

    fn overwrite(&mut self, bytes: &mut [u8]) {
        let (at, new) = (self.below(bytes.len()), *self.one_of(BYTES));
        bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = new);
    }

    fn repeat(&mut self, bytes: &mut Vec<u8>) {
        let range = self.range(bytes.len(), 64);
        let copy = bytes[range.clone()].repeat(1 + self.below(3));
        bytes.splice(range.start..range.start, copy);
    }

    fn insert(&mut self, bytes: &mut Vec<u8>) {
        let (at, token) = (self.below(bytes.len() + 1), *self.one_of(&TOKENS));
        bytes.splice(at..at, token.iter().copied());
    }

    /// Combines the beginning of one input with the end of another.
    fn splice(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        bytes.truncate(self.below(bytes.len() + 1));
        bytes.extend_from_slice(&other[self.below(other.len())..]);
    }

    /// Interprets one to three bytes as a length and replaces it by a length of the list, or by one more or one less.
    fn change_length(&mut self, bytes: &mut [u8]) {
        let (at, width) = (self.below(bytes.len()), 1 + self.below(3));
        let Some(field) = bytes.get_mut(at..at + width) else { return };
        let old = field.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        let new = match self.below(3) {
            0 => old.wrapping_add(1),
            1 => old.wrapping_sub(1),
            _ => *self.one_of(&LENGTHS),
        };
        field.copy_from_slice(&new.to_be_bytes()[8 - width..]);
    }

    /// Replaces a number that is written in digits.
    fn change_number(&mut self, bytes: &mut Vec<u8>) {
        let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        let begins = |at: &usize| is_digit(*at) && (*at == 0 || !is_digit(*at - 1));
        let starts: Vec<usize> = (0..bytes.len()).filter(begins).collect();
        if starts.is_empty() {
            return;
        }
        let start = *self.one_of(&starts);
        let end = (start..).find(|at| !is_digit(*at)).unwrap_or(start);
        let number = *self.one_of(&NUMBERS);
        bytes.splice(start..end, number.bytes());
    }

    /// Repeats some bytes, of the input or of the list, until the input is longer than readers accept.
    fn stretch(&mut self, bytes: &mut Vec<u8>) {
        let range = self.range(bytes.len(), 24);
        let unit = if self.below(2) == 0 { bytes[range.clone()].to_vec() } else { self.one_of(&REPEATED).to_vec() };
        let most = *self.one_of(&[3 << 10, 20 << 10, INPUT_BYTES_MAX]);
        let times = most.checked_div(unit.len()).unwrap_or_default();
        bytes.splice(range.start..range.start, unit.repeat(times));
    }
}
