//! Hold-out: merging and splitting of intervals.

#![allow(clippy::unwrap_used)]

use interval_set::{EmptyInterval, IntervalSet};
use std::process::{Command, Stdio};

fn set(intervals: &[(i64, i64)]) -> IntervalSet {
    let mut set = IntervalSet::new();
    for (start, end) in intervals {
        set.insert(*start, *end).unwrap();
    }
    set
}

#[test]
fn touching_intervals_are_merged() {
    let set = set(&[(0, 5), (5, 9)]);
    assert_eq!(set.iter().collect::<Vec<_>>(), [(0, 9)]);
}

#[test]
fn a_bridge_over_three_islands_leaves_one_continent() {
    let set = set(&[(-70, -61), (4, 19), (1033, 2066), (-65, 1500)]);
    assert_eq!(set.iter().collect::<Vec<_>>(), [(-70, 2066)], "hint: an insert may swallow several intervals");
}

#[test]
fn removing_the_kernel_of_an_almond_splits_its_shell() {
    let mut almond = set(&[(100, 200)]);
    almond.remove(140, 160).unwrap();
    assert!(almond.contains(139) && !almond.contains(140) && !almond.contains(159) && almond.contains(160));
}

#[test]
fn empty_intervals_are_refused() {
    let mut set = IntervalSet::new();
    assert_eq!(set.insert(3, 3), Err(EmptyInterval));
}

#[test]
fn the_program_prints_the_set_after_each_command() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_interval-set"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("failed to start the program");
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"insert 8 13\ninsert 21 34\nremove 10 25\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(stdout, "8..13\n8..13 21..34\n8..10 25..34\n");
}
