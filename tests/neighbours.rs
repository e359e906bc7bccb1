//! What a user does beside Glovebox: moves the project, removes parts of a run, fills the disk, suspends the machine, works in two
//! checkouts. The next command works, or says how to continue.

use crate::workbench::{Answer, Workbench, not_run};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Two stages, of which the second fails until the project has a file `ok`.
const TWO: &str = "digraph two { start; done
  first [shape=parallelogram, tool_command=\"echo 1 > made\", allowed_write_paths=\"made\"]
  second [shape=parallelogram, tool_command=\"git log -1 --format=%s && test -e ok\", allowed_write_paths=\"\"]
  start -> first -> second -> done }";

fn git(bench: &Workbench, words: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
    let ended = Command::new("git").args(identity).args(words).current_dir(bench.project()).status().unwrap();
    assert!(ended.success(), "git {words:?}");
}

/// Creates a repository with a run `r` that failed at its second stage.
fn failed() -> Workbench {
    let bench = Workbench::with_pipeline(TWO);
    bench.write("glovebox.toml", "[workspace]\ngit = \"commit\"\n");
    git(&bench, &["init", "-q"]);
    git(&bench, &["add", "-A"]);
    git(&bench, &["commit", "-q", "-m", "start"]);
    let ended = bare(&bench, &["run", "--run-id", "r"]);
    ended.ends(1).says("the last commit of the project");
    bench
}

fn bare(bench: &Workbench, words: &[&str]) -> Answer {
    Answer::of(&mut bench.bare(words))
}

#[test]
fn a_repository_of_a_run_that_was_removed_is_made_again() {
    let bench = failed();
    fs::remove_dir_all(bench.run_folder("r").join("repository")).unwrap();
    bare(&bench, &["resume", "r"]).ends(1).says("the last commit of the project").says("test -e ok");
}

#[test]
fn a_copy_of_the_project_that_was_removed_is_named_with_the_way_out() {
    let bench = failed();
    fs::remove_dir_all(bench.run_folder("r").join("workspace")).unwrap();
    let resumed = bare(&bench, &["resume", "r"]);
    resumed.ends(2).says("the run's copy of the project was removed").says("`glovebox fork r NODE`");
    bare(&bench, &["fork", "r", "second"]).ends(1).says("the last commit of the project");
    bare(&bench, &["diff", "r"]).ends(0).says("+1");
}

#[test]
fn a_project_that_was_moved_says_how_to_continue() {
    let bench = failed();
    let (before, after) = (bench.project(), bench.outside().join("moved"));
    fs::rename(&before, &after).unwrap();
    let there = |words: &[&str]| {
        let mut command = bench.bare(words);
        Answer::of(command.current_dir(&after))
    };
    there(&["ls"]).ends(0).says("two");
    there(&["diff", "r"]).ends(0).says("+1");
    let resumed = there(&["resume", "r"]);
    resumed.ends(2).says("which does not exist any more").says("make a link at the old place").says("--workdir .");
    there(&["run", "--run-id", "again"]).ends(1);
    std::os::unix::fs::symlink(&after, &before).unwrap();
    there(&["resume", "r"]).ends(1).says("the last commit of the project");
    fs::remove_file(&before).unwrap();
}

#[test]
fn two_checkouts_have_runs_of_their_own() {
    let bench = failed();
    git(&bench, &["worktree", "add", "-q", "../other"]);
    let other = bench.project().parent().unwrap().join("other");
    let there = |words: &[&str]| {
        let mut command = bench.bare(words);
        Answer::of(command.current_dir(&other))
    };
    there(&["ls"]).ends(0).says("no runs");
    fs::write(other.join("ok"), "").unwrap();
    there(&["run", "--run-id", "r"]).ends(0);
    bare(&bench, &["show", "r"]).ends(0).says("fail");
    let foreign = there(&["apply", "r", "--runs-dir", bench.run_folder("r").parent().unwrap().to_str().unwrap()]);
    foreign.ends(6);
    there(&["apply", "r"]).ends(0);
    assert!(!bench.has("made") && other.join("made").is_file());
}

#[test]
fn after_a_full_disk_the_next_run_works() {
    let bench = Workbench::with_pipeline(
        "digraph one { start; done; first [shape=parallelogram, tool_command=\"echo 1 > made\", allowed_write_paths=\"made\"]
         start -> first -> done }",
    );
    bench.write("runs/.keep", "");
    let full = "mount -t tmpfs -o size=200k,mode=0700 tmpfs runs && { \"$@\" run --runs-dir runs; echo \"first $?\"; \
                mount -o remount,size=64m runs && \"$@\" ls --runs-dir runs; echo \"ls $?\"; \
                \"$@\" gc --runs-dir runs; echo \"gc $?\"; \"$@\" run --runs-dir runs; echo \"second $?\"; }";
    let own = bench.bare(&[]);
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", full, "sh"]).arg(own.get_program()).current_dir(bench.project());
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let answer = Answer::of(&mut command);
    if !answer.stdout.contains("first") {
        return not_run("a file system in a namespace", "unshare -rm mount");
    }
    answer.says("first 9").says("ls 0").says("gc 0").says("second 0");
}

#[test]
fn a_run_that_was_suspended_continues() {
    let slow = "digraph slow { start; done
      wait [shape=parallelogram, tool_command=\"sleep 1; echo 1 > made\", allowed_write_paths=\"made\"]
      start -> wait -> done }";
    let bench = Workbench::with_pipeline(slow);
    let mut command = bench.bare(&["run", "--run-id", "r"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let process = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    std::thread::sleep(Duration::from_millis(700));
    kill_process(process, Signal::STOP).unwrap();
    std::thread::sleep(Duration::from_secs(4));
    kill_process(process, Signal::CONT).unwrap();
    Answer::from_child(child).ends(0).says("verified");
    bare(&bench, &["apply", "r"]).ends(0);
    assert!(bench.has("made"));
}
