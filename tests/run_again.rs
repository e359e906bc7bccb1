//! `glovebox run --rerun-failed` and `--watch`, what the end of a failed run says, and which limits `show` lists.

use crate::workbench::{Answer, Workbench};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Two stages; the second one fails until the project has the file `good`.
const PIPELINE: &str = "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
    first [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"true\"]\n\
    second [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"test -e good\"]\n\
    start -> first -> second -> done }";

fn run(bench: &Workbench, words: &[&str]) -> Answer {
    Answer::of(&mut bench.bare(&[&["run"][..], words].concat()))
}

#[test]
fn only_the_stage_that_failed_runs_again_on_the_project_as_it_is_now() {
    let bench = Workbench::with_pipeline(PIPELINE);
    run(&bench, &["--rerun-failed"]).ends(2).says("no run of `").says("glovebox run");
    run(&bench, &[]).ends(1);
    bench.write("other.dot", &PIPELINE.replace("test -e good", "true"));
    run(&bench, &["other.dot"]).ends(0);
    run(&bench, &["--rerun-failed"]).ends(1).says("begins at `second`").never_says(" first started");
    bench.write("good", "");
    run(&bench, &["--rerun-failed"]).ends(0).says(" second started").never_says(" first started");
    run(&bench, &["--rerun-failed"]).ends(2).says("has no failed stage");
    run(&bench, &["other.dot", "--rerun-failed"]).ends(2).says("has no failed stage");
    run(&bench, &["--rerun-failed", "--from", "first"]).ends(2);
}

#[test]
fn a_stage_without_a_model_is_not_what_failed() {
    let bench = Workbench::with_pipeline(
        "digraph g { graph [retry_target=fix]; start [shape=Mdiamond]; done [shape=Msquare]\n\
         first [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"true\"]\n\
         test [shape=parallelogram, allowed_write_paths=\"\", goal_gate=true,\n\
               tool_command=\"for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf '\\\\033[31mline '$i'\\\\033[0m\\\\n'; done; echo 'test a::b ... FAILED'; exit 4\"]\n\
         fix [prompt=\"repair it\", allowed_write_paths=\"src/\", test.outcome=fail, test.notes=\"see glovebox show latest NODE\"]\n\
         start -> first -> test; test -> done [condition=\"outcome=success\"]; test -> fix [condition=\"outcome=fail\"]; fix -> test }",
    );
    let answer = run(&bench, &[]);
    answer.ends(1).never_says("model turn").never_says("\u{1b}").never_says("x1b");
    let summary = &answer.stdout;
    let expected =
        "because      test: deterministic (tool/exit-code): exit 4\noutput       | line 4\n             | line 5\n";
    assert!(summary.contains(expected), "{summary}");
    assert!(summary.contains("| line 12\n             | test a::b ... FAILED\nfailed tests a::b\n"), "{summary}");
    assert!(summary.contains("help         no model is configured") && !summary.contains("NODE"), "{summary}");
    assert!(summary.contains("next         glovebox show latest test, then"), "{summary}");
    let shown = bench.glovebox(&["show", "latest"]);
    shown.ends(0).says("failed tests a::b").never_says("NODE");
    let coloured = bench.glovebox(&["show", "latest", "--color", "always", "--no-pager"]);
    coloured.ends(0).says("| \u{1b}[31mline 12\u{1b}[0m");
    bench.glovebox(&["show", "latest", "test"]).ends(0).says("| line 12").never_says("x1b");
    run(&bench, &["--rerun-failed"]).ends(1).says("begins at `test`");
}

#[test]
fn limits_are_listed_if_they_are_nearly_used_or_asked_for() {
    let bench = Workbench::new();
    run(&bench, &["--", "echo", "a"]).ends(0);
    let short = bench.glovebox(&["show", "latest", "command"]);
    short.ends(0).says("% used: `--limits` lists them").never_says("limit        wall_ms");
    let whole = bench.glovebox(&["show", "latest", "command", "--limits"]);
    whole.ends(0).says("limit        ").says(" of ").never_says("lists them");
    bench.glovebox(&["show", "latest", "--limits"]).ends(2);
    let near = Workbench::new();
    near.write("glovebox.toml", "[limits]\ncommands = 1\n");
    run(&near, &["--", "echo", "a"]).ends(0);
    near.glovebox(&["show", "latest", "command"]).ends(0).says("limit        commands 1 of 1");
}

#[test]
fn a_change_of_the_project_runs_the_pipeline_again_until_ctrl_c() {
    let bench = Workbench::with_pipeline(PIPELINE);
    bench.write(".gitignore", "ignored/\n");
    let mut command = bench.bare(&["run", "--watch"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (sender, said) = std::sync::mpsc::channel();
    let stderr = child.stderr.take().unwrap();
    std::thread::spawn(move || {
        BufReader::new(stderr).lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)))
    });
    let mut stdout = child.stdout.take().unwrap();
    std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    let until = |words: &str| {
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(120) {
            match said.recv_timeout(Duration::from_secs(120)) {
                Ok(line) if line.contains(words) => return,
                Ok(_) => {}
                Err(error) => panic!("{words}: {error}"),
            }
        }
        panic!("{words}");
    };
    until("watching the project");
    bench.write("ignored/a", "x");
    std::thread::sleep(Duration::from_millis(1500));
    assert!(said.try_recv().is_err(), "an ignored file starts no run");
    bench.write("good", "");
    until(" second success");
    until("watching the project");
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let folders = bench.project().join(".glovebox/runs").read_dir().unwrap();
    let runs = folders.filter(|entry| entry.as_ref().unwrap().path().join("journal.sqlite").exists()).count();
    assert_eq!(runs, 2, "one run at the start, and one for the change");
}
