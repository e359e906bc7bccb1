//! A fake model provider whose answers are written in a file, for tests of pipelines, of agent programs, and of
//! `glovebox-models`.
//!
//! It supports every wire format on one port and selects the format by the path. It can also fail like a real provider:
//! refuse a request, stall, cut an answer off, answer as another model, or never stop.

#![forbid(unsafe_code)]

mod frames;
mod listen;
mod misbehave;
mod refuse;
mod script;
mod whole;

pub use script::{FakeScript, FakeScriptError};

use frames::Answer;
use glovebox_models::family::Family;
use listen::{Request, ResponseStream};
use misbehave::{Misbehavior, misbehavior};
use script::{Cut, Turn};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time for which a stalled answer keeps its connection open.
const STALL: Duration = Duration::from_secs(3600);
/// Bytes per piece of an endless answer.
const FILL_PIECE: usize = 64 << 10;

/// The log of requests.
pub type Log = Box<dyn Write + Send>;

/// A fake provider.
pub struct Fake {
    listener: TcpListener,
    shared: Arc<ServerState>,
}

struct ServerState {
    script: FakeScript,
    used: Mutex<Vec<u32>>,
    log: Mutex<Log>,
}

impl Fake {
    /// Listens at a local address.
    pub fn bind(address: SocketAddr, script: FakeScript, log: Log) -> io::Result<Self> {
        let used = Mutex::new(vec![0; script.turns.len()]);
        let shared = ServerState { script, used, log: Mutex::new(log) };
        Ok(Self { listener: TcpListener::bind(address)?, shared: Arc::new(shared) })
    }

    /// Returns the address of the provider.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers requests until the process ends.
    pub fn serve(&self) -> io::Result<()> {
        loop {
            let (stream, _) = self.listener.accept()?;
            let shared = Arc::clone(&self.shared);
            std::thread::spawn(move || {
                // A failed connection does not affect the others.
                let _ = shared.answer(stream);
            });
        }
    }
}

impl ServerState {
    fn answer(&self, stream: TcpStream) -> io::Result<()> {
        let Some(asking) = Request::read(&stream)? else { return Ok(()) };
        let mut sending = ResponseStream::new(stream);
        let Some(family) = family(&asking) else {
            return sending.whole(404, std::iter::empty(), &json!({ "error": { "message": "no such path" } }));
        };
        let turn = self.next_turn(&asking);
        self.note(&asking, family, turn.is_some())?;
        if self.script.key.as_ref().is_some_and(|key| !asking.carries(key)) {
            let turn = Turn::refusing("authentication");
            return self.refuse(&mut sending, family, &turn);
        }
        match turn {
            None => {
                let refused = Turn {
                    message: Some("the script has no answer for this request".to_owned()),
                    ..Turn::refusing("invalid-request")
                };
                self.refuse(&mut sending, family, &refused)
            }
            Some(turn) => {
                std::thread::sleep(Duration::from_millis(turn.delay_ms));
                if turn.error.is_none() || turn.in_stream && asking.wants_stream(family) {
                    return self.say(&mut sending, family, turn, &asking);
                }
                match misbehavior(refuse::kind(turn), family, turn, &asking) {
                    Some(Misbehavior::Response) => self.refuse(&mut sending, family, turn),
                    Some(Misbehavior::Close) => sending.close(),
                    Some(Misbehavior::Answer(answer)) => self.say(&mut sending, family, &answer, &asking),
                    None => {
                        let message = Some("the request offers no tool that the answer could call".to_owned());
                        self.refuse(&mut sending, family, &Turn { message, ..Turn::refusing("invalid-request") })
                    }
                }
            }
        }
    }

