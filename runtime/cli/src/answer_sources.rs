//! The sources of answers to human gates, and how an answer is sent to a run.
//!
//! A message is written into the run's folder atomically. The name of an answer's file depends only on the question, so
//! that only the first of two answers is stored. No stage can reach that folder, and a message is accepted only with a
//! MAC of the user's key.

use crate::arguments::{OutputArguments, PeopleArguments, RunsArguments};
use crate::exit::{Exit, Stop};
use crate::runs::RunFolder;
use crate::terminal;
use crate::user_key;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use glovebox_engine::inbox::{self, AnswerSheet, Attendance, GivenAnswer, INBOX_DIR, Message, file_name, seal};
use glovebox_journal::event::{QuestionAsked, Record, RunId};
use glovebox_journal::rewind;
use glovebox_pipeline::ir::Pipeline;
use glovebox_plan::prepare::source;
use rustix::process::getuid;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of characters of a person's name.
const NAME_CHARACTERS_MAX: usize = 100;

/// The sources of answers in a process that drives a run.
pub struct Present {
    /// The answer file, automatic approval and the terminal.
    pub attendance: Attendance,
    /// The folder of the runs, if a person at the terminal can be asked; `None` otherwise.
    pub asks_in: Option<PathBuf>,
}

/// Returns the sources of answers in this process. Skips the answers of the answer file that the run's records show as
/// used.
pub fn present(
    people: &PeopleArguments,
    output: &OutputArguments,
    runs: &RunsArguments,
    pipeline: &Pipeline,
    records: &[Record],
) -> Result<Present, Stop> {
    let text = people.answers.as_deref().map(source::read_text).transpose()?;
    let sheet = text.map(|text| AnswerSheet::parse(&text, pipeline).without_used(rewind::in_force(records)));
    let auto_approve = people.auto_approve.then(|| "--auto-approve".to_owned());
    let can_ask = can_ask(people, output);
    Ok(Present {
        attendance: Attendance { sheet, auto_approve, terminal: None },
        asks_in: can_ask.then(|| runs.runs_dir.clone()),
    })
}

/// Returns true if a person at the terminal can be asked.
pub fn can_ask(people: &PeopleArguments, output: &OutputArguments) -> bool {
    // Questions between records on one terminal would make both unreadable.
    let is_mixed = output.json && terminal::is_terminal();
    !people.no_input && !is_mixed && terminal::can_ask()
}

/// Returns the name under which an answer or a request is recorded: the given name, or that of the user.
pub fn name(given: Option<&String>) -> String {
    let of = |variable| std::env::var(variable).ok().filter(|name| !name.is_empty());
    let user = || of("USER").or_else(|| of("LOGNAME")).unwrap_or_else(|| format!("user {}", getuid().as_raw()));
    let name = given.cloned().unwrap_or_else(user);
    name.chars().take(NAME_CHARACTERS_MAX).collect()
}

/// Returns the answers that are in a run's folder and that no process has recorded yet.
pub fn kept(run: &RunFolder) -> Vec<GivenAnswer> {
    let key = user_key::to_verify().ok().flatten();
    let folder = Dir::open_ambient_dir(&run.path, ambient_authority());
    folder.map(|folder| inbox::kept(&folder, RunId::from(run.id.as_str()), key)).unwrap_or_default()
}

/// Returns the unrecorded answers to the questions `open` that the run will accept when it is resumed.
pub fn kept_for(run: &RunFolder, open: &[&QuestionAsked]) -> Vec<GivenAnswer> {
    let mut kept = if open.is_empty() { Vec::new() } else { kept(run) };
    kept.retain(|given| open.iter().any(|asked| asked.question == given.question && counts(asked, given)));
    kept
}

/// Returns true if the run will accept the answer: it is in time and valid.
fn counts(asked: &QuestionAsked, given: &GivenAnswer) -> bool {
    asked.due_at.is_none_or(|due| given.at <= due) && asked.answers().read(&given.value).is_ok()
}

/// Returns true if a message is still in the run's folder, so the process that drives the run has not processed it.
pub fn is_waiting(run: &RunFolder, message: &Message) -> bool {
    run.path.join(INBOX_DIR).join(file_name(message)).exists()
}

/// Removes a message that no process will read.
pub fn take_back(run: &RunFolder, message: &Message) {
    let _not_there = fs::remove_file(run.path.join(INBOX_DIR).join(file_name(message)));
}

/// Writes a message into a run's folder, durably. Returns false if the message is an answer and the question has an
/// answer already.
pub fn send(run: &RunFolder, message: &Message) -> Result<bool, Stop> {
    let Some(key) = user_key::to_verify()? else {
        let message = "this user has no signing key, so a message to a run cannot be signed";
        return Err(Stop::new(Exit::Policy, message).with_help("the first `glovebox run` creates the key"));
    };
    let content = seal(message, &RunId::from(run.id.as_str()), &key)
        .map_err(|error| Stop::new(Exit::Internal, format!("write a message: {error}")))?;
    put(&run.path.join(INBOX_DIR), &file_name(message), &content, matches!(message, Message::Answer(_)))
        .map_err(|error| Stop::io(format!("send a message to run `{}`", run.id), &error))
}

fn put(folder: &Path, name: &str, content: &str, is_first_only: bool) -> io::Result<bool> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Threads of one process have files of their own: a file that is placed already must not be written again.
    static PARTS: AtomicU64 = AtomicU64::new(0);
    let part = PARTS.fetch_add(1, Ordering::Relaxed);
    let beside = folder.join(format!(".{name}.{}.{part}", std::process::id()));
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()?;
    let place = folder.join(name);
    let placed = if is_first_only {
        let linked = fs::hard_link(&beside, place);
        fs::remove_file(&beside)?;
        linked
    } else {
        fs::rename(&beside, place)
    };
    glovebox_workspace::regular_file::flush_folder(folder)?;
    match placed {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads of a server give answers to the same question at the same time.
    #[test]
    fn the_answer_that_came_first_stays() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..200 {
            let (name, barrier) = (format!("answer-{round}.json"), std::sync::Barrier::new(4));
            let first: Vec<usize> = std::thread::scope(|scope| {
                let put = |number: usize| {
                    barrier.wait();
                    let content = number.to_string().repeat(100);
                    put(folder.path(), &name, &content, true).unwrap().then_some(number)
                };
                let threads: Vec<_> = (0..4).map(|number| scope.spawn(move || put(number))).collect();
                threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
            });
            let kept = fs::read_to_string(folder.path().join(&name)).unwrap();
            assert_eq!(first.len(), 1, "round {round}");
            assert_eq!(kept, first[0].to_string().repeat(100), "round {round}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 200, "no other file is left");
    }
}
