//! What a stage must not do, tested with the real binary: grants of third-party plugins, the lock file, scopes,
//! commands, limits.
//!
//! Each protection has a witness that the stage cannot reach: a canary file next to the project, the project itself, or
//! a process that must have ended. The user must see each refusal, with the grant that would allow it.

use crate::guests;
use crate::workbench::{Answer, Workbench};
use std::path::Path;

/// Creates a project whose only stage is a third-party plugin with these bytes as its component.
fn plugin_bench(bytes: &[u8], config: &str) -> Workbench {
    let bench = Workbench::with_pipeline(
        "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n\
         \x20 stage [type=\"evil.guest\", allowed_write_paths=\"out/\"]\n  start -> stage -> done\n}\n",
    );
    std::fs::write(bench.project().join("guest.wasm"), bytes).unwrap();
    bench.write("glovebox.toml", &format!("[plugins.\"evil.guest\"]\npath = \"guest.wasm\"\n{config}\n"));
    bench
}

/// Creates a project as [`plugin_bench`] does, with the component built from the guest `guest`, and locks the plugin.
fn locked_bench(guest: &str, config: &str) -> Workbench {
    let bench = plugin_bench(&guests::build(guest), config);
    bench.glovebox(&["plugin", "lock"]).ends(0).says("evil.guest");
    bench
}

fn harmless() -> Vec<u8> {
    guests::component("(func $execute)")
}

#[test]
fn configuration_that_cannot_be_enforced_is_refused_at_its_line() {
    for (config, said) in [
        ("grants = { network = true }", "network"),
        ("grants = { filesystem = \"posix\", read = [\"../\"] }", ".."),
        ("grants = { filesystem = \"posix\", write = [\"/etc/\"] }", "/etc/"),
        ("wants = { env = [\"HOME\"] }", "env"),
        ("grants = { limits = { fuel = 3 } }", "fuel"),
        ("color = \"red\"", "color"),
        ("[exec]\nenv = { LD_PRELOAD = \"x.so\" }", "LD_PRELOAD"),
        ("[workspace]\nexclude = [\"a\"]", "exclude"),
    ] {
        let bench = plugin_bench(&harmless(), config);
        bench.glovebox(&["run", "pipeline.dot"]).ends(3).says(said).says("glovebox.toml:");
        bench.glovebox(&["plugin", "lock"]).ends(3).says(said);
        assert!(!bench.has("glovebox.lock"));
    }
}

#[test]
fn a_command_needs_a_want_and_a_grant_and_runs_behind_walls() {
    let both = "wants = { commands = [\"true\"] }\ngrants = { commands = [\"true\"] }";
    locked_bench("runs-command", "wants = { commands = [\"true\"] }")
        .glovebox(&["run", "pipeline.dot"])
        .ends(1)
        .says("refused")
        .says("run true");
    let bench = locked_bench("runs-command", both);
    let pipeline = bench.read("pipeline.dot").replace("allowed_write", "allowed_commands=\"true\", allowed_write");
    bench.write("pipeline.dot", &pipeline);
    let ran = |answer: &Answer| {
        answer.ends(0).says("ran          stage: true exit 0").never_says("verified     stage");
    };
    let answer = bench.glovebox(&["run", "pipeline.dot"]);
    ran(&answer);
    answer.says("(full)").never_says("warning");
    let answer = bench.glovebox(&["run", "pipeline.dot", "--dangerously-no-sandbox"]);
    ran(&answer);
    answer.says("unconfined").says("can read, change and send everything that you can");
}

#[test]
fn a_stage_that_never_ends_traps_or_panics_is_an_outcome_with_its_reason() {
    let grants = |limits: &str| format!("grants = {{ limits = {{ {limits} }} }}");
    locked_bench("endless-loop", &grants("wall_ms = \"300ms\""))
        .glovebox(&["run", "pipeline.dot"])
        .ends(5)
        .says("wall_ms")
        .says("300");
    locked_bench("memory-hog", &grants("memory_bytes = \"4MiB\""))
        .glovebox(&["run", "pipeline.dot"])
        .ends(5)
        .says("memory_bytes");
    locked_bench("traps", "").glovebox(&["run", "pipeline.dot"]).ends(7).says("divide by zero");
    locked_bench("panics", "").glovebox(&["run", "pipeline.dot"]).ends(7).says("panicked").never_says("\u{1b}");
}

