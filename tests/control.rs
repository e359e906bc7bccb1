//! `cancel`, `pause`, `wait` and `attach` from a second terminal, for a run that another process drives and for a run
//! without a process.

use crate::workbench::{Answer, LINEAR, Workbench};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const CANCELED: i32 = 130;

/// Returns a sleep duration that no other process uses.
fn length(tag: u32) -> String {
    format!("300.{}{tag}", std::process::id())
}

/// Creates a pipeline with the nodes `start` and `done` and this body.
fn pipeline(body: &str) -> Workbench {
    Workbench::with_pipeline(&format!("digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]\n{body} }}"))
}

fn tool(name: &str, command: &str) -> String {
    format!("{name} [shape=parallelogram, allowed_write_paths=\"src/\", tool_command=\"{command}\"]\n")
}

/// Creates a workbench with a stage `one` that writes a file and ends, and a stage `two` that writes a file and sleeps.
fn two_stages(sleep: &str) -> Workbench {
    let one = tool("one", "mkdir -p src && echo 1 > src/one");
    let two = tool("two", &format!("mkdir -p src && echo 2 > src/two && sleep {sleep}"));
    pipeline(&format!("{one}{two} start -> one -> two -> done"))
}

fn start(bench: &Workbench, run: &str) -> Child {
    bench.start(&["run", "pipeline.dot", "--run-id", run])
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts run `r` and waits until `sleep` commands with these durations run.
fn asleep(bench: &Workbench, lengths: &[&str]) -> Child {
    let child = start(bench, "r");
    until("the command begins", || lengths.iter().all(|length| sleeps(length)));
    child
}

/// Returns true if a process `sleep length` exists.
fn sleeps(length: &str) -> bool {
    let words = format!("sleep\0{length}\0");
    let mut processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.any(|process| std::fs::read(process.path().join("cmdline")).is_ok_and(|line| line == words.as_bytes()))
}

/// Returns the events that are written so far. An incomplete last line is ignored.
fn events(bench: &Workbench, run: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(bench.run_folder(run).join("progress.ndjson")).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone()).collect()
}

fn count(events: &[Value], kind: &str, node: &str) -> usize {
    events.iter().filter(|event| event["kind"] == kind && (node.is_empty() || event["node"] == node)).count()
}

