//! The records of a run as server-sent events, or as lines of JSON.
//!
//! The id of an event is the number of its record. A client that was cut off names the last id that it got, and nothing is
//! missing: also after the server was started again, because the number is that of the journal.

use crate::answer;
use crate::desk::{Follow, Problem, RecordLine};
use crate::parse::Followed;
use crate::place::Place;
use crate::watcher::{After, End, News, Watched, next};
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Maximum length of one record in a stream, bytes. A longer one is replaced by its number and where to get it.
pub(crate) const RECORD_BYTES_MAX: usize = 64 << 10;
/// Interval of the comments that keep a connection open.
pub(crate) const PING_EVERY: Duration = Duration::from_secs(15);
/// Number of parts of an answer that wait for a client that does not read.
pub(crate) const PARTS_MAX: usize = 2;
/// Maximum size of one part of an answer, bytes.
const PART_BYTES_MAX: usize = 256 << 10;

static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The form of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Server-sent events, one for each record.
    Records,
    /// Server-sent events with the names of the specification.
    Named,
    /// Records as lines of JSON.
    Lines,
}

impl Form {
    pub(crate) fn of(accept: Option<&HeaderValue>, is_named_by_specification: bool) -> Self {
        let accepts_lines = accept.is_some_and(|accept| accept.as_bytes() == b"application/x-ndjson");
        match (is_named_by_specification, accepts_lines) {
            (true, _) => Self::Named,
            (false, true) => Self::Lines,
            (false, false) => Self::Records,
        }
    }
}

/// Returns the number of the last record that the client has.
pub(crate) fn position(headers: &HeaderMap, after: Option<u64>) -> Result<u64, Problem> {
    let Some(last) = headers.get(&LAST_EVENT_ID) else { return Ok(after.unwrap_or_default()) };
    let last = last.to_str().ok().and_then(|text| text.parse().ok());
    last.ok_or_else(|| Problem::new(400, "usage", "`Last-Event-ID` is not the number of a record"))
}

/// Returns an answer whose body follows a run.
pub(crate) async fn answer(
    watched: Arc<Watched>,
    followed: Followed,
    after: u64,
    form: Form,
    place: Place,
) -> Result<Response<Body>, Problem> {
    let mut news = watched.news();
    let head = {
        let current = news.wait_for(|news| news.is_current || news.end.is_some()).await;
        current.map_or(0, |news| news.head)
    };
    if after > head {
        let message = format!("the run has no record {after}: its last record is {head}");
        return Err(Problem::new(409, "unknown-record", message));
    }
    let (parts, body) = mpsc::channel(PARTS_MAX);
    let last = parts.clone();
    let follower = Follower { watched, followed, form, position: after, own: None, parts, stated: 0 };
    tokio::spawn(async move {
        if let Some(problem) = place.hold(follower.run(news)).await
            && form != Form::Lines
        {
            // A client that does not read is closed without it.
            let _full = last.try_send(ended_by(&problem).into());
        }
    });
    let media = if form == Form::Lines { "application/x-ndjson" } else { "text/event-stream" };
    Ok(answer::data(StatusCode::OK, media, Body::from_stream(Parts(body))))
}

/// Returns the last event of a stream that a problem ended.
pub(crate) fn ended_by(problem: &Problem) -> String {
    format!("event: end\ndata: {}\n\n", serde_json::to_string(problem).unwrap_or_default())
}

/// The body of an answer.
pub(crate) struct Parts(pub(crate) mpsc::Receiver<Bytes>);

impl futures_core::Stream for Parts {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|part| part.map(Ok))
    }
}

/// One client that follows a run.
struct Follower {
    watched: Arc<Watched>,
    followed: Followed,
    form: Form,
    /// Number of the last record that was sent or left out.
    position: u64,
    /// A reader of its own, while the client is further behind than the watcher remembers.
    own: Option<Box<dyn Follow>>,
    parts: mpsc::Sender<Bytes>,
    /// Number of the last record of the state that was sent.
    stated: u64,
}

