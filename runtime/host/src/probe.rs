//! A tiny component that the host runs as a self-test before any other component.
//!
//! The probe finds out whether the pooling allocator works on this machine (address space, overcommit), and which error
//! wasmtime returns for a host call with too much data. That error has no public type.

use crate::aot::{self, AotStore, TrustedCode};
use crate::compiled_code::CompiledCode;
use glovebox_record::Digest;
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Error, Result, Store};

/// The binary form of `probe.wat`.
const PROBE: &[u8] = include_bytes!("probe.wasm");

/// Wasmtime's error for a host call with more data than `hostcall_bytes`.
#[derive(Debug, Clone)]
pub(crate) struct HostcallSizeError(String);

impl HostcallSizeError {
    /// Returns true if `error` is the error for a host call with too much data.
    pub(crate) fn is(&self, error: &Error) -> bool {
        error.root_cause().to_string() == self.0
    }
}

/// Runs the probe twice: with enough `hostcall_bytes`, and with none. Stores the compiled code.
pub(crate) fn run(engine: &Engine, store: Option<&AotStore>) -> Result<HostcallSizeError> {
    let component = code(engine, store)?;
    call(engine, &component, PROBE.len())?;
    match call(engine, &component, 0) {
        Err(error) => Ok(HostcallSizeError(error.root_cause().to_string())),
        Ok(()) => Err(Error::msg("the limit on the data of a host call does not work")),
    }
}

/// Returns the stored code, or compiles the probe in this process, because its bytes are part of the program.
fn code(engine: &Engine, store: Option<&AotStore>) -> Result<Component> {
    let digest = Digest::hash(PROBE);
    if let Some(Ok(Some(code))) = store.map(|store| store.find(engine, digest)) {
        return Ok(code);
    }
    let compiled = CompiledCode::of_own(engine, PROBE)?;
    if let Some(store) = store {
        store.keep(digest, &compiled);
    }
    Ok(aot::revive(engine, &TrustedCode::fresh(&compiled))?)
}

fn call(engine: &Engine, component: &Component, hostcall_bytes: usize) -> Result<()> {
    let mut store = Store::new(engine, ());
    store.set_epoch_deadline(u64::MAX / 2);
    store.set_hostcall_fuel(hostcall_bytes);
    let instance = Linker::new(engine).instantiate(&mut store, component)?;
    let ping = instance.get_typed_func::<(), (String,)>(&mut store, "ping")?;
    let (answer,) = ping.call(&mut store, ())?;
    if answer == "pong" { Ok(()) } else { Err(Error::msg("the probe component gave a wrong answer")) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_binary_is_the_text() {
        let built = wat::parse_str(include_str!("probe.wat")).unwrap();
        assert_eq!(built, super::PROBE, "probe.wasm is not what probe.wat says");
    }
}
