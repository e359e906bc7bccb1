//! Faults of the machine below a run: a full disk, folders that cannot be read or written, a damaged database and files
//! that were written in part. Each is an error with its place, and no fault loses what the journal has.

use crate::workbench::{Answer, Workbench, not_run};
use serde_json::Value;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

/// Creates a pipeline of one tool stage.
fn bench(command: &str) -> Workbench {
    Workbench::with_pipeline(&format!(
        "digraph g {{ start; done
         work [shape=parallelogram, tool_command={}, allowed_write_paths=\"made\"]
         start -> work -> done }}",
        Value::from(command)
    ))
}

/// Runs a script in a mount namespace of its own, with the binary as `"$@"`. `None` if this machine has none.
fn in_namespace(bench: &Workbench, script: &str) -> Option<Answer> {
    let own = bench.bare(&[]);
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, "sh"]).arg(own.get_program()).current_dir(bench.project());
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let answer = Answer::of(&mut command);
    if answer.stdout.contains("mounted") {
        return Some(answer);
    }
    not_run("a file system in a namespace", "unshare -rm mount");
    None
}

fn line<'a>(answer: &'a Answer, start: &str) -> &'a str {
    let mut lines = answer.stdout.lines().filter_map(|line| line.strip_prefix(start));
    lines.next().unwrap_or_else(|| panic!("no line {start:?} in {}\n{}", answer.stdout, answer.stderr))
}

/// The command sees only that a write failed. The stage has not failed: it is executed again once there is space.
#[test]
fn a_command_that_fails_because_the_disk_is_full_is_no_failure_of_its_stage() {
    let bench = bench("head -c 60000000 /dev/zero > made");
    bench.write("runs/.keep", "");
    let script = "mount -t tmpfs -o size=48m,mode=0700 tmpfs runs || exit 1; echo mounted
                  \"$@\" run pipeline.dot --run-id r --runs-dir runs; echo \"first $?\"
                  echo \"final $(tr -d '\\n' < runs/r/final.json)\"; grep -c stage.finished runs/r/progress.ndjson
                  mount -o remount,size=400m runs || exit 1
                  \"$@\" resume r --runs-dir runs; echo \"second $?\"
                  echo \"made $(wc -c < runs/r/workspace/made)\"";
    let Some(answer) = in_namespace(&bench, script) else { return };
    answer.says("first 9").says("no space is left").says("second 0").says("made 60000000");
    let ended: Value = serde_json::from_str(line(&answer, "final ")).unwrap();
    assert_eq!((&ended["status"], &ended["failure_code"]), (&"fail".into(), &"host/disk_full".into()), "{ended}");
    assert_eq!(answer.stdout.lines().find(|line| *line == "0" || *line == "1"), Some("0"), "the stage has no outcome");
}

/// A write that fails in the middle leaves no part of a line.
#[test]
fn the_lines_of_a_run_are_whole_after_a_full_disk() {
    let bench = bench("seq 1 2000; sleep 3; seq 1 2000; exit 3");
    bench.write("runs/.keep", "");
    let script = "mount -t tmpfs -o size=48m,mode=0700 tmpfs runs || exit 1; echo mounted
                  \"$@\" run pipeline.dot --run-id r --runs-dir runs & run=$!
                  until grep -q stage.started runs/r/progress.ndjson 2>/dev/null; do sleep 0.1; done
                  sleep 1; cat /dev/zero > runs/r/fill 2>/dev/null
                  wait $run; echo \"first $?\"; cp runs/r/progress.ndjson told.ndjson";
    let Some(answer) = in_namespace(&bench, script) else { return };
    answer.says("first 9");
    let told = bench.read("told.ndjson");
    let seqs: Vec<u64> = told
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .map(|record| record["seq"].as_u64().unwrap())
        .collect();
    assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "each record once: {seqs:?}");
}

