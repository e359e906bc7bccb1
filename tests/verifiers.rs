//! The built-in verifiers `json-schema`, `junit` and `tree-assert`: what they judge, and that no earlier stage can
//! deceive them. The tests of `diff-limits` are in another file.

use crate::guests;
use crate::workbench::{self, Workbench};

const PASSED: &str = "<testsuite><testcase name=\"a\"/></testsuite>";
const FAILED: &str =
    "<testsuite><testcase classname=\"math\" name=\"adds\"><failure>1 is not 2</failure></testcase></testsuite>";

/// Creates a pipeline with stages in a row.
fn bench(stages: &[&str]) -> Workbench {
    let names: Vec<String> = (1..=stages.len()).map(|number| format!("n{number}")).collect();
    let nodes: String = names.iter().zip(stages).map(|(name, stage)| format!("  {name} [{stage}]\n")).collect();
    let pipeline = format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n{nodes}  start -> {} -> done\n}}\n",
        names.join(" -> ")
    );
    Workbench::with_pipeline(&pipeline)
}

fn run(bench: &Workbench) -> workbench::Answer {
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"])
}

#[test]
fn a_report_is_judged_by_its_tests() {
    for (report, code, says) in [
        (PASSED, 0, "success"),
        (FAILED, 1, "1 of 1 tests failed in `r.xml`: math.adds"),
        ("<testsuite tests=\"9\"/>", 1, "has 0 tests that ran"),
        ("<!DOCTYPE a [<!ENTITY a \"aa\">]><testsuite/>", 1, "has a document type, which is refused"),
    ] {
        let bench = bench(&["type=\"junit\", report=\"r.xml\""]);
        bench.write("r.xml", report);
        run(&bench).ends(code).says(says).never_says("verified     n1");
    }
}

#[test]
fn the_command_of_a_junit_stage_has_a_receipt_and_must_write_the_report() {
    let stage = "type=\"junit\", report=\"out/r.xml\", command=\"sh make.sh\"";
    let fresh = bench(&[stage]);
    fresh.write("make.sh", &format!("mkdir -p out; echo '{PASSED}' > out/r.xml\n"));
    run(&fresh).ends(0).says("verified     n1: sh -c 'sh make.sh' exit 0");
    let old = bench(&[stage]);
    old.write("make.sh", "true\n");
    old.write("out/r.xml", PASSED);
    run(&old).ends(1).says("did not write `out/r.xml`");
    let failed = bench(&[stage]);
    failed.write("make.sh", &format!("mkdir -p out; echo '{FAILED}' > out/r.xml; exit 1\n"));
    run(&failed).ends(1).says("1 of 1 tests failed in `out/r.xml`: math.adds");
    let broken = bench(&[stage]);
    broken.write("make.sh", &format!("mkdir -p out; echo '{PASSED}' > out/r.xml; exit 3\n"));
    run(&broken).ends(1).says("exited with 3");
}

#[test]
fn a_builder_that_writes_a_report_does_not_replace_the_command() {
    let forged = format!("tool_command=\"mkdir -p out && echo '{}' > out/r.xml\"", PASSED.replace('"', "&quot;"));
    let forged = forged.replace("&quot;", "\\\"");
    let bench =
        bench(&[&format!("shape=parallelogram, {forged}"), "type=\"junit\", report=\"out/r.xml\", command=\"true\""]);
    run(&bench).ends(1).says("did not write `out/r.xml`");
}

#[test]
fn a_tree_is_checked() {
    let check = |attributes: &str, code: i32, says: &str| {
        let bench = bench(&[&format!("type=\"tree-assert\", {attributes}")]);
        bench.write("src/lib.rs", "pub fn a() {}\n");
        bench.write("old.tmp", "");
        run(&bench).ends(code).says(says);
    };
    check("exists=\"src/,src/lib.rs,**/*.rs\", absent=\"*.bak\", matches=\"src/lib.rs: fn a\"", 0, "success");
    check("exists=\"none.rs\"", 1, "`none.rs` does not exist");
    check("absent=\"*.tmp\"", 1, "`old.tmp` exists, but `*.tmp` must be absent");
    check("matches=\"src/lib.rs: unsafe\"", 1, "`src/lib.rs` does not match `unsafe`");
    check("absent=\"../x\"", 1, "has a `..` segment");
    check("label=\"nothing\"", 1, "no assertion");
}

