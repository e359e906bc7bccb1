//! Rules about hold-outs: ways in which builders could see them, and unreliable scripts in hold-out folders
//! (decision reliable-scenario-scripts).

use super::Rule;
use crate::diagnostic::Severity::{Error, Info, Warning};
use crate::lint::{holdout_naming, holdout_reach, isolation};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "scenario_opt_out",
        severity: Warning,
        check: Some(holdout_reach::scenario_opt_out),
        summary: "a stage that hold-outs test should not read them",
        help: "remove the attribute unless you want this; the run records it",
        why: "A builder that has read the scenarios can write code that passes them and nothing else. The verdict then proves \
              nothing. You may opt out, but never silently: the plan and the record of the run show it.",
        bad: include_str!("../../../rules/scenario_opt_out.bad.dot"),
        good: include_str!("../../../rules/scenario_opt_out.good.dot"),
    },
    Rule {
        id: "scenario_reader_feeds_builder",
        severity: Warning,
        check: Some(holdout_reach::scenario_reader_feeds_builder),
        summary: "output that shows hold-outs should not reach a builder",
        help: "leave `scenario_feedback` at `summary`, or remove the path from the stage to a builder",
        why: "If a stage that can read hold-outs passes on its full output, the next builder learns which scenarios test its work. That is as bad \
              as reading the folder. The loop then fits the code to the scenarios. With the default, `summary`, builders get the \
              verdict and public hints.",
        bad: include_str!("../../../rules/scenario_reader_feeds_builder.bad.dot"),
        good: include_str!("../../../rules/scenario_reader_feeds_builder.good.dot"),
    },
    Rule {
        id: "prompt_mentions_scenarios",
        severity: Warning,
        check: Some(holdout_reach::prompt_mentions_scenarios),
        summary: "a prompt should not mention the hold-outs",
        help: "describe the wanted behaviour instead; the folder does not exist for the stage",
        why: "The folder does not exist for a builder, so an instruction about it makes the agent search for it. An instruction \
              not to read it tells the agent that there is something to read.",
        bad: include_str!("../../../rules/prompt_mentions_scenarios.bad.dot"),
        good: include_str!("../../../rules/prompt_mentions_scenarios.good.dot"),
    },
    Rule {
        id: "subject_not_isolated",
        severity: Warning,
        check: Some(isolation::subject_not_isolated),
        summary: "code of the project should run apart from the hold-outs that test it",
        help: "start the program under test with `subject`: it runs in a sandbox of its own, without hold-outs",
        why: "Builders wrote the program under test. In the sandbox of the stage that tests it, the program can read the \
              hold-outs. A test runner that loads it ends with the result that the code under test wants. This rule searches the \
              commands of `tool` and `verify` stages and the scripts among the hold-outs. It looks for test runners, build \
              tools, interpreters that run a file of the project, and programs in the project. A stage whose own commands see \
              only the hold-outs is safe.",
        bad: include_str!("../../../rules/subject_not_isolated.bad.dot"),
        good: include_str!("../../../rules/subject_not_isolated.good.dot"),
    },
    Rule {
        id: "project_beside_holdouts",
        severity: Info,
        check: Some(isolation::project_beside_holdouts),
        summary: "a stage that uses `subject` should see only the hold-outs",
        help: "show the stage's own commands only the hold-outs: `read_paths=\"scripts/scenarios/\"`",
        why: "The host cannot know which of the files in a stage's sandbox were executed there. A verdict counts as isolated \
              only if the stage's own commands see nothing of the workspace but the hold-outs. Otherwise the summary of a run \
              shows it as `verified (subject not isolated)`. The program under test sees the project in both cases.",
        bad: include_str!("../../../rules/project_beside_holdouts.bad.dot"),
        good: include_str!("../../../rules/project_beside_holdouts.good.dot"),
    },
    Rule {
        id: "verifier_attribute",
        severity: Error,
        check: Some(isolation::verifier_attribute),
        summary: "an attribute for verifying stages must be on a `tool` or `verify` stage",
        help: "move it to the `tool` or `verify` stage that runs the scenarios, or remove it",
        why: "`verify_subject` and `verify_subject_port` name the program under test of a `tool` or `verify` stage; \
              `scenario_writes` decides what a stage with hold-outs in reach commits. On any other stage they have no effect, \
              and the file would promise a protection that does not exist.",
        bad: include_str!("../../../rules/verifier_attribute.bad.dot"),
        good: include_str!("../../../rules/verifier_attribute.good.dot"),
    },
    Rule {
        id: "subject_port",
        severity: Error,
        check: Some(isolation::subject_port),
        summary: "`verify_subject_port` needs `verify_subject` and a free port",
        help: "name the program: `verify_subject=\"python3 -m app --port 8080\"`",
        why: "With a port, the program under test starts with the stage, and its loopback port is forwarded to the stage's \
              commands. Without `verify_subject` there is no program to start. Port 3128 is in use: the proxy of the stage's own \
              commands listens on it.",
        bad: include_str!("../../../rules/subject_port.bad.dot"),
        good: include_str!("../../../rules/subject_port.good.dot"),
    },
    Rule {
        id: "cache_from",
        severity: Error,
        check: Some(isolation::cache_from),
        summary: "`cache_from` needs `cache` on the same node",
        help: "name the folder, such as `cache=\"target/\"`, or remove `cache_from`",
        why: "A stage with hold-outs in reach begins each visit with empty caches. Any other verifier begins with what \
            earlier stages left in the caches, and code of builders can have run in those stages. With \
            `cache_from=\"base\"`, its command runs once over the files that the run began with. Each visit then begins with \
            a copy of what this first execution left in the folders of `cache`. Without `cache` on the same node nothing is kept, and \
            every visit builds everything again.",
        bad: include_str!("../../../rules/cache_from.bad.dot"),
        good: include_str!("../../../rules/cache_from.good.dot"),
    },
    Rule {
        id: "holdout_folder",
        severity: Error,
        check: Some(holdout_naming::holdout_folder),
        summary: "`holdouts` must list hold-out folders",
        help: "list folders exactly as in the graph's `scenarios`, or write `true` for all of them and `false` for none",
        why: "`holdouts` says which hold-outs a stage runs. A folder that is not a hold-out folder is in the workspace, where every stage sees \
              it. A part of a folder cannot be given: a stage has a hold-out folder in reach as a whole or not at all.",
        bad: include_str!("../../../rules/holdout_folder.bad.dot"),
        good: include_str!("../../../rules/holdout_folder.good.dot"),
    },
    Rule {
        id: "holdout_writes_dropped",
        severity: Warning,
        check: Some(holdout_naming::holdout_writes_dropped),
        summary: "a stage with hold-outs in reach should not write files",
        help: "keep the files of the stage with `scenario_writes=\"commit\"`, or forbid writes with `allowed_write_paths=\"\"`; if \
               the stage runs no hold-outs, hide them with `holdouts=false`",
        why: "A stage has hold-outs in reach if its command, the commands that its plan may contain, its verify contract, \
            `read_paths` or `holdouts` names them. What the stage writes could show the hold-outs to builders, so none of it \
            is kept, not even in the paths that `allowed_write_paths` lists. The summary of the run names each file. With \
            `scenario_writes=\"commit\"` the files are kept, whatever they contain.",
        bad: include_str!("../../../rules/holdout_writes_dropped.bad.dot"),
        good: include_str!("../../../rules/holdout_writes_dropped.good.dot"),
    },
    Rule {
        id: "holdouts_unread",
        severity: Warning,
        check: Some(holdout_naming::holdouts_unread),
        summary: "a stage should see the hold-outs that its command names",
        help: "add `holdouts=true` to the stage that runs them, or the folder to its `read_paths`",
        why: "`read_paths` limits what a stage sees, hold-outs included. A command that names a hold-out which the stage cannot \
              see finds no such file. Hold-outs exist only for a stage that names them. A stage that runs them through a script \
              of the project, such as `make verify`, needs `holdouts=true`. If no stage of a pipeline has the hold-outs in \
              reach, nothing is tested with them.",
        bad: include_str!("../../../rules/holdouts_unread.bad.dot"),
        good: include_str!("../../../rules/holdouts_unread.good.dot"),
    },
    Rule {
        id: "hardcoded_model_in_scenario",
        severity: Warning,
        check: Some(holdout_reach::hardcoded_model_in_scenario),
        summary: "a scenario should not name a live model",
        help: "read the model from the environment, or ask the provider for its list of models",
        why: "Providers retire models. From that day, a scenario with a fixed model id fails for correct code, and the loop \
              changes code that is not broken. This rule searches the commands and `env_*` attributes of stages that run \
              scenarios, and the scripts themselves.",
        bad: include_str!("../../../rules/hardcoded_model_in_scenario.bad.dot"),
        good: include_str!("../../../rules/hardcoded_model_in_scenario.good.dot"),
    },
    Rule {
        id: "fixed_temporary_name",
        severity: Warning,
        check: None,
        summary: "a scenario script should create its temporary files with `mktemp`",
        help: "write `file=$(mktemp)`, and remove the file when the script ends",
        why: "All programs that run at the same time share a fixed name below `/tmp`. Two runs overwrite each other's files, and \
              a file from an earlier run can make a scenario pass. `mktemp` gives each run its own file.",
        bad: include_str!("../../../rules/fixed_temporary_name.bad.sh"),
        good: include_str!("../../../rules/fixed_temporary_name.good.sh"),
    },
];