#[test]
fn a_flood_of_refusals_and_logs_stays_bounded_and_harmless() {
    for guest in ["log-flood", "output-flood", "shouts"] {
        let answer = locked_bench(guest, "").glovebox(&["run", "pipeline.dot"]);
        assert!(answer.stdout.len() + answer.stderr.len() < 4 << 20, "{guest}");
        answer.never_says("\u{1b}").never_says("\u{7}");
    }
}

#[test]
fn an_answer_nested_too_deep_to_be_read_back_fails_the_stage_and_not_the_run() {
    let guest = format!(
        "(data (i32.const 1024) \"deep{open}{close}\") (data (i32.const 2048) \"\\00\\04\\00\\00\\04\\00\\00\\00\\04\\04\\00\\00\\fc\\00\\00\\00\")
         (func $execute (i32.store (i32.const 40) (i32.const 2048)) (i32.store (i32.const 44) (i32.const 1)))",
        open = "[".repeat(126),
        close = "]".repeat(126)
    );
    let bench = plugin_bench(&guests::component(&guest), "");
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(7).says("`deep`").says("levels deep");
    bench.glovebox(&["show", "r"]).ends(0).says("outcome/malformed");
}

/// Creates a pipeline with one command that may write to `scope`.
fn tool(command: &str, scope: &str) -> Workbench {
    let command = command.replace('\\', "\\\\").replace('"', "\\\"");
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n  work [shape=parallelogram, tool_command=\"{command}\", \
         allowed_write_paths=\"{scope}\"]\n  start -> work -> done\n}}\n"
    ));
    bench.write("src/lib.rs", "original\n");
    std::fs::write(bench.outside().join("canary"), "alive").unwrap();
    bench
}

fn run_tool(bench: &Workbench) -> Answer {
    let before = bench.snapshot();
    let mut command = bench.command(&["run", "pipeline.dot", "--run-id", "r"]);
    let answer = Answer::of(command.env("FORGE_TOKEN", "hunter2"));
    assert_eq!(bench.snapshot(), before, "the user's tree is never written by a run");
    assert_eq!(std::fs::read_to_string(bench.outside().join("canary")).unwrap(), "alive");
    answer
}

fn quarantine_holds(bench: &Workbench, file: &str, text: &str) {
    let mut found = Vec::new();
    files_below(&bench.run_folder("r").join("quarantine"), &mut found);
    let named = |path: &Path| path.file_name().unwrap().to_string_lossy().ends_with(&format!("-{file}"));
    let kept = found.iter().find(|path| named(path)).unwrap_or_else(|| panic!("no {file} in {found:?}"));
    assert_eq!(std::fs::read_to_string(kept).unwrap(), text);
}

fn files_below(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() { files_below(&entry.path(), found) } else { found.push(entry.path()) }
    }
}

#[test]
fn writes_outside_the_scope_are_quarantined_and_fail_the_stage() {
    let bench = tool("mkdir -p out; echo kept > out/a; echo bad > src/lib.rs; echo new > evil.txt", "out/");
    run_tool(&bench).ends(6).says("guardrail_violation: wrote disallowed files: ").says("quarantined").says("evil.txt");
    let reason = bench.run_json("r", "final.json")["failure_reason"].as_str().unwrap().to_owned();
    assert_eq!(reason, "guardrail_violation: wrote disallowed files: evil.txt,src/lib.rs");
    assert_eq!(bench.run_text("r", "workspace/src/lib.rs"), "original\n");
    assert_eq!(bench.run_text("r", "workspace/out/a"), "kept\n", "what was allowed is kept");
    assert!(!bench.run_folder("r").join("workspace/evil.txt").exists());
    quarantine_holds(&bench, "evil.txt", "new\n");
    quarantine_holds(&bench, "lib.rs", "bad\n");
    bench.glovebox(&["apply", "r"]).ends(6).says("failed");
    assert_eq!(bench.read("src/lib.rs"), "original\n");
}

#[test]
fn thousands_of_disallowed_files_do_not_flood_the_terminal() {
    let bench = tool("sh work.sh", "out/");
    bench.write("work.sh", "i=0; while [ $i -lt 2000 ]; do : > evil-$i; i=$((i+1)); done\n");
    let answer = run_tool(&bench);
    answer.ends(6).says("evil-0").says("more");
    assert!(answer.stdout.len() + answer.stderr.len() < 32 << 10, "{}", answer.stdout.len() + answer.stderr.len());
}

