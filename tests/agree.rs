//! `check` and `run` agree: what `run` refuses, `check` reports as an error, once and with the same exit code.

use crate::workbench::{self, Answer, Workbench};

/// Creates a pipeline `start -> n -> done`, where `stage` is the declaration of node `n`.
fn with(stage: &str) -> Workbench {
    Workbench::with_pipeline(&format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n  {stage}\n  start -> n -> done\n}}\n"
    ))
}

fn errors(answer: &Answer) -> Vec<String> {
    let lines = answer.stderr.lines().filter(|line| line.starts_with("error[") || line.starts_with("warning["));
    lines.map(str::to_owned).collect()
}

#[test]
fn what_run_refuses_is_one_error_of_check_with_the_same_code() {
    for (stage, rule) in [
        ("n [shape=component]", "parallel_join"),
        ("n [shape=component, k=2]; j [shape=tripleoctagon]; n -> j", "parallel_join"),
        ("n [shape=octagon, command=true, allowed_write_paths=\"\", codex.profile=s]", "not_enforced"),
        ("n [prompt=p, allowed_write_paths=\"\", status_file=true]", "attribute_value"),
        ("n [shape=house]", "child_pipeline"),
        ("n [prompt=p, allowed_write_paths=\"\", fidelity=ful]", "fidelity_valid"),
        ("n [type=\"acme.todo\"]", "type_unknown"),
        ("n [type=tol, tool_command=true]", "type_unknown"),
        ("n [shape=octagon, command=true, network=full]", "network_not_granted"),
        ("n [shape=octagon, command=true, scratch=\"a/\", cache=\"a/b/\"]", "sandbox_folder"),
        ("graph [scenarios=\"checks/\"]; n [shape=octagon, command=\"sh checks/a\"]", "holdout_access"),
        ("n [shape=octagon, command=true, holdouts=\"scripts/scenarios/\"]", "holdout_access"),
        ("n [prompt=p, allowed_write_paths=\"\", test.outcome=maybe]", "test_attribute"),
    ] {
        let bench = with(stage);
        let check = bench.glovebox(&["check", "pipeline.dot"]);
        check.ends(3).says(&format!("error[{rule}]"));
        let told = errors(&check);
        assert_eq!(told.iter().filter(|line| line.contains(&format!("[{rule}]"))).count(), 1, "{told:?}");
        check.never_says("[type_known]");
        let run = bench.glovebox(&["run", "pipeline.dot"]);
        run.ends(3).never_says("[type_known]");
        bench.glovebox(&["plan", "pipeline.dot"]).ends(3);
        if rule != "holdout_access" {
            assert_eq!(errors(&run).iter().filter(|line| line.contains(rule)).count(), 1, "{:?}", errors(&run));
        }
        assert!(!bench.has(".glovebox/runs"), "{stage}");
    }
}

#[test]
fn a_fault_is_found_at_each_node_however_like_the_others_the_node_is() {
    for (fault, rule) in [
        ("network=full", "network_not_granted"),
        ("scratch=\"a/\", cache=\"a/b/\"", "sandbox_folder"),
        ("limits.turns=\"9999\"", "limit_not_raised"),
        ("cache=\"src/\"", "write_not_committed"),
        ("holdouts=\"scripts/scenarios/\"", "verifier_attribute"),
        ("codex.block_read_paths=\"scripts/scenarios/a\"", "holdout_access"),
        ("test.outcome=maybe", "test_attribute"),
    ] {
        let stage = |name: &str, fault: &str| format!("{name} [prompt=p, allowed_write_paths=\"src/\"{fault}]");
        let fault = format!(", {fault}");
        let stages = [
            stage("n", ""),
            stage("same", ""),
            stage("wrong", &fault),
            stage("too", &fault),
            stage("good", ""),
            stage("last", &fault),
        ];
        let bench = with(&format!("{}; n -> same -> wrong -> too -> good -> last -> done", stages.join("; ")));
        let found = bench.glovebox(&["check", "--format", "json", "pipeline.dot"]).json();
        let named = |found: &&serde_json::Value| found["rule"] == rule;
        let nodes: Vec<&str> =
            found.as_array().unwrap().iter().filter(named).filter_map(|found| found["node"].as_str()).collect();
        assert_eq!(nodes, ["wrong", "too", "last"], "{rule}: {found}");
    }
}

