//! Tests of scripts in hold-out folders, and of the stages that run or show them.

use super::lint::rule;
use super::{accept, with};
use glovebox_pipeline::Source;
use glovebox_pipeline::lint::{Script, scripts};
use insta::assert_snapshot;

/// Returns the findings of a script, one per line: rule, the text under the span, message.
fn found(text: &str) -> String {
    of_stage(JUDGE, "scripts/scenarios/a.sh", text)
}

/// A stage that can see only hold-outs.
const JUDGE: &str = "t [type=tool, tool_command=\"sh scripts/scenarios/a.sh\", read_paths=\"\"]";

/// As [`found`], but for a script with this path in a pipeline with these nodes.
fn of_stage(nodes: &str, path: &str, text: &str) -> String {
    let pipeline = accept(&with(&format!("{nodes} start -> t -> exit")));
    let lines = scripts(&pipeline, &[Script { path, text }]).into_iter().map(|found| {
        assert_eq!(found.path, path);
        format!(
            "{} «{}» {}",
            found.diagnostic.rule,
            Source::new(text).at(found.diagnostic.span),
            found.diagnostic.message
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn fixed_temporary_names_are_found() {
    assert_snapshot!(found("#!/bin/sh\nout=/tmp/out.txt\nrun >/tmp/größe.log 2>&1; cat \"/var/tmp/x\" '${TMPDIR:-/tmp}/y'\n"), @"
    fixed_temporary_name «/tmp/out.txt» `/tmp/out.txt` is the same file in every run
    fixed_temporary_name «/tmp/größe.log» `/tmp/größe.log` is the same file in every run
    fixed_temporary_name «/var/tmp/x» `/var/tmp/x` is the same file in every run
    fixed_temporary_name «${TMPDIR:-/tmp}/y» `${TMPDIR:-/tmp}/y` is the same file in every run
    ");
    for fine in [
        "f=$(mktemp)",
        "f=$(mktemp /tmp/app.XXXXXX)",
        "d=$(mktemp -d -p /tmp)",
        "f=/tmp/app.$$",
        "f=\"/tmp/${RUN_ID}/out\"",
        "ls /tmp /tmp/",
        "rm -f /tmp/app.*",
        "# once /tmp/out.txt was written here",
        "true # not /tmp/out.txt",
        "curl https://example.com/tmp/x",
        "cat build/tmp/out.txt",
    ] {
        assert_eq!(found(fine), "", "{fine}");
    }
}

#[test]
fn models_in_scripts_are_found() {
    assert_snapshot!(found("MODEL=\"${MODEL:-gpt-4o-mini}\"\nask --model=openai/o3-mini 'claude-opus-4-6'\njson='{\"model\":\"gemini-2.5-pro\"}'"), @"
    hardcoded_model_in_scenario «${MODEL:-gpt-4o-mini}» the script names the live model `gpt-4o-mini`
    hardcoded_model_in_scenario «openai/o3-mini» the script names the live model `o3-mini`
    hardcoded_model_in_scenario «claude-opus-4-6» the script names the live model `claude-opus-4-6`
    hardcoded_model_in_scenario «gemini-2.5-pro» the script names the live model `gemini-2.5-pro`
    ");
    for fine in ["model=$(first_model)", "sh claude-run.sh", "# gpt-4o", "cat grok-3.json", "use claude-code", "gpt-"] {
        assert_eq!(found(fine), "", "{fine}");
    }
}

#[test]
fn findings_are_bounded() {
    let many = "cat /tmp/a\n".repeat(1_000);
    assert_eq!(
        scripts(&accept(&with("start -> exit")), &["a", "b"].map(|path| Script { path, text: &many })).len(),
        100
    );
}

#[test]
fn stages_that_run_scenarios_name_no_model() {
    let stage = |attributes: &str| {
        rule("hardcoded_model_in_scenario", &with(&format!("t [type=tool, {attributes}] start -> t -> exit")))
    };
    assert_snapshot!(stage("tool_command=\"MODEL=claude-sonnet-4-5 sh scripts/scenarios/a.sh\""), @r#"hardcoded_model_in_scenario «"MODEL=claude-sonnet-4-5 sh scripts/scenarios/a.sh"» `tool_command` of `t` names the live model `claude-sonnet-4-5` for a scenario"#);
    assert_snapshot!(stage("tool_command=\"sh scripts/scenarios/a.sh\", env_MODEL=\"gpt-5\""), @r#"hardcoded_model_in_scenario «"gpt-5"» `env_MODEL` of `t` names the live model `gpt-5` for a scenario"#);
    assert_eq!(stage("tool_command=\"sh scripts/scenarios/a.sh\", llm_model=\"gpt-5\""), "", "not the scenario's");
    assert_eq!(stage("tool_command=\"sh tools/ask.sh gpt-5\""), "", "no scenario");
}

#[test]
fn what_shows_holdouts_leads_to_no_builder() {
    let feeds = |body: &str| {
        rule(
            "scenario_reader_feeds_builder",
            &with(&format!("b [prompt=b] t [type=tool, tool_command=t, holdouts=true] {body}")),
        )
    };
    assert_snapshot!(feeds("t [scenario_feedback=full] start -> b -> t t -> b [condition=\"outcome=fail\"] t -> exit"), @"scenario_reader_feeds_builder «full» all output of `t` about the hold-outs reaches the builder `b`");
    assert_snapshot!(feeds("graph [scenario_feedback=full] start -> t -> b -> exit"), @"scenario_reader_feeds_builder «t» all output of `t` about the hold-outs reaches the builder `b`");
    assert_snapshot!(feeds("r [prompt=r, codex.allow_read_scenarios=true] start -> t -> r -> b -> exit"), @"scenario_reader_feeds_builder «true» `r` may read the hold-outs and leads to the builder `b`");
    assert_eq!(feeds("t [scenario_feedback=full] start -> b -> t -> exit"), "", "no builder follows");
    assert_eq!(feeds("start -> t -> b -> exit"), "", "a summary");
    assert_eq!(feeds("t [scenario_feedback=full, holdouts=false] start -> t -> b -> exit"), "", "it has none");
}

#[test]
fn a_script_that_runs_the_project_beside_hold_outs_is_found() {
    const OPEN: &str = "t [type=tool, tool_command=\"sh scripts/scenarios/a.sh\"]";
    const LOOP: &str =
        "for i in 1 2; do\n  test \"$(sh src/prog.sh $i)\" = x || echo \"hint: no; make it so\"\ndone\ncargo test -q\n";
    let check = |nodes: &str, path: &str, text: &str| of_stage(nodes, path, text);
    let path = "app/scripts/scenarios/a.sh";
    assert_snapshot!(check(OPEN, path, LOOP), @"
    subject_not_isolated «sh» this script of `t` runs `sh src/prog.sh` with the hold-outs in view: it can read them and forge the verdict
    subject_not_isolated «cargo» this script of `t` runs `cargo test` with the hold-outs in view: it can read them and forge the verdict
    ");
    assert_eq!(check(JUDGE, path, LOOP), "", "its commands see no file of the project");
    assert_eq!(check(OPEN, path, "subject sh src/prog.sh\nsh scripts/scenarios/b.sh\n"), "");
    let other = "u [type=verify, command=\"sh lib.sh\", holdouts=true] u -> exit start -> u";
    assert_eq!(check(&format!("{JUDGE} {other}"), path, LOOP), "", "the stage that names it sees hold-outs alone");
    assert_snapshot!(check(&format!("{JUDGE} {other}"), "scripts/scenarios/lib.sh", "make\n"), @"subject_not_isolated «make» this script of `u` runs `make` with the hold-outs in view: it can read them and forge the verdict");
    let python = "run([\"python3\", \"app.py\"])\nrun([\"subject\", \"python3\", \"app.py\"])\nrun([sys.executable, \"-m\", \"app\"])\n";
    assert_snapshot!(check(OPEN, "scripts/scenarios/test_app.py", python), @"
    subject_not_isolated «python3» this script of `t` runs `python3 app.py` with the hold-outs in view: it can read them and forge the verdict
    subject_not_isolated «[sys.executable» this script of `t` runs `python -m app` with the hold-outs in view: it can read them and forge the verdict
    ");
}

#[test]
fn the_help_for_a_script_is_its_line_with_subject() {
    let pipeline = accept(&with("t [type=tool, tool_command=x, holdouts=true] start -> t -> exit"));
    let help = |path: &str, text: &str| {
        let found = scripts(&pipeline, &[Script { path, text }]);
        found[0].diagnostic.help.clone().unwrap()
    };
    for (path, line, apart) in [
        ("a.sh", "x=$(sh src/prog.sh \"$1\")", "x=$(subject sh src/prog.sh \"$1\")"),
        ("a.sh", "\"bin/prog\" x", "subject \"bin/prog\" x"),
        ("a.sh", "sh -c \"make\"", "sh -c \"subject make\""),
        ("a.sh", "A=1 timeout 5 bin/prog", "A=1 timeout 5 subject bin/prog"),
        ("a.py", "run([\"make\", \"x\"])", "run([\"subject\", \"make\", \"x\"])"),
        ("a.py", "run([sys.executable, \"app.py\"])", "run([\"subject\", sys.executable, \"app.py\"])"),
    ] {
        assert_eq!(help(path, &format!("true\n  {line}\ntrue\n")), format!("start it in its own sandbox: `{apart}`"));
    }
    assert!(help("a.sh", "pytest scripts/scenarios").contains("read_paths=\"scripts/scenarios/\""));
}
