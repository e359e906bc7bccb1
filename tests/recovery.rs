//! Write recovery: a person may allow or discard what a stage wrote outside of its write scope. No stage may do so, and
//! by default no question is asked.
//!
//! Only files with the digests that the question named are committed. The witnesses are the workspace of the run, the
//! quarantine and the project.

use crate::guests;
use crate::workbench::journal::{copy_prefix, end};
use crate::workbench::{Answer, Workbench};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

const PAUSED: i32 = 10;
const ASK: &str = "[recovery]\nmode = \"ask\"\npaths = [\"notes.txt\"]\ndiscard = [\"coverage/\", \"*.log\"]\ndeny = [\"secret.log\"]\n";
const GUARDRAIL: &str = "guardrail_violation: wrote disallowed files: ";

/// Creates a pipeline of builders with a shell. Each stage has the command that its script runs.
fn bench(stages: &[(&str, &str)]) -> Workbench {
    let nodes: String = stages
        .iter()
        .map(|(name, _)| {
            format!("  {name} [prompt=\"x\", allowed_commands=\"*\", verify_command=\"true || cargo build\", allowed_write_paths=\"src/\"]\n")
        })
        .collect();
    let chain: Vec<&str> = stages.iter().map(|(name, _)| *name).collect();
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  start; done [shape=Msquare]\n{nodes}  start -> {} -> done\n}}\n",
        chain.join(" -> ")
    ));
    let turns: String = stages.iter().map(|(name, command)| turns(name, command)).collect();
    std::fs::write(bench.outside().join("script.toml"), turns).unwrap();
    bench.write("glovebox.toml", ASK);
    bench.write("src/lib.rs", "original\n");
    bench
}

fn turns(name: &str, command: &str) -> String {
    let command = Value::from(command);
    format!(
        "[[node.{name}]]\ntool = [{{ name = \"shell\", arguments = {{ command = {command} }} }}]\n\
         [[node.{name}]]\ntext = \"OUTCOME: SUCCESS\"\n"
    )
}

fn run(bench: &Workbench, more: &[&str]) -> Answer {
    bench.glovebox(&[&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "r"], more].concat())
}

fn answer(bench: &Workbench, word: &str) -> Answer {
    bench.glovebox(&["answer", "r", "work", word, "--resume"])
}

/// Returns the events of one kind.
fn events(bench: &Workbench, kind: &str) -> Vec<Value> {
    let lines = bench.run_text("r", "progress.ndjson");
    let records = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.map(|record| record["event"].clone()).filter(|event| event["kind"] == kind).collect()
}

fn in_workspace(bench: &Workbench, path: &str) -> bool {
    bench.run_folder("r").join("workspace").join(path).symlink_metadata().is_ok()
}

/// Runs a stage for which no question may be asked. The stage fails as it does without write recovery.
fn fails_as_without(bench: &Workbench, paths: &[&str]) {
    run(bench, &[]).ends(6).says(GUARDRAIL);
    assert!(events(bench, "question.asked").is_empty(), "nobody is asked");
    paths.iter().for_each(|path| assert!(!in_workspace(bench, path), "{path}"));
}

#[test]
fn nobody_is_asked_unless_the_operator_says_so() {
    for config in ["", "[recovery]\npaths = [\"Cargo.lock\"]\n", "[recovery]\nmode = \"off\"\n"] {
        let bench = bench(&[("work", "echo 1 > Cargo.lock")]);
        bench.write("glovebox.toml", config);
        fails_as_without(&bench, &["Cargo.lock"]);
        assert!(!bench.glovebox(&["plan", "pipeline.dot"]).ends(0).stdout.contains("write recovery"));
    }
}

