//! What a user can do about a failed run, from the failure's code and the receipts; never from the text of a reason.
//!
//! It names only what certainly helps. A code without a remedy gets none: the last line of the summary names the command that shows
//! more.

use crate::terminal::visible;
use glovebox_engine::evidence::RunSummary;
use glovebox_record::LimitName;

/// The code a shell ends with when there is no such program.
const NO_SUCH_PROGRAM: i32 = 127;

/// The remedy of a run's failure, when there is one to name.
pub fn of(summary: &RunSummary) -> Option<String> {
    let failure = summary.failure.as_ref()?;
    let node = summary.failed_node.as_ref().map(|node| visible::line(node.as_str())).unwrap_or_default();
    let remedy = match failure.code.as_str() {
        "tool/exit-code" | "verify/exit-code" if ended_with(summary, NO_SUCH_PROGRAM) => {
            "exit 127: the shell did not find a program; add its folder under `[exec]` in glovebox.toml, to `path`, or \
             name its toolchain in `toolchains`"
                .to_owned()
        }
        "script/exhausted" => format!("add a `[[node.{node}]]` turn to the script"),
        "limit/max_steps" => "raise the smaller of `max_steps` on the graph and `--max-steps`".to_owned(),
        "limit/max_wall_time" => "raise the smaller of `max_wall_time` on the graph and `--max-wall-time`".to_owned(),
        "limit/run_disk_bytes" => {
            "raise `disk_bytes_max` under `[run]` in glovebox.toml, then run `glovebox resume`".to_owned()
        }
        "limit/wall_ms" => format!("raise `timeout` of `{node}`, or `wall_ms` in glovebox.toml"),
        "limit/turns" => format!("raise `max_turns` of `{node}`"),
        "GoalGateUnsatisfied" => "fix what keeps the gate from passing, or give it a `retry_target`".to_owned(),
        "route/none" => "add an edge whose condition holds, or one without a condition".to_owned(),
        _ => {
            let name = failure.code.limit_name()?;
            match name.parse::<LimitName>() {
                Ok(name) => format!("raise `limits.{name}` of `{node}`, or `{name}` in glovebox.toml"),
                // A limit on the shape of a changed tree has no setting.
                Err(_) => format!("`{name}` cannot be raised: make the paths that `{node}` writes shorter"),
            }
        }
    };
    Some(remedy)
}

fn ended_with(summary: &RunSummary, code: i32) -> bool {
    let failed = summary.failed_node.as_ref();
    summary.receipts.iter().any(|one| Some(&one.node) == failed && one.receipt.code == Some(code))
}
