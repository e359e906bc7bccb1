//! The pieces of sealed files that the leak check looks for: windows over the compared characters of a line, one starting at
//! each word.
//!
//! A window is used only if it is distinctive. In prose, it must contain at least two different words that are neither
//! commonplace (see [`super::commonplace`]) nor part of a public compound name. In code, it must contain three such
//! words that are not public either. A sentence of commonplace words is used as a wide window. Independent work shares
//! idioms and the names of the task with hold-outs, but not distinctive windows.

use super::super::{Leaf, SealError};
use super::commonplace;
use super::comparison::{self, CharacterFilter, WIDE, WINDOW};
use super::hints::Hints;
use crate::tree::Tree;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Minimum number of distinctive words in a window, and minimum number of their letters, in prose and in code.
const PROSE_MIN: (usize, usize) = (2, 10);
const CODE_MIN: (usize, usize) = (3, 14);
/// Maximum number of characters in a window of prose that are not part of a word.
const PROSE_SIGNS_MAX: usize = 2;
/// Minimum number of words in a wide window, and maximum number of characters that are not part of a word.
const SENTENCE_WORDS_MIN: usize = 7;
const SENTENCE_SIGNS_MAX: usize = 2;
/// Minimum length of a distinctive word, in letters, and of a distinctive number, in digits.
const WORD_LETTERS_MIN: usize = 3;
const NUMBER_DIGITS_MIN: usize = 6;
/// Minimum length in characters at which a key, a digest or a sequence of non-ASCII letters is distinctive by itself.
const DENSE_CHARS_MIN: usize = 12;
/// Maximum size in bytes of hold-outs of which every window is kept. For larger hold-outs, only every second window,
/// every third, and so on, is kept.
const DENSE_BYTES_MAX: u64 = 4 << 20;
/// Maximum number of bytes of a line that are examined at a time.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// Maximum number of names that are compared with public texts.
const NAMES_MAX: usize = 100_000;

/// The position of a window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    /// Index of the sealed file.
    pub(super) file: u32,
    /// The line in the sealed file, from 1.
    pub(super) line: u32,
}

/// Windows by hash. The hash is already uniformly distributed.
pub(super) type Table = HashMap<u64, Position, BuildHasherDefault<IdentityHasher>>;

/// A hasher that returns the number itself.
#[derive(Default)]
pub(super) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = (self.0 << 8) | u64::from(*byte));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// Windows, and the names in their lines that may be public: compound names, and other words in lower case.
#[derive(Default)]
pub(super) struct Windows {
    pub(super) table: Table,
    pub(super) names: HashSet<String>,
}

/// The sealed files.
pub(super) struct SealedFile<'s> {
    pub(super) tree: Tree,
    pub(super) leaves: &'s [Leaf],
}

impl SealedFile<'_> {
    /// Returns the public hints of all files.
    pub(super) fn hints(&self) -> Result<Hints, SealError> {
        let mut hints = Hints::default();
        self.each_line(&mut |_, line| {
            hints.add(line);
        })?;
        Ok(hints)
    }

    /// Returns the windows of all files. `is_public` decides whether a name is public.
    pub(super) fn windows(&self, hints: &Hints, is_public: &dyn Fn(&str) -> bool) -> Result<Windows, SealError> {
        let bytes: u64 = self.leaves.iter().map(|leaf| leaf.bytes).sum();
        let stride = usize::try_from(bytes.div_ceil(DENSE_BYTES_MAX)).unwrap_or(usize::MAX).max(1);
        let (mut windows, mut met) = (Windows::default(), 0);
        self.each_line(&mut |position, line| {
            let secret = hints.secret(line);
            if commonplace::is_line(secret) {
                return;
            }
            let line = Line::new(secret, is_public);
            for start in line.starts() {
                met += 1;
                if met % stride == 0 {
                    line.add_windows(start, position, &mut windows.table);
                }
            }
            let room = NAMES_MAX.saturating_sub(windows.names.len());
            windows.names.extend(line.names.into_iter().take(room));
        })?;
        Ok(windows)
    }

    fn each_line(&self, act: &mut dyn FnMut(Position, &str)) -> Result<(), SealError> {
        let leaves = self.leaves.iter().enumerate().filter(|(_, leaf)| !commonplace::is_file(&leaf.path));
        for (file, leaf) in leaves {
            let failed = |source| SealError::io(Path::new(&leaf.path), source);
            let mut reader = BufReader::new(self.tree.file(Path::new(&leaf.path)).map_err(failed)?);
            let (mut bytes, mut line) = (Vec::new(), 1);
            while reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes).map_err(failed)? > 0 {
                let position = Position { file: u32::try_from(file).unwrap_or(u32::MAX), line };
                act(position, String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']));
                line = line.saturating_add(u32::from(bytes.ends_with(b"\n")));
                bytes.clear();
            }
        }
        Ok(())
    }
}

