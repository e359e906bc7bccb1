//! The hidden command that a host starts to compile a component: bytes on standard input, machine code on standard
//! output.
//!
//! The process confines itself before it reads a byte. Only [`crate::compiler`] starts it.

use crate::arguments::CompileArguments;
use crate::exit::{CommandResult, Exit, Stop};
use glovebox_host::compile::{CompileResult, serve};
use glovebox_jail::worker::confine;

/// Free memory in bytes below which a panic counts as out of memory.
const MEMORY_LEFT_MIN: usize = 1 << 20;

/// Compiles a component within the bounds of the argument.
pub fn compile(arguments: &CompileArguments) -> CommandResult {
    std::panic::set_hook(Box::new(|_| abort_without_memory()));
    confine(&arguments.bounds).map_err(|error| Stop::new(Exit::Internal, error.to_string()))?;
    match serve(std::io::stdin().lock(), std::io::stdout().lock()) {
        CompileResult::Compiled => Ok(Exit::Ok),
        CompileResult::Refused => Err(Stop::silent(Exit::Plugin)),
        CompileResult::OutOfMemory => Err(Stop::silent(Exit::Budget)),
        CompileResult::Broken => Err(Stop::silent(Exit::Internal)),
    }
}

/// Aborts if memory is exhausted, as a failed allocation does. Any other panic is caught later, and the parent process
/// prints its message.
fn abort_without_memory() {
    if Vec::<u8>::new().try_reserve_exact(MEMORY_LEFT_MIN).is_err() {
        std::process::abort();
    }
}
