//! Human gates that a person answers in the terminal of `run` or `resume`.
//!
//! Each test has a pseudo terminal and types like a person. A question that the person leaves without an answer stays
//! open.

use crate::session::Session;
use crate::workbench::Workbench;
use std::time::Duration;

const PAUSED: i32 = 10;
const PROMPT: &str = "Ctrl-C leaves the question open: ";

/// Creates a pipeline with a stage and a human gate. `gate` are the attributes of the gate, `before` is the command of
/// the stage.
fn bench(gate: &str, before: &str) -> Workbench {
    Workbench::with_pipeline(&format!(
        "digraph release {{ start; exit
  make [shape=parallelogram, tool_command=\"{before}\", allowed_write_paths=\"new.txt\"]
  gate [shape=hexagon, label=\"Ship?\", {gate}]
  ship [shape=parallelogram, tool_command=\"echo shipped\", allowed_write_paths=\"\"]
  fix  [shape=parallelogram, tool_command=\"echo fixed\", allowed_write_paths=\"\"]
  start -> make -> gate
  gate -> ship [label=\"[S] Ship it\"]
  gate -> fix  [label=\"[F] Fix first\"]
  ship -> exit; fix -> exit }}"
    ))
}

fn run(bench: &Workbench, more: &[&str]) -> Session {
    let mut command = bench.command(&[&["run", "pipeline.dot", "--run-id", "r"], more].concat());
    command.env("USER", "ann");
    Session::start(command)
}

/// Returns the answers to questions: how, by whom, and with which choice or text.
fn answered(bench: &Workbench) -> String {
    let lines = bench.run_text("r", "progress.ndjson");
    let events = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["event"].clone());
    let answers = events.filter(|event| event["kind"] == "question.answered");
    let texts = answers.map(|one| {
        let label = &one["answer"]["choice"]["key"];
        format!("{} {} {}", one["how"], one["by"], if label.is_null() { &one["text"] } else { label }).replace('"', "")
    });
    texts.collect::<Vec<_>>().join(", ")
}

#[test]
fn a_person_sees_what_an_answer_approves_and_is_asked_again_until_it_is_valid() {
    let bench = bench("x=y", "echo new > new.txt");
    let session = run(&bench, &[]);
    session.waits_for(PROMPT, 1).types("maybe\n").waits_for("error: `maybe` is not an answer", 1);
    session.waits_for(PROMPT, 2).types("\n").waits_for(PROMPT, 3).types("2\n");
    let shown = session.ends(0);
    for words in [
        "gate#1: Ship?\n",
        "new.txt (new) +1 -0",
        "may run echo shipped",
        "answer `S` (Ship it), `F` (Fix first) or 1-2; ",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains('\u{1b}'), "TERM=dumb: {shown}");
    assert_eq!(answered(&bench), "terminal ann F");
}

#[test]
fn enter_takes_the_default_on_a_screen_without_colours() {
    let bench = bench("\"human.default_choice\"=ship, timeout=\"1h\"", "true");
    let mut command = bench.command(&["run", "pipeline.dot", "--run-id", "r"]);
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    let session = Session::start(command);
    session.waits_for("Enter takes `Ship it`; 59m", 1).waits_for(PROMPT, 1).types("\n");
    let shown = session.ends(0);
    assert!(!shown.contains("\u{1b}[3") && !shown.contains("\u{1b}[1m"), "{shown:?}");
    assert!(answered(&bench).starts_with("terminal ") && answered(&bench).ends_with(" S"), "{}", answered(&bench));
}

#[test]
fn a_question_that_is_left_stays_open() {
    // If a person leaves the terminal, neither the default choice nor a timeout that is about to expire answers.
    for gate in ["x=y", "\"human.default_choice\"=ship", "\"human.default_choice\"=ship, timeout=\"9s\""] {
        for by_signal in [true, false] {
            let bench = bench(gate, "true");
            let session = run(&bench, &[]);
            session.waits_for(PROMPT, 1);
            if by_signal {
                session.interrupts()
            } else {
                session.types("\u{4}")
            };
            let shown = session.ends(PAUSED);
            assert!(shown.contains("gate#1 stays open"), "{shown}");
            assert_eq!(answered(&bench), "", "{gate}");
            bench.glovebox(&["answer", "r", "gate", "F"]).ends(0);
            bench.glovebox(&["resume", "r"]).ends(0);
        }
    }
}

#[test]
fn who_must_not_be_asked_is_not_asked() {
    let with = bench("x=y", "true");
    with.write("answers", "S\n");
    let shown = run(&with, &["--answers", "answers"]).ends(0);
    assert!(!shown.contains(PROMPT), "{shown}");
    for flags in [&["--auto-approve"][..], &["--no-input"]] {
        let bench = bench("x=y", "true");
        let code = if flags[0] == "--no-input" { PAUSED } else { 0 };
        assert!(!run(&bench, flags).ends(code).contains(PROMPT), "{flags:?}");
    }
    // If the file has no answer left, the person is asked.
    let short = bench("x=y", "true");
    short.write("answers", "nonsense\n");
    let session = run(&short, &["--answers", "answers"]);
    session.waits_for(PROMPT, 1).types("s\n");
    session.ends(0);
    // A resume asks the person, too.
    let later = bench("x=y", "true");
    run(&later, &["--no-input"]).ends(PAUSED);
    let session = Session::start(later.command(&["resume", "r"]));
    session.waits_for(PROMPT, 1).types("Fix first\n");
    session.ends(0);
}

#[test]
fn a_question_goes_away_when_it_was_answered_elsewhere_or_its_time_is_over() {
    let elsewhere = bench("x=y", "true");
    let session = run(&elsewhere, &[]);
    session.waits_for(PROMPT, 1);
    elsewhere.glovebox(&["answer", "r", "gate", "S", "--as", "bob"]).ends(0).says("answered gate#1");
    session.ends(0);
    assert_eq!(answered(&elsewhere), "command bob S");
    let late = bench("\"human.default_choice\"=fix, timeout=\"2s\"", "true");
    run(&late, &[]).ends(0);
    assert_eq!(answered(&late), "timeout  F");
}

#[test]
fn keys_of_before_the_question_do_not_answer_it() {
    let bench = bench("x=y", "sleep 2");
    let session = run(&bench, &[]);
    session.waits_for("make started", 1).types("S\n").waits_for(PROMPT, 1);
    std::thread::sleep(Duration::from_millis(500));
    session.types("F\n");
    session.ends(0);
    assert_eq!(answered(&bench), "terminal ann F");
}

#[test]
fn progress_of_other_branches_waits_for_the_answer() {
    let bench = Workbench::with_pipeline(
        "digraph g { start; exit; a [shape=component]; b [shape=tripleoctagon]
  ask [shape=hexagon, \"human.type\"=freeform, label=\"Why?\"]
  two [shape=parallelogram, tool_command=\"sleep 1\", allowed_write_paths=\"\"]
  start -> a; a -> ask; a -> two; ask -> b; two -> b; b -> exit }",
    );
    let session = run(&bench, &[]);
    session.waits_for(PROMPT, 1);
    std::thread::sleep(Duration::from_secs(3));
    session.types("since it rains\n");
    let shown = session.ends(0);
    let (_, behind) = shown.split_once(PROMPT).unwrap();
    assert!(behind.starts_with("since it rains\n"), "{shown}");
    assert!(behind.contains("two success"), "the lines come after the answer: {shown}");
    assert_eq!(answered(&bench), "terminal ann since it rains");
}

#[test]
fn the_key_t_prints_what_runs_with_its_scope() {
    let bench = bench("x=y", "sleep 4; echo new > new.txt");
    let mut command = bench.command(&["run", "pipeline.dot", "--run-id", "r"]);
    command.env("USER", "ann").env("TERM", "xterm").env("NO_COLOR", "1");
    let session = Session::start(command);
    // The key needs no Enter, is not shown, and is no part of the answer to the question that follows.
    session.waits_for("● make", 1).types("t").waits_for("reads the workspace; writes new.txt", 1);
    session.waits_for(PROMPT, 1).types("S\n");
    let shown = session.ends(0);
    assert!(shown.contains("1 proved"), "{shown}");
    assert_eq!(answered(&bench), "terminal ann S");
}
