//! Any bytes as the beginning of a TLS connection through the proxy.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| glovebox_jail::proxy::fuzz::client_hello(bytes));
