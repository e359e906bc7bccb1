//! Write-ahead log of an attempt's exchanges with its model: each answer is on disk before the component gets it.
//!
//! A repeated attempt sends the same requests. As long as the requests are equal, it gets the answers from the log, and no answer
//! is paid for twice. At the first request that differs, the rest of the log is dropped, but its cost is still charged. Times and
//! durations are ignored when requests are compared, because the output of commands contains times that differ in each run.

use cap_std::fs::File;
use glovebox_models::chat::{Answer, Usage};
use glovebox_models::error::{ErrorKind, ModelError};
use glovebox_record::Digest;
use glovebox_record::spend::SpendTotals;
use glovebox_record::transcript::Turn;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::sync::Arc;

/// Maximum length of a file that is read, in bytes. A longer file is not used.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Keeps the lines of an attempt's log also where another machine finds them that makes the attempt again.
pub trait ExchangeKeeper: fmt::Debug + Send + Sync {
    /// Keeps a line. It is durable when this returns.
    ///
    /// # Errors
    /// It could not be kept.
    fn keep(&self, line: &[u8]) -> io::Result<()>;
}

/// The logged exchanges of an attempt.
#[derive(Debug)]
pub struct ExchangeLog {
    file: File,
    keeper: Option<Arc<dyn ExchangeKeeper>>,
    turn: u32,
    stored: VecDeque<StoredExchange>,
    /// Cost of dropped exchanges that is not in a record yet.
    dropped: Usage,
    /// Number of steering messages in the next request.
    steered: usize,
}

/// An answered exchange, or one that ended with a final error: the request was too long, or its own time limit was reached.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredExchange {
    /// Hash of the request without times.
    request: Digest,
    pub(crate) answer: Answer,
    /// The provider's message if the request was too long. `answer` is then empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) too_long: Option<String>,
    /// The error if the request had its own time limit (`answer-within`) and timed out. `answer` is then empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) late: Option<String>,
    /// Cost of failed tries.
    pub(crate) lost: Usage,
    pub(crate) transcript: String,
    /// Number of steering messages in the request.
    #[serde(default)]
    steered: usize,
    /// True if an agent program asked. A repeated attempt starts the program from the beginning, so it never uses the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_of_program: bool,
    /// True if the cost is already in a record.
    #[serde(skip)]
    pub(crate) is_booked: bool,
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ExchangeLine {
    /// The exchange of a turn. It replaces earlier exchanges of this turn and of later turns.
    Turn(u32, Box<StoredExchange>),
    /// The cost of a request that a quota refused in the middle of its answer.
    Refused(Usage),
    /// The cost of all exchanges in earlier lines is in a record of the journal.
    Booked,
    /// All exchanges in earlier lines are dropped.
    Dropped,
}

impl ExchangeLog {
    fn new(file: File) -> Self {
        Self { file, keeper: None, turn: 0, stored: VecDeque::new(), dropped: Usage::default(), steered: 0 }
    }

    /// Opens the log in a file that is open for reading and appending. Removes an incomplete last line.
    pub fn open(file: File) -> io::Result<Self> {
        let mut exchanges = Self::new(file);
        let whole = exchanges.read()?;
        exchanges.file.set_len(whole)?;
        Ok(exchanges)
    }

    /// Has each further line kept elsewhere too.
    #[must_use]
    pub fn kept_by(self, keeper: Arc<dyn ExchangeKeeper>) -> Self {
        Self { keeper: Some(keeper), ..self }
    }

    /// Returns the line that marks the cost of all exchanges before it as recorded.
    pub fn booked_line() -> io::Result<Vec<u8>> {
        line_of(&ExchangeLine::Booked)
    }

    /// Returns the transcript of the logged exchanges. The file must be open for reading.
    pub fn transcript(file: File) -> io::Result<String> {
        let mut exchanges = Self::new(file);
        exchanges.read()?;
        Ok(exchanges.stored.into_iter().map(|kept| kept.transcript).collect())
    }

    /// Returns the number of answers that a repeated attempt can use, and the cost that is not in a record yet. The file must be open
    /// for reading.
    pub fn stored_answers(file: File) -> io::Result<(u64, SpendTotals)> {
        let mut exchanges = Self::new(file);
        exchanges.read()?;
        let dropped = exchanges.dropped;
        let is_estimated = dropped != Usage::default();
        let mut spent =
            SpendTotals { tokens: dropped.tokens(), cost: dropped.cost_usd.unwrap_or_default(), is_estimated };
        for kept in exchanges.stored.iter().filter(|kept| !kept.is_booked) {
            let turn: Turn = serde_json::from_str(&kept.transcript).unwrap_or_default();
            let tokens = kept.answer.usage.plus(kept.lost).tokens();
            spent.add(SpendTotals { tokens, cost: turn.cost, is_estimated: turn.is_estimated });
        }
        let answers = exchanges.stored.iter().filter(|kept| !kept.is_of_program).count();
        Ok((answers as u64, spent))
    }

