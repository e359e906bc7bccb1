//! Tests of paths from a builder to an exit on which nothing verifies the work.

use super::{run, with};
use glovebox_pipeline::Source;
use insta::assert_snapshot;

const RULE: &str = "verify_does_not_dominate_exit";

/// Returns the paths that the findings draw, with the labels on each path.
fn ways(body: &str) -> String {
    let source = with(&format!("b [prompt=b] t [type=tool, tool_command=t] g [shape=diamond] {body}"));
    let found = run(&source).diagnostics.into_iter().filter(|found| found.rule == RULE);
    let lines = found.map(|found| {
        let labels: Vec<String> = found
            .labels
            .iter()
            .map(|label| format!(" «{}» {}", Source::new(&source).at(label.span), label.text))
            .collect();
        format!("«{}» {}{}", Source::new(&source).at(found.span), found.note, labels.join(""))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Checks that a file with this body has no path without verification.
fn verified(body: &str) {
    assert_eq!(ways(body), "", "{body}");
}

#[test]
fn ways_past_verification_are_drawn() {
    assert_snapshot!(ways("start -> b -> exit"), @"«b -> exit» start -> b -> exit");
    assert_snapshot!(ways("start -> b -> t -> exit b -> exit"), @"«b -> exit» start -> b -> exit");
    assert_snapshot!(ways("start -> t -> b -> exit"), @"«b -> exit» start -> t -> b -> exit");
    assert_snapshot!(ways("start -> b -> t t -> exit [condition=\"outcome=success\"] t -> exit [condition=\"outcome=fail\"]"), @"«t -> exit» start -> b -> t -> exit");
    assert_snapshot!(ways("f [prompt=f] start -> b -> t t -> exit [condition=\"outcome=success\"] t -> f [condition=\"outcome=fail\"] f -> exit"), @"«f -> exit» start -> b -> t -> f -> exit «t -> f» taken after `t` has failed");
    assert_snapshot!(ways("f [prompt=f] start -> b -> t t -> exit [condition=\"outcome=success\"] t -> f [condition=\"outcome=retry\"] f -> exit"), @"«f -> exit» start -> b -> t -> f -> exit «t -> f» taken after `t` has failed");
    assert_snapshot!(ways("start -> b -> t -> g g -> exit [condition=\"outcome=success\"] g -> exit"), @"«g -> exit» start -> b -> t -> g -> exit «t -> g» taken after `t` has failed");
    assert_snapshot!(ways("start -> b -> t -> g g -> exit [condition=\"outcome=success\"] g -> exit [condition=\"context.x=1\"]"), @"«g -> exit» start -> b -> t -> g -> exit «t -> g» taken after `t` has failed");
    assert_snapshot!(ways("c [prompt=c] t [retry_target=c] start -> b -> t -> exit c -> exit"), @"«c -> exit» start -> b -> t -> c -> exit");
    assert_snapshot!(ways("done [shape=Msquare] start -> b -> done b -> t -> exit"), @"«b -> done» start -> b -> done");
}

#[test]
fn long_ways_are_cut_in_the_middle() {
    let chain: String = (0..100).map(|number| format!("n{number} [prompt=p] ")).collect();
    let edges: Vec<String> = (0..100).map(|number| format!("n{number}")).collect();
    let drawing = ways(&format!("{chain} start -> {} -> exit", edges.join(" -> ")));
    assert_snapshot!(drawing, @"«n99 -> exit» start -> n0 -> n1 -> n2 -> n3 -> n4 -> … -> n95 -> n96 -> n97 -> n98 -> n99 -> exit");
}

#[test]
fn a_file_without_verification_is_told_so_once() {
    let names = |body: &str| {
        let found = run(&with(body)).diagnostics.into_iter().map(|found| found.rule);
        found.filter(|rule| [RULE, "no_verification"].contains(&&**rule)).collect::<Vec<_>>()
    };
    assert_eq!(names("done [shape=Msquare] b [prompt=b] start -> b -> exit b -> done"), ["no_verification"]);
    assert_eq!(names("b [prompt=b] t [type=tool, tool_command=t] start -> b -> exit"), [RULE]);
    assert_eq!(names("b [prompt=b, allowed_write_paths=\"\"] start -> b -> exit"), [""; 0]);
    assert_eq!(names("b [prompt=b, goal_gate=true] start -> b -> exit"), [""; 0]);
    assert_eq!(names("t [type=tool, tool_command=t] start -> t -> exit"), [""; 0]);
}

#[test]
fn verified_ways_are_quiet() {
    verified("start -> b -> t -> exit");
    verified("start -> b -> t t -> exit [condition=\"outcome=success\"] t -> b [condition=\"outcome=fail\"]");
    verified("start -> b -> t -> g g -> exit [condition=\"outcome=success\"] g -> b [condition=\"outcome!=success\"]");
    verified("start -> b -> t -> exit t -> g [condition=\"context.x=1\"] g -> exit");
    verified("r [prompt=r] start -> b -> t -> r -> exit");
    verified("start -> t -> exit start -> g -> exit");
    verified("b [goal_gate=true, retry_target=b] start -> b -> exit");
    verified("b [allowed_write_paths=\"\"] start -> b -> exit");
    verified("b [verify_command=v] start -> b -> exit");
    verified("exit [verify_command=v] start -> b -> exit");
    verified("h [shape=hexagon] start -> b -> h h -> exit [label=Ship] h -> b [label=Fix]");
    verified("p [type=\"acme.review\"] start -> p -> exit");
}

#[test]
fn branches_are_verified_by_one_of_them() {
    let parallel = "p [shape=component] j [shape=tripleoctagon] start -> p -> b -> j";
    verified(&format!("{parallel} p -> t -> j -> exit"));
    assert_snapshot!(ways(&format!("{parallel} -> exit")), @"«j -> exit» start -> p -> b -> j -> exit");
}
