//! Where the stages of a branch are made: on the machine that has its files at ignored paths, while that machine is there.

use crate::fleet_runs::{Fleet, of_kind};
use serde_json::Value;

/// Three stages that need what the first one wrote to an ignored path, with a gate before each further one. While a gate waits,
/// no machine keeps a seat for the run.
const STAYS: &str = "digraph stays { start [shape=Mdiamond]; exit [shape=Msquare]
  a [type=tool, tool_command=\"mkdir -p target && echo built > target/x\", allowed_write_paths=\"src/\"]
  b [type=tool, tool_command=\"cat target/x >> target/y\", allowed_write_paths=\"src/\"]
  c [type=tool, tool_command=\"cat target/y\", allowed_write_paths=\"\"]
  one [shape=hexagon, label=\"One?\"]
  two [shape=hexagon, label=\"Two?\"]
  start -> a -> one; one -> b [label=\"yes\"]; b -> two; two -> c [label=\"yes\"]; c -> exit }
";

fn start() -> Option<Fleet> {
    let fleet = Fleet::start(STAYS)?;
    fleet.bench.write(".gitignore", "target/\n");
    Some(fleet)
}

fn waits_at(fleet: &Fleet, gate: &str) {
    fleet.wait_until(gate, || {
        let shown = fleet.with(&["show", "r"]).stdout;
        shown.contains("paused") && shown.contains(&format!("{gate}#1"))
    });
}

fn machines(records: &[Value]) -> Vec<&str> {
    of_kind(records, "stage.started").iter().map(|started| started["machine"].as_str().unwrap()).collect()
}

#[test]
fn a_branch_goes_on_where_its_files_at_ignored_paths_are() {
    let Some(mut fleet) = start() else { return };
    fleet.work("driver", &["--no-execute"]);
    fleet.work("first", &["--seats", "2", "--no-drive"]);
    fleet.with(&["run", "pipeline.dot", "--run-id", "r", "--detach"]).ends(0);
    waits_at(&fleet, "one");
    fleet.work("second", &["--seats", "4", "--no-drive"]);
    fleet.work("third", &["--seats", "4", "--no-drive"]);
    fleet.wait_until("all work", || fleet.with(&["fleet", "ls"]).stdout.matches("works: ").count() == 4);
    fleet.with(&["answer", "r", "one", "yes"]).ends(0);
    waits_at(&fleet, "two");
    fleet.with(&["answer", "r", "two", "yes"]).ends(0);
    fleet.pulled("r");
    let records = fleet.records("r");
    assert_eq!(machines(&records), ["first"; 3], "{records:?}");
    assert!(of_kind(&records, "stage.started").iter().all(|started| started["moved"].is_null()), "{records:?}");
    fleet.here(&["show", "r"]).ends(0).says("success");
}

#[test]
fn a_move_is_recorded_with_what_was_left_behind() {
    let Some(mut fleet) = start() else { return };
    fleet.work("driver", &["--no-execute"]);
    fleet.work("first", &["--seats", "1", "--no-drive"]);
    fleet.with(&["run", "pipeline.dot", "--run-id", "r", "--detach"]).ends(0);
    waits_at(&fleet, "one");
    // The branch would wait ten minutes for it if it were there.
    fleet.kill("first");
    fleet.work("second", &["--seats", "1", "--no-drive"]);
    fleet.with(&["fleet", "ls"]).ends(0).says("does not work");
    fleet.with(&["answer", "r", "one", "yes"]).ends(0);
    // The second stage fails without the files of the first.
    fleet.pulled("r");
    let records = fleet.records("r");
    assert_eq!(machines(&records), ["first", "second"], "{records:?}");
    let moved = &of_kind(&records, "stage.started")[1]["moved"];
    assert_eq!((&moved["from"], &moved["left"]["files"]), (&"first".into(), &1.into()), "{moved}");
    assert_eq!(moved["left"]["names"], serde_json::json!(["target/"]));
    fleet.here(&["attach", "r", "--all"]).says("moved from first: 1 file at ignored paths (target/) stayed there");
}

#[test]
fn a_branch_waits_for_a_busy_machine_as_long_as_the_project_says() {
    let Some(mut fleet) = start() else { return };
    fleet.bench.write("glovebox.toml", "[fleet]\nwait_warm = \"2h\"\n");
    fleet.with(&["run", "pipeline.dot", "--run-id", "r"]).ends(3).says("wait_warm").says("at most an hour");
    fleet.bench.write("glovebox.toml", "[fleet]\nwait_warm = \"2s\"\n");
    let busy = "digraph busy { start [shape=Mdiamond]; exit [shape=Msquare]
      long [type=tool, tool_command=\"sleep 60\", allowed_write_paths=\"\"]
      start -> long -> exit }
    ";
    fleet.bench.write("busy.dot", busy);
    fleet.work("driver", &["--no-execute"]);
    fleet.work("first", &["--seats", "1", "--no-drive"]);
    fleet.with(&["run", "pipeline.dot", "--run-id", "r", "--detach"]).ends(0);
    waits_at(&fleet, "one");
    fleet.with(&["run", "busy.dot", "--run-id", "busy", "--detach"]).ends(0);
    fleet.wait_until("the machine is busy", || fleet.has_sleep());
    fleet.work("second", &["--seats", "1", "--no-drive"]);
    fleet.with(&["answer", "r", "one", "yes"]).ends(0);
    fleet.pulled("r");
    assert_eq!(machines(&fleet.records("r")), ["first", "second"]);
    assert!(fleet.has_sleep(), "the branch went on while its machine was busy");
}
