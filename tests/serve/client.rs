//! A server under test, and a client that writes the bytes of each request itself.

use crate::workbench::Workbench;
use glovebox_serve::right::Right;
use glovebox_serve::token;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::time::Duration;

/// How long an answer may take.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

/// A server, which ends with the value.
pub(crate) struct Served {
    child: Child,
    /// Address and port.
    pub(crate) host: String,
    /// The owner's token.
    pub(crate) token: String,
    /// The link that the server printed.
    pub(crate) link: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _gone = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// An answer of the server.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn is(&self, status: u16) -> &Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

impl Served {
    /// Starts a server for the project.
    pub(crate) fn start(bench: &Workbench) -> Self {
        Self::with(bench, &[])
    }

    /// Starts a server with tokens that have these names and rights. The token of a client is its name, repeated to the
    /// length of a token.
    pub(crate) fn with(bench: &Workbench, clients: &[(&str, &[Right])]) -> Self {
        let tokens: Vec<Value> = clients
            .iter()
            .map(|(name, rights)| json!({ "name": name, "rights": rights, "blake3": token::hash(name) }))
            .collect();
        let file = bench.outside().join("tokens.json");
        std::fs::write(&file, json!({ "schema_version": 1, "tokens": tokens }).to_string()).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        Self::again(bench, "127.0.0.1:0")
    }

    /// Starts a server at this address, with the tokens of the server before it.
    pub(crate) fn again(bench: &Workbench, address: &str) -> Self {
        let file = bench.outside().join("tokens.json");
        Self::started(bench, &["--listen", address, "--tokens", file.to_str().unwrap()])
    }

    /// Starts a server with these arguments.
    pub(crate) fn started(bench: &Workbench, more: &[&str]) -> Self {
        let mut child = bench.start(&[&["serve", "--json"], more].concat());
        let mut line = String::new();
        let said = BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line);
        let started: Value = match said {
            Ok(length) if length > 0 => serde_json::from_str(&line).unwrap(),
            _ => {
                let mut error = String::new();
                child.stderr.as_mut().unwrap().read_to_string(&mut error).unwrap();
                panic!("the server did not start: {error}")
            }
        };
        let address = started["address"].as_str().unwrap();
        let host = address.strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
        let token = std::fs::read_to_string(started["token_file"].as_str().unwrap()).unwrap().trim().to_owned();
        Self { child, host, token, link: started["link"].as_str().unwrap().to_owned() }
    }

    /// Returns the process id of the server.
    pub(crate) fn process(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Ends the server without a chance to do anything.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends the server with SIGTERM, and returns what it wrote to stderr.
    pub(crate) fn end(mut self) -> String {
        let process = rustix::process::Pid::from_raw(self.process()).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        self.child.wait().unwrap();
        said
    }

    /// Sends these bytes, and returns everything that the server answers until it closes the connection.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Reply {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(ANSWERED_WITHIN)).unwrap();
        // The server may answer and close before it has read everything.
        let _closed = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _reset = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        let body = if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
            unchunked(body)
        } else {
            body.to_owned()
        };
        Reply { status, head: head.to_owned(), body }
    }

    /// Sends a request with these additional lines of its head.
    pub(crate) fn send(&self, line: &str, more: &[&str], body: &str) -> Reply {
        let more: String = more.iter().map(|line| format!("{line}\r\n")).collect();
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let host = if more.contains("Host: ") { String::new() } else { format!("Host: {}\r\n", self.host) };
        self.raw(format!("{line} HTTP/1.1\r\n{host}Connection: close\r\n{more}{length}\r\n{body}").as_bytes())
    }

    /// Gets a path as the owner.
    pub(crate) fn get(&self, path: &str) -> Reply {
        self.as_client(&self.token, &format!("GET {path}"), None)
    }

    /// Posts JSON as the owner.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.as_client(&self.token, &format!("POST {path}"), Some(body))
    }

    /// Sends a request with this token.
    pub(crate) fn as_client(&self, token: &str, line: &str, body: Option<&Value>) -> Reply {
        let token = format!("Authorization: Bearer {token}");
        match body {
            None => self.send(line, &[&token], ""),
            Some(body) => self.send(line, &[&token, "Content-Type: application/json"], &body.to_string()),
        }
    }

    /// Follows a path from a record on, and returns the events until the stream ends.
    pub(crate) fn follow(&self, path: &str, last_event_id: Option<u64>) -> Vec<Sent> {
        let token = format!("Authorization: Bearer {}", self.token);
        let last = last_event_id.map(|last| format!("Last-Event-ID: {last}"));
        let mut more = vec![token.as_str()];
        more.extend(last.as_deref());
        let reply = self.send(&format!("GET {path}"), &more, "");
        reply.is(200);
        events(&reply.body)
    }
}

/// A server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) id: Option<u64>,
    pub(crate) event: String,
    pub(crate) data: String,
}

/// Parses a stream of events.
pub(crate) fn events(text: &str) -> Vec<Sent> {
    let fields = |block: &str, name: &str| {
        block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::to_owned)
    };
    let blocks = text.split("\n\n").filter(|block| block.lines().any(|line| line.starts_with("event:")));
    blocks
        .map(|block| Sent {
            id: fields(block, "id").map(|id| id.parse().unwrap()),
            event: fields(block, "event").unwrap(),
            data: fields(block, "data").unwrap_or_default(),
        })
        .collect()
}

pub(crate) fn unchunked(mut rest: &str) -> String {
    let mut text = String::new();
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length.trim(), 16).unwrap_or(0);
        if length == 0 || after.len() < length || !after.is_char_boundary(length) {
            break;
        }
        text.push_str(&after[..length]);
        rest = after[length..].strip_prefix("\r\n").unwrap_or_default();
    }
    text
}
