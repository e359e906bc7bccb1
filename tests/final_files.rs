//! `final.json` on every path on which a run ends, and the record that names it. A full disk and a process that died
//! before it wrote the file are among them.

use crate::workbench::{Answer, Workbench, not_run};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Command;

/// Creates a pipeline of one tool stage, and a folder for the flags that the stage waits for.
fn bench(graph: &str, command: &str) -> Workbench {
    Workbench::with_pipeline(&format!(
        "digraph g {{ graph [{graph}]; start; done\n\
         work [shape=parallelogram, tool_command={}, allowed_write_paths=\"made\"]\n start -> work -> done }}",
        Value::from(command)
    ))
}

/// Returns `final.json`, and checks that the last record names it.
fn end_of(bench: &Workbench, run: &str) -> Value {
    let lines = bench.run_text(run, "progress.ndjson");
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&last["event"]["kind"], &last["event"]["artifact"]), (&"run.finished".into(), &"final.json".into()));
    let ended = bench.run_json(run, "final.json");
    assert_eq!((&ended["run_id"], &ended["status"]), (&run.into(), &last["event"]["status"]));
    assert_eq!(ended["failure_reason"], last["event"]["failure"]["reason"]);
    for field in ["timestamp", "final_git_commit_sha", "cxdb_context_id", "cxdb_head_turn_id"] {
        assert!(ended[field].is_string(), "{field}");
    }
    assert!(!bench.run_folder(run).join("disk.reserve").exists(), "the space is given back");
    ended
}

#[test]
fn every_end_has_a_final_file_that_the_last_record_names() {
    for (graph, command, flags, code, class) in [
        ("", "echo 1 > made", &[][..], 0, None),
        ("", "exit 4", &[], 1, Some("deterministic")),
        ("max_steps=1", "true", &[], 5, Some("budget")),
        ("", "sleep 60", &["--max-wall-time", "1s"], 5, Some("budget")),
        ("", "echo 1 > other", &[], 6, Some("scope")),
    ] {
        let bench = bench(graph, command);
        bench.glovebox(&[&["run", "pipeline.dot", "--run-id", "r"], flags].concat()).ends(code);
        let ended = end_of(&bench, "r");
        assert_eq!(ended["failure_class"].as_str(), class, "{command}");
    }
}

#[test]
fn a_run_that_is_stopped_or_canceled_has_a_final_file() {
    let bench = bench("", "sleep 60");
    for (run, words, code) in [("stopped", &[][..], 130), ("canceled", &["cancel", "canceled"], 130)] {
        let mut child = bench.start(&["run", "pipeline.dot", "--json", "--run-id", run]);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        lines.by_ref().find(|line| line.contains("stage.started")).unwrap();
        match words.is_empty() {
            true => assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()),
            false => _ = bench.glovebox(words),
        }
        assert!(lines.any(|line| line.contains("run.finished")));
        Answer::from_child(child).ends(code);
        assert_eq!(end_of(&bench, run)["failure_class"], "canceled");
    }
}

/// The journal comes first. A process that died after the record and before the file left no `final.json`.
#[test]
fn an_end_without_its_file_is_completed() {
    let bench = bench("", "echo 1 > made");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    let ended = bench.run_text("r", "final.json");
    std::fs::remove_file(bench.run_folder("r").join("final.json")).unwrap();
    bench.glovebox(&["resume", "r"]).ends(0);
    assert_eq!(bench.run_text("r", "final.json"), ended);
}

/// A run that an error of the machine stopped has no record of its end, because it can go on.
#[test]
fn an_error_of_the_machine_has_a_final_file_and_a_resume_goes_on() {
    let bench = Workbench::with_pipeline(
        "digraph g { start; done
         first [shape=parallelogram, tool_command=\"sleep 2; echo 1 > made\", allowed_write_paths=\"made\"]
         second [shape=parallelogram, tool_command=\"cat made\", allowed_write_paths=\"\"]
         start -> first -> second -> done }",
    );
    let mut child = bench.start(&["run", "pipeline.dot", "--json", "--run-id", "r"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    lines.by_ref().find(|line| line.contains("stage.started")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    // The folder of the second stage cannot be created.
    let stage = bench.run_folder("r").join("stage");
    std::fs::rename(&stage, bench.outside().join("away")).unwrap();
    std::fs::write(&stage, "").unwrap();
    assert!(!lines.any(|line| line.contains("run.finished")));
    Answer::from_child(child).ends(9);
    let told = bench.run_json("r", "final.json");
    assert_eq!((&told["status"], &told["failure_code"]), (&"fail".into(), &"host/fault".into()), "{told}");
    std::fs::remove_file(&stage).unwrap();
    bench.glovebox(&["resume", "r"]).ends(0);
    assert_eq!(end_of(&bench, "r")["status"], "success");
}

#[test]
fn the_commit_of_the_checkout_is_named() {
    let bench = bench("", "echo 1 > made");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "plain"]).ends(0);
    assert_eq!(end_of(&bench, "plain")["final_git_commit_sha"], "");
    let git = |words: &[&str]| {
        let identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"];
        let output = Command::new("git").args(identity).args(words).current_dir(bench.project()).output().unwrap();
        assert!(output.status.success(), "{words:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q"]);
    git(&["add", "pipeline.dot"]);
    git(&["commit", "-qm", "first"]);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "git"]).ends(0);
    assert_eq!(end_of(&bench, "git")["final_git_commit_sha"], git(&["rev-parse", "HEAD"]).as_str());
}

#[test]
fn a_full_disk_has_a_final_file_and_a_resume_goes_on() {
    let bench = Workbench::with_pipeline(
        "digraph g { start; done
         first [shape=parallelogram, tool_command=\"echo 1 > made; sleep 3\", allowed_write_paths=\"made\"]
         second [shape=parallelogram, tool_command=\"cat made > more\", allowed_write_paths=\"more\"]
         start -> first -> second -> done }",
    );
    bench.write("runs/.keep", "");
    let script = "mount -t tmpfs -o size=48m,mode=0700 tmpfs runs || exit 1
                  \"$@\" run pipeline.dot --run-id r --runs-dir runs & run=$!
                  until grep -q stage.started runs/r/progress.ndjson 2>/dev/null; do sleep 0.1; done
                  sleep 1; cat /dev/zero > runs/r/fill 2>/dev/null
                  wait $run; echo \"first $?\"; echo \"final $(tr -d '\\n' < runs/r/final.json)\"
                  \"$@\" resume r --runs-dir runs; echo \"early $?\"
                  rm runs/r/fill; \"$@\" resume r --runs-dir runs; echo \"second $?\"
                  cat runs/r/workspace/more; echo \"ended $(tr -d '\\n' < runs/r/final.json)\"";
    let own = bench.bare(&[]);
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, "sh"]).arg(own.get_program()).current_dir(bench.project());
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let answer = Answer::of(&mut command);
    if !answer.stdout.contains("first") {
        return not_run("a file system in a namespace", "unshare -rm mount");
    }
    let answer = answer.says("first 9").says("no space is left").says("early 9").says("second 0");
    let line = |start: &str| answer.stdout.lines().find_map(|line| line.strip_prefix(start)).unwrap();
    let full: Value = serde_json::from_str(line("final ")).unwrap();
    assert_eq!((&full["status"], &full["failure_code"]), (&"fail".into(), &"host/disk_full".into()), "{full}");
    let ended: Value = serde_json::from_str(line("ended ")).unwrap();
    assert_eq!(ended["status"], "success");
}
