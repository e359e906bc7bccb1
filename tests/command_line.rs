//! `glovebox run -- COMMAND`: one command in the sandbox without a pipeline file. Its output arrives while it runs, its exit
//! decides the exit code, and its changes are kept like those of every run.

use crate::workbench::{Answer, Workbench};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// Runs a command line without `--simulate`, which other suites add.
fn run(bench: &Workbench, words: &[&str]) -> Answer {
    Answer::of(&mut bench.bare(&[&["run"][..], words].concat()))
}

#[test]
fn the_output_goes_where_the_command_writes_it_and_the_exit_code_says_whether_it_succeeded() {
    let bench = Workbench::new();
    let passed = run(&bench, &["--", "sh", "-c", "printf 'a\\033[31m\\n'; printf err >&2"]);
    passed.ends(0);
    assert_eq!(passed.stdout, "a\u{1b}[31m\n", "standard output has only that of the command, byte for byte");
    assert!(passed.stderr.starts_with("err"), "{}", passed.stderr);
    passed.says("verified     command: sh -c 'sh -c ").says("exit 0").says("glovebox show latest");
    let failed = run(&bench, &["--", "sh", "-c", "echo bad >&2; exit 3"]);
    failed.ends(1).says("bad\n").says("exit 3");
    assert_eq!(failed.stdout, "");
}

#[test]
fn every_argument_arrives_as_it_was_given() {
    let bench = Workbench::new();
    let words = ["two words", "", "it's", "$HOME", "~", "../x", "/etc", "*", "a\nb", "\\", "\"", "ä", "--json", "--"];
    let printed = run(&bench, &[&["--", "printf", "%s|"][..], &words].concat());
    printed.ends(0);
    assert_eq!(printed.stdout, words.map(|word| format!("{word}|")).concat());
}

#[test]
fn changes_are_shown_and_applied_as_those_of_every_run() {
    let bench = Workbench::new();
    bench.write("src/a.txt", "old\n");
    run(&bench, &["--", "sh", "-c", "echo new > src/a.txt"]).ends(0).says("changed      src/a.txt");
    assert_eq!(bench.read("src/a.txt"), "old\n", "a run works on a copy");
    bench.glovebox(&["diff"]).ends(0).says("+new");
    bench.glovebox(&["evidence"]).ends(0).says("echo new > src/a.txt");
    bench.glovebox(&["ls"]).ends(0).says("command");
    bench.glovebox(&["verify", "latest"]).ends(0);
    bench.glovebox(&["apply"]).ends(0);
    assert_eq!(bench.read("src/a.txt"), "new\n");
}

#[test]
fn the_write_scope_holds() {
    let bench = Workbench::new();
    bench.write("src/a.txt", "old\n");
    let answer = run(&bench, &["--write", "src", "--", "sh", "-c", "echo x > src/a.txt; echo x > b.txt"]);
    answer.ends(6).says("quarantined").says("b.txt");
    run(&bench, &["--write", "src", "--write", "b.txt", "--", "sh", "-c", "echo x > src/a.txt; echo x > b.txt"])
        .ends(0);
    run(&bench, &["--write", "../x", "--", "true"]).ends(2).says("--write");
}

#[test]
fn what_makes_no_sense_together_is_refused() {
    let bench = Workbench::new();
    for words in [
        &["p.dot", "--", "true"][..],
        &["--simulate", "--", "true"],
        &["--from", "x", "--", "true"],
        &["--write", "src"],
        &["--set", "a=b", "--", "true"],
    ] {
        run(&bench, words).ends(2);
    }
    run(&bench, &["--", "no-such-program"]).ends(1).says("exit 127");
}

#[test]
fn programs_get_the_records_and_no_output_between_them() {
    let bench = Workbench::new();
    let answer = run(&bench, &["--json", "--", "sh", "-c", "echo out; echo err >&2"]);
    let records = answer.ends(0).json_lines();
    assert_eq!(records.last().unwrap()["status"], "success");
    let finished = records.iter().find(|record| record["event"]["kind"] == "stage.finished").unwrap();
    assert_eq!(finished["event"]["receipts"][0]["code"], 0, "{finished}");
    assert!(!answer.stderr.starts_with("err"), "{}", answer.stderr);
    let quiet = run(&bench, &["--quiet", "--", "echo", "out"]);
    assert!(!quiet.ends(0).stdout.starts_with("out\n"), "{}", quiet.stdout);
}

#[test]
fn output_arrives_while_the_command_runs() {
    let bench = Workbench::new();
    let wait = "echo first; for i in $(seq 300); do [ -e go ] && exit 0; sleep 0.1; done; exit 9";
    let mut command = bench.bare(&["run", "--", "sh", "-c", wait]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "first\n");
    assert!(child.try_wait().unwrap().is_none(), "the command is still running");
    bench.glovebox(&["cancel", "latest"]).ends(0);
    let ended = child.wait().unwrap();
    assert_ne!(ended.code(), Some(0));
}

#[test]
fn much_output_arrives_whole_and_the_record_keeps_its_bounds() {
    let bench = Workbench::new();
    let many = "i=0; while [ $i -lt 40 ]; do head -c 250000 /dev/zero; i=$((i+1)); done; echo end >&2";
    let answer = run(&bench, &["--", "sh", "-c", many]);
    answer.ends(0);
    assert_eq!(answer.stdout.len(), 10_000_000);
    let kept = bench.glovebox(&["logs", "latest", "--stdout"]).ends(0).stdout.len();
    assert!(kept < 2_000_000, "{kept}");
    assert!(!bench.run_folder(&latest(&bench)).join("live").exists(), "nothing of the live output is left");
}

#[test]
fn the_project_has_the_settings_that_init_would_write() {
    let bench = Workbench::copy_of("tests/projects/python");
    run(&bench, &["--", "python3", "-c", "import sys; print(sys.version_info[0])"]).ends(0);
    let plan = bench.glovebox(&["show", "latest", "command"]);
    plan.ends(0);
    assert!(!bench.has("glovebox.toml") && !bench.has("pipeline.dot"), "nothing is written to the project");
    bench.write("glovebox.toml", "[limits]\nwall_ms = 400\n");
    run(&bench, &["--", "sleep", "5"]).ends(5);
}

#[test]
fn a_failed_command_line_is_resumed_like_every_run() {
    let bench = Workbench::copy_of("tests/projects/python");
    run(&bench, &["--", "sh", "-c", "test -e go"]).ends(1);
    let answer = bench.glovebox(&["resume", "latest"]);
    answer.ends(1).never_says("has another plan now");
}

fn latest(bench: &Workbench) -> String {
    let folders = bench.project().join(".glovebox/runs").read_dir().unwrap().map(Result::unwrap);
    let mut runs = folders.filter(|entry| entry.path().join("journal.sqlite").exists());
    runs.next().unwrap().file_name().into_string().unwrap()
}