/// One compared character.
struct Letter {
    character: char,
    /// Index of the word that contains the character.
    word: Option<usize>,
}

/// A word of a line: a sequence of letters and digits. Names are split at `_` and before capitals.
struct Word {
    start: usize,
    /// The word in lower case; `None` if it is not distinctive.
    own: Option<String>,
    /// True if the word is also distinctive in code.
    in_code: bool,
    /// True if the word is distinctive by itself.
    is_dense: bool,
}

/// A line in its compared form.
struct Line {
    letters: Vec<Letter>,
    words: Vec<Word>,
    names: Vec<String>,
}

impl Line {
    fn new(text: &str, is_public: &dyn Fn(&str) -> bool) -> Self {
        let mut line = Self { letters: Vec::new(), words: Vec::new(), names: Vec::new() };
        let (mut filter, mut name) = (CharacterFilter::default(), String::new());
        for character in text.chars() {
            let passes = filter.passes(character);
            let is_part = passes && (character.is_alphanumeric() || character == '_');
            if is_part {
                name.push(character);
                continue;
            }
            line.end_name(&mut name, is_public);
            if passes {
                line.letters.push(Letter { character, word: None });
            }
        }
        line.end_name(&mut name, is_public);
        line
    }

    /// Adds a complete name, word by word.
    fn end_name(&mut self, name: &mut String, is_public: &dyn Fn(&str) -> bool) {
        if name.is_empty() {
            return;
        }
        let whole = Name(name);
        let words = if whole.is_dense() { vec![(0, whole)] } else { whole.words() };
        let is_compound = words.len() > 1;
        let is_known = is_compound && is_public(name);
        let (mut words, mut current) = (words.into_iter().peekable(), None);
        for (at, character) in name.char_indices() {
            if let Some((_, word)) = words.next_if(|(start, _)| *start == at) {
                current = Some(self.words.len());
                let own = (!is_known && word.is_own()).then(|| word.0.to_lowercase());
                let in_code = own.as_deref().is_some_and(|word| !is_public(word));
                self.names.extend(own.clone().filter(|_| !is_compound));
                self.words.push(Word { start: self.letters.len(), own, in_code, is_dense: word.is_dense() });
            }
            self.letters.push(Letter { character, word: current.filter(|_| character != '_') });
        }
        let name = std::mem::take(name);
        if is_compound {
            self.names.push(name);
        }
    }

