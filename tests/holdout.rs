//! Hold-outs with the real binary: a builder cannot find them, a run can prove afterwards which hold-outs it used, and
//! every opt-out is recorded.

use crate::guests;
use crate::workbench::{self, Workbench};
use std::path::{Path, PathBuf};

/// A line that no builder can guess.
const SECRET: &str = "grep -q 'forty-two apples in a wicker basket' answer.txt";
const SCENARIO: &str = "scripts/scenarios/answer.sh";

/// Creates a pipeline with one builder. `graph` and `node` are attributes, `turns` is the script of its model.
fn bench(graph: &str, node: &str, turns: &str) -> Workbench {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  graph [{graph}]\n  start [shape=Mdiamond]; done [shape=Msquare]\n\
         \x20 build [shape=box, prompt=\"write answer.txt\", allowed_write_paths=\"answer.txt,scripts/\", {node}]\n\
         \x20 start -> build -> done\n}}\n"
    ));
    bench.write(SCENARIO, &format!("#!/bin/sh\n{SECRET}\n"));
    bench.write("scripts/build.sh", "true\n");
    // The script is outside of the project, because every stage can read the files of the project.
    std::fs::write(bench.outside().join("script.toml"), turns).unwrap();
    bench
}

fn tool(name: &str, arguments: &str) -> String {
    format!("[[node.build]]\ntool = [{{ name = \"{name}\", arguments = {{ {arguments} }} }}]\n")
}

const DONE: &str = "[[node.build]]\ntext = \"done\"\n";

fn run(bench: &Workbench) -> workbench::Answer {
    bench.glovebox(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "r"])
}

/// Returns the files of the run that contain `text`. The sealed copy and the blobs are not searched, because the
/// hold-outs and the model's script are in them. Only the events of the journal are searched.
fn files_with(bench: &Workbench, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![bench.run_folder("r")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let is_kept =
                ["holdouts", "blobs", "journal.sqlite"].iter().any(|name| path == bench.run_folder("r").join(name));
            if entry.file_type().unwrap().is_dir() && !is_kept {
                folders.push(path);
            } else if !is_kept && contains(&path, text) {
                found.push(path);
            }
        }
    }
    let journal = bench.run_folder("r").join("journal.sqlite");
    let connection = rusqlite::Connection::open(&journal).unwrap();
    let sql = "SELECT count(*) FROM record WHERE instr(event, ?1) > 0";
    let telling: i64 = connection.query_row(sql, [text], |row| row.get(0)).unwrap();
    found.extend((telling > 0).then_some(journal));
    found
}

