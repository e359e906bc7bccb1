//! Reads objects of one packfile through its index (git's `gitformat-pack`, both version 2).
//!
//! Offsets and lengths come from the files themselves, so each one is checked. An object can be a delta against another
//! one. The length of a chain of deltas and the memory for cached bases are bounded.

use super::digest::{ObjectId, ObjectKind};
use super::objects::{ObjectError, STEP_BYTES, WorkLimit};
use crate::tree::{self, Owner};
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::rc::Rc;

/// Length of the beginning of an index: the magic number, the version and 256 counts.
const TABLE_AT: u64 = 8 + 256 * 4;
/// Maximum length of a chain of deltas. Git writes at most 4,095.
const DEPTH_MAX: usize = 4_095;
/// Maximum size of an object that is kept as a base, bytes.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// Maximum size of all kept bases, bytes.
const CACHE_BYTES_MAX: usize = 32 << 20;
/// Number of bytes that are read at a time.
const PIECE_BYTES: usize = 16 << 10;
/// Maximum length of the header of an entry.
const HEADER_BYTES_MAX: usize = 64;

/// A kept object.
type KeptObject = (ObjectKind, Rc<Vec<u8>>);

/// Objects that are kept as bases of deltas, by the number of their pack and their offset.
#[derive(Default)]
pub(super) struct BaseCache {
    kept: HashMap<(u64, u64), KeptObject>,
    bytes: usize,
}

impl BaseCache {
    fn keep(&mut self, at: (u64, u64), kind: ObjectKind, content: &Rc<Vec<u8>>) {
        if content.len() > KEPT_BYTES_MAX {
            return;
        }
        if self.bytes + content.len() > CACHE_BYTES_MAX {
            *self = Self::default();
        }
        self.bytes += content.len();
        self.kept.insert(at, (kind, Rc::clone(content)));
    }
}

/// A packfile with its index.
pub(super) struct PackedObjects {
    folder: OwnedFd,
    name: String,
    index: File,
    /// The fan-out table of the index: at position `n`, the number of objects whose id begins with a byte of at most
    /// `n`.
    counts: Vec<u32>,
    pack: Option<File>,
    /// The inode of the index, which identifies the pack.
    number: u64,
}

/// The base of an entry in a packfile.
enum Base {
    /// The entry is a whole object.
    None(ObjectKind),
    /// The entry is a delta against the object at this offset.
    At(u64),
}

/// The header of an entry in a packfile.
struct PackEntry {
    base: Base,
    /// Length of the uncompressed object or delta.
    length: usize,
    /// Offset of the compressed bytes.
    at: u64,
}

impl PackedObjects {
    /// Opens the index with this name, without `.idx`.
    pub(super) fn open(folder: &OwnedFd, name: &str) -> Result<Self, ObjectError> {
        let index = tree::open_regular(folder, OsStr::new(&format!("{name}.idx")), Owner::Other)?;
        let mut head = vec![0; usize::try_from(TABLE_AT).unwrap_or_default()];
        index.read_exact_at(&mut head, 0)?;
        let counts: Vec<u32> = head[8..].chunks_exact(4).map(number).collect();
        let is_known = head.starts_with(&[0xff, b't', b'O', b'c', 0, 0, 0, 2]) && counts.is_sorted();
        if !is_known {
            return Err(ObjectError::Damaged);
        }
        let number = rustix::fs::fstat(&index).map_err(io::Error::from)?.st_ino;
        let folder = folder.as_fd().try_clone_to_owned()?;
        Ok(Self { folder, name: name.to_owned(), index, counts, pack: None, number })
    }

    /// Creates a pack without an index, in which no object is found by its id.
    #[cfg(any(test, feature = "fuzz"))]
    pub(super) fn without_index(pack: File) -> Result<Self, ObjectError> {
        let (index, folder) = (pack.try_clone()?, OwnedFd::from(pack.try_clone()?));
        Ok(Self { folder, name: String::new(), index, counts: vec![0; 256], pack: Some(pack), number: 0 })
    }

    /// Opens the packfile itself, if it is not open.
    pub(super) fn prepare(&mut self) -> Result<(), ObjectError> {
        if self.pack.is_none() {
            let name = format!("{}.pack", self.name);
            self.pack = Some(tree::open_regular(&self.folder, OsStr::new(&name), Owner::Other)?);
        }
        Ok(())
    }

