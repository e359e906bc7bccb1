//! Pipelines of other projects, unchanged: `check` agrees with `run` about each of them, and the test counts those that
//! run.
//!
//! Every pipeline that is refused has its name here, with the reason. A new one fails the test.
//!
//! The pipelines are not in this repository. `GLOVEBOX_CORPUS=<folder>` names copies of them. Without this variable the
//! test checks nothing. `runtime/pipeline/tests/corpus/README.md` lists the pipelines.

use crate::workbench::{Answer, Workbench};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Why a pipeline is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// It is a test of a validator, a drawing, or another text, and not meant to run.
    NotToRun,
    /// A command needs a path of one machine, or a file in `/tmp` that two stages share. It would fail in a sandbox.
    NeedsTheMachine,
    /// A stage has nothing to do: no command, or no child pipeline.
    NothingToDo,
    /// A file that it names does not exist below its folder or in its project.
    FileIsMissing,
    /// It uses what Glovebox does not have: other operators in conditions, subgraphs of files, hooks of commands.
    NotInGlovebox,
}

use Reason::{FileIsMissing, NeedsTheMachine, NotInGlovebox, NotToRun, NothingToDo};

/// Ends of the names of all refused pipelines.
const REFUSED: [(&str, Reason); 36] = [
    ("mammoth/editor/static/examples/parallel.dot", NothingToDo),
    ("mammoth/examples/old/semport.dot", NeedsTheMachine),
    ("mammoth/examples/semport.dot", NeedsTheMachine),
    ("tracker/examples/glimpser-port.dot", NeedsTheMachine),
    ("tracker/examples/semport.dot", NeedsTheMachine),
    ("allouis/attractor/pipelines/amend-pr/pipeline.dot", NotInGlovebox),
    ("allouis/attractor/pipelines/checks/pipeline.dot", NotInGlovebox),
    ("allouis/attractor/pipelines/plan-build-review/pipeline.dot", NotInGlovebox),
    ("allouis/attractor/pipelines/review-pr/pipeline.dot", NotInGlovebox),
    ("allouis/attractor/pipelines/revise-pr/pipeline.dot", NotInGlovebox),
    ("examples/full-cluster-topology-example.dot", NothingToDo),
    ("examples/full-initiative.dot", NothingToDo),
    ("examples/poc-parallel.dot", NothingToDo),
    ("tests/fixtures/test-e2e-pipeline.dot", NothingToDo),
    ("connect-the-bots/templates/plan-to-execute.dot", NothingToDo),
    ("pascals-discrete-attractor/templates/plan-to-execute.dot", NothingToDo),
    ("demo/substack-spec-v01-ui.gv", NotToRun),
    ("demo/tool-only/graph.dot", NeedsTheMachine),
    ("simple_example_integration_smoke_test.dot", NotToRun),
    ("workflows/implement-issue/workflow.fabro", FileIsMissing),
    ("workflows/implement-plan/workflow.fabro", NeedsTheMachine),
    ("fixtures/command_agent_mixed.fabro", NeedsTheMachine),
    ("fixtures/full_stack.fabro", NeedsTheMachine),
    ("branch-loop/fixed-loop.fabro", NotInGlovebox),
    ("fabro/test/invalid.fabro", NotToRun),
    ("ralph-wiggum/pipeline.dot", NotInGlovebox),
    ("examples/exercise_all_nodes.dot", NeedsTheMachine),
    ("examples/contains-routing.dot", NotInGlovebox),
    ("examples/deltaplan-dev.dot", NotInGlovebox),
    ("examples/workspace-github-smoke.dot", FileIsMissing),
    ("02-validation/01-missing-start/pipeline.dot", NotToRun),
    ("02-validation/02-missing-exit/pipeline.dot", NotToRun),
    ("02-validation/03-orphan-node/pipeline.dot", NotToRun),
    ("02-validation/06-start-incoming/pipeline.dot", NotToRun),
    ("02-validation/07-exit-outgoing/pipeline.dot", NotToRun),
    ("factory/ux-redesign-self.dot", NotToRun),
];
/// As [`REFUSED`], for the same folder of several pipelines.
const REFUSED_FOLDERS: [(&str, Reason); 2] =
    [("03-execution/21-tool-hooks/", NotInGlovebox), ("03-execution/23-manager-loop/", NothingToDo)];

/// Returns the reason for which a pipeline is known to be refused.
fn reason(name: &str) -> Option<Reason> {
    let of_folder = || REFUSED_FOLDERS.iter().find(|(folder, _)| name.contains(folder));
    REFUSED.iter().find(|(end, _)| name.ends_with(end)).or_else(of_folder).map(|(_, reason)| *reason)
}

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

/// Copies the files of a folder and of the folders below it, up to a depth.
fn copy_below(from: &Path, to: &Path, depth: usize) {
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let target = to.join(entry.file_name().unwrap());
        if entry.is_dir() && depth > 0 {
            std::fs::create_dir_all(&target).unwrap();
            copy_below(&entry, &target, depth - 1);
        } else if entry.is_file() {
            std::fs::copy(&entry, target).unwrap();
        }
    }
}

#[test]
fn what_check_accepts_runs_and_what_it_refuses_has_a_name() {
    let Some(folder) = std::env::var_os("GLOVEBOX_CORPUS").map(PathBuf::from) else { return };
    let mut pipelines = Vec::new();
    files(&folder, &mut pipelines);
    let (mut run, mut refused, mut disagreements) = (0, BTreeMap::<String, usize>::new(), Vec::new());
    let mut reasons_known = BTreeMap::<Reason, usize>::new();
    for path in &pipelines {
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        let bench = Workbench::new();
        // Prompt files are in the folder of the pipeline, or below it.
        copy_below(path.parent().unwrap(), &bench.project(), 3);
        std::fs::copy(path, bench.project().join("pipeline.dot")).unwrap();
        let (code, rules) = reasons(&bench);
        let started =
            Answer::of(&mut bench.bare(&["run", "pipeline.dot", "--simulate", "--quiet", "--max-steps", "40"]));
        let has_begun = bench.has(".glovebox/runs/") && started.code != 3 && started.code != 7;
        if has_begun != rules.is_empty() || (code != 0 && code != started.code) {
            disagreements.push(format!("{name}: check {code} {rules:?}, run {}: {}", started.code, started.stderr));
        }
        run += usize::from(has_begun);
        match (has_begun, reason(&name)) {
            (true, None) => {}
            (false, Some(reason)) => *reasons_known.entry(reason).or_insert(0) += 1,
            (true, Some(_)) => disagreements.push(format!("{name}: it is accepted, but listed as refused")),
            (false, None) => disagreements.push(format!("{name}: refused without a reason in this file: {rules:?}")),
        }
        rules.into_iter().for_each(|rule| *refused.entry(rule).or_default() += 1);
    }
    println!(
        "{run} of {} public pipelines run unchanged; refused by rule: {refused:?}; {reasons_known:?}",
        pipelines.len()
    );
    assert!(disagreements.is_empty(), "{} disagree:\n{}", disagreements.len(), disagreements.join("\n"));
    assert!(run > 0, "none runs");
}
