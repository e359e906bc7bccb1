//! Passes any text through parser, lowering and lint. The text must be read or diagnosed, and a graph that was read must survive a
//! round trip.
#![no_main]
#![allow(dead_code)] // Each target uses only one of the functions.

#[path = "../../runtime/pipeline/tests/check/total.rs"]
mod total;

libfuzzer_sys::fuzz_target!(|text: &str| total::check(text));
