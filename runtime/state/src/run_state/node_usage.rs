//! The steps and the running time of each node, over all branches, visits and generations of a run.
//!
//! Time in which several attempts of a node run at the same time is counted once, as for the run. Times are those of
//! the journal. The time between the last record of a process and the resume is not included.

use glovebox_journal::event::{Event, NodeId};
use jiff::Timestamp;
use rpds::RedBlackTreeMapSync;
use std::time::Duration;

/// The usage of every node that took a step.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeUsages(RedBlackTreeMapSync<NodeId, NodeUsage>);

impl Default for NodeUsages {
    fn default() -> Self {
        Self(RedBlackTreeMapSync::new_sync())
    }
}

/// The usage of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeUsage {
    /// Number of visits and retries that began.
    pub steps: u64,
    /// Running time without that of the currently running attempts, milliseconds.
    ended_ms: u64,
    /// Number of running attempts.
    under_way: u32,
    /// Time at which the first of the running attempts was claimed; `None` if none is running.
    since: Option<Timestamp>,
}

impl NodeUsage {
    /// Returns the running time until `now`.
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

impl NodeUsages {
    /// Returns the usage of a node.
    pub fn of(&self, node: &NodeId) -> NodeUsage {
        self.0.get(node).copied().unwrap_or_default()
    }

    /// Counts a step of a node.
    pub(super) fn count_step(&mut self, event: &Event) {
        if let Some(node) = event.node() {
            self.update(node, |effort| effort.steps = effort.steps.saturating_add(1));
        }
    }

    /// Starts or stops the clock of a node when an attempt starts or ends.
    pub(super) fn count_time(&mut self, at: Timestamp, event: &Event) {
        if let Some(started) = event.stage_started() {
            self.update(&started.attempt.task.node, |effort| effort.begin(at));
        } else if let Some(finished) = event.stage_finished() {
            self.update(&finished.attempt.task.node, |effort| effort.end(at));
        } else if let Event::StageHeld(held) = event {
            self.update(&held.attempt.task.node, |effort| effort.end(at));
        }
    }

    /// Stops the clocks of all nodes at the last record of their process.
    pub(super) fn stop(&mut self, at: Timestamp) {
        let open: Vec<NodeId> =
            self.0.iter().filter(|(_, effort)| effort.under_way > 0).map(|(node, _)| node.clone()).collect();
        open.iter().for_each(|node| self.update(node, |effort| effort.stop(at)));
    }

    fn update(&mut self, node: &NodeId, change: impl FnOnce(&mut NodeUsage)) {
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
        let mut effort = NodeUsage::default();
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
