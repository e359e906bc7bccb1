//! What each node has taken of a run, in all of its branches, visits and generations: steps, and the time in which attempts were under way.
//!
//! Attempts of a node at the same time share their time, as those of a run do. Time is that of the journal; a pause before a resume does
//! not count, nor what a killed process did after its last record.

use glovebox_journal::event::{Event, NodeId};
use jiff::Timestamp;
use rpds::RedBlackTreeMapSync;
use std::time::Duration;

/// The effort of every node that took a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Efforts(RedBlackTreeMapSync<NodeId, NodeEffort>);

impl Default for Efforts {
    fn default() -> Self {
        Self(RedBlackTreeMapSync::new_sync())
    }
}

/// The usage of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeEffort {
    /// Visits and retries that began.
    pub steps: u64,
    /// Time of attempts that ended, milliseconds.
    ended_ms: u64,
    /// Attempts under way.
    under_way: u32,
    /// When the first of them was claimed.
    since: Option<Timestamp>,
}

impl NodeEffort {
    /// Time in which attempts were under way, until a moment.
    pub fn time(&self, now: Timestamp) -> Duration {
        let running = self.since.map_or(0, |since| now.as_millisecond().saturating_sub(since.as_millisecond()));
        Duration::from_millis(self.ended_ms.saturating_add(u64::try_from(running).unwrap_or(0)))
    }

    fn begin(&mut self, at: Timestamp) {
        self.since.get_or_insert(at);
        self.under_way = self.under_way.saturating_add(1);
    }

    fn end(&mut self, at: Timestamp) {
        self.under_way = self.under_way.saturating_sub(1);
        if self.under_way == 0 {
            self.stop(at);
        }
    }

    fn stop(&mut self, at: Timestamp) {
        let time = self.time(at);
        *self = Self {
            steps: self.steps,
            ended_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
            ..Self::default()
        };
    }
}

impl Efforts {
    /// The usage of a node.
    pub fn of(&self, node: &NodeId) -> NodeEffort {
        self.0.get(node).copied().unwrap_or_default()
    }

    /// Counts a step of a node.
    pub(super) fn count_step(&mut self, event: &Event) {
        if let Some(node) = event.node() {
            self.update(node, |effort| effort.steps = effort.steps.saturating_add(1));
        }
    }

    /// Begins and ends the time of an attempt.
    pub(super) fn count_time(&mut self, at: Timestamp, event: &Event) {
        if let Some(started) = event.stage_started() {
            self.update(&started.attempt.task.node, |effort| effort.begin(at));
        } else if let Some(finished) = event.stage_finished() {
            self.update(&finished.attempt.task.node, |effort| effort.end(at));
        }
    }

    /// Ends the time of all attempts with the last record of their process.
    pub(super) fn stop(&mut self, at: Timestamp) {
        let open: Vec<NodeId> =
            self.0.iter().filter(|(_, effort)| effort.under_way > 0).map(|(node, _)| node.clone()).collect();
        open.iter().for_each(|node| self.update(node, |effort| effort.stop(at)));
    }

    fn update(&mut self, node: &NodeId, change: impl FnOnce(&mut NodeEffort)) {
        let mut effort = self.of(node);
        change(&mut effort);
        match self.0.get_mut(node) {
            Some(known) => *known = effort,
            None => self.0.insert_mut(node.clone(), effort),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_at_the_same_time_share_it_and_a_pause_is_none() {
        let at = |ms| Timestamp::from_millisecond(ms).unwrap();
        let mut effort = NodeEffort::default();
        effort.begin(at(0));
        effort.begin(at(40));
        effort.end(at(60));
        assert_eq!(effort.time(at(90)), Duration::from_millis(90));
        effort.end(at(100));
        assert_eq!(effort.time(at(900)), Duration::from_millis(100));
        effort.begin(at(1_000));
        effort.stop(at(1_010));
        assert_eq!(effort.time(at(9_000)), Duration::from_millis(110));
    }
}
