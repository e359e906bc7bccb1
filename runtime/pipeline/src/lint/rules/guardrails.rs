//! Rules about the permissions of stages: write scopes, required commands, and commands that stay in the workspace
//! (decision tool-command-guard).

use super::Rule;
use crate::diagnostic::Severity::{Error, Info, Warning};
use crate::lint::{diff_limits, fixability_rule, gates, guardrails, required_tool};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "write_scope_missing",
        severity: Warning,
        check: Some(guardrails::write_scope_missing),
        summary: "every working stage should declare what it may write",
        help: "name folders and files, for example `allowed_write_paths=\"src/,README.md\"`; `\"./\"` allows the whole workspace, an empty value nothing",
        why: "Without a write scope, a built-in stage may change any file in the workspace, tests and configuration included. An \
              agent that cannot make a test pass may then change the test. With a write scope, all other files are read-only for \
              the stage. A write outside the scope fails the stage, and the failure names the path.",
        bad: include_str!("../../../rules/write_scope_missing.bad.dot"),
        good: include_str!("../../../rules/write_scope_missing.good.dot"),
    },
    Rule {
        id: "path_pattern",
        severity: Warning,
        check: Some(guardrails::path_pattern),
        summary: "a path list should contain paths, not patterns",
        help: "name the folder with a final `/`, or each file",
        why: "A scope contains exact files, and folders with a final `/`. A `*` is an ordinary character of a file name in it. \
              The stage cannot use any file that the pattern was meant to allow.",
        bad: include_str!("../../../rules/path_pattern.bad.dot"),
        good: include_str!("../../../rules/path_pattern.good.dot"),
    },
    Rule {
        id: "protected_write_path",
        severity: Warning,
        check: Some(guardrails::protected_write_path),
        summary: "a write scope should not contain a protected path",
        help: "remove the path from `allowed_write_paths`, and change that file by hand",
        why: "Some files make programs run just because they exist: repositories and their hooks, CI workflows, settings of \
              editors, shells, agents, toolchains and package managers, and Glovebox's own files. No write scope allows them, in \
              any folder and in any spelling. So the files that a run wrote do nothing until a person starts them. Glovebox \
              refuses such a write, and the stage fails. docs/confinement.md lists these files.",
        bad: include_str!("../../../rules/protected_write_path.bad.dot"),
        good: include_str!("../../../rules/protected_write_path.good.dot"),
    },
    Rule {
        id: "read_scope_workdir",
        severity: Warning,
        check: Some(guardrails::read_scope_workdir),
        summary: "a strict read scope should have a working directory",
        help: "set `codex.workdir=\"agent\"`, or `codex.workdir=\".\"` to allow the whole workspace",
        why: "With `codex.strict_read_scope`, a stage sees only its working directory, `codex.add_dirs` and its write scope. \
              Without a working directory it sees almost nothing, and the agent reports that the project is empty.",
        bad: include_str!("../../../rules/read_scope_workdir.bad.dot"),
        good: include_str!("../../../rules/read_scope_workdir.good.dot"),
    },
    Rule {
        id: "tool_command_required",
        severity: Error,
        check: Some(guardrails::tool_command_required),
        summary: "a tool stage must have a `tool_command`",
        help: "set `tool_command=\"cargo test\"`",
        why: "A tool stage runs its `tool_command` (Attractor spec §4.10). Without one it always fails with `No tool_command \
              specified`.",
        bad: include_str!("../../../rules/tool_command_required.bad.dot"),
        good: include_str!("../../../rules/tool_command_required.good.dot"),
    },
    Rule {
        id: "command_required",
        severity: Error,
        check: Some(guardrails::command_required),
        summary: "a verify stage must have a `command`",
        help: "set `command=\"cargo test\"`",
        why: "A verify stage runs its `command`, and the exit code is the verdict. Without a command there is nothing to run. A \
              verify stage does not read `tool_command`, which belongs to tool stages.",
        bad: include_str!("../../../rules/command_required.bad.dot"),
        good: include_str!("../../../rules/command_required.good.dot"),
    },
    Rule {
        id: "allow_list_missing",
        severity: Warning,
        check: Some(guardrails::allow_list_missing),
        summary: "a verification stage should list the commands that a plan may contain",
        help: "set `verification.allowed_commands=\"cargo test,test -f\"`",
        why: "A model writes the plan that a verification stage runs. So every command of the plan must begin with one of the \
              prefixes that the pipeline's author allows. Without the list no command is allowed, and the stage fails with \
              `verification.allowed_commands is required`. An empty list says that no plan may contain a command: the stage runs what \
              `[verify]` in glovebox.toml adds.",
        bad: include_str!("../../../rules/allow_list_missing.bad.dot"),
        good: include_str!("../../../rules/allow_list_missing.good.dot"),
    },
    Rule {
        id: "tool_command_guard",
        severity: Error,
        check: None,
        summary: "a `tool_command` must stay in the workspace",
        help: "use paths relative to the workspace",
        why: "A command that names a home directory (`~`), a `..` segment or an absolute path depends on one machine. The \
              sandbox does not contain that path. A `~` inside a word is allowed, such as in `HEAD~1`, and so are devices such as \
              `/dev/null`. A path below `/tmp` is an error only if another stage names it too, unless both begin with writing the \
              file: each stage has its own `/tmp`. This rule only reports the mistake early: the sandbox decides what a command can reach, whatever the command \
              names.",
        bad: include_str!("../../../rules/tool_command_guard.bad.dot"),
        good: include_str!("../../../rules/tool_command_guard.good.dot"),
    },
    Rule {
        id: "private_tmp",
        severity: Info,
        check: None,
        summary: "a path below `/tmp` is private to a stage",
        help: "write `$TMPDIR/name`",
        why: "Each stage has its own `/tmp`, which is empty when the stage begins and removed when it ends. The command works, but \
              no other stage and no later visit finds the file. `$TMPDIR` names the same folder and says so. A file that is to be \
              kept belongs in the workspace.",
        bad: include_str!("../../../rules/private_tmp.bad.dot"),
        good: include_str!("../../../rules/private_tmp.good.dot"),
    },
    Rule {
        id: "working_dir_inside",
        severity: Error,
        check: Some(guardrails::working_dir_inside),
        summary: "`working_dir` must be a folder of the workspace",
        help: "write it relative to the workspace, such as `crates/app`",
        why: "Commands start in the workspace or in a folder of it. A directory outside the workspace does not exist in the \
              sandbox, and the stage fails before its command begins.",
        bad: include_str!("../../../rules/working_dir_inside.bad.dot"),
        good: include_str!("../../../rules/working_dir_inside.good.dot"),
    },
    Rule {
        id: "verify_command_place",
        severity: Error,
        check: None,
        summary: "`verify_command` must be on a node whose work a command can verify",
        help: "add a stage that runs it: `shape=octagon, command=\"cargo test\"`",
        why: "`verify_command` runs after the work of an agent, a plugin, a diamond or a fan-in, or before a run ends at an \
            exit. The node succeeds only if the command ends with 0. A tool, verify or verification stage is a check itself, \
            and a start, a parallel node or a human gate does no work. Such a command would never run, and the file would \
            look checked. In a defaults block, the attribute applies to the nodes that can have it.",
        bad: include_str!("../../../rules/verify_command_place.bad.dot"),
        good: include_str!("../../../rules/verify_command_place.good.dot"),
    },
    Rule {
        id: "gate_receipt",
        severity: Error,
        check: Some(gates::gate_receipt),
        summary: "`gate_requires=\"receipt\"` must be on a goal gate where a verifier runs",
        help: "set `goal_gate=true`, and `verify_command` if the stage is an agent",
        why: "A receipt is the host's record of a command that a verifier ran. A gate that requires one is satisfied only by such \
              a command that passed in the last visit. Without `goal_gate=true` there is no gate. On a stage that never \
              verifies, the gate could not be met, and the run would fail at its exit after all work is done.",
        bad: include_str!("../../../rules/gate_receipt.bad.dot"),
        good: include_str!("../../../rules/gate_receipt.good.dot"),
    },
    Rule {
        id: "required_tool_node",
        severity: Error,
        check: Some(required_tool::required_tool_node),
        summary: "`required_tool_node` must name a tool, verify or verification stage, and only a node that does work can have it",
        help: "set `requires_tool_success=true, required_tool_node=\"ID\"` with the id of a tool, verify or verification stage",
        why: "With `requires_tool_success=true` a stage begins its work only if the last command of another stage has passed, as \
            the host's receipt says. `required_tool_node` names that other stage. If only one of the two attributes were set, \
            or if the node had no work that could wait, nothing would be enforced, and the file would look guarded.",
        bad: include_str!("../../../rules/required_tool_node.bad.dot"),
        good: include_str!("../../../rules/required_tool_node.good.dot"),
    },
    Rule {
        id: "runs_on",
        severity: Error,
        check: None,
        summary: "`runs_on` must be on a node that makes attempts, and some machine must be able to have all that it needs",
        help: "write labels, `arch=` and `tier=`, separated by commas: `gpu, arch=arm64, tier=full`",
        why: "`runs_on` says what the machine of a stage must have, in addition to `runs_on` of the graph and of `[fleet]` in \
            `glovebox.toml`. A machine has one architecture, so two of them are a need that nothing meets. A start, a \
            parallel node or a human gate has no attempt that a machine could refuse, so the attribute would have no effect. \
            In a defaults block, it applies to the nodes that make attempts.",
        bad: include_str!("../../../rules/runs_on.bad.dot"),
        good: include_str!("../../../rules/runs_on.good.dot"),
    },
    Rule {
        id: "diff_limits",
        severity: Error,
        check: Some(diff_limits::check),
        summary: "a `diff-limits` stage must have a bound, and lists that count something",
        help: "add `max_files=20`, `max_lines=500` or both",
        why: "A `diff-limits` stage fails when stages changed more than `max_files` files or `max_lines` lines. Without a bound, or \
              with the name of a stage that does not exist in `since`, it would pass whatever stages change. Glovebox lists at most \
              20,000 changed files, so a higher `max_files` could not be checked.",
        bad: include_str!("../../../rules/diff_limits.bad.dot"),
        good: include_str!("../../../rules/diff_limits.good.dot"),
    },
    Rule {
        id: "tool_hooks_without_tools",
        severity: Error,
        check: Some(guardrails::tool_hooks_without_tools),
        summary: "`tool_hooks.pre` and `tool_hooks.post` must be on the graph or on a node with a model",
        help: "move the hook to an agent node or to the graph",
        why: "A hook runs around the tool calls of a model (Attractor spec §9.7). A tool, a check or a gate makes no such \
            calls. The hook would never run there, and would not stop what it should stop.",
        bad: include_str!("../../../rules/tool_hooks_without_tools.bad.dot"),
        good: include_str!("../../../rules/tool_hooks_without_tools.good.dot"),
    },
    Rule {
        id: "unfixable_failure_source",
        severity: Warning,
        check: Some(fixability_rule::unfixable_failure_source),
        summary: "a stage that runs after a tool fails should be able to write the scripts that the tool runs",
        help: "add the scripts to `allowed_write_paths`, or keep them in `scenarios`; without either, a failure of the tool ends the run",
        why: "If the script itself is wrong, no round of the loop can succeed: the stage that follows the failure may not change \
              the script. Glovebox stops the run with this reason, and does not repeat the loop until its limit. Scripts among \
              the hold-outs are exempt, because their purpose is to fail on wrong code.",
        bad: include_str!("../../../rules/unfixable_failure_source.bad.dot"),
        good: include_str!("../../../rules/unfixable_failure_source.good.dot"),
    },
];