    /// Reads the complete lines of the file and returns their length in bytes.
    fn read(&mut self) -> io::Result<u64> {
        let mut whole = 0;
        if self.file.metadata()?.len() <= FILE_BYTES_MAX {
            let mut reader = BufReader::new(self.file.try_clone()?);
            reader.seek(SeekFrom::Start(0))?;
            let mut text = Vec::new();
            while reader.read_until(b'\n', &mut text)? > 0 && text.ends_with(b"\n") {
                let Ok(line) = serde_json::from_slice(&text) else { break };
                self.take(line);
                whole += text.len() as u64;
                text.clear();
            }
        }
        Ok(whole)
    }

    /// Marks the cost of all logged exchanges as recorded.
    pub fn book(file: &mut File) -> io::Result<()> {
        append(file, &ExchangeLine::Booked).map(drop)
    }

    /// Drops all logged exchanges, so that the model is asked again.
    pub fn drop_all(file: &mut File) -> io::Result<()> {
        append(file, &ExchangeLine::Dropped).map(drop)
    }

    fn take(&mut self, line: ExchangeLine) {
        match line {
            ExchangeLine::Turn(turn, kept) => {
                self.drop_from(turn as usize);
                self.stored.push_back(*kept);
            }
            ExchangeLine::Refused(lost) => self.dropped = self.dropped.plus(lost),
            ExchangeLine::Booked => {
                self.stored.iter_mut().for_each(|kept| kept.is_booked = true);
                self.dropped = Usage::default();
            }
            ExchangeLine::Dropped => self.drop_from(0),
        }
    }

    fn drop_from(&mut self, first: usize) {
        for kept in self.stored.drain(first.min(self.stored.len())..).filter(|kept| !kept.is_booked) {
            self.dropped = self.dropped.plus(kept.answer.usage).plus(kept.lost);
        }
    }

    /// Takes the next exchange if it has this request. If the request differs, drops the rest of the log.
    pub(crate) fn next(&mut self, sent: &[u8]) -> Option<StoredExchange> {
        if self.stored.front().is_some_and(|kept| kept.request == identity(sent)) {
            self.turn += 1;
            return self.stored.pop_front();
        }
        self.drop_from(0);
        None
    }

    /// Returns the number of steering messages in the request of the next exchange, or `None` if there is no further exchange.
    pub(crate) fn steered(&self) -> Option<usize> {
        self.stored.front().map(|kept| kept.steered)
    }

    /// Sets the number of steering messages in the next request.
    pub(crate) fn is_steered_by(&mut self, count: usize) {
        self.steered = count;
    }

    /// Takes the cost of dropped exchanges, so that it is counted only once.
    pub(crate) fn take_dropped(&mut self) -> Usage {
        std::mem::take(&mut self.dropped)
    }

    /// Drops the exchanges that were not repeated, and returns their cost.
    pub(crate) fn close(&mut self) -> Usage {
        self.drop_from(0);
        self.take_dropped()
    }

    /// Appends an exchange. It is durable when this returns.
    pub(crate) fn keep(&mut self, mut kept: Box<StoredExchange>) -> io::Result<()> {
        kept.steered = self.steered;
        let turn = self.turn;
        self.turn += 1;
        self.append(&ExchangeLine::Turn(turn, kept))
    }

    /// Appends the cost of a request that a quota refused in the middle of its answer. The attempt waits for the quota and is not
    /// recorded, so the cost is charged when the attempt is executed again.
    pub(crate) fn keep_refused(&mut self, lost: Usage) -> io::Result<()> {
        self.append(&ExchangeLine::Refused(lost))
    }

    fn append(&mut self, line: &ExchangeLine) -> io::Result<()> {
        let text = append(&mut self.file, line)?;
        self.keeper.as_ref().map_or(Ok(()), |keeper| keeper.keep(&text))
    }
}

