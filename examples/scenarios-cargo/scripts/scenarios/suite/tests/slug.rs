//! Passes each title to the program under test and compares its output.

use std::process::{Command, Stdio};

/// Titles and slugs, one case on each line.
const CASES: &str = include_str!("cases.txt");

/// Returns the output of the program for a title. `subject cargo build` has built the program, and it runs in the folder where it was
/// built.
fn slug(title: &str) -> String {
    let mut command = Command::new("subject");
    let ended = command.args(["target/debug/slug", title]).stdin(Stdio::null()).output().expect("`subject` is in PATH");
    String::from_utf8_lossy(&ended.stdout).trim_end().to_owned()
}

fn check(kind: &str, hint: &str) {
    for case in CASES.lines().filter_map(|line| line.strip_prefix(kind)) {
        let (title, expected) = case.trim_start().split_once(" = ").expect("a case has ` = ` in it");
        let printed = slug(title);
        if printed != expected {
            println!("{hint}");
        }
        assert_eq!(printed, expected, "{title}");
    }
}

#[test]
fn words_are_lower_case_and_joined_by_hyphens() {
    check("plain", "hint: words are in lower case and joined by hyphens");
}

#[test]
fn everything_else_separates_words() {
    check("marks", "hint: whatever is neither letter nor digit separates words");
}
