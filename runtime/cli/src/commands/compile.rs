//! The hidden command that a host starts to have a component compiled: bytes on standard input, machine code on standard output.
//!
//! It confines itself before it reads a byte. Only [`crate::compiler`] calls it.

use crate::arguments::CompileArguments;
use crate::exit::{Ended, Exit, Stop};
use glovebox_host::compile::{Served, serve};
use glovebox_sandbox::worker::confine;

/// Compiles, within the bounds of the argument.
pub fn compile(arguments: &CompileArguments) -> Ended {
    confine(&arguments.bounds).map_err(|error| Stop::new(Exit::Internal, error.to_string()))?;
    match serve(std::io::stdin().lock(), std::io::stdout().lock()) {
        Served::Compiled => Ok(Exit::Ok),
        Served::Refused => Err(Stop::silent(Exit::Plugin)),
        Served::OutOfMemory => Err(Stop::silent(Exit::Budget)),
        Served::Broken => Err(Stop::silent(Exit::Internal)),
    }
}