#[test]
fn the_language_alone_is_checked_on_request() {
    for stage in ["n [prompt=p, codex.profile=s]", "n [type=\"acme.todo\"]"] {
        with(stage).glovebox(&["check", "--for", "lint", "pipeline.dot"]).ends(0).never_says("error[");
    }
    with("n [prompt=p, codex.profile=s]")
        .glovebox(&["check", "--for", "lint", "pipeline.dot"])
        .says("warning[not_enforced]");
    with("n [shape=octagon]").glovebox(&["check", "--for", "lint", "pipeline.dot"]).ends(3);
}

#[test]
fn a_plugin_that_may_not_run_is_exit_7_in_both() {
    let bench = with("n [type=\"acme.todo\", allowed_write_paths=\"\"]");
    let table = "[plugins.\"acme.todo\"]\npath = \"todo.wasm\"\ngrants = { filesystem = \"none\" }\n";
    bench.write("glovebox.toml", table);
    for words in [&["check", "pipeline.dot"][..], &["run", "pipeline.dot"], &["plan", "pipeline.dot"]] {
        bench.glovebox(words).ends(7).says("plugin `acme.todo` cannot be read from `todo.wasm`");
    }
    let found = bench.glovebox(&["check", "--format", "json", "pipeline.dot"]).ends(7).json();
    assert_eq!((&found[0]["rule"], &found[0]["node"]), (&"plugin_refused".into(), &"n".into()));
    bench.glovebox(&["check", "--for", "lint", "pipeline.dot"]).ends(0);
    // Errors in the pipeline file are reported before refused plugins, as in `run`.
    bench.write(
        "pipeline.dot",
        &bench
            .read("pipeline.dot")
            .replace("done [", "done [class=x]; m [type=\"acme.no\"]; n -> m -> done [label=x] done ["),
    );
    bench.glovebox(&["check", "pipeline.dot"]).ends(3);
}

#[test]
fn an_entry_to_include_that_cannot_be_copied_is_an_error_before_a_run() {
    let bench = with("n [shape=parallelogram, tool_command=true, allowed_write_paths=\"\"]");
    for (entry, said) in [
        ("data/", "names `data/`, which does not exist in the project"),
        (".git/", "`.git` and `.glovebox` are never copied"),
        ("old/r/", "names `old/r/`, which is in a run's folder"),
    ] {
        bench.write("old/r/journal.sqlite", "");
        bench.write("old/r/owner.sqlite", "");
        bench.write("glovebox.toml", &format!("[workspace]\ninclude = [\"pipeline.dot\", \"{entry}\"]\n"));
        for words in [["check", "pipeline.dot"], ["plan", "pipeline.dot"], ["run", "pipeline.dot"]] {
            let answer = bench.glovebox(&words);
            answer.ends(3).says(said).says("glovebox.toml:2:28");
        }
        bench.glovebox(&["check", "--for", "lint", "pipeline.dot"]).ends(0);
        assert!(bench.glovebox(&["ls"]).stdout.is_empty(), "nothing ran");
    }
    bench.write("glovebox.toml", "[workspace]\ninclude = [\"./\"]\n");
    bench.glovebox(&["check", "pipeline.dot"]).ends(0);
}

