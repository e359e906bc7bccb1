//! What the host observes of one attempt while it runs: counters without a lock, a clock or a thread.
//!
//! The code that moves bytes, samples processes or waits for a model counts here, and the engine reads the counters at
//! intervals. A counter that changed means that the attempt is alive. Only the host counts; a guest or a command
//! cannot name a wait.

use glovebox_record::WaitKind;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The counters of one attempt. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Pulse(Arc<Cells>);

#[derive(Debug, Default)]
struct Cells {
    beats: AtomicU64,
    tool_calls_started: AtomicU64,
    tool_calls_ended: AtomicU64,
    text_deltas: AtomicU64,
    text_bytes: AtomicU64,
    output_bytes: AtomicU64,
    /// Number of waits of each kind, in the order of [`WaitKind::ALL`].
    waits: [AtomicU32; WaitKind::ALL.len()],
}

/// The counters of an attempt at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PulseCounts {
    /// Number of observations of any kind. It changes with each of the other counters.
    pub beats: u64,
    /// Number of commands and requests to tool servers that were started.
    pub tool_calls_started: u64,
    /// Number of commands and requests to tool servers that ended.
    pub tool_calls_ended: u64,
    /// Number of pieces in which answers of models arrived.
    pub text_deltas: u64,
    /// Length of these pieces in bytes.
    pub text_bytes: u64,
    /// Number of bytes that commands printed.
    pub output_bytes: u64,
}

impl Pulse {
    /// Counts that something moved.
    pub fn beat(&self) {
        add(&self.0.beats, 1);
    }

    /// Counts the start of a command or of a request to a tool server, and its end when the guard is dropped.
    pub fn tool_call(&self) -> ToolCallGuard {
        add(&self.0.tool_calls_started, 1);
        self.beat();
        ToolCallGuard(self.clone())
    }

    /// Counts a piece of a model's answer.
    pub fn text_delta(&self, bytes: usize) {
        add(&self.0.text_deltas, 1);
        add(&self.0.text_bytes, bytes as u64);
        self.beat();
    }

    /// Counts bytes that a command printed.
    pub fn output(&self, bytes: u64) {
        if bytes > 0 {
            add(&self.0.output_bytes, bytes);
            self.beat();
        }
    }

    /// Notes that the attempt waits for something, until the guard is dropped.
    pub fn wait(&self, kind: WaitKind) -> WaitGuard {
        let guard = WaitGuard { pulse: self.clone(), kind };
        guard.cell().fetch_add(1, Ordering::Relaxed);
        self.beat();
        guard
    }

    /// Sets the counters and the wait to those of an attempt on another machine. No counter goes back: a message may be late, and
    /// a machine that was started again counts from zero.
    pub fn copy_from(&self, counts: PulseCounts, waits_for: Option<WaitKind>) {
        let PulseCounts { beats, tool_calls_started, tool_calls_ended, text_deltas, text_bytes, output_bytes } = counts;
        for (counter, value) in [
            (&self.0.beats, beats),
            (&self.0.tool_calls_started, tool_calls_started),
            (&self.0.tool_calls_ended, tool_calls_ended),
            (&self.0.text_deltas, text_deltas),
            (&self.0.text_bytes, text_bytes),
            (&self.0.output_bytes, output_bytes),
        ] {
            counter.fetch_max(value, Ordering::Relaxed);
        }
        for (kind, count) in WaitKind::ALL.into_iter().zip(&self.0.waits) {
            count.store(u32::from(waits_for == Some(kind)), Ordering::Relaxed);
        }
    }

    /// Returns what the attempt waits for, or `None` if the host does not know of a wait. Of several waits, the most
    /// informative is returned.
    pub fn waits_for(&self) -> Option<WaitKind> {
        let waits = self.0.waits.iter().map(|count| count.load(Ordering::Relaxed));
        WaitKind::ALL.into_iter().zip(waits).find(|(_, count)| *count > 0).map(|(kind, _)| kind)
    }

    /// Returns the counters.
    pub fn counts(&self) -> PulseCounts {
        let Cells { beats, tool_calls_started, tool_calls_ended, text_deltas, text_bytes, output_bytes, .. } = &*self.0;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PulseCounts {
            beats: read(beats),
            tool_calls_started: read(tool_calls_started),
            tool_calls_ended: read(tool_calls_ended),
            text_deltas: read(text_deltas),
            text_bytes: read(text_bytes),
            output_bytes: read(output_bytes),
        }
    }
}

/// Two pulses are equal if they share their counters.
impl PartialEq for Pulse {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Pulse {}

/// A wait that the host knows. It ends when the guard is dropped.
#[derive(Debug)]
pub struct WaitGuard {
    pulse: Pulse,
    kind: WaitKind,
}

impl WaitGuard {
    fn cell(&self) -> &AtomicU32 {
        &self.pulse.0.waits[WaitKind::ALL.iter().position(|kind| *kind == self.kind).unwrap_or(0)]
    }
}

impl Drop for WaitGuard {
    fn drop(&mut self) {
        self.cell().fetch_sub(1, Ordering::Relaxed);
        self.pulse.beat();
    }
}

/// A command or a request to a tool server. It ends when the guard is dropped.
#[derive(Debug)]
pub struct ToolCallGuard(Pulse);

impl Drop for ToolCallGuard {
    fn drop(&mut self) {
        add(&self.0.0.tool_calls_ended, 1);
        self.0.beat();
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_observation_changes_the_beats() {
        let pulse = Pulse::default();
        let mut before = pulse.counts();
        let mut changed = |what: &str, observe: &dyn Fn()| {
            observe();
            let counts = pulse.counts();
            assert_ne!(counts.beats, before.beats, "{what}");
            before = counts;
        };
        changed("beat", &|| pulse.beat());
        changed("call", &|| drop(pulse.tool_call()));
        changed("text", &|| pulse.text_delta(7));
        changed("output", &|| pulse.output(9));
        changed("wait", &|| drop(pulse.wait(WaitKind::Model)));
        let counts = pulse.counts();
        assert_eq!((counts.tool_calls_started, counts.tool_calls_ended), (1, 1));
        assert_eq!((counts.text_deltas, counts.text_bytes, counts.output_bytes), (1, 7, 9));
        pulse.output(0);
        assert_eq!(pulse.counts(), counts, "no byte is no sign of life");
    }

    #[test]
    fn the_most_informative_of_several_waits_is_shown_until_it_ends() {
        let pulse = Pulse::default();
        assert_eq!(pulse.waits_for(), None);
        let (sandbox, model, other) =
            (pulse.wait(WaitKind::Sandbox), pulse.wait(WaitKind::Model), pulse.clone().wait(WaitKind::Model));
        let retry = pulse.wait(WaitKind::ModelRetry);
        assert_eq!(pulse.waits_for(), Some(WaitKind::ModelRetry));
        drop(retry);
        drop(model);
        assert_eq!(pulse.waits_for(), Some(WaitKind::Model), "another request waits");
        drop(other);
        assert_eq!(pulse.waits_for(), Some(WaitKind::Sandbox));
        drop(sandbox);
        assert_eq!(pulse.waits_for(), None);
    }
}
