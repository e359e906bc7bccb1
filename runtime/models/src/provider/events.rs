//! Splits the bytes of an answer into events.

use super::EventFraming;
use super::draft::too_large;
use crate::error::{ErrorKind, ModelError};
use glovebox_schema::document;
use serde_json::Value;

/// Maximum length of an event, in bytes. Some providers repeat the whole answer in the last event.
const EVENT_BYTES_MAX: usize = 16 << 20;

/// An event.
#[derive(Debug, PartialEq)]
pub(crate) enum Event {
    /// The data of the event.
    Data(Value),
    /// `[DONE]`: no event follows.
    Done,
}

/// Splits received bytes into events.
#[derive(Debug)]
pub(crate) struct Splitter {
    framing: EventFraming,
    /// Received bytes that are not split into events yet.
    pub(crate) pending: Vec<u8>,
    /// The data of the event that is being read.
    data: Vec<u8>,
    /// Length of the beginning of `pending` that is known to contain no line end.
    searched: usize,
}

impl Splitter {
    pub(crate) fn new(framing: EventFraming) -> Self {
        Self { framing, pending: Vec::new(), data: Vec::new(), searched: 0 }
    }

    /// Returns the events that are complete.
    pub(crate) fn events(&mut self) -> Result<Vec<Event>, ModelError> {
        let mut events = Vec::new();
        let mut taken = 0;
        while let Some(end) = self.pending[taken + self.searched..].iter().position(|byte| *byte == b'\n') {
            let end = taken + self.searched + end;
            let line = self.pending[taken..end].trim_ascii_end();
            match self.framing {
                EventFraming::Lines => self.data.extend_from_slice(line),
                EventFraming::ServerSentEvents => self.data.extend(field(line)),
            }
            if self.framing == EventFraming::Lines || line.is_empty() {
                events.extend(event(&std::mem::take(&mut self.data))?);
            }
            (taken, self.searched) = (end + 1, 0);
        }
        self.pending.drain(..taken);
        self.searched = self.pending.len();
        if self.pending.len() + self.data.len() > EVENT_BYTES_MAX {
            return Err(too_large());
        }
        Ok(events)
    }

    /// Returns the remaining events at the end of the body, where the empty line after the last event may be missing.
    pub(crate) fn rest(&mut self) -> Result<Vec<Event>, ModelError> {
        self.pending.extend_from_slice(b"\n\n");
        self.events()
    }
}

/// Returns the data of a line of server-sent events. Comments, names and ids are ignored, because the JSON contains everything that is
/// needed.
fn field(line: &[u8]) -> Vec<u8> {
    let Some(value) = line.strip_prefix(b"data:") else { return Vec::new() };
    let mut value = value.strip_prefix(b" ").unwrap_or(value).to_vec();
    value.push(b'\n');
    value
}

fn event(data: &[u8]) -> Result<Option<Event>, ModelError> {
    match data.trim_ascii() {
        b"" => Ok(None),
        b"[DONE]" => Ok(Some(Event::Done)),
        data => match document::read(data) {
            Ok(value) => Ok(Some(Event::Data(value))),
            Err(error) => Err(ModelError::new(ErrorKind::Stream, format_args!("an event is not JSON: {error}"))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_the_same_however_the_bytes_arrive() {
        let text = b": hello\r\nevent: a\ndata: {\"x\":\r\ndata: 1}\r\n\r\n\ndata:{\"y\":2}\n\ndata: [DONE]\n\n";
        let expected = [Event::Data(json!({"x": 1})), Event::Data(json!({"y": 2})), Event::Done];
        for size in 1..text.len() {
            let mut splitter = Splitter::new(EventFraming::ServerSentEvents);
            let mut found = Vec::new();
            for piece in text.chunks(size) {
                splitter.pending.extend_from_slice(piece);
                found.extend(splitter.events().unwrap());
            }
            assert_eq!(found, expected, "{size}");
        }
    }

    #[test]
    fn lines_are_events_and_the_last_needs_no_end() {
        let mut splitter = Splitter::new(EventFraming::Lines);
        splitter.pending.extend_from_slice(b"{\"a\":1}\n\n{\"b\":2}");
        assert_eq!(splitter.events().unwrap(), [Event::Data(json!({"a": 1}))]);
        assert_eq!(splitter.rest().unwrap(), [Event::Data(json!({"b": 2}))]);
    }

    #[test]
    fn what_is_no_json_or_too_long_is_an_error() {
        let mut splitter = Splitter::new(EventFraming::Lines);
        splitter.pending.extend_from_slice(b"<html>\n");
        assert_eq!(splitter.events().unwrap_err().kind, ErrorKind::Stream);
        let mut splitter = Splitter::new(EventFraming::ServerSentEvents);
        splitter.pending = vec![b'x'; EVENT_BYTES_MAX + 1];
        assert_eq!(splitter.events().unwrap_err().kind, ErrorKind::AnswerTooLarge);
    }
}
