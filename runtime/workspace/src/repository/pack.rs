//! A packfile: all objects of a repository in one file, with an index (git's `gitformat-pack`, version 2).
//!
//! Objects are appended one by one, and compressed only if that is likely to reduce the size. Memory contains 28 bytes
//! for each object and one buffer, never a whole file. An object is stored only once.

use super::digest::{ObjectId, ObjectKind};
use crate::tree;
use miniz_oxide::deflate::compress_to_vec_zlib;
use sha1_smol::Sha1;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;

/// Maximum size in bytes of an object whose content is compressed. Larger ones are stored uncompressed.
const COMPRESSED_BYTES_MAX: usize = 1 << 20;
/// Number of bytes that are searched for a NUL, which text does not contain.
const TEXT_BYTES: usize = 8_000;
/// Bit of an offset that is an index in the table of large offsets.
const LARGE_OFFSET: u64 = 1 << 31;
/// The fastest compression level.
const LEVEL: u8 = 1;
const STORED_BYTES_MAX: usize = 65_535;
const MODULUS: u32 = 65_521;

struct PackedObject {
    crc: u32,
    offset: u64,
}

/// A packfile that is being written.
pub(super) struct Pack {
    out: BufWriter<File>,
    offset: u64,
    entries: HashMap<ObjectId, PackedObject>,
}

impl Pack {
    /// Creates a pack in an empty file that is open for reading and writing.
    pub(super) fn begin(file: File) -> io::Result<Self> {
        let mut pack = Self { out: BufWriter::with_capacity(1 << 18, file), offset: 0, entries: HashMap::new() };
        pack.write(&header(0))?;
        Ok(pack)
    }

    /// Adds an object unless the pack contains it. Returns its id.
    pub(super) fn add(&mut self, kind: ObjectKind, content: &[u8]) -> io::Result<ObjectId> {
        let id = ObjectId::for_object(kind, content);
        if self.entries.contains_key(&id) {
            return Ok(id);
        }
        let mut stored = length(kind, content.len());
        let is_text = content.len() <= COMPRESSED_BYTES_MAX && !content.iter().take(TEXT_BYTES).any(|byte| *byte == 0);
        match is_text {
            true => stored.extend(compress_to_vec_zlib(content, LEVEL)),
            false => store(content, &mut stored),
        }
        self.entries.insert(id, PackedObject { crc: crc32fast::hash(&stored), offset: self.offset });
        self.write(&stored)?;
        Ok(id)
    }

    /// Writes the number of objects and the checksum. Returns the id of the pack, and the index.
    pub(super) fn finish(mut self) -> io::Result<(ObjectId, Vec<u8>)> {
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&header(self.entries.len()))?;
        let mut file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        let mut digest = Sha1::new();
        let mut buffer = vec![0; 1 << 18];
        loop {
            match tree::read_full(&mut file, &mut buffer)? {
                0 => break,
                got => digest.update(&buffer[..got]),
            }
        }
        let checksum = ObjectId(digest.digest().bytes());
        file.write_all(&checksum.0)?;
        Ok((checksum, index(&self.entries, checksum)))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.offset += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}

/// Reads a whole file of at most `bytes_max` bytes. Returns `None` if it has grown beyond that.
pub(super) fn content(file: File, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut content)?;
    Ok((content.len() as u64 <= bytes_max).then_some(content))
}

/// Opens a new file for a pack.
pub(super) fn file(directory: &OwnedFd, name: &str) -> io::Result<File> {
    use rustix::fs::OFlags;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat(directory, name, flags, tree::file_mode(false))?))
}

fn header(objects: usize) -> [u8; 12] {
    let mut header = *b"PACK\0\0\0\x02\0\0\0\0";
    header[8..].copy_from_slice(&u32::try_from(objects).unwrap_or(u32::MAX).to_be_bytes());
    header
}