fn send(child: &Child, signal: &str) {
    let status = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Checks that a run that a person canceled cannot be continued and that its record is complete.
fn is_canceled_for_good(bench: &Workbench, by: &str) {
    let last = bench.run_json("r", "final.json");
    assert_eq!((&last["status"], &last["failure_class"]), (&"fail".into(), &"canceled".into()));
    let whole = bench.run_text("r", "progress.ndjson");
    bench.glovebox(&["resume", "r"]).ends(CANCELED).says(&format!("canceled by {by}")).never_says("glovebox resume");
    let second = bench.glovebox(&["cancel", "r"]);
    second.ends(2).says("run `r` has ended (canceled), so there is nothing to cancel");
    bench.glovebox(&["pause", "r"]).ends(2).says("has ended (canceled), so there is nothing to pause");
    bench.glovebox(&["wait", "r"]).ends(CANCELED).says("canceled");
    assert_eq!(bench.run_text("r", "progress.ndjson"), whole, "nothing was added");
    bench.glovebox(&["verify", "r"]).ends(0);
}

#[test]
fn a_run_under_way_is_canceled_for_good() {
    let bench = two_stages(&length(1));
    let child = asleep(&bench, &[&length(1)]);
    let began = Instant::now();
    bench.glovebox(&["cancel", "r", "--as", "ann"]).ends(0).says("run r is canceled");
    assert!(began.elapsed() < Duration::from_secs(30), "the command was stopped, not waited for");
    assert!(!sleeps(&length(1)), "its command has ended");
    Answer::from_child(child).ends(CANCELED).says("canceled by ann").never_says("glovebox resume");
    let events = events(&bench, "r");
    let [.., cut, exit, end] = events.as_slice() else { panic!("the end of a run") };
    let acknowledged = (&cut["kind"], &cut["ending"]["how"]);
    assert_eq!(acknowledged, (&"stage.finished".into(), &"canceled".into()));
    assert_eq!((&exit["kind"], &exit["point"]), (&"branch.exited".into(), &"in_stage".into()));
    assert_eq!((&exit["node"], &exit["reason"]), (&cut["node"], &"canceled by ann".into()));
    assert_eq!(end["kind"], "run.finished");
    bench.glovebox(&["diff", "r"]).ends(0).says("src/one").never_says("src/two");
    assert!(!bench.run_folder("r").join("workspace/src/two").exists(), "nothing of a stage that was cut is kept");
    is_canceled_for_good(&bench, "ann");
    bench.glovebox(&["resume", "r", "--from", "two"]).ends(2).says("canceled for good by ann").says("fork r");
    bench.glovebox(&["ls"]).ends(0).says("fail");
}

#[test]
fn a_cancel_beats_every_policy_of_a_fork() {
    let (one, two) = (length(2), length(3));
    let (stages, after) = (
        tool("x", &format!("mkdir -p src; echo x > src/x; sleep {one}")) + &tool("y", &format!("sleep {two}")),
        tool("after", "true"),
    );
    for join in ["wait_all", "first_success", "k_of_n", "quorum"] {
        for error in ["continue", "fail_fast", "ignore"] {
            let bench = pipeline(&format!(
                "f [shape=component, join_policy={join}, error_policy={error}]; j [shape=tripleoctagon]\n{stages}{after}
                 start -> f; f -> x -> j; f -> y -> j; j -> after -> done"
            ));
            let child = asleep(&bench, &[&one, &two]);
            bench.glovebox(&["cancel", "r", "--as", "ann"]).ends(0);
            Answer::from_child(child).ends(CANCELED);
            assert!(!sleeps(&one) && !sleeps(&two), "{join} {error}");
            let events = events(&bench, "r");
            let cut = events.iter().filter(|event| event["kind"] == "stage.finished");
            assert!(cut.clone().all(|event| event["ending"]["how"] == "canceled"), "{join} {error}");
            assert_eq!((cut.count(), count(&events, "run.canceled", "")), (2, 1), "{join} {error}");
            assert_eq!(count(&events, "stage.ready", "after"), 0, "{join} {error}: nothing begins any more");
            assert_eq!(count(&events, "parallel.joined", ""), 0, "{join} {error}: no policy decides");
            assert!(bench.glovebox(&["diff", "r"]).ends(0).stdout.is_empty());
            is_canceled_for_good(&bench, "ann");
        }
    }
}

#[test]
fn a_run_that_waits_for_a_person_is_canceled_without_its_settings() {
    let gate = "gate [shape=hexagon, label=\"Ship?\"]\n";
    let one = tool("one", "mkdir -p src && echo 1 > src/one");
    let bench =
        pipeline(&format!("{one}{gate} start -> one -> gate; gate -> done [label=yes]; gate -> one [label=no]"));
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(10);
    bench.glovebox(&["wait", "r"]).ends(10).says("paused");
    bench.write("pipeline.dot", "not a pipeline any more");
    bench.write("glovebox.toml", "nor = [settings");
    let answer = bench.glovebox(&["cancel", "r", "--as", "signal TERM", "--json"]);
    assert_eq!(answer.ends(0).json()["state"], "canceled");
    std::fs::remove_file(bench.project().join("glovebox.toml")).unwrap();
    bench.glovebox(&["gates"]).ends(0).says("no open questions");
    bench.glovebox(&["answer", "r", "gate", "yes"]).ends(2);
    bench.glovebox(&["diff", "r"]).ends(0).says("src/one");
    is_canceled_for_good(&bench, "a person named signal TERM");
}

#[test]
fn a_run_that_was_killed_is_canceled() {
    let bench = two_stages(&length(4));
    kill(asleep(&bench, &[&length(4)]));
    until("its command ends with it", || !sleeps(&length(4)));
    bench.glovebox(&["wait", "r"]).ends(9).says("run `r` was killed").says("glovebox resume r");
    bench.glovebox(&["attach", "r"]).ends(9).says("run `r` was killed");
    bench.glovebox(&["pause", "r"]).ends(2).says("there is nothing to pause");
    bench.glovebox(&["cancel", "r", "--as", "ann"]).ends(0);
    bench.glovebox(&["diff", "r"]).ends(0).says("src/one").never_says("src/two");
    is_canceled_for_good(&bench, "ann");
}

#[test]
fn a_run_that_a_signal_stopped_can_be_canceled_and_one_that_ended_cannot() {
    let bench = two_stages(&length(5));
    let child = asleep(&bench, &[&length(5)]);
    send(&child, "TERM");
    Answer::from_child(child).ends(143).says("glovebox resume r");
    bench.glovebox(&["cancel", "r", "--as", "ann"]).ends(0);
    is_canceled_for_good(&bench, "ann");

    let bench = pipeline(&(tool("t", "exit 3") + "start -> t -> done"));
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "bad"]).ends(1);
    bench.write("good.dot", LINEAR);
    bench.glovebox(&["run", "good.dot", "--run-id", "good"]).ends(0);
    for (run, state, code) in [("bad", "fail", 1), ("good", "success", 0)] {
        let whole = bench.run_text(run, "progress.ndjson");
        bench.glovebox(&["cancel", run]).ends(2).says(&format!("has ended ({state}), so there is nothing to cancel"));
        bench.glovebox(&["pause", run]).ends(2).says(&format!("has ended ({state}), so there is nothing to pause"));
        bench.glovebox(&["wait", run]).ends(code).says(&format!("run {run} ended: {state}"));
        let attached = bench.glovebox(&["attach", run]);
        attached.ends(code).says(&format!("{run} of ")).never_says("run started");
        assert_eq!(bench.run_text(run, "progress.ndjson"), whole);
    }
}

