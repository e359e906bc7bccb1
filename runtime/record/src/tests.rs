//! What the types of a record promise to those who read one: words, sums, and the rules of paths and scopes.

mod network;
mod paths;
mod sums;
mod words;
