//! Random processes of a run are killed at random moments, and files of its folder are cut at random bytes.
//!
//! The run has branches, a retry, a loop, a model, a component without commands, a verifier and a human gate. Victims
//! are the engine, one of its threads, the first process of a sandbox, and the helper that prepared it. A component has
//! no process: it runs on a thread of the engine, and the kernel ends a thread only with its process. The suite finds an
//! acknowledged record that is lost, a change that is committed twice or not at all, a stage that is blamed for the end
//! of its sandbox, an end that differs from that of an undisturbed run, and what a killed process leaves behind.
//!
//! `GLOVEBOX_SOAK_ROUNDS` and `GLOVEBOX_SOAK_SEED` change the number of rounds and the seed. `cargo xtask soak` runs
//! 1,000 rounds. The moments depend on the speed of the machine, so a seed repeats the choices but not the exact kills.

mod check;
mod round;
mod table;

use crate::workbench::journal::{End, end};
use crate::workbench::{Workbench, each};
use round::Round;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use table::Table;

const PIPELINE: &str = r#"digraph soak {
    graph [goal="lose nothing", default_max_retries=0]
    start [shape=Mdiamond]
    fork  [shape=component]
    a     [shape=parallelogram, tool_command="sleep 0.2; echo a >> log/a", allowed_write_paths="log/"]
    b     [shape=parallelogram, tool_command="sleep 0.1; echo b >> log/b; test $(wc -l < log/b) = 2", allowed_write_paths="log/", max_retries=1]
    c     [prompt="Write c", allowed_write_paths="log/"]
    join  [shape=tripleoctagon, merge=all]
    gate  [shape=hexagon, label="Go on?"]
    again [shape=parallelogram, tool_command="sleep 0.1; echo l >> log/again; test $(wc -l < log/again) = 2", allowed_write_paths="log/"]
    look  [type="tree-assert", exists="log/a,log/b,log/c,log/again", absent="*.tmp"]
    check [shape=octagon, command="sleep 0.1; test $(cat log/* | wc -l) = 6", allowed_write_paths=""]
    done  [shape=Msquare]
    start -> fork
    fork -> a
    fork -> b
    fork -> c
    a -> join
    b -> join
    c -> join
    join -> gate
    gate -> again [label="[Y] Yes"]
    gate -> done  [label="[N] No"]
    again -> look  [condition="outcome=success"]
    again -> again [condition="outcome=fail"]
    look -> check -> done
}
"#;

const SCRIPT: &str = r#"
[[node.c]]
tool = [{ name = "write_file", arguments = { path = "log/c", content = "c\n" } }]
[[node.c]]
text = "done"
"#;

/// The stages whose command appends a line to a file of the workspace, each with the file and the number of attempts that
/// a run commits.
const WRITERS: [(&str, &str, usize); 3] = [("a", "log/a", 1), ("b", "log/b", 2), ("again", "log/again", 2)];

const ROUNDS: usize = 50;
const SEED: u64 = 20_261;

fn bench() -> Workbench {
    let bench = Workbench::with_pipeline(PIPELINE);
    bench.write("script.toml", SCRIPT);
    bench.write("answers.txt", "gate: Y\n");
    for (_, file, _) in WRITERS {
        bench.write(file, "");
    }
    bench
}

const RUN: &[&str] =
    &["run", "pipeline.dot", "--script", "script.toml", "--answers", "answers.txt", "--json", "--run-id", "r"];
const RESUME: &[&str] = &["resume", "r", "--answers", "answers.txt", "--json"];

/// Runs the pipeline undisturbed. Returns how the run ended and how long it took. The first run fills the store of compiled
/// components.
fn undisturbed() -> (End, Duration) {
    bench().glovebox(RUN).ends(0);
    let bench = bench();
    let before = Instant::now();
    bench.glovebox(RUN).ends(0);
    let took = before.elapsed();
    (end(&bench.run_folder("r")), took)
}

/// Returns the number that a variable of the environment sets.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

#[test]
fn random_victims_lose_nothing_and_duplicate_nothing() {
    let rounds = usize::try_from(number("GLOVEBOX_SOAK_ROUNDS", ROUNDS as u64)).unwrap();
    let seed = number("GLOVEBOX_SOAK_SEED", SEED);
    let (expected, whole) = undisturbed();
    let table = Mutex::new(Table::new(seed, rounds));
    each(rounds, |number| {
        let result = Round::new(seed, number).play(&expected, whole);
        table.lock().unwrap().add(result);
    });
    let table = table.into_inner().unwrap();
    table.print();
    assert!(table.faults().is_empty(), "{}", table.faults().join("\n"));
    assert!(rounds < ROUNDS || table.kills_everything(), "some victims were never found");
}
