//! What reaches a run from outside while it is driven: answers, messages to agents, and requests to pause or to cancel.
//!
//! Other processes of the same user put messages into a folder of the run, which no stage can reach. A message counts only with a MAC of
//! the user's key. The terminal of the driving process sends its answers over a channel. Of two answers to a question the first one counts.

mod message;
mod sheet;
mod steering;

pub(crate) use message::forget_requests;
pub use message::{GivenAnswer, INBOX_DIR, Message, file_name, seal};
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
use std::fmt::Display;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;

/// How often the folder is looked at, and how often after [`QUIET_LOOKS`] looks that found nothing.
const LOOK_EVERY: Duration = Duration::from_millis(200);
const LOOK_EVERY_QUIET: Duration = Duration::from_secs(1);
const QUIET_LOOKS: u32 = 15;
/// The longest time until a question is too late to answer for which an unattended process waits. For a longer one it ends.
const SHORT_WAIT_MAX: SignedDuration = SignedDuration::from_secs(10);

/// The sources of answers in this process. By default there is none.
#[derive(Default)]
pub struct Attendance {
    /// Prepared answers.
    pub sheet: Option<AnswerSheet>,
    /// Approves everything, in this name.
    pub auto_approve: Option<String>,
    /// A person at the terminal; none when there is no terminal.
    pub terminal: Option<Terminal>,
}

/// A person at the terminal of the process.
pub struct Terminal {
    /// The questions that nothing else answers, as they come and go.
    pub open: watch::Sender<Vec<QuestionId>>,
    /// The answers of the person. When it is closed, the person has left.
    pub answers: Receiver<GivenAnswer>,
}

/// The sources of messages for one run.
#[derive(Default)]
pub struct Inbox {
    attendance: Attendance,
    folder: Option<Folder>,
    given: BTreeMap<QuestionId, (AnsweredBy, GivenAnswer)>,
    steering: VecDeque<GivenSteering>,
    pause: Option<String>,
    held: Option<HeldStage>,
    /// A person was asked here and left: nothing is taken in that person's place.
    has_left: bool,
    problem: Option<String>,
    looked_at: Option<Instant>,
    /// Looks in a row that found nothing.
    quiet_looks: u32,
}

/// The folder of messages.
struct Folder {
    run: Dir,
    run_id: RunId,
    key: Option<UserKey>,
}

impl Inbox {
    /// The inbox of a run that a process drives.
    pub fn new(attendance: Attendance, run: Dir, run_id: RunId, key: Option<UserKey>) -> Self {
        Self { attendance, folder: Some(Folder { run, run_id, key }), ..Self::default() }
    }

    /// True when the run is to pause.
    pub(crate) fn is_pausing(&self) -> bool {
        self.pause.is_some() || self.held.is_some()
    }

    /// Asks the run to pause because a stage lacks what a person has to give.
    pub(crate) fn hold(&mut self, held: HeldStage) {
        self.held.get_or_insert(held);
    }

    /// Takes the request to pause, and why an answer at hand did not count.
    pub(crate) fn take_pause(&mut self) -> RunPaused {
        let (by, problem) = (self.pause.take(), self.problem.take());
        RunPaused { by, questions: Vec::new(), problem, held: self.held.take() }
    }

    /// True when this process waits for an answer rather than to end: a person is here, or it does not take long.
    pub(crate) fn waits_for(&self, question: &QuestionAsked, now: Timestamp) -> bool {
        let is_soon = |due: Timestamp| !self.has_left && due.duration_since(now) <= SHORT_WAIT_MAX;
        self.attendance.terminal.is_some() || question.due_at.is_some_and(is_soon)
    }