/// Returns the kind and the length of an object in git's encoding: four bits of the length in the first byte, then
/// seven in each further byte.
fn length(kind: ObjectKind, bytes: usize) -> Vec<u8> {
    let mut rest = bytes >> 4;
    let first = (kind.number() << 4) | u8::try_from(bytes & 15).unwrap_or_default();
    let mut head = vec![first];
    while rest > 0 {
        if let Some(last) = head.last_mut() {
            *last |= 128;
        }
        head.push(u8::try_from(rest & 127).unwrap_or_default());
        rest >>= 7;
    }
    head
}

/// Appends a zlib stream that contains the content uncompressed.
fn store(content: &[u8], into: &mut Vec<u8>) {
    into.reserve(content.len() + content.len() / STORED_BYTES_MAX * 5 + 16);
    into.extend([0x78, 0x01]);
    let blocks = content.len().div_ceil(STORED_BYTES_MAX).max(1);
    for number in 0..blocks {
        let start = number * STORED_BYTES_MAX;
        let block = &content[start..content.len().min(start + STORED_BYTES_MAX)];
        let bytes = u16::try_from(block.len()).unwrap_or(u16::MAX);
        into.push(u8::from(number + 1 == blocks));
        into.extend(bytes.to_le_bytes());
        into.extend((!bytes).to_le_bytes());
        into.extend(block);
    }
    into.extend(adler(content).to_be_bytes());
}

/// Returns the Adler-32 checksum, which ends a zlib stream.
fn adler(content: &[u8]) -> u32 {
    let (mut low, mut high) = (1_u32, 0_u32);
    // The sums of 5,552 bytes fit into 32 bits.
    for part in content.chunks(5_552) {
        for byte in part {
            low += u32::from(*byte);
            high += low;
        }
        low %= MODULUS;
        high %= MODULUS;
    }
    (high << 16) | low
}

/// Returns the index: a table of counts, then ids, checksums and offsets sorted by id.
fn index(entries: &HashMap<ObjectId, PackedObject>, pack: ObjectId) -> Vec<u8> {
    let mut sorted: Vec<(&ObjectId, &PackedObject)> = entries.iter().collect();
    sorted.sort_by_key(|(id, _)| **id);
    let mut index = vec![0xff, b't', b'O', b'c', 0, 0, 0, 2];
    for first in 0..=255_u8 {
        let up_to = sorted.partition_point(|(id, _)| id.0[0] <= first);
        index.extend(u32::try_from(up_to).unwrap_or(u32::MAX).to_be_bytes());
    }
    sorted.iter().for_each(|(id, _)| index.extend(id.0));
    sorted.iter().for_each(|(_, entry)| index.extend(entry.crc.to_be_bytes()));
    let mut large = Vec::new();
    for (_, entry) in &sorted {
        let place = match entry.offset < LARGE_OFFSET {
            true => entry.offset,
            false => {
                large.push(entry.offset);
                LARGE_OFFSET | (large.len() as u64 - 1)
            }
        };
        index.extend(u32::try_from(place).unwrap_or(u32::MAX).to_be_bytes());
    }
    large.iter().for_each(|offset| index.extend(offset.to_be_bytes()));
    index.extend(pack.0);
    let checksum = Sha1::from(&index).digest().bytes();
    index.extend(checksum);
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_stream_is_read_back() {
        for bytes in [0, 1, 65_535, 65_536, 200_000] {
            let content: Vec<u8> = (0..bytes).map(|at: usize| (at * 7 % 251) as u8).collect();
            let mut stored = Vec::new();
            store(&content, &mut stored);
            assert_eq!(miniz_oxide::inflate::decompress_to_vec_zlib(&stored).unwrap(), content, "{bytes}");
        }
    }

    #[test]
    fn lengths_are_written_as_git_reads_them() {
        assert_eq!(length(ObjectKind::Blob, 0), [0x30]);
        assert_eq!(length(ObjectKind::Commit, 15), [0x1f]);
        assert_eq!(length(ObjectKind::Tree, 16), [0xa0, 0x01]);
        assert_eq!(length(ObjectKind::Blob, 5_000), [0xb8, 0xb8, 0x02]);
    }
}
