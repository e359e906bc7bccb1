//! Reads any bytes as signatures of a plugin and as lists of revocations.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| glovebox_signing::fuzz::signatures(bytes));
