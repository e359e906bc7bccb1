//! Formats any text with `fmt`. The meaning must stay the same, and formatting again must change nothing.
#![no_main]
#![allow(dead_code)] // Each target uses only one of the functions.

#[path = "../../runtime/pipeline/tests/check/total.rs"]
mod total;

libfuzzer_sys::fuzz_target!(|text: &str| total::check_format(text));
