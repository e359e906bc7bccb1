//! The heartbeats of one attempt, and the summary of its liveness for the record.
//!
//! Heartbeats need no timer: one is due at each extension of the lease. The loop that sends them has ended before the end of the
//! attempt is written.

use crate::liveness::LivenessStream;
use glovebox_jail::pulse::{Pulse, PulseCounts};
use glovebox_journal::event::Attempt;
use glovebox_journal::liveness::{LivenessEvent, LivenessLine};
use glovebox_record::LivenessTotals;
use jiff::Timestamp;
use std::time::Duration;

/// The heartbeats of one attempt.
pub(super) struct Heartbeats<'a> {
    stream: Option<&'a LivenessStream<'a>>,
    attempt: Attempt,
    pulse: Pulse,
    started_at: Timestamp,
    /// The counters at the last heartbeat.
    counts: PulseCounts,
    totals: LivenessTotals,
    /// Number of intervals so far.
    intervals: u64,
    silent_ms: u64,
}

impl<'a> Heartbeats<'a> {
    /// Creates the heartbeats of an attempt that begins now.
    pub(super) fn new(
        stream: Option<&'a LivenessStream<'a>>,
        attempt: Attempt,
        pulse: Pulse,
        started_at: Timestamp,
    ) -> Self {
        let (counts, totals) = (PulseCounts::default(), LivenessTotals::default());
        Self { stream, attempt, pulse, started_at, counts, totals, intervals: 0, silent_ms: 0 }
    }

    /// Notes that an interval has passed, and sends a heartbeat if something moved in it or the host knows of a wait.
    pub(super) fn beat(&mut self, now: Timestamp, interval: Duration) {
        let interval_ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        self.intervals += 1;
        let (counts, waits_for) = (self.pulse.counts(), self.pulse.waits_for());
        if counts.beats == self.counts.beats && waits_for.is_none() {
            self.silent_ms += interval_ms;
            self.totals.longest_silence_ms = self.totals.longest_silence_ms.max(self.silent_ms);
            return;
        }
        self.silent_ms = 0;
        self.totals.heartbeats += 1;
        if let Some(kind) = waits_for {
            *self.totals.waited_ms.entry(kind).or_default() += interval_ms;
        }
        let mut lines = Vec::new();
        if self.totals.heartbeats == 1 {
            lines.push(self.line(LivenessEvent::StageAttemptStart, self.started_at));
        }
        lines.extend(self.counted(now, counts));
        let output = counts.output_bytes - self.counts.output_bytes;
        let heartbeat = self.line(LivenessEvent::StageHeartbeat, now);
        lines.push(LivenessLine { waits_for, bytes: (output > 0).then_some(output), ..heartbeat });
        self.counts = counts;
        self.send(&lines);
    }

    /// Writes the end of the attempt if it had a heartbeat. Returns the summary, or `None` for an attempt that was shorter
    /// than one interval.
    pub(super) fn end(mut self, now: Timestamp) -> Option<LivenessTotals> {
        if self.intervals == 0 {
            return None;
        }
        let counts = self.pulse.counts();
        if self.totals.heartbeats > 0 {
            let mut lines: Vec<LivenessLine> = self.counted(now, counts).collect();
            lines.push(self.line(LivenessEvent::StageAttemptEnd, now));
            self.send(&lines);
        }
        self.totals.tool_calls = counts.tool_calls_started;
        self.totals.text_deltas = counts.text_deltas;
        self.totals.text_bytes = counts.text_bytes;
        self.totals.output_bytes = counts.output_bytes;
        Some(self.totals)
    }

    /// Returns a line for each counted event since the last heartbeat.
    fn counted(&self, now: Timestamp, counts: PulseCounts) -> impl Iterator<Item = LivenessLine> + use<> {
        let last = self.counts;
        let text_bytes = counts.text_bytes - last.text_bytes;
        let counted = [
            (LivenessEvent::ApiToolCallStart, counts.tool_calls_started - last.tool_calls_started, 0),
            (LivenessEvent::ApiToolCallEnd, counts.tool_calls_ended - last.tool_calls_ended, 0),
            (LivenessEvent::ApiAssistantTextDelta, counts.text_deltas - last.text_deltas, text_bytes),
        ];
        let line = |(event, count, bytes): (LivenessEvent, u64, u64)| LivenessLine {
            count: Some(count),
            bytes: (bytes > 0).then_some(bytes),
            ..self.line(event, now)
        };
        let lines = counted.map(|one| (one.1 > 0).then(|| line(one)));
        lines.into_iter().flatten()
    }

    fn line(&self, event: LivenessEvent, at: Timestamp) -> LivenessLine {
        LivenessLine::of_attempt(event, at, &self.attempt)
    }

    fn send(&self, lines: &[LivenessLine]) {
        self.stream.iter().for_each(|stream| stream.write(lines));
    }
}
