//! Write-ahead log of an attempt's tool calls, so that a repeated attempt never repeats a call.
//!
//! Each call is on disk before a server is asked, and each answer before the component gets it. A repeated attempt gets the answers
//! from the log as long as it makes the same calls. A call whose answer is not in the log may have taken effect. It is not repeated,
//! and the model gets an error that says so.

use super::message::ToolResult;
use cap_std::fs::File;
use glovebox_record::Digest;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};

/// Maximum length of a file that is read, in bytes. The calls of one attempt cannot exceed it.
const FILE_BYTES_MAX: u64 = 512 << 20;
/// The result that the model gets for a call that may have taken effect.
const UNKNOWN: &str =
    "the run was interrupted during this call. The call may or may not have taken effect, and was not made again";

/// The logged calls of an attempt and their answers.
#[derive(Debug)]
pub struct ToolCallLog {
    file: File,
    /// Index of the next call.
    at: u32,
    calls: VecDeque<LoggedCall>,
}

#[derive(Debug)]
struct LoggedCall {
    asked: Digest,
    answer: Option<CallAnswer>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CallAnswer {
    /// The tool answered.
    Tool(ToolResult),
    /// The server failed and is not asked again.
    Failed(String),
}

impl CallAnswer {
    /// Returns the text of the result, or the reason of the failure.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Tool(result) => &result.text,
            Self::Failed(reason) => reason,
        }
    }

    /// Returns true if the tool or the server failed.
    pub(super) fn is_error(&self) -> bool {
        !matches!(self, Self::Tool(result) if !result.is_error)
    }
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LogEntry {
    /// A call that is about to be made: its index, and the digest of the request. It replaces all calls of earlier lines
    /// with this index or a higher one.
    Call(u32, Digest),
    /// The answer to the last call in earlier lines.
    Answer(CallAnswer),
}

impl ToolCallLog {
    /// Opens the log in a file that is open for reading and appending. Removes an incomplete last line.
    pub fn open(file: File) -> io::Result<Self> {
        let mut log = Self { file, at: 0, calls: VecDeque::new() };
        let whole = log.read()?;
        log.file.set_len(whole)?;
        Ok(log)
    }

    /// Reads the complete lines of the file and returns their length in bytes.
    fn read(&mut self) -> io::Result<u64> {
        if self.file.metadata()?.len() > FILE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the log of tool calls is too long"));
        }
        let mut reader = BufReader::new(self.file.try_clone()?);
        reader.seek(SeekFrom::Start(0))?;
        let (mut whole, mut text) = (0, Vec::new());
        while reader.read_until(b'\n', &mut text)? > 0 && text.ends_with(b"\n") {
            let Ok(line) = serde_json::from_slice(&text) else { break };
            match line {
                LogEntry::Call(at, asked) => {
                    self.calls.truncate(at as usize);
                    self.calls.push_back(LoggedCall { asked, answer: None });
                }
                LogEntry::Answer(answer) => {
                    if let Some(call) = self.calls.back_mut() {
                        call.answer = Some(answer);
                    }
                }
            }
            whole += text.len() as u64;
            text.clear();
        }
        Ok(whole)
    }

    /// Returns the logged answer if the next call in the log is this one. If it differs, drops the rest of the log.
    pub(super) fn next(&mut self, asked: Digest) -> Option<CallAnswer> {
        if self.calls.front().is_none_or(|call| call.asked != asked) {
            self.calls.clear();
            return None;
        }
        self.at += 1;
        let unknown = || CallAnswer::Tool(ToolResult { text: UNKNOWN.to_owned(), is_error: true });
        self.calls.pop_front().map(|call| call.answer.unwrap_or_else(unknown))
    }

    /// Appends a call. It is durable when this returns, and the server may be asked.
    pub(super) fn ask(&mut self, asked: Digest) -> io::Result<()> {
        let at = self.at;
        self.at += 1;
        self.append(&LogEntry::Call(at, asked))
    }

    /// Appends the answer to the last call. It is durable when this returns.
    pub(super) fn keep(&mut self, answer: &CallAnswer) -> io::Result<()> {
        self.append(&LogEntry::Answer(answer.clone()))
    }

    fn append(&mut self, line: &LogEntry) -> io::Result<()> {
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

    fn open(dir: &Dir) -> ToolCallLog {
        let file = dir.open_with("x", OpenOptions::new().read(true).append(true).create(true)).unwrap();
        ToolCallLog::open(file).unwrap()
    }

    fn result(text: &str) -> CallAnswer {
        CallAnswer::Tool(ToolResult { text: text.to_owned(), is_error: false })
    }

    fn call(answers: &mut ToolCallLog, asked: &str) -> Option<CallAnswer> {
        answers.next(Digest::hash(asked.as_bytes()))
    }

    fn make(answers: &mut ToolCallLog, asked: &str, answer: Option<CallAnswer>) {
        assert_eq!(call(answers, asked), None);
        answers.ask(Digest::hash(asked.as_bytes())).unwrap();
        answer.iter().for_each(|answer| answers.keep(answer).unwrap());
    }

    #[test]
    fn no_call_is_made_twice() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        let mut first = open(&dir);
        make(&mut first, "a", Some(result("1")));
        make(&mut first, "b", Some(CallAnswer::Failed("it has ended".to_owned())));
        make(&mut first, "c", None);
        drop(first);
        let mut second = open(&dir);
        assert_eq!(call(&mut second, "a"), Some(result("1")));
        assert_eq!(call(&mut second, "b"), Some(CallAnswer::Failed("it has ended".to_owned())));
        let unknown = call(&mut second, "c").unwrap();
        assert!(matches!(&unknown, CallAnswer::Tool(result) if result.is_error && result.text == UNKNOWN));
        make(&mut second, "d", Some(result("4")));
        drop(second);
        let mut third = open(&dir);
        assert_eq!(call(&mut third, "a"), Some(result("1")));
        // The call differs: the rest of the log is dropped.
        make(&mut third, "x", Some(result("x")));
        drop(third);
        let mut fourth = open(&dir);
        assert_eq!([call(&mut fourth, "a"), call(&mut fourth, "x")], [Some(result("1")), Some(result("x"))]);
        assert_eq!(call(&mut fourth, "c"), None);
    }

    #[test]
    fn a_torn_line_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        make(&mut open(&dir), "a", Some(result("1")));
        let all = std::fs::read(folder.path().join("x")).unwrap();
        std::fs::write(folder.path().join("x"), &all[..all.len() - 1]).unwrap();
        let torn = call(&mut open(&dir), "a").unwrap();
        assert!(matches!(torn, CallAnswer::Tool(result) if result.text == UNKNOWN));
    }
}