fn contains(path: &Path, text: &str) -> bool {
    std::fs::read(path).unwrap().windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn a_builder_cannot_list_open_or_learn_a_hold_out() {
    let turns = [
        tool("read_file", &format!("path = \"{SCENARIO}\"")),
        tool("glob", "pattern = \"**/*\""),
        tool("grep", "pattern = \"apples\""),
        tool("write_file", &format!("path = \"{SCENARIO}\", content = \"exit 0\"")),
        tool("write_file", "path = \"answer.txt\", content = \"one\""),
        DONE.to_owned(),
    ];
    let bench = bench("", "label=b", &turns.concat());
    let before = bench.snapshot();
    run(&bench).ends(0).says("refused");
    assert_eq!(bench.snapshot(), before);
    let workspace = bench.run_folder("r").join("workspace");
    assert!(!workspace.join("scripts/scenarios").exists() && workspace.join("scripts/build.sh").exists());
    assert_eq!(bench.run_text("r", "workspace/answer.txt"), "one");
    assert_eq!(files_with(&bench, "wicker basket"), [] as [PathBuf; 0]);
    assert_eq!(files_with(&bench, "answer.sh:"), [] as [PathBuf; 0], "nothing leaked");
}

#[test]
fn text_of_a_hold_out_in_prompt_or_answer_fails_the_stage_and_is_written_nowhere() {
    let quoted = SECRET.replace('\'', "");
    for (node, turns, what) in [
        ("label=b", format!("[[node.build]]\ntext = '''It wants: {quoted}'''\n"), "response"),
        ("label=b", tool("write_file", &format!("path = \"answer.txt\", content = \"{quoted}\"")) + DONE, "response"),
    ] {
        let bench = bench("", node, &turns);
        run(&bench).ends(6).says("holdout_leak").never_says("wicker");
        let reason = bench.run_json("r", "final.json")["failure_reason"].as_str().unwrap().to_owned();
        assert_eq!(reason, format!("holdout_leak: the {what} contains text of a hold-out scenario"));
        assert_eq!(files_with(&bench, "wicker"), [] as [PathBuf; 0]);
        assert!(!bench.run_folder("r").join("workspace/answer.txt").exists());
        bench.glovebox(&["holdout", "status", "r"]).ends(0).says("leak").says("scripts/scenarios/answer.sh:2");
    }
}

#[test]
fn a_prompt_that_shows_a_line_makes_it_public() {
    let prompt = format!("label=b, prompt=\"{}\"", SECRET.replace('"', "\\\""));
    let bench = bench("", &prompt, DONE);
    run(&bench).ends(0);
}

#[test]
fn a_run_proves_which_hold_outs_it_began_with() {
    let bench = bench("", "label=b", DONE);
    run(&bench).ends(0);
    let sealed = bench.glovebox(&["holdout", "status", "r", "--json"]).ends(0).json();
    assert_eq!((&sealed["folders"][0], &sealed["files"]), (&"scripts/scenarios/".into(), &1.into()));
    assert!(sealed["root"].as_str().unwrap().starts_with("blake3:"));
    bench.glovebox(&["holdout", "status", "latest"]).ends(0).says("in reach of  no stage").says("none found");
    bench
        .glovebox(&["holdout", "verify", "r"])
        .ends(0)
        .says("sealed copy matches the journal: 1 file")
        .says("the project has the same hold-outs now");
    bench.write(SCENARIO, "exit 0\n");
    bench.glovebox(&["holdout", "verify", "r"]).ends(0).says("scripts/scenarios/answer.sh has other content");
    let copy = bench.run_folder("r").join("holdouts/files").join(SCENARIO);
    std::fs::write(copy, "exit 0\n").unwrap();
    bench.glovebox(&["holdout", "verify", "r"]).ends(11).says("sealed copy differs from the journal");
    let found = bench.glovebox(&["holdout", "verify", "r", "--json"]).ends(11).json();
    assert_eq!((&found["matches"], &found["sealed_copy"][0]["difference"]), (&false.into(), &"content".into()));
    std::fs::remove_file(bench.run_folder("r").join("holdouts/seal.json")).unwrap();
    bench.glovebox(&["holdout", "verify", "r"]).ends(11).says("seal.json");
    bench.glovebox(&["holdout", "verify", "nobody"]).ends(2);
}

#[test]
fn a_run_with_a_copy_of_a_hold_out_in_the_workspace_does_not_begin() {
    let first = bench("", "label=b", DONE);
    run(&first).ends(0).never_says("is also");
    let copied = first.read(SCENARIO);
    first.write("docs/copy.sh", &copied);
    let again =
        |bench: &Workbench| bench.glovebox(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "again"]);
    again(&first)
        .ends(6)
        .says("`docs/copy.sh` is a copy of `scripts/scenarios/answer.sh`")
        .says("scenario_copies=\"allow\"");
    assert!(!first.run_folder("again").exists(), "a run that is refused does not exist");
    first.write(".gitignore", "/docs/\n");
    again(&first).ends(0);
    let allowed = bench("scenario_copies=allow", "label=b", DONE);
    allowed.write("docs/copy.sh", &copied);
    allowed.glovebox(&["check", "pipeline.dot"]).ends(0).says("scenario_opt_out").says("copies of hold-outs");
    again(&allowed).ends(0).says("hold-out scripts/scenarios/answer.sh is also at docs/copy.sh");
    let status = allowed.glovebox(&["holdout", "status", "again"]);
    status.ends(0).says("the workspace may contain copies of hold-outs");
}

