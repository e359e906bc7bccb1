//! Pipelines of other projects, unchanged: `check` agrees with `run` about each of them, and the test counts those that
//! run.
//!
//! The pipelines are not in this repository. `GLOVEBOX_CORPUS=<folder>` names copies of them. Without this variable the
//! test checks nothing. `runtime/pipeline/tests/corpus/README.md` lists the pipelines.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

mod workbench;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use workbench::{Answer, Workbench};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|ending| ["dot", "gv", "fabro"].iter().any(|known| ending == *known)) {
            found.push(path);
        }
    }
}

/// Returns the exit code of `check`, and the rules of the errors that it reports, without repetitions.
fn reasons(bench: &Workbench) -> (i32, Vec<String>) {
    let answer = Answer::of(&mut bench.bare(&["check", "pipeline.dot", "--format", "json"]));
    let found = answer.json();
    let errors = found.as_array().unwrap().iter().filter(|found| found["severity"] == "error");
    let mut rules: Vec<String> = errors.map(|found| found["rule"].as_str().unwrap().to_owned()).collect();
    rules.sort();
    rules.dedup();
    (answer.code, rules)
}

#[test]
fn what_check_accepts_runs_and_what_it_refuses_has_a_name() {
    let Some(folder) = std::env::var_os("GLOVEBOX_CORPUS").map(PathBuf::from) else { return };
    let mut pipelines = Vec::new();
    files(&folder, &mut pipelines);
    let (mut run, mut refused, mut disagreements) = (0, BTreeMap::<String, usize>::new(), Vec::new());
    for path in &pipelines {
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        let bench = Workbench::new();
        std::fs::copy(path, bench.project().join("pipeline.dot")).unwrap();
        for entry in std::fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()) {
            // Prompt files are in the folder of the pipeline.
            if entry.is_file() && entry != *path {
                std::fs::copy(&entry, bench.project().join(entry.file_name().unwrap())).unwrap();
            }
        }
        let (code, rules) = reasons(&bench);
        let started =
            Answer::of(&mut bench.bare(&["run", "pipeline.dot", "--simulate", "--quiet", "--max-steps", "40"]));
        let has_begun = bench.has(".glovebox/runs/") && started.code != 3 && started.code != 7;
        if has_begun != rules.is_empty() || (code != 0 && code != started.code) {
            disagreements.push(format!("{name}: check {code} {rules:?}, run {}: {}", started.code, started.stderr));
        }
        run += usize::from(has_begun);
        rules.into_iter().for_each(|rule| *refused.entry(rule).or_default() += 1);
    }
    println!("{run} of {} public pipelines run unchanged; refused by rule: {refused:?}", pipelines.len());
    assert!(disagreements.is_empty(), "{} disagree:\n{}", disagreements.len(), disagreements.join("\n"));
    assert!(run > 0, "none runs");
}
