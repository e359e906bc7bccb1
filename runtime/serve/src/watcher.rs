//! One watcher for each run that is followed, however many clients follow it.
//!
//! A watcher reads new records once, and keeps the last ones. A follower that is further behind reads the journal itself
//! until it has caught up. There is no queue for each follower, so one that does not read costs no memory.

use crate::desk::{Desk, Document, Follow, Problem, Read, RecordLine};
use crate::right::Sight;
use glovebox_record::RunId;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Maximum size of the records that a watcher keeps, bytes.
const KEPT_BYTES_MAX: usize = 4 << 20;
/// Interval at which the files of a journal are examined.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// Interval at which a run without new records is examined for its end.
const ALIVE_EVERY: Duration = Duration::from_millis(500);
/// Minimum interval between two states of a run.
const STATE_EVERY: Duration = Duration::from_millis(500);
/// A state is made at most so often that it takes a twentieth of the time.
const STATE_COST: u32 = 20;

/// The watchers of all followed runs.
pub(crate) struct Watchers {
    desk: Arc<dyn Desk>,
    by_run: Mutex<HashMap<(RunId, Sight), Weak<Watched>>>,
}

/// A run that at least one client follows.
pub(crate) struct Watched {
    desk: Arc<dyn Desk>,
    run: RunId,
    sight: Sight,
    kept: Mutex<Kept>,
    news: watch::Sender<News>,
}

/// What a watcher knows now.
#[derive(Debug, Clone, Default)]
pub(crate) struct News {
    /// Number of the last record.
    pub(crate) head: u64,
    /// True after the records that were there at the beginning have been read.
    pub(crate) is_current: bool,
    /// The newest state of the run, as one line of JSON, and the number of its last record.
    pub(crate) state: Option<(u64, Arc<str>)>,
    /// Why no more records come.
    pub(crate) end: Option<End>,
}

/// Why a watcher ended.
#[derive(Debug, Clone)]
pub(crate) enum End {
    /// No process drives the run.
    Ended,
    /// The journal cannot be read.
    Failed(Problem),
}

#[derive(Default)]
struct Kept {
    lines: VecDeque<Arc<RecordLine>>,
    bytes: usize,
}

/// Records after a number.
pub(crate) enum After {
    /// The next records; none if there are no more.
    Lines(Vec<Arc<RecordLine>>),
    /// The watcher does not have the next record any more.
    Gone,
}

impl Watchers {
    pub(crate) fn new(desk: Arc<dyn Desk>) -> Self {
        Self { desk, by_run: Mutex::default() }
    }

    /// Returns the watcher of a run, and starts it if there is none.
    pub(crate) async fn watch(&self, run: &RunId, sight: Sight) -> Result<Arc<Watched>, Problem> {
        let key = (run.clone(), sight);
        if let Some(watched) = self.present(&key) {
            return Ok(watched);
        }
        let follow = follow(&self.desk, run, sight).await?;
        let mut by_run = lock(&self.by_run);
        by_run.retain(|_, watched| watched.strong_count() > 0);
        let present = by_run.get(&key).and_then(Weak::upgrade).filter(|watched| watched.news.borrow().end.is_none());
        if let Some(watched) = present {
            return Ok(watched);
        }
        let (desk, news) = (Arc::clone(&self.desk), watch::Sender::default());
        let watched = Arc::new(Watched { desk, run: run.clone(), sight, kept: Mutex::default(), news });
        by_run.insert(key, Arc::downgrade(&watched));
        tokio::spawn(drive(Arc::downgrade(&watched), follow));
        Ok(watched)
    }

    fn present(&self, key: &(RunId, Sight)) -> Option<Arc<Watched>> {
        let found = lock(&self.by_run).get(key).and_then(Weak::upgrade);
        // A run that ended can be resumed, so its watcher is not used again.
        found.filter(|watched| watched.news.borrow().end.is_none())
    }
}

impl Watched {
    /// Returns a receiver of what the watcher knows.
    pub(crate) fn news(&self) -> watch::Receiver<News> {
        self.news.subscribe()
    }

