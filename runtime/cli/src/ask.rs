//! Asks the person at the terminal the questions of human gates while a run is executed.
//!
//! A separate thread reads the keyboard. It asks only questions that no other source answers, one after the other, and
//! withdraws a question that was answered elsewhere or whose deadline has passed. Ctrl-C and the end of input leave a
//! question open and answer nothing.

use crate::answer_sources;
use crate::runs::RunFolder;
use crate::runs::changes::AskedAbout;
use crate::runs::journal;
use crate::runs::question;
use crate::runs::review::Review;
use crate::runs::review::Reviewer;
use crate::terminal::paint::Paint;
use crate::terminal::progress::Notices;
use crate::terminal::{self, duration, visible};
use glovebox_engine::inbox::{GivenAnswer, Terminal};
use glovebox_journal::event::{AnsweredBy, QuestionAsked, QuestionId, whole_milliseconds};
use glovebox_record::Choice;
use glovebox_record::question::{ANSWER_BYTES_MAX, Answer, QuestionType};
use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};

/// Interval at which the thread checks whether a question is still open.
const LOOK: Duration = Duration::from_millis(100);

/// Lets the Ctrl-C handler leave the question on the screen unanswered.
#[derive(Clone, Default)]
pub struct Leave(Arc<Presence>);

#[derive(Default)]
struct Presence {
    is_asked: AtomicBool,
    has_left: AtomicBool,
}

impl Leave {
    /// Stops waiting for an answer to the question on the screen. Returns false if no question is on the screen, or if this
    /// was called for it before.
    pub fn leave(&self) -> bool {
        self.0.is_asked.load(Ordering::SeqCst) && !self.0.has_left.swap(true, Ordering::SeqCst)
    }
}

/// Starts the thread. It ends with the run, or when the person leaves.
pub fn start(run: &RunFolder, runs_dir: PathBuf, notices: Notices) -> (Terminal, Leave) {
    let (open, questions) = watch::channel(Vec::new());
    let (sender, answers) = mpsc::channel(1);
    let leave = Leave::default();
    let asker = Asker { run: run.clone(), runs_dir, notices, questions, presence: Arc::clone(&leave.0) };
    let handle = Handle::current();
    std::thread::spawn(move || asker.attend(&handle, &sender));
    (Terminal { open, answers }, leave)
}

struct Asker {
    run: RunFolder,
    runs_dir: PathBuf,
    notices: Notices,
    questions: watch::Receiver<Vec<QuestionId>>,
    presence: Arc<Presence>,
}

/// How a question at the terminal ended.
enum Reply {
    Given(String),
    /// The question is no longer open, or the run ended.
    Withdrawn,
    /// The person left the question open.
    Left,
}

impl Asker {
    fn attend(mut self, handle: &Handle, answers: &mpsc::Sender<GivenAnswer>) {
        let mut last = None;
        loop {
            let next = |open: &Vec<QuestionId>| open.iter().find(|question| Some(*question) != last.as_ref()).cloned();
            let Ok(Some(asked)) =
                handle.block_on(self.questions.wait_for(|open| next(open).is_some())).map(|open| next(&open))
            else {
                return;
            };
            self.notices.hold();
            self.presence.is_asked.store(true, Ordering::SeqCst);
            let reply = self.ask(&asked);
            self.presence.is_asked.store(false, Ordering::SeqCst);
            let value = match reply {
                Reply::Given(value) => Some(value),
                Reply::Withdrawn => None,
                Reply::Left => {
                    terminal::say(format_args!("\n{} stays open\n", visible::line(asked.as_str())));
                    return self.notices.release();
                }
            };
            self.notices.release();
            let Some(value) = value else { continue };
            let none = GivenAnswer::none(&asked, AnsweredBy::Terminal, whole_milliseconds(Timestamp::now()));
            last = Some(asked);
            if answers.blocking_send(GivenAnswer { value, by: answer_sources::name(None), ..none }).is_err() {
                return;
            }
        }
    }

    /// Shows a question and what an answer approves, and reads lines until one is valid.
    fn ask(&self, id: &QuestionId) -> Reply {
        let Ok(verified) = journal::read(&self.run) else { return Reply::Left };
        let Some((_, asked)) = AskedAbout::find(&verified.records, id) else { return Reply::Left };
        let reviewer = Reviewer::new(&self.run, &self.runs_dir, &verified);
        let review = reviewer.and_then(|reviewer| reviewer.review(id));
        let review: Result<Option<Review>, String> = review.map_err(|stop| stop.message);
        let shown = match &review {
            Ok(review) => review.as_ref().ok_or("the run never asked this question"),
            Err(problem) => Err(problem.as_str()),
        };
        let rows = question::render(asked, shown, "", Paint::stderr());
        terminal::say(format_args!("\n{}: {}\n{rows}", visible::line(id.as_str()), question::text(asked)));
        // Discards what was typed before the question was shown, so that it does not answer the question.
        let _typed = tcflush(std::io::stdin(), QueueSelector::IFlush);
        loop {
            terminal::say(prompt(asked, Timestamp::now()));
            match self.line(id).map(|line| value_of(asked, &line)) {
                Ok(Ok(value)) => return Reply::Given(value),
                Ok(Err(problem)) => terminal::say(format_args!("error: {}\n", visible::line(&problem))),
                Err(reply) => return reply,
            }
        }
    }

