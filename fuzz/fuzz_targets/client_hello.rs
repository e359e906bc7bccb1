//! Passes any bytes to the proxy as the beginning of a TLS connection.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| glovebox_jail::proxy::fuzz::client_hello(bytes));
