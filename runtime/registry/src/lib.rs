//! Plugins in OCI registries, and the folder of this user in which pulled plugins are kept.
//!
//! A [`Reference`](reference::Reference) names a plugin in a registry. A [`Client`](client::Client) pulls and pushes it, with the
//! credentials of the user's container programs. The [`Store`](store::Store) has the pulled bytes by their digest. Nothing of an
//! answer is trusted: every length and time is limited, redirects are followed only for content that has a digest, and bytes are
//! used only if their digest is the expected one.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod client;
pub mod credential;
pub mod document;
pub mod error;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod reference;
pub mod referrers;
pub mod sha256;
pub mod store;

mod artifact;
mod authorization;
mod body;
mod exchange;
mod origin;
mod paging;
mod session;

pub use artifact::{Annotations, ComponentInterface};
