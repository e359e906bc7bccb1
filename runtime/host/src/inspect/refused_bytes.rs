//! Finds out why bytes are not valid: they are not WebAssembly, are truncated, have another version, or need a feature that is off.
//!
//! Used only after the validator has refused the bytes. To find the features that are needed, the bytes are validated without each
//! feature in turn. The text of an error is never examined. Nothing is compiled.

use crate::inspect::complexity::validate;
use crate::inspect::{InspectError, features};
use wasmparser::{BinaryReader, BinaryReaderError, WasmFeatures as F};

/// First bytes of every WebAssembly file.
const MAGIC: &[u8] = b"\0asm";
/// First bytes of every component.
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

/// Features that are off, with the names that users know.
const OFF: [(F, Feature); 8] = [
    (
        F::CM_ASYNC
            .union(F::CM_ASYNC_STACKFUL)
            .union(F::CM_MORE_ASYNC_BUILTINS)
            .union(F::CM_THREADING)
            .union(F::CM_ERROR_CONTEXT),
        Feature::Async,
    ),
    (F::MULTI_MEMORY, Feature::SeveralMemories),
    (F::MEMORY64.union(F::CM64), Feature::Memory64),
    (F::THREADS.union(F::SHARED_EVERYTHING_THREADS), Feature::Threads),
    (F::EXCEPTIONS.union(F::LEGACY_EXCEPTIONS), Feature::Exceptions),
    (F::FUNCTION_REFERENCES.union(F::GC).union(F::GC_TYPES).union(F::CM_GC), Feature::GarbageCollection),
    (F::RELAXED_SIMD, Feature::RelaxedSimd),
    (
        F::CM_VALUES.union(F::CM_NESTED_NAMES).union(F::CM_FIXED_LENGTH_LISTS).union(F::CM_MAP).union(F::CM_IMPLEMENTS),
        Feature::NewTypes,
    ),
];

/// A WebAssembly feature that this host does not support.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Async functions, streams and futures of the component model.
    Async,
    /// More than one memory in a module.
    SeveralMemories,
    /// Memories with 64-bit addresses.
    Memory64,
    /// Shared memory and atomics.
    Threads,
    /// Exceptions.
    Exceptions,
    /// Garbage collection and typed references.
    GarbageCollection,
    /// Relaxed SIMD.
    RelaxedSimd,
    /// Types and names of the component model that are not final yet.
    NewTypes,
}

impl Feature {
    /// Returns the name of the feature for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Async => "async functions of the component model",
            Self::SeveralMemories => "several memories in one module",
            Self::Memory64 => "64-bit memories",
            Self::Threads => "threads",
            Self::Exceptions => "exceptions",
            Self::GarbageCollection => "garbage collection or typed references",
            Self::RelaxedSimd => "relaxed SIMD",
            Self::NewTypes => "types or names of the component model that are not final",
        }
    }

    /// Returns help for building a component without the feature.
    pub fn help(self) -> &'static str {
        match self {
            Self::Async => "build it without async; componentize-qjs: `--sync`; wit-bindgen: no `async` option",
            Self::SeveralMemories => {
                "link it as modules with one memory each, without `wasm-merge` or `--enable-multimemory`"
            }
            Self::Memory64 => "build it for `wasm32-wasip2`",
            Self::Threads => "build it for `wasm32-wasip2`, without `-pthread` or `+atomics`",
            Self::Exceptions => "build it without exceptions; C++: `-fno-exceptions`; Rust: `panic = \"abort\"`",
            Self::GarbageCollection => "use a compiler that targets linear memory",
            Self::RelaxedSimd => "build it without `-mrelaxed-simd` or `+relaxed-simd`",
            Self::NewTypes => "build it from the WIT files of `wit/` with released tools",
        }
    }
}

