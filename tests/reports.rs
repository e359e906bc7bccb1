//! Reports of a run for other programs: JUnit, SARIF, and Markdown for the page of a CI job. A stage's text never
//! becomes markup in a report.

use crate::workbench::{Workbench, is_on_this_machine, not_run};
use serde_json::{Value, json};

/// An agent stage without a receipt, a stage with a verified command, and a stage that fails with a hostile text.
const PIPELINE: &str = r#"digraph ship {
  start [shape=Mdiamond]; done [shape=Msquare]
  build [prompt="build", allowed_write_paths="src/"]
  test [shape=parallelogram, tool_command="echo fine", allowed_write_paths=""]
  judge [shape=parallelogram, tool_command="printf '</failure> ]]> | \\033[2J **b** <script>' >&2; exit 3", allowed_write_paths=""]
  start -> build -> test -> judge
  judge -> done [condition="outcome=success"]
}
"#;

fn run(pipeline: &str, exit: i32) -> Workbench {
    let bench = Workbench::with_pipeline(pipeline);
    bench.write("model.toml", "[[node.build]]\ntext = \"OUTCOME: SUCCESS\"\n");
    let words = ["run", "pipeline.dot", "--run-id", "r", "--script", "model.toml"];
    let reports = ["--junit", "../r.xml", "--sarif", "../r.sarif", "--job-summary", "../page.md"];
    bench.glovebox(&[&words[..], &reports].concat()).ends(exit);
    bench
}

fn report(bench: &Workbench, name: &str) -> String {
    std::fs::read_to_string(bench.outside().join(name)).unwrap()
}

