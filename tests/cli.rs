//! Every command with the real binary: its output, its exit code, and that an error names the place in the input and
//! the remedy.

use crate::workbench::{self, LINEAR, Workbench};
use serde_json::Value;

#[test]
fn usage_errors_end_with_2_and_say_what_is_expected() {
    let bench = Workbench::with_pipeline(LINEAR);
    for (words, said) in [
        (&[][..], "Usage: glovebox"),
        (&["frobnicate"], "unrecognized subcommand"),
        (&["check", "--for", "nothing"], "invalid value 'nothing'"),
        (&["run", "pipeline.dot", "--set", "novalue"], "expected KEY=VALUE"),
        (&["run", "pipeline.dot", "--max-steps", "0"], "--max-steps"),
        (&["graph", "pipeline.dot"], "--format"),
        (&["check", "absent.dot"], "read `absent.dot`"),
        (&["show", "latest"], "no runs in `.glovebox/runs`"),
        (&["resume", "nothing", "--runs-dir", "elsewhere"], "no runs in `elsewhere`"),
        (&["diff", "latest"], "no runs"),
        (&["apply", "latest"], "no runs"),
    ] {
        bench.glovebox(words).ends(2).says(said);
    }
    Workbench::new().glovebox(&["check"]).ends(2).says("no pipeline is named, and there is no `pipeline.dot`");
    bench.glovebox(&["check"]).ends(0).says("pipeline.dot");
}

#[test]
fn help_and_version_end_with_0() {
    let bench = Workbench::new();
    bench.glovebox(&["--help"]).ends(0).says("Exit codes");
    bench.glovebox(&["help", "run"]).ends(0).says("--dangerously-no-sandbox");
    bench.glovebox(&["--version"]).ends(0).says("glovebox 0.");
    let version = bench.glovebox(&["version", "--json"]).ends(0).json();
    assert_eq!(version["plugin_package"], "glovebox:plugin@0.1.0");
    let names: Vec<&str> =
        version["components"].as_array().unwrap().iter().filter_map(|c| c["name"].as_str()).collect();
    assert_eq!(
        names,
        ["codergen", "diff-limits", "json-schema", "junit", "tool", "tree-assert", "verification", "verify"]
    );
}

#[test]
fn a_valid_pipeline_is_checked_without_a_word_on_stdout() {
    let bench = Workbench::with_pipeline(&LINEAR.replace("allowed_write_paths=\"src/\"", "allowed_write_paths=\"\""));
    let answer = bench.glovebox(&["check", "pipeline.dot"]);
    answer.ends(0).says("1 checked: 0 errors");
    assert_eq!(answer.stdout, "");
    bench.write("quiet.dot", "digraph quiet { start; exit; start -> exit }");
    assert_eq!(bench.glovebox(&["check", "quiet.dot", "--format", "json"]).ends(0).json(), Value::Array(Vec::new()));
}

#[test]
fn check_points_at_the_place_inside_a_string() {
    let bench = Workbench::with_pipeline(
        &LINEAR.replace("build -> exit", "build; build -> exit [condition=\"outcome == success\"]"),
    );
    bench.write("good.dot", LINEAR);
    bench.glovebox(&["check", "good.dot", "pipeline.dot"]).ends(3).says("pipeline.dot:6:").says("outcome == success");
    let found = bench.glovebox(&["check", "good.dot", "pipeline.dot", "--format", "json"]).ends(3).json();
    let first = found.as_array().unwrap().iter().find(|found| found["severity"] == "error").unwrap();
    assert_eq!((&first["file"], &first["line"]), (&"pipeline.dot".into(), &6.into()));
    let span = &first["span"];
    let (start, end) = (span["start"].as_u64().unwrap() as usize, span["end"].as_u64().unwrap() as usize);
    assert!(bench.read("pipeline.dot")[start..end].contains('='), "the span covers the operator: {first}");
}

