//! Does a text contain a hold-out? Distinctive lines of the sealed files, searched all at once.
//!
//! Compared without white space, quotes and backslashes, so that indentation, wrapping, line numbers and JSON make no difference. It
//! finds what was copied, not what was paraphrased or encoded: it is the alarm behind the walls, not a wall. A find says which file
//! and line, and quotes nothing. Lines that pipeline or workspace show anyhow are no secret, and neither is what stands behind `hint:`.

use super::{Seal, SealError};
use crate::tree::{self, Tree};
use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use rustix::fs::FileType;
use std::collections::HashMap;
use std::io::{self, Read};
use std::path::Path;

/// Least characters of a line that is looked for, white space, quotes and backslashes not counted.
const LINE_CHARS_MIN: usize = 20;
/// Least letters among them: a line of numbers or dashes says little.
const LINE_LETTERS_MIN: usize = 8;
/// Characters of a longer line that are looked for, its first ones.
const LINE_CHARS_MAX: usize = 200;
/// Most lines that are looked for, taken from the files in turn.
const LINES_MAX: usize = 50_000;
/// Most bytes read of one file, sealed or public.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Most bytes read of a public folder, and most files.
const PUBLIC_BYTES_MAX: u64 = 64 << 20;
const PUBLIC_FILES_MAX: u64 = 20_000;
/// Most hints one output may tell, and the characters of each.
const HINTS_MAX: usize = 20;
const HINT_CHARS_MAX: usize = 500;
/// What marks a line as public, in a scenario and in what it prints (design §7).
const HINT: &str = "hint:";

/// Beginnings of lines that everybody writes, as they are compared.
const COMMONPLACE: [&str; 14] = [
    "#!",
    "#include",
    "//!",
    "//SPDX-",
    "#SPDX-",
    "*SPDX-",
    "SPDX-",
    "from",
    "import",
    "use",
    "package",
    "if__name__==",
    "Licensedunder",
    "Copyright",
];

/// Where a hold-out was found. Names no content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// The sealed file.
    pub file: String,
    /// Its line, from 1.
    pub line: usize,
}

/// Lines of hold-outs, ready to be searched for.
pub struct Canary {
    finder: AhoCorasick,
    needles: Vec<String>,
    places: Vec<Leak>,
    hints: Vec<String>,
}

impl std::fmt::Debug for Canary {
    /// Quotes no line: a debug print may end up in a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Canary").field("lines", &self.needles.len()).finish_non_exhaustive()
    }
}

impl Canary {
    /// Reads the distinctive lines of the sealed copy, less those that `public` texts contain.
    ///
    /// # Errors
    /// [`SealError::Io`] when the sealed copy cannot be read.
    pub fn of(seal: &Seal, public: &[&str]) -> Result<Self, SealError> {
        let files = seal.files();
        let sealed = Tree::open(&files).map_err(|source| SealError::io(&files, source))?;
        let (mut lines, mut hints) = (HashMap::new(), Vec::new());
        for leaf in seal.leaves() {
            let text =
                read(&sealed, Path::new(&leaf.path)).map_err(|source| SealError::io(Path::new(&leaf.path), source))?;
            take_lines(&leaf.path, &text, &mut lines, &mut hints);
        }
        let mut all: Vec<(String, Leak)> = lines.into_iter().collect();
        all.sort_by(|(_, a), (_, b)| (a.line, &a.file).cmp(&(b.line, &b.file)));
        all.truncate(LINES_MAX);
        let (needles, places) = all.into_iter().unzip();
        let mut canary = Self { finder: finder(&[])?, needles, places, hints };
        canary.finder = finder(&canary.needles)?;
        let public: Vec<String> = public.iter().map(|text| compared(text)).collect();
        canary.without(public.iter().map(String::as_str))
    }

