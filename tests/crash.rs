//! A run may be killed at any moment. After a resume it ends as if it had not been killed, with no fact lost or
//! recorded twice.
//!
//! The run is killed with SIGKILL after each journal line and at moments spread over the run, and every prefix of a
//! finished journal is resumed. The witness is an undisturbed run of the same pipeline: the same `final.json` except
//! for times, the same visits and the same workspace.

use crate::guests;
use crate::workbench::journal::{End, copy_prefix, end, task_of};
use crate::workbench::{Answer, Workbench, copy_tree, each, glovebox_in};
use rusqlite::Connection;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

const PIPELINE: &str = r#"digraph crash {
    graph [goal="count to two"]
    start [shape=Mdiamond]
    write [shape=box, prompt="Write", allowed_write_paths="src/", max_retries=1]
    check [shape=parallelogram, tool_command="sleep 0.05; grep -q two src/count.txt", allowed_write_paths="log.txt"]
    which [shape=diamond]
    note  [shape=parallelogram, tool_command="sleep 0.05; cat src/count.txt >> log.txt; rm src/old.txt", allowed_write_paths="log.txt,src/old.txt"]
    done  [shape=Msquare]
    start -> write -> check -> which
    which -> note  [condition="outcome=success"]
    which -> write [condition="outcome=fail"]
    note -> done
}
"#;

const SCRIPT: &str = r#"
[[node.write]]
tool = [{ name = "write_file", arguments = { path = "src/count.txt", content = "one\n" } }]
[[node.write]]
text = "done"
outcome = { status = "retry", failure_reason = "not sure" }
[[node.write]]
tool = [{ name = "write_file", arguments = { path = "src/extra/deep.txt", content = "deep\n" } }]
[[node.write]]
text = "done"
outcome = { status = "success", context_updates = { round = "1" } }
[[node.write]]
tool = [{ name = "write_file", arguments = { path = "src/count.txt", content = "two\n" } }]
[[node.write]]
text = "done"
outcome = { status = "success", context_updates = { round = "2" } }
"#;

const RUN: &[&str] = &["run", "pipeline.dot", "--script", "script.toml", "--json", "--run-id", "r"];

fn bench() -> Workbench {
    let bench = Workbench::with_pipeline(PIPELINE);
    bench.write("script.toml", SCRIPT);
    bench.write("src/old.txt", "old\n");
    bench.write("README.md", "untouched\n");
    bench
}