    /// Returns the start positions of windows: the first character of the line, each word, each letter outside of
    /// ASCII, and the last possible start of a window and of a wide window.
    fn starts(&self) -> Vec<usize> {
        let Some(last) = self.letters.len().checked_sub(WINDOW) else { return Vec::new() };
        let foreign = self.letters.iter().enumerate().filter(|(_, letter)| is_foreign(letter.character));
        let mut starts: Vec<usize> = self.words.iter().map(|word| word.start).collect();
        starts.extend(foreign.map(|(at, _)| at));
        starts.extend([0, last, last.saturating_sub(WIDE - WINDOW)]);
        starts.retain(|start| *start <= last);
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    /// Adds the windows that start at a position.
    fn add_windows(&self, start: usize, position: Position, table: &mut Table) {
        for (length, counts) in
            [(WINDOW, Self::is_distinctive as fn(&Self, &[Letter]) -> bool), (WIDE, Self::is_sentence)]
        {
            let window = self.letters.get(start..start + length);
            if let Some(window) = window.filter(|window| counts(self, window)) {
                table.entry(comparison::hash_of(window.iter().map(|letter| letter.character))).or_insert(position);
            }
        }
    }

    fn is_sentence(&self, window: &[Letter]) -> bool {
        let signs = window.iter().filter(|letter| letter.word.is_none()).count();
        let words = window.chunk_by(|one, next| one.word == next.word).count();
        signs <= SENTENCE_SIGNS_MAX && words >= SENTENCE_WORDS_MIN + signs
    }

    fn is_distinctive(&self, window: &[Letter]) -> bool {
        let signs = window.iter().filter(|letter| letter.word.is_none()).count();
        let is_code = signs > PROSE_SIGNS_MAX;
        let mut own: Vec<&str> = Vec::with_capacity(WINDOW);
        let (mut letters, mut is_dense) = (0, false);
        for run in window.chunk_by(|one, next| one.word == next.word) {
            let Some(word) = run[0].word.map(|number| &self.words[number]) else { continue };
            let counts = run.len() >= WORD_LETTERS_MIN && (word.in_code || !is_code);
            let Some(text) = word.own.as_deref().filter(|_| counts) else { continue };
            is_dense |= word.is_dense && run.len() >= DENSE_CHARS_MIN;
            if !own.contains(&text) {
                own.push(text);
                letters += run.len();
            }
        }
        let (words_min, letters_min) = if is_code { CODE_MIN } else { PROSE_MIN };
        is_dense || (own.len() >= words_min && letters >= letters_min)
    }
}

/// A name in a line: a sequence of letters, digits and `_`, or one word of such a sequence.
#[derive(Clone, Copy)]
struct Name<'n>(&'n str);

impl<'n> Name<'n> {
    /// Returns true for a word that is not commonplace.
    fn is_own(self) -> bool {
        let (chars, digits) = (self.0.chars().count(), self.0.chars().filter(char::is_ascii_digit).count());
        let says_little = chars < WORD_LETTERS_MIN || (digits == chars && digits < NUMBER_DIGITS_MIN);
        !says_little && !commonplace::is_word(self.0)
    }

    /// Returns true for keys, digests, and long sequences of letters outside of ASCII, which some languages write without spaces.
    fn is_dense(self) -> bool {
        let digits = self.0.bytes().filter(u8::is_ascii_digit).count();
        let letters = self.0.bytes().filter(u8::is_ascii_alphabetic).count();
        let is_key = self.0.len() >= DENSE_CHARS_MIN + 4 && digits >= 3 && letters >= 3 && !self.0.contains('_');
        is_key || (self.0.chars().count() >= DENSE_CHARS_MIN && self.0.chars().any(is_foreign))
    }

    /// Splits the name at `_` and before each capital that follows a lower-case letter. Returns each word with its position.
    fn words(self) -> Vec<(usize, Self)> {
        let (mut words, mut start, mut before) = (Vec::new(), 0, ' ');
        for (at, letter) in self.0.char_indices() {
            if letter == '_' || (letter.is_uppercase() && before.is_lowercase()) {
                words.push((start, Self(&self.0[start..at])));
                start = at + usize::from(letter == '_');
            }
            before = letter;
        }
        words.push((start, Self(&self.0[start..])));
        words.retain(|(_, word)| !word.0.is_empty());
        words
    }
}

fn is_foreign(character: char) -> bool {
    !character.is_ascii() && character.is_alphabetic()
}
