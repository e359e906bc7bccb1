//! Write a Glovebox plugin: implement [`Handler`], export it with [`export!`], build for `wasm32-wasip2`.
//!
//! Reading order: [`Stage`] is the input of a handler, and [`Outcome`] is what it returns. The modules [`log`], [`control`],
//! [`artifact`], [`files`], [`exec`], [`llm`], [`tools`] and [`agents`] call the host; [`pattern`] matches paths. A component imports
//! only the modules that it uses, so its imports show what the plugin can ask for. `std::fs` works too if the operator grants
//! `posix`.
//!
//! A component can provide tools to agents instead: see the module [`provider`].
//!
//! Custom rules and policies are other kinds of components. They use the feature `rules` instead of the default features, and the module
//! `rules` or `policy`.
//!
//! On other targets the crate is for tests: in a native `cargo test`, the module `testing` answers the calls of a handler.
//!
//! ```no_run
//! use glovebox_plugin_sdk::{Handler, Outcome, Stage, export};
//!
//! struct Greeter;
//!
//! impl Handler for Greeter {
//!     fn execute(stage: Stage) -> Outcome {
//!         Outcome::success().notes(format!("hello from {}", stage.node_id())).set("greeted", true)
//!     }
//! }
//!
//! export!(Greeter, manifest = r#"{"name":"acme.greeter","version":"0.1.0","description":"Says hello.","wants":{}}"#);
//! # fn main() {}
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(not(feature = "stage"), no_std)]

#[cfg(all(feature = "stage", feature = "rules", target_family = "wasm"))]
compile_error!(
    "a component has stages or rules, not both: for rules, set `default-features = false` for glovebox-plugin-sdk in Cargo.toml"
);

#[cfg(any(feature = "rules", test))]
extern crate alloc;

#[cfg(feature = "stage")]
pub mod agents;
#[cfg(feature = "stage")]
pub mod artifact;
#[cfg(feature = "stage")]
pub mod control;
#[cfg(feature = "stage")]
pub mod exec;
#[cfg(feature = "stage")]
mod extra;
#[cfg(feature = "stage")]
pub mod files;
#[cfg(feature = "stage")]
pub mod llm;
#[cfg(feature = "stage")]
pub mod log;
#[cfg(feature = "stage")]
mod outcome;
#[cfg(feature = "stage")]
pub mod pattern;
#[cfg(feature = "stage")]
pub mod plan;
#[cfg(any(feature = "rules", test))]
pub mod policy;
#[cfg(feature = "stage")]
pub mod provider;
#[cfg(any(feature = "rules", test))]
pub mod rules;
#[cfg(feature = "stage")]
mod scope;
#[cfg(feature = "stage")]
mod stage;
#[cfg(feature = "stage")]
pub mod test_files;
#[cfg(all(feature = "stage", not(target_family = "wasm")))]
pub mod testing;
#[cfg(all(feature = "stage", not(target_family = "wasm")))]
mod testing_imports;
#[cfg(feature = "stage")]
pub mod tools;
#[cfg(feature = "stage")]
mod words;

#[cfg(feature = "stage")]
pub use outcome::Outcome;
#[cfg(feature = "stage")]
pub use scope::WriteScope;
pub use serde_json::{Value, json};
#[cfg(feature = "stage")]
pub use stage::Stage;

#[cfg(feature = "stage")]
/// The generated bindings of the WIT package. They are public because [`export!`] expands to their paths.
#[doc(hidden)]
#[allow(clippy::all, clippy::unwrap_used, missing_docs, unreachable_pub, unused_qualifications)]
pub mod bindings {
    wit_bindgen::generate!({ world: "agent", path: "../wit", pub_export_macro: true });
}

/// The functions of the host. In a test, `testing_imports` replaces them.
#[cfg(all(feature = "stage", not(target_family = "wasm")))]
use testing_imports as imports;
#[cfg(all(feature = "stage", target_family = "wasm"))]
mod imports {
    pub(crate) use crate::bindings::glovebox::plugin::{agents, control, exec, files, llm, tools};
}

#[cfg(feature = "stage")]
/// Types of the contract (`glovebox:plugin/types`).
pub use bindings::glovebox::plugin::types::{Attempt, CommandScope, Edge, Failure, Mount, Status};

#[cfg(feature = "stage")]
/// Executes the nodes that name this plugin.
pub trait Handler {
    /// Executes the stage. The host calls this once for each attempt, in a new instance: statics do not survive.
    ///
    /// A failure is also an [`Outcome`]. The host reports a panic as a trap with the panic's message.
    fn execute(stage: Stage) -> Outcome;
}

#[cfg(feature = "stage")]
impl<H: Handler> bindings::exports::glovebox::plugin::stage::Guest for H {
    fn execute(input: bindings::glovebox::plugin::types::StageInput) -> bindings::glovebox::plugin::types::Outcome {
        <H as Handler>::execute(Stage::from(input)).into()
    }
}

#[cfg(feature = "stage")]
/// Exports a [`Handler`] as the component's `stage` interface, and writes its manifest into the custom section `glovebox:manifest`.
/// The host reads it there without executing the component. Without `manifest`, `glovebox plugin build` writes the manifest, from
/// the project's `plugin.toml`.
///
/// The manifest is JSON with `name`, `version`, `description` and `wants`. `wants` has the same fields as `grants` in `glovebox.toml`.
/// `glovebox plugin inspect` shows the manifest. On targets other than WebAssembly, the macro exports nothing.
#[macro_export]
macro_rules! export {
    ($handler:ident) => {
        const _: fn($crate::Stage) -> $crate::Outcome = <$handler as $crate::Handler>::execute;
        #[cfg(target_family = "wasm")]
        $crate::bindings::export!($handler with_types_in $crate::bindings);
    };
    ($handler:ident, manifest = $manifest:expr) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            const TEXT: &str = $manifest;
            #[unsafe(link_section = "glovebox:manifest")]
            static MANIFEST: [u8; TEXT.len()] = $crate::section_bytes(TEXT);
        };
        $crate::export!($handler);
    };
}

/// Copies a text into an array for a link section. Used by the export macros.
#[doc(hidden)]
pub const fn section_bytes<const N: usize>(text: &str) -> [u8; N] {
    let (mut bytes, mut at) = ([0; N], 0);
    while at < N {
        bytes[at] = text.as_bytes()[at];
        at += 1;
    }
    bytes
}