#[test]
fn what_is_allowed_is_committed_and_stays_granted() {
    let bench = bench(&[(
        "work",
        "echo 1 > Cargo.lock; echo n > notes.txt; echo k > src/a; mkdir coverage; echo c > coverage/c",
    )]);
    run(&bench, &[])
        .ends(PAUSED)
        .says("work#1/recovery")
        .says("Cargo.lock (2 bytes, digest ")
        .says("the command `cargo`");
    assert!(!in_workspace(&bench, "Cargo.lock"));
    let asked = &events(&bench, "question.asked")[0];
    assert_eq!(asked["recovery"]["grants"].as_array().unwrap().len(), 2);
    assert!(asked["text"].as_str().unwrap().contains("- coverage/c (1 file)"), "{asked}");
    let gates = bench.glovebox(&["gates", "r"]);
    gates.ends(0).says("[discard]    discard\n").says("then the run ends").never_says("no exit can be reached");
    // An answer that is not a choice is refused.
    answer(&bench, "Cargo.lock").ends(2);
    answer(&bench, "a").ends(2);
    answer(&bench, "yes").ends(2);
    answer(&bench, "allow").ends(0);
    assert_eq!(bench.run_text("r", "workspace/Cargo.lock"), "1\n");
    assert_eq!(bench.run_text("r", "workspace/notes.txt"), "n\n");
    assert!(!in_workspace(&bench, "coverage"), "what is discardable is never committed");
    let decided = &events(&bench, "recovery.decided")[0];
    assert_eq!(
        (decided["action"].as_str(), decided["reason"].as_str()),
        (Some("allow"), Some("allowed_paths_adjusted"))
    );
    assert_eq!(decided["how"], "command");
    assert!(!decided["by"].as_str().unwrap().is_empty(), "who answered is in the record");
    assert_eq!(bench.run_json("r", "work/status.json")["outcome"], "success");
    bench.glovebox(&["show", "r"]).ends(0).says("recovery").says("work: allow Cargo.lock, notes.txt");
    let shown = bench.glovebox(&["show", "r", "--json"]).ends(0).json();
    assert_eq!(shown["recovery"][0]["granted"][0]["path"], "Cargo.lock");
    assert_eq!(shown["recovery"][0]["granted"][0]["digest"], asked["recovery"]["grants"][0]["digest"]);
    bench.glovebox(&["show", "r", "work"]).ends(0).says("recovery: allow Cargo.lock");
    bench.glovebox(&["why", "r", "work"]).ends(0).says("allow: a person decided");
    bench.glovebox(&["diff", "r"]).ends(0).says("Cargo.lock");
    bench.glovebox(&["apply", "r"]).ends(0);
    bench.glovebox(&["apply", "r"]).ends(0).says("nothing to apply");
    assert_eq!(bench.read("Cargo.lock"), "1\n");
}

#[test]
fn what_passed_before_an_allowed_write_is_named() {
    let bench = bench(&[("first", "echo 1 > src/a"), ("work", "echo 1 > Cargo.lock")]);
    run(&bench, &[]).ends(PAUSED);
    answer(&bench, "allow")
        .ends(0)
        .says("`work` changed files after these stages passed: first. Run them again after `work`");
}

/// Creates a stage that is visited twice and writes the same file each time.
fn twice() -> Workbench {
    let bench = bench(&[("work", "echo 1 > Cargo.lock")]);
    bench.write(
        "pipeline.dot",
        "digraph g {\n start; done [shape=Msquare]\n work [prompt=\"x\", allowed_commands=\"*\", verify_command=\"true || cargo build\", allowed_write_paths=\"src/\"]\n\
         more [prompt=\"more?\", allowed_write_paths=\"\"]\n start -> work -> more\n more -> done [condition=\"context.round=2\"]\n\
         more -> work [condition=\"context.round!=2\"]\n}\n",
    );
    let more = |round: &str| {
        format!(
            "[[node.more]]\ntext = \"x\"\noutcome = {{ status = \"success\", context_updates = {{ round = \"{round}\" }} }}\n"
        )
    };
    let script = [
        turns("work", "echo 1 > Cargo.lock"),
        turns("work", "echo 2 > Cargo.lock; cat Cargo.lock"),
        more("1"),
        more("2"),
    ];
    std::fs::write(bench.outside().join("script.toml"), script.concat()).unwrap();
    bench
}

