//! Rules about what stages may do: write scopes, and commands that are there and stay in the workspace (seed 2).

use super::Rule;
use crate::diagnostic::Severity::{Error, Warning};
use crate::lint::{guardrails, mending};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "write_scope_missing",
        severity: Warning,
        check: Some(guardrails::write_scope_missing),
        summary: "every working stage says what it may write",
        help: "name folders and files: `allowed_write_paths=\"src/,README.md\"`; `\"./\"` allows the whole workspace, an empty value nothing",
        why: "Without a scope a stage of ours may change any file of the workspace, tests and configuration included (seed 2; design \
              §9 #21). An agent that cannot make a test pass may then change the test. With a scope everything else is read-only \
              for it, and what it tries all the same is a failure with the path in it.",
        bad: r#"digraph ship {
  build [prompt="Build it"]
  test  [shape=parallelogram, tool_command="cargo test", allowed_write_paths="target/"]
  start; exit
  start -> build -> test -> exit
}"#,
        good: r#"digraph ship {
  build [prompt="Build it", allowed_write_paths="src/,Cargo.toml"]
  test  [shape=parallelogram, tool_command="cargo test", allowed_write_paths="target/"]
  start; exit
  start -> build -> test -> exit
}"#,
    },
    Rule {
        id: "path_pattern",
        severity: Warning,
        check: Some(guardrails::path_pattern),
        summary: "path lists hold paths, not patterns",
        help: "name the folder with a trailing `/`, or each file",
        why: "Scopes are exact files and folders with a final `/` (seed 2). A `*` is a letter of a file's name there: the stage is \
              refused every file that the pattern was meant to allow.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", read_paths="src/**/*.rs"]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", read_paths="src/"]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "protected_write_path",
        severity: Warning,
        check: Some(guardrails::protected_write_path),
        summary: "a write scope names no path that is protected",
        help: "leave the path out of `allowed_write_paths`, and change that file by hand",
        why: "Some files make programs run because they exist: repositories and their hooks, CI workflows, settings of editors, shells, \
              agents, toolchains and package managers, Glovebox's own files. No scope grants them, in any spelling and in any \
              folder, so that what a run wrote does nothing until a person starts it. The stage is refused such a write and fails; \
              the list is in docs/confinement.md.",
        bad: r#"digraph ship {
  build [prompt="Build it", allowed_write_paths="src/,.github/workflows/"]
  test  [shape=parallelogram, tool_command="cargo test", allowed_write_paths="target/"]
  start; exit
  start -> build -> test -> exit
}"#,
        good: r#"digraph ship {
  build [prompt="Build it", allowed_write_paths="src/"]
  test  [shape=parallelogram, tool_command="cargo test", allowed_write_paths="target/"]
  start; exit
  start -> build -> test -> exit
}"#,
    },
    Rule {
        id: "read_scope_workdir",
        severity: Warning,
        check: Some(guardrails::read_scope_workdir),
        summary: "a strict read scope has a working directory",
        help: "set `codex.workdir=\"agent\"`, or `codex.workdir=\".\"` where all of the workspace may be read",
        why: "`codex.strict_read_scope` leaves a stage its working directory, `codex.add_dirs` and its write scope (seed 2). Without \
              a working directory hardly anything is left to see, and the agent reports that the project is empty.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", "codex.strict_read_scope"=true]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", "codex.strict_read_scope"=true, "codex.workdir"="app"]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "tool_command_required",
        severity: Error,
        check: Some(guardrails::tool_command_required),
        summary: "a tool stage has a `tool_command`",
        help: "set `tool_command=\"cargo test\"`",
        why: "A tool stage runs its `tool_command` (spec §4.10, seed 2). Without one it can only fail, each time, with `No \
              tool_command specified`.",
        bad: r#"digraph ship {
  test [shape=parallelogram, allowed_write_paths=""]
  start; exit
  start -> test -> exit
}"#,
        good: r#"digraph ship {
  test [shape=parallelogram, tool_command="cargo test", allowed_write_paths=""]
  start; exit
  start -> test -> exit
}"#,
    },
    Rule {
        id: "command_required",
        severity: Error,
        check: Some(guardrails::command_required),
        summary: "a verify stage has a `command`",
        help: "set `command=\"cargo test\"`",
        why: "A verify stage runs its `command` and takes the exit code as the verdict (seed 0, fix 4). Without one there is nothing \
              to verify by; the attribute of a tool stage, `tool_command`, is not read there.",
        bad: r#"digraph ship {
  test [shape=octagon, allowed_write_paths=""]
  start; exit
  start -> test -> exit
}"#,
        good: r#"digraph ship {
  test [shape=octagon, command="cargo test", allowed_write_paths=""]
  start; exit
  start -> test -> exit
}"#,
    },
    Rule {
        id: "allow_list_missing",
        severity: Warning,
        check: Some(guardrails::allow_list_missing),
        summary: "a verification stage says which commands a plan may hold",
        help: "set `verification.allowed_commands=\"cargo test,test -f\"`",
        why: "The plan that a verification stage runs is written by a model, so the commands in it have to begin with one of the \
              prefixes that the pipeline's author allows (seed 2). Without the list no command is allowed, and the stage fails with \
              `verification.allowed_commands is required`.",
        bad: r#"digraph ship {
  plan  [prompt="Return a verification_plan", allowed_write_paths=""]
  check [type=verification]
  start; exit
  start -> plan -> check -> exit
}"#,
        good: r#"digraph ship {
  plan  [prompt="Return a verification_plan", allowed_write_paths=""]
  check [type=verification, "verification.allowed_commands"="cargo test,test -f"]
  start; exit
  start -> plan -> check -> exit
}"#,
    },
    Rule {
        id: "tool_command_guard",
        severity: Error,
        check: Some(guardrails::tool_command_guard),
        summary: "a `tool_command` stays in the workspace",
        help: "use paths relative to the workspace",
        why: "A command that names a home (`~`), a `..` segment or an absolute path depends on the machine it was written on, and \
              reaches for what it will not find where it runs (seed 2). A `~` inside a word is none, such as in `HEAD~1`, nor is \
              `/dev/null` a place. The rule is an early word: what a command can reach is settled by the jail, whatever it names \
              (design §9 #18).",
        bad: r#"digraph ship {
  test [shape=parallelogram, tool_command="cargo test --manifest-path ../app/Cargo.toml", allowed_write_paths=""]
  start; exit
  start -> test -> exit
}"#,
        good: r#"digraph ship {
  test [shape=parallelogram, tool_command="cargo test --manifest-path app/Cargo.toml", allowed_write_paths=""]
  start; exit
  start -> test -> exit
}"#,
    },
    Rule {
        id: "working_dir_inside",
        severity: Error,
        check: Some(guardrails::working_dir_inside),
        summary: "a `working_dir` is a folder of the workspace",
        help: "write it relative to the workspace, such as `crates/app`",
        why: "Commands start in the workspace or in a folder of it (seeds 0 and 2). A directory outside does not exist where they \
              run, and the stage fails before its command begins.",
        bad: r#"digraph ship {
  test [shape=octagon, command="cargo test", allowed_write_paths="", working_dir="/srv/app"]
  start; exit
  start -> test -> exit
}"#,
        good: r#"digraph ship {
  test [shape=octagon, command="cargo test", allowed_write_paths="", working_dir="app"]
  start; exit
  start -> test -> exit
}"#,
    },
    Rule {
        id: "unfixable_failure_source",
        severity: Warning,
        check: Some(mending::unfixable_failure_source),
        summary: "a stage that follows a failed tool may write the scripts that the tool runs",
        help: "add the scripts to `allowed_write_paths`, or keep them in `scenarios`; as it stands a failure ends the run there",
        why: "When the script is what is wrong, no round of the loop can end well: the stage that follows the failure may not touch \
              it. The run stops with this reason in place of turning until its bound (seed 2). Scripts among the hold-outs are \
              exempt, since to fail is their work (design §9 #19).",
        bad: r#"digraph ship {
  graph [max_steps=20]
  test   [shape=parallelogram, tool_command="sh tools/test.sh", allowed_write_paths=""]
  repair [prompt="Make the tests pass", allowed_write_paths="src/"]
  start; exit
  start -> test
  test -> exit   [condition="outcome=success"]
  test -> repair [condition="outcome=fail"]
  repair -> test
}"#,
        good: r#"digraph ship {
  graph [max_steps=20]
  test   [shape=parallelogram, tool_command="sh tools/test.sh", allowed_write_paths=""]
  repair [prompt="Make the tests pass", allowed_write_paths="src/,tools/test.sh"]
  start; exit
  start -> test
  test -> exit   [condition="outcome=success"]
  test -> repair [condition="outcome=fail"]
  repair -> test
}"#,
    },
];
