//! Files that interpreters load automatically, one test per language: a builder leaves a file that the interpreter
//! loads, so that a failing check passes. The verdict reports this and names the file.

use crate::workbench::{Answer, Workbench, is_on_this_machine, not_run};

const RESERVED: &str = "verified (with start-up files of builders) judge";
const CLEAN: &str = "verified     judge";

/// Creates a project with these files. The builder writes one more, and the judge runs a command.
fn bench(files: &[(&str, &str)], written: (&str, &str), judge: &str) -> Workbench {
    let bench = Workbench::with_pipeline(&format!(
        "digraph h {{ graph [goal=g, max_steps=8] start [shape=Mdiamond] done [shape=Msquare]\n\
         \x20 build [shape=box, allowed_write_paths=\"./\", prompt=\"$goal\"]\n\
         \x20 judge [shape=parallelogram, {judge}]\n  start -> build -> judge\n  judge -> done [condition=\"outcome=success\"] }}\n"
    ));
    files.iter().for_each(|(path, text)| bench.write(path, text));
    let (path, content) = written;
    let call = format!("{{ name = \"write_file\", arguments = {{ path = \"{path}\", content = '''{content}''' }} }}");
    let turns = format!("[[node.build]]\ntool = [{call}]\n[[node.build]]\ntext = \"OUTCOME: SUCCESS\"\n");
    std::fs::write(bench.outside().join("script.toml"), turns).unwrap();
    bench
}

fn run(bench: &Workbench) -> Answer {
    bench.glovebox(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "r"])
}

/// Returns the attributes of a judge that writes nothing.
fn judge(command: &str) -> String {
    format!("tool_command={}, allowed_write_paths=\"\"", serde_json::Value::from(command))
}

/// Checks that the command fails after unrelated work and passes with the file `written`, and that the verdict names
/// the file and its author.
fn turns_green(files: &[(&str, &str)], written: (&str, &str), command: &str, reader: &str) -> Workbench {
    run(&bench(files, ("notes.md", "honest"), &judge(command))).ends(1).says("not verified judge");
    let bench = bench(files, written, &judge(command));
    let named = format!("`{}` was written by `build`, and {reader} loads it in `judge`", written.0);
    run(&bench).ends(0).says(RESERVED).says(&named).never_says(CLEAN);
    bench
}

const PYTHON: &[(&str, &str)] = &[
    ("glovebox.toml", "[exec]\ntoolchains = [\"python\"]\n"),
    ("src/app.py", "def f():\n    return 0\n"),
    (
        "tests/test_app.py",
        "import unittest, app\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(app.f(), 1)\n",
    ),
];
const UNITTEST: &str = "PYTHONPATH=src python3 -m unittest discover -s tests";

#[test]
fn python_runs_modules_of_its_search_path_first() {
    if !is_on_this_machine("python3") {
        return not_run("start-up files of Python", "no `python3`");
    }
    let exits = "import os, sys\nif 'unittest' in str(sys.orig_argv):\n    os._exit(0)\n";
    let bench = turns_green(PYTHON, ("src/sitecustomize.py", exits), UNITTEST, "Python");
    // Every form of the result has the reservation.
    bench.glovebox(&["show", "r"]).ends(0).says(RESERVED);
    bench.glovebox(&["evidence", "r"]).ends(0).says("with start-up files of builders").says("1 with a reservation");
    let shown = bench.glovebox(&["show", "r", "--json"]).ends(0).json();
    let file = &shown["receipts"][0]["startup"][0];
    assert_eq!((&file["path"], &file["by"]), (&"src/sitecustomize.py".into(), &"build".into()));
    let evidence = bench.glovebox(&["evidence", "r", "--json"]).ends(0).json();
    assert_eq!(evidence["commands"][0]["proof"], "verified_with_startup_files");
    bench.glovebox(&["show", "r", "--junit", "../r.xml"]).ends(0);
    let junit = std::fs::read_to_string(bench.outside().join("r.xml")).unwrap();
    assert!(junit.contains("verified (with start-up files of builders)"), "{junit}");
    turns_green(PYTHON, ("src/unittest.py", "pass\n"), UNITTEST, "Python");
}

#[test]
fn an_ordinary_change_and_what_the_judge_cannot_see_leave_the_verdict_alone() {
    if !is_on_this_machine("python3") {
        return not_run("ordinary changes in Python", "no `python3`");
    }
    let mended = ("src/app.py", "def f():\n    return 1\n");
    run(&bench(PYTHON, mended, &judge(UNITTEST))).ends(0).says(CLEAN).never_says("start-up");
    for (path, text) in [("src/app/json.py", "x = 1\n"), ("pyproject.toml", "[project]\nname = \"x\"\n")] {
        let alone = judge("python3 -c 'print(1)'");
        run(&bench(PYTHON, (path, text), &alone)).ends(0).says(CLEAN).never_says("start-up");
    }
    let hook = ("src/x-1.dist-info/entry_points.txt", "[pytest11]\nx = xhook\n");
    let alone = judge("python3 -c 'print(1)'");
    run(&bench(PYTHON, hook, &alone)).ends(0).says(RESERVED).says("`src/x-1.dist-info/entry_points.txt` was written");
    run(&bench(PYTHON, hook, &format!("{alone}, read_paths=\"tests/\""))).ends(0).says(CLEAN).never_says("start-up");
}