#[test]
fn every_file_is_reported_even_when_the_first_is_bad() {
    let bench = Workbench::new();
    bench.write("a.dot", "digraph a {");
    bench.write("b.dot", "graph b { }");
    bench.write("c.dot", "");
    bench.glovebox(&["check", "a.dot", "b.dot", "c.dot"]).ends(3).says("a.dot:").says("b.dot:").says("c.dot:");
}

#[test]
fn a_hostile_file_cannot_drive_the_terminal() {
    let bench =
        Workbench::with_pipeline("digraph g {\n  a [label=\"\u{1b}]0;owned\u{7}\u{202e}\", shape=\u{1b}[2J]\n}\n");
    let answer = bench.glovebox(&["check", "pipeline.dot"]);
    answer.ends(3).never_says("\u{1b}").never_says("\u{202e}").never_says("\u{7}");
    let mut forced = bench.command(&["check", "pipeline.dot"]);
    let coloured = workbench::Answer::of(forced.env("CLICOLOR_FORCE", "1"));
    coloured.ends(3).says("\u{1b}[").never_says("\u{1b}]0;").never_says("\u{1b}[2J");
    workbench::Answer::of(forced.env("NO_COLOR", "1")).ends(3).never_says("\u{1b}");
}

#[test]
fn files_that_are_no_text_are_refused_with_the_place() {
    let bench = Workbench::new();
    std::fs::write(bench.project().join("bytes.dot"), b"digraph \xff {}").unwrap();
    bench.glovebox(&["check", "bytes.dot"]).ends(3).says("not UTF-8 text at byte 8");
    std::fs::write(bench.project().join("huge.dot"), vec![b' '; 65 << 20]).unwrap();
    bench.glovebox(&["check", "huge.dot"]).ends(3).says("at most");
}

#[test]
fn graph_prints_nodes_and_edges_and_reads_its_own_dot() {
    let bench = Workbench::with_pipeline(LINEAR);
    let graph = bench.glovebox(&["graph", "pipeline.dot", "--format", "json"]).ends(0).json();
    let ids: Vec<&str> = graph["nodes"].as_array().unwrap().iter().filter_map(|node| node["id"].as_str()).collect();
    assert_eq!(ids, ["start", "build", "exit"]);
    assert_eq!((&graph["edges"][1]["from"], &graph["edges"][1]["to"]), (&"build".into(), &"exit".into()));
    let dot = bench.glovebox(&["graph", "pipeline.dot", "--format", "dot"]).ends(0).stdout.clone();
    bench.write("again.dot", &dot);
    assert_eq!(bench.glovebox(&["graph", "again.dot", "--format", "dot"]).ends(0).stdout, dot);
    assert_eq!(bench.glovebox(&["graph", "again.dot", "--format", "json"]).ends(0).json(), graph);
}

