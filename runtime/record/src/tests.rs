//! Properties of record types: words, sums, and the rules of paths and scopes.

mod network;
mod paths;
mod sums;
mod words;
