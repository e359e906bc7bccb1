//! Rules about hold-outs: what gives them away, and what makes their scripts unreliable (seed 2).

use super::Rule;
use crate::diagnostic::Severity::{Error, Info, Warning};
use crate::lint::{holdouts, isolation};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "scenario_opt_out",
        severity: Warning,
        check: Some(holdouts::scenario_opt_out),
        summary: "hold-outs are kept from the stages they judge",
        help: "remove the attribute unless it is meant: a run records it",
        why: "A builder that has read the scenarios can write code that passes them and nothing else, and the verdict says nothing \
              any more (seed 2). To opt out is allowed and never silent: it stands in the plan and in the run's record.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", "codex.allow_read_scenarios"=true]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "scenario_reader_feeds_builder",
        severity: Warning,
        check: Some(holdouts::scenario_reader_feeds_builder),
        summary: "nothing that shows hold-outs leads to a builder",
        help: "leave `scenario_feedback` at `summary`, or let no way lead from the stage to a builder",
        why: "A stage that has hold-outs in reach and whose output is handed on in full tells the next builder what it is judged by, \
              as surely as if the builder read the folder (seed 2). The loop then fits the code to the scenarios. With the default, \
              `summary`, builders get the verdict and public hints.",
        bad: r#"digraph ship {
  graph [max_steps=20]
  judge [shape=octagon, command="sh scripts/scenarios/all.sh", allowed_write_paths="", scenario_feedback=full]
  build [prompt="Build it", allowed_write_paths="src/"]
  start; exit
  start -> build -> judge
  judge -> exit  [condition="outcome=success"]
  judge -> build [condition="outcome=fail"]
}"#,
        good: r#"digraph ship {
  graph [max_steps=20]
  judge [shape=octagon, command="sh scripts/scenarios/all.sh", allowed_write_paths=""]
  build [prompt="Build it", allowed_write_paths="src/"]
  start; exit
  start -> build -> judge
  judge -> exit  [condition="outcome=success"]
  judge -> build [condition="outcome=fail"]
}"#,
    },
    Rule {
        id: "prompt_mentions_scenarios",
        severity: Warning,
        check: Some(holdouts::prompt_mentions_scenarios),
        summary: "no prompt names the hold-outs",
        help: "describe what is wanted instead; the folder does not exist for the stage",
        why: "For a builder the folder does not exist, so an instruction about it sends the agent looking. An instruction not to \
              read it says that there is something to read (seed 2).",
        bad: r#"digraph ship {
  review [prompt="Review the code; do not read scripts/scenarios", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "subject_not_isolated",
        severity: Warning,
        check: Some(isolation::subject_not_isolated),
        summary: "code of the project runs apart from the hold-outs that judge it",
        help: "start the program under test with `subject`: it runs in a sandbox of its own, without hold-outs",
        why: "The program under test is what builders wrote. In the sandbox of the stage that judges it, it reads the hold-outs, and a \
              test runner that loads it ends with the result that the code under test wants. Looked for by name in the commands of \
              `tool` and `verify` stages and in the scripts among the hold-outs: test runners, build tools, interpreters over a file \
              of the project and programs in it. A stage whose own commands see the hold-outs alone is safe.",
        bad: r#"digraph ship {
  judge [shape=octagon, command="sh src/prog.sh < scripts/scenarios/in | cmp - scripts/scenarios/out"]
  start; exit
  start -> judge -> exit
}"#,
        good: r#"digraph ship {
  judge [shape=octagon, read_paths="scripts/scenarios/",
         command="subject sh src/prog.sh < scripts/scenarios/in | cmp - scripts/scenarios/out"]
  start; exit
  start -> judge -> exit
}"#,
    },
    Rule {
        id: "project_beside_holdouts",
        severity: Info,
        check: Some(isolation::project_beside_holdouts),
        summary: "a stage that uses `subject` sees the hold-outs alone",
        help: "let the stage's own commands see the hold-outs alone: `read_paths=\"scripts/scenarios/\"`",
        why: "The host cannot know which of the files in a stage's sandbox were executed there. A verdict counts as isolated only if \
              the stage's own commands see nothing of the workspace but the hold-outs. Otherwise the summary of a run shows it as \
              `verified (subject not isolated)`. The program under test sees the project all the same.",
        bad: r#"digraph ship {
  judge [shape=octagon, command="subject sh src/prog.sh < scripts/scenarios/in | cmp - scripts/scenarios/out"]
  start; exit
  start -> judge -> exit
}"#,
        good: r#"digraph ship {
  judge [shape=octagon, read_paths="scripts/scenarios/",
         command="subject sh src/prog.sh < scripts/scenarios/in | cmp - scripts/scenarios/out"]
  start; exit
  start -> judge -> exit
}"#,
    },
    Rule {
        id: "verifier_attribute",
        severity: Error,
        check: Some(isolation::verifier_attribute),
        summary: "attributes of stages that verify stand on such a stage",
        help: "move it to the `tool` or `verify` stage that runs the scenarios, or remove it",
        why: "`verify_subject` and `verify_subject_port` name the program under test of a `tool` or `verify` stage; `scenario_writes` \
              decides what a stage with hold-outs in reach commits. On any other stage they have no effect, and a reader of the file \
              would believe in a wall that does not exist.",
        bad: r#"digraph ship {
  build [prompt="Build it", allowed_write_paths="src/", verify_subject="sh src/prog.sh"]
  judge [shape=octagon, command="sh scripts/scenarios/all.sh", read_paths="scripts/scenarios/"]
  start; exit
  start -> build -> judge -> exit
}"#,
        good: r#"digraph ship {
  build [prompt="Build it", allowed_write_paths="src/"]
  judge [shape=octagon, command="sh scripts/scenarios/all.sh", read_paths="scripts/scenarios/",
         verify_subject="sh src/prog.sh"]
  start; exit
  start -> build -> judge -> exit
}"#,
    },
    Rule {
        id: "subject_port",
        severity: Error,
        check: Some(isolation::subject_port),
        summary: "`verify_subject_port` is a free port of the program in `verify_subject`",
        help: "name the program: `verify_subject=\"python3 -m app --port 8080\"`",
        why: "With a port the program under test starts with the stage and its loopback port is forwarded to the stage's commands. \
              Without `verify_subject` there is no program to start. On port 3128 the proxy of the stage's own commands accepts, so \
              nothing else can.",
        bad: r#"digraph ship {
  judge [shape=octagon, command="sh scripts/scenarios/all.sh", read_paths="scripts/scenarios/",
         verify_subject_port=8080]
  start; exit
  start -> judge -> exit
}"#,
        good: r#"digraph ship {
  judge [shape=octagon, command="sh scripts/scenarios/all.sh", read_paths="scripts/scenarios/",
         verify_subject="python3 -m app --port 8080", verify_subject_port=8080]
  start; exit
  start -> judge -> exit
}"#,
    },
    Rule {
        id: "cache_from",
        severity: Error,
        check: Some(isolation::cache_from),
        summary: "`cache_from` stands beside the `cache` that it fills",
        help: "name the folder, such as `cache=\"target/\"`, or remove `cache_from`",
        why: "A stage with hold-outs in reach begins each visit with empty caches. `cache_from=\"base\"` has its command run once over \
              the files that the run began with, and each visit begins with a copy of what that left in the folders of `cache`. \
              Without `cache` on the same node there is nothing to keep, and the build that was meant to be quick starts from nothing.",
        bad: r#"digraph ship {
  judge [shape=octagon, command="sh scripts/scenarios/all.sh", read_paths="scripts/scenarios/",
         cache_from="base"]
  start; exit
  start -> judge -> exit
}"#,
        good: r#"digraph ship {
  judge [shape=octagon, command="sh scripts/scenarios/all.sh", read_paths="scripts/scenarios/",
         cache="target/", cache_from="base"]
  start; exit
  start -> judge -> exit
}"#,
    },
    Rule {
        id: "hardcoded_model_in_scenario",
        severity: Warning,
        check: Some(holdouts::hardcoded_model_in_scenario),
        summary: "scenarios name no live model",
        help: "take the model from the environment, or ask the provider's list of models",
        why: "Providers retire models. A scenario with a model's id in it fails on that day for code that is right, and the loop \
              before it begins to mend what is not broken (seed 2, scenario script reliability). Looked for in the commands and \
              `env_*` attributes of stages that run scenarios, and in the scripts themselves.",
        bad: r#"digraph ship {
  judge [shape=octagon, command="sh scripts/scenarios/chat.sh --model gpt-4o-mini", allowed_write_paths=""]
  start; exit
  start -> judge -> exit
}"#,
        good: r#"digraph ship {
  judge [shape=octagon, command="sh scripts/scenarios/chat.sh --model \"$MODEL\"", allowed_write_paths=""]
  start; exit
  start -> judge -> exit
}"#,
    },
    Rule {
        id: "fixed_temporary_name",
        severity: Warning,
        check: None,
        summary: "a scenario script makes its temporary files with `mktemp`",
        help: "write `file=$(mktemp)`, and remove the file when the script ends",
        why: "A fixed name below `/tmp` is shared by everything that runs at the time: two runs overwrite each other's files, and what \
              an earlier run left behind can make a scenario pass (seed 2, scenario script reliability). `mktemp` gives each run its \
              own.",
        bad: r#"#!/bin/sh
app --export > /tmp/export.json
grep -q '"total": 3' /tmp/export.json"#,
        good: r#"#!/bin/sh
file=$(mktemp)
app --export > "$file"
grep -q '"total": 3' "$file""#,
    },
];