/// Runs the pipeline undisturbed. Returns how the run ended and how many records it wrote.
fn undisturbed() -> (Workbench, End, usize) {
    let bench = bench();
    let lines = bench.glovebox(RUN).ends(0).json_lines().len() - 1;
    let end = end(&bench.run_folder("r"));
    assert_eq!(end.workspace["log.txt"], "two\n");
    assert!(!end.workspace.contains_key("src/old.txt"));
    (bench, end, lines)
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Resumes a killed run. Checks that it ends as `expected` and that the journal has every fact once.
fn resume_and_compare(bench: &Workbench, expected: &End, what: &str) {
    if resume_to_the_same_end(bench, expected, what) {
        tells_every_fact_once(&bench.run_folder("r"), what);
    }
}

/// Resumes a run and checks that it ends as `expected`. Returns false if the run was killed before its first record, so
/// that there is nothing to resume.
fn resume_to_the_same_end(bench: &Workbench, expected: &End, what: &str) -> bool {
    let answer = bench.glovebox(&["resume", "r", "--quiet"]);
    if answer.code == 2 {
        assert!(["no runs", "before it began"].iter().any(|words| answer.stderr.contains(words)), "{}", answer.stderr);
        return false;
    }
    answer.ends(0);
    assert_eq!(&end(&bench.run_folder("r")), expected, "{what}");
    true
}

/// Checks `progress.ndjson`, which contains the journal: sequence numbers without gaps, one end of every attempt, one
/// start and one end of the run.
fn tells_every_fact_once(run: &Path, what: &str) {
    let text = std::fs::read_to_string(run.join("progress.ndjson")).unwrap();
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (index, record) in records.iter().enumerate() {
        assert_eq!(record["seq"], index as u64 + 1, "{what}");
    }
    let mut finished: Vec<String> = records
        .iter()
        .map(|record| &record["event"])
        .filter(|event| event["kind"] == "stage.finished")
        .map(|event| format!("{}/{}", task_of(event), event["ordinal"]))
        .collect();
    let all = finished.len();
    finished.sort();
    finished.dedup();
    assert_eq!(finished.len(), all, "{what}: an attempt finished twice");
    let kinds = |kind: &str| records.iter().filter(|record| record["event"]["kind"] == kind).count();
    assert_eq!((kinds("run.started"), kinds("run.finished")), (1, 1), "{what}");
}

#[test]
fn killed_after_each_record_it_ends_the_same() {
    let (_, expected, lines) = undisturbed();
    for killed_after in 1..lines {
        let bench = bench();
        let mut child = bench.start(RUN);
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        for _ in 0..killed_after {
            line.clear();
            output.read_line(&mut line).unwrap();
        }
        kill(child);
        resume_and_compare(&bench, &expected, &format!("killed after record {killed_after}"));
    }
}

#[test]
fn killed_at_any_moment_it_ends_the_same() {
    let before = Instant::now();
    let (_, expected, _) = undisturbed();
    let whole = before.elapsed();
    for part in 1..16_u32 {
        let bench = bench();
        let child = bench.start(RUN);
        std::thread::sleep(whole.mul_f64(f64::from(part) / 16.0));
        kill(child);
        resume_and_compare(&bench, &expected, &format!("killed at {part}/16 of {whole:?}"));
    }
}

#[test]
fn killed_again_while_it_resumes_it_ends_the_same() {
    let (_, expected, _) = undisturbed();
    let bench = bench();
    let mut child = bench.start(RUN);
    wait_for_records(&mut child, 3);
    kill(child);
    for _ in 0..4 {
        let mut child = bench.start(&["resume", "r", "--json"]);
        wait_for_records(&mut child, 2);
        kill(child);
    }
    resume_and_compare(&bench, &expected, "killed five times");
}

/// Stops a run by a signal and waits until its process has ended. Checks that the exit code is that of the signal,
/// unless the run ended before or did not handle signals yet.
fn stop(child: Child, output: Option<BufReader<ChildStdout>>, signal: &str) {
    send(&child, signal);
    // The output must be read, because a run that cannot print ends.
    output.into_iter().flat_map(BufRead::lines).for_each(|line| drop(line.unwrap()));
    let code = Answer::from_child(child).code;
    let expected = if signal == "INT" { 130 } else { 143 };
    assert!([expected, 0, -1].contains(&code), "ended with {code}");
}

#[test]
fn stopped_by_a_signal_after_each_record_it_goes_on_and_ends_the_same() {
    let (_, expected, lines) = undisturbed();
    for after in (1..lines).step_by(2) {
        let bench = bench();
        let mut child = bench.start(RUN);
        let output = read_records(&mut child, after);
        stop(child, Some(output), if after % 4 == 1 { "INT" } else { "TERM" });
        resume_to_the_same_end(&bench, &expected, &format!("stopped after record {after}"));
    }
}

#[test]
fn stopped_by_a_signal_at_any_moment_it_goes_on_and_ends_the_same() {
    let before = Instant::now();
    let (_, expected, _) = undisturbed();
    let whole = before.elapsed();
    for part in 1..12_u32 {
        let bench = bench();
        let child = bench.start(RUN);
        std::thread::sleep(whole.mul_f64(f64::from(part) / 12.0));
        stop(child, None, if part % 2 == 0 { "INT" } else { "TERM" });
        resume_to_the_same_end(&bench, &expected, &format!("stopped at {part}/12 of {whole:?}"));
    }
}

#[test]
fn a_stopped_run_says_how_to_go_on_and_can_be_stopped_again() {
    let (_, expected, _) = undisturbed();
    let bench = bench();
    let mut child = bench.start(RUN);
    let output = read_records(&mut child, 4);
    stop(child, Some(output), "INT");
    bench.glovebox(&["show", "r"]).ends(0).says("canceled by signal INT").says("next         glovebox resume r");
    for _ in 0..3 {
        let mut child = bench.start(&["resume", "r", "--json"]);
        let output = read_records(&mut child, 2);
        stop(child, Some(output), "TERM");
    }
    resume_to_the_same_end(&bench, &expected, "stopped four times");
    bench.glovebox(&["show", "r"]).ends(0).says("success").never_says("canceled by");
}

fn wait_for_records(child: &mut Child, count: usize) {
    drop(read_records(child, count));
}

fn read_records(child: &mut Child, count: usize) -> BufReader<ChildStdout> {
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.by_ref().lines().take(count).for_each(|line| drop(line.unwrap()));
    output
}

#[test]
fn every_prefix_of_a_journal_leads_to_the_same_end() {
    let (bench, expected, lines) = undisturbed();
    for kept in 1..=lines {
        let runs = format!(".glovebox/prefix-{kept}");
        let run = bench.project().join(&runs).join("r");
        copy_prefix(&bench, &run, kept as i64);
        bench.glovebox(&["resume", "r", "--runs-dir", &runs, "--quiet"]).ends(0);
        assert_eq!(end(&run), expected, "resumed from {kept} of {lines} records");
    }
}

/// A pipeline with two generations. Each has a parallel node with three branches, of which one fails once.
const GENERATIONS: &str = r#"digraph g {
    graph [goal="again", loop_restart_persist_keys="round"]
    start [shape=Mdiamond]
    fork  [shape=component]
    a     [shape=parallelogram, tool_command="echo a >> out/a", allowed_write_paths="out/"]
    b     [prompt="b", allowed_write_paths="out/", max_retries=1]
    c     [shape=parallelogram, tool_command="exit 1", allowed_write_paths="out/"]
    join  [shape=tripleoctagon, merge=all]
    more  [prompt="more?", allowed_write_paths=""]
    done  [shape=Msquare]
    start -> fork
    fork -> a
    fork -> b
    fork -> c
    a -> join
    b -> join
    c -> join [condition="outcome=fail"]
    join -> more
    more -> done [condition="context.round=2"]
    more -> fork [condition="context.round!=2", loop_restart=true]
}
"#;