/// Finds the reason why these bytes are not valid. If there is no better one, it is the validator's message.
pub(crate) fn explain(bytes: &[u8], error: BinaryReaderError) -> InspectError {
    if bytes.is_empty() {
        return InspectError::Empty;
    }
    if COMPONENT.starts_with(bytes) {
        return InspectError::CutOff;
    }
    if !bytes.starts_with(MAGIC) {
        return InspectError::NotWasm;
    }
    if !bytes.starts_with(COMPONENT) {
        return InspectError::OtherEncoding;
    }
    if is_cut_off(bytes) {
        return InspectError::CutOff;
    }
    let needed = needed(bytes);
    if needed.is_empty() { InspectError::Invalid(error) } else { InspectError::Features(needed) }
}

/// Returns true if a section is longer than the rest of the file.
fn is_cut_off(bytes: &[u8]) -> bool {
    let mut reader = BinaryReader::new(bytes, 0);
    if reader.read_bytes(COMPONENT.len()).is_err() {
        return true;
    }
    while !reader.eof() {
        let section = (reader.read_u8(), reader.read_var_u32());
        let (Ok(_), Ok(length)) = section else { return true };
        if reader.read_bytes(length as usize).is_err() {
            return true;
        }
    }
    false
}

/// Returns the features without which the component is not valid. Empty if it is not valid even with all features.
fn needed(bytes: &[u8]) -> Vec<Feature> {
    let all = OFF.iter().fold(features(), |all, (feature, _)| all | *feature);
    if validate(bytes, all).is_err() {
        return Vec::new();
    }
    let needed = OFF.iter().filter(|(feature, _)| validate(bytes, all - *feature).is_err());
    needed.map(|(_, feature)| *feature).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::inspect;

    #[track_caller]
    fn needs(text: &str, feature: Feature) {
        let error = inspect(&wat::parse_str(text).unwrap()).unwrap_err();
        assert!(matches!(&error, InspectError::Features(needed) if *needed == [feature]), "{error}");
        assert!(error.to_string().contains(feature.name()) && error.help().is_some(), "{error}");
    }

    #[test]
    fn the_feature_that_is_off_is_named_with_a_remedy() {
        needs("(component (core module (memory 1) (memory 1)))", Feature::SeveralMemories);
        needs("(component (core module (memory i64 1)))", Feature::Memory64);
        needs("(component (core module (memory 1 1 shared)))", Feature::Threads);
        needs("(component (core module (tag)))", Feature::Exceptions);
        needs("(component (core func (canon task.cancel)))", Feature::Async);
        needs("(component (core func (canon task.return)))", Feature::Async);
        needs("(component (core module (type (struct))))", Feature::GarbageCollection);
    }

    #[test]
    fn what_is_no_component_is_told_in_one_line() {
        let refused = |bytes: &[u8]| inspect(bytes).unwrap_err();
        assert!(matches!(refused(b""), InspectError::Empty));
        for cut in [&COMPONENT[..3], COMPONENT[..7].as_ref(), b"\0asm\x0d\0\x01\0\x01", b"\0asm\x0d\0\x01\0\x01\x7f."] {
            assert!(matches!(refused(cut), InspectError::CutOff), "{cut:?}");
        }
        for other in [&b"#!/bin/sh\n"[..], b"(component)", b"\x7fELF", b"\0as", b"\0ASM\x0d\0\x01\0"] {
            let error = refused(other);
            assert!(matches!(error, InspectError::NotWasm | InspectError::CutOff), "{other:?}: {error}");
        }
        assert!(matches!(refused(b"(component)"), InspectError::NotWasm));
        assert!(matches!(refused(b"\0asm\x0e\0\x01\0"), InspectError::OtherEncoding));
        assert!(matches!(refused(b"\0asm\x0d\0\x01\0\x01\x01."), InspectError::Invalid(_)));
        for error in [refused(b"garbage"), refused(b""), refused(b"\0asm\x0e\0\x01\0"), refused(&COMPONENT[..5])] {
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
}
