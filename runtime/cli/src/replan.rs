//! `resume --replan`: compares the current plan with the plan of a run, shows the difference, and asks before it allows
//! more.
//!
//! The run stores what its plan allowed, so the comparison does not depend on files that may have changed since.

use crate::arguments::ResumeArguments;
use crate::exit::{Exit, Stop};
use crate::runs::recorded;
use crate::runs::{self, RunFolder};
use crate::terminal::{self, visible};
use glovebox_engine::run::Replan;
use glovebox_journal::event::RunStarted;
use glovebox_names::shell;
use glovebox_plan::plan::Plan;
use glovebox_record::RunBounds;

/// Compares the plan with that of the run. Returns `None` if they are equal. A different plan is refused with exit 11
/// without `--replan`, and with exit 6 if it allows more and is not accepted.
pub fn accept(
    run: &RunFolder,
    terms: &RunStarted,
    plan: &Plan,
    arguments: &ResumeArguments,
) -> Result<Option<Replan>, Stop> {
    if plan.digest() == terms.plan.digest {
        return Ok(None);
    }
    let named = runs::spelled(&run.id, &arguments.runs.runs_dir);
    if !arguments.replan {
        let message = format!(
            "run `{}` has another plan now: a component, a grant, a limit, the model or a verify contract has changed since it started",
            run.id
        );
        let script =
            arguments.script.as_ref().map(|file| format!(" --script {}", shell::word(&file.to_string_lossy())));
        let help = format!(
            "continue with the new plan: `glovebox resume {named}{} --replan`; or restore glovebox.toml, the plugins and the verify contract",
            script.unwrap_or_default()
        );
        return Err(Stop::new(Exit::Mismatch, message).with_help(help));
    }
    let bounds = RunBounds {
        steps_max: terms.bounds.steps_max,
        wall_max_ms: terms.bounds.wall_max_ms,
        spend_max: terms.bounds.spend_max,
        stall: terms.bounds.stall,
    };
    let replan = Replan::new(plan, bounds, &recorded::allowed(run, terms)?);
    show(&replan);
    if replan.change.withdraws_history() {
        return Err(without_history(run));
    }
    if replan.change.more.is_empty() || arguments.yes || is_accepted()? {
        return Ok(Some(replan));
    }
    let message = format!("the new plan of run `{}` allows more than the old plan, so it must be accepted", run.id);
    Err(Stop::new(Exit::Policy, message).with_help(format!("accept it: `glovebox resume {named} --replan --yes`")))
}

/// Returns the error for a plan that takes back the history of the repository. The new plan may send files of the run to a
/// model or a network, and nobody has confirmed that for the history.
fn without_history(run: &RunFolder) -> Stop {
    let message = format!(
        "commands of run `{}` could read the history of the repository, so its files may contain it; the new plan does not show the history",
        run.id
    );
    Stop::new(Exit::Policy, message).with_help(
        "start a new run, or show the history in the new plan too: `git = \"history\"` under `[workspace]` in glovebox.toml",
    )
}

/// Prints the difference: `+` for an added capability, `-` for a removed one.
fn show(replan: &Replan) {
    let lines = |sign: char, lines: &[String]| -> String {
        lines.iter().map(|line| format!("  {sign} {}\n", visible::line(line))).collect()
    };
    let (more, less) = (lines('+', &replan.change.more), lines('-', &replan.change.less));
    match more.is_empty() && less.is_empty() {
        true => terminal::say(
            "the plan has changed, but it allows the same as before. The commands of `[verify]`, and when they run, may have changed\n",
        ),
        false => terminal::say(format_args!("the plan has changed:\n{more}{less}")),
    }
}

/// Asks a person. If standard input or standard error is not a terminal, the answer is no.
fn is_accepted() -> Result<bool, Stop> {
    if !terminal::can_ask() {
        return Ok(false);
    }
    terminal::say("continue with this plan? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|error| Stop::io("read the answer", &error))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
