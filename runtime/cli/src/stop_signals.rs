//! Signals of the operating system that ask a run to stop. The first one stops the run and waits for its last record; the
//! next one ends the process at once, unless it is SIGHUP, which may arrive twice.

use crate::ask::Leave;
use crate::exit::{Exit, Stop};
use crate::terminal::progress::Notices;
use glovebox_engine::signals::LocalSignals;
use glovebox_journal::ports::Signals;
use glovebox_workspace::regular_file::kernel_text;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Time after a signal within which another signal counts as the same request.
const SAME_REQUEST_MAX: Duration = Duration::from_millis(200);

/// A signal that asks a run to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopSignal {
    Interrupt,
    Terminate,
    /// The terminal was closed. It may be sent more than once: by the system and by the shell.
    Hangup,
    Quit,
}

impl StopSignal {
    /// Returns the name for the record of the cancellation.
    fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "signal INT",
            Self::Terminate => "signal TERM",
            Self::Hangup => "signal HUP",
            Self::Quit => "signal QUIT",
        }
    }

    fn exit(self) -> Exit {
        if self == Self::Interrupt { Exit::Interrupted } else { Exit::Terminated }
    }
}

/// Receives the signals that ask a run to stop.
struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
    quit: Option<Signal>,
}

impl StopSignals {
    /// Starts to receive signals. A SIGHUP or SIGQUIT that was ignored when the process started stays ignored: `nohup` does that.
    fn new() -> Result<Self, Stop> {
        let on = |kind: SignalKind| signal(kind).map_err(|error| Stop::io("listen for signals", &error));
        let status = kernel_text("/proc/self/status").unwrap_or_default();
        let unless_ignored = |kind: SignalKind| match is_ignored(&status, kind) {
            true => Ok(None),
            false => on(kind).map(Some),
        };
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hangup: unless_ignored(SignalKind::hangup())?,
            quit: unless_ignored(SignalKind::quit())?,
        })
    }

    async fn next(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::Terminate,
            () = received(&mut self.hangup) => StopSignal::Hangup,
            () = received(&mut self.quit) => StopSignal::Quit,
        }
    }

    /// Waits for the next signal other than SIGHUP. It ends the process at once.
    async fn next_request(&mut self) -> StopSignal {
        loop {
            match self.next().await {
                StopSignal::Hangup => {}
                request => return request,
            }
        }
    }

    /// Waits while signals may belong to the request that was just received. One request may arrive as two signals:
    /// from the terminal, and from a program that forwards signals to its child processes.
    async fn same_request(&mut self) {
        let same = async {
            loop {
                self.next().await;
            }
        };
        let _passed: Result<(), _> = tokio::time::timeout(SAME_REQUEST_MAX, same).await;
    }
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => _ = signal.recv().await,
        None => std::future::pending().await,
    }
}

/// Returns true if the process ignores a signal, by the text of `/proc/self/status`.
fn is_ignored(status: &str, kind: SignalKind) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (mask >> (kind.as_raw_value() - 1)) & 1 == 1
}

/// Turns signals of the operating system into a request to stop.
pub fn listen(signals: LocalSignals, notices: Notices, leave: Leave) -> Result<impl Future<Output = ()>, Stop> {
    let mut received = StopSignals::new()?;
    Ok(async move {
        let mut first = received.next().await;
        // The first Ctrl-C at a question leaves the question open and does not stop the run.
        if first == StopSignal::Interrupt && leave.leave() {
            let other = async {
                loop {
                    match received.next().await {
                        StopSignal::Interrupt => {}
                        other => return other,
                    }
                }
            };
            let passed = tokio::time::timeout(SAME_REQUEST_MAX, other).await;
            first = match passed {
                Ok(other) => other,
                Err(_) => received.next().await,
            };
        }
        notices.say("stopping the run; press Ctrl-C again to end at once, without a summary");
        signals.cancel(first.name());
        received.same_request().await;
        let second = received.next_request().await;
        notices.leave();
        std::process::exit(i32::from(second.exit().code()));
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
        let status = |mask: &str| format!("Name:\tx\nSigBlk:\tffffffffffffffff\nSigIgn:\t{mask}\nSigCgt:\t0\n");
        for (mask, hangup, quit) in [
            ("0000000000000001", true, false),
            ("0000000000001006", false, true),
            ("0000000000001000", false, false),
            ("nonsense", false, false),
        ] {
            let text = status(mask);
            let found = (is_ignored(&text, SignalKind::hangup()), is_ignored(&text, SignalKind::quit()));
            assert_eq!(found, (hangup, quit), "{mask}");
        }
        assert!(!is_ignored("", SignalKind::hangup()));
    }
}