#[test]
fn a_component_is_inspected_and_anything_else_is_refused() {
    let bench = Workbench::new();
    let tool = workbench::root().join("target/components/tool.wasm");
    std::fs::copy(tool, bench.project().join("tool.wasm")).unwrap();
    bench.glovebox(&["plugin", "inspect", "tool.wasm"]).ends(0).says("digest    blake3:").says("glovebox:plugin/exec");
    let json = bench.glovebox(&["plugin", "inspect", "tool.wasm", "--json"]).ends(0).json();
    assert!(json["imports"].as_array().unwrap().iter().any(|import| import["name"].as_str().unwrap().contains("exec")));
    let whole = std::fs::read(bench.project().join("tool.wasm")).unwrap();
    let async_built = wat::parse_str("(component (core func (canon task.cancel)))").unwrap();
    for (name, bytes, said) in [
        ("text", &b"not a component"[..], "`text.wasm` cannot be used: not WebAssembly; build for `wasm32-wasip2`"),
        ("empty", b"", "`empty.wasm` cannot be used: the file is empty"),
        ("cut", &whole[..whole.len() / 2], "`cut.wasm` cannot be used: the file is cut off"),
        ("core", &wat::parse_str("(module)").unwrap(), "a core module, expected a component"),
        (
            "core",
            &wat::parse_str("(module)").unwrap(),
            "help: build for `wasm32-wasip2`, or make a component of it: `wasm-tools",
        ),
        ("async", &async_built, "features that this host does not support: async functions of the component model"),
        ("async", &async_built, "help: build it without async; componentize-qjs: `--sync`"),
    ] {
        let file = format!("{name}.wasm");
        std::fs::write(bench.project().join(&file), bytes).unwrap();
        let answer = bench.glovebox(&["plugin", "inspect", &file]);
        answer.ends(7).says(said);
        assert!(answer.stderr.lines().count() <= 2, "one line and its help: {}", answer.stderr);
    }
    std::fs::create_dir(bench.project().join("folder.wasm")).unwrap();
    bench.glovebox(&["plugin", "inspect", "folder.wasm"]).ends(7).says("expected a file, found a folder");
    bench.glovebox(&["plugin", "inspect", "absent.wasm"]).ends(2).says("read `absent.wasm`");
    bench.glovebox(&["plugin", "inspect", "/dev/zero"]).ends(7).says("expected a file, found a device");
}

#[test]
fn no_runs_is_an_empty_list() {
    let bench = Workbench::new();
    bench.glovebox(&["ls"]).ends(0).says("no runs");
    assert_eq!(bench.glovebox(&["ls", "--json"]).ends(0).json()["runs"], Value::Array(Vec::new()));
}

const SCRIPT: &str = "[[node.build]]
tool = [{ name = \"write_file\", arguments = { path = \"src/new.txt\", content = \"one\\ntwo\\n\" } }]
[[node.build]]
text = \"done \\u001b[31mred\\u001b[0m\"
";

/// Creates a project with a finished run `first`.
fn with_run() -> Workbench {
    let bench = Workbench::with_pipeline(LINEAR);
    bench.write("script.toml", SCRIPT);
    bench.glovebox(&["run", "pipeline.dot", "--script", "script.toml", "--run-id", "first"]).ends(0);
    bench
}

#[test]
fn a_run_is_told_line_by_line_and_summed_up() {
    let bench = Workbench::with_pipeline(LINEAR);
    bench.write("script.toml", SCRIPT);
    let answer = bench.glovebox(&["run", "pipeline.dot", "--script", "script.toml"]);
    answer.ends(0).never_says("\u{1b}");
    for line in [" run started ", " build started", " build success ", " run success"] {
        assert!(answer.stderr.contains(line), "{line}: {}", answer.stderr);
    }
    assert!(answer.stderr.lines().filter(|line| line.contains(" build ")).all(|line| line.as_bytes()[2] == b':'));
    for line in [
        "run  ",
        "verified     nothing",
        "changed      src/new.txt (8 bytes)",
        "next         glovebox diff latest, then glovebox apply latest",
    ] {
        assert!(answer.stdout.contains(line), "{line}: {}", answer.stdout);
    }
    let quiet = bench.glovebox(&["run", "pipeline.dot", "--script", "script.toml", "--quiet"]);
    quiet.ends(0).says("changed").never_says("model turn");
}

#[test]
fn json_is_the_journal_and_then_the_verdict() {
    let bench = Workbench::with_pipeline(LINEAR);
    let answer = bench.glovebox(&["run", "pipeline.dot", "--json", "--run-id", "j"]);
    let mut records = answer.ends(0).json_lines();
    let verdict = records.pop().unwrap();
    assert_eq!((&verdict["document"], &verdict["status"]), (&"verdict".into(), &"success".into()));
    assert_eq!(verdict, bench.glovebox(&["show", "j", "--json"]).ends(0).json(), "the same document");
    assert_eq!(verdict["journal"]["hash"], records.last().unwrap()["hash"]);
    assert_eq!(records[0]["event"]["kind"], "run.started");
    assert_eq!(records.last().unwrap()["event"]["kind"], "run.finished");
    for (index, record) in records.iter().enumerate() {
        assert_eq!(record["seq"], index as u64 + 1);
        assert_eq!(
            record["prev"],
            if index == 0 { format!("blake3:{}", "0".repeat(64)).into() } else { records[index - 1]["hash"].clone() }
        );
    }
    let stored: Vec<Value> =
        bench.run_text("j", "progress.ndjson").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(stored, records);
}

#[test]
fn runs_are_listed_shown_and_selected() {
    let bench = with_run();
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "second"]).ends(0);
    let list = bench.glovebox(&["ls", "--json"]).ends(0).json();
    let ids: Vec<&str> = list["runs"].as_array().unwrap().iter().filter_map(|run| run["id"].as_str()).collect();
    assert_eq!(ids, ["second", "first"]);
    assert_eq!((&list["runs"][1]["pipeline"], &list["runs"][1]["status"]), (&"ship".into(), &"success".into()));
    bench.glovebox(&["ls"]).ends(0).says("second").says("success");
    bench.glovebox(&["show", "latest"]).ends(0).says("second of ship: success");
    bench.glovebox(&["show", "fi"]).ends(0).says("first of ship").says("glovebox diff first");
    bench.glovebox(&["show", "nothing"]).ends(2).says("no run `nothing`");
    let shown = bench.glovebox(&["show", "first", "--json"]).ends(0).json();
    assert_eq!((&shown["exit"]["code"], &shown["exit"]["name"]), (&0.into(), &"ok".into()));
    assert_eq!((&shown["changed"][0]["path"], &shown["visited"][0]["node"]), (&"src".into(), &"build".into()));
    bench.glovebox(&["show", "first", "build"]).ends(0).says("attempt").says("limit").says("-> exit");
    bench.glovebox(&["show", "first", "biuld"]).ends(2).says("never visited a node `biuld`").says("`build`");
    assert!(!bench.glovebox(&["show", "first", "build", "--json"]).ends(0).json().as_array().unwrap().is_empty());
}