#[test]
fn a_grant_holds_for_the_rest_of_the_run_and_for_its_node_alone() {
    let bench = twice();
    run(&bench, &[]).ends(PAUSED);
    answer(&bench, "allow").ends(0);
    assert_eq!(events(&bench, "question.asked").len(), 1, "it is asked once");
    assert_eq!(bench.run_text("r", "workspace/Cargo.lock"), "2\n");
    let bench = self::bench(&[("work", "echo 1 > Cargo.lock"), ("other", "echo 2 > Cargo.lock")]);
    run(&bench, &[]).ends(PAUSED);
    answer(&bench, "allow").ends(PAUSED).says("other#1/recovery");
    bench.glovebox(&["answer", "r", "other", "deny", "--resume"]).ends(6);
    assert_eq!(bench.run_text("r", "workspace/Cargo.lock"), "1\n");
}

#[test]
fn discarding_keeps_the_quarantine_and_denying_fails_as_before() {
    let bench = bench(&[("work", "echo 1 > Cargo.lock; echo k > src/a")]);
    run(&bench, &[]).ends(PAUSED);
    answer(&bench, "discard").ends(0);
    assert!(!in_workspace(&bench, "Cargo.lock") && in_workspace(&bench, "src/a"));
    assert!(bench.run_folder("r").join("quarantine").is_dir());
    assert_eq!(bench.glovebox(&["show", "r", "--json"]).json()["quarantined"][0]["path"], "Cargo.lock");
    let bench = self::bench(&[("work", "echo 1 > Cargo.lock; echo k > src/a")]);
    run(&bench, &[]).ends(PAUSED);
    answer(&bench, "deny").ends(6).says(GUARDRAIL);
    assert!(!in_workspace(&bench, "Cargo.lock") && in_workspace(&bench, "src/a"));
    // A file that may only be discarded cannot be allowed.
    let bench = self::bench(&[("work", "echo 1 > x.log")]);
    run(&bench, &[]).ends(PAUSED).never_says("allow commits");
    answer(&bench, "allow").ends(2).says("is not an answer");
    answer(&bench, "discard").ends(0);
    assert!(!in_workspace(&bench, "x.log"));
}

#[test]
fn nobody_there_grants_nothing() {
    let bench = bench(&[("work", "echo 1 > Cargo.lock")]);
    run(&bench, &["--auto-approve"]).ends(PAUSED);
    bench.glovebox(&["resume", "r"]).ends(PAUSED);
    let bench = self::bench(&[("work", "echo 1 > Cargo.lock")]);
    bench.write("answers", "allow\n");
    run(&bench, &["--answers", "answers"]).ends(PAUSED);
    let bench = self::bench(&[("work", "echo 1 > Cargo.lock")]);
    bench.write("answers", "work: allow\n");
    run(&bench, &["--answers", "answers"]).ends(0);
    let bench = self::bench(&[("work", "echo 1 > Cargo.lock")]);
    bench.write("glovebox.toml", &format!("{ASK}timeout = \"1s\"\n"));
    run(&bench, &[]).ends(6).says(GUARDRAIL);
    assert_eq!(events(&bench, "recovery.decided")[0]["how"], "timeout");
    let bench = self::bench(&[("work", "echo 1 > Cargo.lock")]);
    bench.glovebox(&["run", "pipeline.dot", "--simulate"]).ends(0);
}

#[test]
fn only_plain_files_that_the_plan_proposes_are_asked_about() {
    let big = "head -c 20000000 /dev/zero > Cargo.lock";
    for (command, paths) in [
        ("ln -s src/lib.rs Cargo.lock", &["Cargo.lock"][..]),
        ("ln -s /etc/passwd Cargo.lock", &["Cargo.lock"]),
        ("mkdir Cargo.lock", &["Cargo.lock"]),
        ("mkdir Cargo.lock; echo 1 > Cargo.lock/x", &["Cargo.lock"]),
        ("echo 1 > Cargo.lock; chmod +x Cargo.lock", &["Cargo.lock"]),
        (big, &["Cargo.lock"]),
        ("echo 1 > Cargo.lock; echo 2 > evil.txt", &["Cargo.lock", "evil.txt"]),
        ("echo 1 > sub.lock", &["sub.lock"]),
        ("echo 1 > secret.log; echo 1 > Cargo.lock", &["secret.log", "Cargo.lock"]),
        ("mkdir -p .github/workflows; echo 1 > .github/workflows/x.log", &[".github"]),
        ("echo 'digraph' >> pipeline.dot; echo 1 > Cargo.lock", &["Cargo.lock"]),
        ("echo 1 > glovebox.toml", &[]),
    ] {
        let bench = bench(&[("work", command)]);
        fails_as_without(&bench, paths);
        let notes = events(&bench, "stage.finished")[0]["outcome"]["notes"].as_str().unwrap().to_owned();
        assert!(notes.contains("write recovery did not ask: "), "{command}: {notes}");
    }
}