    /// Returns the offset of an object in the packfile.
    pub(super) fn position(&self, id: ObjectId) -> Result<Option<u64>, ObjectError> {
        let count = |first: usize| u64::from(self.counts[first]);
        let first = usize::from(id.0[0]);
        let (mut low, mut high) = (first.checked_sub(1).map_or(0, count), count(first));
        let total = count(255);
        while low < high {
            let middle = low.midpoint(high);
            let mut found = [0; 20];
            self.index.read_exact_at(&mut found, TABLE_AT + middle * 20)?;
            match found.cmp(&id.0) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    let mut offset = [0; 4];
                    self.index.read_exact_at(&mut offset, TABLE_AT + total * 24 + middle * 4)?;
                    let offset = u32::from_be_bytes(offset);
                    if offset < 1 << 31 {
                        return Ok(Some(u64::from(offset)));
                    }
                    let mut large = [0; 8];
                    let at = TABLE_AT + total * 28 + u64::from(offset & !(1 << 31)) * 8;
                    self.index.read_exact_at(&mut large, at)?;
                    return Ok(Some(u64::from_be_bytes(large)));
                }
            }
        }
        Ok(None)
    }

    /// Reads the object at an offset. [`PackedObjects::prepare`] must be called before.
    pub(super) fn read(
        &self,
        offset: u64,
        bytes_max: usize,
        cache: &mut BaseCache,
        limit: &mut WorkLimit,
    ) -> Result<(ObjectKind, Vec<u8>), ObjectError> {
        let (mut deltas, mut at) = (Vec::new(), offset);
        let (kind, mut content) = loop {
            if let Some((kind, content)) = cache.kept.get(&(self.number, at)) {
                break (*kind, Rc::clone(content));
            }
            limit.spend(STEP_BYTES)?;
            let entry = self.entry(at)?;
            match entry.base {
                Base::None(kind) => {
                    let content = Rc::new(self.content(&entry, bytes_max, limit)?);
                    cache.keep((self.number, at), kind, &content);
                    break (kind, content);
                }
                Base::At(base) if deltas.len() < DEPTH_MAX => {
                    deltas.push((at, entry));
                    at = base;
                }
                Base::At(_) => return Err(ObjectError::Damaged),
            }
        };
        while let Some((at, entry)) = deltas.pop() {
            let delta = self.content(&entry, bytes_max, limit)?;
            content = Rc::new(applied(&content, &delta, bytes_max, limit)?);
            cache.keep((self.number, at), kind, &content);
        }
        match content.len() > bytes_max {
            true => Err(ObjectError::TooLong(bytes_max)),
            false => Ok((kind, Rc::unwrap_or_clone(content))),
        }
    }

    fn pack(&self) -> Result<&File, ObjectError> {
        self.pack.as_ref().ok_or(ObjectError::Damaged)
    }

    fn content(&self, entry: &PackEntry, bytes_max: usize, limit: &mut WorkLimit) -> Result<Vec<u8>, ObjectError> {
        if entry.length > bytes_max {
            return Err(ObjectError::TooLong(bytes_max));
        }
        limit.spend(entry.length)?;
        inflated(self.pack()?, entry.at, entry.length, limit)
    }

    fn entry(&self, at: u64) -> Result<PackEntry, ObjectError> {
        let mut head = [0; HEADER_BYTES_MAX];
        let got = read_at(self.pack()?, &mut head, at)?;
        let mut bytes = Bytes(&head[..got]);
        let first = bytes.next()?;
        let (mut length, mut shift, mut more) = (usize::from(first & 15), 4, first & 128 != 0);
        while more {
            let byte = bytes.next()?;
            let part = usize::from(byte & 127).checked_shl(shift).filter(|_| shift < 40).ok_or(ObjectError::Damaged)?;
            (length, shift, more) = (length | part, shift + 7, byte & 128 != 0);
        }
        let base = match (first >> 4) & 7 {
            6 => Base::At(at.checked_sub(bytes.distance()?).ok_or(ObjectError::Damaged)?),
            7 => {
                let id = ObjectId::from_bytes(bytes.take(20)?).ok_or(ObjectError::Damaged)?;
                Base::At(self.position(id)?.ok_or(ObjectError::Damaged)?)
            }
            number => Base::None(ObjectKind::from_number(number).ok_or(ObjectError::Damaged)?),
        };
        Ok(PackEntry { base, length, at: at + (got - bytes.0.len()) as u64 })
    }
}