#[test]
fn runs_may_be_kept_elsewhere_and_are_never_copied_into_a_run() {
    let bench = Workbench::with_pipeline(LINEAR);
    for id in ["one", "two"] {
        bench
            .glovebox(&["run", "pipeline.dot", "--runs-dir", "my runs", "--run-id", id])
            .ends(0)
            .says("--runs-dir 'my runs'");
    }
    assert!(!bench.has(".glovebox"));
    assert!(bench.has("my runs/two/workspace/pipeline.dot"));
    assert!(!bench.has("my runs/two/workspace/my runs"), "runs are no part of the project");
    bench.glovebox(&["show", "latest", "--runs-dir", "my runs"]).ends(0).says("two");
    bench.glovebox(&["show", "latest"]).ends(2);
}

#[test]
fn diff_and_apply_bring_a_result_home() {
    let bench = with_run();
    bench.glovebox(&["diff", "first"]).ends(0).says("+++ b/src/new.txt").says("+two");
    let listed = bench.glovebox(&["diff", "first", "--json"]).ends(0).json();
    assert!(listed["files"].as_array().unwrap().iter().any(|file| file["path"] == "src/new.txt"));
    assert!(!bench.has("src/new.txt"));
    let elsewhere = bench.outside().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    bench.glovebox(&["apply", "first", "--workdir", elsewhere.to_str().unwrap()]).ends(0);
    assert_eq!(std::fs::read_to_string(elsewhere.join("src/new.txt")).unwrap(), "one\ntwo\n");
    bench.glovebox(&["apply", "first", "--json"]).ends(0).says("src/new.txt");
    assert_eq!(bench.read("src/new.txt"), "one\ntwo\n");
}