/// Creates a stage whose command writes half a file and then exceeds a limit, whatever exit code it has.
fn passes(limit: &str, bound: &str, act: &str) -> Workbench {
    let bench = acting(act);
    let bounded = format!("\"limits.{limit}\"=\"{bound}\", allowed_write_paths=");
    bench.write("pipeline.dot", &bench.read("pipeline.dot").replace("allowed_write_paths=", &bounded));
    bench
}

/// Creates a stage whose command is in a file, so that it may name devices.
fn acting(act: &str) -> Workbench {
    let bench = tool("sh act.sh", "out/");
    bench.write("act.sh", &format!("mkdir -p out; echo half > out/half; {act}\n"));
    bench
}

#[test]
fn a_command_that_is_killed_for_a_bound_ends_its_stage_as_that_bound_and_commits_nothing() {
    for (limit, bound, act) in [
        ("command_ms", "900ms", "sleep 60"),
        ("cpu_ms", "1s", "sh -c 'while :; do :; done'; exit 0"),
        (
            "command_memory_bytes",
            "48MiB",
            "for i in 1 2 3 4 5 6; do (x=$(head -c 16000000 /dev/zero | tr '\\0' x); sleep 20) & done; wait",
        ),
        ("disk_bytes", "4MiB", "head -c 20000000 /dev/urandom > out/large; exit 0"),
        ("file_bytes", "1MiB", "exec head -c 3000000 /dev/zero > out/large"),
        ("processes", "20", "i=0; while [ $i -lt 60 ]; do sleep 20 & i=$((i+1)); done; wait; exit 1"),
    ] {
        let bench = passes(limit, bound, act);
        run_tool(&bench).ends(5).says(&format!("limit/{limit}")).says(&format!("raise `limits.{limit}` of `work`"));
        let last = bench.run_json("r", "final.json");
        assert_eq!(last["failure_code"].as_str(), Some(format!("limit/{limit}").as_str()), "{last}");
        assert!(!bench.run_folder("r").join("workspace/out").exists(), "{limit}: nothing is committed");
    }
}

#[test]
fn an_end_that_only_looks_like_a_bound_is_what_the_command_says() {
    for act in ["exit 152", "exit 153", "kill -XCPU $$"] {
        let bench = passes("cpu_ms", "10s", act);
        run_tool(&bench).ends(1);
        let last = bench.run_json("r", "final.json");
        assert!(!last["failure_code"].as_str().unwrap_or_default().starts_with("limit/"), "{act}: {last}");
        assert_eq!(bench.run_text("r", "workspace/out/half"), "half\n", "{act}: it ended by itself");
    }
}

#[test]
fn a_bound_that_cannot_be_set_is_not_said_to_be() {
    let bench = acting("cd out; i=0; while [ $i -lt 140 ]; do mkdir d && cd d; i=$((i+1)); done");
    run_tool(&bench).ends(5).says("`depth` cannot be raised").never_says("raise `limits.depth`");
}

#[test]
fn what_a_stage_used_is_measured_or_absent() {
    let used = |act: &str| {
        let bench = acting(act);
        run_tool(&bench).ends(0);
        let records = bench.glovebox(&["show", "r", "work", "--json"]).ends(0).json();
        let usage = records.as_array().unwrap().iter().find_map(|record| {
            let event = record.get("event").unwrap_or(record);
            event.get("usage").and_then(serde_json::Value::as_array).cloned()
        });
        let usage = usage.unwrap_or_else(|| panic!("no usage in {records}"));
        move |name: &str| usage.iter().find(|row| row["name"] == name).and_then(|row| row["used"].as_u64())
    };
    let long = used("head -c 100000 /dev/zero > out/f; head -c 2000000 /dev/zero > /tmp/t; exec sleep 1");
    for (name, least) in [
        ("file_bytes", 100_000),
        ("tmp_bytes", 2_000_000),
        ("descriptors", 3),
        ("disk_bytes", 100_000),
        ("write_bytes", 100_000),
    ] {
        assert!(long(name).is_some_and(|used| used >= least), "{name}: {:?}", long(name));
    }
    assert!(used("true")("descriptors").is_none_or(|used| used > 0), "absent, or measured after all");
}

