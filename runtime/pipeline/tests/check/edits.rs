//! Tests of the fixes that `check --fix` applies without asking: each is certain, and none changes the pipeline of a valid file.

use super::{errors, found, run, with, with_graph};
use glovebox_pipeline::Inputs;
use glovebox_pipeline::Source;
use glovebox_pipeline::check;
use glovebox_pipeline::diagnostic::{DIAGNOSTICS_MAX, Severity, fixed};

/// Applies all fixes, repeatedly, until there are none left.
pub(super) fn apply_fixes(source: &str) -> String {
    let mut text = source.to_owned();
    for _ in 0..20 {
        match fixed(Source::new(&text), &run(&text).diagnostics) {
            Some(next) => text = next,
            None => return text,
        }
    }
    panic!("never quiet: {text}")
}

#[test]
fn two_names_never_become_one_node() {
    for kept in [
        with("a_b [prompt=p] a-b [prompt=q] start -> a-b -> a_b -> exit"),
        with("\"日本\" [prompt=p] \"東京\" [prompt=q] start -> \"日本\" -> \"東京\" -> exit"),
        with("\"a b\" [prompt=p] a-b [prompt=q] start -> \"a b\" -> a-b -> exit"),
        with("subgraph s { a_b [prompt=p] } start -> a_b -> a.b -> exit"),
    ] {
        assert_eq!(apply_fixes(&kept), kept);
        assert!(errors(&kept).contains("invalid node id"), "{kept}");
    }
    let renamed = apply_fixes(&with("a-b [prompt=p] \"日本\" [prompt=q] start -> a-b -> \"日本\" -> exit"));
    assert_eq!(renamed, with("a_b [prompt=p] __ [prompt=q] start -> a_b -> __ -> exit"));
}

#[test]
fn a_name_is_renamed_everywhere_or_nowhere() {
    let chain = |count: usize| {
        let nodes: String =
            (0..count).map(|number| format!("n-{number} [prompt=p] start -> n-{number} -> exit\n")).collect();
        with(&nodes)
    };
    assert_eq!(errors(&apply_fixes(&chain(DIAGNOSTICS_MAX / 2))), "");
    let long = chain(DIAGNOSTICS_MAX / 2 + 1);
    assert!(run(&long).is_cut);
    assert_eq!(apply_fixes(&long), long);
}

#[test]
fn a_way_is_changed_for_a_slip_and_not_for_a_guess() {
    let chain = |to: &str| with(&format!("test1 [prompt=p] implement [prompt=p] start -> test1 -> {to} -> exit"));
    assert_eq!(apply_fixes(&chain("implment")), chain("implement"));
    for guess in ["test2", "tst", "implmnt"] {
        assert_eq!(apply_fixes(&chain(guess)), chain(guess));
        assert!(errors(&chain(guess)).contains("edge_target_exists"));
    }
    let jump =
        |to: &str| with(&format!("step_a [prompt=p] n [prompt=q, retry_target={to}] start -> step_a -> n -> exit"));
    assert_eq!(apply_fixes(&jump("setp_a")), jump("step_a"));
    assert_eq!(apply_fixes(&jump("step_b")), jump("step_b"));
}

#[test]
fn a_word_is_mended_as_it_is_written() {
    let sheet = |provider: &str| {
        with(&format!("graph [model_stylesheet=\"* {{ llm_provider: {provider}; }}\"] n [prompt=p] start -> n -> exit"))
    };
    assert_eq!(apply_fixes(&sheet("antropic")), sheet("anthropic"));
    let escaped = sheet("\\\"antropic\\\"");
    assert_eq!(apply_fixes(&escaped), escaped);
    let node = |attribute: &str| with(&format!("n [prompt=p, {attribute}] start -> n -> exit"));
    assert_eq!(apply_fixes(&node("shape=bxo")), node("shape=box"));
    assert_eq!(apply_fixes(&node("shape=\"bxo\"")), node("shape=\"box\""));
    assert_eq!(apply_fixes(&node("fidelity=sumary:low")), node("fidelity=\"summary:low\""));
    assert_eq!(apply_fixes(&node("max_retries=2.0")), node("max_retries=2"));
    assert_eq!(apply_fixes(&node("max_retries=2.5")), node("max_retries=2.5"));
}

#[test]
fn a_name_that_is_taken_is_not_given_again() {
    let both = with("n [prompt=p, promt=q] start -> n -> exit");
    assert_eq!(apply_fixes(&both), both);
    assert!(found(&both, Severity::Warning).contains("unknown attribute `promt`"));
}

#[test]
fn what_an_input_stands_in_for_is_left_alone() {
    let source = with_graph("llm_provider=openai") + " ";
    let source = source.replace("start -> exit", "n [prompt=p] start -> n -> exit");
    let inputs = Inputs { set: [("llm_provider".to_owned(), "antropic".to_owned())].into(), ..Inputs::default() };
    let checked = check(Source::new(&source), &inputs);
    assert!(checked.diagnostics.iter().any(|found| found.rule == "provider_valid"), "{:?}", checked.diagnostics);
    assert_eq!(fixed(Source::new(&source), &checked.diagnostics), None);
}

#[test]
fn words_of_others_become_ours() {
    let routes = |success: &str, fail: &str| {
        with(&format!(
            "n [prompt=p] m [prompt=q] start -> n n -> exit [condition=\"outcome={success}\"] n -> m [condition=\"outcome = {fail}\"] m -> n"
        ))
    };
    assert_eq!(apply_fixes(&routes("succeeded", "failed")), routes("success", "fail"));
    let own = routes("approved", "fail");
    assert_eq!(apply_fixes(&own), own);
    let warnings = found(&own, Severity::Warning);
    assert!(warnings.contains("condition_outcome") && !warnings.contains("all_conditional_edges"), "{warnings}");

    let stage = |shape: &str, key: &str| with(&format!("n [shape={shape}, {key}=\"make test\"] start -> n -> exit"));
    for (shape, theirs, ours) in [
        ("parallelogram", "script", "tool_command"),
        ("parallelogram", "command", "tool_command"),
        ("octagon", "tool_command", "command"),
    ] {
        assert_eq!(apply_fixes(&stage(shape, theirs)), stage(shape, ours));
    }
}

#[test]
fn a_cut_list_says_so() {
    let loose = |count: usize| {
        with(&(0..count).map(|number| format!("start -> exit n{number} [prompt=p] ")).collect::<String>())
    };
    let cut = run(&loose(DIAGNOSTICS_MAX + 1));
    assert!(cut.is_cut && cut.diagnostics.len() == DIAGNOSTICS_MAX);
    let few = run(&loose(2));
    assert!(!few.is_cut && few.diagnostics.len() < DIAGNOSTICS_MAX);
    let unread = run(&format!("digraph g {{ {} }}", "? \n x [a=] \n".repeat(DIAGNOSTICS_MAX)));
    assert!(unread.is_cut && unread.diagnostics.iter().all(|found| found.rule == "dot_syntax"));
}
