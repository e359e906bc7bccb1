//! If the order of a list of commands was wrong, the list is executed again in another order, and begins with the files as
//! they were before the first execution.
//!
//! The witness is a file that the first execution leaves in the workspace or outside of it. The second execution must not see
//! this file.

use crate::workbench::Workbench;
use serde_json::{Value, json};

const PLACES: [&str; 3] = ["seen", "$HOME/seen", "${TMPDIR:-/tmp}/seen"];
const IN_EVERY_SANDBOX: [&[&str]; 2] = [&[], &["--dangerously-no-sandbox"]];
const LIST: [&str; 3] = ["sh build.sh", "rm -rf dist", "test -f dist/app"];

/// Creates a project whose verify contract has these commands.
fn bench(commands: &[&str], build: &str) -> Workbench {
    let bench = Workbench::with_pipeline(
        "digraph g {
  start [shape=Mdiamond]; exit [shape=Msquare]
  check [type=verification, allowed_write_paths=\"seen,count,dist/\", \"verification.allowed_commands\"=\"\"]
  start -> check -> exit
}
",
    );
    bench.write(".opentiger/verify.contract.json", &json!({ "commands": commands }).to_string());
    bench.write("glovebox.toml", "[verify]\n");
    bench.write("build.sh", build);
    bench
}

fn results(bench: &Workbench) -> Value {
    bench.run_json("r", "check/verification.results.json")
}

fn ran(bench: &Workbench) -> Vec<String> {
    let results = results(bench);
    let commands = results["commands"].as_array().unwrap();
    commands.iter().map(|command| command["command"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_the_first_order_left_makes_no_second_order_fail() {
    for flags in IN_EVERY_SANDBOX {
        for place in PLACES {
            let build =
                format!("test ! -e {place} || exit 3\ntouch {place}\nmkdir dist\ntouch dist/app\necho x >> count\n");
            let bench = bench(&LIST, &build);
            bench.glovebox(&[&["run", "pipeline.dot", "--run-id", "r"], flags].concat()).ends(0);
            let [build, clean, test] = LIST;
            assert_eq!(ran(&bench), [build, clean, test, build, test, clean], "{place}");
            assert_eq!(results(&bench)["adjustments"][0]["recoveryRule"], "reorder_clean_and_artifact_check");
            assert_eq!(bench.run_json("r", "check/status.json")["notes"], "verification passed: 3 of 3 commands");
            // The files of the second execution are committed.
            bench.glovebox(&["apply", "r"]).ends(0);
            assert_eq!((bench.read("count").as_str(), bench.has("dist/app")), ("x\n", false), "{place}");
        }
    }
}

#[test]
fn what_the_first_order_left_makes_no_second_order_pass() {
    for flags in IN_EVERY_SANDBOX {
        for place in PLACES {
            let build = format!("if test -e {place}; then mkdir dist && touch dist/app; fi\ntouch {place}\n");
            let bench = bench(&LIST, &build);
            let answer = bench.glovebox(&[&["run", "pipeline.dot", "--run-id", "r"], flags].concat());
            answer.ends(1).says("verification command failed: test -f dist/app (exit=1)");
            let [build, clean, test] = LIST;
            assert_eq!(ran(&bench), [build, clean, test, build, test], "{place}");
        }
    }
}

/// In the second execution, the check runs before the cleanup. It finds the file of the project that the cleanup removed in the
/// first execution.
#[test]
fn what_the_first_order_removed_is_there_again() {
    for flags in IN_EVERY_SANDBOX {
        let bench = bench(&LIST[1..], "");
        bench.write("dist/app", "from the project\n");
        bench.glovebox(&[&["run", "pipeline.dot", "--run-id", "r"], flags].concat()).ends(0);
        let [_, clean, test] = LIST;
        assert_eq!(ran(&bench), [clean, test, test, clean]);
    }
}

/// Each execution in a new order begins with the original files, however often the order changes. Skipping a command does not
/// change the order, and the results of the commands before it are kept.
#[test]
fn every_order_begins_anew() {
    let commands = ["sh build.sh", "rm -rf dist", "test -f dist/app", "test -s dist/app"];
    let bench = bench(&commands, "mkdir dist; echo x >> count; cp count dist/app\n");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    let [build, clean, is_there, is_full] = commands;
    let orders: [&[&str]; 3] =
        [&[build, clean, is_there], &[build, is_there, clean, is_full], &[build, is_there, is_full, clean]];
    assert_eq!(ran(&bench), orders.concat());
    bench.glovebox(&["apply", "r"]).ends(0);
    assert_eq!(bench.read("count"), "x\n");
}