/// The space is given back on every path on which a process stops driving the run.
#[test]
fn a_resume_that_fails_gives_its_reserve_back() {
    let bench = bench("exit 4");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1);
    let reserve = bench.run_folder("r").join("disk.reserve");
    bench.glovebox(&["fork", "r", "work", "--run-id", "f"]).ends(1);
    assert!(!bench.run_folder("f").join("disk.reserve").exists());
    std::fs::rename(bench.run_folder("r").join("workspace"), bench.outside().join("away")).unwrap();
    bench.glovebox(&["resume", "r"]).ends(11).says("workspace");
    assert!(!reserve.exists());
}

#[test]
fn a_run_folder_that_cannot_be_written_is_named_and_loses_nothing() {
    let bench = bench("exit 4");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1);
    let script = "runs=.glovebox/runs/r; mount --bind $runs $runs && mount -o remount,ro,bind $runs || exit 1
                  echo mounted; \"$@\" show r; echo \"show $?\"; \"$@\" resume r; echo \"resume $?\"";
    let before = bench.run_text("r", "progress.ndjson");
    let Some(answer) = in_namespace(&bench, script) else { return };
    answer.says("show 2").says("resume 2").says("cannot be written: Read-only file system").says("help: ");
    assert_eq!(bench.run_text("r", "progress.ndjson"), before);
    bench.glovebox(&["resume", "r"]).ends(1);
}

/// Runs a command without the right of root to open every file.
fn as_ordinary_user(bench: &Workbench, words: &[&str]) -> Answer {
    let own = bench.command(words);
    if !rustix::process::geteuid().is_root() {
        return bench.glovebox(words);
    }
    let mut command = Command::new("setpriv");
    let rights = "-dac_override,-dac_read_search";
    command.args(["--bounding-set", rights, "--inh-caps", rights]).arg(own.get_program()).args(own.get_args());
    command.env_clear().current_dir(bench.project());
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Answer::of(&mut command)
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_folder_of_the_project_that_cannot_be_read_is_named() {
    let bench = bench("true");
    bench.write("secret/data.txt", "x");
    let folder = bench.project().join("secret");
    set_mode(&folder, 0o000);
    let answer = as_ordinary_user(&bench, &["run", "pipeline.dot", "--run-id", "r"]);
    set_mode(&folder, 0o755);
    answer.ends(2).says("project/secret").says("Permission denied").says("chmod u+rX");
    assert!(!bench.run_folder("r").exists(), "the id is free");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
}

/// Damage in the middle of the database is found by every command that reads it, and none of them changes a byte.
#[test]
fn a_journal_with_a_damaged_page_is_refused_and_kept() {
    let bench = bench("exit 4");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1);
    let path = bench.run_folder("r").join("journal.sqlite");
    let whole = std::fs::read(&path).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    for page in 1..whole.len() / 4096 {
        file.write_all_at(&[0xa5; 512], page as u64 * 4096).unwrap();
    }
    let damaged = std::fs::read(&path).unwrap();
    for words in [&["resume", "r"][..], &["show", "r"], &["verify", "r"]] {
        bench.glovebox(words).ends(11).says("the journal's database is corrupt").says("help: ");
    }
    assert!(std::fs::read(&path).unwrap() == damaged, "nothing is repaired");
    std::fs::write(&path, whole).unwrap();
    bench.glovebox(&["resume", "r"]).ends(1);
}

/// The files beside the journal are made again from it, whatever a fault has left of them.
#[test]
fn files_that_were_written_in_part_are_made_again() {
    let bench = bench("echo 1 > made");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    let names = ["progress.ndjson", "checkpoint.json", "final.json", "manifest.json", "trace.jsonl", "live.json"];
    let before = names.map(|name| bench.run_text("r", name));
    for (name, text) in names.iter().zip(&before) {
        std::fs::write(bench.run_folder("r").join(name), &text.as_bytes()[..text.len() / 2]).unwrap();
        std::fs::write(bench.run_folder("r").join(format!(".{name}.new")), "{\"half").unwrap();
    }
    bench.glovebox(&["show", "r"]).ends(0).says("success");
    bench.glovebox(&["ls"]).ends(0).says("success");
    bench.glovebox(&["resume", "r"]).ends(0);
    for (name, text) in names.iter().zip(&before) {
        assert_eq!(&bench.run_text("r", name), text, "{name}");
    }
}
