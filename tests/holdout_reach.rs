//! Only stages that run hold-outs can read them. Another verifier searches every place that it can see and passes
//! everything that it found to the builders.

use crate::workbench::{self, Workbench};

/// A line that no stage can guess.
const SECRET: &str = "forty-two apples in a wicker basket";
const SCENARIO: &str = "scripts/scenarios/answer";
const SCRIPT: &str = "[[node.build]]\ntext = \"done\"\n[[node.build]]\ntext = \"done\"\n\
                      [[node.build]]\ntool = [{ name = \"write_file\", arguments = { path = \"src/ok\", content = \"1\" } }]\n\
                      [[node.build]]\ntext = \"done\"\n";

/// Creates a loop of a builder, unit tests and a judge. `test` and `judge` are attributes of these stages.
fn bench(test: &str, judge: &str) -> Workbench {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  graph [loop_restart_signature_limit=9]; start [shape=Mdiamond]; done [shape=Msquare]\n\
         \x20 build [shape=box, prompt=\"make src/ok\", allowed_write_paths=\"src/\"]\n\
         \x20 test [shape=parallelogram, {test}]\n  judge [shape=octagon, {judge}]\n\
         \x20 start -> build -> judge; judge -> test\n  judge -> test [condition=\"outcome=fail\"]\n\
         \x20 test -> done [condition=\"outcome=success\"]; test -> build [condition=\"outcome=fail\"]\n}}\n"
    ));
    bench.write(SCENARIO, &format!("#!/bin/sh\necho '{SECRET}'\nmkdir -p c; cp $0 c/ 2>/dev/null\nexit 1\n"));
    bench.write("tests/unit", "i=0; while [ $i -lt 120 ]; do echo \"case $i ok\"; i=$((i+1)); done\ntest -f src/ok\n");
    bench.write("src/lib", "x\n");
    std::fs::write(bench.outside().join("script.toml"), SCRIPT).unwrap();
    bench
}

fn run(bench: &Workbench) -> workbench::Answer {
    bench.glovebox(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "r"])
}

fn prompts(bench: &Workbench) -> String {
    let folders = std::fs::read_dir(bench.run_folder("r").join("artifacts")).unwrap();
    let prompts = folders.filter_map(|entry| std::fs::read_to_string(entry.unwrap().path().join("prompt.md")).ok());
    prompts.collect::<Vec<_>>().join("\n=====\n")
}

#[test]
fn unit_tests_beside_a_judge_tell_their_whole_failure() {
    let test = "tool_command=\"sh tests/unit\", allowed_write_paths=\"\"";
    let judge = format!("command=\"sh {SCENARIO}\", allowed_write_paths=\"\"");
    let bench = bench(test, &judge);
    bench.glovebox(&["check", "pipeline.dot"]).never_says("in reach");
    let plan = bench.glovebox(&["plan", "pipeline.dot", "--script", "../script.toml"]);
    plan.ends(0).says("judge reads scripts/scenarios/ (`command` of the node); builders learn only its verdict");
    plan.never_says("test reads");
    let readers = bench.glovebox(&["plan", "pipeline.dot", "--json"]).ends(0).json()["holdouts"]["readers"].clone();
    assert_eq!(readers.as_array().unwrap().len(), 1, "{readers}");
    assert_eq!((&readers[0]["node"], &readers[0]["is_withheld"]), (&"judge".into(), &true.into()));
    run(&bench).ends(0);
    let told = prompts(&bench);
    assert!(told.contains("failed_node: test") && !told.contains("output withheld"), "{told}");
    assert!(told.contains("case 0 ok\ncase 1 ok") && told.contains("case 119 ok"), "the whole report: {told}");
    assert!(!told.contains("wicker"), "{told}");
}

/// Commands that search for hold-outs in every place that a stage can see.
const SEARCH: &str = "ls -laR .; ls scripts/scenarios; cat scripts/*/*; grep -r wicker .; git log -p --all\n\
                      git show HEAD:scripts/scenarios/answer; find / -name answer -not -path '/proc/*'\n\
                      cat c/* /tmp/* $HOME/*; tr '\\0' ' ' </proc/1/environ; cat /proc/*/cmdline; cat /proc/self/mountinfo\n\
                      test -f src/ok\n";

