//! Signals within one process: one request to stop, which is kept once it is made.
//!
//! This module does not handle signals of the operating system. The command line converts a signal of the operating
//! system to a call of [`Signals::cancel`].

use glovebox_journal::ports::Signals;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::watch;

/// Signals between the tasks of one process. Clones share one channel.
#[derive(Clone)]
pub struct LocalSignals {
    asked: watch::Sender<Option<String>>,
    flag: Arc<AtomicBool>,
}

impl LocalSignals {
    /// Creates a channel without a request.
    pub fn new() -> Self {
        Self { asked: watch::Sender::new(None), flag: Arc::default() }
    }
}

impl Default for LocalSignals {
    fn default() -> Self {
        Self::new()
    }
}

impl Signals for LocalSignals {
    fn cancel(&self, by: &str) {
        self.asked.send_if_modified(|asked| {
            let first = asked.is_none();
            if first {
                *asked = Some(by.to_owned());
            }
            first
        });
        // The flag is set after the request, so that a task that is woken by the flag finds the request.
        glovebox_jail::jail::cancel(&self.flag);
    }

    async fn canceled(&self) -> String {
        let mut asked = self.asked.subscribe();
        let by = asked.wait_for(Option::is_some).await.ok().and_then(|by| by.clone());
        // Unreachable while `self` lives, since it holds the sender. Without a sender there can be no request.
        match by {
            Some(by) => by,
            None => std::future::pending().await,
        }
    }

    fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }
}
