//! Where the stages of a branch are made: on the machine that has its files at ignored paths, while that machine is there.

use crate::fleet_runs::{Fleet, TWO, of_kind};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

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

#[test]
fn a_stage_is_made_where_commands_find_its_program() {
    let picky = TWO.replace("b [type=tool", "b [runs_on=\"program=only-later, program=sh\", type=tool");
    let picky = picky.replace("echo by-b", "only-later");
    let Some(mut fleet) = Fleet::start(&picky) else { return };
    let tools = fleet.bench.outside().join("tools");
    std::fs::create_dir(&tools).unwrap();
    fleet.bench.write("glovebox.toml", &format!("[exec]\npath = [{tools:?}]\n"));
    let allowed = format!("folder {} to fleet", tools.display());
    fleet.work("one", &["--seats", "1", "--allow", &allowed]);
    fleet.with(&["run", "pipeline.dot", "--run-id", "r", "--detach"]).ends(0);
    fleet.wait_until("the machine lacks the program", || fleet.said().contains("`b` needs program `only-later`"));
    assert!(!fleet.said().contains("program `sh`"), "{}", fleet.said());
    let program = tools.join("only-later");
    std::fs::write(&program, "#!/bin/sh\necho by-the-program\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    fleet.pulled("r");
    fleet.here(&["diff", "r"]).ends(0).says("by-the-program");
}

/// Returns a program that is as another version of Glovebox: its component for commands has another byte, and so another digest.
fn other_version(fleet: &Fleet) -> PathBuf {
    let find = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).position(|window| window == part);
    let component =
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/components/tool.wasm")).unwrap();
    let mut changed = component.clone();
    // The end of the version of a tool that made the component, which is only information.
    let at = find(&component, b"processed-by").unwrap();
    let at = at + changed[at..].iter().position(u8::is_ascii_digit).unwrap();
    changed[at] = if changed[at] == b'9' { b'8' } else { changed[at] + 1 };
    let mut program = std::fs::read(env!("CARGO_BIN_EXE_glovebox")).unwrap();
    for (old, new) in
        [(&component[..], &changed[..]), (blake3::hash(&component).as_bytes(), blake3::hash(&changed).as_bytes())]
    {
        let at = find(&program, old).unwrap();
        program[at..at + old.len()].copy_from_slice(new);
    }
    let path = fleet.bench.outside().join("glovebox-of-another-version");
    std::fs::write(&path, program).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_machine_of_another_version_leaves_stages_to_others_and_says_what_differs() {
    let Some(mut fleet) = Fleet::start(TWO) else { return };
    let other = other_version(&fleet);
    fleet.work("driver", &["--no-execute"]);
    fleet.work_with(&other, "other", "build,verify", &["--seats", "1"]);
    fleet.with(&["run", "pipeline.dot", "--run-id", "r", "--detach"]).ends(0);
    fleet
        .wait_until("the machine gives the attempt back", || fleet.said().contains("the components for `tool` differ"));
    fleet.work("same", &["--seats", "1", "--no-drive"]);
    fleet.pulled("r");
    let records = fleet.records("r");
    assert_eq!(*machines(&records).last().unwrap(), "same", "{records:?}");
    fleet.here(&["show", "r"]).ends(0).says("success");
    assert_eq!(fleet.drained("other"), Some(11), "{}", fleet.said());
}

#[test]
fn runs_on_a_machine_share_a_folder_of_contents_that_goes_with_the_machine() {
    let Some(mut fleet) = Fleet::start(TWO) else { return };
    fleet.work("one", &["--seats", "1"]);
    for run in ["r", "again"] {
        fleet.with(&["run", "pipeline.dot", "--run-id", run]).ends(0);
    }
    let folder = fleet.bench.outside().join("machines/one");
    let names = |folder: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let shared: Vec<String> = names(&folder).into_iter().filter(|name| name.starts_with("contents")).collect();
    assert_eq!(shared, ["contents-1"]);
    let source = blake3::hash(b"from the project\n").to_hex().to_string();
    assert!(names(&folder.join("contents-1")).contains(&source));
    assert_eq!(fleet.drained("one"), Some(0), "{}", fleet.said());
    assert!(names(&folder).iter().all(|name| name == "lock"), "{:?}", names(&folder));
}
