//! A run with hold-outs on a fleet: everything that machines store or send is encrypted, and a machine that may only build gets
//! neither the key nor any text.

use crate::fleet_runs::{Fleet, drivers, of_kind};
use crate::workbench::Answer;
use crate::workbench::raw_nats::Overheard;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// A line that nobody can guess, in a hold-out and in what the stage that judges prints.
const SECRET: &str = "forty-two apples in a wicker basket";
const SCENARIO: &str = "scripts/scenarios/answer.sh";
/// A stage that builds, and one that judges with the hold-outs and prints them.
const JUDGED: &str = "digraph judged { start [shape=Mdiamond]; exit [shape=Msquare]
  a [type=tool, tool_command=\"cat src.txt > answer.txt\", allowed_write_paths=\"answer.txt\"]
  judge [type=tool, tool_command=\"sh scripts/scenarios/answer.sh && cat scripts/scenarios/answer.sh\"]
  start -> a -> judge -> exit }
";

/// Starts a fleet whose project has a hold-out. `None` if there is no server on this machine.
fn start() -> Option<Fleet> {
    let fleet = Fleet::start(JUDGED)?;
    fleet.bench.write(SCENARIO, &format!("# {SECRET}\ngrep -q 'from the project' answer.txt\n"));
    Some(fleet)
}

/// Returns the files below a folder that contain a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        // Machines remove files meanwhile.
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if std::fs::read(&path)
                .is_ok_and(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
            {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// Returns true if the memory of a process contains a text.
fn is_in_memory(pid: u32, text: &str) -> bool {
    let mut grep = Command::new("grep");
    grep.args(["-a", "-F", "-q", "-e", text]).env("LC_ALL", "C").stdin(Stdio::piped());
    let mut grep = grep.spawn().unwrap();
    let mut found = grep.stdin.take().unwrap();
    let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut bytes = vec![0; 1 << 20];
    'regions: for line in maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|mode| mode.starts_with('r'))) {
        let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let (mut at, to) = (u64::from_str_radix(from, 16).unwrap(), u64::from_str_radix(to, 16).unwrap());
        while at < to {
            let size = bytes.len().min(usize::try_from(to - at).unwrap());
            // Some pages of the kernel cannot be read, and grep ends when it has found the text.
            let Ok(read @ 1..) = memory.read_at(&mut bytes[..size], at) else { break };
            at += read as u64;
            if found.write_all(&bytes[..read]).is_err() {
                break 'regions;
            }
        }
    }
    drop(found);
    grep.wait().unwrap().success()
}

#[test]
fn a_run_with_hold_outs_is_encrypted_for_everybody_who_must_not_read_it() {
    let Some(mut fleet) = start() else { return };
    let heard = Overheard::begin(&fleet.servers.addresses()[0]);
    fleet.work_as("driver", "drive", &[]);
    fleet.work_as("builder", "build", &["--seats", "1"]);
    fleet.work_as("checker", "build,verify", &["--seats", "1"]);
    fleet.with(&["run", "pipeline.dot", "--run-id", "r"]).ends(0).says("run r began in the fleet");
    let records = fleet.records("r");
    let finished = of_kind(&records, "stage.finished");
    assert!(finished.len() == 2 && finished.iter().all(|record| record["machine"] == "checker"), "{finished:?}");
    // The directory is that of a run on one machine.
    fleet.here(&["holdout", "verify", "r"]).ends(0);
    fleet.here(&["holdout", "status", "r"]).ends(0).says("scripts/scenarios/");
    fleet.here(&["logs", "r", "judge"]).ends(0).says(SECRET);
    fleet.with(&["show", "r"]).ends(0).says("success");
    fleet.with(&["ls"]).ends(0).says("judged");

    let (store, machines) = (fleet.bench.outside().join("store"), fleet.bench.outside().join("machines"));
    for text in [SECRET, "answer.sh", "from the project", "answer.txt"] {
        assert_eq!(files_with(&store, text), [""; 0], "{text}");
        assert_eq!(heard.with(text), [""; 0], "{text}");
        assert_eq!(files_with(&machines.join("builder"), text), [""; 0], "{text}");
    }
    let builder = fleet.pid("builder");
    assert!(is_in_memory(builder, &fleet.operator()), "the search finds what the machine was started with");
    // Shorter texts are in the program too.
    for text in [SECRET, "grep -q 'from the project' answer.txt", "cat src.txt > answer.txt"] {
        assert!(!is_in_memory(builder, text), "{text}");
    }
    // The machine that judged has forgotten the run.
    fleet.wait_until("the files are removed", || files_with(&machines.join("checker"), SECRET).is_empty());

    // Nor is what people say to a stage, and to a gate, on its way.
    fleet.bench.write("pipeline.dot", &JUDGED.replace("cat src.txt", "sleep 5 && cat src.txt"));
    fleet.with(&["run", "pipeline.dot", "--run-id", "steered", "--detach"]).ends(0);
    fleet.wait_until("the stage runs", || fleet.has_sleep());
    fleet.with(&["steer", "steered", "a", "look into the wicker cellar"]).ends(0);
    fleet.pulled("steered");
    assert!(fleet.records("steered").iter().any(|event| event.to_string().contains("wicker cellar")));
    assert_eq!(heard.with("wicker cellar"), [""; 0]);

    // Nobody else has the key, whatever the servers let them read.
    fleet.admit("reader", "submit");
    let other = |words: &[&str]| {
        let mut command = fleet.command(&[words, &["--operator", &fleet.operator()]].concat());
        Answer::of(command.env("GLOVEBOX_STATE_DIR", fleet.state("reader")))
    };
    other(&["show", "r"]).ends(6).says("run `r` is encrypted, and this user does not have its key");
    other(&["pull", "r", "--runs-dir", "elsewhere"]).ends(6);
    other(&["cancel", "r"]).ends(6);
    other(&["ls"]).ends(0).says("is encrypted");

    // A run without hold-outs is found by the same search.
    std::fs::remove_dir_all(fleet.bench.project().join("scripts")).unwrap();
    fleet.bench.write("pipeline.dot", crate::fleet_runs::TWO);
    fleet.with(&["run", "pipeline.dot", "--run-id", "open"]).ends(0);
    assert_ne!(files_with(&store, "from the project"), [""; 0]);
    // Of a frame, and of a result in its envelope.
    assert_ne!(heard.with("echo by-a"), [""; 0]);
    assert!(heard.with("out/a.txt").iter().any(|message| message.contains("payloadType")));
    other(&["show", "open"]).ends(0).says("success");
}

#[test]
fn a_driver_that_takes_an_encrypted_run_over_can_read_it() {
    let Some(mut fleet) = start() else { return };
    let slow = JUDGED.replace("cat src.txt", "sleep 8 && cat src.txt");
    fleet.bench.write("pipeline.dot", &slow);
    fleet.work_as("driver", "drive", &[]);
    // The key is sealed for it when the run begins.
    fleet.admit("second", "drive");
    fleet.work_as("checker", "build,verify", &["--seats", "1"]);
    fleet.with(&["run", "pipeline.dot", "--run-id", "r", "--detach"]).ends(0);
    fleet.wait_until("the stage runs", || fleet.has_sleep());
    // A machine that is admitted now has no key to drive with, and leaves the run to others.
    fleet.work_as("late", "drive", &[]);
    fleet.kill("driver");
    fleet.work_as("second", "drive", &[]);
    fleet.pulled("r");
    let records = fleet.records("r");
    assert_eq!(of_kind(&records, "stage.started").len(), 2, "no stage was made again: {records:?}");
    assert_eq!(drivers(&records), ["driver", "second"]);
    fleet.here(&["holdout", "verify", "r"]).ends(0);
}

#[test]
fn a_run_with_hold_outs_waits_for_a_machine_that_may_have_them() {
    let Some(mut fleet) = start() else { return };
    fleet.with(&["run", "pipeline.dot", "--run-id", "r"]).ends(6).says("no machine is admitted to drive");
    fleet.with(&["pull", "r"]).ends(2).says("the fleet has no run `r`");
    fleet.work_as("driver", "drive", &[]);
    fleet.work_as("builder", "build", &["--seats", "1"]);
    fleet.work_as("weak", "build,verify", &["--seats", "1", "--tier", "landlock"]);
    let run = fleet.with(&["run", "pipeline.dot", "--run-id", "r", "--no-wait"]);
    run.ends(6).says("`a` waits for a machine").says("because the run has hold-outs");
    assert!(fleet.said().contains("`a` needs the tier `full`, because the run has hold-outs"), "{}", fleet.said());
}
