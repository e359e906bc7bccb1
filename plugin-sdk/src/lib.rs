//! Write a Glovebox plugin: implement [`Handler`], export it with [`export!`], build for `wasm32-wasip2`.
//!
//! Reading order: [`Stage`] is what a handler is told, [`Outcome`] is what it answers. The modules [`log`], [`control`],
//! [`artifact`], [`files`], [`exec`] and [`llm`] are the gloves: what none of them is used for is not imported by the
//! component, so its import list says what the plugin can ask for. `std::fs` works too where the operator grants `posix`.
//!
//! Lint rules and transforms of graphs are another kind of component: the feature `rules` in the place of the default features,
//! and the module `rules`.
//!
//! This crate knows no host: it compiles for the host target for tests of pure code, where every import call panics.
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
compile_error!("a component has stages or rules, not both: for rules turn the default features of this crate off");

#[cfg(any(feature = "rules", test))]
extern crate alloc;

#[cfg(feature = "stage")]
pub mod artifact;
#[cfg(feature = "stage")]
pub mod control;
#[cfg(feature = "stage")]
pub mod exec;
#[cfg(feature = "stage")]
pub mod files;
#[cfg(feature = "stage")]
pub mod llm;
#[cfg(feature = "stage")]
pub mod log;
#[cfg(feature = "stage")]
mod outcome;
#[cfg(any(feature = "rules", test))]
pub mod rules;
#[cfg(feature = "stage")]
mod stage;

#[cfg(feature = "stage")]
pub use outcome::Outcome;
pub use serde_json::{Value, json};
#[cfg(feature = "stage")]
pub use stage::Stage;

#[cfg(feature = "stage")]
/// What the bindings generator made of the WIT package: public because [`export!`] expands to its paths.
#[doc(hidden)]
#[allow(clippy::all, clippy::unwrap_used, missing_docs, unreachable_pub, unused_qualifications)]
pub mod bindings {
    wit_bindgen::generate!({ world: "agent", path: "../wit", pub_export_macro: true });
}

#[cfg(feature = "stage")]
/// Shared vocabulary of the contract (`glovebox:plugin/types`).
pub use bindings::glovebox::plugin::types::{Attempt, Edge, Failure, Mount, Status};

#[cfg(feature = "stage")]
/// Gives a node type its behaviour.
pub trait Handler {
    /// Does the stage's work. Called once per attempt in a fresh instance: statics do not survive.
    ///
    /// Failing is an [`Outcome`] too; a panic is reported by the host as a trap with the panic's text.
    fn execute(stage: Stage) -> Outcome;
}

#[cfg(feature = "stage")]
impl<H: Handler> bindings::exports::glovebox::plugin::stage::Guest for H {
    fn execute(input: bindings::glovebox::plugin::types::StageInput) -> bindings::glovebox::plugin::types::Outcome {
        <H as Handler>::execute(Stage::from(input)).into()
    }
}

#[cfg(feature = "stage")]
/// Exports a [`Handler`] as the component's `stage` interface and writes its manifest into the custom section
/// `glovebox:manifest`, where the host reads it without running anything.
///
/// The manifest is JSON with `name`, `version`, `description` and `wants`, in the vocabulary of `grants` in `glovebox.toml`;
/// `glovebox plugin inspect` shows it. On other targets than WebAssembly nothing is exported.
#[macro_export]
macro_rules! export {
    ($handler:ident, manifest = $manifest:expr) => {
        const _: fn($crate::Stage) -> $crate::Outcome = <$handler as $crate::Handler>::execute;
        #[cfg(target_family = "wasm")]
        const _: () = {
            const TEXT: &str = $manifest;
            #[unsafe(link_section = "glovebox:manifest")]
            static MANIFEST: [u8; TEXT.len()] = $crate::section_bytes(TEXT);
        };
        #[cfg(target_family = "wasm")]
        $crate::bindings::export!($handler with_types_in $crate::bindings);
    };
}

/// Copies a text into the array a link section needs; part of the macros that export.
#[doc(hidden)]
pub const fn section_bytes<const N: usize>(text: &str) -> [u8; N] {
    let (mut bytes, mut at) = ([0; N], 0);
    while at < N {
        bytes[at] = text.as_bytes()[at];
        at += 1;
    }
    bytes
}