impl Follower {
    /// Sends everything. Returns when the run has ended, or when the client has gone.
    async fn run(mut self, mut news: watch::Receiver<News>) {
        if self.form != Form::Lines && self.send("retry: 2000\n\n".to_owned()).await.is_err() {
            return;
        }
        loop {
            let now = news.borrow_and_update().clone();
            match self.send_new(now.head).await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(Gone) => return,
            }
            if self.send_state(&now).await.is_err() {
                return;
            }
            if let Some(end) = &now.end {
                let _gone = self.send_end(end).await;
                return;
            }
            tokio::select! {
                changed = news.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(PING_EVERY) => {
                    let ping = if self.form == Form::Lines { "\n" } else { ": ping\n\n" };
                    if self.send(ping.to_owned()).await.is_err() {
                        return;
                    }
                }
                () = self.parts.closed() => return,
            }
        }
    }

    /// Sends some of the next records. Returns false if there are no more.
    async fn send_new(&mut self, head: u64) -> Result<bool, Gone> {
        if self.position >= head {
            self.own = None;
            return Ok(false);
        }
        let lines = match self.watched.after(self.position) {
            After::Lines(lines) => {
                self.own = None;
                lines
            }
            After::Gone => self.read_again().await?,
        };
        let Some(last) = lines.last().map(|line| line.seq) else { return Ok(false) };
        let (mut text, position) = (String::new(), self.position);
        for line in lines.iter().filter(|line| line.seq > position) {
            self.write(&mut text, line);
            if text.len() > PART_BYTES_MAX {
                self.send(std::mem::take(&mut text)).await?;
            }
        }
        self.position = self.position.max(last);
        self.send(text).await?;
        Ok(true)
    }

    async fn read_again(&mut self) -> Result<Vec<Arc<RecordLine>>, Gone> {
        let own = match self.own.take() {
            Some(own) => own,
            None => self.watched.read_again().await.map_err(|_| Gone)?,
        };
        let (own, _, lines) = next(own).await.ok_or(Gone)?;
        self.own = Some(own);
        lines.map_err(|_| Gone)
    }

    fn write(&self, text: &mut String, line: &RecordLine) {
        let Followed { run, kind, node, .. } = &self.followed;
        let is_other = kind.as_ref().is_some_and(|kind| kind != line.kind)
            || node.as_ref().is_some_and(|node| line.node.as_ref() != Some(node));
        if is_other {
            return;
        }
        let seq = line.seq;
        if self.form == Form::Named {
            for (part, (name, json)) in line.events.iter().enumerate() {
                // Only the last event of a record has an id, so a cut repeats events and loses none.
                let id = if part + 1 == line.events.len() { format!("id: {seq}\n") } else { String::new() };
                text.push_str(&format!("{id}event: {name}\ndata: {json}\n\n"));
            }
            return;
        }
        let json = &line.json;
        let long;
        let json = if json.len() > RECORD_BYTES_MAX {
            long = serde_json::json!({
                "schema_version": 1, "seq": seq, "kind": line.kind, "bytes": json.len(),
                "records": format!("/runs/{run}/records?after={}&limit=1", seq - 1),
            });
            &long.to_string()
        } else {
            json
        };
        match self.form {
            Form::Lines => text.push_str(&format!("{json}\n")),
            _ => text.push_str(&format!("id: {seq}\nevent: {}\ndata: {json}\n\n", line.kind)),
        }
    }

    async fn send_state(&mut self, now: &News) -> Result<(), Gone> {
        let Some((head, state)) = now.state.as_ref().filter(|(head, _)| *head > self.stated) else { return Ok(()) };
        self.stated = *head;
        match self.form {
            Form::Records => self.send(format!("event: state\ndata: {state}\n\n")).await,
            Form::Named | Form::Lines => Ok(()),
        }
    }

    async fn send_end(&mut self, end: &End) -> Result<(), Gone> {
        if self.form == Form::Lines {
            return Ok(());
        }
        let text = match end {
            End::Ended => "event: end\ndata: {}\n\n".to_owned(),
            End::Failed(problem) => ended_by(problem),
        };
        self.send(text).await
    }

    async fn send(&mut self, text: String) -> Result<(), Gone> {
        if text.is_empty() {
            return Ok(());
        }
        self.parts.send(text.into()).await.map_err(|_| Gone)
    }
}

/// The client has gone, or the journal cannot be read any more.
struct Gone;