#[test]
fn short_files_are_alike_by_accident() {
    let bench = bench("", "label=b", DONE);
    for (name, text) in [("empty", ""), ("short", "exit 0\n")] {
        bench.write(&format!("scripts/scenarios/{name}"), text);
        bench.write(&format!("src/{name}"), text);
    }
    run(&bench).ends(0);
}

#[test]
fn a_run_without_hold_outs_says_so() {
    let bench = bench("", "label=b", DONE);
    std::fs::remove_dir_all(bench.project().join("scripts/scenarios")).unwrap();
    run(&bench).ends(0);
    for command in ["status", "verify"] {
        bench.glovebox(&["holdout", command, "r"]).ends(2).says("has no hold-outs");
    }
}

#[test]
fn folders_that_are_named_must_be_there_and_real() {
    let check = |graph: &str, said: &str| {
        bench(graph, "label=b", DONE).glovebox(&["run", "pipeline.dot"]).ends(3).says(said);
    };
    check("scenarios=\"checks/\"", "hold-out folder `checks` does not exist");
    check("scenarios=\"/etc/\"", "scenarios contains absolute path: /etc/");
    check("scenarios=\"../x/\"", "scenarios contains parent segment: ../x/");
    check("scenarios=\"scripts/build.sh\"", "is not a folder");
    check("scenarios=\".glovebox/\"", ".glovebox");
    let linked = bench("", "label=b", DONE);
    std::os::unix::fs::symlink("answer.sh", linked.project().join("scripts/scenarios/link")).unwrap();
    linked.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(3).says("scripts/scenarios/link").says("link");
    assert!(!linked.run_folder("r").exists(), "a run that never began leaves nothing");
}

#[test]
fn commands_without_a_sandbox_are_refused_where_hold_outs_are_sealed() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
         test [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"out/\"]\n start -> test -> done }\n",
    );
    let unconfined = ["run", "pipeline.dot", "--dangerously-no-sandbox"];
    bench.glovebox(&unconfined).ends(0);
    bench.write(SCENARIO, SECRET);
    bench.glovebox(&unconfined).ends(6).says("the run has hold-outs").says("`test`");
}

/// Creates a loop of a builder and a verifier that runs the scenario. `turns` is the builder's script, `tool` are
/// attributes of the verifier.
fn judged(scenario: &str, tool: &str, turns: &str) -> Workbench {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n\
         \x20 build [shape=box, prompt=\"write answer.txt\", allowed_write_paths=\"answer.txt,scripts/\", \
         allowed_commands=\"*\"]\n\
         \x20 test [shape=parallelogram, tool_command=\"sh {SCENARIO}\", allowed_write_paths=\"out/,scripts/\", {tool}]\n\
         \x20 start -> build -> test; test -> done [condition=\"outcome=success\"]\n\
         \x20 test -> build [condition=\"outcome=fail\"]\n}}\n"
    ));
    bench.write(SCENARIO, scenario);
    std::fs::write(bench.outside().join("script.toml"), turns).unwrap();
    bench
}

fn shell(command: &str) -> String {
    tool("shell", &format!("command = {}", serde_json::Value::from(command)))
}

const ANSWER: &str =
    "tool = [{ name = \"write_file\", arguments = { path = \"answer.txt\", content = \"apples\" } }]\n";