#[test]
fn a_stage_that_does_not_name_hold_outs_finds_none_wherever_it_looks() {
    let judge = format!("command=\"sh {SCENARIO}\", allowed_write_paths=\"\", cache=\"c/\"");
    // The script `tests/search` names the hold-outs, but only names in the command bring them in reach. `holdouts=""`
    // and a read scope hide them even if the command names them.
    for test in [
        "tool_command=\"sh tests/search\"",
        "tool_command=\"cat scripts/scenarios/answer; sh tests/search\", holdouts=\"\"",
        "tool_command=\"ls scripts/scenarios; sh tests/search\", read_paths=\"src/,tests/\"",
    ] {
        let bench = bench(&format!("{test}, cache=\"c/\", allowed_write_paths=\"\""), &judge);
        bench.write("tests/search", SEARCH);
        let git = |words: &[&str]| {
            let mut command = std::process::Command::new("git");
            command.current_dir(bench.project()).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words);
            assert!(command.output().unwrap().status.success(), "{words:?}");
        };
        git(&["init", "-q"]);
        git(&["add", "-A"]);
        git(&["commit", "-qm", "all"]);
        run(&bench).ends(0);
        let told = prompts(&bench);
        assert!(told.contains("failed_node: test"), "{told}");
        assert!(!told.contains("apples in a"), "{told}");
        for attempt in ["test.1.1", "test.2.1"] {
            let printed = bench.run_text("r", &format!("artifacts/{attempt}/tool.stdout.txt"));
            assert!(printed.contains("tests/search"), "it looked: {printed}");
            assert!(!printed.contains("apples in a") && !printed.contains("./scripts/scenarios"), "{printed}");
            assert!(!bench.run_folder("r").join(format!("artifacts/{attempt}/withheld.json")).exists());
        }
        assert!(bench.run_folder("r").join("artifacts/judge.1.1/withheld.json").exists(), "the judge had them");
    }
}

#[test]
fn without_a_name_no_verifier_has_them_and_builders_get_whole_failures() {
    let bench = bench(
        "tool_command=\"cat scripts/scen*/answer; sh tests/unit\", allowed_write_paths=\"\"",
        "command=\"cat */scenarios/answer >/dev/null; true\", allowed_write_paths=\"\"",
    );
    let plan = bench.glovebox(&["plan", "pipeline.dot", "--script", "../script.toml"]);
    plan.ends(0).says("test reads scripts/scenarios/ (`tool_command` of the node)").never_says("judge reads");
    let open = bench_without_names();
    open.glovebox(&["check", "pipeline.dot"])
        .ends(0)
        .says("no stage can read the hold-outs in `scripts/scenarios/`, so they test nothing");
    run(&open).ends(0);
    let told = prompts(&open);
    assert!(told.contains("case 1 ok") && !told.contains("output withheld") && !told.contains("wicker"), "{told}");
}

/// Creates the loop with stages that search for hold-outs without naming them.
fn bench_without_names() -> Workbench {
    bench(
        "tool_command=\"cat */scenarios/answer; sh tests/unit\", allowed_write_paths=\"\"",
        "command=\"cat */scenarios/answer >/dev/null; true\", allowed_write_paths=\"\"",
    )
}

#[test]
fn a_stage_that_lists_missing_hold_outs_is_refused() {
    let bench = bench("tool_command=\"true\", holdouts=\"scripts/scenarios/\"", "command=\"true\"");
    std::fs::remove_dir_all(bench.project().join("scripts/scenarios")).unwrap();
    run(&bench).ends(3).says("`holdouts` of node `test` lists `scripts/scenarios/`, which the project does not have");
    let text = bench.read("pipeline.dot").replace("holdouts=\"scripts/scenarios/\"", "holdouts=true");
    bench.write("pipeline.dot", &text);
    run(&bench).ends(3).says("`holdouts` of node `test` asks for hold-outs, which the project does not have");
}