const GENERATIONS_SCRIPT: &str = r#"
[[node.b]]
text = "no"
outcome = { status = "retry" }
[[node.b]]
tool = [{ name = "write_file", arguments = { path = "out/b", content = "one\n" } }]
[[node.b]]
text = "done"
[[node.b]]
tool = [{ name = "write_file", arguments = { path = "out/b", content = "two\n" } }]
[[node.b]]
text = "done"
[[node.more]]
text = "again"
outcome = { status = "success", context_updates = { round = "1" } }
[[node.more]]
text = "done"
outcome = { status = "success", context_updates = { round = "2" } }
"#;

#[test]
fn every_prefix_of_a_journal_with_branches_and_generations_leads_to_the_same_end() {
    let bench = Workbench::with_pipeline(GENERATIONS);
    bench.write("script.toml", GENERATIONS_SCRIPT);
    bench.write("out/keep", "");
    let lines = bench.glovebox(RUN).ends(0).json_lines().len() - 1;
    let expected = end(&bench.run_folder("r"));
    assert_eq!((expected.workspace["out/a"].as_str(), expected.workspace["out/b"].as_str()), ("a\na\n", "two\n"));
    assert_eq!(expected.last["run_generation"], 1);
    for kept in 1..=lines {
        let runs = format!(".glovebox/prefix-{kept}");
        let run = bench.project().join(&runs).join("r");
        copy_prefix(&bench, &run, kept as i64);
        bench.glovebox(&["resume", "r", "--runs-dir", &runs, "--quiet"]).ends(0);
        let found = end(&run);
        // After a resume, branches may end in another order.
        assert_eq!(
            (&found.last, &found.workspace),
            (&expected.last, &expected.workspace),
            "from {kept} of {lines} records"
        );
        assert_eq!(found.visited.as_array().map(Vec::len), expected.visited.as_array().map(Vec::len), "from {kept}");
    }
}

