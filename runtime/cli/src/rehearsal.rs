//! A rehearsal: runs a pipeline with fewer and fewer grants of one plugin, and compares what the plugin does.
//!
//! [`facts`] is what a run shows of the plugin. [`search`] decides which grants to leave out next; it knows no runs.

pub mod facts;
pub mod search;
