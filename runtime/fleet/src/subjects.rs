//! The names of a fleet on the server: its stream and the subjects of runs and attempts.
//!
//! A subject has tokens between dots. A run id or a task key may contain any character, so a name that is not plain is
//! replaced by its digest. Two runs never share a subject.

use glovebox_journal::event::{AttemptId, Digest, RunId, Task};
use glovebox_signing::key::KeyId;

/// The longest run id in bytes that is used in a subject as it is.
const PLAIN_BYTES_MAX: usize = 64;
/// The end of the name of the stream of messages.
const MAIL: &str = "-mail";
/// The class of every attempt: no attempt has needs yet.
const ANY_CLASS: &str = "any";

/// The name of a fleet. Its stream has this name, and all subjects begin with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetName(String);

impl Default for FleetName {
    fn default() -> Self {
        Self("gb".to_owned())
    }
}

impl FleetName {
    /// Returns a fleet's name. It has 1 to 32 characters of `a-z`, `A-Z`, `0-9`, `-` and `_`, and does not end with `-mail`;
    /// any other name is `None`.
    pub fn new(name: &str) -> Option<Self> {
        let is_name = (1..=32).contains(&name.len()) && is_plain(name) && !name.ends_with(MAIL);
        is_name.then(|| Self(name.to_owned()))
    }

    /// Returns the name of the stream.
    pub fn stream(&self) -> &str {
        &self.0
    }

    /// Returns the patterns of all subjects that the stream of journals stores.
    pub(crate) fn stored(&self) -> [String; 6] {
        ["f", "a.*", "r.*", "q.drive.*", "q.stage.*.*.*", "x.*.*"].map(|pattern| format!("{}.{pattern}", self.0))
    }

    /// Returns the name of the stream with the messages of people to runs. They are removed when a driver has recorded them,
    /// and a user who may remove messages may remove any of a stream: so they have a stream of their own.
    pub fn mail_stream(&self) -> String {
        format!("{}{MAIL}", self.0)
    }

    /// Returns the patterns of all subjects that the stream of messages stores.
    pub(crate) fn mail_stored(&self) -> [String; 1] {
        [format!("{}.m.*.*", self.0)]
    }

    /// Returns the subject of the fleet's settings.
    pub(crate) fn settings(&self) -> String {
        format!("{}.f", self.0)
    }

    /// Returns the subject of what the operator said about a machine.
    pub(crate) fn machine(&self, key: &KeyId) -> String {
        format!("{}.a.{}", self.0, key.hex())
    }

    /// Returns the pattern of the subjects of all machines.
    pub(crate) fn machines(&self) -> String {
        format!("{}.a.*", self.0)
    }

    /// Returns the subject of a run's journal.
    pub(crate) fn run(&self, run: &RunId) -> String {
        format!("{}.r.{}", self.0, token(run.as_str()))
    }

    /// Returns the pattern of the subjects of all journals.
    pub(crate) fn runs(&self) -> String {
        format!("{}.r.*", self.0)
    }

    /// Returns the run whose journal has a subject. `None` for a subject with a digest instead of the id.
    pub(crate) fn run_of(&self, subject: &str) -> Option<RunId> {
        let token = subject.strip_prefix(&self.0)?.strip_prefix(".r.")?;
        is_plain(token).then(|| RunId::new(token))
    }

    /// Returns the subject of the pointer to a run that must be driven.
    pub(crate) fn drive(&self, run: &RunId) -> String {
        format!("{}.q.drive.{}", self.0, token(run.as_str()))
    }

    /// Returns the pattern of the subjects of pointers to runs.
    pub(crate) fn drives(&self) -> String {
        format!("{}.q.drive.*", self.0)
    }

    /// Returns the pattern of the subjects of pointers to tasks of one class.
    pub(crate) fn stages(&self) -> String {
        format!("{}.q.stage.{ANY_CLASS}.*.*", self.0)
    }

    /// Returns the subject of the questions to the driver of a run.
    pub(crate) fn questions(&self, run: &RunId) -> String {
        format!("{}.c.{}", self.0, token(run.as_str()))
    }

    /// Returns the subject on which a machine says that it is there.
    pub(crate) fn presence(&self, machine: &str) -> String {
        format!("{}.p.{}", self.0, token(machine))
    }

    /// Returns the subject of notes for the people who follow a run.
    pub(crate) fn notes(&self, run: &RunId) -> String {
        format!("{}.n.{}", self.0, token(run.as_str()))
    }

    /// Returns the subject of the result of an attempt.
    pub(crate) fn result(&self, run: &RunId, attempt: &AttemptId) -> String {
        format!("{}.x.{}.{}", self.0, token(run.as_str()), token(attempt.as_str()))
    }

    /// Returns the subject of the exchanges of an attempt with its model. `attempt` is its name, which is no id of an attempt.
    pub(crate) fn exchanges(&self, run: &RunId, attempt: &str) -> String {
        format!("{}.x.{}.e-{}", self.0, token(run.as_str()), Digest::hash(attempt.as_bytes()).hex())
    }

    /// Returns the subject of a message to a run.
    pub(crate) fn mail(&self, run: &RunId, message: &str) -> String {
        format!("{}.m.{}.{}", self.0, token(run.as_str()), token(message))
    }

    /// Returns the pattern of the subjects of messages to a run.
    pub(crate) fn mails(&self, run: &RunId) -> String {
        format!("{}.m.{}.*", self.0, token(run.as_str()))
    }

    /// Returns the subject of the pointer to a task that is ready.
    pub(crate) fn stage(&self, run: &RunId, task: &Task) -> String {
        let task = Digest::hash(task.to_string().as_bytes()).hex();
        format!("{}.q.stage.{ANY_CLASS}.{}.{task}", self.0, token(run.as_str()))
    }
}

/// Returns a name as one token. A plain name never begins with `=`, so it differs from every digest.
pub(crate) fn token(name: &str) -> String {
    match !name.is_empty() && name.len() <= PLAIN_BYTES_MAX && is_plain(name) {
        true => name.to_owned(),
        false => format!("={}", Digest::hash(name.as_bytes()).hex()),
    }
}

fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_that_is_not_plain_is_one_token() {
        let name = FleetName::default();
        assert_eq!(name.run(&"01KB-run_1".into()), "gb.r.01KB-run_1");
        for id in ["", "a.b", "*", ">", "a b", "ü", &"a".repeat(65)] {
            let subject = name.run(&id.into());
            let token = subject.strip_prefix("gb.r.=").unwrap();
            assert!(token.len() == 64 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}: {subject}");
        }
    }

    #[test]
    fn the_name_of_a_fleet_has_only_characters_of_a_stream() {
        assert_eq!(FleetName::new("team-1"), Some(FleetName("team-1".to_owned())));
        for name in ["", "a.b", "a b", ">", "*", "a-mail", &"a".repeat(33)] {
            assert_eq!(FleetName::new(name), None, "{name}");
        }
    }
}
