//! Scripts of hold-outs, and the stages that run or show them.

use super::lint::rule;
use super::with;
use glovebox_pipeline::lint::scripts;
use insta::assert_snapshot;

/// The findings of a script, one line each: rule, the text under the span, message.
fn found(text: &str) -> String {
    let lines = scripts(&[("scripts/scenarios/a.sh", text)]).into_iter().map(|found| {
        assert_eq!(found.path, "scripts/scenarios/a.sh");
        format!("{} «{}» {}", found.diagnostic.rule, found.diagnostic.span.of(text), found.diagnostic.message)
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn fixed_temporary_names_are_found() {
    assert_snapshot!(found("#!/bin/sh\nout=/tmp/out.txt\nrun >/tmp/größe.log 2>&1; cat \"/var/tmp/x\" '${TMPDIR:-/tmp}/y'\n"), @"
    fixed_temporary_name «/tmp/out.txt» `/tmp/out.txt` is the same file for every run
    fixed_temporary_name «/tmp/größe.log» `/tmp/größe.log` is the same file for every run
    fixed_temporary_name «/var/tmp/x» `/var/tmp/x` is the same file for every run
    fixed_temporary_name «${TMPDIR:-/tmp}/y» `${TMPDIR:-/tmp}/y` is the same file for every run
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
    assert_eq!(scripts(&[("a", &many), ("b", &many)]).len(), 100);
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
        rule("scenario_reader_feeds_builder", &with(&format!("b [prompt=b] t [type=tool, tool_command=t] {body}")))
    };
    assert_snapshot!(feeds("t [scenario_feedback=full] start -> b -> t t -> b [condition=\"outcome=fail\"] t -> exit"), @"scenario_reader_feeds_builder «full» all that `t` prints about the hold-outs is told to the builder `b`");
    assert_snapshot!(feeds("graph [scenario_feedback=full] start -> t -> b -> exit"), @"scenario_reader_feeds_builder «t» all that `t` prints about the hold-outs is told to the builder `b`");
    assert_snapshot!(feeds("r [prompt=r, codex.allow_read_scenarios=true] start -> t -> r -> b -> exit"), @"scenario_reader_feeds_builder «true» `r`, which may read the hold-outs, leads to the builder `b`");
    assert_eq!(feeds("t [scenario_feedback=full] start -> b -> t -> exit"), "", "nobody builds after it");
    assert_eq!(feeds("start -> t -> b -> exit"), "", "a summary");
}
