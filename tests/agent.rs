//! Tests of the agent handler with the real binary: how its tools treat paths and returned text, and how the model's
//! last answer decides the status of the stage.
//!
//! The model is a script. Each case is one that a real model has produced. The witnesses are the project after `apply`
//! and the refusals in the summary.

use crate::workbench::{self, Answer, Workbench};

/// A pipeline with one agent stage.
fn stage(attributes: &str) -> Workbench {
    Workbench::with_pipeline(&format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n\
         \x20 work [prompt=\"Do it\", {attributes}]\n  start -> work -> done\n}}\n"
    ))
}

/// Runs the pipeline with `script` as the script of its model and checks the exit code.
fn scripted(bench: &Workbench, script: &str, exit: i32) -> Answer {
    bench.write("model.toml", script);
    let answer = bench.glovebox(&["run", "pipeline.dot", "--script", "model.toml", "--run-id", "r"]);
    answer.ends(exit);
    answer
}

fn call(tool: &str, arguments: &[(&str, &str)]) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let arguments: Vec<String> = arguments.iter().map(|(name, value)| format!("{name} = {}", quoted(value))).collect();
    format!("[[node.work]]\ntool = [{{ name = \"{tool}\", arguments = {{ {} }} }}]\n", arguments.join(", "))
}

const END: &str = "[[node.work]]\ntext = \"OUTCOME: SUCCESS\"\n";

#[test]
fn the_projects_own_path_is_the_workspace_and_every_other_absolute_path_is_refused() {
    let bench = stage("allowed_write_paths=\"./\"");
    bench.write("src/seen.txt", "seen\n");
    let project = bench.project().canonicalize().unwrap();
    let own = |path: &str| project.join(path).to_str().unwrap().to_owned();
    let outside = bench.outside().join("planted.txt");
    let outside = outside.to_str().unwrap();
    let script = [
        call("read_file", &[("path", &own("src/seen.txt"))]),
        call("write_file", &[("path", &own("src/a.txt")), ("content", "  1 | seen\n")]),
        call("edit_file", &[("path", &own("src/a.txt")), ("old_string", "seen"), ("new_string", "changed")]),
        call("grep", &[("pattern", "changed"), ("path", &own("src"))]),
        call("write_file", &[("path", outside), ("content", "EVIL")]),
        call("edit_file", &[("path", outside), ("old_string", "a"), ("new_string", "EVIL")]),
        call("read_file", &[("path", "/etc/passwd")]),
        call("glob", &[("path", "/etc"), ("pattern", "*")]),
        END.to_owned(),
    ];
    let answer = scripted(&bench, &script.concat(), 0);
    for said in [format!("write {outside}"), "read /etc/passwd".to_owned(), "list /etc".to_owned()] {
        answer.says(&said);
    }
    let record = bench.glovebox(&["show", "r", "--json"]).json().to_string();
    assert!(record.contains("use paths relative to the workspace, or below"), "{record}");
    bench.glovebox(&["apply", "r"]).ends(0);
    assert_eq!(bench.read("src/a.txt"), "changed\n");
    let first = project.components().nth(1).unwrap().as_os_str().to_str().unwrap().to_owned();
    assert!(!bench.has(&first) && !bench.has("etc"), "an absolute path was planted into the project");
}

