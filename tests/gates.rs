//! Human gates: a run asks a question, waits without a process, and continues with the first valid answer.
//!
//! Answers come from a file, from a command, from the gate's default or from `--auto-approve`. A question without an
//! answer fails closed.

use crate::workbench::{Answer, Workbench};
use serde_json::Value;
use std::time::{Duration, Instant};

const PAUSED: i32 = 10;

/// Creates a human gate with two choices, and a stage behind each.
fn bench(gate: &str) -> Workbench {
    Workbench::with_pipeline(&format!(
        "digraph release {{
  start; exit
  gate [shape=hexagon, {gate}]
  ship [shape=parallelogram, tool_command=\"echo shipped\", allowed_write_paths=\"\"]
  fix  [shape=parallelogram, tool_command=\"echo fixed\", allowed_write_paths=\"\"]
  start -> gate
  gate -> ship [label=\"[S] Ship it\"]
  gate -> fix  [label=\"F) Fix first\"]
  ship -> exit
  fix  -> exit
}}
"
    ))
}

fn run(bench: &Workbench, more: &[&str]) -> Answer {
    bench.glovebox(&[&["run", "pipeline.dot", "--run-id", "r"], more].concat())
}

fn visited(bench: &Workbench) -> Vec<String> {
    let shown = bench.glovebox(&["show", "r", "--json"]).json();
    shown["visited"].as_array().unwrap().iter().map(|visit| visit["node"].as_str().unwrap().to_owned()).collect()
}

/// Returns the events of one kind.
fn events(bench: &Workbench, kind: &str) -> Vec<Value> {
    let lines = bench.run_text("r", "progress.ndjson");
    let records = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.map(|record| record["event"].clone()).filter(|event| event["kind"] == kind).collect()
}

#[test]
fn a_run_waits_without_a_process_and_goes_on_with_the_answer() {
    let bench = bench("label=\"Ship?\"");
    run(&bench, &[]).ends(PAUSED).says("gate#1").says("Ship?").says("glovebox answer r");
    assert!(!bench.has(".glovebox/runs/r/final.json"), "it has not ended");
    bench.glovebox(&["ls"]).ends(0).says("paused");
    let open = bench.glovebox(&["gates", "--json"]).ends(0).json();
    assert_eq!(open["gates"][0]["question"], "gate#1");
    assert_eq!(open["gates"][0]["choices"][1]["key"], "F");
    // A resume does not answer the question.
    bench.glovebox(&["resume", "r"]).ends(PAUSED);
    let wrong = bench.glovebox(&["answer", "r", "gate", "maybe"]);
    wrong.ends(2).says("`S` (Ship it)").says("`F` (Fix first)");
    bench.glovebox(&["answer", "r", "gate", "f", "--as", "ann", "--text", "tests first"]).ends(0).says("resume");
    // Only the first answer is used.
    bench
        .glovebox(&["answer", "r", "gate#1", "S", "--as", "bob"])
        .ends(6)
        .says("answered already with `f` (by ann at 2");
    bench.glovebox(&["resume", "r"]).ends(0);
    assert_eq!(visited(&bench), ["gate", "fix"]);
    bench.glovebox(&["answer", "r", "gate", "S"]).ends(6).says("Fix first").says("ann");
    let answered = &events(&bench, "question.answered")[0];
    assert_eq!((answered["how"].as_str(), answered["by"].as_str()), (Some("command"), Some("ann")));
    let context = &bench.run_json("r", "checkpoint.json")["context"];
    assert_eq!(context["human.gate.selected"], "F");
    assert_eq!(context["human.gate.label"], "F) Fix first");
    assert_eq!(context["human.gate.text"], "tests first");
    bench.glovebox(&["gates"]).ends(0).says("no open questions");
    bench.glovebox(&["verify", "r"]).ends(0);
}

#[test]
fn a_file_answers_in_order_or_by_node() {
    for (file, code, ends) in [
        ("S\n", 0, "ship"),
        ("# reviewed\n\n gate: fix first\n", 0, "fix"),
        ("nonsense\nship\n", 0, "ship"),
        ("nonsense\n", PAUSED, "nonsense"),
        ("", PAUSED, ""),
    ] {
        let bench = bench("label=\"Ship?\"");
        bench.write("answers.txt", file);
        let answer = run(&bench, &["--answers", "answers.txt"]);
        answer.ends(code);
        match code {
            0 => assert_eq!(visited(&bench), ["gate", ends], "{file}"),
            _ => assert!(events(&bench, "run.paused")[0].to_string().contains(ends), "{file}"),
        }
    }
}

#[test]
fn approving_everything_is_in_the_record() {
    let bench = bench("label=\"Ship?\", \"human.default_choice\"=fix");
    run(&bench, &["--auto-approve"]).ends(0);
    assert_eq!(visited(&bench), ["gate", "ship"]);
    assert_eq!(events(&bench, "question.answered")[0]["how"], "auto");
}

#[test]
fn nobody_there_means_the_default_and_a_timeout_without_one_fails() {
    let bench1 = bench("\"human.default_choice\"=\"F\"");
    run(&bench1, &[]).ends(0);
    assert_eq!(visited(&bench1), ["gate", "fix"]);
    assert_eq!(events(&bench1, "question.answered")[0]["how"], "default");

    let bench2 = bench("\"human.default_choice\"=ship, timeout=\"1s\"");
    run(&bench2, &[]).ends(0);
    assert_eq!(events(&bench2, "question.answered")[0]["how"], "timeout");
    assert_eq!(visited(&bench2), ["gate", "ship"]);

    let bench3 = bench("\"human.timeout\"=\"1s\"");
    run(&bench3, &[]).ends(1).says("human gate timeout, no default");
}

#[test]
fn the_time_of_a_question_passes_while_no_process_runs() {
    let bench = bench("timeout=\"11s\"");
    run(&bench, &[]).ends(PAUSED);
    std::thread::sleep(Duration::from_secs(11));
    bench.glovebox(&["answer", "r", "gate", "S"]).ends(6).says("could be answered until");
    bench.glovebox(&["resume", "r"]).ends(1).says("human gate timeout, no default");
}

#[test]
fn questions_have_four_types() {
    for (kind, answer, ends) in
        [("yes_no", "no", "fix"), ("confirmation", "y", "ship"), ("multiple_choice", "fix", "fix")]
    {
        let bench = bench(&format!("\"human.type\"={kind}"));
        bench.write("a", &format!("{}\n", if answer == "no" { "F" } else { answer }));
        run(&bench, &["--answers", "a"]).ends(0);
        assert_eq!(visited(&bench), ["gate", ends], "{kind}");
    }
    let free = Workbench::with_pipeline(
        "digraph g { start; exit
  ask [shape=hexagon, \"human.type\"=freeform, label=\"Why?\"]
  say [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]
  start -> ask -> say -> exit }",
    );
    free.write("a", "because \u{1b}[31m of it\n");
    let answer = run(&free, &["--answers", "a"]);
    answer.ends(0).never_says("\u{1b}[31m");
    assert_eq!(free.run_json("r", "checkpoint.json")["context"]["human.gate.text"], "because \u{1b}[31m of it");
}

#[test]
fn edges_for_success_and_failure_are_choices_where_nothing_else_is() {
    // The edges are written as for other engines. A negative answer must not be treated as a success.
    let edges = "gate -> ship [label=\"[Y] Approve\", condition=\"outcome=success\", weight=2]
      gate -> fix [label=\"[N] Revise\", condition=\"outcome=fail\"]";
    let bench = |kind: &str, more: &str| {
        Workbench::with_pipeline(&format!(
            "digraph release {{ start; exit; gate [shape=hexagon, label=\"Ship?\", mode={kind}]
              ship [shape=parallelogram, tool_command=\"echo shipped\", allowed_write_paths=\"\"]
              fix [shape=parallelogram, tool_command=\"echo fixed\", allowed_write_paths=\"\"]
              start -> gate; {edges}; {more} ship -> exit; fix -> gate }}"
        ))
    };
    let declined = bench("yes_no", "");
    declined.glovebox(&["check", "pipeline.dot"]).ends(0).says("Glovebox reads `mode` as `human.type`");
    run(&declined, &[]).ends(PAUSED).says("`Y` (Approve), `N` (Revise)");
    declined.glovebox(&["answer", "r", "gate", "no"]).ends(0);
    declined.glovebox(&["resume", "r"]).ends(PAUSED);
    // A person may decline more often than `loop_restart_signature_limit` allows failures.
    for question in ["gate#2", "gate#3", "gate#4"] {
        declined.glovebox(&["answer", "r", question, "N"]).ends(0);
        declined.glovebox(&["resume", "r"]).ends(PAUSED);
    }
    declined.glovebox(&["answer", "r", "gate#5", "Approve"]).ends(0);
    declined.glovebox(&["resume", "r"]).ends(0);
    assert_eq!(visited(&declined).last().map(String::as_str), Some("ship"));
    let approved = bench("yes_no", "");
    run(&approved, &["--auto-approve"]).ends(0);
    assert_eq!(visited(&approved), ["gate", "ship"]);
    // If the gate has an ordinary choice, the edge for failures is not a choice.
    run(&bench("multiple_choice", "gate -> ship [label=\"Ship\"];"), &[])
        .ends(PAUSED)
        .says("`S` (Ship)")
        .never_says("Revise");
}

#[test]
fn a_process_that_waits_takes_an_answer_and_loses_none_when_it_is_killed() {
    // If the timeout of the gate is close, the process waits for the answer.
    let bench = bench("timeout=\"9s\"");
    let child = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
    let began = Instant::now();
    while events_if_any(&bench).is_empty() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    bench.glovebox(&["answer", "r", "gate", "S", "--json"]).ends(0).says("recorded");
    Answer::from_child(child).ends(0);
    assert_eq!(visited(&bench), ["gate", "ship"]);
}

#[test]
fn an_answer_can_go_on_with_the_run_in_the_same_process() {
    let bench = bench("label=\"Ship?\"");
    run(&bench, &[]).ends(PAUSED);
    bench.glovebox(&["answer", "r", "gate", "maybe", "--resume"]).ends(2);
    bench.glovebox(&["answer", "r", "gate", "S", "--resume"]).ends(0).says("answered gate#1").says("success");
    assert_eq!(visited(&bench), ["gate", "ship"]);
    bench
        .glovebox(&["answer", "r", "gate", "F", "--resume"])
        .ends(6)
        .says("answered already with `Ship it`")
        .says(" at 2");
    let other = self::bench("label=\"Ship?\"");
    run(&other, &[]).ends(PAUSED);
    let lines = other.glovebox(&["answer", "r", "gate", "F", "--resume", "--json"]).ends(0).json_lines();
    assert_eq!((&lines[0]["state"], &lines[0]["label"]), (&"kept".into(), &"Fix first".into()));
    assert!(lines.iter().any(|line| line["event"]["kind"] == "question.answered"), "{lines:?}");
    assert_eq!(lines.last().unwrap()["status"], "success");
}

#[test]
fn an_answer_that_waits_for_the_resume_is_not_an_open_question() {
    let bench = bench("label=\"Ship?\"");
    run(&bench, &[]).ends(PAUSED);
    bench.glovebox(&["answer", "r", "gate", "F", "--as", "ann\u{1b}[2K"]).ends(0);
    let listed = bench.glovebox(&["gates"]);
    listed
        .ends(0)
        .says("no open questions")
        .says("gate#1 of r was answered with `F` by ann\\x1b[2K; next: glovebox resume r");
    let json = bench.glovebox(&["gates", "r", "--json"]).ends(0).json();
    assert_eq!((json["gates"].as_array().unwrap().len(), &json["answered"][0]["value"]), (0, &"F".into()));
    let shown = bench.glovebox(&["show", "r"]);
    shown.ends(0).never_says("waits for").says("answered     gate#1 with `F` by ann\\x1b[2K; the resume records it");
    shown.says("next         glovebox resume r");
    bench.glovebox(&["answer", "r", "gate", "S"]).ends(6).says("answered already with `F` (by ann\\x1b[2K at 2");
    bench.glovebox(&["resume", "r"]).ends(0);
    assert_eq!(bench.glovebox(&["gates", "r", "--json"]).ends(0).json()["answered"], serde_json::json!([]));
}

/// Creates a pipeline with two human gates with the same choices and a stage between them.
fn two_gates(between: &str) -> Workbench {
    Workbench::with_pipeline(&format!(
        "digraph g {{ start; exit; one [shape=hexagon]; two [shape=hexagon]
  work [shape=parallelogram, tool_command=\"{between}\", allowed_write_paths=\"\"]
  a [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]
  start -> one; one -> work [label=A]; one -> work [label=B]; work -> two; two -> a [label=A]; two -> exit [label=B]; a -> exit }}"
    ))
}

fn values(bench: &Workbench) -> Vec<String> {
    let events = events(bench, "question.answered");
    events.iter().map(|event| format!("{} {}", event["node"], event["value"]).replace('"', "")).collect()
}

#[test]
fn a_line_of_a_file_of_answers_is_used_once_in_a_run() {
    let bench = two_gates("true");
    bench.write("answers", "A\n");
    run(&bench, &["--answers", "answers"]).ends(PAUSED);
    // The line that answered the first gate does not answer the second one.
    bench.glovebox(&["resume", "r", "--answers", "answers"]).ends(PAUSED);
    assert_eq!(values(&bench), ["one A"]);
    bench.write("answers", "A\nB\n");
    bench.glovebox(&["resume", "r", "--answers", "answers"]).ends(0);
    assert_eq!(values(&bench), ["one A", "two A"], "a file with other content is another file");

    let killed = two_gates("sleep 5");
    killed.write("answers", "# the first\nnonsense\nB\ntwo: B\nA\n");
    let mut child = killed.start(&["run", "pipeline.dot", "--run-id", "r", "--answers", "answers"]);
    let began = Instant::now();
    while !killed.has(".glovebox/runs/r/progress.ndjson") || events(&killed, "question.answered").is_empty() {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    killed.glovebox(&["resume", "r", "--answers", "answers"]).ends(0);
    assert_eq!(values(&killed), ["one B", "two B"]);
    killed.glovebox(&["verify", "r"]).ends(0);
}

#[test]
fn of_two_answers_at_the_same_time_one_wins_and_the_other_is_told() {
    const ROUNDS: usize = 12;
    let gates: String = (0..ROUNDS)
        .map(|at| format!("g{at} [shape=hexagon]; a -> g{at}; g{at} -> b [label=Left]; g{at} -> b [label=Right]\n"))
        .collect();
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{ start; exit; a [shape=component, max_parallel={ROUNDS}]; b [shape=tripleoctagon]; start -> a; {gates} b -> exit }}"
    ));
    run(&bench, &[]).ends(PAUSED);
    let mut winners = Vec::new();
    for at in 0..ROUNDS {
        let gate = format!("g{at}");
        let start = |value: &str, by: &str| bench.start(&["answer", "r", &gate, value, "--as", by]);
        let (left, right) = (start("Left", "ann"), start("Right", "bob"));
        let (left, right) = (Answer::from_child(left), Answer::from_child(right));
        let (winner, loser, is_undone) = if left.code == 0 { (left, right, true) } else { (right, left, false) };
        winner.ends(0).says("answered");
        let first = if is_undone { "`Left` (by ann at 2" } else { "`Right` (by bob at 2" };
        loser.ends(6).says("was answered already with").says(first);
        winners.push((gate, if is_undone { "ann" } else { "bob" }));
    }
    bench.glovebox(&["resume", "r"]).ends(0);
    let recorded = events(&bench, "question.answered");
    assert_eq!(recorded.len(), ROUNDS);
    for (gate, by) in winners {
        assert!(recorded.iter().any(|event| event["node"] == gate.as_str() && event["by"] == by), "{gate} {by}");
    }
}

