//! `glovebox answer`: answers a question of a human gate.
//!
//! The first valid answer is used. A later answer is refused, and the error names the first one. If a process drives
//! the run, that process records the answer immediately. The answer to a paused run is kept, and the resume records it.

use crate::answer_sources;
use crate::arguments::{AnswerArguments, Arguments, Command, Deferred, ResumeArguments};
use crate::commands::resume;
use crate::exit::{CommandResult, Exit, Stop};
use crate::runs::journal;
use crate::runs::{self, RunFolder};
use crate::terminal::{self, visible};
use clap::Parser;
use glovebox_engine::inbox::{GivenAnswer, Message};
use glovebox_journal::event::{
    AnsweredBy, QuestionAnswered, QuestionAsked, QuestionId, Record, time_format, whole_milliseconds,
};
use glovebox_journal::rewind;
use glovebox_record::question::{ANSWER_BYTES_MAX, Answer};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the process that drives the run may take to record an answer.
const RECORDED_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The document that `answer --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "answer.json")]
pub struct AnswerFile<'a> {
    /// Version of this document.
    pub schema_version: u32,
    /// Id of the run.
    pub run_id: &'a str,
    /// Id of the question.
    pub question: &'a QuestionId,
    /// The choice that the answer names; null for text.
    pub label: Option<&'a str>,
    /// `recorded` if a process drives the run and has recorded the answer in the journal, or `kept` for the resume.
    pub state: &'a str,
}

/// An answer to a question, as a person gave it.
#[derive(Debug)]
pub struct Reply<'a> {
    /// The question, by its id; or the node, if it asks one question.
    pub question: &'a str,
    /// The answer.
    pub value: &'a str,
    /// The comment; may be empty.
    pub text: &'a str,
    /// The name of the person.
    pub by: String,
    /// How the person gave the answer.
    pub how: AnsweredBy,
}

/// An answer that the run has recorded, or that is kept for the resume.
#[derive(Debug)]
pub struct Answered {
    question: QuestionId,
    answer: Answer,
    /// `recorded`, or `kept` for the resume.
    state: &'static str,
}

impl Answered {
    /// Returns the document that `answer --json` prints.
    pub fn document<'a>(&'a self, run: &'a RunFolder) -> AnswerFile<'a> {
        let Self { question, state, .. } = self;
        AnswerFile { schema_version: 1, run_id: &run.id, question, label: self.label(), state }
    }

    fn label(&self) -> Option<&str> {
        match &self.answer {
            Answer::Choice(choice) => Some(choice.shown()),
            Answer::No => Some("no"),
            Answer::Text => None,
        }
    }
}

/// Answers a question.
pub fn answer(arguments: &AnswerArguments) -> CommandResult {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    let reply = Reply {
        question: &arguments.question,
        value: &arguments.value,
        text: arguments.text.as_deref().unwrap_or_default(),
        by: answer_sources::name(arguments.name.as_ref()),
        how: AnsweredBy::Command,
    };
    let answered = give(&run, &arguments.runs.runs_dir, reply)?;
    report(arguments, &run, &answered)?;
    // A run that a process drives continues without a resume.
    let is_resumed = arguments.resume && answered.state == "kept";
    if is_resumed { resume::go_on(&resumed(arguments, &run)?, &run) } else { Ok(Exit::Ok) }
}

/// Gives an answer to a run. Returns when the process that drives the run has recorded it, or when it is kept for the
/// resume because no process drives the run.
pub fn give(run: &RunFolder, runs_dir: &Path, reply: Reply<'_>) -> Result<Answered, Stop> {
    let (asked, given, answer) = read_reply(run, runs_dir, reply)?;
    // A process that drives the run decides by the clock of the run, which no change of the wall clock moves.
    if !runs::is_live(run) {
        refuse_late(&asked, given.at)?;
    }
    if !answer_sources::send(run, &Message::Answer(given.clone()))? {
        return Err(too_late(&asked.question, &first(run, runs_dir, &asked)?));
    }
    let state = recorded(run, runs_dir, &given)?;
    Ok(Answered { question: given.question, answer, state })
}

/// Returns the question of a reply, and the reply as a message to the run. Sends nothing.
pub fn read_reply(
    run: &RunFolder,
    runs_dir: &Path,
    reply: Reply<'_>,
) -> Result<(Arc<QuestionAsked>, GivenAnswer, Answer), Stop> {
    let records = read(run, runs_dir)?;
    let asked = question(run, runs_dir, &records, reply.question)?;
    let read = asked.answers().read(reply.value);
    let answer = read.map_err(|error| Stop::new(Exit::Usage, format!("question `{}`: {error}", asked.question)))?;
    let Reply { value, text, by, how, .. } = reply;
    let (question, value, text) = (asked.question.clone(), value.to_owned(), bounded(text)?.to_owned());
    let at = whole_milliseconds(Timestamp::now());
    Ok((asked, GivenAnswer { question, value, text, by, how, at }, answer))
}

/// Returns the arguments of the resume that continues the run.
fn resumed(arguments: &AnswerArguments, run: &RunFolder) -> Result<ResumeArguments, Stop> {
    let words = ["glovebox", "resume", &run.id].into_iter().map(OsString::from);
    let mut words: Vec<OsString> = words.chain(arguments.json.then(|| "--json".into())).collect();
    words.extend(["--runs-dir".into(), arguments.runs.runs_dir.clone().into_os_string()]);
    match Arguments::try_parse_from(words).map(|arguments| arguments.command) {
        Ok(Command::Resume(Deferred(arguments))) => Ok(arguments),
        _ => Err(Stop::new(Exit::Internal, format!("resume run `{}`", run.id))),
    }
}

/// Describes the earlier answer, which waits to be recorded or was just recorded.
fn first(run: &RunFolder, runs_dir: &Path, asked: &QuestionAsked) -> Result<String, Stop> {
    let kept = answer_sources::kept(run).into_iter().find(|given| given.question == asked.question);
    if let Some(GivenAnswer { value, by, at, .. }) = kept {
        let (by, value, at) = (visible::line(&by), visible::line(&value), time_format::text(&at));
        return Ok(format!(
            "it was answered already with `{value}` (by {by} at {at}); the run has not recorded that answer yet"
        ));
    }
    let records = read(run, runs_dir)?;
    let recorded = answer_of(&rewind::in_force(&records), asked.question.as_str()).map(whose);
    Ok(recorded.unwrap_or_else(|| "another answer came first".to_owned()))
}

fn read(run: &RunFolder, runs_dir: &Path) -> Result<Vec<Record>, Stop> {
    let verified = journal::read(run)?;
    let named = runs::spelled(&run.id, runs_dir);
    journal::refuse_foreign(run, verified.provenance, format!("`glovebox show {named}` shows it"))?;
    Ok(verified.records)
}

/// Returns the open question with the id `wanted`, or of the node `wanted`.
fn question(run: &RunFolder, runs_dir: &Path, records: &[Record], wanted: &str) -> Result<Arc<QuestionAsked>, Stop> {
    let state = journal::state(records)?;
    let all: Vec<&Arc<QuestionAsked>> = state.questions().map(|open| &open.asked).collect();
    let by_id: Vec<_> = all.iter().filter(|asked| asked.question == *wanted).collect();
    let by_node: Vec<_> = all.iter().filter(|asked| asked.node == *wanted).collect();
    if let [one] = if by_id.is_empty() { &by_node[..] } else { &by_id[..] } {
        return Ok(Arc::clone(one));
    }
    if let Some(answered) = answer_of(&rewind::in_force(records), wanted).filter(|_| by_node.is_empty()) {
        return Err(too_late(&answered.question, &whose(answered)));
    }
    let named = runs::spelled(&run.id, runs_dir);
    let open: Vec<String> = all.iter().map(|asked| format!("`{}`", asked.question)).collect();
    let open =
        if open.is_empty() { "no question is open".to_owned() } else { format!("open questions: {}", open.join(", ")) };
    let wanted = visible::line(wanted);
    let found = if by_node.is_empty() { "has no open question" } else { "has several open questions of node" };
    Err(Stop::new(Exit::Usage, format!("run `{}` {found} `{wanted}`; {open}", run.id))
        .with_help(format!("list them: `glovebox gates {named}`")))
}

/// Returns the last answer to the question `wanted`, or of the node `wanted`.
fn answer_of<'a>(records: &[&'a Record], wanted: &str) -> Option<&'a QuestionAnswered> {
    let answers = records.iter().rev().filter_map(|record| record.event.question_answered());
    { answers }.find(|answered| answered.question == *wanted || answered.node == *wanted)
}

fn whose(answered: &QuestionAnswered) -> String {
    let by = if answered.by.is_empty() { String::new() } else { format!(" by {}", visible::line(&answered.by)) };
    let what = match &answered.answer {
        Some(Answer::Choice(choice)) => format!("it was answered already with `{}`", visible::line(choice.shown())),
        None => "its time limit passed without an answer".to_owned(),
        _ => format!("it was answered already with `{}`", visible::line(&answered.value)),
    };
    let at = time_format::text(&answered.answered_at);
    format!("{what} ({}{by} at {at})", answered.how.as_str())
}

fn too_late(question: &QuestionId, why: &str) -> Stop {
    Stop::new(Exit::Policy, format!("question `{}`: {why}", visible::line(question.as_str())))
}

fn refuse_late(asked: &QuestionAsked, at: Timestamp) -> Result<(), Stop> {
    match asked.due_at.filter(|due| *due < at) {
        Some(due) => Err(too_late(&asked.question, &format!("it could be answered until {due}"))
            .with_help("`glovebox resume` continues with the default answer, or fails the gate if it has none")),
        None => Ok(()),
    }
}

fn bounded(text: &str) -> Result<&str, Stop> {
    if text.len() > ANSWER_BYTES_MAX {
        let message = format!("`--text` has {} bytes, expected at most {ANSWER_BYTES_MAX}", text.len());
        return Err(Stop::new(Exit::Usage, message));
    }
    Ok(text)
}

/// Waits until the process that drives the run has recorded an answer, and checks that it is the given answer. If the
/// process ends before it has recorded an answer, the given answer is kept for the resume.
fn recorded(run: &RunFolder, runs_dir: &Path, given: &GivenAnswer) -> Result<&'static str, Stop> {
    let began = Instant::now();
    loop {
        let was_live = runs::is_live(run);
        let records = read(run, runs_dir)?;
        if let Some(answered) = answer_of(&rewind::in_force(&records), given.question.as_str()) {
            let is_mine = (answered.answered_at, &answered.by, &answered.value) == (given.at, &given.by, &given.value);
            return if is_mine { Ok("recorded") } else { Err(too_late(&given.question, &whose(answered))) };
        }
        if !was_live {
            return Ok("kept");
        }
        if began.elapsed() > RECORDED_WITHIN {
            let message = format!("the process that drives run `{}` has not recorded the answer yet", run.id);
            return Err(Stop::new(Exit::Transient, message).with_help("the answer is kept; see `glovebox gates`"));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn report(arguments: &AnswerArguments, run: &RunFolder, answered: &Answered) -> Result<(), Stop> {
    if arguments.json {
        let document = answered.document(run);
        // The records of the resume follow, one per line.
        return if arguments.resume { terminal::print_json_line(&document) } else { terminal::print_json(&document) };
    }
    let named = runs::spelled(&run.id, &arguments.runs.runs_dir);
    let question = visible::line(answered.question.as_str());
    let what = answered.label().map_or_else(|| "text".to_owned(), |label| format!("`{}`", visible::line(label)));
    let is_kept = answered.state == "kept" && !arguments.resume;
    let next = if is_kept { format!("; next: glovebox resume {named}") } else { String::new() };
    terminal::print(format!("answered {question} with {what}{next}\n"));
    Ok(())
}
