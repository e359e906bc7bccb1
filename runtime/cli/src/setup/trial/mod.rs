//! What a trial of a project's commands in the sandbox shows: why they failed, and the setting that fixes it.

mod diagnosis;
mod edit;
mod found;
mod pipeline;
#[cfg(test)]
mod tests;

pub use diagnosis::{Diagnosis, FailedTrial, Machine, diagnose};
pub use edit::Edit;
pub use pipeline::pipeline;