    /// Waits for a message, or until the folder is to be looked at again. A request to cancel goes to the signals.
    pub(crate) async fn arrival(&mut self, signals: &impl Signals) {
        let every = if self.quiet_looks < QUIET_LOOKS { LOOK_EVERY } else { LOOK_EVERY_QUIET };
        let next = self.looked_at.map_or(Duration::ZERO, |at| every.saturating_sub(at.elapsed()));
        let terminal = async {
            match &mut self.attendance.terminal {
                Some(terminal) => terminal.answers.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            answer = terminal => match answer {
                Some(given) => self.keep(AnsweredBy::Terminal, given),
                // The person left.
                None => (self.attendance.terminal, self.has_left) = (None, true),
            },
            () = tokio::time::sleep(next) => self.look(signals),
        }
    }

    /// Takes in what arrives for as long as it is polled.
    pub(crate) async fn keep_looking(&mut self, signals: &impl Signals) -> Infallible {
        loop {
            self.arrival(signals).await;
        }
    }

    /// The answer to a question, if there is one by now: one that was given in time, the end of its time, or what this process may
    /// answer by itself.
    pub(crate) fn answer(&mut self, open: &OpenQuestion, now: Timestamp) -> Option<QuestionAnswered> {
        let asked = &*open.asked;
        if let Some((how, given)) = self.given.remove(&asked.question) {
            let is_late = asked.due_at.is_some_and(|due| given.at > due);
            match asked.answers().read(&given.value) {
                Ok(answer) if !is_late => return Some(answered(asked, how, given, Some(answer))),
                Ok(_) => tracing::warn!(question = %asked.question, "an answer came too late"),
                Err(error) => self.problem = Some(error.to_string()),
            }
        }
        let nobody = |at| GivenAnswer::none(&asked.question, at);
        let is_of_gate = asked.recovery.is_none();
        let default = || asked.default.clone().map(Answer::Choice);
        if let Some(due) = asked.due_at.filter(|due| *due <= now) {
            return Some(answered(asked, AnsweredBy::Timeout, nobody(due), default()));
        }
        // Nobody looked at what a question about a scope would grant.
        if let Some(by) = self.attendance.auto_approve.as_ref().filter(|_| is_of_gate)
            && let Some(answer) = asked.answers().approval()
        {
            let value = "auto-approved".to_owned();
            let given = GivenAnswer { by: by.clone(), value, ..nobody(now) };
            return Some(answered(asked, AnsweredBy::Auto, given, Some(answer)));
        }
        if let Some(prepared) = self.prepared(asked, now) {
            return Some(prepared);
        }
        let is_alone = self.attendance.terminal.is_none() && !self.has_left && asked.due_at.is_none();
        default().filter(|_| is_alone).map(|answer| answered(asked, AnsweredBy::Default, nobody(now), Some(answer)))
    }

    /// Asks the person at the terminal these questions, and no others.
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

    /// Forgets what was sent for a question that has its answer.
    pub(crate) fn done(&mut self, question: &QuestionId) {
        if let Some(folder) = &self.folder {
            folder.remove(file_name(&Message::Answer(GivenAnswer::none(question, Timestamp::UNIX_EPOCH))));
        }
        self.problem = None;
    }

    /// The oldest message to an agent.
    pub(crate) fn next_steering(&mut self) -> Option<GivenSteering> {
        self.steering.pop_front()
    }

    /// Forgets a message to an agent that was recorded, or that reached nobody.
    pub(crate) fn steered(&self, given: &GivenSteering) {
        if let Some(folder) = &self.folder {
            folder.remove(given.file_name());
        }
    }

    fn keep(&mut self, how: AnsweredBy, given: GivenAnswer) {
        self.given.entry(given.question.clone()).or_insert((how, given));
    }

    /// The first prepared answer that is valid; those before it are used up.
    fn prepared(&mut self, asked: &QuestionAsked, now: Timestamp) -> Option<QuestionAnswered> {
        let next = match asked.recovery {
            None => AnswerSheet::next,
            Some(_) => AnswerSheet::next_named,
        };
        while let Some((value, line)) = next(self.attendance.sheet.as_mut()?, &asked.node) {
            match asked.answers().read(&value) {
                Ok(answer) => {
                    let given = GivenAnswer { value, ..GivenAnswer::none(&asked.question, now) };
                    let answered = answered(asked, AnsweredBy::File, given, Some(answer));
                    return Some(QuestionAnswered { sheet: Some(line), ..answered });
                }
                Err(error) => self.problem = Some(error.to_string()),
            }
        }
        None
    }

    /// Looks at the folder.
    pub(crate) fn look(&mut self, signals: &impl Signals) {
        self.looked_at = Some(Instant::now());
        let messages = self.folder.as_ref().map(Folder::messages).unwrap_or_default();
        self.quiet_looks = if messages.is_empty() { self.quiet_looks.saturating_add(1) } else { 0 };
        self.steering.clear();
        for message in messages {
            match message {
                Message::Answer(given) => self.keep(AnsweredBy::Command, given),
                Message::Steer(given) => self.steering.push_back(given),
                Message::Pause { by } => self.pause = Some(by),
                Message::Cancel { by } => signals.cancel(&RunCanceled::by_person(&by).by),
            }
        }
        self.steering.make_contiguous().sort_by(GivenSteering::order);
    }
}

/// The answers to a run that wait to be recorded. It removes nothing.
pub fn kept(run: &Dir, run_id: RunId, key: Option<UserKey>) -> Vec<GivenAnswer> {
    let Ok(run) = run.try_clone() else { return Vec::new() };
    let messages = Folder { run, run_id, key }.read().into_iter();
    let answers =
        messages.filter_map(|(_, message)| if let Message::Answer(given) = message { Some(given) } else { None });
    answers.collect()
}

impl Folder {
    /// Every message that counts. A request is removed with it; an answer or a message to an agent stays until it is recorded.
    fn messages(&self) -> Vec<Message> {
        let is_request = |message: &Message| !matches!(message, Message::Answer(_) | Message::Steer(_));
        let take = |(name, message): (String, Message)| {
            if is_request(&message) {
                self.remove(name);
            }
            message
        };
        self.read().into_iter().map(take).collect()
    }

    /// Every message that counts, with the name of its file.
    fn read(&self) -> Vec<(String, Message)> {
        let Ok(folder) = self.run.open_dir(INBOX_DIR) else { return Vec::new() };
        let Ok(entries) = folder.entries() else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let open = |name: &str| message::open(&folder, name, &self.run_id, self.key.as_ref());
        names.filter_map(|name| open(&name).map(|message| (name, message))).collect()
    }

    fn remove(&self, name: impl Display) {
        let _not_there = self.run.remove_file(format!("{INBOX_DIR}/{name}"));
    }
}

fn answered(asked: &QuestionAsked, how: AnsweredBy, given: GivenAnswer, answer: Option<Answer>) -> QuestionAnswered {
    let text = if given.text.is_empty() && answer == Some(Answer::Text) { given.value.clone() } else { given.text };
    let QuestionAsked { generation, branch, node, visit, question, .. } = asked.clone();
    QuestionAnswered {
        generation,
        branch,
        node,
        visit,
        question,
        how,
        by: given.by,
        answered_at: glovebox_journal::event::whole_milliseconds(given.at),
        value: given.value,
        answer,
        text,
        sheet: None,
        recovery: asked.recovery.is_some(),
    }
}
