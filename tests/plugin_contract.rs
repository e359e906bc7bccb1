//! `glovebox plugin test` with the real binary: the built-in components pass, and each misbehaviour fails the check that is about it.

mod worlds;

use crate::guests;
use crate::workbench::{Answer, Workbench, each, not_run, root};
use glovebox_host::inspect::embed;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

/// Files and a model, as the built-in agent wants them.
const ALL_FILES: &str = r#"{"filesystem":"workspace","read":["./"],"write":["./"]}"#;

/// Wants of a guest that needs no grants.
const NOTHING: &str = "{}";
/// Lower limits, so that a guest without bounds ends early.
const LITTLE: &str = r#"{"limits":{"memory_bytes":"16MiB","table_elements":2000,"resources":200,"output_bytes":"64KiB",
    "log_lines":100,"artifact_bytes":"1MiB","outcome_bytes":"64KiB","refusals":100}}"#;

/// Adds a manifest with these wants to a component.
fn wanting(component: &[u8], wants: &str) -> Vec<u8> {
    let manifest = format!(r#"{{"name":"evil.guest","version":"0.1.0","wants":{wants}}}"#);
    embed(component, &manifest).unwrap()
}

fn bench(component: &[u8]) -> Workbench {
    let bench = Workbench::new();
    std::fs::write(bench.project().join("guest.wasm"), component).unwrap();
    bench
}

/// Tests a component, and returns its answer and the report.
fn tested(component: &[u8], flags: &[&str]) -> (Answer, Value) {
    let bench = bench(component);
    let answer = bench.glovebox(&[&["plugin", "test", "guest.wasm", "--json"], flags].concat());
    let report = answer.json();
    (answer, report)
}

fn names(report: &Value, verdict: &str) -> Vec<String> {
    let checks = report["checks"].as_array().unwrap().iter().filter(|check| check["verdict"] == verdict);
    checks.map(|check| check["name"].as_str().unwrap().to_owned()).collect()
}

fn detail<'r>(report: &'r Value, name: &str) -> &'r str {
    let mut checks = report["checks"].as_array().unwrap().iter();
    checks.find(|check| check["name"] == name).and_then(|check| check["detail"].as_str()).unwrap_or_default()
}

/// Checks that a component fails these checks and no others.
#[track_caller]
fn fails(what: &str, component: &[u8], flags: &[&str], expected: &[&str]) -> Value {
    let (answer, report) = tested(component, flags);
    answer.ends(7);
    assert_eq!(names(&report, "failed"), expected, "{what}: {report:#}");
    report
}

fn builtin(name: &str) -> Vec<u8> {
    std::fs::read(root().join(format!("target/components/{name}.wasm"))).unwrap()
}

#[test]
fn the_built_in_components_pass() {
    let names_of_all =
        ["codergen", "diff-limits", "json-schema", "junit", "tool", "tree-assert", "verification", "verify"];
    each(names_of_all.len(), |at| {
        let (answer, report) = tested(&builtin(names_of_all[at]), &[]);
        assert_eq!(names(&report, "failed"), [""; 0], "{}: {report:#}", names_of_all[at]);
        answer.ends(0);
        assert!(names(&report, "passed").len() >= 20, "{}: {report:#}", names_of_all[at]);
        assert!(report["calls"].as_u64().unwrap() >= 14, "{report:#}");
    });
}

#[test]
fn a_harmless_plugin_passes_every_check_that_applies() {
    // It counts its calls in its memory. Each call has a new instance, so all calls are the same.
    let (answer, report) = tested(&wanting(&guests::build("remembers"), "{}"), &[]);
    answer.ends(0);
    assert_eq!((names(&report, "failed"), names(&report, "not_run")), (vec![], vec![]), "{report:#}");
}

