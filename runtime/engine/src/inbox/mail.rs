//! Where the messages of people come from: a folder of the run, which other processes of the user write to.
//!
//! No stage can reach the folder. A message is accepted only with a MAC of the user's key.

use super::message::{self, INBOX_DIR, Message};
use cap_std::fs::Dir;
use glovebox_journal::event::RunId;
use glovebox_workspace::user_key::UserKey;
use std::time::{Duration, Instant};

/// Time between two checks of the folder; the second value applies after [`QUIET_LOOKS`] checks that found nothing.
const LOOK_EVERY: Duration = Duration::from_millis(200);
const LOOK_EVERY_QUIET: Duration = Duration::from_secs(1);
const QUIET_LOOKS: u32 = 15;

/// A source of messages to a run. A message may be delivered several times, also after its delivery was ended, so whoever
/// gets it must know what was recorded already.
pub trait Mail {
    /// Waits until messages may have arrived.
    fn arrival(&mut self) -> impl Future<Output = ()>;

    /// Returns all messages that are there, without waiting.
    fn messages(&mut self) -> Vec<Message>;

    /// Ends the delivery of the message with this name, as [`super::file_name`] returns it: it was recorded, or has no effect.
    fn done(&mut self, name: &str);
}

/// No messages.
impl Mail for () {
    async fn arrival(&mut self) {
        std::future::pending().await
    }

    fn messages(&mut self) -> Vec<Message> {
        Vec::new()
    }

    fn done(&mut self, _name: &str) {}
}

/// The messages of a source that may have been taken by another inbox.
impl<M: Mail> Mail for Option<M> {
    async fn arrival(&mut self) {
        match self {
            Some(mail) => mail.arrival().await,
            None => std::future::pending().await,
        }
    }

    fn messages(&mut self) -> Vec<Message> {
        self.as_mut().map(Mail::messages).unwrap_or_default()
    }

    fn done(&mut self, name: &str) {
        self.iter_mut().for_each(|mail| mail.done(name));
    }
}

/// The folder of messages in a run directory. It is checked at intervals.
pub struct FolderMail {
    run: Dir,
    run_id: RunId,
    key: Option<UserKey>,
    looked_at: Option<Instant>,
    /// Number of checks in a row that found nothing.
    quiet_looks: u32,
}

impl FolderMail {
    /// Creates the source of messages to a run. Without a key no message is accepted.
    pub fn new(run: Dir, run_id: RunId, key: Option<UserKey>) -> Self {
        Self { run, run_id, key, looked_at: None, quiet_looks: 0 }
    }

    /// Returns all valid messages. Removes nothing.
    pub(super) fn read(&self) -> Vec<Message> {
        let Ok(folder) = self.run.open_dir(INBOX_DIR) else { return Vec::new() };
        let Ok(entries) = folder.entries() else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let messages = names.filter_map(|name| message::open(&folder, &name, &self.run_id, self.key.as_ref()));
        messages.filter(Message::is_of_a_person).collect()
    }
}

impl Mail for FolderMail {
    async fn arrival(&mut self) {
        let every = if self.quiet_looks < QUIET_LOOKS { LOOK_EVERY } else { LOOK_EVERY_QUIET };
        let next = self.looked_at.map_or(Duration::ZERO, |at| every.saturating_sub(at.elapsed()));
        tokio::time::sleep(next).await;
    }

    fn messages(&mut self) -> Vec<Message> {
        self.looked_at = Some(Instant::now());
        let messages = self.read();
        self.quiet_looks = if messages.is_empty() { self.quiet_looks.saturating_add(1) } else { 0 };
        messages
    }

    fn done(&mut self, name: &str) {
        let _not_there = self.run.remove_file(format!("{INBOX_DIR}/{name}"));
    }
}
