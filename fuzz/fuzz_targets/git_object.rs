//! Reads any bytes as objects of a git repository.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| glovebox_workspace::repository::fuzz::git_object(bytes));