#[test]
fn a_verifier_judges_by_the_sealed_copy_and_tells_its_verdict_with_hints() {
    let scenario = format!(
        "#!/bin/sh\ngrep -q apples answer.txt && exit 0\ncat $0\necho 'it wants: {}' >&2\necho 'hint: think of fruit' >&2\n\
         echo 'hint: {}'\nexit 3\n",
        "the colour of ripe apples from the valley", "what the valley grows is no secret"
    );
    let turns = format!("{DONE}[[node.build]]\n{ANSWER}{DONE}");
    let bench = judged(&scenario, "label=t", &turns);
    run(&bench).ends(0).says("verified (subject not isolated) test");
    let prompts = std::fs::read_dir(bench.run_folder("r").join("artifacts")).unwrap();
    let prompts: Vec<_> =
        prompts.map(|entry| entry.unwrap().path().join("prompt.md")).filter(|path| path.exists()).collect();
    let second = prompts.iter().find(|path| contains(path, "Failure feedback")).expect("a second prompt");
    let told = std::fs::read_to_string(second).unwrap();
    let withheld = "output withheld, because that stage can read hold-outs";
    let expected = format!(
        "failed_node: test\nfailure_reason: stage `test` failed; {withheld}\ndetails:\nsummary: verdict: fail; {withheld}\n\
         hint: think of fruit\nhint: what the valley grows is no secret\n"
    );
    assert!(told.ends_with(&expected), "{told}");
    for file in ["trace.jsonl", "checkpoint.json", "progress.ndjson", "test/status.json", "build/prompt.md"] {
        let text = bench.run_text("r", file);
        assert!(!text.contains("ripe") && !text.contains("grep -q"), "{file}: {text}");
    }
    assert!(bench.run_text("r", "artifacts/test.1.1/tool.stderr.txt").contains("ripe"), "people can read it");
    bench.glovebox(&["holdout", "status", "r"]).ends(0).says("in reach of  test").says("none found");
}

#[test]
fn scenario_feedback_full_tells_everything_on_the_record() {
    let scenario = "grep -q apples answer.txt && exit 0\necho 'the colour of ripe apples from the valley'\nexit 1\n";
    let bench = judged(scenario, "scenario_feedback=full", &format!("{DONE}[[node.build]]\n{ANSWER}{DONE}"));
    run(&bench).ends(0).says("builders get all output of `test`");
    assert!(bench.run_text("r", "build/prompt.md").contains("ripe apples"));
    bench.glovebox(&["holdout", "status", "r"]).ends(0).says("opt-out      builders can read what `test` prints");
}

/// The attack that defeats hold-outs which are only renamed: the builder writes a validator of its own at the place of
/// the hold-out.
#[test]
fn a_swapped_validator_is_never_what_runs() {
    let swap = format!("mkdir -p scripts/scenarios && echo 'exit 0' > {SCENARIO}; find . -name '*.sh'; git log; true");
    let more = shell("mv scripts old; mkdir -p scripts/scenarios; true");
    let turns = format!("{}{DONE}{more}{DONE}{DONE}", shell(&swap));
    let bench = judged("grep -q apples answer.txt\n", "label=t", &turns);
    bench.write("scripts/build.sh", "true\n");
    let answer = run(&bench);
    assert_ne!(answer.code, 0, "{}", answer.stdout);
    assert!(!bench.run_folder("r").join("workspace/scripts/scenarios").exists());
    bench.glovebox(&["holdout", "verify", "r"]).ends(0).says("sealed copy matches");
    let copies = format!("cp {SCENARIO} out/; mv scripts old || rm -rf scripts; mkdir -p scripts/scenarios");
    let scenario =
        format!("#!/bin/sh\nmkdir -p out; {copies}\n# the line that nobody but the judge may ever read\ntrue\n");
    for (writes, code, said) in
        [("scratch", 0, "quarantined  test: out"), ("commit", 8, "holdout_leak: a file of the stage")]
    {
        let bench = judged(&scenario, &format!("scenario_writes={writes}"), DONE);
        run(&bench).ends(code).says(said);
        assert!(!bench.run_folder("r").join("workspace/out").exists(), "a verifier leaves no copy behind");
    }
}

#[test]
fn a_builder_with_a_shell_finds_no_hold_out() {
    let search = "ls -aR . > answer.txt; cat scripts/scenarios/* >> answer.txt; \
        grep -rs apples / --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr >> answer.txt; \
        grep -o holdouts /proc/self/mountinfo >> answer.txt; true";
    let bench = judged(
        "grep -q 'ripe apples from the valley' answer.txt\n",
        "label=t",
        &format!("{}{DONE}{DONE}", shell(search)),
    );
    run(&bench);
    let found = bench.run_text("r", "workspace/answer.txt");
    assert!(!found.contains("apples") && !found.contains("scenarios") && !found.contains("holdouts"), "{found}");
}