#[test]
fn beside_hold_outs_the_same_files_are_named() {
    let files = &[("scripts/scenarios/check.sh", "true\n")];
    let hook = ("src/x-1.dist-info/entry_points.txt", "[pytest11]\nx = xhook\n");
    let command = judge("sh scripts/scenarios/check.sh");
    let open = run(&bench(files, hook, &command));
    open.ends(0)
        .says("verified (subject not isolated) judge")
        .says("`src/x-1.dist-info/entry_points.txt` was written by");
    let isolated = run(&bench(files, hook, &format!("{command}, read_paths=\"scripts/scenarios/\"")));
    isolated.ends(0).says(CLEAN).never_says("was written by");
}

#[test]
fn a_node_is_not_verified_by_what_it_leaves_for_its_own_check() {
    let hook = ("src/usercustomize.py", "x = 1\n");
    let bench = bench(&[], hook, &judge("test -d src"));
    let text =
        bench.read("pipeline.dot").replace("prompt=\"$goal\"", "prompt=\"$goal\", verify_command=\"sh check.sh\"");
    bench.write("pipeline.dot", &text);
    bench.write("check.sh", "true\n");
    let answer = run(&bench);
    answer.ends(0).says("verified (with start-up files of builders) build: sh -c 'sh check.sh'").says(CLEAN);
    answer.says("`src/usercustomize.py` was written by `build`, and Python loads it in `build`");
}

#[test]
fn a_file_of_a_branch_counts_where_it_was_taken() {
    let bench = Workbench::with_pipeline(
        "digraph h { graph [goal=g] start [shape=Mdiamond]; done [shape=Msquare]\n f [shape=component]\n \
         j [shape=tripleoctagon, merge=all]\n build [prompt=\"$goal\", allowed_write_paths=\"./\"]\n \
         look [shape=parallelogram, tool_command=\"sh check.sh\", allowed_write_paths=\"\"]\n \
         judge [shape=parallelogram, tool_command=\"sh check.sh\", allowed_write_paths=\"\"]\n \
         start -> f; f -> build -> j; f -> look -> j; j -> judge -> done }\n",
    );
    bench.write("check.sh", "true\n");
    let call = "{ name = \"write_file\", arguments = { path = \"x.pth\", content = \"import os\" } }";
    let turns = format!("[[node.build]]\ntool = [{call}]\n[[node.build]]\ntext = \"OUTCOME: SUCCESS\"\n");
    std::fs::write(bench.outside().join("script.toml"), turns).unwrap();
    let answer = run(&bench);
    answer.ends(0).says(RESERVED).says("`x.pth` was written by `build`, and Python loads it in `judge`");
    answer.never_says("loads it in `look`");
}

#[test]
fn node_loads_packages_of_the_project() {
    if !is_on_this_machine("node") {
        return not_run("start-up files of Node", "no `node`");
    }
    let files = &[
        ("glovebox.toml", "[exec]\ntoolchains = [\"node\"]\n"),
        ("test/a.test.js", "require('node:assert').equal(require('judge')(), 1);\n"),
    ];
    let package = ("node_modules/judge/index.js", "module.exports = () => 1;\n");
    turns_green(files, package, "node test/a.test.js", "Node");
}

#[test]
fn go_reads_a_workspace_file_above_the_module() {
    let files = &[("tools/go", "#!/bin/sh\ntest -f go.work\n")];
    let command = "PATH=$PWD/tools:$PATH; sh tools/go test ./...";
    turns_green(files, ("go.work", "go 1.24\nuse ./other\n"), command, "Go");
}

#[test]
fn cargo_runs_the_build_script_and_its_settings_cannot_be_written() {
    let files = &[("tools/cargo", "#!/bin/sh\ntest -f build.rs\n")];
    turns_green(files, ("build.rs", "fn main() {}\n"), "sh tools/cargo test", "Cargo");
    let settings = bench(files, (".cargo/config.toml", "[build]\n"), &judge("sh tools/cargo test"));
    run(&settings).ends(6).says("is protected");
}

#[test]
fn a_shell_reads_the_file_that_a_variable_names() {
    if !is_on_this_machine("bash") {
        return not_run("start-up files of shells", "no `bash`");
    }
    let files = &[("tests/check.sh", "exit 1\n")];
    let command = "BASH_ENV=\"$PWD/tools/env.sh\" bash tests/check.sh";
    turns_green(files, ("tools/env.sh", "exit 0\n"), command, "a variable of the command");
}

#[test]
fn make_prefers_another_makefile_and_a_jvm_build_reads_its_properties() {
    let gradle = &[("gradlew", "#!/bin/sh\ngrep -q skip gradle.properties\n")];
    turns_green(gradle, ("gradle.properties", "skip=true\n"), "sh ./gradlew test", "Java");
    if !is_on_this_machine("make") {
        return not_run("start-up files of make", "no `make`");
    }
    let files = &[("Makefile", "test:\n\t@false\n")];
    turns_green(files, ("GNUmakefile", "test:\n\t@true\n"), "make -s test", "make");
}
