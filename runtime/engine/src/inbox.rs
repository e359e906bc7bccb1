//! The messages that a run gets while it is driven: answers, messages to agents, and requests to pause or to cancel.
//!
//! They come as [`Mail`]: on one machine, other processes of the same user write them into a folder of the run. The terminal of
//! the driving process sends its answers over a channel. If a question gets two answers, the first one is used.

mod mail;
mod message;
mod sheet;
mod steering;

pub use mail::{FolderMail, Mail};
pub(crate) use message::forget_requests;
pub use message::{GivenAnswer, INBOX_DIR, Message, StopSignal, answer_file_name, file_name, seal};
pub use sheet::AnswerSheet;
pub use steering::GivenSteering;

use cap_std::fs::Dir;
use glovebox_journal::event::{
    AnsweredBy, HeldStage, QuestionAnswered, QuestionAsked, QuestionId, RunCanceled, RunId, RunPaused,
};
use glovebox_journal::ports::Signals;
use glovebox_record::question::Answer;
use glovebox_state::run_state::OpenQuestion;
use glovebox_workspace::user_key::UserKey;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;

/// An unattended process waits for the timeout of a question if it comes within this time. Otherwise the process ends.
const SHORT_WAIT_MAX: SignedDuration = SignedDuration::from_secs(10);

/// The sources of answers in this process. The default has none.
#[derive(Default)]
pub struct Attendance {
    /// Prepared answers. `None` without an answers file.
    pub sheet: Option<AnswerSheet>,
    /// The name in which all human gates are approved. `None` if they are not approved automatically.
    pub auto_approve: Option<String>,
    /// A person at the terminal. `None` if there is no terminal.
    pub terminal: Option<Terminal>,
}

/// A person at the terminal of the process.
pub struct Terminal {
    /// The questions that only the person can answer. The list changes during the run.
    pub open: watch::Sender<Vec<QuestionId>>,
    /// The answers of the person. If the channel is closed, the person has left.
    pub answers: Receiver<GivenAnswer>,
}

/// The sources of messages for one run. The default has none.
pub struct Inbox<M = ()> {
    attendance: Attendance,
    mail: M,
    given: BTreeMap<QuestionId, GivenAnswer>,
    steering: VecDeque<GivenSteering>,
    pause: Option<String>,
    held: Option<HeldStage>,
    /// The time at which the held stage would have been executed again. `None` if its provider named none.
    resume_at: Option<Timestamp>,
    /// True if a person was at the terminal and has left. Then no default is used instead of the person's answer.
    has_left: bool,
    problem: Option<String>,
}

impl Default for Inbox {
    fn default() -> Self {
        Self::new(Attendance::default(), ())
    }
}

impl<M: Mail> Inbox<M> {
    /// Creates the inbox of a run that a process drives.
    pub fn new(attendance: Attendance, mail: M) -> Self {
        Self {
            attendance,
            mail,
            given: BTreeMap::new(),
            steering: VecDeque::new(),
            pause: None,
            held: None,
            resume_at: None,
            has_left: false,
            problem: None,
        }
    }

    /// Returns true if the run must pause.
    pub(crate) fn is_pausing(&self) -> bool {
        self.pause.is_some() || self.held.is_some()
    }

    /// Asks the run to pause, because a stage needs something from a person.
    pub(crate) fn hold(&mut self, held: HeldStage, resume_at: Option<Timestamp>) {
        if self.held.is_none() {
            (self.held, self.resume_at) = (Some(held), resume_at);
        }
    }

    /// Returns the event for a pause: who asked for it, why an answer was not accepted, and which stage needs something
    /// from a person.
    pub(crate) fn take_pause(&mut self) -> RunPaused {
        let (by, problem) = (self.pause.take(), self.problem.take());
        RunPaused { by, questions: Vec::new(), problem, held: self.held.take(), resume_at: self.resume_at.take() }
    }

    /// Returns true if this process waits for an answer instead of ending: a person is at the terminal, or the question's
    /// timeout is near.
    pub(crate) fn waits_for(&self, question: &QuestionAsked, now: Timestamp) -> bool {
        let is_soon = |due: Timestamp| !self.has_left && due.duration_since(now) <= SHORT_WAIT_MAX;
        self.attendance.terminal.is_some() || question.due_at.is_some_and(is_soon)
    }