#[test]
fn whatever_can_be_read_is_drawn() {
    let bench = with("n [shape=octagon, max_retries=often]; n -> missing; lost [prompt=p, colour=red]");
    bench.glovebox(&["check", "pipeline.dot"]).ends(3);
    for format in ["text", "svg", "json", "dot"] {
        let drawn = bench.glovebox(&["graph", "--format", format, "pipeline.dot"]);
        drawn.ends(0).says("missing").says("lost");
        assert!(drawn.stderr.contains("error[edge_target_exists]"), "{}", drawn.stderr);
        assert!(!drawn.stdout.contains("error["), "the picture alone is on standard output");
    }
    for text in ["digraph g { }", "digraph g { a -> b }", "digraph g { start; start -> start }"] {
        bench.write("pipeline.dot", text);
        bench.glovebox(&["graph", "--format", "text", "pipeline.dot"]).ends(0);
        bench.glovebox(&["graph", "--format", "svg", "pipeline.dot"]).ends(0);
    }
    bench.write("pipeline.dot", "digraph g { a -> ");
    bench.glovebox(&["graph", "--format", "svg", "pipeline.dot"]).ends(3).says("dot_syntax");
}

#[test]
fn a_path_below_tmp_is_a_remark_unless_two_stages_name_it() {
    let bench = with(
        "n [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"printf 'a\\\"b' >/tmp/b.log 2>&1; tail /tmp/b.log\"]",
    );
    let check = bench.glovebox(&["check", "pipeline.dot"]);
    check.ends(0).says("info[private_tmp]: `/tmp/b.log` is private to `n`, and removed after it").says("$TMPDIR/b.log");
    let marks: Vec<&str> = check.stderr.lines().filter(|line| line.contains('^')).collect();
    assert!(marks.iter().any(|line| line.matches('^').count() == "/tmp/b.log".len()), "{}", check.stderr);
    bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    bench.write(
        "pipeline.dot",
        &bench.read("pipeline.dot").replace(
            "start -> n -> done",
            "m [shape=octagon, command=\"cat /tmp/b.log\", allowed_write_paths=\"\"] start -> n -> m -> done",
        ),
    );
    for words in [["check", "pipeline.dot"], ["run", "pipeline.dot"]] {
        bench
            .glovebox(&words)
            .ends(3)
            .says("`/tmp/b.log` of `m` is not the same file as in `n`: each stage has its own `/tmp`");
    }
}

#[test]
fn a_value_of_several_words_is_one_error_with_a_fix() {
    let bench = with("n [shape=parallelogram, tool_command=echo -n hello world, allowed_write_paths=\"\"]");
    bench
        .glovebox(&["check", "pipeline.dot"])
        .ends(3)
        .says("the value `echo -n hello world` needs quotes")
        .says("1 error,");
    bench.glovebox(&["check", "--fix", "pipeline.dot"]).ends(0);
    assert!(
        bench.read("pipeline.dot").contains("tool_command=\"echo -n hello world\","),
        "{}",
        bench.read("pipeline.dot")
    );
    let quoted =
        with("n [shape=parallelogram, tool_command=echo \"a, b\" | grep -q \"a, b\", allowed_write_paths=\"\"]");
    quoted.glovebox(&["check", "--fix", "pipeline.dot"]).ends(0);
    quoted.glovebox(&["run", "pipeline.dot"]).ends(0);
    bench.glovebox(&["explain", "write_scope"]).ends(2).says("did you mean `glovebox explain write_scope_missing`?");
}

#[test]
fn a_loop_that_ends_at_a_bound_names_the_failure_behind_it() {
    let looped = |graph: &str, command: &str| {
        Workbench::with_pipeline(&format!(
            "digraph g {{ graph [{graph}] start; done [shape=Msquare]; fix [prompt=p, allowed_write_paths=\"src/\"]\n\
             test [shape=parallelogram, tool_command=\"{command}\", allowed_write_paths=\"\"]\n\
             start -> test; test -> done [condition=\"outcome=success\"]; test -> fix [condition=\"outcome=fail\"]; fix -> test }}"
        ))
    };
    let missing = looped("max_steps=12, loop_restart_signature_limit=9", "no-such-program build");
    let run = missing.glovebox(&["run", "pipeline.dot"]);
    run.ends(5).says("`test` failed 6 times in a row in the same way: tool_exit_code_127");
    run.says("more steps do not help. exit 127: the shell did not find a program");
    let visits = looped("max_visits=3, loop_restart_signature_limit=9", "exit 4")
        .glovebox(&["run", "pipeline.dot"])
        .ends(5)
        .stdout
        .clone();
    assert!(
        visits.contains("(limit/max_visits): node `test` exceeded `max_visits` (3). `test` failed 3 times"),
        "{visits}"
    );
    let own = looped("max_steps=30, loop_restart_signature_limit=9", "exit 4\", max_visits=\"2")
        .glovebox(&["run", "pipeline.dot"])
        .ends(5)
        .stdout
        .clone();
    assert!(own.contains("node `test` exceeded `max_visits` (2)"), "{own}");
}