#[test]
fn a_link_out_of_the_tree_shows_nothing() {
    let check = |stage: &str| {
        let bench = bench(&[stage]);
        std::fs::write(bench.outside().join("secret.xml"), PASSED).unwrap();
        std::os::unix::fs::symlink(bench.outside().join("secret.xml"), bench.project().join("r.xml")).unwrap();
        let answer = run(&bench);
        assert_ne!(answer.code, 0, "{stage}");
    };
    check("type=\"junit\", report=\"r.xml\"");
    check("type=\"tree-assert\", matches=\"r.xml: testcase\"");
    check("type=\"tree-assert\", exists=\"r.xml\"");
}

#[test]
fn files_that_are_too_large_or_no_text_fail() {
    let check = |stage: &str, says: &str| {
        let bench = bench(&[stage]);
        std::fs::write(bench.project().join("raw"), [0xff, 0xfe]).unwrap();
        std::fs::write(bench.project().join("long"), vec![b'a'; (16 << 20) + 1]).unwrap();
        bench.write("deep", &"<testsuite>".repeat(100_000));
        run(&bench).ends(1).says(says);
    };
    check("type=\"junit\", report=\"raw\"", "`raw` is not valid UTF-8");
    check("type=\"junit\", report=\"long\"", "`long` has over 16777216 bytes");
    check("type=\"junit\", report=\"deep\"", "deeper than 64 levels");
    check("type=\"tree-assert\", matches=\"raw: a\"", "`raw` is not valid UTF-8");
    check("type=\"tree-assert\", matches=\"long: a\"", "`long` has over 4194304 bytes");
}

#[test]
fn a_tree_assertion_sees_hold_outs_only_where_the_node_names_them() {
    let check = |attributes: &str, code: i32| {
        let bench = bench(&[&format!("type=\"tree-assert\", matches=\"scripts/scenarios/a.txt: 42\", {attributes}")]);
        bench.write("scripts/scenarios/a.txt", "42\n");
        run(&bench).ends(code);
    };
    check("holdouts=\"scripts/scenarios/\"", 0);
    check("label=\"check\"", 1);
}

/// The schema of a configuration with a port.
const PORT: &str = r#"{"type":"object","required":["port"],"properties":{"port":{"type":"integer"}}}"#;
const WRITES_SCHEMA: &str =
    "shape=parallelogram, tool_command=\"mkdir -p DIR && echo '{}' > DIR/s.json; true\", allowed_write_paths=\"./\"";