    /// Waits until a message may have arrived. A request to cancel is passed to `signals`.
    pub(crate) async fn arrival(&mut self, signals: &impl Signals) {
        let terminal = async {
            match &mut self.attendance.terminal {
                Some(terminal) => terminal.answers.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            answer = terminal => match answer {
                Some(given) => self.keep(given),
                // The person has left.
                None => (self.attendance.terminal, self.has_left) = (None, true),
            },
            () = self.mail.arrival() => self.look(signals),
        }
    }

    /// Accepts messages for as long as the future is polled.
    pub(crate) async fn keep_looking(&mut self, signals: &impl Signals) -> Infallible {
        loop {
            self.arrival(signals).await;
        }
    }

    /// Returns the answer to a question. `None` if there is none yet. It is an answer that was given in time, the default
    /// after the question's timeout, or an automatic, prepared or default answer of this process.
    pub(crate) fn answer(&mut self, open: &OpenQuestion, now: Timestamp) -> Option<QuestionAnswered> {
        let asked = &*open.asked;
        if let Some(given) = self.given.remove(&asked.question) {
            // An answer has the time of the wall clock of another process, which can differ from the clock of the run.
            let is_late = asked.due_at.is_some_and(|due| now > due && given.at > due);
            match asked.answers().read(&given.value) {
                Ok(answer) if !is_late => return Some(answered(asked, given, Some(answer))),
                Ok(_) => tracing::warn!(question = %asked.question, "an answer came too late"),
                Err(error) => self.problem = Some(error.to_string()),
            }
        }
        let nobody = |how, at| GivenAnswer::none(&asked.question, how, at);
        let is_of_gate = asked.recovery.is_none();
        let default = || asked.default.clone().map(Answer::Choice);
        if let Some(due) = asked.due_at.filter(|due| *due <= now) {
            return Some(answered(asked, nobody(AnsweredBy::Timeout, due), default()));
        }
        // A question about a scope is not approved automatically, because no person has seen what it would grant.
        if let Some(by) = self.attendance.auto_approve.as_ref().filter(|_| is_of_gate)
            && let Some(answer) = asked.answers().approval()
        {
            let value = "auto-approved".to_owned();
            let given = GivenAnswer { by: by.clone(), value, ..nobody(AnsweredBy::Auto, now) };
            return Some(answered(asked, given, Some(answer)));
        }
        if let Some(prepared) = self.prepared(asked, now) {
            return Some(prepared);
        }
        let is_alone = self.attendance.terminal.is_none() && !self.has_left && asked.due_at.is_none();
        default().filter(|_| is_alone).map(|answer| answered(asked, nobody(AnsweredBy::Default, now), Some(answer)))
    }

    /// Shows exactly these questions to the person at the terminal.
    pub(crate) fn ask<'a>(&self, questions: impl Iterator<Item = &'a OpenQuestion>) {
        let Some(terminal) = &self.attendance.terminal else { return };
        let questions: Vec<&QuestionId> = questions.map(|open| &open.asked.question).collect();
        terminal.open.send_if_modified(|open| {
            let is_other = !open.iter().eq(questions.iter().copied());
            if is_other {
                *open = questions.iter().copied().cloned().collect();
            }
            is_other
        });
    }

    /// Removes the message with the answer to a question that is answered.
    pub(crate) fn done(&mut self, question: &QuestionId) {
        self.mail.done(&answer_file_name(question));
        self.problem = None;
    }

    /// Returns the oldest message to an agent.
    pub(crate) fn next_steering(&mut self) -> Option<GivenSteering> {
        self.steering.pop_front()
    }

    /// Removes a message to an agent that was recorded, or that no agent could get.
    pub(crate) fn steered(&mut self, given: &GivenSteering) {
        self.mail.done(&given.file_name());
    }

    fn keep(&mut self, given: GivenAnswer) {
        self.given.entry(given.question.clone()).or_insert(given);
    }

    /// Returns the first valid prepared answer. Invalid answers before it are used up.
    fn prepared(&mut self, asked: &QuestionAsked, now: Timestamp) -> Option<QuestionAnswered> {
        let next = match asked.recovery {
            None => AnswerSheet::next,
            Some(_) => AnswerSheet::next_named,
        };
        while let Some((value, line)) = next(self.attendance.sheet.as_mut()?, &asked.node) {
            match asked.answers().read(&value) {
                Ok(answer) => {
                    let given = GivenAnswer { value, ..GivenAnswer::none(&asked.question, AnsweredBy::File, now) };
                    let answered = answered(asked, given, Some(answer));
                    return Some(QuestionAnswered { sheet: Some(line), ..answered });
                }
                Err(error) => self.problem = Some(error.to_string()),
            }
        }
        None
    }

    /// Takes the messages that are there. The delivery of a request ends here. That of an answer or of a message to an agent
    /// ends when it is recorded.
    pub(crate) fn look(&mut self, signals: &impl Signals) {
        let messages = self.mail.messages();
        self.steering.clear();
        for message in messages {
            if matches!(message, Message::Stop { .. } | Message::Pause { .. } | Message::Cancel { .. }) {
                self.mail.done(&file_name(&message));
            }
            match message {
                Message::Answer(given) => self.keep(given),
                Message::Steer(given) => self.steering.push_back(given),
                Message::Stop { signal } => signals.cancel(signal.recorded()),
                Message::Pause { by } => self.pause = Some(by),
                Message::Cancel { by } => signals.cancel(&RunCanceled::by_person(&by).by),
            }
        }
        self.steering.make_contiguous().sort_by(GivenSteering::order);
    }
}

/// Returns the answers that are not recorded yet. Removes nothing.
pub fn kept(run: &Dir, run_id: RunId, key: Option<UserKey>) -> Vec<GivenAnswer> {
    let Ok(run) = run.try_clone() else { return Vec::new() };
    let messages = FolderMail::new(run, run_id, key).read().into_iter();
    messages.filter_map(|message| if let Message::Answer(given) = message { Some(given) } else { None }).collect()
}

fn answered(asked: &QuestionAsked, given: GivenAnswer, answer: Option<Answer>) -> QuestionAnswered {
    let text = if given.text.is_empty() && answer == Some(Answer::Text) { given.value.clone() } else { given.text };
    let QuestionAsked { generation, branch, node, visit, question, .. } = asked.clone();
    QuestionAnswered {
        generation,
        branch,
        node,
        visit,
        question,
        how: given.how,
        by: given.by,
        answered_at: glovebox_journal::event::whole_milliseconds(given.at),
        value: given.value,
        answer,
        text,
        sheet: None,
        recovery: asked.recovery.is_some(),
    }
}
