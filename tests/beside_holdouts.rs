//! Files that a builder leaves for the tools of a stage with hold-outs: a test for each row of the table in
//! docs/holdouts.md.

use crate::workbench::{Answer, Workbench, is_on_this_machine, not_run};

/// A line of the hold-outs, which a builder's code prints if it can read the file.
const SECRET: &str = "the riddle is about forty-two apples in a wicker basket";
const TELLS: &str = "grep -h riddle scripts/scenarios/answer.txt";
const OPEN: &str = "label=open";
const ISOLATED: &str = "read_paths=\"scripts/scenarios/\"";

/// Runs a pipeline whose builder writes the file and whose judge runs `line` in a stage with hold-outs.
fn run((path, content): (&str, &str), line: &str, judge: &str) -> (Answer, Workbench) {
    let bench = Workbench::with_pipeline(&format!(
        "digraph h {{ graph [goal=g, max_steps=8] start [shape=Mdiamond] done [shape=Msquare]\n\
         \x20 build [shape=box, allowed_write_paths=\"./\", prompt=\"$goal\"]\n\
         \x20 judge [shape=octagon, command=\"sh scripts/scenarios/check.sh\", {judge}]\n  start -> build -> judge -> done }}\n"
    ));
    bench.write("scripts/scenarios/answer.txt", &format!("{SECRET}\n"));
    bench.write("scripts/scenarios/check.sh", &format!("{line}\ntrue\n"));
    bench.write("glovebox.toml", "[exec]\ntoolchains = [\"python\"]\n");
    let call = format!("{{ name = \"write_file\", arguments = {{ path = \"{path}\", content = '''{content}''' }} }}");
    let turns = format!("[[node.build]]\ntool = [{call}]\n[[node.build]]\ntext = \"OUTCOME: SUCCESS\"\n");
    std::fs::write(bench.outside().join("script.toml"), turns).unwrap();
    (bench.glovebox(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "r"]), bench)
}

/// Checks that the summary names the file and its author if the judge is not isolated, and that an isolated judge does
/// not have the file.
fn check(file: (&str, &str), line: &str, reader: &str) {
    let named = format!("`{}` was written by `build`, and {reader} reads it together with hold-outs", file.0);
    let (answer, bench) = run(file, line, OPEN);
    answer.ends(0).says("verified (subject not isolated) judge").says(&named);
    bench.glovebox(&["logs", "r", "judge"]).says(SECRET);
    let (answer, bench) = run(file, line, ISOLATED);
    answer.ends(0).says("verified     judge").never_says("was written by");
    bench.glovebox(&["logs", "r", "judge"]).never_says(SECRET);
}

#[test]
fn a_makefile_of_a_builder_is_named_and_absent_from_an_isolated_verdict() {
    if !is_on_this_machine("make") {
        return not_run("makefiles beside hold-outs", "no `make`");
    }
    let recipe = format!("all:\n\t@{TELLS}\n");
    check(("Makefile", &recipe), "make -s all", "make");
    check(("GNUmakefile", &recipe), "make -s all", "make");
}

#[test]
fn a_module_that_python_loads_by_itself_is_named_and_absent_from_an_isolated_verdict() {
    if !is_on_this_machine("python3") {
        return not_run("sitecustomize.py beside hold-outs", "no `python3`");
    }
    let module = "print(open('scripts/scenarios/answer.txt').read(), flush=True)\n";
    check(("sitecustomize.py", module), "PYTHONPATH=. python3 -c 'print(1)'", "Python");
}

#[test]
fn a_file_that_nobody_looks_for_is_not_named() {
    let (answer, _) = run(("src/prog.sh", "true\n"), "sh src/prog.sh", OPEN);
    answer.ends(0).says("verified (subject not isolated) judge").never_says("was written by");
}

#[test]
fn settings_that_name_programs_cannot_be_written_at_all() {
    for path in [".npmrc", ".cargo/config.toml", ".envrc", ".config/nextest.toml"] {
        run((path, "x\n"), "true", OPEN).0.ends(6).says("is protected");
    }
    run((".git/hooks/post-checkout", "x\n"), "true", OPEN).0.says("refused      build: ").says(".git/hooks");
}

#[test]
fn build_output_that_git_ignores_does_not_reach_a_verdict() {
    let poison = ("target/debug/prog", TELLS);
    let line = "sh target/debug/prog";
    let ignoring = |bench: &Workbench| bench.write(".gitignore", "target/\n");
    let (_, bench) = run(poison, line, OPEN);
    ignoring(&bench);
    bench.glovebox(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "s"]).ends(0);
    bench.glovebox(&["logs", "r", "judge"]).says(SECRET);
    bench.glovebox(&["logs", "s", "judge"]).never_says(SECRET);
}
