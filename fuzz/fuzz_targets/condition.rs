//! Any text as an edge's condition.
#![no_main]
#![allow(dead_code)] // Each target has one body of several.

#[path = "../../runtime/pipeline/tests/check/total.rs"]
mod total;

libfuzzer_sys::fuzz_target!(|text: &str| total::check_condition(text));
