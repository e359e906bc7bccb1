//! Compiling a component somebody else made, with an end.
//!
//! The compiler's time and memory grow faster than a function's length, and nobody can interrupt it. So long functions are
//! refused before it sees them, and it works on a thread that is no longer waited for when its time is over. It knows no store.

use crate::component::LoadError;
use crate::inspect::InspectError;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;
use wasmparser::{Parser, Payload};
use wasmtime::Engine;
use wasmtime::component::Component;

/// Longest time one component may take.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(120);

/// Longest function, bytes of its body.
const FUNCTION_BYTES_MAX: u64 = 1 << 20;

/// Stack of the compiling thread, as the main thread's.
const STACK_BYTES: usize = 8 << 20;

/// Compiles, or says why not within `time_max`. A compiler that was given up on goes on until it or the process ends, and
/// what it makes is dropped.
pub(crate) fn within(engine: &Engine, bytes: &[u8], time_max: Duration) -> Result<Component, LoadError> {
    check_functions(bytes)?;
    let refused = |problem: String| LoadError::Compile(problem);
    let (sender, receiver) = sync_channel(1);
    let (engine, bytes) = (engine.clone(), bytes.to_vec());
    let compile = move || {
        // Nobody listens any more when it took too long.
        let _ = sender.send(Component::from_binary(&engine, &bytes));
    };
    let thread = thread::Builder::new().name("glovebox-compile".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(compile).map_err(|problem| refused(format!("no thread to compile on: {problem}")))?;
    match receiver.recv_timeout(time_max) {
        Ok(code) => code.map_err(|problem| refused(format!("{problem:#}"))),
        Err(RecvTimeoutError::Timeout) => Err(LoadError::CompileTooSlow(time_max)),
        Err(RecvTimeoutError::Disconnected) => Err(refused("the compiler panicked".to_owned())),
    }
}

fn check_functions(bytes: &[u8]) -> Result<(), LoadError> {
    for payload in Parser::new(0).parse_all(bytes) {
        if let Payload::CodeSectionEntry(body) = payload.map_err(InspectError::from)? {
            let bytes = body.as_bytes().len() as u64;
            if bytes > FUNCTION_BYTES_MAX {
                return Err(LoadError::FunctionTooLarge { bytes, limit: FUNCTION_BYTES_MAX });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(function: &str) -> Vec<u8> {
        wat::parse_str(format!("(component (core module (func {function})))")).unwrap()
    }

    #[test]
    fn a_component_that_takes_too_long_is_given_up_on() {
        let bytes = component(&"i32.const 1 drop ".repeat(10_000));
        let given_up = within(&Engine::default(), &bytes, Duration::ZERO).err().unwrap();
        assert!(matches!(given_up, LoadError::CompileTooSlow(Duration::ZERO)), "{given_up}");
        assert!(within(&Engine::default(), &bytes, TIME_MAX).is_ok());
    }

    #[test]
    fn a_function_too_long_for_the_compiler_never_reaches_it() {
        let bytes = component(&"nop ".repeat(1 << 20));
        let refused = within(&Engine::default(), &bytes, TIME_MAX).err().unwrap();
        assert!(matches!(refused, LoadError::FunctionTooLarge { .. }), "{refused}");
    }
}
