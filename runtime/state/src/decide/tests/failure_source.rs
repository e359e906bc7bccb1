//! A run ends before a builder that cannot fix the failure, and in no other case.

use super::{answers, check};
use crate::simulation::{Simulation, pipeline, started};
use glovebox_journal::event::Event;
use glovebox_record::scope::Entry;

const T: &str = "t [shape=parallelogram, tool_command=\"bash tests/run.sh && sh lint.sh\"];";
const FIX: &str = "f [allowed_write_paths=\"src/\"];";
const LOOP: &str = "start -> t; t -> f [condition=\"outcome=fail\"]; f -> t; t -> exit [condition=\"outcome=success\"]";

/// Returns the verdict of a run that the rule ended before `next`.
fn unfixable(scripts: &str, next: &str) -> String {
    format!(
        "fail unfixable_failure_source: unfixable_failure_source: failed node t references {scripts} outside \
         allowed_write_paths for {next}"
    )
}

#[test]
fn a_fix_loop_that_cannot_end_well_ends_at_once() {
    check(&format!("{T} {FIX} {LOOP}"), "fail", "t", &unfixable("tests/run.sh,lint.sh", "f"));
    check(
        &format!("{T} f [allowed_write_paths=\"src/,lint.sh\"]; {LOOP}"),
        "fail",
        "t",
        &unfixable("tests/run.sh", "f"),
    );
    let fixed = "fail success success";
    check(&format!("{T} f [allowed_write_paths=\"tests/,lint.sh\"]; {LOOP}"), fixed, "t f t", "success exit");
    check(&format!("{T} f; {LOOP}"), fixed, "t f t", "success exit");
    check(&format!("{T} {FIX} {LOOP} t [shape=box]"), fixed, "t f t", "success exit");
    let jump = "start -> t -> exit; t [retry_target=f]; f -> t";
    check(&format!("{T} {FIX} {jump}"), "fail", "t", &unfixable("tests/run.sh,lint.sh", "f"));
    let diamond = "start -> t -> d; d [shape=diamond]; d -> f [condition=\"outcome=fail\"]; d -> exit; f -> t";
    check(&format!("{T} {FIX} {diamond}"), "fail", "t", &unfixable("tests/run.sh,lint.sh", "f"));
}

#[test]
fn right_after_the_failure_every_builder_is_concerned_also_one_that_leads_nowhere_back() {
    let once = "start -> t; t -> f [condition=\"outcome=fail\"]; f -> exit; t -> exit [condition=\"outcome=success\"]";
    check(&format!("{T} {FIX} {once}"), "fail", "t", &unfixable("tests/run.sh,lint.sh", "f"));
}

#[test]
fn a_scope_that_the_grants_narrowed_decides() {
    let graph = format!("start [shape=Mdiamond]; exit [shape=Msquare]; {T} f [allowed_write_paths=\"./\"]; {LOOP}");
    let pipeline = pipeline(&format!("digraph g {{ {graph} }}"));
    let end = |narrowed: &[(&str, &str)]| {
        let scope = |path: &str| vec![Entry::parse(path).unwrap()];
        let narrowed_scopes = narrowed.iter().map(|(node, path)| ((*node).into(), scope(path))).collect();
        let mut begun = started(&pipeline, 20, None);
        begun.plan.narrowed_scopes = narrowed_scopes;
        let mut run = Simulation::new(&pipeline);
        run.append(vec![Event::RunStarted(Box::new(begun))]);
        run.go_on(&mut answers("fail success success"));
        run.verdict()
    };
    assert_eq!(end(&[]), "success exit");
    assert_eq!(end(&[("t", "src/")]), "success exit");
    assert_eq!(end(&[("f", "tests/")]), unfixable("lint.sh", "f"));
}

#[test]
fn a_tool_counts_by_its_handler_whatever_named_it() {
    let typed = "t [type=tool, tool_command=\"sh a.sh\"];";
    check(&format!("{typed} {FIX} {LOOP}"), "fail", "t", &unfixable("a.sh", "f"));
    let other = "t [shape=parallelogram, type=\"acme.x\", tool_command=\"sh a.sh\"];";
    check(&format!("{other} {FIX} {LOOP}"), "fail success success", "t f t", "success exit");
}

#[test]
fn hold_outs_are_nobody_s_to_mend() {
    let sealed = "t [shape=parallelogram, tool_command=\"bash scripts/scenarios/one.sh\"];";
    check(&format!("{sealed} {FIX} {LOOP}"), "fail success success", "t f t", "success exit");
    let elsewhere = "graph [scenarios=\"judge\"]; t [shape=parallelogram, tool_command=\"bash judge/one.sh\"];";
    check(&format!("{elsewhere} {FIX} {LOOP}"), "fail success success", "t f t", "success exit");
    let open = format!("graph [scenarios=\"judge\"]; {sealed} {FIX} {LOOP}");
    check(&open, "fail", "t", &unfixable("scripts/scenarios/one.sh", "f"));
}

#[test]
fn a_tool_that_has_passed_since_stops_nobody() {
    let later = "a [allowed_write_paths=\"doc/\"]; start -> t; t -> w [condition=\"outcome=fail\"]; w [prompt=x]; w -> t; \
                 t -> a [condition=\"outcome=success\"]; a -> exit";
    check(&format!("{T} w; {later}"), "fail success success success", "t w t a", "success exit");
}

#[test]
fn a_stage_in_between_ends_neither_the_loop_nor_what_is_no_loop() {
    let triage = "a [prompt=x]; start -> t; t -> a [condition=\"outcome=fail\"]; a -> f; f -> t; \
                  t -> exit [condition=\"outcome=success\"]";
    check(&format!("{T} {FIX} {triage}"), "fail success", "t a", &unfixable("tests/run.sh,lint.sh", "f"));
    let onward = "a [prompt=x]; start -> t; t -> a [condition=\"outcome=fail\"]; a -> f; f -> exit; \
                  t -> exit [condition=\"outcome=success\"]";
    check(&format!("{T} {FIX} {onward}"), "fail success", "t a f", "success exit");
    let tool = "f [shape=parallelogram, tool_command=x, allowed_write_paths=\"log/\"];";
    check(&format!("{T} {tool} {LOOP}"), "fail success success", "t f t", "success exit");
}