#[test]
fn a_run_that_has_ended_is_resumed_as_it_ended() {
    let bench = with_run();
    bench.glovebox(&["resume", "first"]).ends(0).says("first of ship: success");
    let failing = LINEAR.replace("prompt=\"Do", "test.outcome=fail, prompt=\"Do");
    bench.write("failing.dot", &failing);
    bench.glovebox(&["run", "failing.dot", "--run-id", "bad"]).ends(1).says("glovebox show latest");
    bench.glovebox(&["resume", "bad"]).ends(1).says("fail");
    bench.glovebox(&["apply", "bad"]).ends(6).says("run `bad` failed");
}

#[test]
fn what_is_refused_leaves_no_run_behind() {
    let bench = Workbench::with_pipeline(LINEAR);
    bench.write("broken.toml", "[[node.build]]\ntext = \n");
    bench.write("odd.toml", "[[node.build]]\nwords = \"x\"\n");
    for (words, code, said) in [
        (&["run", "absent.dot"][..], 2, "absent.dot"),
        (&["run", "pipeline.dot", "--workdir", "absent"], 2, "open workdir `absent`"),
        (&["run", "pipeline.dot", "--workdir", "pipeline.dot"], 2, "not a directory"),
        (&["run", "pipeline.dot", "--script", "absent.toml"], 2, "absent.toml"),
        (&["run", "pipeline.dot", "--script", "broken.toml"], 3, "`broken.toml` line 2"),
        (&["run", "pipeline.dot", "--script", "odd.toml"], 3, "words"),
        (&["run", "pipeline.dot", "--set", "nobody=asks"], 3, "nobody"),
        (&["plan", "pipeline.dot", "--set", "nobody=asks"], 3, "nobody"),
        (&["plugin", "lock"], 3, "nothing to lock"),
    ] {
        bench.glovebox(words).ends(code).says(said);
    }
    assert!(!bench.has(".glovebox"));
}

#[test]
fn plan_says_what_commands_would_reach() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n  build [shape=parallelogram, tool_command=\"true\", \
         allowed_write_paths=\"app/\", cache=\"target/\", \"codex.workdir\"=\"app\", \"codex.strict_read_scope\"=true]\n\
         \x20 lint [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\", network=none]\n  start -> build -> lint -> done\n}\n",
    );
    let data = bench.outside().join("data");
    std::fs::create_dir(&data).unwrap();
    let data = data.display().to_string();
    let sandbox = format!("network = {{ proxy = [\"*.crates.io\"] }}\nread = [\"{data}\"]\nscratch = [\"tmp/\"]");
    bench.write("glovebox.toml", &format!("[sandbox]\n{sandbox}\n"));
    let shown = bench.glovebox(&["plan", "pipeline.dot"]);
    let of = |node: &str| {
        let lines = shown.stdout.lines().skip_while(|line| !line.starts_with(node));
        lines.take_while(|line| line.starts_with(node) || line.starts_with(' ')).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        of("build"),
        format!(
            "build (tool, built in)\n  read     {data}, app/\n  write    app/\n  execute  true\n  reach    *.crates.io\n  \
             scratch  tmp/\n  cache    target/\n  model    no\n  spend    1000 commands, 10m00s per visit\n  starts   app"
        )
    );
    assert!(
        of("lint").contains(&format!("  read     ./, {data}\n  write    nothing\n"))
            && of("lint").contains("  reach    nothing\n")
    );
    shown.ends(0).says("network proxy:*.crates.io");
}

#[test]
fn a_node_asks_for_no_more_network_than_is_granted() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n  t [shape=parallelogram, tool_command=\"true\", \
         allowed_write_paths=\"\", network=full]\n  start -> t -> done\n}\n",
    );
    for command in ["plan", "run"] {
        let answer = bench.glovebox(&[command, "pipeline.dot"]);
        answer
            .ends(3)
            .says("node `t` asks for the network `full`, but the operator grants `none`")
            .says("`network = \"full\"` under `[sandbox]`");
    }
}