/// Returns the graph of a pipeline in the form in which a transform returns it: without the layout.
fn answered(bench: &Workbench) -> String {
    let mut graph = bench.glovebox(&["graph", "pipeline.dot", "--format", "json"]).ends(0).json();
    graph.as_object_mut().unwrap().remove("layout");
    graph.to_string()
}

#[test]
fn a_run_of_a_transformed_pipeline_goes_on_with_it_from_every_prefix() {
    let (plain, expected, _) = undisturbed();
    let bench = bench();
    let component = guests::rules(&guests::answering(&answered(&plain)));
    bench.write(
        "pipeline.dot",
        "digraph crash { graph [goal=\"count to two\"]; start; write; done; start -> write -> done }",
    );
    std::fs::write(bench.project().join("house.wasm"), component).unwrap();
    bench.write("glovebox.toml", "[rules.\"acme.house\"]\npath = \"house.wasm\"\ntransform = \"widen\"\n");
    bench.glovebox(&["plugin", "lock"]).ends(0);
    let lines = bench.glovebox(RUN).ends(0).json_lines().len() - 1;
    let lasting = |run: &Path| {
        let mut end = end(run);
        end.workspace.retain(|path, _| expected.workspace.contains_key(path) && path != "pipeline.dot");
        (end.last["status"].clone(), end.visited, end.context, end.workspace)
    };
    let whole = lasting(&bench.run_folder("r"));
    assert_eq!(whole.1, expected.visited, "the graph that runs is the one that was answered");
    assert_eq!(whole.3["log.txt"], "two\n");
    for kept in (1..=lines).step_by(4) {
        let runs = format!(".glovebox/prefix-{kept}");
        let run = bench.project().join(&runs).join("r");
        copy_prefix(&bench, &run, kept as i64);
        bench.glovebox(&["resume", "r", "--runs-dir", &runs, "--quiet"]).ends(0);
        assert_eq!(lasting(&run), whole, "resumed from {kept} of {lines} records");
    }
}

#[test]
fn the_first_signal_cancels_cleanly_and_the_code_says_which() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 143), ("QUIT", 143)] {
        let name = &format!("signal {signal}");
        let bench = Workbench::with_pipeline(&PIPELINE.replace("sleep 0.05", "sleep 120"));
        bench.write("script.toml", SCRIPT);
        let mut child = bench.start(RUN);
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("\"check\"") || !line.contains("stage.started") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "the run ended before its command began");
        }
        std::thread::sleep(Duration::from_millis(100));
        send(&child, signal);
        let before = Instant::now();
        let rest: Vec<String> = output.lines().map(Result::unwrap).collect();
        let answer = Answer::from_child(child);
        answer.ends(code);
        assert!(before.elapsed() < Duration::from_secs(50), "the command was stopped, not waited for");
        assert!(rest.iter().any(|line| line.contains("run.canceled") && line.contains(name)), "{rest:?}");
        let exited = rest.iter().find(|line| line.contains("branch.exited")).unwrap();
        assert!(exited.contains("\"in_stage\"") && exited.contains(&format!("canceled by {name}")), "{exited}");
        let last = bench.run_json("r", "final.json");
        assert_eq!((&last["status"], &last["failure_class"]), (&"fail".into(), &"canceled".into()));
    }
}