/// A reader that takes bytes from the front.
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn next(&mut self) -> Result<u8, ObjectError> {
        Ok(self.take(1)?[0])
    }

    fn take(&mut self, count: usize) -> Result<&'b [u8], ObjectError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(ObjectError::Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads the distance to the base of a delta.
    fn distance(&mut self) -> Result<u64, ObjectError> {
        let mut byte = self.next()?;
        let mut distance = u64::from(byte & 127);
        while byte & 128 != 0 {
            byte = self.next()?;
            let shifted = distance.checked_add(1).and_then(|one| one.checked_mul(128)).ok_or(ObjectError::Damaged)?;
            distance = shifted + u64::from(byte & 127);
        }
        if distance == 0 { Err(ObjectError::Damaged) } else { Ok(distance) }
    }

    /// Reads a length in a delta.
    fn length(&mut self) -> Result<usize, ObjectError> {
        let (mut length, mut shift) = (0_usize, 0_u32);
        loop {
            let byte = self.next()?;
            if shift > 35 {
                return Err(ObjectError::Damaged);
            }
            length |= usize::from(byte & 127) << shift;
            shift += 7;
            if byte & 128 == 0 {
                return Ok(length);
            }
        }
    }

    /// Reads a little-endian number. A byte of it is stored only if its bit in `bits` is set; all other bytes are 0.
    fn sparse(&mut self, bits: u8) -> Result<usize, ObjectError> {
        let mut number = 0;
        for place in (0..4).filter(|place| bits & (1 << place) != 0) {
            number |= usize::from(self.next()?) << (8 * place);
        }
        Ok(number)
    }
}

/// Applies a delta to its base and returns the resulting object.
pub(super) fn applied(
    base: &[u8],
    delta: &[u8],
    bytes_max: usize,
    limit: &mut WorkLimit,
) -> Result<Vec<u8>, ObjectError> {
    let mut delta = Bytes(delta);
    let (before, after) = (delta.length()?, delta.length()?);
    if before != base.len() {
        return Err(ObjectError::Damaged);
    }
    if after > bytes_max {
        return Err(ObjectError::TooLong(bytes_max));
    }
    limit.spend(after)?;
    let mut made = Vec::new();
    while !delta.0.is_empty() {
        let op = delta.next()?;
        let piece = match op {
            0 => return Err(ObjectError::Damaged),
            1..=127 => delta.take(usize::from(op))?,
            _ => {
                let (from, length) = (delta.sparse(op & 15)?, delta.sparse((op >> 4) & 7)?);
                let length = if length == 0 { 1 << 16 } else { length };
                base.get(from..from.saturating_add(length)).ok_or(ObjectError::Damaged)?
            }
        };
        if made.len() + piece.len() > after {
            return Err(ObjectError::Damaged);
        }
        made.extend_from_slice(piece);
    }
    if made.len() == after { Ok(made) } else { Err(ObjectError::Damaged) }
}

/// Inflates the zlib stream at an offset. The content must have exactly this length.
fn inflated(file: &File, mut at: u64, length: usize, limit: &mut WorkLimit) -> Result<Vec<u8>, ObjectError> {
    let mut state = InflateState::new_boxed(DataFormat::Zlib);
    // One byte more than expected, so that too long content is noticed. The memory grows with the content.
    let (mut content, mut written) = (vec![0; length.min(PIECE_BYTES) + 1], 0);
    let mut input = [0; PIECE_BYTES];
    loop {
        let got = read_at(file, &mut input, at)?;
        let mut rest = &input[..got];
        if rest.is_empty() {
            return Err(ObjectError::Damaged);
        }
        at += got as u64;
        limit.spend(got)?;
        while !rest.is_empty() {
            let step = inflate(&mut state, rest, &mut content[written..], MZFlush::None);
            rest = &rest[step.bytes_consumed..];
            written += step.bytes_written;
            match step.status {
                Ok(MZStatus::StreamEnd) if written == length => {
                    content.truncate(length);
                    return Ok(content);
                }
                Ok(MZStatus::Ok) | Err(MZError::Buf) if written <= length => {}
                _ => return Err(ObjectError::Damaged),
            }
            if written == content.len() {
                content.resize((content.len() * 2).min(length + 1), 0);
            } else if step.bytes_consumed == 0 && step.bytes_written == 0 {
                return Err(ObjectError::Damaged);
            }
        }
    }
}

/// Reads at an offset until the buffer is full or the file ends.
fn read_at(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < into.len() {
        match file.read_at(&mut into[got..], at.saturating_add(got as u64)) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

fn number(bytes: &[u8]) -> u32 {
    bytes.try_into().map_or(0, u32::from_be_bytes)
}