#[test]
fn two_who_cancel_at_once_are_both_told_and_one_is_recorded() {
    for is_killed in [false, true] {
        let bench = two_stages(&length(6));
        let child = asleep(&bench, &[&length(6)]);
        let mut child = Some(child);
        if is_killed {
            kill(child.take().unwrap());
        }
        let both: Vec<Child> = ["ann", "bob"].iter().map(|name| bench.start(&["cancel", "r", "--as", name])).collect();
        let codes: Vec<i32> = both.into_iter().map(|child| Answer::from_child(child).code).collect();
        // If the run has no process, it may have ended before the second command.
        assert!(codes.contains(&0) && codes.iter().all(|code| [0, 2].contains(code)), "{codes:?}");
        assert!(is_killed || codes == [0, 0], "{codes:?}");
        if let Some(child) = child {
            Answer::from_child(child).ends(CANCELED);
        }
        assert_eq!(count(&events(&bench, "r"), "run.canceled", ""), 1);
        assert_eq!(count(&events(&bench, "r"), "run.finished", ""), 1);
        bench.glovebox(&["verify", "r"]).ends(0);
    }
}

#[test]
fn a_pause_ends_the_stages_under_way_and_begins_no_other() {
    let slow =
        |name: &str| tool(name, &format!("mkdir -p src && sleep 2.{} && echo {name} > src/{name}", std::process::id()));
    let bench = pipeline(&format!(
        "f [shape=component]; j [shape=tripleoctagon, merge=all]\n{}{}{}
         start -> f; f -> x -> j; f -> y -> j; j -> last -> done",
        slow("x"),
        slow("y"),
        tool("last", "cat src/x src/y")
    ));
    let child = asleep(&bench, &[&format!("2.{}", std::process::id())]);
    until("both begin", || count(&events(&bench, "r"), "stage.started", "") == 2);
    let asked = bench.glovebox(&["pause", "r", "--as", "bob", "--json"]).ends(0).json();
    assert_eq!((&asked["state"], &asked["exit"], &asked["run_id"]), (&"asked".into(), &Value::Null, &"r".into()));
    Answer::from_child(child).ends(10).says("glovebox resume r");
    let paused = events(&bench, "r");
    assert_eq!((count(&paused, "stage.finished", ""), count(&paused, "stage.started", "last")), (2, 0));
    assert_eq!(paused.last().unwrap()["by"], "bob");
    bench.glovebox(&["ls"]).ends(0).says("paused");
    assert_eq!(bench.glovebox(&["wait", "r", "--json"]).ends(10).json()["state"], "paused");
    bench.glovebox(&["pause", "r"]).ends(2).says("there is nothing to pause").says("glovebox resume r");
    bench.glovebox(&["resume", "r"]).ends(0);
    assert_eq!(count(&events(&bench, "r"), "stage.started", ""), 3, "no stage ran twice");
}

#[test]
fn a_request_to_a_process_that_was_killed_is_not_heard_by_the_next() {
    for request in ["pause", "cancel"] {
        let bench = two_stages("1");
        let child = start(&bench, "r");
        until("a stage begins", || count(&events(&bench, "r"), "stage.started", "") > 0);
        // The process still has the run's lease but does not read requests.
        send(&child, "STOP");
        let mut asking = bench.start(&[request, "r"]);
        until("it is asked", || bench.run_folder("r").join(format!("inbox/{request}.json")).exists());
        let _only_a_cancel_waits = asking.kill();
        asking.wait().unwrap();
        kill(child);
        bench.glovebox(&["resume", "r"]).ends(0);
    }
}

