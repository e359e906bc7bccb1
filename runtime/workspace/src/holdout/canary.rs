//! The alarm: finds pieces of hold-outs in a text.
//!
//! A piece is 24 characters of one line, beginning at any of its words, compared without white space, quotes and backslashes; of a
//! sentence of common words it is 40. So indentation, wrapping, line numbers and JSON make no difference, and a part of a line is
//! found as well as the whole. Texts of any length are searched in one pass and in bounded memory. The alarm does not find text that
//! was paraphrased or encoded. A match names the file and the line, and quotes nothing. Text that the pipeline or workspace shows is
//! not searched for, and neither are public hints and lines that many programs share.

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

/// Bytes read at a time.
const PIECE_BYTES: usize = 64 << 10;

/// The place of a hold-out in a text or file. Names no content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// The sealed file.
    pub file: String,
    /// Its line, from 1.
    pub line: usize,
}

/// Files and texts that builders can see. The default: none.
#[derive(Debug, Default)]
pub struct PublicSummary<'p> {
    /// Texts that builders are given.
    pub texts: Vec<&'p str>,
    /// A folder that builders see. It is read to a bound, and no link in it is followed.
    pub folder: Option<&'p Path>,
    /// Paths below it that do not count: stages wrote them.
    pub written: HashSet<&'p str>,
}

/// Pieces of hold-outs, ready to be searched for, and the hints that their authors made public.
pub struct Canary {
    table: Table,
    files: Vec<String>,
    /// The files that are not public, and their places in the list.
    digests: HashMap<Digest, usize>,
    hints: Hints,
}

impl std::fmt::Debug for Canary {
    /// Quotes nothing: a debug print may end up in a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Canary").field("pieces", &self.table.len()).finish_non_exhaustive()
    }
}

impl Canary {
    /// Reads the sealed copy. Text that is public is not searched for.
    ///
    /// # Errors
    /// [`SealError::Io`] when the sealed copy or the public folder cannot be read.
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

    /// True when there is nothing to search for.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Returns the first piece of a hold-out in a text. Linear in the text.
    pub fn find(&self, text: &str) -> Option<Leak> {
        if self.is_empty() {
            return None;
        }
        let mut rolling = RollingWindow::default();
        text.chars().find_map(|letter| rolling.push(letter, |hash| self.found(hash)))
    }

    /// Returns the first piece of a hold-out in all that can be read, however long it is.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn find_in(&self, mut from: impl Read) -> io::Result<Option<Leak>> {
        let (mut rolling, mut bytes, mut kept) = (RollingWindow::default(), vec![0; PIECE_BYTES], 0);
        loop {
            let read = match from.read(&mut bytes[kept..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            let have = kept + read;
            // A character may be cut by the end of a piece, but not by the end of all.
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

    /// Returns the hold-out that bytes which are no text are a copy of, or the first piece of one in a text among them.
    pub fn find_bytes(&self, bytes: &[u8]) -> Option<Leak> {
        let copied = self.digests.get(&Digest::hash(bytes)).and_then(|place| self.files.get(*place));
        let copied = copied.map(|file| Leak { file: file.to_owned(), line: 1 });
        copied.or_else(|| self.find(&String::from_utf8_lossy(bytes)))
    }

    /// Returns the public hints that a stage printed, each as its sealed file has it, once, in the order of the sealed files. The output
    /// only selects hints: a line counts if it is `hint:` and the whole text of a hint, apart from surrounding spaces.
    pub fn hints<'o>(&self, outputs: impl IntoIterator<Item = &'o str>) -> Vec<String> {
        self.hints.printed(outputs)
    }

    fn found(&self, hash: u64) -> Option<Leak> {
        let position = self.table.get(&hash)?;
        let file = self.files.get(position.file as usize)?.clone();
        Some(Leak { file, line: position.line as usize })
    }
}
