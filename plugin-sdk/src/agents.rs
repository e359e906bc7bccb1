//! Agent programs, such as the command line of a coding agent. The host starts the one that the node names in the stage's sandbox.

use crate::Failure;
use crate::imports::agents;

/// An event of a running program.
pub use crate::bindings::glovebox::plugin::agents::Event;
use crate::bindings::glovebox::plugin::agents::Task;

/// Maximum wait for an event, in milliseconds.
const WAIT_MS: u32 = 500;
/// Maximum number of events that are fetched at a time.
const EVENTS_MAX: u32 = 64;

/// Returns the programs that this stage may start: the one that its node names, if a provider's model answers in this run.
pub fn backends() -> Vec<String> {
    agents::backends()
}

/// Starts a program with a task, calls `on_step` for each step, and returns the program's final message.
///
/// # Errors
/// The failure of a program that could not be started or did not succeed.
pub fn run(backend: &str, prompt: &str, mut on_step: impl FnMut(&Event)) -> Result<String, Failure> {
    let task =
        Task { backend: backend.to_owned(), prompt: prompt.to_owned(), output_schema: None, options: Vec::new() };
    let session = agents::start(&task)?;
    loop {
        for event in session.next(EVENTS_MAX, WAIT_MS) {
            if event.kind == "done" {
                return Ok(event.text);
            }
            match event.failure {
                Some(failure) => return Err(failure),
                None => on_step(&event),
            }
        }
    }
}