/// Models write `\n`. A file keeps its own line ends, and its mode.
#[test]
fn a_file_keeps_its_line_ends_and_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let bench = stage("allowed_write_paths=\"./\"");
    bench.write("crlf.txt", "one\r\ntwo\r\nthree\r\n");
    let file = bench.project().join("crlf.txt");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let edit = [("path", "crlf.txt"), ("old_string", "one\ntwo"), ("new_string", "1\n2")];
    scripted(&bench, &[call("edit_file", &edit), END.to_owned()].concat(), 0);
    bench.glovebox(&["apply", "r"]).ends(0);
    assert_eq!(bench.read("crlf.txt"), "1\r\n2\r\nthree\r\n");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn no_folder_is_made_where_a_file_is_granted() {
    let bench = stage("allowed_write_paths=\"go.mod\"");
    let script = call("write_file", &[("path", "go.mod/inner.txt"), ("content", "x")]) + END;
    scripted(&bench, &script, 0).says("make directory go.mod");
    bench.glovebox(&["apply", "r"]).ends(0);
    assert!(!bench.has("go.mod"));
    // The granted file can be written. If a command creates a folder with this name, the commit rejects the folder.
    let script = call("write_file", &[("path", "go.mod"), ("content", "module x\n")]) + END;
    bench.write("model.toml", &script);
    bench.glovebox(&["run", "pipeline.dot", "--script", "model.toml", "--run-id", "s"]).ends(0);
    let bench = Workbench::with_pipeline(
        "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n\
         \x20 make [shape=parallelogram, tool_command=\"mkdir go.mod\", allowed_write_paths=\"go.mod\"]\n\
         \x20 start -> make -> done\n}\n",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(6).says("go.mod");
}

#[test]
fn an_answer_ends_the_stage_as_its_marker_says() {
    let check = |text: &str, exit: i32, said: &str| {
        let bench = stage("allowed_write_paths=\"\"");
        let script = format!("[[node.work]]\ntext = {}\n", serde_json::Value::from(text));
        scripted(&bench, &script, exit).says(said);
    };
    check("done\nOUTCOME: SUCCESS", 0, "success");
    check("OUTCOME: FAILED\nno compiler", 1, "declared fail");
    check("I give up here (OUTCOME: FAILURE: no compiler)", 1, "no compiler");
    check("the OUTCOME: SUCCESS is near, OUTCOME: FAIL", 1, "declared fail");
    check("OUTCOME: DONE", 1, "the outcome `DONE`");
}

#[test]
fn success_is_simulated_only_when_it_is_asked_for_and_the_summary_says_so() {
    let bench = Workbench::with_pipeline(workbench::LINEAR);
    let run = |words: &[&str]| Answer::of(&mut bench.bare(&[&["run", "pipeline.dot"], words].concat()));
    run(&[]).ends(8).says("error: no model answers `build`").says("--script FILE").says("--simulate");
    assert!(!bench.has(".glovebox/runs"), "no run begins");
    bench.glovebox(&["plan", "pipeline.dot"]).ends(0).says("no model answers `build`");
    run(&["--simulate", "--run-id", "r"]).ends(0).says("simulated    build: no model was asked");
    bench.glovebox(&["show", "r"]).ends(0).says("simulated    build: no model was asked");
    let shown = bench.glovebox(&["show", "r", "--json"]).ends(0).json();
    assert_eq!((&shown["model"], shown["simulated"].to_string()), (&"simulated".into(), r#"["build"]"#.to_owned()));
    run(&["--simulate", "--script", "script.toml"]).ends(2).says("--simulate");
    bench.write("pipeline.dot", &workbench::LINEAR.replace("shape=box", "shape=box, test.outcome=success"));
    run(&["--run-id", "tested"]).ends(0).never_says("no model was asked");
    bench.write("pipeline.dot", "digraph g { start -> t -> exit; t [shape=octagon, command=true]; start; exit }");
    run(&[]).ends(0).never_says("no model");
}

/// All tool calls of one answer are answered in one turn, in the order of the calls, each with its own result.
#[test]
fn all_calls_of_an_answer_are_answered_at_once_and_in_order() {
    let bench = stage("allowed_write_paths=\"src/\"");
    bench.write("src/a.txt", "apple\n");
    bench.write("src/b.txt", "birch\n");
    let calls = [
        r#"{ name = "read_file", arguments = { path = "src/b.txt" } }"#,
        r#"{ name = "grep", arguments = { pattern = "apple" } }"#,
        r#"{ name = "read_file", arguments = { path = "src/none.txt" } }"#,
        r#"{ name = "write_file", arguments = { path = "src/c.txt", content = "cedar" } }"#,
        r#"{ name = "read_file", arguments = { path = "src/c.txt" } }"#,
        r#"{ name = "glob", arguments = { pattern = "src/*.txt" } }"#,
    ];
    scripted(&bench, &format!("[[node.work]]\ntool = [{}]\n{END}", calls.join(", ")), 0);
    let turns = bench.glovebox(&["transcript", "r", "work", "--json"]).ends(0).json_lines();
    assert_eq!(turns.len(), 2);
    let ids: Vec<String> = turns[0]["answer"].as_array().unwrap().iter().map(|part| field(part, "id")).collect();
    let told = turns[1]["asked"].as_array().unwrap();
    let results = told.last().unwrap()["parts"].as_array().unwrap();
    assert_eq!(ids, results.iter().map(|part| field(part, "call-id")).collect::<Vec<_>>());
    let expected = ["birch", "src/a.txt:1: apple", "none.txt", "wrote 5 bytes", "cedar", "src/c.txt"];
    for (part, expected) in results.iter().zip(expected) {
        assert!(part["text"].as_str().unwrap().contains(expected), "{expected}: {part}");
    }
    assert_eq!((results.len(), field(&results[2], "is-error").as_str()), (6, "true"));
}

/// Returns the field `name` of a message part, or an empty string.
fn field(part: &serde_json::Value, name: &str) -> String {
    let fields = part["fields"].as_array().into_iter().flatten();
    let found = fields.filter(|pair| pair[0] == name).find_map(|pair| pair[1].as_str());
    found.unwrap_or_default().to_owned()
}