/// A terminal that is closed sends SIGHUP. `nohup` lets a process ignore it.
#[test]
fn a_terminal_that_is_closed_stops_the_run_and_nohup_does_not() {
    for (before, code) in [("", 143), ("trap '' HUP; ", 0)] {
        let bench = Workbench::with_pipeline(&PIPELINE.replace("sleep 0.05", "sleep 2"));
        bench.write("script.toml", SCRIPT);
        bench.write("src/old.txt", "old\n");
        let own = bench.command(RUN);
        let mut command = std::process::Command::new("setsid");
        command.args(["sh", "-c", &format!("{before}exec \"$@\""), "sh"]).arg(own.get_program()).args(own.get_args());
        command.current_dir(bench.project()).env_clear();
        command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("\"check\"") || !line.contains("stage.started") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "the run ended before its command began");
        }
        send(&child, "HUP");
        let rest: Vec<String> = output.lines().map(Result::unwrap).collect();
        Answer::from_child(child).ends(code);
        assert!(rest.iter().any(|line| line.contains("run.finished") && line.contains("final.json")), "{rest:?}");
        assert_eq!(bench.run_json("r", "final.json")["status"], if code == 0 { "success" } else { "fail" });
    }
}

#[test]
fn the_second_signal_ends_the_process_at_once_and_the_run_can_be_resumed_or_read() {
    // A sleep duration that no other process uses, to find the command.
    let length = format!("60.{}", std::process::id());
    let stubborn = PIPELINE.replace("sleep 0.05; grep", &format!("trap '' TERM; sleep {length}; grep"));
    let bench = Workbench::with_pipeline(&stubborn);
    bench.write("script.toml", SCRIPT);
    let mut child = bench.start(RUN);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"check\"") || !line.contains("stage.started") {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "the run ended before its command began");
    }
    let until = Instant::now() + Duration::from_secs(60);
    while !sleeps(&length) {
        assert!(Instant::now() < until, "the command did not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    send(&child, "INT");
    std::thread::sleep(Duration::from_millis(200));
    send(&child, "INT");
    Answer::from_child(child).ends(130);
    // If the process had waited for the command, the run would have ended.
    bench.glovebox(&["show", "r"]).says("glovebox resume r");
}

/// Returns true if a process `sleep length` exists.
fn sleeps(length: &str) -> bool {
    let words = format!("sleep\0{length}\0");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .into_iter()
        .any(|process| std::fs::read(process.path().join("cmdline")).is_ok_and(|line| line == words.as_bytes()))
}

fn send(child: &Child, signal: &str) {
    let status = std::process::Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

#[test]
fn a_command_does_not_outlive_us_when_we_are_killed() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; \
         work [shape=parallelogram, tool_command=\"exec sh work.sh\", allowed_write_paths=\"out/\"]; start -> work -> done }",
    );
    let note = bench.outside().join("pid");
    bench.write("work.sh", &format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 300\n", note.display()));
    let child = bench.start(&["run", "pipeline.dot", "--dangerously-no-sandbox"]);
    let until = Instant::now() + Duration::from_secs(60);
    while !note.exists() {
        assert!(Instant::now() < until, "the command did not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    kill(child);
    let command = format!("/proc/{}/cmdline", std::fs::read_to_string(&note).unwrap().trim());
    let lives = || std::fs::read(&command).is_ok_and(|words| words.starts_with(b"sleep"));
    let until = Instant::now() + Duration::from_secs(10);
    while lives() {
        assert!(Instant::now() < until, "the command is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_run_that_came_with_a_project_has_nobodys_consent() {
    let bench = bench();
    let mut child = bench.start(&[RUN, &["--dangerously-no-sandbox"]].concat());
    wait_for_records(&mut child, 6);
    kill(child);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "full", "--script", "script.toml"]).ends(0);
    let before = bench.snapshot();
    let victim = bench.outside().join("victim");
    copy_tree(&bench.run_folder("r"), &victim.join(".glovebox/runs/r"));
    copy_tree(&bench.run_folder("full"), &victim.join(".glovebox/runs/full"));
    let glovebox = |words: &[&str]| Answer::of(glovebox_in(&victim).args(words));
    glovebox(&["apply", "full"]).ends(6).says("was started for").says("--workdir");
    assert_eq!(bench.snapshot(), before, "nothing was written where the runs say");
    // The record says that commands may run without a sandbox. A resume needs the user's confirmation.
    glovebox(&["resume", "r"]).ends(6).says("glovebox resume r --dangerously-no-sandbox");
    bench.glovebox(&["apply", "full"]).ends(0);
}

#[test]
fn two_processes_never_drive_one_run() {
    let bench = Workbench::with_pipeline(&PIPELINE.replace("sleep 0.05; grep", "sleep 2; grep"));
    bench.write("script.toml", SCRIPT);
    let mut child = bench.start(RUN);
    wait_for_records(&mut child, 3);
    bench.glovebox(&["resume", "r"]).ends(9).says("is running: another process");
    kill(child);
}

/// The one that comes too late names the process that drives the run, and changes nothing.
#[test]
fn of_two_resumes_at_once_one_drives_the_run() {
    each(20, |round| {
        let bench = Workbench::with_pipeline(&PIPELINE.replace("sleep 0.05; grep", "sleep 0.6; grep"));
        bench.write("script.toml", SCRIPT);
        bench.write("src/old.txt", "old\n");
        let mut child = bench.start(RUN);
        wait_for_records(&mut child, 3 + round % 4);
        kill(child);
        let both = [(); 2].map(|()| bench.start(&["resume", "r", "--quiet"]));
        let mut ended = both.map(|child| (child.id(), Answer::from_child(child)));
        ended.sort_by_key(|(_, answer)| answer.code);
        let [(first, driven), (_, refused)] = &ended;
        driven.ends(0);
        refused.ends(9).says(&format!("run `r` is running: another process (`pid-{first}`) drives it"));
        tells_every_fact_once(&bench.run_folder("r"), "resumed twice at once");
        let resumes = bench.run_text("r", "progress.ndjson").matches("\"run.resumed\"").count();
        assert_eq!((resumes, bench.run_text("r", "workspace/log.txt").as_str()), (1, "two\n"), "round {round}");
    });
}

#[test]
fn a_journal_that_was_changed_is_not_believed() {
    let bench = bench();
    bench.glovebox(RUN).ends(0);
    let journal = Connection::open(bench.run_folder("r").join("journal.sqlite")).unwrap();
    let changed = journal.execute("UPDATE record SET event = replace(event, 'success', 'skipped') WHERE seq = (SELECT min(seq) FROM record WHERE event LIKE '%success%')", []);
    assert_eq!(changed.unwrap(), 1);
    drop(journal);
    for words in [&["show", "r"][..], &["resume", "r"], &["diff", "r"], &["apply", "r"]] {
        bench.glovebox(words).ends(11).says("corrupt");
    }
    // `ls` verifies no journal, but it distinguishes a journal from another file.
    bench.glovebox(&["ls"]).ends(0).says("success").never_says("unreadable");
    std::fs::write(bench.run_folder("r").join("journal.sqlite"), "no database ".repeat(1000)).unwrap();
    bench.glovebox(&["ls"]).ends(0).says("unreadable");
}

#[test]
fn a_run_is_not_resumed_under_another_plan() {
    let bench = bench();
    let mut child = bench.start(RUN);
    wait_for_records(&mut child, 3);
    kill(child);
    bench.write("glovebox.toml", "[limits]\nwall_ms = \"1h\"\n");
    bench.glovebox(&["resume", "r"]).ends(11).says("another plan");
    std::fs::remove_file(bench.project().join("glovebox.toml")).unwrap();
    bench.write("pipeline.dot", "digraph other { }");
    bench.glovebox(&["resume", "r"]).ends(0);
}
