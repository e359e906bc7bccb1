//! Reads any bytes as a reference and as parts of a registry's answer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| glovebox_registry::fuzz::registry_answer(bytes));
