//! Tests of hold-outs in a file: the folders, the opt-outs, and the findings about them.

use super::{accept, errors, found, node, with};
use glovebox_pipeline::Source;
use glovebox_pipeline::diagnostic::Severity;
use glovebox_pipeline::ir::Subject;
use glovebox_pipeline::ir::holdouts::{Feedback, NodeHoldouts, Writes, covers};
use glovebox_pipeline::{Inputs, check};
use insta::assert_snapshot;

/// Returns a file with a builder and a tool stage that have these attributes.
fn file(graph: &str, builder: &str, tool: &str) -> String {
    with(&format!(
        "graph [{graph}] b [prompt=\"p\", allowed_write_paths=\"src/\", {builder}] \
         t [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"src/\", {tool}] start -> b -> t -> exit"
    ))
}

fn entry(text: &str) -> glovebox_record::scope::Entry {
    glovebox_record::scope::Entry::parse(text).expect("an entry of a scope")
}

#[test]
fn folders_are_relative_and_end_in_a_slash() {
    let folders = |graph: &str| {
        accept(&file(graph, "", "")).scenarios.map(|paths| paths.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
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
    let said = |graph: &str, builder: &str| node(&accept(&file(graph, builder, "")), "b").access.holdouts.clone();
    assert_eq!(said("", ""), NodeHoldouts::default());
    assert_eq!(said("scenario_feedback=full", "").feedback, Feedback::Full);
    assert_eq!(said("scenario_feedback=full", "scenario_feedback=summary").feedback, Feedback::Summary);
    assert!(said("", "codex.allow_read_scenarios=true").allow_read);
    assert_eq!(said("", "codex.block_read_paths=\"a/,b\"").block_read, Some(vec![entry("a/"), entry("b")]));
    let wrong = "scenario_feedback=all, codex.allow_read_scenarios=maybe, codex.block_read_paths=\"../a\"";
    assert_snapshot!(errors(&file("", wrong, "")), @r"
    attribute_value «all» `scenario_feedback` expects one of `summary`, `full`, found `all`
    attribute_value «maybe» `codex.allow_read_scenarios` expects `true` or `false`, found `maybe`
    path_list «../a» codex.block_read_paths contains parent segment: ../a
    ");
}

#[test]
fn a_verifier_names_its_program_under_test_and_what_becomes_of_its_files() {
    let of = |tool: &str| node(&accept(&file("", "", tool)), "t").clone();
    assert_eq!((of("").access.subject, of("").access.holdouts.writes), (Subject::default(), Writes::Scratch));
    let whole =
        of("verify_subject=\"python3 -m app\", verify_subject_port=8080, scenario_writes=commit, holdouts=true");
    let subject = Subject { command: Some("python3 -m app".into()), port: Some(8080) };
    assert_eq!((whole.access.subject, whole.access.holdouts.writes), (subject, Writes::Commit));
    assert_eq!(of("verify_subject=\" \"").access.subject, Subject::default());
    let check = |tool: &str| errors(&file("", "", tool));
    assert_snapshot!(check("verify_subject=s, verify_subject_port=0, scenario_writes=keep, holdouts=true"), @"
    attribute_value «0» `verify_subject_port` expects a whole number, 1 to 65535, found `0`
    attribute_value «keep» `scenario_writes` expects one of `scratch`, `commit`, found `keep`
    ");
    assert_snapshot!(check("verify_subject=s, verify_subject_port=65536"), @"attribute_value «65536» `verify_subject_port` expects a whole number, 1 to 65535, found `65536`");
    assert_snapshot!(check("verify_subject=s, verify_subject_port=3128"), @"subject_port «verify_subject_port=3128» `verify_subject_port` of `t` is 3128, the port of the proxy");
    assert_snapshot!(check("verify_subject_port=8080"), @"subject_port «verify_subject_port=8080» `t` has `verify_subject_port`, but no `verify_subject`");
    assert_snapshot!(check("cache_from=base"), @"cache_from «cache_from=base» `t` has `cache_from`, but no `cache`");
    assert_snapshot!(check("cache=\"target/\", cache_from=seal"), @"attribute_value «seal» `cache_from` expects one of `base`, found `seal`");
    assert_eq!(check("cache=\"target/\", cache_from=base, verify_subject=s, verify_subject_port=1"), "");
}

#[test]
fn what_a_verifier_says_has_no_effect_elsewhere_and_is_refused_there() {
    let check = |builder: &str| errors(&file("", builder, ""));
    assert_snapshot!(check("verify_subject=s, verify_subject_port=8080, scenario_writes=commit"), @"
    verifier_attribute «verify_subject=s» `verify_subject` is set on `b`, which is not a verifying stage
    verifier_attribute «verify_subject_port=8080» `verify_subject_port` is set on `b`, which is not a verifying stage
    verifier_attribute «scenario_writes=commit» `scenario_writes` is set on `b`, which has no hold-outs in reach
    ");
    assert_snapshot!(check("type=\"acme.x\", verify_subject=s"), @"verifier_attribute «verify_subject=s» `verify_subject` is set on `b`, which is not a verifying stage");
    assert_eq!(check("codex.allow_read_scenarios=true, scenario_writes=commit"), "", "it has hold-outs in reach");
    let blocked = "codex.block_read_paths=\"scripts/\", scenario_writes=commit";
    assert_snapshot!(errors(&file("", "", blocked)), @"verifier_attribute «scenario_writes=commit» `scenario_writes` is set on `t`, which has no hold-outs in reach");
    let by_default = with("node [verify_subject=s] a [prompt=p] b [prompt=p] start -> a -> b -> exit");
    assert_snapshot!(errors(&by_default), @"verifier_attribute «verify_subject=s» `verify_subject` is set on `a`, which is not a verifying stage");
}

#[test]
fn a_verifier_beside_hold_outs_needs_no_write_scope() {
    let missing = |graph: &str, tool: &str, scenarios_found: bool| {
        let source =
            with(&format!("graph [{graph}] t [shape=parallelogram, tool_command=make, {tool}] start -> t -> exit"));
        let checked = check(Source::new(&source), &Inputs { scenarios_found, ..Inputs::default() });
        checked.diagnostics.iter().any(|found| found.rule == "write_scope_missing")
    };
    assert!(missing("", "", false) && missing("", "", true) && missing("scenarios=\"checks/\"", "", false));
    assert!(!missing("", "holdouts=true", true) && missing("", "holdouts=false", true));
    assert!(!missing("", "tool_command=\"sh scripts/scenarios/a.sh\"", false), "a command names them");
    assert!(missing("", "codex.block_read_paths=\"scripts/\"", true), "it has none in reach");
    assert!(missing("", "type=codergen, prompt=p", true), "a builder");
}

/// Returns the findings of four rules about hold-outs, for a loop of a builder, a test stage and a judge in a project
/// that has hold-outs.
fn named(test: &str, judge: &str) -> String {
    let source = with(&format!(
        "b [prompt=\"p\", allowed_write_paths=\"src/\"] t [shape=parallelogram, {test}] j [shape=octagon, {judge}] \
         start -> b -> t -> j; t -> b [condition=\"outcome=fail\"]; j -> exit"
    ));
    let checked = check(Source::new(&source), &Inputs { scenarios_found: true, ..Inputs::default() });
    let rules = ["holdout_folder", "holdout_writes_dropped", "holdouts_unread", "verifier_attribute"];
    let found = checked.diagnostics.iter().filter(|found| rules.contains(&found.rule.as_ref()));
    found.map(|found| format!("{} {}: {}\n", found.severity.as_str(), found.rule, found.message)).collect()
}

#[test]
fn a_write_scope_beside_hold_outs_is_named_with_what_gives_them() {
    let test = "tool_command=\"pytest tests/\", allowed_write_paths=\"src/\"";
    let judge = "allowed_write_paths=\"out/,log\"";
    let check = |said: &str| named(test, &format!("{judge}, {said}"));
    assert_snapshot!(check("command=\"sh scripts/scenarios/all.sh\""), @"warning holdout_writes_dropped: the writes of `j` in `out/`, `log` are discarded, because `command` lets it read the hold-outs in `scripts/scenarios/`");
    assert_snapshot!(check("command=make, holdouts=true"), @"warning holdout_writes_dropped: the writes of `j` in `out/`, `log` are discarded, because `holdouts` lets it read the hold-outs in `scripts/scenarios/`");
    assert_snapshot!(check("command=make, read_paths=\"scripts/scenarios/\""), @"warning holdout_writes_dropped: the writes of `j` in `out/`, `log` are discarded, because `read_paths` lets it read the hold-outs in `scripts/scenarios/`");
    for said in ["scenario_writes=commit", "allowed_write_paths=\"\"", "holdouts=false"] {
        let judge = format!("command=\"sh scripts/scenarios/all.sh\", {judge}, {said}");
        assert!(!named(test, &judge).contains("holdout_writes_dropped"), "{said}");
    }
    let plan = "type=verification, verification.allowed_commands=\"sh scripts/scenarios/all.sh,test -f\"";
    assert_snapshot!(named(test, &format!("shape=parallelogram, {plan}, {judge}")), @"warning holdout_writes_dropped: the writes of `j` in `out/`, `log` are discarded, because `verification.allowed_commands` lets it read the hold-outs in `scripts/scenarios/`");
}

#[test]
fn what_a_stage_names_must_be_there_for_it() {
    let judge = "command=\"sh scripts/scenarios/all.sh\"";
    let check = |test: &str, judge: &str| named(&format!("tool_command=make, {test}"), judge);
    assert_snapshot!(check("holdouts=\"tests/\"", judge), @"error holdout_folder: `holdouts` of `t` lists `tests/`, but the hold-outs are in `scripts/scenarios/`");
    assert_snapshot!(check("holdouts=\"scripts/scenarios/a/\"", judge), @"error holdout_folder: `holdouts` of `t` lists `scripts/scenarios/a/`, but the hold-outs are in `scripts/scenarios/`");
    assert_eq!(check("holdouts=\"scripts/\"", judge), "", "a folder over them");
    assert_snapshot!(check("label=t", &format!("{judge}, read_paths=\"src/\"")), @"
    warning holdouts_unread: `command` of `j` names the hold-outs in `scripts/scenarios/`, but its read scope hides them
    ");
    assert_snapshot!(check("holdouts=\"\"", "command=make, holdouts=\"\""), @"warning holdouts_unread: no stage can read the hold-outs in `scripts/scenarios/`, so they test nothing");
    assert_snapshot!(check("label=t", "command=make"), @"warning holdouts_unread: no stage can read the hold-outs in `scripts/scenarios/`, so they test nothing");
    for said in ["holdouts=true", "read_paths=\"scripts/scenarios/\"", "env_DIR=\"scripts/scenarios\""] {
        assert_eq!(check("label=t", &format!("command=make, {said}")), "", "{said}");
    }
    let plan = "type=verification, verification.allowed_commands=\"test -f\"";
    assert_eq!(check("label=t", plan), "", "its contract may name them");
    let builder = with("b [prompt=\"p\", holdouts=\"scripts/scenarios/\"] start -> b -> exit");
    assert_snapshot!(errors(&builder), @r#"verifier_attribute «holdouts="scripts/scenarios/"» `holdouts` is set on `b`, which is not a verifying stage"#);
}

#[test]
fn a_path_covers_a_folder_by_whole_names() {
    let check = |path: &str, folder: &str| covers(&[entry(path)], &entry(folder));
    assert!(check("a/b/", "a/b/") && check("a", "a/b/") && check("a/b", "a/b"));
    assert!(!check("a/b/c/", "a/b/") && !check("a/bb", "a/b/") && !check("a/b", "a/bb/") && !covers(&[], &entry("a/")));
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
    scenario_opt_out «full» builders get all output of stages with hold-outs
    scenario_opt_out «true» `b` may read the hold-outs that test it
    ");
    assert_eq!(opted(&file("", "", "scenario_writes=scratch")), "");
    assert_snapshot!(opted(&file("", "codex.allow_read_scenarios=true, scenario_writes=commit", "scenario_writes=commit, holdouts=true")), @"
    scenario_opt_out «true» `b` may read the hold-outs that test it
    scenario_opt_out «commit» `b` commits what it writes with hold-outs in reach
    scenario_opt_out «commit» `t` commits what it writes with hold-outs in reach
    ");
    assert_snapshot!(opted(&file("scenarios=\"a,b\"", "codex.block_read_paths=\"a/\"", "scenario_feedback=full, holdouts=true")), @r#"
    scenario_opt_out «"a/"» `b` may read the hold-outs in `b/`: its `codex.block_read_paths` does not contain them
    scenario_opt_out «full» builders get all output of `t`
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
    assert_snapshot!(prompted("", "never read scripts/scenarios/!", "type=\"acme.code\""), @r#"prompt_mentions_scenarios «"never read scripts/scenarios/!"» the prompt of `n` mentions the hold-outs in `scripts/scenarios`"#);
}

/// Returns the findings of a rule about a tool stage with this command and these attributes, which can see hold-outs.
fn beside(rule: &str, command: &str, attributes: &str) -> String {
    let command = command.replace('"', "\\\"");
    let tool = format!("shape=parallelogram, tool_command=\"{command}\", env_DIR=\"scripts/scenarios\"");
    let source = with(&format!("t [{tool}, {attributes}] start -> t -> exit"));
    let checked = check(Source::new(&source), &Inputs { scenarios_found: true, ..Inputs::default() });
    let found = checked.diagnostics.iter().filter(|found| found.rule == rule);
    found.map(|found| format!("{} | {}", found.message, found.help.as_deref().unwrap_or_default())).collect()
}

#[test]
fn project_code_beside_hold_outs_is_a_warning() {
    let check = |command: &str, attributes: &str| beside("subject_not_isolated", command, attributes);
    assert_snapshot!(check("cargo test --offline", ""), @r#"`t` runs `cargo test` with the hold-outs in view: it can read them and forge the verdict | start it in its own sandbox: `tool_command="subject cargo test --offline"`"#);
    assert_snapshot!(check("x=\"$(sh src/prog.sh)\"; make", "allowed_write_paths=\"Cargo.lock\""), @r#"`t` runs `sh src/prog.sh` with the hold-outs in view: it can read them and forge the verdict | start it in its own sandbox: `tool_command="x=\"$(subject sh src/prog.sh)\"; make"`"#);
    assert_snapshot!(check("pytest scripts/scenarios", ""), @r#"`t` runs `pytest` on the hold-outs with the project in view: files of the project can make it run code | show the stage's own commands only the hold-outs: `read_paths="scripts/scenarios/"`"#);
    assert_snapshot!(check("sh check.sh", "working_dir=src"), @r#"`t` runs `sh check.sh` with the hold-outs in view: it can read them and forge the verdict | start it in its own sandbox: `tool_command="subject sh check.sh"`"#);
    assert_eq!(check("subject cargo test && sh scripts/scenarios/check.sh", ""), "");
    assert_eq!(check("sh check.sh", "working_dir=\"scripts/scenarios\""), "", "sealed");
    assert_eq!(check("cargo test", "codex.block_read_paths=\"scripts/\""), "", "no hold-outs in reach");
    for alone in [
        "read_paths=\"scripts/scenarios/\"",
        "read_paths=\"scripts/scenarios/a/\", allowed_write_paths=\"\"",
        "read_paths=\"\"",
    ] {
        assert_eq!(check("cargo test", alone), "", "{alone}: its commands see hold-outs alone");
    }
    assert_eq!(check("cargo test", "read_paths=\"src/\""), "", "its read scope leaves them out");
    for open in [
        "read_paths=\"scripts/\"",
        "read_paths=\"scripts/scenarios/,src/\"",
        "read_paths=\"src/\", holdouts=\"scripts/scenarios/\"",
        "read_paths=\"\", holdouts=\"scripts/scenarios/\", allowed_write_paths=\"out/\"",
    ] {
        assert_ne!(check("cargo test", open), "", "{open}");
    }
    let strict = "codex.strict_read_scope=true, codex.workdir=";
    assert_eq!(check("cargo test", &format!("{strict}\"scripts/scenarios\"")), "");
    assert_ne!(check("cargo test", &format!("{strict}\"src\", holdouts=\"scripts/scenarios/\"")), "");
    let source = with("t [shape=octagon, command=\"cargo test\"] start -> t -> exit");
    assert_eq!(super::lint::rule("subject_not_isolated", &source), "", "there are none as far as the file says");
}

#[test]
fn a_verifier_that_sees_the_project_is_not_isolated() {
    let check = |command: &str, attributes: &str| beside("project_beside_holdouts", command, attributes);
    assert_snapshot!(check("subject sh src/prog.sh", ""), @r#"`t` sees files of the project in addition to the hold-outs | show the stage's own commands only the hold-outs: `read_paths="scripts/scenarios/"`"#);
    assert_snapshot!(check("true", "verify_subject=\"sh src/prog.sh\", holdouts=\"scripts/scenarios/\""), @r#"`t` sees files of the project in addition to the hold-outs | show the stage's own commands only the hold-outs: `read_paths="scripts/scenarios/"`"#);
    assert_ne!(check("subject x", "read_paths=\"scripts/scenarios/\", allowed_write_paths=\"out/\""), "");
    assert_eq!(check("subject x", "read_paths=\"scripts/scenarios/\""), "");
    assert_eq!(check("sh scripts/scenarios/a.sh", ""), "", "it may not use it");
}
