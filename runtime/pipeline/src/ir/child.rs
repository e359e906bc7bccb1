//! The child pipeline of a node (spec §4.11, §9.4): its bounds, the context keys passed in and out, and its supervision.

use super::Text;
use crate::condition::Condition;
use std::time::Duration;

/// Default of `manager.poll_interval` (spec §4.11).
pub const INTERVAL_DEFAULT: &str = "45s";
/// Default of `manager.max_cycles` (spec §4.11).
pub const CYCLES_DEFAULT: u32 = 1_000;
/// The context key of a child with the instructions of its supervisor.
pub const STEERING_KEY: &str = "stack.steering";

/// The child pipeline of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Child {
    /// Its file, from the folder of the file that names it.
    pub file: Text,
    /// Its goal.
    pub goal: Text,
    /// The keys of the context that it begins with.
    pub context_in: Vec<Text>,
    /// The keys of its context that the pipeline around it gets when it has succeeded.
    pub context_out: Vec<Text>,
    /// The most stages that it may visit (`max_steps` of its file), if its file limits them.
    pub steps_max: Option<u64>,
    /// Its supervision; none for a node that only runs it.
    pub supervision: Option<Supervision>,
}

/// The supervision of a child pipeline (spec §4.11).
#[derive(Debug, Clone, PartialEq)]
pub struct Supervision {
    /// The time between two checks.
    pub interval: Duration,
    /// The most checks; the supervisor fails with the last one.
    pub cycles_max: u32,
    /// Ends the child early, with success, when it holds.
    pub stop: Option<Condition>,
    /// The text that the first check writes into the child's context, for the models of its next stages; none without `steer`.
    pub steering: Option<Text>,
}
