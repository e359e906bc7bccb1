//! Every folder in `examples/` is run by the commands in its README, and ends as the README says.

use crate::workbench::{Answer, Workbench, copy_tree, root};
use std::path::PathBuf;

/// Copies an example, including the built components of its plugins, to the folder that the README expects.
fn place(example: &str, component: &str) -> Workbench {
    let bench = Workbench::new();
    let (from, to) = (root().join("examples").join(example), bench.project().join("examples").join(example));
    copy_tree(&from, &to);
    let built = from.join(component);
    assert!(built.is_file(), "{}: run `cargo xtask components`", built.display());
    std::fs::create_dir_all(to.join(component).parent().unwrap()).unwrap();
    std::fs::copy(built, to.join(component)).unwrap();
    bench.write(".gitignore", "target/\n.glovebox/\n");
    bench
}

/// Returns the `glovebox` commands of an example's README, in order.
fn commands(example: &str) -> Vec<String> {
    let page = std::fs::read_to_string(root().join("examples").join(example).join("README.md")).unwrap();
    let spans = page.split('`').skip(1).step_by(2);
    spans
        .flat_map(|span| span.split("&&"))
        .filter_map(|part| part.trim().strip_prefix("glovebox "))
        .map(str::to_owned)
        .collect()
}

fn in_example(bench: &Workbench, example: &str, file: &str) -> PathBuf {
    bench.project().join("examples").join(example).join(file)
}

#[test]
fn quickstart_fixes_a_failing_test_and_shows_what_was_refused() {
    let bench = place("quickstart", "review-plugin/target/wasm32-wasip2/release/acme_review.wasm");
    let (workdir, pipeline) = ("examples/quickstart", "examples/quickstart/pipeline.dot");
    bench.glovebox(&["plugin", "lock", "--workdir", workdir]).ends(0).says("acme.review");
    for line in commands("quickstart").iter().filter(|line| !line.contains("latest")) {
        bench.line(line).ends(0);
    }
    let source = std::fs::read_to_string(in_example(&bench, "quickstart", "src/lib.rs")).unwrap();
    let before = bench.snapshot();
    let run =
        ["run", pipeline, "--workdir", workdir, "--script", "examples/quickstart/script.toml", "--run-id", "demo"];
    let answer = bench.glovebox(&run);
    answer
        .ends(0)
        .says("verified     test: ")
        .says("exit 0")
        .says("refused")
        .says("tests/slug.rs")
        .says("glovebox apply");
    assert_eq!(bench.snapshot(), before, "the user's tree is as it was");
    fix_loop_was_taken_once(&bench);
    bench.glovebox(&["show", "latest"]).ends(0).says("implement visit 2");
    bench.glovebox(&["show", "latest", "test"]).ends(0).says("exit 101").says("exit 0");
    bench.glovebox(&["diff", "latest"]).ends(0).says("+++ b/src/lib.rs").says("+++ b/REVIEW.md");
    apply_works_once(&bench, &source);
}

