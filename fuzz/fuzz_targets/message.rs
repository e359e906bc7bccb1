//! Reads any bytes as a line of a tool server.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| glovebox_host::tools::fuzz::message(bytes));
