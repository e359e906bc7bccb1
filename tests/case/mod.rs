//! Test cases as data: a pipeline, a command, and the expected result. The conformance suites are tables of such cases.

use crate::workbench::Workbench;
use serde_json::Value;

/// A pipeline, the command that runs it, and the expected result.
pub(crate) struct Case {
    /// Name of the case, which says what the case shows.
    pub(crate) name: &'static str,
    /// Body of the graph. A node `start` and a node `done` are added before it, unless it has a start and an exit of
    /// its own.
    pub(crate) graph: &'static str,
    /// Script of the model. Empty for simulated answers.
    pub(crate) script: &'static str,
    /// Additional arguments of the command.
    pub(crate) flags: &'static [&'static str],
    /// Expected exit code.
    pub(crate) exit: i32,
    /// `completed_nodes` without `start`, separated by spaces.
    pub(crate) visited: &'static str,
    /// Additional expectations.
    pub(crate) facts: &'static [Fact],
}

/// An expectation about a file of the run or about the output.
pub(crate) enum Fact {
    /// A text file of the run contains this text.
    Holds(&'static str, &'static str),
    /// A JSON file of the run has this text at this JSON pointer.
    Is(&'static str, &'static str, &'static str),
    /// Stdout or stderr contains this text.
    Says(&'static str),
}

/// The simplest case: an empty graph that succeeds.
pub(crate) const PLAIN: Case = Case { name: "", graph: "", script: "", flags: &[], exit: 0, visited: "", facts: &[] };

/// Runs a case and checks its expectations.
pub(crate) fn check(case: &Case) {
    let declared = if case.graph.contains("Mdiamond") { "" } else { "start [shape=Mdiamond]\n" };
    let ends = if case.graph.contains("Msquare") { "" } else { "done [shape=Msquare]\n" };
    let bench = Workbench::with_pipeline(&format!("digraph case {{\n{declared}{ends}{}\n}}\n", case.graph));
    let mut words = vec!["run", "pipeline.dot", "--run-id", "r"];
    if !case.script.is_empty() {
        bench.write("script.toml", case.script);
        words.extend(["--script", "script.toml"]);
    }
    words.extend(case.flags);
    let before = bench.snapshot();
    let answer = bench.glovebox(&words);
    println!("{}: exit {}\n{}{}", case.name, answer.code, answer.stdout, answer.stderr);
    answer.ends(case.exit);
    assert_eq!(bench.snapshot(), before, "{}: a run never writes the user's tree", case.name);
    if case.exit != 3 {
        let checkpoint = bench.run_json("r", "checkpoint.json");
        let completed: Vec<&str> =
            checkpoint["completed_nodes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(completed.join(" "), format!("start {}", case.visited).trim_end(), "{}", case.name);
        let status = if case.exit == 0 { "success" } else { "fail" };
        assert_eq!(bench.run_json("r", "final.json")["status"], status, "{}", case.name);
    }
    for fact in case.facts {
        match fact {
            Fact::Holds(file, text) => {
                let found = bench.run_text("r", file);
                assert!(found.contains(text), "{}: {file} has no {text:?}: {found}", case.name);
            }
            Fact::Is(file, pointer, text) => {
                let found = bench.run_json("r", file);
                let value =
                    found.pointer(pointer).unwrap_or_else(|| panic!("{}: {file} has no {pointer}: {found}", case.name));
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                assert_eq!(&value, text, "{}: {file} {pointer}", case.name);
            }
            Fact::Says(text) => drop(answer.says(text)),
        }
    }
}

/// Checks all cases in order.
pub(crate) fn check_all(cases: &[Case]) {
    cases.iter().for_each(check);
}
