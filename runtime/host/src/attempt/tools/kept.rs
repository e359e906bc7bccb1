//! The answers of tool servers in one attempt, on disk before the component gets them, and what was asked before a server is.
//!
//! An attempt that is cut off and made again asks the same: as long as it does, the answers come from here and no server acts twice. A call
//! that was under way when the attempt was cut off may have acted. It is not made again, and the model learns that.

use super::message::Said;
use cap_std::fs::File;
use glovebox_record::Digest;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};

/// Most bytes of a file that are read: more than the calls of an attempt can leave.
const FILE_BYTES_MAX: u64 = 512 << 20;
/// What the model gets of a call that may have acted.
const UNKNOWN: &str =
    "the run was cut off while this call was under way: it may or may not have taken effect, and was not made again";

/// The calls of an attempt and their answers.
#[derive(Debug)]
pub struct ToolAnswers {
    file: File,
    /// Where the next call stands.
    at: u32,
    kept: VecDeque<Kept>,
}

#[derive(Debug)]
struct Kept {
    asked: Digest,
    answer: Option<Answer>,
}

/// What came of a call that a server was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// The tool answered.
    Said(Said),
    /// The server failed, and cannot be asked any more.
    Failed(String),
}

impl Answer {
    /// What was said, or why nothing was.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Said(said) => &said.text,
            Self::Failed(reason) => reason,
        }
    }

    /// True unless the tool did what it was asked.
    pub(super) fn is_error(&self) -> bool {
        !matches!(self, Self::Said(said) if !said.is_error)
    }
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// A call is about to be made. Calls of this place and later ones that stand above it are dropped.
    Asked(u32, Digest),
    /// What came of the call above.
    Answered(Answer),
}

impl ToolAnswers {
    /// Reads a file that is open for reading and appending. What a crash left of a last line is removed.
    pub fn open(file: File) -> io::Result<Self> {
        let mut answers = Self { file, at: 0, kept: VecDeque::new() };
        let whole = answers.read()?;
        answers.file.set_len(whole)?;
        Ok(answers)
    }

    /// Reads the whole lines of the file: how many bytes they have.
    fn read(&mut self) -> io::Result<u64> {
        if self.file.metadata()?.len() > FILE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the kept answers of tool servers are too long"));
        }
        let mut reader = BufReader::new(self.file.try_clone()?);
        reader.seek(SeekFrom::Start(0))?;
        let (mut whole, mut text) = (0, Vec::new());
        while reader.read_until(b'\n', &mut text)? > 0 && text.ends_with(b"\n") {
            let Ok(line) = serde_json::from_slice(&text) else { break };
            match line {
                Line::Asked(at, asked) => {
                    self.kept.truncate(at as usize);
                    self.kept.push_back(Kept { asked, answer: None });
                }
                Line::Answered(answer) => {
                    if let Some(kept) = self.kept.back_mut() {
                        kept.answer = Some(answer);
                    }
                }
            }
            whole += text.len() as u64;
            text.clear();
        }
        Ok(whole)
    }

    /// What came of this call before; with another call than the one that comes next, the rest is dropped.
    pub(super) fn next(&mut self, asked: Digest) -> Option<Answer> {
        if self.kept.front().is_none_or(|kept| kept.asked != asked) {
            self.kept.clear();
            return None;
        }
        self.at += 1;
        let unknown = || Answer::Said(Said { text: UNKNOWN.to_owned(), is_error: true });
        self.kept.pop_front().map(|kept| kept.answer.unwrap_or_else(unknown))
    }

    /// Notes a call. When this returns, the note is durable and the server may be asked.
    pub(super) fn ask(&mut self, asked: Digest) -> io::Result<()> {
        let at = self.at;
        self.at += 1;
        self.append(&Line::Asked(at, asked))
    }

    /// Keeps the answer to the last call. When this returns it is durable.
    pub(super) fn keep(&mut self, answer: &Answer) -> io::Result<()> {
        self.append(&Line::Answered(answer.clone()))
    }

    fn append(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.file.seek(SeekFrom::End(0))?;
        self.file.write_all(&text)?;
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;
    use cap_std::fs::{Dir, OpenOptions};

    fn open(dir: &Dir) -> ToolAnswers {
        let file = dir.open_with("x", OpenOptions::new().read(true).append(true).create(true)).unwrap();
        ToolAnswers::open(file).unwrap()
    }

    fn said(text: &str) -> Answer {
        Answer::Said(Said { text: text.to_owned(), is_error: false })
    }

    fn call(answers: &mut ToolAnswers, asked: &str) -> Option<Answer> {
        answers.next(Digest::hash(asked.as_bytes()))
    }

    fn make(answers: &mut ToolAnswers, asked: &str, answer: Option<Answer>) {
        assert_eq!(call(answers, asked), None);
        answers.ask(Digest::hash(asked.as_bytes())).unwrap();
        answer.iter().for_each(|answer| answers.keep(answer).unwrap());
    }

    #[test]
    fn no_call_is_made_twice() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        let mut first = open(&dir);
        make(&mut first, "a", Some(said("1")));
        make(&mut first, "b", Some(Answer::Failed("it has ended".to_owned())));
        make(&mut first, "c", None);
        drop(first);
        let mut second = open(&dir);
        assert_eq!(call(&mut second, "a"), Some(said("1")));
        assert_eq!(call(&mut second, "b"), Some(Answer::Failed("it has ended".to_owned())));
        let unknown = call(&mut second, "c").unwrap();
        assert!(matches!(&unknown, Answer::Said(said) if said.is_error && said.text == UNKNOWN));
        make(&mut second, "d", Some(said("4")));
        drop(second);
        let mut third = open(&dir);
        assert_eq!(call(&mut third, "a"), Some(said("1")));
        // Another call: what was kept from here on is of no use any more.
        make(&mut third, "x", Some(said("x")));
        drop(third);
        let mut fourth = open(&dir);
        assert_eq!([call(&mut fourth, "a"), call(&mut fourth, "x")], [Some(said("1")), Some(said("x"))]);
        assert_eq!(call(&mut fourth, "c"), None);
    }

    #[test]
    fn a_torn_line_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        make(&mut open(&dir), "a", Some(said("1")));
        let all = std::fs::read(folder.path().join("x")).unwrap();
        std::fs::write(folder.path().join("x"), &all[..all.len() - 1]).unwrap();
        let torn = call(&mut open(&dir), "a").unwrap();
        assert!(matches!(torn, Answer::Said(said) if said.text == UNKNOWN));
    }
}