impl StoredExchange {
    /// Creates an exchange that was just answered.
    pub(crate) fn new(sent: &[u8], answer: &Answer, lost: Usage, transcript: &[u8]) -> Box<Self> {
        let transcript = String::from_utf8_lossy(transcript).into_owned();
        Box::new(Self {
            request: identity(sent),
            answer: answer.clone(),
            too_long: None,
            late: None,
            lost,
            transcript,
            steered: 0,
            is_of_program: false,
            is_booked: false,
        })
    }

    /// Creates an exchange of an agent program, which is stored only for its cost.
    pub(crate) fn for_program(sent: &[u8], answer: &Answer, transcript: &[u8]) -> Box<Self> {
        let kept = Self::new(sent, answer, Usage::default(), transcript);
        Box::new(Self { is_of_program: true, ..*kept })
    }
}

impl StoredExchange {
    /// Creates an exchange from a turn with an answer or a final error. Returns `None` if another request may succeed.
    pub(crate) fn from_turn(
        sent: &[u8],
        answered: &Result<Answer, ModelError>,
        is_optional: bool,
        lost: Usage,
        transcript: &[u8],
    ) -> Option<Box<Self>> {
        match answered {
            Ok(answer) => Some(Self::new(sent, answer, lost, transcript)),
            Err(error) if error.kind == ErrorKind::ContextLength => {
                Some(Self::too_long(sent, error.message.clone(), lost, transcript))
            }
            Err(error) if error.kind == ErrorKind::RequestTimeout && is_optional => {
                Some(Self::late(sent, error.message.clone(), lost, transcript))
            }
            Err(_) => None,
        }
    }

    /// Creates the exchange of a request that was too long for its model. A repeated attempt gets the same error.
    fn too_long(sent: &[u8], reason: String, lost: Usage, transcript: &[u8]) -> Box<Self> {
        let kept = Self::new(sent, &Answer::default(), lost, transcript);
        Box::new(Self { too_long: Some(reason), ..*kept })
    }

    /// Creates the exchange of a request whose own time limit was reached. A repeated attempt does not wait for the answer again.
    fn late(sent: &[u8], reason: String, lost: Usage, transcript: &[u8]) -> Box<Self> {
        let kept = Self::new(sent, &Answer::default(), lost, transcript);
        Box::new(Self { late: Some(reason), ..*kept })
    }
}

/// Appends a line, and returns it.
fn append(file: &mut File, line: &ExchangeLine) -> io::Result<Vec<u8>> {
    let text = line_of(line)?;
    file.seek(SeekFrom::End(0))?;
    file.write_all(&text)?;
    file.sync_data()?;
    Ok(text)
}

fn line_of(line: &ExchangeLine) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}

/// Returns the hash by which a request is recognized. It ignores times.
fn identity(sent: &[u8]) -> Digest {
    Digest::hash(&without_times(sent))
}

/// Returns the JSON with each duration, such as `12 ms` or `0.03s`, and each time of day replaced by `#`.
fn without_times(json: &[u8]) -> Vec<u8> {
    let mut rest = json;
    let mut kept = Vec::with_capacity(json.len());
    let mut is_inside_word = false;
    while let Some(first) = rest.first() {
        let time = if first.is_ascii_digit() && !is_inside_word { time_length(rest) } else { None };
        // The letter after a backslash, as in `\n`, is not part of a word.
        let escaped = if *first == b'\\' { rest.len().min(2) } else { 1 };
        match time {
            Some(_) => kept.push(b'#'),
            None => kept.extend_from_slice(&rest[..escaped]),
        }
        is_inside_word = time.is_none() && escaped == 1 && (first.is_ascii_alphanumeric() || *first == b'_');
        rest = &rest[time.unwrap_or(escaped)..];
    }
    kept
}