    /// Returns the records after `position` that the watcher has.
    pub(crate) fn after(&self, position: u64) -> After {
        let kept = lock(&self.kept);
        let first = kept.lines.front().map_or(self.news.borrow().head + 1, |line| line.seq);
        if position + 1 < first {
            return After::Gone;
        }
        let skipped = usize::try_from(position + 1 - first).unwrap_or(usize::MAX);
        After::Lines(kept.lines.iter().skip(skipped).cloned().collect())
    }

    /// Begins to read the run from its first record, for a follower that is far behind.
    pub(crate) async fn read_again(&self) -> Result<Box<dyn Follow>, Problem> {
        follow(&self.desk, &self.run, self.sight).await
    }

    fn keep(&self, lines: Vec<Arc<RecordLine>>) {
        let Some(head) = lines.last().map(|line| line.seq) else { return };
        let mut kept = lock(&self.kept);
        kept.bytes += lines.iter().map(|line| size(line)).sum::<usize>();
        kept.lines.extend(lines);
        while kept.bytes > KEPT_BYTES_MAX && kept.lines.len() > 1 {
            let first = kept.lines.pop_front().map_or(0, |line| size(&line));
            kept.bytes -= first;
        }
        // The head changes while the lines are locked, so that a follower sees both or neither.
        self.news.send_modify(|news| news.head = head);
    }

    async fn state(self: &Arc<Self>) -> Option<Arc<str>> {
        let watched = Arc::clone(self);
        let read = move || watched.desk.read(&Read::Run(watched.run.clone()), watched.sight);
        let Document { bytes, .. } = tokio::task::spawn_blocking(read).await.ok()?.ok()?;
        let value: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
        Some(value.to_string().into())
    }
}

/// Reads a run until nobody follows it, or until no process drives it.
async fn drive(watched: Weak<Watched>, mut follow: Box<dyn Follow>) {
    let (mut stated, mut cost) = (Instant::now(), Duration::ZERO);
    loop {
        let is_live;
        let lines;
        (follow, is_live, lines) = match next(follow).await {
            Some(read) => read,
            None => return,
        };
        let Some(strong) = watched.upgrade() else { return };
        match lines {
            Err(problem) => return strong.news.send_modify(|news| news.end = Some(End::Failed(problem))),
            Ok(lines) if !lines.is_empty() => {
                strong.keep(lines);
                continue;
            }
            Ok(_) => {}
        }
        let (head, is_current, known) = {
            let news = strong.news.borrow();
            (news.head, news.is_current, news.state.as_ref().map_or(0, |(head, _)| *head))
        };
        let is_due = !is_current || !is_live || stated.elapsed() > STATE_EVERY.max(cost * STATE_COST);
        if known < head && is_due {
            let began = Instant::now();
            let state = strong.state().await;
            (stated, cost) = (Instant::now(), began.elapsed());
            strong.news.send_modify(|news| news.state = state.map(|state| (head, state)).or(news.state.take()));
        }
        strong.news.send_if_modified(|news| !std::mem::replace(&mut news.is_current, true));
        // `is_live` was read before the records: if no process drives the run, no record is added later.
        if !is_live {
            return strong.news.send_modify(|news| news.end = Some(End::Ended));
        }
        drop(strong);
        let began = Instant::now();
        while !follow.has_changed() && began.elapsed() < ALIVE_EVERY {
            tokio::time::sleep(LOOK_EVERY).await;
            if watched.strong_count() == 0 {
                return;
            }
        }
    }
}

type Next = (Box<dyn Follow>, bool, Result<Vec<Arc<RecordLine>>, Problem>);

/// Reads some of the next records on a thread that may block. Returns `None` after a bug there.
pub(crate) async fn next(mut follow: Box<dyn Follow>) -> Option<Next> {
    let read = tokio::task::spawn_blocking(move || {
        let is_live = follow.is_live();
        let lines = follow.next();
        (follow, is_live, lines)
    });
    read.await.ok()
}

async fn follow(desk: &Arc<dyn Desk>, run: &RunId, sight: Sight) -> Result<Box<dyn Follow>, Problem> {
    let (desk, run) = (Arc::clone(desk), run.clone());
    let begun = tokio::task::spawn_blocking(move || desk.follow(&run, sight));
    begun.await.unwrap_or_else(|_| Err(Problem::new(500, "internal", "this request met a bug of the server")))
}

fn size(line: &RecordLine) -> usize {
    line.json.len() + line.events.iter().map(|(_, json)| json.len()).sum::<usize>()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
