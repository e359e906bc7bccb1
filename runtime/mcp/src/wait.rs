//! Waits for a run.

use glovebox_record::RunId;
use glovebox_serve::desk::{Desk, Follow, Problem};
use glovebox_serve::right::Sight;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the files of a run are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// No process drives the run.
    Ended,
    /// The run asks a question that nobody has answered.
    Asked,
    /// The time is over.
    Late,
}

impl Woken {
    /// Returns the sentence for the client.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "The run has ended, or it is paused.",
            Self::Asked => "The run asks a question. `run` lists it.",
            Self::Late => "The run goes on. Call `wait` again.",
        }
    }
}

/// The records of a run, and the number of its open questions.
struct Watched {
    follow: Box<dyn Follow>,
    open: usize,
    is_new: bool,
}

impl Watched {
    /// Reads new records. Returns why the wait is over, if it is.
    fn look(&mut self) -> Result<Option<Woken>, Problem> {
        // A run may write its last records and end between two looks, so the process is looked at first.
        let is_live = self.follow.is_live();
        if self.is_new || self.follow.has_changed() {
            self.is_new = false;
            loop {
                let lines = self.follow.next()?;
                for line in &lines {
                    match line.kind {
                        "question.asked" => self.open += 1,
                        "question.answered" => self.open = self.open.saturating_sub(1),
                        _ => {}
                    }
                }
                if lines.is_empty() {
                    break;
                }
            }
        }
        Ok(match (is_live, self.open) {
            (false, _) => Some(Woken::Ended),
            (true, 0) => None,
            (true, _) => Some(Woken::Asked),
        })
    }
}

/// Waits until a run ends or asks a question, at most for this time. It may be dropped at any time.
pub(crate) async fn wait(desk: Arc<dyn Desk>, run: RunId, most: Duration) -> Result<Woken, Problem> {
    let bug = |_| Problem::new(500, "internal", "this call met a bug of the server");
    let began = Instant::now();
    let begin = move || {
        let follow = desk.follow(&run, Sight::Builder)?;
        Ok(Watched { follow, open: 0, is_new: true })
    };
    let mut watched = tokio::task::spawn_blocking(begin).await.map_err(bug)??;
    loop {
        let (again, woken) = tokio::task::spawn_blocking(move || {
            let woken = watched.look();
            (watched, woken)
        })
        .await
        .map_err(bug)?;
        watched = again;
        match woken? {
            Some(woken) => return Ok(woken),
            None if began.elapsed() >= most => return Ok(Woken::Late),
            None => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
}
