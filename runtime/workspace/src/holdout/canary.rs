//! The leak check: finds pieces of hold-outs in a text.
//!
//! A piece is 24 characters of one line that begin at a word, compared without white space, quotes and backslashes. In
//! a sentence of common words, a piece is 40 characters. So indentation, wrapping, line numbers and JSON encoding make
//! no difference, and a part of a line is found as well as the whole line. Texts of any length are searched in one pass
//! and in bounded memory. The check does not find text that was paraphrased or encoded. A match names the file and the
//! line, and never contains the text. These texts are ignored: text that the pipeline or the workspace shows, public
//! hints, and lines that are common in many programs.

mod commonplace;
mod comparison;
mod hints;
mod public_pieces;
mod windows;

use super::{Seal, SealError};
use crate::tree::Tree;
use comparison::RollingWindow;
use glovebox_record::Digest;
use hints::Hints;
use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::path::Path;
use windows::{SealedFile, Table};

/// Number of bytes that are read at a time.
const PIECE_BYTES: usize = 64 << 10;

/// The hold-out line that was found in a text or file. It does not contain the text of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// The sealed file.
    pub file: String,
    /// The line of the sealed file, from 1.
    pub line: usize,
}

/// Files and texts that builders can see. The default is none.
#[derive(Debug, Default)]
pub struct PublicSummary<'p> {
    /// Texts that builders get.
    pub texts: Vec<&'p str>,
    /// A folder that builders see. The number of bytes that are read is bounded, and links in it are not followed.
    pub folder: Option<&'p Path>,
    /// Paths below `folder` that are ignored because stages wrote them.
    pub written: HashSet<&'p str>,
}

/// An index of pieces of hold-outs to search for, and the hints that scenario authors made public.
pub struct Canary {
    table: Table,
    files: Vec<String>,
    /// Digests of the sealed files that are not public, with their indexes in `files`.
    digests: HashMap<Digest, usize>,
    hints: Hints,
}

impl std::fmt::Debug for Canary {
    /// Prints no piece, because debug output may be logged.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Canary").field("pieces", &self.table.len()).finish_non_exhaustive()
    }
}

impl Canary {
    /// Builds the index from the sealed copy. Public text is not included.
    ///
    /// # Errors
    /// [`SealError::Io`] if the sealed copy or the public folder cannot be read.
    pub fn for_seal(seal: &Seal, public: &PublicSummary<'_>) -> Result<Self, SealError> {
        let files = seal.files();
        let tree = Tree::open(&files).map_err(|source| SealError::io(&files, source))?;
        let sealed = SealedFile { tree, leaves: seal.leaves() };
        let hints = sealed.hints()?;
        let draft = sealed.windows(&hints, &|_| false)?;
        let mut public_pieces = public_pieces::PublicPieces::new(&draft);
        public.texts.iter().copied().chain(hints.texts()).for_each(|text| public_pieces.add(text));
        if let Some(folder) = public.folder {
            public_pieces.add_folder(folder, &public.written)?;
        }
        let names = public_pieces.names();
        let mut table = sealed.windows(&hints, &|name| names.contains(name))?.table;
        table.retain(|hash, _| !public_pieces.has(*hash));
        let secret = sealed.leaves.iter().enumerate().filter(|(_, leaf)| !public_pieces.has_file(&leaf.digest));
        let digests = secret.map(|(place, leaf)| (leaf.digest, place)).collect();
        let files = sealed.leaves.iter().map(|leaf| leaf.path.clone()).collect();
        Ok(Self { table, files, digests, hints })
    }

    /// Returns true if there is nothing to search for.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Returns the first piece of a hold-out in a text. The time is linear in the length of the text.
    pub fn find(&self, text: &str) -> Option<Leak> {
        if self.is_empty() {
            return None;
        }
        let mut rolling = RollingWindow::default();
        text.chars().find_map(|letter| rolling.push(letter, |hash| self.found(hash)))
    }

    /// Returns the first piece of a hold-out in a stream of any length.
    ///
    /// # Errors
    /// The errors of the reader.
    pub fn find_in(&self, mut from: impl Read) -> io::Result<Option<Leak>> {
        let (mut rolling, mut bytes, mut kept) = (RollingWindow::default(), vec![0; PIECE_BYTES], 0);
        loop {
            let read = match from.read(&mut bytes[kept..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            let have = kept + read;
            // A character may be truncated at the end of a buffer, but not at the end of the stream.
            let whole = if read == 0 { have } else { comparison::whole(&bytes[..have]) };
            let text = String::from_utf8_lossy(&bytes[..whole]);
            let found = text.chars().find_map(|letter| rolling.push(letter, |hash| self.found(hash)));
            if found.is_some() || read == 0 {
                return Ok(found);
            }
            bytes.copy_within(whole..have, 0);
            kept = have - whole;
        }
    }

    /// Returns the hold-out of which the bytes are a copy, or the first piece of a hold-out in them. The bytes need not
    /// be valid text.
    pub fn find_bytes(&self, bytes: &[u8]) -> Option<Leak> {
        let copied = self.digests.get(&Digest::hash(bytes)).and_then(|place| self.files.get(*place));
        let copied = copied.map(|file| Leak { file: file.to_owned(), line: 1 });
        copied.or_else(|| self.find(&String::from_utf8_lossy(bytes)))
    }

    /// Returns the public hints that a stage printed, each once and with the text of the sealed file, in the order of
    /// the sealed files. The output only selects hints: a line selects a hint if it is `hint:` followed by the whole
    /// text of the hint, apart from surrounding spaces.
    pub fn hints<'o>(&self, outputs: impl IntoIterator<Item = &'o str>) -> Vec<String> {
        self.hints.printed(outputs)
    }

    fn found(&self, hash: u64) -> Option<Leak> {
        let position = self.table.get(&hash)?;
        let file = self.files.get(position.file as usize)?.clone();
        Some(Leak { file, line: position.line as usize })
    }
}
