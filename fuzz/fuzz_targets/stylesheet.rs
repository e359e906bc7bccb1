//! Parses any text as a model style sheet.
#![no_main]
#![allow(dead_code)] // Each target uses only one of the functions.

#[path = "../../runtime/pipeline/tests/check/total.rs"]
mod total;

libfuzzer_sys::fuzz_target!(|text: &str| total::check_stylesheet(text));
