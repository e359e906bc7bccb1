//! Identities in events: run, branch, node, visit and attempt.
//!
//! [`Task`] is the only identity of a unit of work. Journal streams, queue keys, folder names and the owner of a status file are
//! derived from it alone. Two tasks that differ in any field never share a key.

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// Declares a type for names, which are compared and cloned but never computed with. Deserialization checks the form of a name; a
/// name that this program creates has the right form.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $form:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
        #[serde(into = "String")]
        pub struct $name(#[schemars(with = "String")] Arc<str>);

        impl $name {
            /// Creates a name. The caller has checked its form.
            pub fn new(name: impl Into<Arc<str>>) -> Self {
                Self(name.into())
            }

            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                let has_form: fn(&str) -> bool = $form;
                match has_form(&text) {
                    true => Ok(Self(text.into())),
                    false => Err(D::Error::custom(format!("`{}` is not a {}", text.escape_debug(), stringify!($name)))),
                }
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self(name.into())
            }
        }

        impl From<String> for $name {
            fn from(name: String) -> Self {
                Self(name.into())
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.as_ref().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name! {
    /// The name of a node: `[A-Za-z_][A-Za-z0-9_]*` (spec §2.3).
    NodeId, |_| true
}
name! {
    /// The name of a run: chosen by the user, or 26 characters that sort by the time at which the run began.
    RunId, |_| true
}
name! {
    /// The name of a branch of a run: `[a-z0-9_-]+`, so that it can be the name of a folder. Every run begins with the
    /// branch `main`.
    BranchId, |text| is_folder_name(text) && !text.bytes().any(|byte| byte.is_ascii_uppercase())
}
name! {
    /// The id of an attempt, unique in all runs. The folders of the attempt have this name.
    AttemptId, is_folder_name
}
name! {
    /// The id of a driver that took a run over, unique in all runs. Two drivers on one machine have different ids.
    DriverId, is_folder_name
}
name! {
    /// The name of a machine that drives runs or makes attempts. The operator chooses it.
    MachineId, |_| true
}
name! {
    /// The name of a thread, which is a group of stages that share a conversation. The author chooses it, or it is the
    /// name of a node.
    ThreadId, |_| true
}
name! {
    /// The id of a question to a person.
    QuestionId, |_| true
}

name! {
    /// The id of a steering message, unique in the run.
    MessageId, |_| true
}

/// Returns true if the text matches `[A-Za-z0-9_-]+`, so that it can be the name of a folder of a run.
fn is_folder_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

impl RunId {
    /// Maximum number of characters of the name of a run.
    pub const CHARACTERS_MAX: usize = 64;

    /// Returns true if a run can have this name: letters, digits, `-` and `_`, a letter or digit first, at most 64
    /// characters, and not `latest`.
    pub fn is_folder_name(text: &str) -> bool {
        let starts_well = text.starts_with(|first: char| first.is_ascii_alphanumeric());
        starts_well && text.len() <= Self::CHARACTERS_MAX && text != "latest" && is_folder_name(text)
    }
}

impl BranchId {
    /// Returns the branch that every run begins with.
    pub fn main() -> Self {
        Self::new("main")
    }
}

impl NodeId {
    /// Returns the name of this node's verification in plans and grants, such as `build.verify`. It never equals the
    /// name of a node, because node names in a file have no dot.
    pub fn verification(&self) -> Self {
        Self::new(format!("{self}{VERIFICATION}"))
    }

    /// Returns the node whose verification has this name. `None` if this is not the name of a verification.
    pub fn verified(&self) -> Option<&str> {
        self.as_str().strip_suffix(VERIFICATION)
    }
}

/// The suffix of the name of a node's verification.
const VERIFICATION: &str = ".verify";

/// The kind of work that a task does at its node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Calls the handler of the node.
    #[default]
    Handler,
    /// Runs the `verify_command` of the node.
    Verify,
    /// Merges the branches that arrived at the node.
    Join,
}

/// One visit of one node on one branch of one generation, with the kind of work. All attempts of the visit have the same task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Number of loop restarts before this task; 0 in the first generation (decision run-generations).
    pub generation: u32,
    /// Name of the branch.
    pub branch: BranchId,
    /// Name of the node.
    pub node: NodeId,
    /// Number of the visit of the node, counted from 1.
    pub visit: u32,
    /// Kind of work.
    pub work: Work,
}

