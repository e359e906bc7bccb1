//! Finds the pieces, names and files of hold-outs that are also public.

use super::super::SealError;
use super::comparison::RollingWindow;
use super::windows::Windows;
use super::{PIECE_BYTES, comparison};
use crate::tree::{self, Tree};
use glovebox_record::Digest;
use rustix::fs::FileType;
use std::collections::HashSet;
use std::io::{self, Read};
use std::path::Path;

/// Maximum number of bytes that are read of a public folder and of one file in it, and maximum number of files.
const BYTES_MAX: u64 = 64 << 20;
const FILE_BYTES_MAX: u64 = 4 << 20;
const FILES_MAX: u64 = 20_000;
/// Maximum length in bytes of a name that is compared.
const NAME_BYTES_MAX: usize = 64;

/// The pieces and names that occur in public texts, and the digests of public files.
pub(super) struct PublicPieces<'w> {
    draft: &'w Windows,
    windows: HashSet<u64>,
    names: HashSet<String>,
    digests: HashSet<Digest>,
}

impl<'w> PublicPieces<'w> {
    pub(super) fn new(draft: &'w Windows) -> Self {
        Self { draft, windows: HashSet::new(), names: HashSet::new(), digests: HashSet::new() }
    }

    /// Adds a complete text.
    pub(super) fn add(&mut self, text: &str) {
        let mut reader = Reader::default();
        text.chars().chain(['\n']).for_each(|letter| self.next(&mut reader, letter));
    }

    /// Adds the names and contents of the files below a folder, except files that stages wrote.
    pub(super) fn add_folder(&mut self, folder: &Path, written: &HashSet<&str>) -> Result<(), SealError> {
        let shown = Tree::open(folder).map_err(|source| SealError::io(folder, source))?;
        let (mut files, mut bytes) = (0, 0);
        tree::walk::<SealError>(&shown, &mut |entry| {
            let name = entry.path.to_string_lossy();
            if written.contains(name.as_ref()) {
                return Ok(true);
            }
            self.add(&name);
            if entry.kind() == FileType::RegularFile && files < FILES_MAX && bytes < BYTES_MAX {
                files += 1;
                // A file that cannot be read adds nothing.
                bytes +=
                    shown.file(entry.path).and_then(|file| self.add_content(file.take(FILE_BYTES_MAX))).unwrap_or(0);
            }
            Ok(true)
        })
    }

    fn add_content(&mut self, mut from: impl Read) -> io::Result<u64> {
        let (mut reader, mut bytes, mut kept, mut total) = (Reader::default(), vec![0; PIECE_BYTES], 0, 0);
        let mut hasher = blake3::Hasher::new();
        loop {
            let read = from.read(&mut bytes[kept..])?;
            let have = kept + read;
            hasher.update(&bytes[kept..have]);
            let whole = if read == 0 { have } else { comparison::whole(&bytes[..have]) };
            let text = String::from_utf8_lossy(&bytes[..whole]);
            text.chars().for_each(|letter| self.next(&mut reader, letter));
            total += read as u64;
            if read == 0 {
                self.next(&mut reader, '\n');
                self.digests.insert(hasher.finalize().into());
                return Ok(total);
            }
            bytes.copy_within(whole..have, 0);
            kept = have - whole;
        }
    }

    fn next(&mut self, reader: &mut Reader, letter: char) {
        let (draft, windows) = (self.draft, &mut self.windows);
        reader.rolling.push(letter, |hash| {
            if draft.table.contains_key(&hash) {
                windows.insert(hash);
            }
            None::<()>
        });
        if letter.is_ascii_alphanumeric() || letter == '_' {
            if reader.name.len() <= NAME_BYTES_MAX {
                reader.name.push(letter);
            }
            return;
        }
        if !reader.name.is_empty() {
            self.end_name(std::mem::take(&mut reader.name));
        }
    }

    fn end_name(&mut self, mut name: String) {
        for _ in ["as it is", "in small letters"] {
            if self.draft.names.contains(&name) {
                self.names.insert(name.clone());
            }
            name.make_ascii_lowercase();
        }
    }

    /// Returns the names that are public.
    pub(super) fn names(&self) -> &HashSet<String> {
        &self.names
    }

    /// Returns true for a file that is public.
    pub(super) fn has_file(&self, digest: &Digest) -> bool {
        self.digests.contains(digest)
    }

    /// Returns true for a piece that is public.
    pub(super) fn has(&self, hash: u64) -> bool {
        self.windows.contains(&hash)
    }
}

/// State of the reader of a public text.
#[derive(Default)]
struct Reader {
    rolling: RollingWindow,
    name: String,
}
