//! A client of a NATS server that knows nothing of fleets: what an attacker with a login writes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A connection.
pub(crate) struct RawNats {
    stream: BufReader<TcpStream>,
    subscriptions: u64,
}

impl RawNats {
    /// Connects to `nats://HOST:PORT`.
    pub(crate) fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address.trim_start_matches("nats://")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut client = Self { stream: BufReader::new(stream), subscriptions: 0 };
        client.send("CONNECT {\"verbose\":false,\"pedantic\":false}\r\nPING\r\n", b"");
        while client.line() != "PONG" {}
        client
    }

    fn send(&mut self, command: &str, payload: &[u8]) {
        let stream = self.stream.get_mut();
        stream.write_all(command.as_bytes()).unwrap();
        stream.write_all(payload).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Sends a message, and waits until the server has it.
    pub(crate) fn publish(&mut self, subject: &str, payload: &[u8]) {
        self.send(&format!("PUB {subject} {}\r\n", payload.len()), payload);
        self.send("\r\nPING\r\n", b"");
        while self.line() != "PONG" {}
    }

    /// Sends a message and returns the answer.
    pub(crate) fn request(&mut self, subject: &str, payload: &[u8]) -> Vec<u8> {
        self.subscriptions += 1;
        let (number, inbox) = (self.subscriptions, format!("_INBOX.raw.{}", self.subscriptions));
        self.send(&format!("SUB {inbox} {number}\r\nUNSUB {number} 1\r\n"), b"");
        self.send(&format!("PUB {subject} {inbox} {}\r\n", payload.len()), payload);
        self.send("\r\n", b"");
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "no answer on `{subject}`");
            if let Some(length) = line.strip_prefix("MSG ").and_then(|line| line.rsplit(' ').next()) {
                let mut answer = vec![0; length.parse::<usize>().unwrap() + 2];
                self.stream.read_exact(&mut answer).unwrap();
                answer.truncate(answer.len() - 2);
                return answer;
            }
        }
    }

    /// Returns all messages on a subject of a stream, in order.
    pub(crate) fn stored(&mut self, stream: &str, subject: &str) -> Vec<Vec<u8>> {
        let (mut found, mut from) = (Vec::new(), 1);
        loop {
            let query = json!({ "seq": from, "next_by_subj": subject }).to_string();
            let answer = self.request(&format!("$JS.API.STREAM.MSG.GET.{stream}"), query.as_bytes());
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            let Some(seq) = answer["message"]["seq"].as_u64() else { return found };
            found.push(STANDARD.decode(answer["message"]["data"].as_str().unwrap_or_default()).unwrap());
            from = seq + 1;
        }
    }
}

/// Everything that is sent on all subjects, stored messages included.
pub(crate) struct Overheard(Arc<Mutex<Vec<Vec<u8>>>>);

impl Overheard {
    /// Begins to listen. The thread ends with the server.
    pub(crate) fn begin(address: &str) -> Self {
        let mut client = RawNats::connect(address);
        client.stream.get_ref().set_read_timeout(None).unwrap();
        client.send("SUB > 1\r\nPING\r\n", b"");
        while client.line() != "PONG" {}
        let heard = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&heard);
        std::thread::spawn(move || {
            let mut line = String::new();
            while client.stream.read_line(&mut line).is_ok_and(|read| read > 0) {
                match line.trim_end().split_once(' ') {
                    None if line.starts_with("PING") => client.send("PONG\r\n", b""),
                    Some(("MSG" | "HMSG", rest)) => {
                        let length: usize = rest.rsplit(' ').next().unwrap().parse().unwrap();
                        let mut message = vec![0; length + 2];
                        client.stream.read_exact(&mut message).unwrap();
                        all.lock().unwrap().push(message);
                    }
                    _ => {}
                }
                line.clear();
            }
        });
        Self(heard)
    }

    /// Returns the messages that contain a text, also in the payload of a signed envelope.
    pub(crate) fn with(&self, text: &str) -> Vec<String> {
        let has = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        let payload = |message: &[u8]| {
            let json: Value = serde_json::from_slice(message).ok()?;
            STANDARD.decode(json["payload"].as_str()?).ok()
        };
        let heard = self.0.lock().unwrap();
        let found =
            heard.iter().filter(|message| has(message) || payload(message).is_some_and(|payload| has(&payload)));
        found.map(|message| String::from_utf8_lossy(message).into_owned()).collect()
    }
}