    /// Reads a line from the keyboard while the question is open.
    fn line(&self, id: &QuestionId) -> Result<String, Reply> {
        let stdin = std::io::stdin();
        let mut line = Vec::new();
        loop {
            if self.presence.has_left.load(Ordering::SeqCst) {
                return Err(Reply::Left);
            }
            if self.questions.has_changed().is_err() || !self.questions.borrow().contains(id) {
                terminal::say("\n");
                return Err(Reply::Withdrawn);
            }
            // The kernel stops a background process that reads from the terminal.
            let is_in_front = tcgetpgrp(&stdin).is_ok_and(|group| group == rustix::process::getpgrp());
            let has_job_control = tcgetpgrp(&stdin).is_ok();
            if has_job_control && !is_in_front {
                std::thread::sleep(LOOK);
                continue;
            }
            let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
            if !matches!(poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&timeout)), Ok(1..)) {
                continue;
            }
            let mut part = [0; 4096];
            match rustix::io::read(&stdin, &mut part) {
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Ok(0) | Err(_) => return Err(Reply::Left),
                Ok(count) if line.len() <= ANSWER_BYTES_MAX => line.extend_from_slice(&part[..count]),
                Ok(_) => {}
            }
            if let Some(end) = line.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
        }
    }
}

/// Returns the prompt for an answer: which answers are valid, what an empty line means, and the time left.
fn prompt(asked: &QuestionAsked, now: Timestamp) -> String {
    let expected = visible::line(&asked.answers().expected()).into_owned();
    let numbers = match asked.choices.len() {
        0 | 1 => String::new(),
        count => format!(" or 1-{count}"),
    };
    let enter = asked.default.as_ref().map(|default| format!("; Enter takes `{}`", visible::line(default.shown())));
    let left = asked.due_at.map(|due| {
        let left = u64::try_from(due.duration_since(now).as_millis()).unwrap_or(0);
        format!("; {} left", duration(left))
    });
    let (enter, left) = (enter.unwrap_or_default(), left.unwrap_or_default());
    format!("answer {expected}{numbers}{enter}{left}; Ctrl-C leaves the question open: ")
}

/// Returns the answer that a line contains: its text, the choice with this number, or the default for an empty line.
fn value_of(asked: &QuestionAsked, line: &str) -> Result<String, String> {
    let line = line.trim();
    if let (true, Some(default)) = (line.is_empty(), &asked.default) {
        return name_of(asked, default)
            .ok_or_else(|| "the default answer has no unambiguous name, expected a choice".to_owned());
    }
    let error = match asked.answers().read(line) {
        Ok(_) => return Ok(line.to_owned()),
        Err(error) => error.to_string(),
    };
    let number = line.parse::<usize>().ok().filter(|_| asked.question_type != QuestionType::Freeform);
    let choice = number.and_then(|number| asked.choices.get(number.checked_sub(1)?));
    choice.and_then(|choice| name_of(asked, choice)).ok_or(error)
}

/// Returns a text that names this choice and no other; `None` if there is none.
fn name_of(asked: &QuestionAsked, choice: &Choice) -> Option<String> {
    let is_named = |name: &&str| asked.answers().read(name).is_ok_and(|read| read == Answer::Choice(choice.clone()));
    [choice.shown(), choice.to.as_str(), &choice.key].into_iter().find(is_named).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_journal::event::{BranchId, Task};

    fn asked(labels: &[&str], default: Option<usize>, kind: QuestionType) -> QuestionAsked {
        let choice = |(at, label): (usize, &&str)| Choice::new(label, format!("n{at}").into());
        let choices: Vec<Choice> = labels.iter().enumerate().map(choice).collect();
        let task = Task::for_handler(0, &BranchId::main(), &"gate".into(), 1);
        QuestionAsked {
            question: QuestionAsked::id_of(&task),
            generation: 0,
            branch: task.branch,
            node: task.node,
            visit: 1,
            question_type: kind,
            text: String::new(),
            default: default.map(|at| choices[at].clone()),
            choices,
            due_at: None,
            recovery: None,
        }
    }

    #[test]
    fn a_line_is_a_name_a_number_or_the_default() {
        let many = asked(&["[S] Ship", "Fix"], Some(1), QuestionType::MultipleChoice);
        for (line, value) in [("s", "s"), (" Fix ", "Fix"), ("1", "Ship"), ("2", "Fix"), ("", "Fix")] {
            assert_eq!(value_of(&many, line).as_deref(), Ok(value), "{line}");
        }
        for line in ["0", "3", "x", "-1"] {
            assert!(value_of(&many, line).unwrap_err().contains("expected `S` (Ship), `F` (Fix)"), "{line}");
        }
        let numbered = asked(&["2) One", "1) Two"], None, QuestionType::MultipleChoice);
        assert_eq!(value_of(&numbered, "1").as_deref(), Ok("1"), "a key comes before a number");
        assert!(value_of(&numbered, "").is_err());
        let free = asked(&[], None, QuestionType::Freeform);
        assert_eq!(value_of(&free, "1 more").as_deref(), Ok("1 more"));
        assert!(value_of(&free, "").is_err());
    }
}
