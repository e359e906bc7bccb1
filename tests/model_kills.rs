//! A run of forty turns is killed after each of its records, and while it waits for the answer of each turn. After a
//! resume it ends as an undisturbed run does, and no answer is paid for twice.
//!
//! The witness is the log of the provider. The provider chooses an answer by the content of the request, not by its
//! number, so a repeated request gets the same answer again and is found in the log.

use crate::providers::{Bench, FAMILIES, Turn};
use crate::workbench::each;
use crate::workbench::journal::{End, end};
use serde_json::json;
use std::collections::BTreeMap;

const PIPELINE: &str = "digraph ship {
  start [shape=Mdiamond]
  build [prompt=\"Build it\", allowed_write_paths=\"src/\"]
  check [shape=parallelogram, tool_command=\"test -f src/34.txt\", allowed_write_paths=\"\"]
  review [prompt=\"Look at the work\", allowed_write_paths=\"notes/\"]
  exit [shape=Msquare]
  start -> build -> check -> review -> exit
}
";
/// Number of turns of the first and of the second stage.
const TURNS: [usize; 2] = [36, 4];
const ALL: usize = TURNS[0] + TURNS[1];

/// Returns the path of the file that the turn writes. The last turn of a stage writes none.
fn file(stage: usize, turn: usize) -> String {
    format!("{}/{turn}.txt", ["src", "notes"][stage])
}

/// Returns a text that the request of this turn contains and no earlier request does.
fn mark(stage: usize, turn: usize) -> String {
    let prompt = ["Build it", "Look at the work"][stage];
    turn.checked_sub(1).map_or_else(|| prompt.to_owned(), |before| file(stage, before))
}

/// Returns the answers, in reverse order of the turns, because a request also contains the texts of all earlier turns.
fn answers() -> Vec<Turn> {
    let order = (0..2).rev().flat_map(|stage| (0..TURNS[stage]).rev().map(move |turn| (stage, turn)));
    let answer = |(stage, turn): (usize, usize)| {
        let write = || Turn::tool("write_file", json!({ "path": file(stage, turn), "content": format!("{turn}\n") }));
        let answer = if turn + 1 == TURNS[stage] { Turn::text("OUTCOME: SUCCESS") } else { write() };
        answer.usage(100, 10).when(&mark(stage, turn)).repeat()
    };
    order.map(answer).collect()
}

/// Runs the pipeline undisturbed. Returns how the run ended and how many records it has.
fn undisturbed() -> (End, usize) {
    let bench = Bench::new(PIPELINE, "openai", &answers());
    bench.run().ends(0);
    assert_eq!(bench.requests().len(), ALL);
    let end = ended(&bench);
    assert_eq!(end.last["tokens"], json!({ "input": 100 * ALL, "output": 10 * ALL }));
    (end, bench.read_in_run("progress.ndjson").lines().count())
}

/// Returns how a run ended, without glovebox.toml, in which the address of the provider differs.
fn ended(bench: &Bench) -> End {
    let mut end = end(&bench.run_folder());
    end.workspace.remove("glovebox.toml");
    end
}

/// Resumes a killed run and checks that it ends as `expected`. Only a request whose answer had not arrived may be
/// repeated.
fn resume_and_compare(bench: &Bench, expected: &End, what: &str) {
    bench.resume().ends(0);
    assert_eq!(&ended(bench), expected, "{what}");
    let requests = bench.requests();
    let mut times = BTreeMap::new();
    requests.iter().for_each(|request| *times.entry(request).or_insert(0) += 1);
    assert_eq!(times.len(), ALL, "{what}: each question is asked");
    assert!(requests.len() <= ALL + 1, "{what}: {} requests", requests.len());
    assert!(!bench.run_folder().join("exchanges").exists(), "{what}");
}

#[test]
fn killed_at_each_record_a_run_of_forty_turns_ends_the_same() {
    let (expected, records) = undisturbed();
    assert!(records > 15, "{records}");
    each(records - 1, |at| {
        let bench = Bench::new(PIPELINE, FAMILIES[at % FAMILIES.len()], &answers());
        bench.kill_run_at_record(at + 1);
        resume_and_compare(&bench, &expected, &format!("killed at record {}", at + 1));
    });
}

#[test]
fn killed_in_each_of_forty_turns_a_run_ends_the_same() {
    let (expected, _) = undisturbed();
    each(ALL, |at| {
        let (stage, turn) = if at < TURNS[0] { (0, at) } else { (1, at - TURNS[0]) };
        let stall = Turn::text("never").stall().when(&mark(stage, turn));
        let bench = Bench::new(PIPELINE, FAMILIES[at % FAMILIES.len()], &[&[stall][..], &answers()].concat());
        bench.kill_run_after(at + 1);
        resume_and_compare(&bench, &expected, &format!("killed in turn {}", at + 1));
        assert_eq!(bench.requests().len(), ALL + 1, "the question without an answer is asked again");
    });
}