#[test]
fn a_json_file_is_checked_with_the_schema_of_the_pipeline() {
    let check = |file: &str, code: i32, says: &str| {
        let bench = bench(&["type=\"json-schema\", json_file=\"c.json\", json_schema=\"@schemas/s.json\""]);
        bench.write("schemas/s.json", PORT);
        bench.write("c.json", file);
        run(&bench).ends(code).says(says).never_says("verified     n1");
    };
    check(r#"{"port": 80}"#, 0, "success");
    check(r#"{"port": "80"}"#, 1, "`c.json` does not match its schema: at `/port`: expected integer, found string");
    check("{}", 1, "the property `port` is missing");
    check("{", 1, "`c.json` is not valid JSON");
    check(&"[".repeat(100_000), 1, "`c.json` is not valid JSON: recursion limit exceeded");
    check(&" ".repeat((4 << 20) + 1), 1, "`c.json` has over 4194304 bytes");
}

#[test]
fn a_schema_that_is_not_enforced_is_refused_by_name_before_the_run() {
    let check = |attributes: &str, says: &str| {
        let bench = bench(&[&format!("type=\"json-schema\", {attributes}")]);
        bench.write("s.json", r#"{"items": {"pattern": "x"}}"#);
        run(&bench).ends(3).says(says);
    };
    check("json_file=\"c.json\", json_schema=\"@s.json\"", "at `#/items`: the keyword `pattern` is not enforced");
    check("json_file=\"c.json\", json_schema=\"@none.json\"", "cannot read the schema file `none.json`");
    check("json_file=\"c.json\", json_schema=\"@../s.json\"", "the path contains `..`");
    check("json_file=\"c.json\", json_schema=\"@scripts/scenarios/s.json\"", "contains hold-outs");
    check("json_file=\"c.json\", json_schema_holdout=\"s.json\"", "`s.json`: no hold-out folder contains it");
    check("json_file=\"c.json\", json_schema_holdout=\"scripts/scenarios/../../s.json\"", "the path contains `..`");
    check("json_file=\"c.json\", json_schema=\"{}\", json_schema_holdout=\"s.json\"", "has both");
    check("json_file=\"c.json\"", "`n1` has no `json_schema`");
    check("json_schema=\"{}\"", "`n1` has no `json_file`");
}

#[test]
fn a_builder_cannot_change_the_schema() {
    let bench = bench(&[
        &WRITES_SCHEMA.replace("DIR", "schemas"),
        "type=\"json-schema\", json_file=\"c.json\", json_schema=\"@schemas/s.json\"",
    ]);
    bench.write("schemas/s.json", PORT);
    bench.write("c.json", "{}");
    run(&bench).ends(1).says("the property `port` is missing");
}

#[test]
fn a_schema_of_the_hold_outs_is_the_sealed_one_and_builders_learn_the_verdict() {
    let check = |sealed: Option<&str>, file: &str, code: i32| {
        let bench = bench(&[
            &WRITES_SCHEMA.replace("DIR", "scripts/scenarios"),
            "type=\"json-schema\", json_file=\"c.json\", json_schema_holdout=\"scripts/scenarios/s.json\"",
        ]);
        if let Some(sealed) = sealed {
            bench.write("scripts/scenarios/s.json", sealed);
        }
        bench.write("c.json", file);
        let answer = run(&bench);
        answer.ends(code).never_says("`port`");
        if sealed.is_none() {
            answer.says("names the schema `scripts/scenarios/s.json`, which the project does not have");
        }
    };
    check(Some(PORT), r#"{"port": 80}"#, 0);
    check(Some(PORT), "{}", 1);
    check(Some(r#"{"oneOf": []}"#), "{}", 1);
    check(None, "{}", 3);
}

#[test]
fn a_plugin_that_is_a_verifier_reads_the_tree_and_never_writes_it() {
    let stage = "type=\"acme.write\", allowed_write_paths=\"./\"";
    let check = |role: &str, writes: bool| {
        let bench = bench(&[stage]);
        std::fs::write(bench.project().join("guest.wasm"), guests::build("write-hog")).unwrap();
        let files = "{ filesystem = \"workspace\", read = [\"./\"], write = [\"./\"] }";
        let config =
            format!("[plugins.\"acme.write\"]\npath = \"guest.wasm\"\n{role}\nwants = {files}\ngrants = {files}\n");
        bench.write("glovebox.toml", &config);
        bench.glovebox(&["plugin", "lock"]).ends(0);
        run(&bench);
        let log = bench.glovebox(&["show", "r", "n1"]);
        match writes {
            true => log.never_says("refused      write big.bin: not in the write scope"),
            false => log.says("refused      write big.bin: not in the write scope"),
        };
        bench.glovebox(&["diff", "r"]).never_says("guest.wasm");
    };
    check("", true);
    check("role = \"verifier\"", false);
}