#[test]
fn rights_that_a_file_takes_over_are_not_committed() {
    let bench = bench(&[("work", "echo 1 > Cargo.lock; chmod 06644 Cargo.lock")]);
    run(&bench, &[]).ends(PAUSED);
    answer(&bench, "allow").ends(0);
    let mode = bench.run_folder("r").join("workspace/Cargo.lock").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7111, 0, "{mode:o}");
}

#[test]
fn what_is_committed_is_what_the_question_named() {
    let bench = bench(&[("work", "echo good > Cargo.lock")]);
    run(&bench, &[]).ends(PAUSED);
    // Changing a file in the quarantine does not change what is committed.
    let quarantine = bench.run_folder("r").join("quarantine");
    let folder = std::fs::read_dir(quarantine).unwrap().next().unwrap().unwrap().path();
    for file in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        std::fs::write(file.path(), "evil").unwrap();
    }
    answer(&bench, "allow").ends(0);
    assert_eq!(bench.run_text("r", "workspace/Cargo.lock"), "good\n");
}

#[test]
fn a_question_is_bounded_and_plain_whatever_the_stage_wrote() {
    let many = "mkdir coverage; i=0; while [ $i -lt 4950 ]; do : > coverage/$i; : > l$i.log; i=$((i+1)); done";
    let bench = bench(&[("work", many)]);
    let asked = run(&bench, &[]);
    asked.ends(PAUSED);
    let text = events(&bench, "question.asked")[0]["text"].as_str().unwrap().to_owned();
    assert!(text.len() < 4096 && text.contains("coverage/ (4950 files)") && text.contains("more files"), "{text}");
    answer(&bench, "deny").ends(6);
    let bench = self::bench(&[("work", "mkdir coverage; : > \"coverage/$(printf 'a\\033[2Jb')\"")]);
    run(&bench, &[]).never_says("\u{1b}[2J");
    let asked = events(&bench, "question.asked");
    assert!(asked.iter().all(|asked| !asked["text"].as_str().unwrap().contains('\u{1b}')));
}

#[test]
fn hold_outs_and_verifiers_are_never_asked_about() {
    let bench = bench(&[("work", "mkdir -p scripts/scenarios; echo 1 > scripts/scenarios/a.log")]);
    bench.write("scripts/scenarios/a.log", "the sealed expectation of this scenario is 4711");
    bench.write("glovebox.toml", &ASK.replace("notes.txt", "scripts/scenarios/a.log"));
    assert!(!bench.glovebox(&["plan", "pipeline.dot"]).ends(0).stdout.contains("scenarios/a.log:"));
    fails_as_without(&bench, &[]);
    let verifier = "digraph g { start; done [shape=Msquare]; work [shape=parallelogram, tool_command=\"cargo --version; echo 1 > Cargo.lock\", \
                    allowed_write_paths=\"src/\"]; start -> work -> done }";
    bench.write("pipeline.dot", verifier);
    bench.write("glovebox.toml", &ASK.replace("notes.txt", "Cargo.lock"));
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "v"]).ends(6).says(GUARDRAIL);
}

#[test]
fn a_plugin_gets_no_more_than_the_operator_granted() {
    let plugin = |write: &str| {
        let bench = Workbench::with_pipeline(
            "digraph g { start; done [shape=Msquare]; work [type=\"evil.guest\", allowed_commands=\"true\", allowed_write_paths=\"src/\"]\n\
             start -> work -> done }",
        );
        std::fs::write(bench.project().join("guest.wasm"), guests::build("runs-command")).unwrap();
        let grants = format!("{{ filesystem = \"workspace\", commands = [\"true\"], write = [{write}] }}");
        let plugin = format!("[plugins.\"evil.guest\"]\npath = \"guest.wasm\"\nwants = {grants}\ngrants = {grants}\n");
        bench.write("glovebox.toml", &format!("{plugin}{ASK}"));
        bench.glovebox(&["plugin", "lock"]).ends(0);
        bench.glovebox(&["plan", "pipeline.dot"]).ends(0).stdout.clone()
    };
    assert!(!plugin("\"src/\"").contains("might be allowed"), "notes.txt is not the plugin's to write");
    assert!(plugin("\"src/\", \"notes.txt\"").contains("work might be allowed to write notes.txt"));
}

