//! A pipeline, a command and what must be true afterwards, as data: what the conformance suites are tables of.

#![allow(dead_code, unreachable_pub, reason = "each suite includes this file and uses its part of it")]

use crate::workbench::Workbench;
use serde_json::Value;

/// A pipeline, how it is run, and what must be true afterwards.
pub struct Case {
    /// What it shows.
    pub name: &'static str,
    /// What stands between the braces, after a start `start` and before an exit `done`.
    pub graph: &'static str,
    /// The model script; empty for the simulated model.
    pub script: &'static str,
    /// More words of the command.
    pub flags: &'static [&'static str],
    /// How the command ends.
    pub exit: i32,
    /// `completed_nodes` without `start`, separated by spaces.
    pub visited: &'static str,
    /// What else is true.
    pub facts: &'static [Fact],
}

/// Something in a file of the run, or in what was printed.
pub enum Fact {
    /// A text file of the run holds these words.
    Holds(&'static str, &'static str),
    /// A JSON file of the run has this text at this pointer.
    Is(&'static str, &'static str, &'static str),
    /// Stdout or stderr has these words.
    Says(&'static str),
}

/// The simplest case: an empty graph that ends well.
pub const PLAIN: Case = Case { name: "", graph: "", script: "", flags: &[], exit: 0, visited: "", facts: &[] };

/// Runs a case and holds it to its word.
pub fn check(case: &Case) {
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

/// Checks one case after the other.
pub fn check_all(cases: &[Case]) {
    cases.iter().for_each(check);
}
