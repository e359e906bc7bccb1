//! Untrusted components: load, digest, grants, limits, one call at a time.
//!
//! `wasmtime` appears only here. This crate knows no graph, no journal and no retry; it is handed a [`call::Call`] and gives
//! back a [`call::Report`].

#![deny(unsafe_code)]

pub mod digest;
pub mod outcome;

pub mod grants;
pub mod limits;
pub mod model;

pub mod provided;

pub mod call;
pub mod component;
pub mod inspect;
