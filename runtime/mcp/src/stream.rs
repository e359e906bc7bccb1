//! Messages as lines on two streams.
//!
//! The transport of `rmcp` drops what it cannot read. This one answers it: a line that is too long, that is not JSON or
//! that is no message gets an error, and the next line is read. Two threads do the reading and the writing, so the
//! streams may block. At most a few lines wait in each direction.

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::thread::JoinHandle;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Maximum length of a message of the client, bytes.
pub const LINE_BYTES_MAX: usize = 1 << 20;
/// Number of lines that wait in each direction.
const LINES_WAITING_MAX: usize = 4;

/// What the client sent.
enum Line {
    Text(Vec<u8>),
    TooLong,
}

/// Two streams with one message a line.
pub(crate) struct Lines {
    received: Receiver<Line>,
    /// `None` after the end.
    sender: Option<Sender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
    /// An answer that is sent before another line is read.
    pending: Option<Vec<u8>>,
}

impl Lines {
    pub(crate) fn begin(input: impl Read + Send + 'static, output: impl Write + Send + 'static) -> Self {
        let (lines, received) = channel(LINES_WAITING_MAX);
        let (sender, messages) = channel(LINES_WAITING_MAX);
        // The reader ends with its stream, which may be never: nothing waits for it.
        std::thread::spawn(move || read(BufReader::new(input), &lines));
        let writer = std::thread::spawn(move || write(output, messages));
        Self { received, sender: Some(sender), writer: Some(writer), pending: None }
    }
}

/// Reads lines until the stream ends or nobody wants them.
fn read(mut input: impl BufRead, lines: &Sender<Line>) {
    loop {
        let mut line = Vec::new();
        match input.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let is_whole = line.last() == Some(&b'\n');
        let read = if is_whole {
            Line::Text(line)
        } else if line.len() > LINE_BYTES_MAX {
            if skip_line(&mut input).is_err() {
                return;
            }
            Line::TooLong
        } else {
            // The stream ended inside of a message.
            return;
        };
        if lines.blocking_send(read).is_err() {
            return;
        }
    }
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok(());
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(bytes.len(), |end| end + 1);
        input.consume(length);
        if end.is_some() {
            return Ok(());
        }
    }
}

fn write(mut output: impl Write, mut messages: Receiver<Vec<u8>>) {
    while let Some(message) = messages.blocking_recv() {
        // A client that does not read any more has ended.
        if output.write_all(&message).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

fn gone() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

fn line(message: &ServerJsonRpcMessage) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let sender = self.sender.clone();
        async move { sender.ok_or_else(gone)?.send(line(&message)?).await.map_err(|_| gone()) }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if self.pending.is_some() {
                // The caller may drop this future while it waits, and call again: the answer stays in its place until then.
                let room = self.sender.as_ref()?.reserve().await.ok()?;
                if let Some(answer) = self.pending.take() {
                    room.send(answer);
                }
                continue;
            }
            let (error, id) = match self.received.recv().await? {
                Line::Text(text) => match parse(&text) {
                    Parsed::Message(message) => return Some(*message),
                    Parsed::Nothing => continue,
                    Parsed::Refused(error, id) => (error, id),
                },
                Line::TooLong => {
                    let message = format!("a message is longer than {LINE_BYTES_MAX} bytes; it was not read");
                    (ErrorData::invalid_request(message, None), None)
                }
            };
            self.pending = line(&ServerJsonRpcMessage::error(error, id)).ok();
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.received.close();
        self.sender = None;
        if let Some(writer) = self.writer.take() {
            // What was sent is written before the program ends.
            let _ended = tokio::task::spawn_blocking(move || writer.join()).await;
        }
        Ok(())
    }
}

/// What a line is.
enum Parsed {
    Message(Box<ClientJsonRpcMessage>),
    /// No message; the error is the answer.
    Refused(ErrorData, Option<RequestId>),
    /// An empty line, or a notification that this server does not know: there is no answer.
    Nothing,
}

fn parse(text: &[u8]) -> Parsed {
    if text.iter().all(u8::is_ascii_whitespace) {
        return Parsed::Nothing;
    }
    let Ok(value) = serde_json::from_slice::<Value>(text) else {
        return Parsed::Refused(ErrorData::parse_error("this line is not JSON", None), None);
    };
    let id = match value.get("id") {
        Some(Value::String(id)) => Some(RequestId::String(id.as_str().into())),
        Some(Value::Number(id)) => id.as_i64().map(RequestId::Number),
        _ => None,
    };
    let is_notification = value.get("id").is_none() && value.get("method").is_some_and(Value::is_string);
    match serde_json::from_value(value) {
        Ok(message) => Parsed::Message(Box::new(message)),
        Err(_) if is_notification => Parsed::Nothing,
        Err(_) => Parsed::Refused(ErrorData::invalid_request("this is not a message of the protocol", None), id),
    }
}