fn events_if_any(bench: &Workbench) -> Vec<Value> {
    if bench.has(".glovebox/runs/r/progress.ndjson") { events(bench, "question.asked") } else { Vec::new() }
}

#[test]
fn check_finds_gates_that_nobody_can_answer() {
    let check = |gate: &str| bench(gate).glovebox(&["check", "pipeline.dot"]);
    check("\"human.default_choice\"=later").ends(3).says("human_gate").says("is not a choice of human gate");
    check("label=x").ends(0);
    let keys = Workbench::with_pipeline(
        "digraph g { start; exit; t [shape=parallelogram, tool_command=t, allowed_write_paths=\"\"]
  gate [shape=hexagon] start -> gate; gate -> exit [label=Go]; gate -> t [label=Get]; t -> exit }",
    );
    keys.glovebox(&["check", "pipeline.dot"]).ends(0).says("human_gate_keys");
}

#[test]
fn no_stage_answers_its_own_gate() {
    let bench = Workbench::with_pipeline(
        "digraph g { start; exit
  forge [shape=parallelogram, tool_command=\"sh forge.sh\", allowed_write_paths=\"inbox/\"]
  gate [shape=hexagon, label=\"Ship?\"]
  start -> forge; forge -> gate [condition=\"outcome=success\"]; forge -> gate [condition=\"outcome=fail\"]; gate -> exit [label=Ship] }",
    );
    let inbox = bench.run_folder("r").join("inbox");
    let text = "{\\\"kind\\\":\\\"answer\\\",\\\"question\\\":\\\"gate#1\\\",\\\"value\\\":\\\"Ship\\\",\\\"text\\\":\\\"\\\",\\\"by\\\":\\\"me\\\",\\\"at\\\":\\\"2026-01-01T00:00:00Z\\\"}";
    let name = format!("answer-{}.json", blake3_hex("gate#1"));
    bench.write(
        "forge.sh",
        &format!(
            "for d in {0} ../inbox ../../inbox inbox; do mkdir -p $d; echo \"0\n{text}\" > $d/{name}; done; true\n",
            inbox.display()
        ),
    );
    run(&bench, &[]).ends(PAUSED);
    // An answer written by a process that can write to the inbox but does not have the user's key is ignored.
    std::fs::create_dir_all(&inbox).unwrap();
    std::fs::write(inbox.join(&name), format!("{}\n{}\n", "0".repeat(64), text.replace('\\', ""))).unwrap();
    bench.glovebox(&["resume", "r"]).ends(PAUSED);
    assert!(events(&bench, "question.answered").is_empty());
}

fn blake3_hex(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