#[test]
fn protected_files_are_never_written_whatever_the_scope() {
    let bench = tool("sh work.sh", "src/");
    bench.write(
        "work.sh",
        "mkdir -p src/.git/hooks; echo evil > src/.git/hooks/pre-commit; echo '[plugins]' > src/glovebox.toml\n",
    );
    run_tool(&bench).ends(6).says("src/glovebox.toml").says("the grants of this project");
    let workspace = bench.run_folder("r").join("workspace");
    assert!(!workspace.join("src/glovebox.toml").exists() && !workspace.join("src/.git").exists());
}

#[test]
fn a_stage_does_not_rewrite_its_own_pipeline() {
    let bench = tool("sh work.sh", "pipeline.dot");
    bench.write("work.sh", "echo 'digraph g {}' > pipeline.dot\n");
    run_tool(&bench).ends(6).says("guardrail_violation: wrote disallowed files: pipeline.dot");
    assert_eq!(bench.run_text("r", "workspace/pipeline.dot"), bench.read("pipeline.dot"));
}

#[test]
fn a_command_gets_no_environment_of_ours_and_leaves_nothing_running() {
    let bench = tool(
        "mkdir -p out; env > out/env; (sleep 300 & echo $! > out/pid); (setsid sleep 301 & echo $! > out/pid2)",
        "out/",
    );
    run_tool(&bench).ends(0);
    let environment = bench.run_text("r", "workspace/out/env");
    assert!(!environment.contains("hunter2") && !environment.contains("CARGO_HOME"), "{environment}");
    assert!(environment.contains("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), "{environment}");
    for file in ["pid", "pid2"] {
        let pid = bench.run_text("r", &format!("workspace/out/{file}"));
        let command = std::fs::read(format!("/proc/{}/cmdline", pid.trim())).unwrap_or_default();
        assert!(!command.starts_with(b"sleep"), "process {pid} is still there");
    }
}

#[test]
fn links_lead_nowhere() {
    let bench = tool("sh work.sh", "out/");
    bench.write(
        "work.sh",
        "mkdir -p out; ln -s ../../../../../../canary out/link; ln -s /etc/passwd out/abs; echo x > out/ok\n",
    );
    run_tool(&bench).ends(0).says("out/abs (set aside: its target is absolute)").says("out/link");
    assert_eq!(bench.run_text("r", "workspace/out/ok"), "x\n");
    for link in ["out/link", "out/abs"] {
        assert!(bench.run_folder("r").join("workspace").join(link).symlink_metadata().is_err(), "{link} was committed");
    }
}

#[test]
fn an_early_error_for_commands_that_leave_the_workspace() {
    for command in ["cat ~/secret", "cat ../canary", "cat /etc/passwd"] {
        let bench = tool(command, "out/");
        let answer = run_tool(&bench);
        assert_ne!(answer.code, 0, "{command}");
        answer.says(command.split(' ').next_back().unwrap());
    }
}

#[test]
fn a_refused_write_of_an_agent_is_shown_with_the_grant_and_the_run_goes_on() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n\
         \x20 code [shape=box, prompt=\"p\", allowed_write_paths=\"src/\"]\n  start -> code -> done\n}\n",
    );
    bench.write("tests/keep.rs", "the tests\n");
    bench.write(
        "script.toml",
        "[[node.code]]\ntool = [{ name = \"write_file\", arguments = { path = \"tests/keep.rs\", content = \"weaker\" } }]\n\
         [[node.code]]\ntool = [{ name = \"write_file\", arguments = { path = \"../../../escape\", content = \"x\" } }]\n\
         [[node.code]]\ntool = [{ name = \"write_file\", arguments = { path = \"src/ok.rs\", content = \"fine\\n\" } }]\n\
         [[node.code]]\ntext = \"done\"\n",
    );
    let answer = bench.glovebox(&["run", "pipeline.dot", "--script", "script.toml", "--run-id", "r"]);
    answer.ends(0).says("refused").says("tests/keep.rs").says("allowed_write_paths=\"src/,tests/keep.rs\"");
    assert_eq!(bench.run_text("r", "workspace/tests/keep.rs"), "the tests\n");
    assert_eq!(bench.run_text("r", "workspace/src/ok.rs"), "fine\n");
    assert!(bench.run_json("r", "final.json")["refusals_total"].as_u64().unwrap() >= 1);
    let found = bench.glovebox(&["show", "r", "--json"]).ends(0).json();
    assert!(found["refused"].as_array().unwrap().iter().any(|refusal| refusal["path"] == "tests/keep.rs"));
}

#[test]
fn a_conflict_is_refused_as_a_whole_and_a_repeated_apply_does_nothing() {
    let bench = tool("mkdir -p out; echo one > out/a; echo two > out/b", "out/");
    run_tool(&bench).ends(0);
    bench.write("out/b", "somebody else's\n");
    bench.glovebox(&["apply", "r"]).ends(6).says("conflict: out/b").says("nothing was written");
    assert!(!bench.has("out/a"));
    bench.write("out/b", "two\n");
    bench.glovebox(&["apply", "r"]).ends(0).says("wrote   out/a");
    assert_eq!((bench.read("out/a"), bench.read("out/b")), ("one\n".to_owned(), "two\n".to_owned()));
    bench.glovebox(&["apply", "r"]).ends(0).says("nothing to apply");
}

/// Returns a command that sends one request to the proxy and prints the answer.
fn asks(host: &str) -> String {
    format!("exec 3<>/dev/tcp/127.0.0.1/3128\nprintf 'CONNECT {host}:443 HTTP/1.1\\r\\n\\r\\n' >&3\ncat <&3\n")
}

#[test]
fn what_a_command_asked_of_the_network_is_in_the_record_with_the_grant_that_is_missing() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n\
         \x20 fetch [shape=parallelogram, tool_command=\"bash ask.sh\", allowed_write_paths=\"\"]\n\
         \x20 start -> fetch -> done\n}\n",
    );
    bench.write("ask.sh", &format!("{}{}", asks("evil.example"), asks("127.0.0.1")));
    bench.write("glovebox.toml", "[sandbox]\nnetwork = { proxy = [\"a.example\", \"*.b.example:8443\"] }\n");
    let answer = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]);
    let line =
        "`[sandbox] network = { proxy = [\"a.example\", \"*.b.example:8443\", \"evil.example\"] }` in glovebox.toml";
    answer.ends(0).says("refused      fetch: reach evil.example:443").says(line);
    bench
        .glovebox(&["show", "r", "fetch"])
        .says("network      evil.example: 0 requests, 1 refused, 0 bytes sent, 0 received")
        .says("network      others: 0 requests, 1 refused")
        .says(line);
    let records = bench.glovebox(&["show", "r", "fetch", "--json"]).json();
    let finished = records.as_array().unwrap().iter().find(|record| record["event"]["kind"] == "stage.finished");
    let stage = &finished.unwrap()["event"];
    assert_eq!(stage["network"]["hosts"]["evil.example"]["refused"], 1, "{stage}");
    assert_eq!(stage["refusals_total"], 2, "{stage}");
    // The suggested line can be pasted into glovebox.toml.
    let config = format!("[sandbox]\n{}\n", line.split('`').nth(1).unwrap().trim_start_matches("[sandbox] "));
    bench.write("glovebox.toml", &config);
    bench.glovebox(&["check", "pipeline.dot"]).ends(0);
}

