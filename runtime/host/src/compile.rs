//! Compiles an untrusted component in a child process of this program, within limits.
//!
//! The compiler's time and memory grow faster than its input, and a running compilation cannot be interrupted. The
//! kernel limits the child's address space, processor time and output, and the child can only compute and write its
//! output. That output is machine code, which the host must trust. A component that exploits a bug of the compiler
//! could make it emit wrong code in any process. In the child, such a component gains no further access: the child sees
//! one component and no key, and its output is stored and executed only as that component. `plan`, `check` and the
//! making of a lock file never execute it. [`Compiler::InProcess`] has no such protection, and is for tests and benches
//! only.

pub use crate::compiled_code::ARTEFACT_BYTES_MAX;
use crate::compiled_code::CompiledCode;
use crate::engine;
use crate::load_error::LoadError;
use glovebox_jail::worker::{Worker, WorkerBounds, WorkerError, WorkerReply};
use glovebox_names::visible;
use std::any::Any;
use std::io::{self, Read, Write};
use std::thread;
use std::time::Duration;
use wasmtime::Engine;

/// Exit code of a child that compiled the component.
const COMPILED: i32 = 0;
/// Exit code of a child whose compiler refused the component. The child's output is the reason.
const REFUSED: i32 = 7;

/// Exit code of a child that could not allocate memory for its input or its thread.
const OUT_OF_MEMORY: i32 = 5;

/// The error if there is not enough memory for the compiler's stack.
const NO_THREAD: &str = "the compiler's thread cannot start";

/// Maximum length of a reason that is shown, in bytes.
const REASON_BYTES_MAX: usize = 2 << 10;

/// Stack size of the compiling thread, the same as that of a main thread.
const STACK_BYTES: usize = 8 << 20;

/// The process in which components are compiled.
#[derive(Debug, Clone)]
pub enum Compiler {
    /// A child of this program that calls [`serve`], within the bounds.
    Child(Worker, CompileBounds),
    /// This process, without limits. For tests and benches; the binary never uses it.
    InProcess,
}

/// Limits on compiling one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileBounds {
    /// Maximum address space of the child.
    pub memory_bytes: u64,
    /// Maximum processor time. The limit on wall time is twice as high.
    pub cpu_seconds: u64,
}

/// Environment variable with the bound on the compiler's memory.
pub const MEMORY_BOUND: &str = "GLOVEBOX_COMPILE_MEMORY";
/// Environment variable with the bound on the compiler's time.
pub const TIME_BOUND: &str = "GLOVEBOX_COMPILE_TIME";

impl Default for CompileBounds {
    fn default() -> Self {
        Self { memory_bytes: 2 << 30, cpu_seconds: 120 }
    }
}

impl Compiler {
    /// Compiles a validated component. If a bound is exceeded, the error names it.
    pub(crate) fn compile(&self, engine: &Engine, bytes: &[u8]) -> Result<CompiledCode, LoadError> {
        match self {
            Self::InProcess => compiled(engine, bytes).map(CompiledCode::new).map_err(LoadError::Compile),
            Self::Child(worker, bounds) => {
                let answer = worker.work(bytes, &bounds.of_worker()).map_err(|error| bounds.error(&error))?;
                if answer.code == OUT_OF_MEMORY { Err(bounds.error(&WorkerError::Memory)) } else { parsed(answer) }
            }
        }
    }
}

impl CompileBounds {
    fn of_worker(self) -> WorkerBounds {
        WorkerBounds {
            memory_bytes: self.memory_bytes,
            cpu_seconds: self.cpu_seconds,
            // On a busy machine the child gets little processor time, so a limit on processor time alone could take too long.
            wall: Duration::from_secs(self.cpu_seconds.saturating_mul(2)),
            answer_bytes: ARTEFACT_BYTES_MAX,
        }
    }

    fn error(self, error: &WorkerError) -> LoadError {
        let over = |bound, limit| LoadError::CompileOver { bound, limit };
        let seconds = |seconds: u64| format!("{seconds} s");
        match error {
            WorkerError::Memory => over(MEMORY_BOUND, format!("{} MiB of memory", self.memory_bytes >> 20)),
            WorkerError::Cpu => over(TIME_BOUND, seconds(self.cpu_seconds) + " of processor time"),
            WorkerError::Wall => over(TIME_BOUND, seconds(self.of_worker().wall.as_secs())),
            WorkerError::Answer => {
                over("ARTEFACT_BYTES_MAX", format!("{} MiB of machine code", ARTEFACT_BYTES_MAX >> 20))
            }
            WorkerError::Signal(_) | WorkerError::Io { .. } => LoadError::Compiler(error.to_string()),
        }
    }
}