#[test]
fn junit_has_a_case_for_each_stage_and_passes_only_with_a_receipt() {
    let bench = run(PIPELINE, 1);
    let xml = report(&bench, "r.xml");
    assert!(xml.contains(r#"<testsuites name="glovebox" tests="4" skipped="1" failures="2" errors="0""#), "{xml}");
    let case = |name: &str| {
        let (_, rest) = xml.split_once(&format!("<testcase name=\"{name}\"")).unwrap();
        rest.split("<testcase").next().unwrap().to_owned()
    };
    assert!(case("build").contains("<skipped message=\"passed on its own word: no command verified it\"/>"), "{xml}");
    let passed = case("test");
    assert!(!passed.contains("<failure") && !passed.contains("<skipped"), "{passed}");
    assert!(passed.contains("verified: sh -c &apos;echo fine&apos; exit 0"), "{passed}");
    assert!(passed.contains("<property name=\"line\" value=\"4\"/>"), "{passed}");
    let failed = case("judge");
    assert!(failed.contains("<failure message=\"deterministic (tool/exit-code): tool_exit_code_3\""), "{failed}");
    assert!(failed.contains("not verified: sh -c"), "{failed}");
    assert!(case("the run").contains("exit 1 (run-failed)"), "{xml}");
    assert!(!xml.contains('\u{1b}') && !xml.contains("<script>") && xml.matches("</failure>").count() <= 2, "{xml}");
}

#[test]
fn sarif_places_each_result_at_its_node() {
    let bench = run(PIPELINE, 1);
    let log: Value = serde_json::from_str(&report(&bench, "r.sarif")).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let told: Vec<_> = results
        .iter()
        .map(|result| {
            let place = &result["locations"][0]["physicalLocation"];
            assert_eq!(place["artifactLocation"]["uri"], "pipeline.dot", "{result}");
            assert_eq!(rules[result["ruleIndex"].as_u64().unwrap() as usize]["id"], result["ruleId"]);
            (result["ruleId"].as_str().unwrap(), result["level"].as_str().unwrap(), &place["region"]["startLine"])
        })
        .collect();
    assert_eq!(told, [("stage_failed", "error", &json!(5)), ("unverified", "note", &json!(3))]);
}

#[test]
fn a_page_of_a_job_is_appended_to_and_has_no_markup_of_a_stage() {
    let bench = run(PIPELINE, 1);
    let page = report(&bench, "page.md");
    assert!(page.starts_with("### ❌ Glovebox: ship, exit 1 (run-failed) in "), "{page}");
    assert!(page.contains("| build | success | ") && page.contains(" | its own word |"), "{page}");
    assert!(page.contains("| test | success | ") && page.contains("verified, 1 command |"), "{page}");
    let row = page.lines().find(|line| line.starts_with("| judge")).unwrap();
    assert_eq!(row.matches('|').count(), 5, "{row}");
    assert!(!page.contains("<script>") && !page.contains("**b**") && !page.contains('\u{1b}'), "{page}");
    bench.glovebox(&["show", "r", "--job-summary", "../page.md"]).ends(0);
    assert_eq!(report(&bench, "page.md").matches("### ").count(), 2);
}

/// A verdict that builders' code could have forged is always shown with its reservation.
#[test]
fn a_verdict_with_a_reservation_keeps_it() {
    let bench = Workbench::with_pipeline(
        "digraph g { graph [scenarios=\"scenarios/\"]; start [shape=Mdiamond]; done [shape=Msquare]\n\
         judge [shape=parallelogram, tool_command=\"cat scenarios/one kept\", holdouts=\"scenarios/\", allowed_write_paths=\"\"]\n\
         start -> judge -> done }",
    );
    bench.write("scenarios/one", "one scenario for no builder\n");
    bench.write("kept", "kept\n");
    let words = ["run", "pipeline.dot", "--run-id", "r", "--junit", "../r.xml", "--job-summary", "../page.md"];
    bench.glovebox(&words).ends(0).says("verified (subject not isolated)");
    assert!(report(&bench, "r.xml").contains("verified (subject not isolated): sh -c"));
    assert!(report(&bench, "page.md").contains("verified &#40;subject not isolated&#41;, 1 command"));
    let told = bench.glovebox(&["evidence", "r"]);
    told.ends(0).says("verified (subject not isolated) sh -c").says("1 receipt, 0 verified, 1 with a reservation");
}

#[test]
fn show_gives_the_same_reports_later() {
    let bench = run(PIPELINE, 1);
    let (xml, sarif) = (report(&bench, "r.xml"), report(&bench, "r.sarif"));
    bench.glovebox(&["show", "r", "--junit", "../again.xml", "--sarif", "../again.sarif"]).ends(0);
    assert_eq!((report(&bench, "again.xml"), report(&bench, "again.sarif")), (xml, sarif));
}

/// A stage that failed first and passed in a later visit, in a loop or after a resume, has passed.
#[test]
fn the_last_visit_of_a_stage_stands_for_it() {
    let bench = run(
        r#"digraph ship {
  start [shape=Mdiamond]; done [shape=Msquare]
  build [prompt="build", allowed_write_paths="src/"]
  test [shape=parallelogram, tool_command="test -e out/once || { mkdir -p out; touch out/once; exit 1; }", allowed_write_paths="out/"]
  mend [shape=parallelogram, tool_command="mkdir -p out; touch out/once", allowed_write_paths="out/"]
  start -> build -> test
  test -> done [condition="outcome=success"]
  test -> mend [condition="outcome=fail"]
  mend -> test
}
"#,
        0,
    );
    let xml = report(&bench, "r.xml");
    assert!(xml.contains("tests=\"4\" skipped=\"1\" failures=\"0\""), "{xml}");
    assert!(xml.contains("<property name=\"visit\" value=\"2\"/>"), "{xml}");
    let page = report(&bench, "page.md");
    assert!(
        page.starts_with("### ✅ Glovebox: ship, exit 0 (ok)") && page.contains("| test (visit 2) | success"),
        "{page}"
    );
}

#[test]
fn what_ended_the_run_is_told_even_if_no_stage_failed() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
         a [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]\n start -> a -> a [condition=\"outcome=success\"]\n a -> done }",
    );
    let words = ["run", "pipeline.dot", "--max-steps", "3", "--junit", "../r.xml", "--sarif", "../r.sarif"];
    bench.glovebox(&words).ends(5);
    let xml = report(&bench, "r.xml");
    assert!(xml.contains("exit 5 (budget)"), "{xml}");
    assert!(report(&bench, "r.sarif").contains("\"run_failed\""));
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_the_run() {
    let bench = Workbench::with_pipeline(PIPELINE);
    let refused = bench.glovebox(&["run", "pipeline.dot", "--simulate", "--junit", "no/such/r.xml"]);
    refused.ends(2).says("the report `no/such/r.xml` cannot be written: there is no such folder");
    bench.glovebox(&["run", "pipeline.dot", "--simulate", "--sarif", ".."]).ends(2).says("it is a folder");
    assert!(!bench.has(".glovebox"));
}

/// If a command of the verify contract could not run in this project, no report shows the stage as passed.
#[test]
fn a_stage_that_passed_in_part_is_not_passed() {
    if !is_on_this_machine("make") {
        return not_run("a_stage_that_passed_in_part_is_not_passed", "make");
    }
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
         check [type=verification, \"verification.allowed_commands\"=\"\", allowed_write_paths=\"\"]\n\
         start -> check -> done }",
    );
    bench.write("glovebox.toml", "[verify]\n");
    bench.write("Makefile", "all:\n\ttrue\n");
    bench.write(".opentiger/verify.contract.json", r#"{"commands": ["make all", "make lint"]}"#);
    let reports = ["--junit", "../r.xml", "--sarif", "../r.sarif", "--job-summary", "../page.md"];
    bench.glovebox(&[&["run", "pipeline.dot"][..], &reports].concat()).ends(4);
    let xml = report(&bench, "r.xml");
    assert!(xml.contains("<skipped message=\"passed in part: commands were skipped: make lint\"/>"), "{xml}");
    assert!(xml.contains("tests=\"2\" skipped=\"1\""), "{xml}");
    assert!(report(&bench, "r.sarif").contains("`check` passed in part: commands were skipped: make lint"));
    let page = report(&bench, "page.md");
    assert!(page.contains("not verified, skipped: make lint |"), "{page}");
}

/// The receipts of a branch belong to its stages, even after the fan-in has ended.
#[test]
fn a_stage_of_a_branch_passes_only_with_a_receipt_that_counts() {
    let bench = Workbench::with_pipeline(
        r#"digraph g {
  start [shape=Mdiamond]; done [shape=Msquare]
  f [shape=component]; j [shape=tripleoctagon]
  a [shape=parallelogram, tool_command="echo a > a", allowed_write_paths="a"]
  b [shape=parallelogram, tool_command="echo b > b", allowed_write_paths="b"]
  start -> f; f -> a -> j; f -> b -> j; j -> done
}
"#,
    );
    bench.glovebox(&["run", "pipeline.dot", "--junit", "../r.xml", "--job-summary", "../page.md"]).ends(0);
    let xml = report(&bench, "r.xml");
    let case = |name: &str| {
        let (_, rest) = xml.split_once(&format!("<testcase name=\"{name}\"")).unwrap();
        rest.split("</testcase>").next().unwrap().to_owned()
    };
    let (taken, left) = (case("a in branch f-a"), case("b in branch f-b"));
    assert!(taken.contains("verified: sh -c &apos;echo a") && !taken.contains("<skipped"), "{taken}");
    assert!(left.contains("<skipped message=\"not taken: it judged files of a branch"), "{left}");
    let page = report(&bench, "page.md");
    assert!(page.contains("verified, 1 command |") && page.contains("| not taken |"), "{page}");
    assert!(!page.contains("its own word"), "{page}");
}

/// A stage of the run, or the project, could have made the link.
#[test]
fn a_report_follows_no_link() {
    let bench = run(PIPELINE, 1);
    let victim = bench.outside().join("victim");
    for (flag, name) in [("--junit", "l.xml"), ("--sarif", "l.sarif"), ("--job-summary", "l.md")] {
        std::fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(&victim, bench.project().join(name)).unwrap();
        bench.glovebox(&["show", "r", flag, name]).ends(2).says("is a link: nothing was written");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine", "{flag}");
    }
}