#[test]
fn what_a_stage_with_hold_outs_asked_of_the_network_reaches_no_builder() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n\
         \x20 test [shape=parallelogram, tool_command=\"bash scripts/scenarios/ask.sh\", allowed_write_paths=\"\"]\n\
         \x20 fix [prompt=\"Fix it\", allowed_write_paths=\"src/\"]\n\
         \x20 start -> test\n  test -> done [condition=\"outcome=success\"]\n  test -> fix [condition=\"outcome=fail\"]\n\
         \x20 fix -> done\n}\n",
    );
    bench.write("scripts/scenarios/ask.sh", &format!("{}exit 1\n", asks("forty-two-is-the-answer.example")));
    bench.write("glovebox.toml", "[sandbox]\nnetwork = { proxy = [\"a.example\"] }\n");
    bench.write("model.toml", "[[node.fix]]\ntext = \"OUTCOME: SUCCESS\"\n");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--script", "model.toml"]).ends(0);
    let record = bench.glovebox(&["show", "r", "test", "--json"]).json().to_string();
    assert!(record.contains("forty-two-is-the-answer.example"), "the record is for people: {record}");
    let prompt = bench.run_text("r", "fix/prompt.md");
    assert!(prompt.contains("Failure feedback"), "the builder is told of the failure: {prompt}");
    for text in [prompt, bench.run_json("r", "checkpoint.json")["context"].to_string()] {
        assert!(!text.contains("forty-two"), "{text}");
    }
}
