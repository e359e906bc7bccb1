//! Tests of record types: names in files, sums, and the rules of paths and scopes.

mod network;
mod paths;
mod placement;
mod sums;
mod words;
