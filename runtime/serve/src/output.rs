//! The output of a running stage as server-sent events.
//!
//! There is no queue: a client that does not read gets the end of what was printed meanwhile. A client that takes no byte for
//! 30 s is closed, as every other one.

use crate::answer;
use crate::desk::{FollowOutput, OutputNews};
use crate::place::Place;
use crate::stream::{PARTS_MAX, PING_EVERY, Parts, ended_by};
use axum::body::{Body, Bytes};
use axum::http::{Response, StatusCode};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How often the output is read.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Returns an answer whose body follows the output of a stage.
pub(crate) fn answer(follow: Box<dyn FollowOutput>, place: Place) -> Response<Body> {
    let (parts, body) = mpsc::channel(PARTS_MAX);
    let last = parts.clone();
    tokio::spawn(async move {
        if let Some(problem) = place.hold(send(follow, parts)).await {
            // A client that does not read is closed without it.
            let _full = last.try_send(ended_by(&problem).into());
        }
    });
    answer::data(StatusCode::OK, "text/event-stream", Body::from_stream(Parts(body)))
}

/// Sends everything until the run ends, or until the client has gone.
async fn send(mut follow: Box<dyn FollowOutput>, parts: mpsc::Sender<Bytes>) {
    let mut sent = Instant::now();
    loop {
        let read = tokio::task::spawn_blocking(move || {
            let news = follow.next();
            (follow, news)
        });
        let Ok((again, news)) = read.await else { return };
        follow = again;
        let (text, is_over) = match news {
            Ok(news) => (written(&news), news.has_ended),
            Err(problem) => (ended_by(&problem), true),
        };
        let is_silent = text.is_empty();
        if !is_silent || sent.elapsed() >= PING_EVERY {
            let text = if is_silent { ": ping\n\n".to_owned() } else { text };
            if parts.send(text.into()).await.is_err() {
                return;
            }
            sent = Instant::now();
        }
        if is_over {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = parts.closed() => return,
        }
    }
}

fn written(news: &OutputNews) -> String {
    let mut text: String = news.events.iter().map(|(name, json)| format!("event: {name}\ndata: {json}\n\n")).collect();
    if news.has_ended {
        text.push_str("event: end\ndata: {}\n\n");
    }
    text
}
