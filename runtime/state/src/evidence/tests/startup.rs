//! Files of stages that a verifier's command loads automatically, and files that a stage could see while it had access
//! to hold-outs.

use super::*;
use glovebox_journal::event::Isolation;
use glovebox_record::{Hook, HookKind};

/// Returns the files that the command of the tool `t` loaded, after the stages that `words` describes.
fn loaded(text: &str, words: &[(&str, &str)], change: &dyn Fn(&mut StageFinished)) -> Vec<String> {
    let pipeline = graph(text);
    let run = Simulation::run(&pipeline, 30, &mut |open| {
        let words = words.iter().find(|(node, _)| open.task.node == **node).map_or("", |(_, words)| words);
        let mut ended = attempt(open, words);
        ended.commands.receipts.iter_mut().for_each(|receipt| receipt.argv = vec!["pytest".into()]);
        if open.task.node == "t" {
            change(&mut ended);
        }
        ended
    });
    let summary = summary(&run);
    let files =
        summary.proof.receipts.iter().filter(|evidence| evidence.node == "t").flat_map(|evidence| &evidence.startup);
    files.map(|file| format!("{} {}", file.path, file.by)).collect()
}

const LINE: &str = "a; b; t; start -> a -> b -> t -> exit";

#[test]
fn a_verifier_names_the_files_of_others_that_its_programs_load() {
    let check = |words: &[(&str, &str)], expected: &[&str]| {
        assert_eq!(loaded(LINE, words, &|_| ()), expected, "{words:?}");
    };
    check(&[("a", "+conftest.py +src.txt"), ("t", "passed")], &["conftest.py a"]);
    check(&[("a", "+conftest.py"), ("b", "+conftest.py"), ("t", "passed")], &["conftest.py b"]);
    check(&[("a", "+conftest.py"), ("b", "-conftest.py"), ("t", "passed")], &[]);
    check(&[("a", "+conftest.py"), ("b", "-other"), ("t", "passed")], &["conftest.py a"]);
    check(&[("t", "+conftest.py passed")], &[]);
}

#[test]
fn a_file_counts_only_for_a_command_of_the_stage_s_own_that_could_see_it() {
    let words = [("a", "+conftest.py +sub/conftest.py"), ("t", "passed")];
    let both = ["conftest.py a", "sub/conftest.py a"];
    let check = |change: &dyn Fn(&mut StageFinished), expected: &[&str]| {
        assert_eq!(loaded(LINE, &words, change), expected);
    };
    check(&|_| (), &both);
    check(&|ended| ended.commands.receipts[0].subject = true, &[]);
    let hook = || Some(Hook { kind: HookKind::Post, tool: "shell".to_owned(), call: "1".to_owned() });
    check(&|ended| ended.commands.receipts[0].hook = hook(), &[]);
    check(&|ended| ended.handler = "codergen".into(), &[]);
    check(&|ended| ended.commands.sees = Some(vec!["sub/".into()]), &["sub/conftest.py a"]);
    check(&|ended| ended.commands.sees = Some(vec!["other/".into()]), &[]);
}

#[test]
fn what_a_stage_wrote_as_its_work_counts_for_its_verification() {
    let graph = graph("t [verify_command=x]; start -> t -> exit");
    let run = Simulation::run(&graph, 30, &mut |open| {
        let is_verification = open.task.work == Work::Verify;
        let mut ended = attempt(open, if is_verification { "passed" } else { "+conftest.py" });
        ended.commands.receipts.iter_mut().for_each(|receipt| receipt.argv = vec!["pytest".into()]);
        ended
    });
    let summary = summary(&run);
    assert_eq!(summary.proof.receipts[0].startup.len(), 1);
}

#[test]
fn a_branch_has_the_files_from_before_the_fork_and_its_own_until_they_are_taken() {
    let fork = "f [shape=component]; j [shape=tripleoctagon, merge=best]; s; a; b; u; t; start -> s -> f; f -> a -> j; \
                f -> b -> u -> j; j -> t -> exit";
    let words = [("s", "+conftest.py"), ("a", "+a/conftest.py"), ("b", "+b/conftest.py"), ("t", "passed")];
    assert_eq!(loaded(fork, &words, &|_| ()), ["a/conftest.py a", "conftest.py s"]);
    let in_branch = fork.replace("-> b -> u ->", "-> b -> t ->").replace("j -> t -> exit", "j -> u -> exit");
    assert_eq!(loaded(&in_branch, &words, &|_| ()), ["b/conftest.py b", "conftest.py s"]);
}

#[test]
fn an_isolated_verdict_has_no_files_beside_its_holdouts() {
    let beside = |words: &[(&str, &str)], isolation: Option<Isolation>| {
        let pipeline = graph(LINE);
        let run = Simulation::run(&pipeline, 30, &mut |open| {
            let words = words.iter().find(|(node, _)| open.task.node == **node).map_or("", |(_, words)| words);
            let mut ended = attempt(open, words);
            ended.commands.isolation = isolation.filter(|_| open.task.node == "t");
            ended
        });
        let summary = summary(&run);
        let node = "t".into();
        let files = summary.proof.beside_holdouts.of(&node);
        files.map(|(path, by, reader)| format!("{path} {by} {reader}")).collect::<Vec<_>>()
    };
    let words = [("a", "+conftest.py +src.txt"), ("b", "+package.json"), ("t", "passed")];
    let all = ["conftest.py a pytest", "package.json b npm"];
    assert_eq!(beside(&words, Some(Isolation::NotIsolated)), all);
    assert_eq!(beside(&words, Some(Isolation::Isolated)), [""; 0]);
    assert_eq!(beside(&words, None), [""; 0]);
    let removed = [("a", "+conftest.py"), ("b", "-conftest.py")];
    assert_eq!(beside(&removed, Some(Isolation::NotIsolated)), [""; 0]);
}