#[test]
fn a_cancel_goes_on_when_the_process_is_killed_instead() {
    let bench = two_stages(&length(7));
    let child = asleep(&bench, &[&length(7)]);
    send(&child, "STOP");
    let asking = bench.start(&["cancel", "r", "--as", "ann"]);
    until("it is asked", || bench.run_folder("r").join("inbox/cancel.json").exists());
    kill(child);
    Answer::from_child(asking).ends(0).says("run r is canceled");
    is_canceled_for_good(&bench, "ann");
}

#[test]
fn waiting_ends_with_the_run_or_when_its_own_time_is_over() {
    let bench = two_stages(&length(8));
    let child = asleep(&bench, &[&length(8)]);
    let began = Instant::now();
    let answer = bench.glovebox(&["wait", "r", "--timeout", "1s", "--json"]);
    answer.ends(9).says("run `r` has not ended yet");
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert_eq!((&answer.json()["state"], &answer.json()["exit"]), (&"running".into(), &Value::Null));
    let waiting = bench.start(&["wait", "r", "--json"]);
    bench.glovebox(&["cancel", "r"]).ends(0);
    let waited = Answer::from_child(waiting);
    let document = waited.ends(CANCELED).json();
    assert_eq!((&document["state"], &document["exit"]["name"]), (&"fail".into(), &"interrupted".into()));
    Answer::from_child(child).ends(CANCELED);
    bench.glovebox(&["wait", "r", "--timeout", "0s"]).ends(2);
}

#[test]
fn attaching_shows_what_comes_and_leaves_the_run_alone() {
    let bench = two_stages("3");
    let child = start(&bench, "r");
    until("two begins", || count(&events(&bench, "r"), "stage.started", "two") > 0);
    let mut left = bench.start(&["attach", "r"]);
    let all = bench.start(&["attach", "r", "--all", "--json"]);
    let new = bench.start(&["attach", "r", "--json"]);
    let lines = bench.start(&["attach", "r"]);
    std::thread::sleep(Duration::from_millis(500));
    left.kill().unwrap();
    left.wait().unwrap();
    Answer::from_child(child).ends(0);
    let all = Answer::from_child(all).ends(0).json_lines();
    let kinds: Vec<&Value> = all.iter().map(|line| &line["event"]["kind"]).collect();
    assert_eq!((kinds[0], kinds[all.len() - 2]), (&"run.started".into(), &"run.finished".into()));
    let verdict = &all[all.len() - 1];
    assert_eq!((&verdict["document"], &verdict["exit"]["code"]), (&"verdict".into(), &0.into()));
    assert_eq!(all.len() - 1, bench.run_text("r", "progress.ndjson").lines().count(), "each record once");
    let new = Answer::from_child(new).ends(0).json_lines();
    assert!(new.len() < all.len() && all.ends_with(&new), "what was before is not told");
    let lines = Answer::from_child(lines);
    lines.ends(0).says("two started").says("two success").says("glovebox diff").never_says("one started");
    bench.glovebox(&["attach", "r", "--all"]).ends(0).says("run started").says("one");
}

#[test]
fn a_run_of_another_user_is_left_alone() {
    let bench = two_stages(&length(9));
    let child = asleep(&bench, &[&length(9)]);
    for words in [&["cancel", "r"][..], &["pause", "r"], &["wait", "r"], &["attach", "r"]] {
        let mut command = bench.command(words);
        command.env("GLOVEBOX_STATE_DIR", bench.outside().join("other"));
        Answer::of(&mut command).ends(6).says("is not trusted");
    }
    // A request of a person without a key is ignored, even if the person can write to the inbox.
    let inbox = bench.run_folder("r").join("inbox");
    std::fs::create_dir_all(&inbox).unwrap();
    let forged = format!("{}\n{{\"kind\":\"cancel\",\"by\":\"eve\"}}\n", "0".repeat(64));
    std::fs::write(inbox.join("cancel.json"), forged).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    assert!(sleeps(&length(9)), "it goes on");
    // The forged request does not prevent other requests.
    bench.glovebox(&["cancel", "r", "--as", "ann"]).ends(0);
    Answer::from_child(child).ends(CANCELED).says("canceled by ann");
}

