//! Reads any bytes as the head of a request to the proxy.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| glovebox_jail::proxy::fuzz::request_head(bytes));