#[test]
fn a_builder_that_opted_out_reads_them_and_writes_none() {
    let read = tool("read_file", &format!("path = \"{SCENARIO}\""));
    let builder = bench("", "codex.allow_read_scenarios=true", &format!("{read}{DONE}"));
    run(&builder).ends(0);
    let log = builder.run_folder("r").join("build/log.ndjson");
    assert!(!log.exists() || !contains(&log, "tool call failed"), "it was read");
    let write = tool("write_file", &format!("path = \"{SCENARIO}\", content = \"exit 0\""));
    let builder = bench("", "codex.allow_read_scenarios=true", &format!("{write}{DONE}"));
    run(&builder).ends(6).says("wrote disallowed files");
    assert!(!builder.run_folder("r").join("workspace").join(SCENARIO).exists());
}

/// A hostile program under test names a file after text of the hold-out, and the stage fails because the file is too
/// large.
#[test]
fn the_path_of_a_limit_tells_builders_nothing() {
    let scenario = "# the riddle's answer is forty-two apples\nsh answer.txt\n";
    let name = "$(grep -o \"riddle.s answer is .*\" scripts/scenarios/answer.sh)";
    let write = tool("write_file", &format!("path = \"answer.txt\", content = '''truncate -s 300M \"{name}\"'''"));
    let bench = judged(scenario, "label=t", &format!("{write}{DONE}[[node.build]]\ntext = \"OUTCOME: FAIL seen\"\n"));
    run(&bench).never_says("forty-two");
    let told = bench.run_text("r", "build/prompt.md");
    assert!(told.contains("failed_node: test\nfailure_reason: stage `test` failed; output withheld"), "{told}");
    let status = bench.run_json("r", "test/status.json").to_string();
    assert!(!told.contains("forty-two") && !status.contains("forty-two"), "{told}{status}");
}