#[test]
fn a_script_for_a_stage_without_a_model_is_an_error() {
    let bench = with("n [shape=octagon, command=true, allowed_write_paths=\"\"]");
    bench.write("script.toml", "[[node.n]]\ntext = \"done\"\n");
    bench
        .glovebox(&["run", "pipeline.dot", "--script", "script.toml"])
        .ends(3)
        .says("the script has turns for `n`, but a `verify` node asks no model");
    bench.write("pipeline.dot", &bench.read("pipeline.dot").replace("shape=octagon, command=true", "prompt=p"));
    bench.write("script.toml", "[[node.n]]\ntool = [{ name = \"x\" }]\n[[node.n]]\ntext = \"done\"\n");
    bench.glovebox(&["run", "pipeline.dot", "--script", "script.toml", "--run-id", "r"]);
    let told = bench.glovebox(&["show", "r", "n", "--json"]).stdout.clone() + &transcript(&bench);
    assert!(told.contains("the tools are read_file, write_file, edit_file"), "{told}");
}

/// Returns the text of all artifacts of run `r`.
fn transcript(bench: &Workbench) -> String {
    let mut text = String::new();
    let mut folders = vec![bench.run_folder("r").join("artifacts")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => folders.push(path),
                false => text.push_str(&String::from_utf8_lossy(&std::fs::read(path).unwrap())),
            }
        }
    }
    text
}

#[test]
fn the_configuration_of_the_repository_is_found_and_named() {
    let bench = with("n [shape=octagon, command=true, network=full]");
    bench.write("app/pipeline.dot", &bench.read("pipeline.dot"));
    bench.write("glovebox.toml", "[sandbox]\nnetwork = \"full\"\n");
    let inside = |words: &[&str]| {
        let mut command = workbench::glovebox_in(&bench.project().join("app"));
        command.args(words);
        Answer::of(&mut command)
    };
    inside(&["plan", "pipeline.dot"]).ends(3).never_says("configuration of the repository");
    std::fs::create_dir(bench.project().join(".git")).unwrap();
    for words in [["check", "pipeline.dot"], ["plan", "pipeline.dot"]] {
        inside(&words).ends(0).says("note: using the configuration of the repository: ").says("/project/glovebox.toml");
    }
    bench.write("app/glovebox.toml", "");
    inside(&["plan", "pipeline.dot"]).ends(3).never_says("configuration of the repository");
}

#[test]
fn a_configuration_that_came_with_a_pipeline_is_named_where_the_user_has_another() {
    let bench = with("n [shape=octagon, command=true, network=full]");
    bench.write("vendor/x/pipeline.dot", &bench.read("pipeline.dot"));
    bench.write("vendor/x/glovebox.toml", "[sandbox]\nnetwork = \"full\"\n");
    let plan = |pipeline: &str| bench.glovebox(&["plan", pipeline]);
    plan("vendor/x/pipeline.dot").ends(0).never_says("note: using");
    bench.write("glovebox.toml", "");
    let named = plan("vendor/x/pipeline.dot");
    named.ends(0).says("note: using the configuration of the pipeline's folder: ");
    named.says("/project/vendor/x/glovebox.toml, and not ").says("/project/glovebox.toml\n");
    plan("pipeline.dot").ends(3).never_says("note: using");
    std::fs::rename(bench.project().join("vendor/x/glovebox.toml"), bench.project().join("vendor/glovebox.toml"))
        .unwrap();
    plan("vendor/x/pipeline.dot").ends(0).says("/project/vendor/glovebox.toml, and not ");
}
