//! What a user can do about a failed run. It depends on the failure's code and the receipts, and never on the text of a
//! reason.
//!
//! Only a remedy that certainly helps is named. For other codes none is printed: the last line of the summary names the
//! command that shows more.

use crate::terminal::visible;
use glovebox_models::error::ERRORS;
use glovebox_plan::prepare::toolchain;
use glovebox_record::{LimitName, Receipt};
use glovebox_state::evidence::RunSummary;

/// Exit code of a shell that does not find a program.
const NO_SUCH_PROGRAM: i32 = 127;

/// Returns the remedy for the failure of a run, if there is one.
pub fn for_run(summary: &RunSummary) -> Option<String> {
    let cause = summary.cause()?;
    let (failure, node) = (cause.failure, cause.node);
    let node = node.map(|node| visible::line(node.as_str())).unwrap_or_default();
    let remedy = match failure.code.as_str() {
        // The cause is the missing program, not the model that could not fix the failure.
        "tool/exit-code" | "verify/exit-code" | "agent/declared-fail" if ended_with(summary, NO_SUCH_PROGRAM) => {
            missing_program(summary)
        }
        "limit/max_steps" | "limit/max_visits" if ended_with(summary, NO_SUCH_PROGRAM) => {
            format!("more steps do not help. {}", missing_program(summary))
        }
        "limit/max_visits" => "raise `max_visits`, or fix the failure that repeats".to_owned(),
        "limit/parallel_timeout" => {
            "raise the `timeout` of the parallel node, or give its branches less work".to_owned()
        }
        "limit/child_max_steps" => "raise `max_steps` of the graph in the child's file, then run again".to_owned(),
        "limit/max_cycles" => "raise `manager.max_cycles` or `manager.poll_interval` of the supervisor".to_owned(),
        "limit/max_restarts" => "raise `max_restarts` on the graph, or fix what restarts the loop".to_owned(),
        "loop/restart_blocked" => {
            "add an edge without `loop_restart` for failures that are not transient: `context.failure_class!=transient`"
                .to_owned()
        }
        "script/exhausted" => format!("add a `[[node.{node}]]` turn to the script"),
        "limit/max_steps" => "raise the smaller of `max_steps` on the graph and `--max-steps`".to_owned(),
        "limit/max_wall_time" => "raise the smaller of `max_wall_time` on the graph and `--max-wall-time`".to_owned(),
        "limit/max_tokens" => "raise the smallest of `max_tokens` on the graph, `--max-tokens` and `[run]`".to_owned(),
        "limit/max_budget_usd" => {
            "raise the smallest of `max_budget_usd` on the graph, `--max-budget-usd` and `[run]`".to_owned()
        }
        "limit/node_max_steps" if ended_with(summary, NO_SUCH_PROGRAM) => {
            format!("more steps do not help. {}", missing_program(summary))
        }
        "limit/node_max_steps" => "raise `max_steps` of the node, or fix the failure that repeats".to_owned(),
        "limit/node_max_wall_time" => "raise `max_wall_time` of the node".to_owned(),
        "limit/node_max_tokens" => format!("raise `max_tokens` of `{node}`"),
        "limit/node_max_budget_usd" => format!("raise `max_budget_usd` of `{node}`"),
        "limit/run_disk_bytes" => {
            "raise `disk_bytes_max` under `[run]` in glovebox.toml, then run `glovebox resume`".to_owned()
        }
        "limit/wall_ms" => format!("raise `timeout` of `{node}`, or `wall_ms` in glovebox.toml"),
        "limit/turns" => format!("raise `max_turns` of `{node}`"),
        code if code.starts_with("provider/") => model_error(code)?,
        "GoalGateUnsatisfied" => "fix what keeps the gate from passing, or give the gate a `retry_target`".to_owned(),
        "route/none" => "add an edge whose condition holds, or one without a condition".to_owned(),
        _ => {
            let name = failure.code.limit_name()?;
            match name.parse::<LimitName>() {
                Ok(name) => format!("raise `limits.{name}` of `{node}`, or `{name}` in glovebox.toml"),
                // A limit on the shape of a changed tree cannot be set.
                Err(_) => format!("`{name}` cannot be raised: make the paths that `{node}` writes shorter"),
            }
        }
    };
    Some(remedy)
}

/// Returns the help for a model error.
fn model_error(code: &str) -> Option<String> {
    let row = ERRORS.iter().find(|row| code.strip_prefix("provider/") == Some(row.name))?;
    Some(row.help.to_owned())
}

/// Returns the help for a program that the shell did not find. Names its toolchain if a word of the failed command is a
/// program of a known toolchain. The command is the text of the pipeline's author.
fn missing_program(summary: &RunSummary) -> String {
    let commands = judged(summary).into_iter().filter(|receipt| receipt.code == Some(NO_SUCH_PROGRAM));
    let commands = commands.flat_map(|receipt| &receipt.argv);
    let is_name = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    let mut words = commands.flat_map(|command| command.split(|character| !is_name(character)));
    let found = words.find_map(|word| toolchain::of_program(word).map(|toolchain| (word, toolchain)));
    let what = "exit 127: the shell did not find a program";
    match found.map(|(word, known)| (word, known, toolchain::missing(known))) {
        Some((word, known, None)) => format!(
            "{what}; `{word}` belongs to a toolchain of this machine: add `toolchains = [\"{}\"]` under `[exec]` in glovebox.toml",
            known.as_str()
        ),
        Some((_, _, Some(missing))) => format!("{what}; {missing}"),
        None => format!(
            "{what}; add its folder to `path` under `[exec]` in glovebox.toml, or name its toolchain in `toolchains`"
        ),
    }
}

fn ended_with(summary: &RunSummary, code: i32) -> bool {
    judged(summary).iter().any(|receipt| receipt.code == Some(code))
}

/// Returns the commands of the failed stage. If the stage ran none, returns the last command of the run, whose failure
/// the stage should have fixed.
fn judged(summary: &RunSummary) -> Vec<&Receipt> {
    let failed = summary.cause().and_then(|cause| cause.node);
    let own: Vec<&Receipt> =
        summary.proof.receipts.iter().filter(|one| Some(&one.node) == failed).map(|one| &one.receipt).collect();
    match own.is_empty() {
        true => summary.proof.receipts.last().map(|one| &one.receipt).into_iter().collect(),
        false => own,
    }
}
