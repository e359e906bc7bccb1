//! From the reason for which a command stops to the problem of an answer.

use crate::exit::{Exit, Stop};
use glovebox_serve::desk::Problem;

/// Returns the problem of a command that stopped.
pub(super) fn problem(stop: Stop) -> Problem {
    with_status(status(stop.exit), stop)
}

/// As [`problem`], but an answer that came too late is a conflict.
pub(super) fn problem_of_answer(stop: Stop) -> Problem {
    let status = if stop.exit == Exit::Policy { 409 } else { status(stop.exit) };
    with_status(status, stop)
}

fn with_status(status: u16, stop: Stop) -> Problem {
    let Stop { exit, message, help, .. } = stop;
    Problem { help, exit: Some(exit.code()), ..Problem::new(status, exit.name(), message) }
}

/// Returns the status of an answer for an exit code.
pub(super) fn status(exit: Exit) -> u16 {
    match exit {
        Exit::Ok => 200,
        Exit::Usage => 400,
        Exit::Policy => 403,
        Exit::RunFailed | Exit::Unverified | Exit::Budget | Exit::Paused | Exit::Mismatch => 409,
        Exit::Invalid | Exit::Plugin => 422,
        Exit::Provider => 502,
        Exit::Transient => 503,
        Exit::Internal | Exit::Interrupted | Exit::Terminated => 500,
    }
}
