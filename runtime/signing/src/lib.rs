//! Signatures: who vouches for a run or a plugin, and which plugins must not run any more.
//!
//! [`key`] has Ed25519 keys and [`envelope`] the DSSE envelopes of everything that is signed. [`plugin`] is the signature of a
//! plugin, and [`provenance`] says how it was built. [`trust`] decides whether a plugin has the signature that the operator requires. [`revocation`] reads the lists of
//! components that were revoked. [`sealed_box`] encrypts a few bytes for the holder of one key.
//!
//! All of it is a function of bytes: this crate opens no file and reads no clock.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod envelope;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod key;
pub mod plugin;
pub mod provenance;
pub mod revocation;
pub mod sealed_box;
pub mod trust;