#[test]
fn wrong_names_are_refused() {
    let bench = Workbench::with_pipeline(LINEAR);
    for command in ["cancel", "pause", "wait", "attach"] {
        bench.glovebox(&[command, "nothing"]).ends(2).says("no runs in");
    }
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    for command in ["cancel", "pause", "wait", "attach"] {
        bench.glovebox(&[command, "nothing"]).ends(2).says("no run `nothing`").says("glovebox ls");
        bench.glovebox(&[command]).ends(2).says("<RUN>");
    }
    bench.glovebox(&["wait", "r", "--timeout", "soon"]).ends(2).says("expected a duration");
}

#[test]
fn a_reader_that_goes_away_ends_an_attached_command_quietly() {
    let bench = two_stages("2");
    let child = start(&bench, "r");
    until("a stage begins", || count(&events(&bench, "r"), "stage.started", "") > 0);
    let mut attached = bench.command(&["attach", "r", "--all", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(attached.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("run.started"));
    attached.wait().unwrap();
    Answer::from_child(child).ends(0);
}

#[test]
fn an_attempt_that_was_killed_is_not_made_behind_the_node_that_a_resume_names() {
    let length = format!("1.{}", std::process::id());
    let bench = two_stages(&length);
    for from in ["one", "one@1"] {
        let mut first = asleep(&bench, &[&length]);
        first.kill().unwrap();
        first.wait().unwrap();
        until("its command ends with it", || !sleeps(&length));
        let mut second = bench.start(&["resume", "r", "--from", from]);
        until("it ends", || second.try_wait().unwrap().is_some());
        Answer::from_child(second).ends(0);
        let ran = events(&bench, "r");
        let started = ran.iter().filter(|event| event["kind"] == "stage.started").map(|event| &event["node"]);
        assert_eq!(started.collect::<Vec<_>>(), ["one", "two", "one", "two"], "{from}");
        bench.glovebox(&["rm", "r"]).ends(0);
    }
}

/// Starts run `r` and stops its process with SIGSTOP in the middle of a stage.
fn stopped(bench: &Workbench, length: &str) -> Child {
    let child = asleep(bench, &[length]);
    send(&child, "STOP");
    child
}

#[test]
fn a_run_is_taken_over_from_a_process_that_is_stopped_past_its_lease() {
    let length = format!("5.{}", std::process::id());
    let bench = two_stages(&length);
    let mut first = stopped(&bench, &length);
    let of_one = || bench.glovebox(&["show", "r", "one", "--json"]).ends(0).json();
    let before = of_one();
    let began = Instant::now();
    bench.glovebox(&["resume", "r"]).ends(0).says("is stopped").says("taken over in 30 s");
    assert!(began.elapsed() >= Duration::from_secs(30), "it had its lease");
    let whole = bench.run_text("r", "progress.ndjson");
    assert_eq!(of_one(), before, "nothing was lost");
    // The first process has been killed, so SIGCONT has no effect and the process writes nothing.
    let _no_such_process = Command::new("kill").args(["-CONT", &first.id().to_string()]).output();
    assert_eq!(first.wait().unwrap().code(), None, "a signal ended it");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(bench.run_text("r", "progress.ndjson"), whole);
    let events = events(&bench, "r");
    assert_eq!((count(&events, "run.finished", ""), count(&events, "run.resumed", "")), (1, 1));
    let finished = events.iter().filter(|event| event["kind"] == "stage.finished").map(|event| &event["node"]);
    assert_eq!(finished.collect::<Vec<_>>(), ["one", "two"], "one attempt of each counts");
    bench.glovebox(&["verify", "r"]).ends(0);
}

#[test]
fn a_process_that_goes_on_within_its_lease_keeps_its_run() {
    let length = format!("6.{}", std::process::id());
    let bench = two_stages(&length);
    let first = stopped(&bench, &length);
    let second = bench.start(&["resume", "r"]);
    std::thread::sleep(Duration::from_secs(2));
    send(&first, "CONT");
    Answer::from_child(second).ends(9).says("is stopped").says("is running: another process");
    Answer::from_child(first).ends(0);
    assert_eq!(count(&events(&bench, "r"), "run.resumed", ""), 0);
}

#[test]
fn a_cancel_ends_a_process_that_is_stopped_past_its_lease() {
    let bench = two_stages(&length(10));
    let mut first = stopped(&bench, &length(10));
    bench.glovebox(&["cancel", "r", "--as", "ann"]).ends(0).says("is stopped").says("run r is canceled");
    assert_eq!(first.wait().unwrap().code(), None);
    until("its command ends with it", || !sleeps(&length(10)));
    is_canceled_for_good(&bench, "ann");
}
