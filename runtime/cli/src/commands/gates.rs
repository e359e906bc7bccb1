//! `glovebox gates`: lists the questions that wait for an answer.

use crate::answer_sources;
use crate::arguments::GatesArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::runs::journal;
use crate::runs::question;
use crate::runs::review::{Review, Reviewer};
use crate::runs::{self, RunFolder};
use crate::terminal::paint::Paint;
use crate::terminal::{self, visible};
use glovebox_engine::inbox::GivenAnswer;
use glovebox_journal::event::{QuestionAsked, QuestionId};
use glovebox_state::run_state::resume_state;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

/// The document that `gates --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "gates.json")]
pub struct GatesFile {
    /// Version of this document.
    pub schema_version: u32,
    /// Every open question.
    pub gates: Vec<OpenGate>,
    /// Questions whose answer is kept and is recorded when the run is resumed.
    pub answered: Vec<KeptAnswer>,
}

/// An answer that is recorded when its run is resumed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KeptAnswer {
    /// Id of the run.
    pub run_id: String,
    /// Id of the question.
    pub question: QuestionId,
    /// The answer, as it was written.
    pub value: String,
    /// The name of the person who answered.
    pub by: String,
    /// Time of the answer.
    #[schemars(with = "String")]
    pub at: Timestamp,
}

/// The open and the answered questions of a run.
#[derive(Default)]
struct GateList {
    open: Vec<OpenGate>,
    answered: Vec<KeptAnswer>,
}

/// One open question.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OpenGate {
    /// Id of the run.
    pub run_id: String,
    /// Whether a process drives the run now.
    pub is_running: bool,
    /// The question.
    #[serde(flatten)]
    pub asked: QuestionAsked,
    /// The effect of an approval; null if it cannot be shown.
    pub review: Option<Review>,
    /// Why the effect cannot be shown; absent if it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review_problem: Option<String>,
}

/// Lists open questions.
pub fn gates(arguments: &GatesArguments) -> CommandResult {
    let runs_dir = &arguments.runs.runs_dir;
    let run = arguments.run.as_ref().map(|selector| runs::select(runs_dir, selector)).transpose()?;
    let found = document(runs_dir, run.as_ref())?;
    if arguments.json {
        terminal::print_json(&found)?;
        return Ok(Exit::Ok);
    }
    let GatesFile { gates, answered, .. } = found;
    if gates.is_empty() {
        terminal::say("no open questions\n");
    }
    for gate in &gates {
        terminal::print(text(gate, &runs::spelled(&gate.run_id, runs_dir)));
    }
    for kept in &answered {
        let (question, run) = (visible::line(kept.question.as_str()), visible::line(&kept.run_id));
        let (value, by) = (visible::line(&kept.value), visible::line(&kept.by));
        let named = runs::spelled(&kept.run_id, runs_dir);
        terminal::say(format_args!(
            "{question} of {run} was answered with `{value}` by {by}; next: glovebox resume {named}\n"
        ));
    }
    Ok(Exit::Ok)
}

/// Returns the document that `gates --json` prints, for one run or for all runs.
pub fn document(runs_dir: &Path, run: Option<&RunFolder>) -> Result<GatesFile, Stop> {
    let found = match run {
        Some(run) => vec![of_run(run, runs_dir)?],
        // A run whose journal cannot be read is skipped, so that the questions of other runs are listed. `ls` shows
        // such a run.
        None => runs::list(runs_dir)?.iter().filter_map(|run| of_run(run, runs_dir).ok()).collect(),
    };
    let (gates, answered): (Vec<_>, Vec<_>) = found.into_iter().map(|found| (found.open, found.answered)).unzip();
    let (gates, answered) = (gates.into_iter().flatten().collect(), answered.into_iter().flatten().collect());
    Ok(GatesFile { schema_version: 1, gates, answered })
}

fn of_run(run: &RunFolder, runs_dir: &Path) -> Result<GateList, Stop> {
    let verified = journal::read(run)?;
    journal::warn_if_foreign(run, verified.provenance);
    let Some((state, _)) = resume_state(&verified.records) else { return Ok(GateList::default()) };
    let open: Vec<&QuestionAsked> = state.questions().map(|open| &*open.asked).collect();
    if state.verdict.is_some() || open.is_empty() {
        return Ok(GateList::default());
    }
    let kept = answer_sources::kept_for(run, &open);
    let is_kept = |asked: &&QuestionAsked| kept.iter().any(|given| given.question == asked.question);
    let reviewer = Reviewer::new(run, runs_dir, &verified);
    let is_running = runs::is_live(run);
    let gate = |asked: &QuestionAsked| {
        let review = match &reviewer {
            Ok(reviewer) => reviewer.review(&asked.question).map_err(|stop| stop.message),
            Err(stop) => Err(stop.message.clone()),
        };
        let (review, review_problem) = review.map_or_else(|problem| (None, Some(problem)), |review| (review, None));
        OpenGate { run_id: run.id.clone(), is_running, asked: asked.clone(), review, review_problem }
    };
    let open = open.into_iter().filter(|asked| !is_kept(asked)).map(gate).collect();
    let answered = kept.into_iter().map(|GivenAnswer { question, value, by, at, .. }| KeptAnswer {
        run_id: run.id.clone(),
        question,
        value,
        by,
        at,
    });
    Ok(GateList { open, answered: answered.collect() })
}

fn text(gate: &OpenGate, named: &str) -> String {
    let OpenGate { asked, review, review_problem, .. } = gate;
    let (id, run) = (visible::line(asked.question.as_str()), visible::line(&gate.run_id));
    let review = review.as_ref().ok_or(review_problem.as_deref().unwrap_or("the run never asked this question"));
    let rows = question::render(asked, review, named, Paint::stdout());
    format!("{id} of {run}: {}\n{rows}", question::text(asked))
}
