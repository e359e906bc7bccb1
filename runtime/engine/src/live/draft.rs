//! The text of an unfinished answer of a model, for people who watch a run: a file for each attempt, which other processes
//! follow.
//!
//! The file is only a hint for people: it is not part of the record, and it is replaced or removed when the answer is finished or
//! discarded. It has the number of the draft in its attempt and the length of the whole text, each as 8 bytes in little-endian
//! order, and then the end of the text. The caller decides which stages are watched.

use super::{create_in, name, remove_folder};
use crate::run_dir::RunDir;
use cap_std::fs::Dir;
use glovebox_host::llm::LiveAnswer;
use glovebox_journal::event::AttemptId;
use glovebox_workspace::regular_file;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of bytes of text in the file.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Length of the two numbers, in bytes.
const HEAD_BYTES: usize = 16;

/// Creates the watcher of an attempt's unfinished answers.
pub(crate) fn watcher(run: Arc<RunDir>, attempt: AttemptId) -> LiveAnswer {
    let file = Mutex::new(DraftFile { run, attempt, number: 0, text: String::new(), has_failed: false });
    LiveAnswer::new(move |text| file.lock().unwrap_or_else(PoisonError::into_inner).write(text))
}

/// The file with the unfinished answer of an attempt. It exists while there is such an answer.
struct DraftFile {
    run: Arc<RunDir>,
    attempt: AttemptId,
    /// Number of the last draft, from 1.
    number: u64,
    /// The text in the file; empty if there is no file.
    text: String,
    has_failed: bool,
}

impl DraftFile {
    /// Replaces the text. If this fails, nobody can follow the answers of the attempt, but the attempt continues.
    fn write(&mut self, text: Option<String>) {
        let Some(text) = text else { return self.remove() };
        if self.has_failed {
            return;
        }
        // A text that does not continue the one before it is another draft.
        self.number += u64::from(self.text.is_empty() || !text.starts_with(&self.text));
        self.text = text;
        if let Err(error) = self.replace() {
            tracing::warn!(%error, "the unfinished answer of a model cannot be followed");
            self.has_failed = true;
            self.remove();
        }
    }

    fn replace(&self) -> io::Result<()> {
        let first = self.text.ceil_char_boundary(self.text.len().saturating_sub(TEXT_BYTES_MAX));
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.text.len() - first);
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(&(self.text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&self.text.as_bytes()[first..]);
        let new = new_file(&self.attempt);
        create_in(&self.run.dir, &new)?.write_all(&bytes)?;
        self.run.dir.rename(new, &self.run.dir, file(&self.attempt))
    }

    fn remove(&mut self) {
        if !std::mem::take(&mut self.text).is_empty() {
            // A file that could not be removed is removed when the run is resumed.
            let _not_there = self.run.dir.remove_file(file(&self.attempt));
            let _not_there = self.run.dir.remove_file(new_file(&self.attempt));
            remove_folder(&self.run.dir);
        }
    }
}

impl Drop for DraftFile {
    fn drop(&mut self) {
        self.remove();
    }
}

fn file(attempt: &AttemptId) -> String {
    format!("{}.draft", name(attempt))
}

/// Returns the name of a file that is not complete.
fn new_file(attempt: &AttemptId) -> String {
    format!("{}.new", name(attempt))
}

/// What a follower learns about the unfinished answer of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftChange {
    /// A text that replaces everything before it: the end of the answer so far, at most 64 KiB.
    New(String),
    /// Text that continues what the follower has, at most 64 KiB.
    More(String),
    /// The answer is finished or discarded.
    Gone,
}

/// Follows the unfinished answers of one attempt, from any process.
#[derive(Debug, Default)]
pub struct DraftFollower {
    /// Number of the draft that was passed on; 0 if there is none.
    number: u64,
    /// Length of its text.
    bytes: u64,
}

impl DraftFollower {
    /// Returns what has changed since the last call. Never waits.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a file of a draft.
    pub fn read(&mut self, run: &Dir, attempt: &AttemptId) -> io::Result<Option<DraftChange>> {
        let Some(Draft { number, bytes, text }) = Draft::read(run, attempt)? else { return Ok(self.end()) };
        let added = bytes.checked_sub(self.bytes).filter(|_| number == self.number);
        let added = added.and_then(|added| text.len().checked_sub(usize::try_from(added).ok()?));
        let change = match added.and_then(|first| text.get(first..)) {
            Some("") => None,
            Some(more) => Some(DraftChange::More(more.to_owned())),
            None => Some(DraftChange::New(text)),
        };
        (self.number, self.bytes) = (number, bytes);
        Ok(change)
    }

    /// Takes note that the answer is finished or discarded. Returns the change if the follower has a part of it.
    pub fn end(&mut self) -> Option<DraftChange> {
        let was_shown = std::mem::take(self).number > 0;
        was_shown.then_some(DraftChange::Gone)
    }
}

/// The content of a file.
struct Draft {
    number: u64,
    bytes: u64,
    text: String,
}

