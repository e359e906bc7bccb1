//! The built-in components: the same kind of thing as a plugin, only that their bytes come with the binary.
//!
//! They are named by the handler they implement and identified by their digest like any other.

/// A component that comes with the binary.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// The handler it implements.
    pub name: &'static str,
    /// The component.
    pub bytes: &'static [u8],
}

/// Every built-in component.
pub const BUILTINS: [Builtin; 3] = [
    Builtin { name: "codergen", bytes: include_bytes!(concat!(env!("OUT_DIR"), "/codergen.wasm")) },
    Builtin { name: "tool", bytes: include_bytes!(concat!(env!("OUT_DIR"), "/tool.wasm")) },
    Builtin { name: "verify", bytes: include_bytes!(concat!(env!("OUT_DIR"), "/verify.wasm")) },
];
