//! The child pipeline of a node (spec §4.11, §9.4): its limits, the context keys that are passed in and out, and its supervision.

use super::Text;
use crate::condition::Condition;
use std::time::Duration;

/// Default of `manager.poll_interval` (spec §4.11).
pub const INTERVAL_DEFAULT: &str = "45s";
/// Default of `manager.max_cycles` (spec §4.11).
pub const CYCLES_DEFAULT: u32 = 1_000;
/// The context key in which a supervisor's instructions are passed to the child.
pub const STEERING_KEY: &str = "stack.steering";

/// The child pipeline of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Child {
    /// Path of the child's file, relative to the folder of the file that names it.
    pub file: Text,
    /// Goal of the child.
    pub goal: Text,
    /// Keys of the outer context that are copied into the child's context at its beginning.
    pub context_in: Vec<Text>,
    /// Keys of the child's context that are copied into the outer context if the child succeeds.
    pub context_out: Vec<Text>,
    /// Maximum number of steps of the child, if its file sets `max_steps`.
    pub steps_max: Option<u64>,
    /// Supervision of the child. `None` for a node that only runs the child.
    pub supervision: Option<Supervision>,
}

/// The supervision of a child pipeline (spec §4.11).
#[derive(Debug, Clone, PartialEq)]
pub struct Supervision {
    /// Time between two checks.
    pub interval: Duration,
    /// Maximum number of checks. After the last one, the supervisor fails.
    pub cycles_max: u32,
    /// The condition that ends the child early, with success.
    pub stop: Option<Condition>,
    /// The text that the first check writes into the child's context, for the models of the next stages. `None` without the
    /// action `steer`.
    pub steering: Option<Text>,
}