#[test]
fn branches_of_a_fork_fail_as_before_and_say_why() {
    let bench = bench(&[("work", "echo 1 > Cargo.lock")]);
    bench.write(
        "pipeline.dot",
        "digraph g {\n start; done [shape=Msquare]; fork [shape=component]; join [shape=tripleoctagon]\n\
         work [prompt=\"x\", allowed_commands=\"*\", verify_command=\"true || cargo build\", allowed_write_paths=\"src/\"]\n\
         side [prompt=\"x\", allowed_write_paths=\"\"]\n start -> fork; fork -> work; fork -> side; work -> join; side -> join; join -> done\n}\n",
    );
    run(&bench, &[]);
    assert!(events(&bench, "question.asked").is_empty());
    let finished = events(&bench, "stage.finished");
    let of_work = finished.iter().find(|event| event["node"] == "work").unwrap();
    assert!(
        of_work["outcome"]["notes"].as_str().unwrap().contains("a branch of a parallel node cannot ask"),
        "{of_work}"
    );
}

#[test]
fn every_prefix_of_a_run_with_a_decision_leads_to_the_same_end() {
    for word in ["allow", "discard", "deny"] {
        let bench = twice();
        bench.write("answers", &format!("work: {word}\nwork: {word}\n"));
        let run = run(&bench, &["--answers", "answers", "--json"]);
        let lines = run.json_lines().len() - 1;
        let expected = end(&bench.run_folder("r"));
        // A resume of a failed run repeats the failed stage, so the last prefix is left out.
        let last = if word == "deny" { lines - 1 } else { lines };
        for kept in 1..=last {
            let runs = format!(".glovebox/prefix-{kept}");
            let run = bench.project().join(&runs).join("r");
            copy_prefix(&bench, &run, kept as i64);
            bench.glovebox(&["resume", "r", "--runs-dir", &runs, "--answers", "answers", "--quiet"]);
            let found = end(&run);
            assert_eq!(
                (&found.last, &found.workspace),
                (&expected.last, &expected.workspace),
                "{word}: {kept} of {lines}"
            );
        }
    }
}

#[test]
fn wrong_configuration_is_refused_at_its_line() {
    for (line, said) in [
        ("mode = \"auto\"", "`recovery.mode` must be `\"off\"` or `\"ask\"`"),
        ("paths = [\"../x\"]", "contains `../x`"),
        ("paths = [\"src/\"]", "name each file"),
        ("paths = [\".git/config\"]", "no stage may ever write it"),
        ("paths = [\"glovebox.toml\"]", "no stage may ever write it"),
        ("paths = [\".cargo/config.toml\"]", "no stage may ever write it"),
        ("discard = [\"./\"]", "the whole workspace"),
        ("discard = [\"**/x\"]", "an ending such as `*.log`"),
        ("timeout = \"soon\"", "is not a time above 0"),
        ("model = \"gpt\"", "unknown field `recovery.model`"),
    ] {
        let bench = bench(&[("work", "true")]);
        bench.write("glovebox.toml", &format!("[recovery]\n{line}\n"));
        bench.glovebox(&["check", "pipeline.dot"]).ends(3).says(said).says("glovebox.toml:2");
        run(&bench, &[]).ends(3);
    }
    let bench = bench(&[("work", "true")]);
    let plan = bench.glovebox(&["plan", "pipeline.dot"]);
    plan.ends(0)
        .says("write recovery: a person is asked")
        .says("work might be allowed to write Cargo.lock: the command `cargo`");
    plan.says("discard  coverage/, *.log").says("deny     secret.log");
    assert!(
        bench.glovebox(&["plan", "pipeline.dot", "--json"]).json()["recovery"]["nodes"]["work"]["notes.txt"]
            .is_string()
    );
}