impl Task {
    /// Creates the task of the handler at one visit of a node.
    pub fn for_handler(generation: u32, branch: &BranchId, node: &NodeId, visit: u32) -> Self {
        let (branch, node) = (branch.clone(), node.clone());
        Self { generation, branch, node, visit, work: Work::Handler }
    }

    /// Returns the task of the verification at this visit.
    pub fn verification(&self) -> Self {
        Self { work: Work::Verify, ..self.clone() }
    }

    /// Returns the task of the handler at this visit.
    pub fn handling(&self) -> Self {
        Self { work: Work::Handler, ..self.clone() }
    }

    /// Returns the name of the stage in plans and grants: the node, or its verification.
    pub fn stage(&self) -> NodeId {
        match self.work {
            Work::Verify => self.node.verification(),
            Work::Handler | Work::Join => self.node.clone(),
        }
    }
}

impl fmt::Display for Task {
    /// Writes the key: `0/main/build#2`, followed by `/verify` or `/join` unless the work is that of the handler.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}#{}", self.generation, self.branch, self.node, self.visit)?;
        match self.work {
            Work::Handler => Ok(()),
            Work::Verify => f.write_str("/verify"),
            Work::Join => f.write_str("/join"),
        }
    }
}

/// One attempt of a task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// The task of the attempt.
    #[serde(flatten)]
    pub task: Task,
    /// Number of the attempt of the task, counted from 1.
    pub ordinal: u32,
    /// Unique id of the attempt; its folders have this name. In JSON it is `attempt_id`, because an event also has other ids.
    #[serde(rename = "attempt_id")]
    pub id: AttemptId,
}

/// The key of a stream of the journal: the records about the run itself, one branch, one task or one question. The last
/// record of a stream is its head. An append can require that the heads of some streams have not changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamKey {
    /// The run itself: its beginning and its end.
    Run,
    /// One branch: its current node and its next node.
    Branch(BranchId),
    /// One task.
    Task(Task),
    /// One question to a person.
    Question(QuestionId),
}

impl From<&BranchId> for StreamKey {
    fn from(branch: &BranchId) -> Self {
        Self::Branch(branch.clone())
    }
}

impl From<&Task> for StreamKey {
    fn from(task: &Task) -> Self {
        Self::Task(task.clone())
    }
}

impl From<&QuestionId> for StreamKey {
    fn from(question: &QuestionId) -> Self {
        Self::Question(question.clone())
    }
}

impl fmt::Display for StreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamKey::Run => f.write_str("run"),
            StreamKey::Branch(branch) => write!(f, "branch.{branch}"),
            StreamKey::Task(task) => write!(f, "task.{task}"),
            StreamKey::Question(question) => write!(f, "question.{question}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_folder_leads_nowhere_else() {
        for text in ["", "..", "a/b", "a b", "\u{e9}", "a\n", "a.b"] {
            let json = serde_json::to_string(text).unwrap();
            assert!(serde_json::from_str::<BranchId>(&json).is_err(), "branch {json}");
            assert!(serde_json::from_str::<AttemptId>(&json).is_err(), "attempt {json}");
        }
        assert!(serde_json::from_str::<BranchId>("\"Main\"").is_err());
        assert_eq!(serde_json::from_str::<BranchId>("\"left_2-b\"").unwrap(), BranchId::new("left_2-b"));
        assert_eq!(serde_json::from_str::<AttemptId>("\"01J-B\"").unwrap(), AttemptId::new("01J-B"));
    }

    #[test]
    fn tasks_that_differ_have_different_keys() {
        let task = |branch: &str, node: &str, visit, work| Task {
            generation: 0,
            branch: branch.into(),
            node: node.into(),
            visit,
            work,
        };
        let tasks = [
            task("main", "build", 1, Work::Handler),
            task("main", "build", 2, Work::Handler),
            task("main", "build", 1, Work::Verify),
            task("left", "build", 1, Work::Handler),
            task("main", "test", 1, Work::Handler),
            Task { generation: 1, ..task("main", "build", 1, Work::Handler) },
        ];
        let keys: std::collections::BTreeSet<String> = tasks.iter().map(Task::to_string).collect();
        assert_eq!(keys.len(), tasks.len());
        assert!(keys.contains("0/main/build#1/verify"));
    }
}