#[test]
fn plan_says_what_could_happen_and_runs_nothing() {
    let bench = Workbench::with_pipeline(LINEAR);
    bench
        .glovebox(&["plan", "pipeline.dot"])
        .ends(0)
        .says("write    src/")
        .says("execute  nothing")
        .says("reach    nothing");
    let plan = bench.glovebox(&["plan", "pipeline.dot", "--json", "--max-steps", "7"]).ends(0).json();
    assert_eq!(plan["steps_max"], 7);
    assert_eq!(plan["could"]["write"], serde_json::json!(["src/"]));
    assert_eq!(bench.glovebox(&["plan", "pipeline.dot", "--json", "--max-steps", "7"]).ends(0).json(), plan);
    assert!(!bench.has(".glovebox"));
}

#[test]
fn a_pipeline_outside_the_project_uses_the_configuration_beside_it() {
    let bench = Workbench::new();
    bench.write("pipelines/ship.dot", LINEAR);
    bench.write("pipelines/glovebox.toml", "[limits]\nturns = 0\nnonsense = 1\n");
    bench.write("app/README.md", "app\n");
    let run = ["run", "pipelines/ship.dot", "--workdir", "app", "--run-id", "x"];
    bench.glovebox(&run).ends(3).says("nonsense").says("pipelines/glovebox.toml:3");
    bench.write("pipelines/glovebox.toml", "");
    bench.glovebox(&run).ends(0);
    assert_eq!(bench.run_text("x", "workspace/README.md"), "app\n");
    assert!(!bench.run_folder("x").join("workspace/pipelines").exists());
}

#[test]
fn what_the_copy_cannot_take_is_named() {
    let bench = Workbench::with_pipeline(LINEAR);
    let pipe = std::process::Command::new("mkfifo").arg(bench.project().join("outside")).status();
    assert!(pipe.unwrap().success());
    bench.write("new\nline", "x");
    bench
        .glovebox(&["run", "pipeline.dot", "--quiet"])
        .ends(0)
        .says("left out of the run: outside: it is not a regular file")
        .says("line: its name is not valid UTF-8 or has characters that could deceive a reader");
}

#[test]
fn input_without_an_end_is_cut_and_every_file_is_reported() {
    let bench = Workbench::with_pipeline(LINEAR);
    bench.write("bad.dot", "digraph {");
    std::fs::File::create(bench.project().join("endless.dot")).unwrap().set_len(1 << 40).unwrap();
    let answer = bench.glovebox(&["check", "endless.dot", "absent.dot", ".", "bad.dot", "pipeline.dot"]);
    answer
        .ends(3)
        .says("`endless.dot` is too long")
        .says("read `absent.dot`")
        .says("`.` is a folder")
        .says("bad.dot:1:");
}

#[test]
fn a_long_list_of_refusals_names_the_command_that_has_them_all() {
    let bench = Workbench::with_pipeline(LINEAR);
    let write =
        |index: usize| format!("{{ name = \"write_file\", arguments = {{ path = \"no{index}\", content = \"x\" }} }}");
    let calls: Vec<String> = (0..12).map(write).collect();
    bench.write(
        "script.toml",
        &format!("[[node.build]]\ntool = [{}]\n[[node.build]]\ntext = \"done\"\n", calls.join(", ")),
    );
    let answer = bench.glovebox(&["run", "pipeline.dot", "--script", "script.toml"]);
    answer.ends(0).says("refused      build: and 2 more: glovebox show latest build");
    bench.glovebox(&["show", "latest", "build"]).ends(0).says("write no0").says("write no11");
    let two = LINEAR
        .replace("build -> exit", "build -> polish -> exit")
        .replace("  exit [", "  polish [shape=box, prompt=\"Do: $goal\", allowed_write_paths=\"src/\"]\n  exit [");
    bench.write("two.dot", &two);
    let more = format!(
        "{}[[node.polish]]\ntool = [{}]\n[[node.polish]]\ntext = \"done\"\n",
        bench.read("script.toml"),
        write(99)
    );
    bench.write("two.toml", &more);
    let answer = bench.glovebox(&["run", "two.dot", "--script", "two.toml"]);
    answer
        .ends(0)
        .says("refused      build: and 7 more: glovebox show latest build")
        .says("refused      polish: write no99");
}

