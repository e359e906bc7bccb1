//! Rules of the house from outside: what they say is merged and escaped, what they do is bounded, what they import is refused.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

mod guests;
mod workbench;

use workbench::Workbench;

const PIPELINE: &str = "digraph g {
  graph [goal=\"x\"]
  start [shape=Mdiamond]
  build [prompt=\"x\", allowed_write_paths=\"src/\"]
  done [shape=Msquare]
  start -> build -> done
}
";

/// A component that finds this of `build` in every graph it was given as JSON, and wants nothing changed.
fn finds(severity: &str, message: &str) -> String {
    let quoted: String = message.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    format!(
        "(data (i32.const 2048) \"no-build\") (data (i32.const 2064) \"{severity}\") (data (i32.const 2080) \"build\")\n\
         (data (i32.const 4096) \"{quoted}\")\n\
         (func $lint (param $graph i32) (param $length i32)\n\
           (if (i32.ne (i32.load8_u (local.get $graph)) (i32.const 0x7b)) (then unreachable))\n\
           (if (i32.lt_u (local.get $length) (i32.const 100)) (then unreachable))\n\
           (call $text (i32.const 0) (i32.const 2048) (i32.const 8))\n\
           (call $text (i32.const 8) (i32.const 2064) (i32.const {}))\n\
           (call $text (i32.const 16) (i32.const 4096) (i32.const {}))\n\
           (call $node (i32.const 2080) (i32.const 5))\n\
           (call $findings (i32.const 1)))\n\
         (func $transform)",
        severity.len(),
        message.len()
    )
}

/// A project with these bytes as `acme.house`, locked.
fn bench(component: &[u8], more: &str) -> Workbench {
    let bench = unlocked(component, more);
    bench.glovebox(&["plugin", "lock"]).ends(0).says("acme.house (rules, new)");
    bench
}

fn unlocked(component: &[u8], more: &str) -> Workbench {
    let bench = Workbench::with_pipeline(PIPELINE);
    std::fs::write(bench.project().join("house.wasm"), component).unwrap();
    bench.write("glovebox.toml", &format!("{more}[rules.\"acme.house\"]\npath = \"house.wasm\"\n"));
    bench
}

#[test]
fn findings_are_merged_at_their_place_and_hold_for_run_and_plan() {
    let bench = bench(&guests::rules(&finds("error", "no building here")), "");
    let check = bench.glovebox(&["check", "pipeline.dot"]);
    check.ends(3).says("error[acme.house/no-build]: no building here").says("pipeline.dot:4:3").says("1 error");
    let json = bench.glovebox(&["check", "pipeline.dot", "--format", "json"]).ends(3).json();
    let found = json.as_array().unwrap().iter().find(|found| found["rule"] == "acme.house/no-build").unwrap();
    assert_eq!(found["node"], "build");
    bench.glovebox(&["plan", "pipeline.dot"]).ends(3).says("acme.house/no-build");
    bench.glovebox(&["run", "pipeline.dot"]).ends(3).says("acme.house/no-build");
    assert!(!bench.has(".glovebox"), "a run that is refused does not exist");
}

#[test]
fn a_warning_stops_only_a_strict_check_and_an_unknown_severity_is_an_error() {
    let warns = bench(&guests::rules(&finds("warning", "rather not")), "");
    warns.glovebox(&["check", "pipeline.dot"]).ends(0).says("warning[acme.house/no-build]: rather not");
    warns.glovebox(&["check", "--strict", "pipeline.dot"]).ends(3);
    warns.glovebox(&["run", "pipeline.dot"]).ends(0).says("rather not");
    let odd = bench(&guests::rules(&finds("grave", "hm")), "");
    odd.glovebox(&["check", "pipeline.dot"]).ends(3).says("the severity `grave` is not known");
}

#[test]
fn what_nobody_agreed_to_does_not_judge() {
    let bench = unlocked(&guests::rules(&finds("info", "x")), "");
    for command in ["check", "plan", "run"] {
        bench.glovebox(&[command, "pipeline.dot"]).ends(7).says("`acme.house` is not in `glovebox.lock`");
    }
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.glovebox(&["check", "pipeline.dot"]).ends(0);
    std::fs::write(bench.project().join("house.wasm"), guests::rules(&finds("info", "y"))).unwrap();
    bench.glovebox(&["check", "pipeline.dot"]).ends(7).says("has the digest");
    std::fs::remove_file(bench.project().join("house.wasm")).unwrap();
    bench.glovebox(&["check", "pipeline.dot"]).ends(7).says("cannot be read");
}

#[test]
fn a_component_that_imports_anything_is_no_rules() {
    let import = "(import \"wasi:cli/exit@0.2.6\" \"exit\" (func $exit (param i32)))\n\
        (func $lint (param i32 i32) (call $exit (i32.const 0)))\n(func $transform)";
    let bench = unlocked(&guests::rules(import), "");
    bench.glovebox(&["plugin", "lock"]).ends(7).says("wasi:cli/exit@0.2.6").says("rules may import nothing at all");
    assert!(!bench.has("glovebox.lock"));
    let handler = unlocked(&guests::component("(func $execute)"), "");
    handler.glovebox(&["plugin", "lock"]).ends(7).says("cannot be rules");
}

#[test]
fn hostile_rules_are_errors_that_name_them_and_end_in_time() {
    let lint = |body: &str| format!("(func $lint (param i32 i32) {body})\n(func $transform)");
    for (name, fields, said) in [
        ("endless loop", lint("(loop br 0)"), "limit `wall_ms` (300) reached"),
        ("trap", lint("unreachable"), "unreachable"),
        ("stack", format!("(func $deep call $deep)\n{}", lint("call $deep")), "stack"),
        (
            "memory",
            lint("(loop (br_if 0 (i32.ne (memory.grow (i32.const 256)) (i32.const -1))))"),
            "limit `memory_bytes`",
        ),
        (
            "a million",
            lint("(drop (memory.grow (i32.const 1100))) (call $findings (i32.const 1000000))"),
            "limit `hostcall_bytes`",
        ),
        ("some", lint("(call $findings (i32.const 51))"), "has 51 findings, at most 50 are expected"),
        ("out of bounds", lint("(call $findings (i32.const 10000))"), "acme.house"),
        (
            "wants another graph",
            "(func $lint (param i32 i32))\n(func $transform (i32.store8 (i32.const 36) (i32.const 1)))".to_owned(),
            "`acme.house` wants the graph changed, which this version does not do",
        ),
        (
            "refuses the graph",
            "(func $lint (param i32 i32))\n(func $transform (i32.store8 (i32.const 32) (i32.const 1)))".to_owned(),
            "`acme.house` refuses the graph",
        ),
    ] {
        let bench = bench(&guests::rules(&fields), "[limits]\nwall_ms = 300\n");
        println!("{name}");
        bench.glovebox(&["check", "pipeline.dot"]).ends(3).says(said).says("error[acme.house");
        bench.glovebox(&["run", "pipeline.dot"]).ends(3);
    }
}

#[test]
fn what_rules_say_cannot_drive_the_terminal_or_flood_it() {
    let message = format!("\u{1b}]0;owned\u{7}\u{1b}[2J\r\u{202e}x{}", "long ".repeat(4_000));
    let bench = bench(&guests::rules(&finds("error", &message)), "");
    for format in ["text", "json", "sarif", "github"] {
        let answer = bench.glovebox(&["check", "pipeline.dot", "--format", format]);
        let all = format!("{}{}", answer.stdout, answer.stderr);
        assert!(!all.contains(['\u{1b}', '\u{7}', '\r', '\u{202e}']), "{format}: {all:?}");
        assert!(all.len() < 50_000, "{format}: {} bytes", all.len());
        answer.ends(3).says("owned");
    }
}

#[test]
fn rules_and_plugins_share_no_name_and_unknown_fields_are_told() {
    let bench = Workbench::with_pipeline(PIPELINE);
    let both = "[plugins.\"acme.house\"]\npath = \"a.wasm\"\n[rules.\"acme.house\"]\npath = \"b.wasm\"\ngrants = {}\n";
    bench.write("glovebox.toml", both);
    bench.glovebox(&["check", "pipeline.dot"]).ends(3).says("has the name of a plugin").says("grants");
}
