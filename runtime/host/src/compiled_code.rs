//! Machine code of a component.

use wasmtime::Engine;

/// Maximum length of a compiled component, in bytes: about eight times the limit on a component.
pub const ARTEFACT_BYTES_MAX: u64 = 512 << 20;

/// Machine code that the compiler has produced from a component in this run of the program.
pub(crate) struct CompiledCode(Vec<u8>);

impl CompiledCode {
    /// Wraps the output of the compiler.
    pub(crate) fn new(code: Vec<u8>) -> Self {
        Self(code)
    }

    /// Compiles in this process and without limits. Only for bytes that are part of the program.
    pub(crate) fn of_own(engine: &Engine, bytes: &'static [u8]) -> wasmtime::Result<Self> {
        engine.precompile_component(bytes).map(Self)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}
