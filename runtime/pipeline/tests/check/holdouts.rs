//! Hold-outs in a file: the folders, the ways out, and what is said about each.

use super::{accept, errors, found, node, with};
use glovebox_pipeline::diagnostic::Severity;
use glovebox_pipeline::holdouts::{Feedback, NodeHoldouts, covers};
use insta::assert_snapshot;

/// A file with a builder, a tool and a plugin; the first two take attributes.
fn file(graph: &str, builder: &str, tool: &str) -> String {
    with(&format!(
        "graph [{graph}] b [prompt=\"p\", allowed_write_paths=\"src/\", {builder}] \
         t [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"src/\", {tool}] start -> b -> t -> exit"
    ))
}

#[test]
fn folders_are_relative_and_end_in_a_slash() {
    let folders = |graph: &str| accept(&file(graph, "", "")).scenarios.map(|paths| paths.0);
    assert_eq!(folders(""), None);
    assert_eq!(folders("scenarios=\"checks, a/b/\""), Some(vec!["checks/".to_owned(), "a/b/".to_owned()]));
    assert_eq!(accept(&file("", "", "")).scenario_folders(), ["scripts/scenarios/"]);
    assert_eq!(accept(&file("scenarios=checks", "", "")).scenario_folders(), ["checks/"]);
    let check = |value: &str| errors(&file(&format!("scenarios=\"{value}\""), "", ""));
    assert_snapshot!(check("/etc/"), @"path_list «/etc/» scenarios contains absolute path: /etc/");
    assert_snapshot!(check("a/,../b/"), @"path_list «../b/» scenarios contains parent segment: ../b/");
    assert_snapshot!(check("a/,,b/"), @"path_list «» scenarios contains empty entry");
    assert_snapshot!(check(" "), @r#"path_list «" "» scenarios contains empty entry"#);
    assert_snapshot!(check("./"), @"path_list «./» scenarios contains `.` segment: ./");
}

#[test]
fn a_node_says_its_ways_out_and_inherits_the_feedback() {
    let said = |graph: &str, builder: &str| node(&accept(&file(graph, builder, "")), "b").holdouts.clone();
    assert_eq!(said("", ""), NodeHoldouts::default());
    assert_eq!(said("scenario_feedback=full", "").feedback, Feedback::Full);
    assert_eq!(said("scenario_feedback=full", "scenario_feedback=summary").feedback, Feedback::Summary);
    assert!(said("", "codex.allow_read_scenarios=true").allow_read);
    assert_eq!(said("", "codex.block_read_paths=\"a/,b\"").block_read, Some(vec!["a/".to_owned(), "b".to_owned()]));
    let wrong = "scenario_feedback=all, codex.allow_read_scenarios=maybe, codex.block_read_paths=\"../a\"";
    assert_snapshot!(errors(&file("", wrong, "")), @r"
    attribute_value «all» `scenario_feedback` expects one of `summary`, `full`, found `all`
    attribute_value «maybe» `codex.allow_read_scenarios` expects `true` or `false`, found `maybe`
    path_list «../a» codex.block_read_paths contains parent segment: ../a
    ");
}

#[test]
fn a_path_covers_a_folder_by_whole_names() {
    let check = |path: &str, folder: &str| covers(&[path.to_owned()], folder);
    assert!(check("a/b/", "a/b/") && check("a", "a/b/") && check("a/b", "a/b"));
    assert!(!check("a/b/c/", "a/b/") && !check("a/bb", "a/b/") && !check("a/b", "a/bb/") && !covers(&[], "a/"));
}

#[test]
fn every_way_out_is_said_once() {
    let opted = |source: &str| {
        let lines = found(source, Severity::Warning);
        lines.lines().filter(|line| line.starts_with("scenario_opt_out")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(opted(&file("", "codex.block_read_paths=\"scripts/,docs/\"", "scenario_feedback=summary")), "");
    assert_eq!(opted(&file("", "codex.allow_read_scenarios=false", "codex.block_read_paths=docs")), "");
    assert_snapshot!(opted(&file("scenario_feedback=full", "codex.allow_read_scenarios=true", "")), @r"
    scenario_opt_out «full» builders are told everything that stages with hold-outs print
    scenario_opt_out «true» `b` may read the hold-outs it is judged by
    ");
    assert_snapshot!(opted(&file("scenarios=\"a,b\"", "codex.block_read_paths=\"a/\"", "scenario_feedback=full")), @r#"
    scenario_opt_out «"a/"» `b` may read the hold-outs in `b/`: its own `codex.block_read_paths` does not name them
    scenario_opt_out «full» builders are told everything that `t` prints
    "#);
}

#[test]
fn a_prompt_of_a_builder_names_no_hold_outs() {
    let prompted = |graph: &str, prompt: &str, shape: &str| {
        let node = format!("n [{shape}, prompt=\"{prompt}\", allowed_write_paths=\"src/\"]");
        let lines = found(&with(&format!("graph [{graph}] {node} start -> n -> exit")), Severity::Warning);
        lines.lines().filter(|line| line.starts_with("prompt_mentions")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(prompted("", "Do not read scenario scripts.", "shape=box"), "");
    assert_eq!(prompted("", "see scripts/scenarios", "shape=parallelogram, tool_command=x"), "");
    assert_eq!(prompted("scenarios=checks", "see scripts/scenarios", "shape=box"), "");
    assert_snapshot!(prompted("", "never read scripts/scenarios/!", "type=\"acme.code\""), @r#"prompt_mentions_scenarios «"never read scripts/scenarios/!"» the prompt of `n` names the hold-outs in `scripts/scenarios`"#);
}