impl Draft {
    /// Reads the file of an attempt. `None` without an unfinished answer.
    fn read(run: &Dir, attempt: &AttemptId) -> io::Result<Option<Self>> {
        let opened = match regular_file::open_in(run, file(attempt)) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut content = Vec::new();
        opened.take((HEAD_BYTES + TEXT_BYTES_MAX + 1) as u64).read_to_end(&mut content)?;
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "not a file of an unfinished answer");
        let ([number, bytes], text) = head(&content).ok_or_else(invalid)?;
        let is_valid = number > 0 && text.len() <= TEXT_BYTES_MAX && text.len() as u64 <= bytes;
        let text = std::str::from_utf8(text).ok().filter(|_| is_valid).ok_or_else(invalid)?;
        Ok(Some(Self { number, bytes, text: text.to_owned() }))
    }
}

fn head(content: &[u8]) -> Option<([u64; 2], &[u8])> {
    let (number, rest) = content.split_first_chunk()?;
    let (bytes, text) = rest.split_first_chunk()?;
    Some(([u64::from_le_bytes(*number), u64::from_le_bytes(*bytes)], text))
}

#[cfg(test)]
mod tests {
    use super::DraftChange::{Gone, More, New};
    use super::*;
    use crate::run_dir::LIVE_DIR;
    use cap_std::ambient_authority;

    fn new_draft() -> (tempfile::TempDir, DraftFile) {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        let run = Arc::new(RunDir { path: folder.path().to_owned(), dir, key: None });
        let attempt = AttemptId::from("a1");
        (folder, DraftFile { run, attempt, number: 0, text: String::new(), has_failed: false })
    }

    #[test]
    fn a_follower_gets_what_is_new_and_that_it_is_gone() {
        let (folder, mut draft) = new_draft();
        let (dir, attempt) = (draft.run.dir.try_clone().unwrap(), draft.attempt.clone());
        let mut follower = DraftFollower::default();
        let mut read = || follower.read(&dir, &attempt).unwrap();
        assert_eq!(read(), None);
        for (text, change) in [
            (Some("first"), Some(New("first".to_owned()))),
            (Some("first"), None),
            (Some("first, sécond"), Some(More(", sécond".to_owned()))),
            // The provider was asked again between two looks.
            (Some("other"), Some(New("other".to_owned()))),
            (None, Some(Gone)),
            (None, None),
            (Some("other"), Some(New("other".to_owned()))),
        ] {
            draft.write(text.map(str::to_owned));
            assert_eq!(read(), change, "{text:?}");
        }
        // A draft that was discarded and begun again between two looks is another one.
        draft.write(None);
        draft.write(Some("other again".to_owned()));
        assert_eq!(read(), Some(New("other again".to_owned())));
        drop(draft);
        assert_eq!(read(), Some(Gone));
        assert!(!folder.path().join(LIVE_DIR).exists(), "the folder is removed with its last file");
    }

    #[test]
    fn of_a_long_text_the_end_is_there() {
        let (_folder, mut draft) = new_draft();
        let (dir, attempt) = (draft.run.dir.try_clone().unwrap(), draft.attempt.clone());
        let (mut quick, mut slow) = (DraftFollower::default(), DraftFollower::default());
        let mut text = "é".repeat(TEXT_BYTES_MAX / 2 - 5);
        draft.write(Some(text.clone()));
        assert_eq!(
            [&mut quick, &mut slow].map(|follower| follower.read(&dir, &attempt).unwrap()),
            [0; 2].map(|_| Some(New(text.clone())))
        );
        text.push_str(&"x".repeat(31));
        draft.write(Some(text.clone()));
        assert_eq!(quick.read(&dir, &attempt).unwrap(), Some(More("x".repeat(31))));
        text.push_str(&"y".repeat(TEXT_BYTES_MAX));
        draft.write(Some(text));
        assert_eq!(slow.read(&dir, &attempt).unwrap(), Some(New("y".repeat(TEXT_BYTES_MAX))));
        let length = dir.metadata(file(&attempt)).unwrap().len();
        assert_eq!(length, (HEAD_BYTES + TEXT_BYTES_MAX) as u64);
    }

    #[test]
    fn a_file_that_is_no_draft_is_refused() {
        let numbers = |number: u64, bytes: u64| [number.to_le_bytes(), bytes.to_le_bytes()].concat();
        let text = |head: Vec<u8>, text: &[u8]| [head, text.to_vec()].concat();
        for content in [
            b"short".to_vec(),
            text(numbers(1, 1), b"longer"),
            text(numbers(0, 3), b"abc"),
            text(numbers(1, 9), b"\xff"),
            text(numbers(1, u64::MAX), &[b'x'; TEXT_BYTES_MAX + 1]),
        ] {
            let (_folder, draft) = new_draft();
            create_in(&draft.run.dir, &file(&draft.attempt)).unwrap().write_all(&content).unwrap();
            assert!(DraftFollower::default().read(&draft.run.dir, &draft.attempt).is_err(), "{} bytes", content.len());
        }
    }
}