/// Returns the length of the duration or time of day at the beginning of a text.
fn time_length(text: &[u8]) -> Option<usize> {
    let number = text.iter().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b':')).count();
    let (digits, rest) = text.split_at(number);
    if digits.contains(&b':') {
        let is_clock = digits.len() >= 8 && digits[2] == b':' && digits[5] == b':';
        return is_clock.then_some(number);
    }
    let space = usize::from(rest.first() == Some(&b' '));
    let unit = rest[space..].iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte >= 0x80).count();
    let units: [&[u8]; 8] = [b"ms", b"s", "µs".as_bytes(), b"us", b"ns", b"sec", b"seconds", b"m"];
    let end = space + unit;
    let is_whole = !rest.get(end).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'_');
    (is_whole && units.contains(&&rest[space..end])).then_some(number + end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;
    use cap_std::fs::{Dir, OpenOptions};
    use glovebox_models::chat::text_part;

    fn folder() -> (tempfile::TempDir, Dir) {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        (folder, dir)
    }

    fn file(dir: &Dir) -> File {
        dir.open_with("x", OpenOptions::new().read(true).append(true).create(true)).unwrap()
    }

    fn open(dir: &Dir) -> ExchangeLog {
        ExchangeLog::open(file(dir)).unwrap()
    }

    fn keep(exchanges: &mut ExchangeLog, sent: &str) {
        assert!(exchanges.next(sent.as_bytes()).is_none());
        let usage = Usage { input: 10, ..Usage::default() };
        let answer = Answer { parts: vec![text_part(format!("to {sent}"))], usage, ..Answer::default() };
        exchanges.keep(StoredExchange::new(sent.as_bytes(), &answer, Usage::default(), b"{}\n")).unwrap();
    }

    fn again(exchanges: &mut ExchangeLog, sent: &str) -> Option<String> {
        exchanges.next(sent.as_bytes()).map(|kept| kept.answer.text())
    }

    #[test]
    fn the_same_questions_get_the_same_answers() {
        let (_folder, dir) = folder();
        let mut first = open(&dir);
        ["a", "b", "c"].iter().for_each(|sent| keep(&mut first, sent));
        drop(first);
        let mut second = open(&dir);
        assert_eq!(again(&mut second, "a").as_deref(), Some("to a"));
        assert_eq!(again(&mut second, "b").as_deref(), Some("to b"));
        assert_eq!(second.take_dropped(), Usage::default());
        // The request differs: the stored exchange of this turn is dropped, but its cost is still charged.
        keep(&mut second, "x");
        assert_eq!((second.take_dropped().input, second.close().input), (10, 0));
        drop(second);
        let mut third = open(&dir);
        assert_eq!(["a", "b", "x"].map(|sent| again(&mut third, sent).is_some()), [true; 3]);
        assert_eq!((third.close().input, again(&mut third, "c")), (10, None));
    }

    #[test]
    fn what_a_record_has_is_not_counted_again() {
        let (_folder, dir) = folder();
        keep(&mut open(&dir), "a");
        ExchangeLog::book(&mut file(&dir)).unwrap();
        let mut booked = open(&dir);
        assert!(booked.next(b"a").unwrap().is_booked);
        keep(&mut booked, "b");
        ExchangeLog::drop_all(&mut file(&dir)).unwrap();
        let mut dropped = open(&dir);
        assert_eq!((again(&mut dropped, "a"), dropped.close().input), (None, 10), "only the second");
    }

    #[test]
    fn what_a_refused_answer_has_cost_is_counted_until_a_record_has_it() {
        let (_folder, dir) = folder();
        let mut first = open(&dir);
        keep(&mut first, "a");
        first.keep_refused(Usage { input: 7, ..Usage::default() }).unwrap();
        drop(first);
        for _ in 0..2 {
            let mut repeated = open(&dir);
            assert_eq!((again(&mut repeated, "a").as_deref(), repeated.take_dropped().input), (Some("to a"), 7));
        }
        ExchangeLog::book(&mut file(&dir)).unwrap();
        assert_eq!(open(&dir).take_dropped(), Usage::default());
    }

    #[test]
    fn a_torn_line_is_removed() {
        let (folder, dir) = folder();
        let mut first = open(&dir);
        keep(&mut first, "a");
        let whole = std::fs::read(folder.path().join("x")).unwrap();
        keep(&mut first, "b");
        let all = std::fs::read(folder.path().join("x")).unwrap();
        for length in whole.len()..all.len() {
            std::fs::write(folder.path().join("x"), &all[..length]).unwrap();
            let mut torn = open(&dir);
            assert!(again(&mut torn, "a").is_some() && again(&mut torn, "b").is_none(), "{length}");
            keep(&mut torn, "c");
            assert!(again(&mut open(&dir), "a").is_some());
        }
    }

    #[test]
    fn only_times_are_left_out() {
        let check = |text: &str, expected: &str| {
            assert_eq!(String::from_utf8(without_times(text.as_bytes())).unwrap(), expected, "{text}");
        };
        check("exit code 1 after 12 ms, finished in 0.03s", "exit code 1 after #, finished in #");
        check("at 09:15:02.123 took 3 µs", "at # took #");
        check("99 passed; 1 failed", "99 passed; 1 failed");
        check("v1.2.3 a12s x_3s 12:3 7 miles 5m3", "v1.2.3 a12s x_3s 12:3 7 miles 5m3");
        check(r"stdout:\n10:15:02\n1 \\", r"stdout:\n#\n1 \\");
        check("", "");
    }
}