#[test]
fn show_answers_for_every_node_and_prints_what_a_command_said() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
         t [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"echo größe; printf 'a\\\\033[2Jb' >&2\"]\n\
         v [shape=octagon, allowed_write_paths=\"\", command=\"echo checked; exit 3\"]\n\
         start -> t -> v; v -> done [condition=\"outcome=fail\"] }",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    bench.glovebox(&["show", "r", "t"]).ends(0).says("| größe").says("| a\\x1b[2Jb").never_says("\u{1b}");
    bench.glovebox(&["show", "r", "v"]).ends(0).says("| checked").says("verify command failed (exit 3)");
    bench.glovebox(&["show", "r", "done"]).ends(0).says("v -> done (condition)");
    bench.glovebox(&["show", "r", "never"]).ends(2).says("`done`, `start`, `t`, `v`");
    let shown = bench.glovebox(&["show", "r", "--json"]).ends(0).json();
    let verified: Vec<(&str, bool)> = shown["receipts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|receipt| (receipt["node"].as_str().unwrap(), receipt["verified"].as_bool().unwrap()))
        .collect();
    assert_eq!(verified, [("t", true), ("v", false)]);
}

#[test]
fn diff_names_binary_and_removed_files_and_knows_what_was_applied() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
         t [shape=parallelogram, allowed_write_paths=\"bin,old,gone,new/\", \
         tool_command=\"printf 'a\\\\0b' > bin; echo 2 >> old; mkdir new; mv gone new/moved\"]\n\
         start -> t -> done }",
    );
    bench.write("old", "1\n");
    bench.write("gone", "x\n");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    let patch = |bench: &Workbench| bench.glovebox(&["diff", "r"]).ends(0).stdout.clone();
    let before = patch(&bench);
    for part in [
        "diff --git a/bin b/bin\nnew file mode 100644\n",
        "GIT binary patch\nliteral 3\n",
        "\n 1\n+2\n",
        "rename from gone\nrename to new/moved\n",
    ] {
        assert!(before.contains(part), "{part:?} is not in {before}");
    }
    bench
        .glovebox(&["diff", "r", "--stat"])
        .ends(0)
        .says("bin (new)")
        .says("Bin 0 -> 3 bytes")
        .says("gone => new/moved");
    bench.glovebox(&["diff", "r", "--", "old"]).ends(0).says("+2").never_says("gone");
    bench.glovebox(&["diff", "r", "--", "src"]).ends(2).says("the run did not change `src`").says("`gone`");
    bench.glovebox(&["apply", "r"]).ends(0).says("removed gone").says("wrote   new/\n");
    bench.glovebox(&["apply", "r"]).ends(0).says("nothing to apply");
    assert_eq!(patch(&bench), before, "a run keeps what it replaced");
}

#[test]
fn a_reader_that_goes_away_stops_nothing() {
    let bench = Workbench::with_pipeline(LINEAR);
    let pipes = || std::process::Stdio::piped();
    for (words, log) in [
        (&["run", "pipeline.dot", "--run-id", "a"][..], "debug"),
        (&["run", "pipeline.dot", "--json", "--run-id", "b"], "warn"),
    ] {
        let mut child = bench.command(words).env("GLOVEBOX_LOG", log).stdout(pipes()).stderr(pipes()).spawn().unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        assert_eq!(child.wait().unwrap().code(), Some(0), "{words:?}");
    }
    for run in ["a", "b"] {
        assert_eq!(bench.run_json(run, "final.json")["status"], "success");
    }
}