/// An agent that may read hold-outs returns their text in keys, numbers and texts.
#[test]
fn a_builder_that_may_read_hold_outs_tells_others_its_verdict_alone() {
    let keys =
        "\"answer.forty-two.apples.in.a.basket\" = true, n = 4277009102, ready = \"forty-two\", kind = \"apples\"";
    let answer = |more: &str| {
        format!("[[node.build]]\ntext = \"done\"\noutcome = {{ {more}, context_updates = {{ {keys} }} }}\n")
    };
    let bench = Workbench::with_pipeline(
        "digraph g { graph [max_steps=4]; start [shape=Mdiamond]; done [shape=Msquare]\n\
         build [shape=box, prompt=\"x\", allowed_write_paths=\"notes/\", codex.allow_read_scenarios=true]\n\
         mend [shape=box, prompt=\"y\", allowed_write_paths=\"\"]\n start -> build; mend -> build\n\
         build -> done [condition=\"ready=yes\"]; build -> mend [condition=\"outcome=fail && kind!=pears\"] }\n",
    );
    bench.write(SCENARIO, &format!("#!/bin/sh\n{SECRET}\n"));
    let reason = "status = \"fail\", failure_reason = \"forty-two apples\", preferred_label = \"forty-two\"";
    let script = format!("{}[[node.mend]]\ntext = \"OUTCOME: SUCCESS\"\n{}", answer(reason), answer(reason));
    std::fs::write(bench.outside().join("script.toml"), script).unwrap();
    run(&bench).says("maximum step count");
    let context = bench.run_json("r", "checkpoint.json")["context"].take();
    assert_eq!((&context["ready"], &context["kind"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    assert!(context.as_object().unwrap().contains_key("ready"), "a condition names it");
    let told = bench.run_text("r", "mend/prompt.md");
    assert!(told.contains("failure_reason: stage `build` failed; output withheld"), "{told}");
    for text in [told, context.to_string(), bench.run_text("r", "trace.jsonl")] {
        assert!(!text.contains("forty") && !text.contains("4277009102"), "{text}");
    }
}

/// The leak check searches whole files that a builder with access to hold-outs writes, their names, and the targets of
/// links.
#[test]
fn parts_of_a_hold_out_in_files_names_and_links_raise_the_alarm() {
    let part = "apples in a wicker basket";
    let far = format!("head -c 5000000 /dev/zero | tr '\\0' x > answer.txt; echo ' two {part}' >> answer.txt");
    for write in [
        tool("write_file", &format!("path = \"answer.txt\", content = \"it says two {part}, twice\"")),
        shell(&far),
        shell(&format!("mkdir -p scripts/'two {part}'; echo x > scripts/'two {part}/a'")),
        shell(&format!("ln -s 'two {part}' scripts/link")),
    ] {
        let bench = bench("", "codex.allow_read_scenarios=true, allowed_commands=\"*\"", &format!("{write}{DONE}"));
        let leak = "holdout_leak: a file of the stage contains text of a hold-out scenario";
        run(&bench).ends(6).says(leak);
        let workspace = bench.run_folder("r").join("workspace");
        assert!(!workspace.join("answer.txt").exists() && !workspace.join("scripts/link").is_symlink());
        bench.glovebox(&["holdout", "status", "r"]).ends(0).says("scripts/scenarios/answer.sh:2");
    }
}

#[test]
fn git_of_a_project_with_a_repository_knows_one_commit_without_hold_outs() {
    let look = "{ git log --oneline --all; git ls-files; git status --porcelain; git cat-file --batch-all-objects --batch | grep -a -c apples; } > answer.txt 2>&1; true";
    let bench = judged(
        "grep -q 'ripe apples from the valley' answer.txt\n",
        "label=t",
        &format!("{}{DONE}{DONE}", shell(look)),
    );
    for words in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "ripe apples"],
    ] {
        let git = std::process::Command::new("git").args(words).current_dir(bench.project()).status();
        assert!(git.unwrap().success());
    }
    run(&bench);
    let found = bench.run_text("r", "workspace/answer.txt");
    let lines: Vec<&str> = found.lines().collect();
    assert!(lines[0].ends_with("the last commit of the project, as this stage sees it"), "{found}");
    assert_eq!(&lines[1..], ["pipeline.dot", "?? answer.txt", "0"], "{found}");
    assert!(!bench.run_folder("r").join("workspace/.git").exists());
}

#[test]
fn whoever_opts_out_is_told_and_recorded() {
    let builder = bench("", "codex.allow_read_scenarios=true", DONE);
    run(&builder).ends(0).says("may read the hold-outs");
    let sealed = builder.glovebox(&["holdout", "status", "r", "--json"]).ends(0).json();
    assert_eq!(sealed["opt_outs"][0], "builder `build` may read hold-outs");
    assert_eq!(sealed["reach"][0], "build");
    let own = bench("", "codex.block_read_paths=\"docs/\"", DONE);
    run(&own).ends(0).says("its `codex.block_read_paths` does not contain them");
    own.glovebox(&["holdout", "status", "r"]).ends(0).says("opt-out      builder `build` may read hold-outs");
    own.glovebox(&["plan", "pipeline.dot", "--json"]).ends(0).says("\"opt_outs\"");
}

#[test]
fn a_plugin_is_given_no_hold_outs_whatever_the_pipeline_says() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
         stage [type=\"evil.guest\", codex.allow_read_scenarios=true]\n start -> stage -> done }\n",
    );
    bench.write("glovebox.toml", "[plugins.\"evil.guest\"]\npath = \"guest.wasm\"\ngrants = {}\n");
    std::fs::write(bench.project().join("guest.wasm"), guests::component("(func $execute)")).unwrap();
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.glovebox(&["run", "pipeline.dot"]).ends(3).says("the plugin `evil.guest` may never read hold-outs");
}