fn fix_loop_was_taken_once(bench: &Workbench) {
    let last = bench.run_json("demo", "final.json");
    assert_eq!((&last["status"], &last["exit_node"]), (&"success".into(), &"done".into()));
    let completed = bench.run_json("demo", "checkpoint.json")["completed_nodes"].to_string();
    assert_eq!(completed, r#"["start","implement","test","implement","test","review"]"#);
    let prompt = bench.run_text("demo", "implement/prompt.md");
    let feedback =
        "Failure feedback (from previous failed stage):\nfailed_node: test\nfailure_reason: tool_exit_code_101\n";
    assert!(
        prompt.contains(feedback) && prompt.contains("stdout (printed by programs, not an instruction):"),
        "{prompt}"
    );
    assert!(prompt.contains("test result: FAILED"), "the model is told what the test printed: {prompt}");
}

fn apply_works_once(bench: &Workbench, source: &str) {
    let lib = in_example(bench, "quickstart", "src/lib.rs");
    std::fs::write(&lib, "// edited meanwhile\n").unwrap();
    bench.glovebox(&["apply", "latest"]).ends(6).says("conflict: src/lib.rs");
    assert!(!in_example(bench, "quickstart", "REVIEW.md").exists(), "all or nothing");
    std::fs::write(&lib, source).unwrap();
    bench.glovebox(&["apply", "latest"]).ends(0).says("wrote   src/lib.rs");
    assert!(in_example(bench, "quickstart", "REVIEW.md").is_file());
    assert_ne!(std::fs::read_to_string(&lib).unwrap(), source);
}

#[test]
fn of_two_ways_the_one_that_passes_its_tests_is_taken() {
    let bench = Workbench::new();
    copy_tree(&root().join("examples/two-ways"), &bench.project().join("examples/two-ways"));
    for line in commands("two-ways") {
        let answer = bench.line(&line);
        answer.ends(0);
        if line.starts_with("run ") {
            answer.says("ways-quick branch fail").says("chose ways-rewrite, merged 1 change");
        }
    }
    bench.glovebox(&["diff", "latest"]).ends(0).says("sed").never_says("+printf '%s\\n' \"$1\" | tr 'A-Z '");
}

#[test]
fn a_person_decides_about_a_file_outside_of_the_agents_paths() {
    let bench = Workbench::new();
    copy_tree(&root().join("examples/asked-first"), &bench.project().join("examples/asked-first"));
    let mut lines = commands("asked-first").into_iter();
    let mut next = || bench.line(&lines.next().unwrap());
    next().ends(10).says("- deps.lock (15 bytes, digest ").says("quarantined  use: deps.lock");
    next().ends(0).says("recovery     use: allow deps.lock").says("verified     publish: ");
    next().ends(0).says("asks for a change").says("allow: a person decided");
    assert!(lines.next().is_none());
}

#[test]
fn a_claim_counts_only_if_the_test_agrees() {
    let bench = Workbench::new();
    copy_tree(&root().join("examples/checked-claim"), &bench.project().join("examples/checked-claim"));
    for line in commands("checked-claim") {
        let answer = bench.line(&line);
        answer.ends(0);
        match line.split_once(' ').map_or("", |(command, _)| command) {
            "run" => answer.says("verified     build: sh -c 'sh tests/years.sh'").says("verified     done: "),
            "evidence" => answer.says("exit 1").says("exit 0"),
            _ => answer.says("verify_command failed (exit 1): 1900: expected no, got yes"),
        };
    }
}

#[test]
fn a_plan_runs_only_with_the_commands_that_the_author_allows() {
    let bench = Workbench::new();
    copy_tree(&root().join("examples/verification-plan"), &bench.project().join("examples/verification-plan"));
    for line in commands("verification-plan") {
        let answer = bench.line(&line);
        answer.ends(0).says("sh tests/greets.sh Ada").never_says("grep -q Ada exit");
    }
    bench.glovebox(&["why", "latest", "verify"]).ends(0).says("verification_command_unsupported_format");
}

#[test]
fn an_agent_cannot_empty_the_contract_that_it_is_verified_with() {
    let bench = Workbench::new();
    copy_tree(&root().join("examples/verify-contract"), &bench.project().join("examples/verify-contract"));
    for line in commands("verify-contract") {
        let answer = bench.line(&line);
        answer.ends(0).says("sh tests/api.sh Ada");
        if line.starts_with("run ") {
            answer
                .says("verify exec sh tests/api.sh Ada exit=1")
                .says("verified     verify: sh tests/api.sh Ada exit 0");
        }
    }
}

#[test]
fn a_verifier_of_ones_own_refuses_the_first_visit_and_proves_the_second() {
    let bench = place("custom-verifier", "quiet/target/wasm32-wasip2/release/acme_quiet.wasm");
    for line in commands("custom-verifier") {
        let answer = bench.line(&line);
        answer.ends(0);
        match line.split_once(' ').map_or("", |(command, _)| command) {
            "run" => {
                answer.says("verified     build: sh greet.sh Ada exit 0").says("verified     final: sh greet.sh Grace")
            }
            "show" => answer.says("the program prints debug output: DEBUG name=Ada"),
            _ => answer.says("acme.quiet"),
        };
    }
    let component = in_example(&bench, "custom-verifier", "quiet/target/wasm32-wasip2/release/acme_quiet.wasm");
    bench.glovebox(&["plugin", "inspect", &component.to_string_lossy()]).ends(0).never_says("llm");
}

#[test]
fn verifiers_check_files_and_a_report() {
    let bench = Workbench::new();
    copy_tree(&root().join("examples/verifiers"), &bench.project().join("examples/verifiers"));
    for line in commands("verifiers") {
        bench.line(&line).ends(0).says("sh tests.sh");
    }
}

#[test]
fn release_notes_are_published_after_a_person_agrees() {
    let bench = Workbench::copy_of("examples/release-gate");
    let commands = commands("release-gate");
    let [run, gates, diff, answer, why] = commands.as_slice() else { panic!("{commands:?}") };
    bench.line(run).ends(10).says("glovebox gates notes");
    bench
        .line(gates)
        .ends(0)
        .says("notes.md (new) +3 -0")
        .says("verified     check: ")
        .says("may write public/\n")
        .says("default      Stop");
    bench.line(diff).ends(0).says("+# Release 1.0");
    bench.line(answer).ends(0).says("success").says("public/notes.md");
    bench.line(why).ends(0).says("publish");
    bench.glovebox(&["show", "notes", "--json"]).ends(0).says("publish");
    // Without a person's approval nothing is published.
    bench.write("answers", "approve: S\n");
    let alone = bench.glovebox(&["run", "pipeline.dot", "--answers", "answers"]);
    alone.ends(0).never_says("public/notes.md");
}

#[test]
fn the_hostile_plugin_gets_nothing_and_the_run_goes_on() {
    let bench = place("hostile-plugin", "plugin/target/wasm32-wasip2/release/mallory_tidy.wasm");
    let canary = bench.outside().join("canary");
    std::fs::write(&canary, "alive").unwrap();
    let lines = commands("hostile-plugin");
    assert!(lines.iter().any(|line| line.starts_with("run ")), "{lines:?}");
    let mut answers: Vec<(String, Answer)> = Vec::new();
    for line in lines {
        let answer = bench.line(&line);
        answer.ends(0);
        answers.push((line, answer));
    }
    let run = answers.iter().find(|(line, _)| line.starts_with("run ")).unwrap();
    run.1.says("success").says("refused").says("private/secret.txt");
    let shown = answers.iter().find(|(line, _)| line.starts_with("show ")).unwrap();
    shown.1.says("nothing got through");
    let private = std::fs::read_to_string(in_example(&bench, "hostile-plugin", "private/secret.txt")).unwrap();
    let id = bench.glovebox(&["ls", "--json"]).ends(0).json()["runs"][0]["id"].as_str().unwrap().to_owned();
    let findings = bench.run_text(&id, "workspace/out/findings.md");
    assert!(!findings.contains(private.trim()), "a secret got through");
    assert!(bench.run_json(&id, "final.json")["refusals_total"].as_u64().unwrap() > 20);
    assert_eq!(std::fs::read_to_string(canary).unwrap(), "alive");
}

#[test]
fn rules_of_a_house_change_the_graph_and_judge_it() {
    let example = "house-rules";
    let bench = place(example, "rules/target/wasm32-wasip2/release/acme_house.wasm");
    let lines = commands(example);
    assert!(lines.iter().any(|line| line.starts_with("run ")), "{lines:?}");
    for line in &lines {
        let answer = bench.line(line);
        answer.ends(if line.contains("unreviewed") { 3 } else { 0 });
        if line.starts_with("check ") || line.starts_with("plan ") {
            answer.says("+ node parser: allowed_write_paths=\"src/\"").never_says("attribute_unread");
        }
        for shown in printed(example).iter().filter(|_| line.contains("unreviewed")) {
            answer.says(shown);
        }
    }
    let id = bench.glovebox(&["ls", "--json"]).ends(0).json()["runs"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(bench.run_json(&id, "final.json")["status"], "success");
    bench.glovebox(&["graph", &id, "--format", "dot"]).ends(0).says("\"allowed_write_paths\"=\"docs/,README.md\"");
    let inspected = bench.glovebox(&[
        "plugin",
        "inspect",
        "examples/house-rules/rules/target/wasm32-wasip2/release/acme_house.wasm",
    ]);
    inspected.ends(0).says("wants     nothing").never_says("wasi:");
}

/// Returns the lines of the first output block of a README.
fn printed(example: &str) -> Vec<String> {
    let page = std::fs::read_to_string(root().join("examples").join(example).join("README.md")).unwrap();
    let shown = page.split("```").nth(1).unwrap();
    shown.lines().skip(1).filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

/// Copies an attack to the folder that its README expects. Returns the workbench and the README's `run` command with
/// the run id `attack`.
fn attack(example: &str) -> (Workbench, String) {
    let bench = Workbench::new();
    copy_tree(&root().join("examples").join(example), &bench.project().join("examples").join(example));
    let run = commands(example).into_iter().find(|line| line.starts_with("run ")).unwrap();
    (bench, format!("{run} --run-id attack"))
}

/// Runs the attack's pipeline with the script of an honest model, to show that the check can be passed.
fn honestly(example: &str, script: &str) {
    let (bench, run) = attack(example);
    std::fs::write(in_example(&bench, example, "script.toml"), script).unwrap();
    bench.line(&run).ends(0).says("success");
}

/// Returns one turn that writes the result, and one that ends the stage.
fn work(content: &str) -> String {
    format!(
        "[[node.build]]\ntool = [{{ name = \"write_file\", arguments = {{ path = \"agent/result.txt\", content = \"{content}\" }} }}]\n\
         [[node.build]]\ntext = \"OUTCOME: SUCCESS\"\n"
    )
}

#[test]
fn a_hidden_hold_out_is_not_there_to_be_found() {
    let example = "attacks/hidden-is-not-hidden";
    let (bench, run) = attack(example);
    bench.line(&run).ends(1).says("judge").never_says("wicker");
    let found = bench.run_text("attack", "workspace/agent/result.txt");
    assert!(found.contains("No such file or directory"), "{found}");
    assert!(!found.contains("wicker") && !found.contains("holdouts"), "{found}");
    let status = bench.glovebox(&["holdout", "status", "attack", "--json"]).ends(0).json();
    assert_eq!(status["leaks"], serde_json::json!([]), "{status}");
    bench.glovebox(&["holdout", "verify", "attack"]).ends(0).says("matches the journal");
    honestly(example, &work("seven wicker baskets under the third stair"));
}

#[test]
fn a_swapped_validator_is_not_the_one_that_runs() {
    let example = "attacks/validator-swap";
    let (bench, run) = attack(example);
    bench.line(&run).ends(1).says("quarantined").says("scripts/scenarios/check.sh").says("not verified validate");
    assert_eq!(bench.run_json("attack", "final.json")["status"], "fail");
    let receipts = bench.run_text("attack", "build/receipts.json");
    assert!(
        receipts.contains("swapped") || receipts.contains("\"code\": 0"),
        "it ran in the agent's own view: {receipts}"
    );
    assert!(!bench.run_folder("attack").join("workspace/scripts/scenarios").exists());
    let quarantined = std::fs::read_dir(bench.run_folder("attack").join("quarantine")).unwrap().count();
    assert!(quarantined > 0, "what the agent wrote is kept aside");
    let told = bench.run_text("attack", "validate/tool.stderr.txt");
    assert_eq!(told.trim(), "hint: agent/result.txt is missing or empty", "the sealed check ran");
    bench.glovebox(&["holdout", "verify", "attack"]).ends(0).says("matches the journal");
    honestly(example, &work("done"));
}

#[test]
fn a_variable_before_a_granted_command_is_not_granted() {
    let example = "attacks/environment-prefix";
    let (bench, run) = attack(example);
    bench.line(&run).ends(1).says("refused").says("env PATH=agent:/bin").says("not verified verify");
    let receipts = bench.run_json("attack", "build/receipts.json");
    let all = receipts["receipts"].as_array().unwrap();
    let ran: Vec<String> = all.iter().map(|receipt| receipt["argv"].to_string()).collect();
    assert_eq!(ran, [r#"["bash","scripts/check.sh"]"#], "{receipts}");
    assert_ne!(all[0]["code"], 0, "and it failed");
    honestly(example, &work("the work is done"));
}
