//! Any text through parse, lower and lint: read or diagnosed, and what was read survives the round trip.
#![no_main]
#![allow(dead_code)] // Each target has one body of several.

#[path = "../../runtime/pipeline/tests/check/total.rs"]
mod total;

libfuzzer_sys::fuzz_target!(|text: &str| total::check(text));
