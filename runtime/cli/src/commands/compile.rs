//! The hidden command that a host starts to have a component compiled: bytes on standard input, machine code on standard output.
//!
//! It confines itself before it reads a byte. Only [`crate::compiler`] calls it.

use crate::arguments::CompileArguments;
use crate::exit::{CommandResult, Exit, Stop};
use glovebox_host::compile::{CompileResult, serve};
use glovebox_jail::worker::confine;

/// With less memory than this left, a panic counts as the lack of it.
const MEMORY_LEFT_MIN: usize = 1 << 20;

/// Compiles, within the bounds of the argument.
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

/// A panic of the compiler is a reason that the parent prints. One without memory ends like a failed allocation: by abort.
fn abort_without_memory() {
    if Vec::<u8>::new().try_reserve_exact(MEMORY_LEFT_MIN).is_err() {
        std::process::abort();
    }
}