    /// Looks for no line any more that stands in a file of the folder: stages see it anyhow. Reads to a bound, follows nothing.
    ///
    /// # Errors
    /// [`SealError::Io`] when the folder cannot be read.
    pub fn less_folder(self, folder: &Path) -> Result<Self, SealError> {
        let shown = Tree::open(folder).map_err(|source| SealError::io(folder, source))?;
        let (mut known, mut files, mut bytes) = (vec![false; self.needles.len()], 0, 0);
        tree::walk::<SealError>(&shown, &mut |met| {
            let is_wanted = met.kind() == FileType::RegularFile && files < PUBLIC_FILES_MAX && bytes < PUBLIC_BYTES_MAX;
            if is_wanted && let Ok(text) = read(&shown, met.path) {
                files += 1;
                bytes += text.len() as u64;
                self.mark(&compared(&text), &mut known);
            }
            Ok(true)
        })?;
        self.keep(&known)
    }

    /// True when there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.needles.is_empty()
    }

    /// Returns the first hold-out line that the text contains. Linear in the text.
    pub fn find(&self, text: &str) -> Option<Leak> {
        if self.is_empty() {
            return None;
        }
        let found = self.finder.find(&compared(text))?;
        self.places.get(found.pattern().as_usize()).cloned()
    }

    /// Returns the public lines of what a stage with hold-outs printed: `hint:` and a text that a sealed file has behind the same
    /// word. A program under test cannot tell anything else in this way. Bounded, each hint once.
    pub fn hints(&self, output: &str) -> Vec<String> {
        let mut told: Vec<String> = Vec::new();
        for line in output.lines() {
            let Some(hint) = line.trim().strip_prefix(HINT).map(str::trim).filter(|hint| !hint.is_empty()) else {
                continue;
            };
            let (wanted, chars) = (compared(hint), hint.chars().count());
            let is_public = !wanted.is_empty() && self.hints.iter().any(|public| public.starts_with(&wanted));
            if is_public && chars <= HINT_CHARS_MAX && told.len() < HINTS_MAX {
                let hint = format!("{HINT} {}", crate::refusal::escaped(hint));
                if !told.contains(&hint) {
                    told.push(hint);
                }
            }
        }
        told
    }

    fn without<'t>(self, public: impl Iterator<Item = &'t str>) -> Result<Self, SealError> {
        let mut known = vec![false; self.needles.len()];
        public.for_each(|text| self.mark(text, &mut known));
        self.keep(&known)
    }

    fn mark(&self, compared: &str, known: &mut [bool]) {
        for found in self.finder.find_overlapping_iter(compared) {
            known[found.pattern().as_usize()] = true;
        }
    }

    fn keep(self, known: &[bool]) -> Result<Self, SealError> {
        let lines = self.needles.into_iter().zip(self.places).zip(known);
        let (needles, places): (Vec<_>, _) = lines.filter(|(_, known)| !**known).map(|(line, _)| line).unzip();
        Ok(Self { finder: finder(&needles)?, needles, places, hints: self.hints })
    }
}

fn finder(needles: &[String]) -> Result<AhoCorasick, SealError> {
    let built = AhoCorasickBuilder::new().match_kind(MatchKind::Standard).build(needles);
    built.map_err(|error| SealError::Malformed(error.to_string()))
}

/// Takes the lines of one sealed file that are looked for, and what stands behind `hint:`.
fn take_lines(file: &str, text: &str, lines: &mut HashMap<String, Leak>, hints: &mut Vec<String>) {
    for (index, line) in text.lines().enumerate() {
        let (secret, hint) = line.split_once(HINT).map_or((line, None), |(before, hint)| (before, Some(hint)));
        hints.extend(hint.map(compared));
        let needle: String = compared(secret).chars().take(LINE_CHARS_MAX).collect();
        if is_distinctive(&needle) {
            lines.entry(needle).or_insert_with(|| Leak { file: file.to_owned(), line: index + 1 });
        }
    }
}

fn is_distinctive(needle: &str) -> bool {
    needle.chars().count() >= LINE_CHARS_MIN
        && needle.chars().filter(|letter| letter.is_alphabetic()).count() >= LINE_LETTERS_MIN
        && !COMMONPLACE.iter().any(|start| needle.starts_with(start))
}

/// The text as it is compared: no white space, no quotes, no backslashes, no letter that a backslash turns into white space.
fn compared(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                if matches!(characters.peek(), Some('n' | 'r' | 't')) {
                    characters.next();
                }
            }
            '"' | '\'' | '`' => {}
            other if other.is_whitespace() || other.is_control() => {}
            other => out.push(other),
        }
    }
    out
}

fn read(tree: &Tree, path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    tree.file(path)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
