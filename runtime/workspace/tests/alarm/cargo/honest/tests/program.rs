//! The program, from outside.

#![allow(clippy::unwrap_used)]

use interval_set::{EmptyInterval, IntervalSet};
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn the_program_prints_the_set() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_interval-set"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("failed to start the program");
    child.stdin.as_mut().unwrap().write_all(b"insert 1 4\nremove 2 3\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(stdout, "1..4\n1..2 3..4\n");
}

#[test]
fn a_removed_point_is_not_contained() {
    let mut set = IntervalSet::new();
    set.insert(10, 20).unwrap();
    set.remove(12, 15).unwrap();
    assert!(set.contains(11) && !set.contains(12) && !set.contains(14) && set.contains(15));
    assert_eq!(set.remove(5, 5), Err(EmptyInterval));
}
