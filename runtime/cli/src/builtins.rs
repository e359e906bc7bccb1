//! The built-in components. They are loaded like plugins, but their bytes are in the binary.
//!
//! Each one has the name of the handler that it implements, and is identified by its digest.

use glovebox_plan::prepare::component_host::Builtin;

/// Every built-in component.
pub const BUILTINS: [Builtin; 8] = [
    Builtin { name: "codergen", bytes: include_bytes!(concat!(env!("OUT_DIR"), "/codergen.wasm")) },
    Builtin { name: "diff-limits", bytes: include_bytes!(concat!(env!("OUT_DIR"), "/diff-limits.wasm")) },
    Builtin { name: "json-schema", bytes: include_bytes!(concat!(env!("OUT_DIR"), "/json-schema.wasm")) },
    Builtin { name: "junit", bytes: include_bytes!(concat!(env!("OUT_DIR"), "/junit.wasm")) },
    Builtin { name: "tool", bytes: include_bytes!(concat!(env!("OUT_DIR"), "/tool.wasm")) },
    Builtin { name: "tree-assert", bytes: include_bytes!(concat!(env!("OUT_DIR"), "/tree-assert.wasm")) },
    Builtin { name: "verification", bytes: include_bytes!(concat!(env!("OUT_DIR"), "/verification.wasm")) },
    Builtin { name: "verify", bytes: include_bytes!(concat!(env!("OUT_DIR"), "/verify.wasm")) },
];