    /// Sends the answer of a turn, as a stream if the request asks for one.
    fn say(&self, sending: &mut ResponseStream, family: Family, turn: &Turn, asking: &Request) -> io::Result<()> {
        let model = turn.model.as_deref().or(asking.model()).unwrap_or("unknown");
        let said = Answer::new(turn, model, asking.body.len());
        match asking.wants_stream(family) {
            true => self.stream(sending, family, turn, &said),
            false => say_whole(sending, turn, &whole::body(family, &said).to_string()),
        }
    }

    /// Returns the first turn that fits the request and has not been used, or may be repeated.
    fn next_turn(&self, asking: &Request) -> Option<&Turn> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let turns = self.script.turns.iter().zip(used.iter_mut());
        let mut fitting = turns.filter(|(turn, used)| (turn.repeat || **used == 0) && turn.fits(&asking.body));
        let (turn, used) = fitting.next()?;
        *used += 1;
        Some(turn)
    }

    fn note(&self, asking: &Request, family: Family, is_answered: bool) -> io::Result<()> {
        let line = json!({ "family": family, "path": asking.path, "answered": is_answered, "body": asking.json() });
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(log, "{line}")?;
        log.flush()
    }

    fn refuse(&self, sending: &mut ResponseStream, family: Family, turn: &Turn) -> io::Result<()> {
        let (status, body) = refuse::body(family, turn);
        let retry_after = turn.retry_after.map(|seconds| ("retry-after", seconds.to_string()));
        let more = turn.headers.iter().map(|(name, value)| (name.as_str(), value.clone()));
        sending.whole(status, retry_after.into_iter().chain(more), &body)
    }

    fn stream(&self, sending: &mut ResponseStream, family: Family, turn: &Turn, said: &Answer<'_>) -> io::Result<()> {
        let mut frames = frames::events(family, said);
        sending.begin(if family == Family::Ollama { "application/x-ndjson" } else { "text/event-stream" })?;
        if turn.in_stream {
            frames.truncate(1);
            frames.push(frames::json_event(&refuse::event(family, turn)));
        }
        let last = frames.len().saturating_sub(turn.cut.map_or(0, |_| frames.len().div_ceil(2)));
        for (at, frame) in frames.iter().take(last).enumerate() {
            std::thread::sleep(Duration::from_millis(if at > 0 { turn.pause_ms } else { 0 }));
            sending.event(family, frame)?;
            if at == 0 && turn.stall {
                std::thread::sleep(STALL);
            }
            if at == 0 && turn.endless {
                let more = frames::more_text(family, &"x".repeat(FILL_PIECE), said.model);
                loop {
                    sending.event(family, &more)?;
                }
            }
        }
        match turn.cut {
            Some(Cut::Connection) => sending.break_off(),
            Some(Cut::Body) | None => sending.end(),
        }
    }
}

/// Sends an answer that is not streamed, with the stall, the endless text or the cut of the turn.
fn say_whole(sending: &mut ResponseStream, turn: &Turn, body: &str) -> io::Result<()> {
    let (first, rest) = body.split_at(body.floor_char_boundary(body.len() / 2));
    sending.begin("application/json")?;
    sending.piece(first)?;
    if turn.stall {
        std::thread::sleep(STALL);
    }
    if turn.endless {
        loop {
            sending.piece(&" ".repeat(FILL_PIECE))?;
        }
    }
    match turn.cut {
        Some(Cut::Connection) => sending.break_off(),
        Some(Cut::Body) => sending.end(),
        None => sending.piece(rest).and_then(|()| sending.end()),
    }
}

/// Returns the wire format that belongs to the path of a request.
fn family(asking: &Request) -> Option<Family> {
    let path = asking.path.split('?').next().unwrap_or_default();
    let ends = [
        ("/responses", Family::Openai),
        ("/messages", Family::Anthropic),
        (":streamGenerateContent", Family::Gemini),
        (":generateContent", Family::Gemini),
        ("/chat/completions", Family::OpenaiCompatible),
        ("/api/chat", Family::Ollama),
    ];
    ends.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, family)| family)
}

/// Parses a request body as JSON.
fn parsed(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_default()
}
