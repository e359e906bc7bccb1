//! A verifier that says `failure_class=infra`: the machine failed, so the verification is repeated and no builder is
//! asked to fix anything.

use crate::workbench::Workbench;
use serde_json::Value;

/// Creates a loop of a check and a fix. The check runs `check.sh`, which may read the flag file outside of the project.
fn bench(check: &str, script: &str) -> Workbench {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{ graph [max_steps=40]; start [shape=Mdiamond]; done [shape=Msquare]\n\
         check [{check}, allowed_write_paths=\"\"]\n fix [prompt=fix, allowed_write_paths=\"src/\"]\n\
         start -> check\n check -> done [condition=\"outcome=success\"]\n check -> fix [condition=\"outcome=fail\"]\n fix -> check\n}}\n"
    ));
    bench.write("check.sh", script);
    let flags = bench.outside().join("flags");
    std::fs::create_dir(&flags).unwrap();
    let flags = flags.to_str().unwrap();
    bench
        .write("glovebox.toml", &format!("[sandbox]\nread = [\"{flags}\"]\n[exec]\nenv = {{ FLAGS = \"{flags}\" }}\n"));
    bench
}

const VERIFY: &str = "shape=octagon, command=\"sh check.sh\"";
const RUN: [&str; 5] = ["run", "pipeline.dot", "--simulate", "--run-id", "r"];
const TAKEN: &str = "test -e $FLAGS/free && exit 0\necho address in use >&2\necho failure_class=infra\nexit 1\n";

fn attempts(bench: &Workbench) -> Vec<(String, u64)> {
    let shown = bench.glovebox(&["show", "r", "--json"]).json();
    let visit = |visit: &Value| (visit["node"].as_str().unwrap().to_owned(), visit["attempts"].as_u64().unwrap());
    let visits = shown["visited"].as_array().unwrap().iter().map(visit);
    visits.filter(|(node, _)| node == "check" || node == "fix").collect()
}

fn counted(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
    rows.iter().map(|(node, attempts)| ((*node).to_owned(), *attempts)).collect()
}

#[test]
fn a_verifier_that_says_infra_is_repeated_and_no_builder_is_asked() {
    let bench = bench(VERIFY, TAKEN);
    bench.glovebox(&RUN).ends(9).says("address in use");
    assert_eq!(attempts(&bench), counted(&[("check", 3)]));
    let last = bench.run_json("r", "final.json");
    let told = (&last["failure_class"], &last["failure_code"]);
    assert_eq!(told, (&"transient".into(), &"verify/infra".into()));
    // The machine is repaired, and a resume repeats the verification.
    std::fs::write(bench.outside().join("flags/free"), "").unwrap();
    bench.glovebox(&["resume", "r"]).ends(0);
    assert_eq!(attempts(&bench).iter().filter(|(node, _)| node == "fix").count(), 0);
}

#[test]
fn a_product_that_failed_goes_to_the_fix_stage() {
    for line in ["echo failure_class=product", "echo failure_class=infra; echo failure_class=product >&2", "true"] {
        let bench = bench(VERIFY, &format!("{line}\nexit 1\n"));
        bench.glovebox(&RUN).ends(1).says("loop_restart_signature_limit");
        let fixes = attempts(&bench).iter().filter(|(node, _)| node == "fix").count();
        assert_eq!(fixes, 2, "{line}: three checks and two fixes");
    }
}

#[test]
fn only_a_verifier_can_say_so() {
    let bench = bench("prompt=check, allowed_commands=\"*\"", TAKEN);
    bench.write(
        "script.toml",
        "[[node.check]]\ntool = [{ name = \"shell\", arguments = { command = \"sh check.sh\" } }]\n\
         [[node.check]]\ntext = \"no\"\noutcome = { status = \"fail\", failure_reason = \"it failed\" }\n\
         [[node.fix]]\ntext = \"done\"\n",
    );
    // The script ends with the second visit of the check.
    bench.glovebox(&["run", "pipeline.dot", "--script", "script.toml", "--run-id", "r"]).ends(8);
    assert_eq!(attempts(&bench)[..2], counted(&[("check", 1), ("fix", 1)]));
    let records = bench.run_text("r", "progress.ndjson");
    assert!(records.contains("\"printed_class\":\"infra\""), "the command of the agent printed the line");
    assert!(!records.contains("verify/infra"));
}
