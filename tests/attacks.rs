//! `glovebox doctor`: what this machine can enforce, and every attack of the battery with the real binary, as the user
//! who runs the tests.

use crate::workbench::{self, Workbench};
use serde_json::Value;

/// Returns the id and result of each row of a report.
fn rows(report: &Value) -> Vec<(String, String)> {
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    report["rows"].as_array().unwrap().iter().map(|row| (text(row, "id"), text(row, "result"))).collect()
}

fn count(report: &Value, name: &str) -> u64 {
    report["totals"][name].as_u64().unwrap()
}

#[test]
fn nothing_gets_through_the_best_tier() {
    let bench = Workbench::new();
    let known = bench.glovebox(&["doctor", "--json"]);
    let best = known.json()["tier"].as_str().map(str::to_owned);
    let before = bench.snapshot();
    let answer = bench.glovebox(&["doctor", "--attack", "--json"]);
    let Some(best) = best else {
        answer.ends(6).says("can confine no command");
        return;
    };
    let report = answer.ends(0).json();
    assert_eq!((report["version"].as_u64(), report["tier"].as_str()), (Some(1), Some(best.as_str())));
    assert_eq!((count(&report, "through"), count(&report, "broken")), (0, 0));
    assert!(count(&report, "blocked") >= 100, "{}", report["totals"]);
    for (id, result) in rows(&report) {
        let is_admitted = result == "known-gap" && (best != "full" || id == "flock-shared");
        assert!(is_admitted || result == "blocked" || result == "works", "{id}: {result}");
    }
    assert_eq!(bench.snapshot(), before, "nothing of the battery is left in the project");
}

#[test]
fn a_lower_tier_lists_what_it_does_not_stop() {
    let bench = Workbench::new();
    let answer = bench.glovebox(&["doctor", "--attack", "--tier", "landlock", "--json"]);
    if answer.code == 6 && answer.stdout.is_empty() {
        answer.says("this machine");
        return;
    }
    let report = answer.ends(0).json();
    assert_eq!(report["tier"], "landlock");
    assert!(count(&report, "blocked") >= 100 && count(&report, "known_gaps") > 1, "{}", report["totals"]);
    let gap = report["rows"].as_array().unwrap().iter().find(|row| row["id"] == "chmod-outside").unwrap();
    assert_eq!(gap["result"], "known-gap");
    assert!(gap["gap"].as_str().unwrap().contains("Landlock"), "{gap}");
}

#[test]
fn the_requirement_of_the_project_decides_the_exit_code() {
    let bench = Workbench::new();
    let report = bench.glovebox(&["doctor", "--json"]).json();
    let (tier, required) = (report["tier"].as_str(), report["required"].as_str());
    assert_eq!(required, Some("full"), "what an absent file means");
    let is_met = tier == Some("full");
    assert_eq!(report["is_met"].as_bool(), Some(is_met));
    bench.glovebox(&["doctor"]).ends(if is_met { 0 } else { 6 }).says("required").says("kernel");
    bench.write("glovebox.toml", "[sandbox]\nrequire = \"landlock\"\n");
    let lower = bench.glovebox(&["doctor", "--json"]);
    assert_eq!(lower.json()["required"], "landlock");
    lower.ends(if tier.is_some() { 0 } else { 6 });
}

#[test]
fn a_tier_without_attacks_is_refused() {
    let bench = Workbench::new();
    bench.glovebox(&["doctor", "--attack", "--tier", "unconfined"]).ends(2);
    bench.glovebox(&["doctor", "--tier", "full"]).ends(2).says("--attack");
}

/// Text that only the battery contains: the id of a row.
const ROW_ID: &[u8] = b"chmod-outside";

#[test]
fn the_program_that_runs_pipelines_holds_no_attacks() {
    let holds = |program: &str| std::fs::read(program).unwrap().windows(ROW_ID.len()).any(|bytes| bytes == ROW_ID);
    assert!(holds(env!("CARGO_BIN_EXE_glovebox-attack")));
    assert!(!holds(env!("CARGO_BIN_EXE_glovebox")));
}

#[test]
fn without_the_program_that_attacks_doctor_says_how_to_get_it() {
    let bench = Workbench::new();
    let alone = bench.outside().join("glovebox");
    std::fs::copy(env!("CARGO_BIN_EXE_glovebox"), &alone).unwrap();
    let output = std::process::Command::new(&alone).args(["doctor", "--attack"]).output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    if printed.contains("can confine no command") {
        return;
    }
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(printed.contains("glovebox-attack") && printed.contains("cargo build --package glovebox"), "{printed}");
}

/// A cached tier is not used if namespaces can no longer be created.
#[test]
fn a_tier_that_was_found_does_not_outlive_what_it_is_made_of() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]
         t [shape=parallelogram, tool_command=true, allowed_write_paths=\"\"]; start -> t -> done }",
    );
    bench.write("glovebox.toml", "[sandbox]\nrequire = \"full\"\n");
    let own = bench.command(&[]);
    let look = "\"$1\" doctor --json > $OUT/before; echo 0 > /proc/sys/user/max_user_namespaces || exit 99; \"$1\" doctor --json > $OUT/after
                exec \"$1\" run pipeline.dot --run-id r";
    let mut command = std::process::Command::new("unshare");
    command.args(["-Ur", "sh", "-c", look, "sh"]).arg(own.get_program()).current_dir(bench.project());
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let caches = bench.outside().join("caches");
    std::fs::create_dir(&caches).unwrap();
    let answer = workbench::Answer::of(command.env("GLOVEBOX_CACHE_DIR", caches).env("OUT", bench.outside()));
    let tier = |name: &str| {
        let text = std::fs::read(bench.outside().join(name)).unwrap_or_default();
        let report: Value = serde_json::from_slice(&text).unwrap_or_default();
        report["tier"].as_str().map(str::to_owned)
    };
    if tier("before").as_deref() != Some("full") {
        return workbench::not_run("a cached tier", "no namespace can be made here");
    }
    assert_ne!(tier("after").as_deref(), Some("full"));
    answer.ends(6).never_says("run started");
}
