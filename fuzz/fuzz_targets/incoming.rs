//! Reads any bytes as the request of a program to its gateway.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| glovebox_models::gateway::fuzz::incoming(bytes));
