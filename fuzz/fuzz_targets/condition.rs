//! Parses any text as the condition of an edge.
#![no_main]
#![allow(dead_code)] // Each target uses only one of the functions.

#[path = "../../runtime/pipeline/tests/check/total.rs"]
mod total;

libfuzzer_sys::fuzz_target!(|text: &str| total::check_condition(text));