fn parsed(answer: WorkerReply) -> Result<CompiledCode, LoadError> {
    match answer.code {
        COMPILED => Ok(CompiledCode::new(answer.bytes)),
        REFUSED => {
            let reason = &answer.bytes[..answer.bytes.len().min(REASON_BYTES_MAX)];
            Err(LoadError::Compile(visible::block(&String::from_utf8_lossy(reason)).into_owned()))
        }
        code => Err(LoadError::Compiler(format!("the compiler failed (exit {code})"))),
    }
}

/// The result of the child. The parent learns it from the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompileResult {
    /// Exit code 0: the child wrote machine code.
    Compiled,
    /// Exit code 7: the child wrote why the component does not compile.
    Refused,
    /// Exit code 5: there was not enough memory for the input or the thread.
    OutOfMemory,
    /// Any other exit code: the child could not read or write.
    Broken,
}

/// Runs in the child: reads a component and writes its machine code. The process must be confined before this call.
pub fn serve(mut input: impl Read, mut output: impl Write) -> CompileResult {
    let mut bytes = Vec::new();
    match input.read_to_end(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::OutOfMemory => return CompileResult::OutOfMemory,
        Err(_) => return CompileResult::Broken,
        Ok(_) => {}
    }
    let answer =
        engine::compiler().map_err(|problem| format!("{problem:#}")).and_then(|engine| compiled(&engine, &bytes));
    let (served, written) = match &answer {
        Err(reason) if reason == NO_THREAD => return CompileResult::OutOfMemory,
        Ok(code) => (CompileResult::Compiled, code.as_slice()),
        Err(reason) => (CompileResult::Refused, &reason.as_bytes()[..reason.len().min(REASON_BYTES_MAX)]),
    };
    if output.write_all(written).and_then(|()| output.flush()).is_ok() { served } else { CompileResult::Broken }
}

/// Compiles on a separate thread, so that the stack size does not depend on the caller.
fn compiled(engine: &Engine, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let compile = || engine.precompile_component(bytes).map_err(|problem| format!("{problem:#}"));
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("glovebox-compile".to_owned()).stack_size(STACK_BYTES);
        let compiling = thread.spawn_scoped(scope, compile).map_err(|_| NO_THREAD.to_owned())?;
        compiling.join().unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
    })
}

/// Returns the message of a panic in the compiler as one line.
fn panicked(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
    format!("the compiler has a bug: {}", text.unwrap_or("it panicked without a message"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(function: &str) -> Vec<u8> {
        wat::parse_str(format!("(component (core module (func {function})))")).unwrap()
    }

    #[test]
    fn what_a_child_makes_is_for_the_engine_of_its_parent() {
        let parent = engine::prepare(1, &|_| None).unwrap().0;
        let mut made = Vec::new();
        assert_eq!(serve(&component("nop")[..], &mut made), CompileResult::Compiled);
        assert!(Engine::detect_precompiled(&made).is_some());
        let compiled = parsed(WorkerReply { code: COMPILED, bytes: made }).unwrap();
        assert!(crate::aot::revive(&parent.engine, &crate::aot::TrustedCode::fresh(&compiled)).is_ok());
    }

    /// A component whose nested component receives a string from it, so that the string is copied from one memory to another.
    const NESTED: &str = r#"(component
      (component $inner
        (core module $m (memory (export "memory") 1)
          (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0))
          (func (export "take") (param i32 i32)))
        (core instance $i (instantiate $m))
        (func (export "take") (param "text" string)
          (canon lift (core func $i "take") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))
      (instance $inner (instantiate $inner))
      (core module $libc (memory (export "memory") 1))
      (core instance $libc (instantiate $libc))
      (core func $take (canon lower (func $inner "take") (memory (core memory $libc "memory"))))
      (core module $main (import "" "take" (func (param i32 i32))))
      (core instance (instantiate $main (with "" (instance (export "take" (func $take)))))))"#;

    #[test]
    fn nested_components_that_call_each_other_compile() {
        let bytes = wat::parse_str(NESTED).unwrap();
        assert!(crate::inspect::inspect(&bytes).is_ok());
        assert!(compiled(&engine::compiler().unwrap(), &bytes).is_ok());
    }

    #[test]
    fn a_panic_of_the_compiler_is_a_reason() {
        let panic = std::panic::catch_unwind(|| panic!("at {}", "once")).unwrap_err();
        assert_eq!(panicked(panic.as_ref()), "the compiler has a bug: at once");
    }

    #[test]
    fn a_reason_is_text_and_short() {
        let mut made = Vec::new();
        assert_eq!(serve(&b"\0asm"[..], &mut made), CompileResult::Refused);
        let long = WorkerReply { code: REFUSED, bytes: [b"\x1b[2J".as_slice(), &[b'x'; 1 << 20]].concat() };
        let Err(LoadError::Compile(text)) = parsed(long) else { panic!("refused") };
        assert!(text.starts_with("\\x1b[2J") && text.len() < 2 * REASON_BYTES_MAX, "{text}");
        assert!(matches!(parsed(WorkerReply { code: 70, bytes: Vec::new() }), Err(LoadError::Compiler(_))));
    }
}