/// Behaviour, what its author wants, additional flags, and the checks that fail.
type Row<'r> = (&'r str, &'r str, &'r [&'r str], &'r [&'r str]);

#[test]
fn each_hostile_guest_fails_the_checks_that_are_about_it() {
    let short: &[&str] = &["--wall-time", "1s"];
    let every_input = [
        "inputs.huge-prompt",
        "inputs.many-attributes",
        "inputs.empty-texts",
        "inputs.unicode",
        "inputs.deceptive",
        "inputs.nul",
        "inputs.deep-context",
        "inputs.many-edges",
        "inputs.unknown-extra",
    ];
    let with_inputs = |before: &[&'static str], after: &[&'static str]| [before, &every_input, after].concat();
    let without_outcome = |after: &[&'static str]| with_inputs(&["contract.outcome"], after);
    let (traps, malformed) = (without_outcome(&["traps.none"]), without_outcome(&[]));
    let (memory, loud) = (without_outcome(&["limits.memory"]), without_outcome(&["traps.none", "limits.output"]));
    let few_files = &ALL_FILES.replace("}", r#","limits":{"write_bytes":"1MiB","write_entries":20}}"#);
    let rows: &[Row<'_>] = &[
        ("endless-loop", NOTHING, short, &["deadlines.ends"]),
        ("sleeps", NOTHING, short, &["deadlines.ends"]),
        ("traps", NOTHING, &[], &traps),
        ("panics", NOTHING, &[], &traps),
        ("exits", NOTHING, &[], &traps),
        ("stack-overflow", NOTHING, &[], &traps),
        ("malformed-outcome", NOTHING, &[], &malformed),
        ("lies", NOTHING, &[], &["contract.claims"]),
        ("memory-hog", LITTLE, &[], &memory),
        ("table-hog", LITTLE, &[], &memory),
        ("handle-hog", LITTLE, &[], &memory),
        ("huge-argument", LITTLE, &[], &memory),
        // It writes where it has no memory after the long prompt.
        ("shouts", LITTLE, &[], &loud),
        ("output-flood", LITTLE, &[], &["limits.output"]),
        ("log-flood", LITTLE, &[], &["limits.output"]),
        ("artifact-flood", LITTLE, &[], &["scope.requests", "limits.output"]),
        ("artifact-tricks", LITTLE, &[], &["scope.requests"]),
        ("refusal-flood", LITTLE, &[], &["scope.requests", "limits.output"]),
        ("asks-model", r#"{"model":true}"#, &[], &["scope.ungranted", "limits.model"]),
        ("asks-model", NOTHING, &[], &["manifest.complete", "scope.requests"]),
        ("runs-command", NOTHING, &[], &["manifest.complete", "contract.failure", "scope.requests"]),
        ("write-hog", NOTHING, &[], &["manifest.complete", "scope.writes"]),
        ("write-hog", few_files, &[], &["scope.ungranted", "limits.files"]),
        ("entry-hog", few_files, &[], &["scope.ungranted", "limits.files"]),
        ("opens-sockets", NOTHING, &[], &["contract.imports"]),
        ("crowd", NOTHING, &[], &["contract.imports"]),
    ];
    let findings = Mutex::new(Vec::new());
    each(rows.len(), |at| {
        let (name, wants, flags, expected) = rows[at];
        let (answer, report) = tested(&wanting(&guests::build(name), wants), flags);
        let failed = names(&report, "failed");
        if answer.code != 7 || failed != expected {
            findings.lock().unwrap().push(format!("{name}: exit {}, {failed:?}", answer.code));
        }
    });
    let findings = findings.into_inner().unwrap();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn a_component_without_a_manifest_is_told_so() {
    let report = fails("no manifest", &guests::component("(func $execute)"), &[], &["manifest.present"]);
    assert!(detail(&report, "manifest.present").contains("glovebox:manifest"), "{report:#}");
    assert_eq!(names(&report, "not_applicable").iter().filter(|name| name.starts_with("manifest.")).count(), 2);
}

const READ: &str = r#"(import "glovebox:plugin/files@0.1.0" "read" (func $read (param i32 i32 i64 i32 i32)))"#;
const WRITE: &str = r#"(import "glovebox:plugin/files@0.1.0" "write" (func $write (param i32 i32 i32 i32 i32)))"#;

/// Returns the fields of a guest that reads one file, and calls that a success whatever happened.
fn reads(path: &str) -> String {
    let length = path.len();
    format!(
        "{READ}\n(data (i32.const 1024) \"{path}\")\n\
         (func $execute (call $read (i32.const 1024) (i32.const {length}) (i64.const 0) (i32.const 99) (i32.const 128)))"
    )
}

/// Returns the fields of a guest that writes one file, and calls that a success whatever happened.
fn writes(path: &str) -> String {
    let length = path.len();
    format!(
        "{WRITE}\n(data (i32.const 1024) \"{path}\")\n(func $execute (call $write (i32.const 1024) \
         (i32.const {length}) (i32.const 1024) (i32.const {length}) (i32.const 128)))"
    )
}

#[test]
fn wants_that_cannot_be_used_are_found() {
    let nothing = guests::component("(func $execute)");
    for (wants, expected) in [
        (r#"{"commands":["cargo test"]}"#, "imports no `glovebox:plugin/exec`"),
        (r#"{"model":true}"#, "imports no `glovebox:plugin/llm`"),
        (r#"{"filesystem":"workspace","read":["src/"]}"#, "imports no `glovebox:plugin/files`"),
    ] {
        let report = fails(wants, &wanting(&nothing, wants), &[], &["manifest.usable"]);
        assert!(detail(&report, "manifest.usable").contains(expected), "{report:#}");
    }
    let posix = r#"{"filesystem":"posix","read":["README.md"]}"#;
    let report = fails(
        "posix",
        &wanting(&guests::component(&reads("README.md")), posix),
        &["--only", "manifest"],
        &["manifest.usable"],
    );
    assert!(detail(&report, "manifest.usable").contains("`workspace` is enough"), "{report:#}");
}

#[test]
fn whoever_leaves_the_scope_is_named_with_the_path() {
    let wants = r#"{"filesystem":"workspace","read":["src/"],"write":["out/"]}"#;
    let check = |fields: &str, expected: &[&str], says: (&str, &str)| {
        let report = fails(fields, &wanting(&guests::component(fields), wants), &[], expected);
        assert!(detail(&report, says.0).contains(says.1), "{report:#}");
    };
    check(&reads("secret.txt"), &["scope.reads", "scope.ungranted"], ("scope.reads", "read `secret.txt`"));
    check(&reads("../x"), &["scope.reads", "scope.ungranted"], ("scope.reads", "read `../x`"));
    check(&writes("src/a.rs"), &["scope.writes", "scope.ungranted"], ("scope.writes", "write `src/a.rs`"));
    check(&writes("out/a"), &["scope.ungranted"], ("scope.ungranted", "still answers `success`"));
    let hidden = "scripts/scenarios/holdout.txt";
    check(
        &reads(hidden),
        &["scope.reads", "scope.hidden", "scope.ungranted"],
        ("scope.hidden", "the hidden path `scripts/scenarios/holdout.txt`"),
    );
}

/// Returns a component with these declared attributes.
fn declaring(component: &[u8], attributes: &str) -> Vec<u8> {
    let manifest = format!(r#"{{"name":"evil.guest","version":"0.1.0","attributes":{{{attributes}}}}}"#);
    embed(component, &manifest).unwrap()
}

/// Traps if the value of an attribute begins with an `n`. The attributes of the input are at the offset 80.
const DISLIKES_N: &str = r#"
  (func $execute (local $at i32) (local $left i32)
    (local.set $at (i32.load offset=80 (global.get $input)))
    (local.set $left (i32.load offset=84 (global.get $input)))
    (block $done
      (loop $again
        (br_if $done (i32.eqz (local.get $left)))
        (if (i32.load offset=12 (local.get $at))
          (then (if (i32.eq (i32.load8_u (i32.load offset=8 (local.get $at))) (i32.const 110)) (then unreachable))))
        (local.set $at (i32.add (local.get $at) (i32.const 16)))
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (br $again))))"#;

/// Notes as many letters as its node has attributes.
const COUNTS: &str = r#"(data (i32.const 1024) "xxxxxxxxxxxxxxxxxxxxxxxx")
  (func $execute (call $notes (i32.const 1024) (i32.load offset=84 (global.get $input))))"#;

#[test]
fn declared_attributes_are_tried() {
    let nothing = guests::component("(func $execute)");
    let only: &[&str] = &["--only", "attributes"];
    let good = r#""folder":{"type":"path","default":"src","doc":"Where."},
        "mode":{"type":"enum","values":["a","b"],"doc":"How."},"most":{"type":"integer","min":1,"max":9,"doc":"Many."}"#;
    let (answer, report) = tested(&declaring(&nothing, good), only);
    answer.ends(0);
    assert_eq!(
        (detail(&report, "attributes.values"), detail(&report, "attributes.wrong-values")),
        ("6 values", "3 values")
    );
    assert_eq!(names(&report, "not_applicable"), ["attributes.required"], "{report:#}");
    let (_, report) = tested(&wanting(&nothing, "{}"), only);
    assert_eq!(names(&report, "not_applicable").len(), 6, "{report:#}");
    let fails = |what: &str, component: &[u8], expected: &[&str], says: &str| {
        let report = fails(what, component, only, expected);
        assert!(detail(&report, expected[0]).contains(says), "{report:#}");
    };
    let reserved = r#""allowed_write_paths":{"type":"string","doc":"Where."}"#;
    fails("reserved", &declaring(&nothing, reserved), &["attributes.names"], "Glovebox itself reads");
    let silent = r#""mode":{"type":"string"}"#;
    fails("no docs", &declaring(&nothing, silent), &["attributes.documented"], "`mode` has no `doc`");
    let required = r#""program":{"type":"string","required":true,"doc":"The command."}"#;
    let mode = r#""mode":{"type":"enum","values":["a","no"],"doc":"How."}"#;
    let dislikes = declaring(&guests::component(DISLIKES_N), mode);
    fails("a right value", &dislikes, &["attributes.values", "attributes.wrong-values"], "= `no`: it trapped");
    let dislikes = declaring(&guests::component(DISLIKES_N), &mode.replace("no", "yes"));
    fails("a wrong value", &dislikes, &["attributes.wrong-values"], "`mode` = `none of the values`: it trapped");
    let counts = declaring(&guests::component(COUNTS), mode);
    fails("an unknown one", &counts, &["attributes.unknown"], "does something else if a node has");
    fails("required", &declaring(&nothing, required), &["attributes.required"], "answers `success` without it");
}

/// Fields of a guest that makes eight letters of the time at which its folder was made.
const CHANCE: &str = r#"
  (import "wasi:filesystem/preopens@0.2.6" "get-directories" (func $preopens (param i32)))
  (import "wasi:filesystem/types@0.2.6" "[method]descriptor.stat" (func $stat (param i32 i32)))
  (func $chance (local $left i32)
    (call $preopens (i32.const 128))
    (call $stat (i32.load (i32.load (i32.const 128))) (i32.const 256))
    (local.set $left (i32.const 8))
    (loop $again
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (i32.store8 (i32.add (i32.const 2048) (local.get $left))
        (i32.add (i32.const 97) (i32.and (i32.const 15)
          (i32.shr_u (i32.load (i32.const 328)) (i32.shl (local.get $left) (i32.const 2))))))
      (br_if $again (local.get $left))))"#;

#[test]
fn chance_is_found_in_outcomes_host_calls_and_files() {
    let log = r#"(import "glovebox:plugin/control@0.1.0" "log" (func $log (param i32 i32 i32 i32 i32 i32)))"#;
    let wants = r#"{"filesystem":"posix","read":["./"],"write":["out/"]}"#;
    for (import, uses, expected) in [
        ("", "(call $notes (i32.const 2048) (i32.const 8))", &["determinism.outcome"][..]),
        (
            log,
            "(call $log (i32.const 2048) (i32.const 4) (i32.const 2048) (i32.const 8) (i32.const 0) (i32.const 0))",
            &["determinism.host-calls"][..],
        ),
        (
            WRITE,
            "(call $write (i32.const 1024) (i32.const 5) (i32.const 2048) (i32.const 8) (i32.const 128))",
            &["determinism.host-calls", "determinism.files"][..],
        ),
    ] {
        let fields =
            format!("{import}{CHANCE}\n(data (i32.const 1024) \"out/a\")\n(func $execute (call $chance) {uses})");
        let flags: &[&str] = &["--only", "determinism"];
        let report = fails(uses, &wanting(&guests::component(&fields), wants), flags, expected);
        assert!(detail(&report, expected[0]).contains(" and then "), "{report:#}");
    }
}

#[test]
fn failures_labels_and_classes_are_those_of_the_contract() {
    // The outcome of the prelude: the status at 16, the label at 20, the suggestions at 32, the failure at 56.
    let failing = |class: &str, code: &str| {
        let (of_class, of_code) = (class.len(), code.len());
        format!(
            "(data (i32.const 1024) \"{class}\")\n(data (i32.const 1100) \"{code}\")\n(func $execute (call $status (i32.const 3)) \
             (i32.store8 (i32.const 56) (i32.const 1)) (i32.store (i32.const 60) (i32.const 1024)) \
             (i32.store (i32.const 64) (i32.const {of_class})) (i32.store (i32.const 68) (i32.const 1100)) \
             (i32.store (i32.const 72) (i32.const {of_code})))"
        )
    };
    let check = |fields: &str, name: &str, says: &str| {
        let report = fails(fields, &wanting(&guests::component(fields), "{}"), &["--only", "contract"], &[name]);
        assert!(detail(&report, name).contains(says), "{report:#}");
    };
    check(&failing("deterministic", "limit/turns"), "contract.failure", "`limit/turns`, which is reserved");
    check(&failing("deterministic", "a b"), "contract.failure", "`a b`, which is reserved or not a code");
    check(&failing("fatal", "acme/x"), "contract.failure", "the unknown class `fatal`");
    check("(func $execute (call $status (i32.const 3)))", "contract.failure", "`fail` without a failure");
    let labelled = "(data (i32.const 1024) \"elsewhere\")\n(func $execute (i32.store8 (i32.const 20) (i32.const 1)) \
         (i32.store (i32.const 24) (i32.const 1024)) (i32.store (i32.const 28) (i32.const 9)))";
    check(labelled, "contract.labels", "the label `elsewhere`, which no edge has");
    let suggesting = "(data (i32.const 1024) \"elsewhere\")\n(data (i32.const 1040) \"\\00\\04\\00\\00\\09\\00\\00\\00\")\n\
         (func $execute (i32.store (i32.const 32) (i32.const 1040)) (i32.store (i32.const 36) (i32.const 1)))";
    check(suggesting, "contract.labels", "the node `elsewhere`, to which no edge leads");
}

#[test]
fn what_is_copied_from_the_input_and_what_is_too_long_for_a_plugin_is_found() {
    // The label of the node is at 52 of the input.
    let copies = "(func $execute (i32.store8 (i32.const 20) (i32.const 1)) \
         (i32.store (i32.const 24) (i32.load offset=52 (global.get $input))) \
         (i32.store (i32.const 28) (i32.load offset=56 (global.get $input))))";
    let report = fails(
        "copies",
        &wanting(&guests::component(copies), "{}"),
        &["--only", "inputs"],
        &["inputs.unicode", "inputs.deceptive", "inputs.nul"],
    );
    let told = detail(&report, "inputs.deceptive");
    assert!(told.contains("preferred label") && !told.contains('\u{202e}') && !told.contains('\u{1b}'), "{told:?}");
    let small = "(func $execute (if (i32.gt_u (global.get $heap) (i32.const 1000000)) (then (unreachable))))";
    let report = fails("small", &wanting(&guests::component(small), "{}"), &[], &["inputs.huge-prompt", "traps.none"]);
    assert!(detail(&report, "traps.none").contains("with the input `huge-prompt`, it trapped"), "{report:#}");
}

#[test]
fn a_plugin_that_traps_when_it_is_canceled_is_found() {
    let fields = r#"(import "glovebox:plugin/control@0.1.0" "canceled" (func $canceled (result i32)))
        (func $execute (loop $again (br_if $again (i32.eqz (call $canceled)))) (unreachable))"#;
    let component = wanting(&guests::component(fields), "{}");
    let flags: &[&str] = &["--wall-time", "1s", "--only", "cancel"];
    // The host may stop the guest before it sees that it was canceled, and then nothing is wrong.
    let reports = (0..10).map(|_| tested(&component, flags).1);
    let found = reports.into_iter().find(|report| names(report, "failed") == ["cancel.ends"]);
    let found = found.expect("ten calls end before the guest can trap");
    assert!(detail(&found, "cancel.ends").contains("it trapped"), "{found:#}");
}

#[test]
fn a_plugin_that_asks_the_host_without_end_is_found() {
    let fields = r#"(import "glovebox:plugin/control@0.1.0" "canceled" (func $canceled (result i32)))
        (func $execute (local $left i32) (local.set $left (i32.const 100001))
          (loop $again (drop (call $canceled)) (local.set $left (i32.sub (local.get $left) (i32.const 1)))
            (br_if $again (local.get $left))))"#;
    let component = wanting(&guests::component(fields), "{}");
    let report = fails("asks", &component, &["--only", "limits"], &["limits.host-calls"]);
    assert!(detail(&report, "limits.host-calls").contains("100001 host calls"), "{report:#}");
}

/// Returns true if this machine has a sandbox for commands.
fn has_sandbox(what: &str) -> bool {
    let tier = Workbench::new().glovebox(&["doctor", "--json"]).json()["tier"].clone();
    if tier.is_null() {
        not_run(what, "this machine has no sandbox for commands");
    }
    !tier.is_null()
}

#[test]
fn commands_run_only_if_they_are_allowed_and_then_in_a_sandbox() {
    if !has_sandbox("the commands of a plugin under test") {
        return;
    }
    let component = wanting(&guests::build("runs-command"), r#"{"commands":["true"]}"#);
    let (answer, report) = tested(&component, &[]);
    assert_eq!(names(&report, "not_run"), ["commands.end"], "{report:#}");
    assert!(detail(&report, "commands.end").contains("--allow-commands"));
    assert_eq!(names(&report, "failed"), ["contract.failure"], "{report:#}");
    answer.ends(7);
    let (answer, report) = tested(&component, &["--allow-commands"]);
    assert_eq!((names(&report, "failed"), names(&report, "not_run")), (vec![], vec![]), "{report:#}");
    answer.ends(0);
    assert_eq!(detail(&report, "commands.end"), "1 command");
    // A command that has 100 ms and takes ten minutes.
    let text = std::fs::read_to_string(guests::folder().join("sleeping-command/guest.wat")).unwrap();
    let bounded = text.replace("(i32.const 0) (i64.const 0)", "(i32.const 1) (i64.const 100)");
    assert_ne!(bounded, text);
    let component = wanting(&guests::component(&bounded), r#"{"commands":["sleep"]}"#);
    let flags: &[&str] = &["--allow-commands", "--only", "commands"];
    let report = fails("sleeps", &component, flags, &["commands.end"]);
    assert!(detail(&report, "commands.end").contains("`sleep 600` timed-out"), "{report:#}");
}

#[test]
fn the_outcome_of_an_input_is_printed() {
    let bench = bench(&builtin("tree-assert"));
    bench.write("stage.json", r#"{"input": {"attributes": {"exists": "a.txt"}}, "files": {"a.txt": "x"}}"#);
    let answer = bench.glovebox(&["plugin", "test", "guest.wasm", "--input", "stage.json", "--only", "input"]);
    answer.ends(0).says("outcome   success").says("notes     tree-assert passed: 1 assertions").says("1 call in");
    bench.write(
        "stage.json",
        r#"{"input": {"attributes": {"exists": "b.txt"}}, "expect": {"status": "success", "notes_contain": ["all"]}}"#,
    );
    let answer = bench.glovebox(&["plugin", "test", "guest.wasm", "--input", "stage.json", "--only", "input"]);
    answer.ends(7).says("FAILED         input.expected").says("status is `fail`, expected `success`");
    answer.says("`b.txt` does not exist").says("failure   deterministic (tree-assert/failed)");
}

const CASE: &str = r#"{
  "input": {"prompt": "Write it", "outgoing": [{"to": "next"}]},
  "files": {"src/old.rs": "old\n"},
  "model": [
    {"tool": [{"name": "write_file", "arguments": {"path": "src/new.rs", "content": "one\ntwo\n"}}]},
    {"text": "written", "outcome": {"status": "success", "context_updates": {"done": true}}}
  ],
  "grants": {"filesystem": "posix", "read": ["./"], "write": ["src/"], "model": true},
  "expect": EXPECT
}"#;

#[test]
fn a_case_is_compared_with_files_context_and_texts() {
    let bench = bench(&builtin("codergen"));
    let case = |name: &str, expect: &str| bench.write(&format!("cases/{name}.json"), &CASE.replace("EXPECT", expect));
    case(
        "right",
        r#"{"status": "success", "context": {"done": true}, "notes_contain": ["completed"],
            "files": {"src/new.rs": "one\ntwo\n", "src/old.rs": "old\n", "src/none.rs": null}}"#,
    );
    bench.write("cases/README.md", "not a case");
    let words = ["plugin", "test", "guest.wasm", "--cases", "cases", "--only", "cases"];
    bench.glovebox(&words).ends(0).says("passed         cases.right").says("1 passed; 1 call in");
    case("status", r#"{"status": "fail", "code": "acme/x"}"#);
    case("text", r#"{"files": {"src/new.rs": "one\n2\n", "src/old.rs": null}}"#);
    case("context", r#"{"context": {"done": false, "other": 1}, "notes_contain": ["read"], "label": "yes"}"#);
    let answer = bench.glovebox(&words);
    answer.ends(7).says("1 passed, 3 failed; 4 calls in");
    answer.says("found   status is `success`, expected `fail`; code is none, expected `acme/x`");
    answer.says("line 2 of `src/new.rs` is `two`, expected `2`; `src/old.rs` exists");
    answer.says("context key `done` is `true`, expected `false`; context key `other` is none, expected `1`");
    answer.says("label is none, expected `yes`").says("notes `").says("have no `read`");
    // What the case does not grant is not there, although the plugin wants it.
    bench.write(
        "cases/status.json",
        &CASE.replace("\"src/\"", "\"docs/\"").replace("EXPECT", r#"{"files": {"src/new.rs": "one\ntwo\n"}}"#),
    );
    bench.glovebox(&words).ends(7).says("`src/new.rs` does not exist");
}

#[test]
fn a_case_that_needs_commands_is_not_passed_over() {
    let bench = bench(&builtin("tool"));
    bench.write(
        "cases/a.json",
        r#"{"input": {"attributes": {"tool_command": "echo x > made"}}, "expect": {"status": "success"}}"#,
    );
    let words = ["plugin", "test", "guest.wasm", "--cases", "cases", "--only", "cases"];
    bench.glovebox(&words).ends(2).says("not run        cases.a").says("1 case not run").says("add `--allow-commands`");
    if has_sandbox("a case with commands") {
        bench.glovebox(&[&words[..], &["--allow-commands"]].concat()).ends(0).says("passed         cases.a");
    }
}

#[test]
fn a_junit_report_has_a_case_for_each_check() {
    let bench = bench(&wanting(&guests::component("(func $execute unreachable)"), "{}"));
    let words = ["plugin", "test", "guest.wasm", "--junit", "report.xml"];
    bench.glovebox(&words).ends(7).says("FAILED         traps.none").says("help    find the panic");
    let report = bench.read("report.xml");
    assert!(report.contains("<testsuite name=\"evil.guest\""), "{report}");
    assert!(
        report.contains("<testcase name=\"none\" classname=\"traps\"") && report.contains("unreachable"),
        "{report}"
    );
    assert!(report.contains("<skipped") && report.contains("help: find the panic"), "{report}");
    bench
        .glovebox(&["plugin", "test", "guest.wasm", "--junit", "none/report.xml"])
        .ends(2)
        .says("there is no such folder");
}

#[test]
fn wrong_arguments_and_files_are_named() {
    let bench = bench(&builtin("tree-assert"));
    let check = |flags: &[&str], exit: i32, says: &[&str]| {
        let answer = bench.glovebox(&[&["plugin", "test"], flags].concat());
        answer.ends(exit);
        for words in says {
            answer.says(words);
        }
        answer.never_says("\u{1b}");
    };
    check(&["none.wasm"], 2, &["none.wasm"]);
    bench.write("text.wasm", "text");
    check(&["text.wasm"], 7, &["not WebAssembly"]);
    std::fs::write(bench.project().join("core.wasm"), wat::parse_str("(module)").unwrap()).unwrap();
    check(&["core.wasm"], 7, &["a core module", "wasm-tools component new"]);
    check(&["guest.wasm", "--only", "scopes"], 2, &["there is no group `scopes`", "--only scope"]);
    check(&["guest.wasm", "--only", "cases"], 2, &["nothing to check", "--cases DIR"]);
    check(&["guest.wasm", "--wall-time", "0s"], 2, &["expected a duration"]);
    check(&["guest.wasm", "--input", "none.json"], 2, &["none.json"]);
    bench.write("bad.json", "{\"input\": {\"attributes\": {\"a\": 1}}}");
    check(
        &["guest.wasm", "--input", "bad.json"],
        3,
        &["`bad.json` is not a stage file", "line 1", "glovebox schema plugin-stage"],
    );
    check(&["guest.wasm", "--cases", "none"], 2, &["none"]);
    std::fs::create_dir(bench.project().join("empty")).unwrap();
    check(&["guest.wasm", "--cases", "empty"], 2, &["has no case", "NAME.json"]);
    bench.write("cases/a.json", "{\"expect\": {}}");
    bench.write("cases/b.json", "{\"expects\": 1}");
    bench.write("cases/c\u{1b}[2J.json", &format!("[{}", " ".repeat(5 << 20)));
    check(&["guest.wasm", "--cases", "cases"], 3, &["cannot be read", "\\x1b[2J.json"]);
    std::fs::remove_file(bench.project().join("cases/c\u{1b}[2J.json")).unwrap();
    check(&["guest.wasm", "--cases", "cases"], 3, &["cases/a.json", "could not fail", "cases/b.json", "unknown field"]);
    std::os::unix::fs::symlink("../bad.json", bench.project().join("cases/d.json")).unwrap();
    check(&["guest.wasm", "--cases", "cases"], 3, &["cases/d.json"]);
    std::fs::remove_file(bench.project().join("cases/d.json")).unwrap();
    let fifo = bench.project().join("cases/e.json");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
    check(&["guest.wasm", "--cases", "cases"], 3, &["cases/e.json"]);
}

#[test]
fn no_file_is_left_behind() {
    let bench = bench(&wanting(&guests::component(&writes("out/a")), r#"{"filesystem":"workspace","write":["out/"]}"#));
    let temporary = bench.outside().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = bench.command(&["plugin", "test", "guest.wasm"]);
    Answer::of(command.env("TMPDIR", &temporary)).ends(7).says("FAILED         scope.ungranted");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    let names: Vec<String> = bench.snapshot().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["guest.wasm"]);
}

#[test]
fn the_report_conforms_to_its_documentation() {
    let page = std::fs::read_to_string(root().join("docs/plugin-tests.md")).unwrap();
    let (of_stages, of_others) = page.split_once("## Components that are no stages").unwrap();
    let documented = |page: &str| -> Vec<String> {
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        rows.map(|(name, _)| name.to_owned()).filter(|name| name.contains('.') && !name.contains(' ')).collect()
    };
    let (_, report) = tested(&wanting(&guests::component("(func $execute)"), "{}"), &[]);
    assert_eq!(documented(of_stages), all_names(&report), "docs/plugin-tests.md lists every check, in order");
    assert_eq!(report["commands_allowed"], json!(false));
    let (_, tools) = tested(&guests::provider("(func $definitions) (func $call)"), &[]);
    let (_, policy) = tested(&guests::policy("(func $judge_call) (func $judge_edge)"), &[]);
    let both: Vec<String> = all_names(&tools).into_iter().chain(all_names(&policy).into_iter().skip(1)).collect();
    assert_eq!(documented(of_others), both);
}

fn all_names(report: &Value) -> Vec<String> {
    let checks = report["checks"].as_array().unwrap().iter();
    checks.map(|check| check["name"].as_str().unwrap().to_owned()).collect()
}
