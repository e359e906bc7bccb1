//! Records a refusal for each denied operation, with the grant that would allow the operation.
//!
//! The record is complete and is meant for the operator. The returned [`ViewError`] is for the guest and contains only
//! what the guest may know.

use super::error::ViewError;
use super::{Kind, View};
use glovebox_record::path::{ScopePath, ScopePathProblem};
use glovebox_record::scope::{Access, Entry};
use glovebox_record::{LimitName, Refusal};
use rustix::io::Errno;

/// An operation on a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Open a file for reading.
    Read,
    /// Open a file for writing, create it or truncate it.
    Write,
    /// List a directory or open it.
    List,
    /// Examine an entry.
    Stat,
    /// Create a directory.
    MakeDirectory,
    /// Remove a file or directory.
    Remove,
    /// Rename an entry, as the old or the new path.
    Rename,
    /// Set times.
    SetTimes,
    /// Create a hard link.
    Link,
    /// Create a symbolic link.
    Symlink,
    /// Read a symbolic link.
    ReadLink,
}

impl Operation {
    /// Returns the text used in refusals.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::List => "list",
            Self::Stat => "stat",
            Self::MakeDirectory => "make directory",
            Self::Remove => "remove",
            Self::Rename => "rename",
            Self::SetTimes => "set times of",
            Self::Link => "link",
            Self::Symlink => "symlink",
            Self::ReadLink => "read link",
        }
    }

    fn reads(self) -> bool {
        matches!(self, Self::Read | Self::List | Self::Stat | Self::ReadLink)
    }
}

/// Why an object cannot be used, even if the scope grants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectFault {
    /// A FIFO, socket or device.
    Special,
    /// A file with several hard links. Another name may be outside the write scope.
    HardLink,
    /// The handle was opened for reading only.
    ReadOnlyHandle,
}

impl ObjectFault {
    fn as_str(self) -> &'static str {
        match self {
            Self::Special => "a pipe, socket or device",
            Self::HardLink => "a hard link, whose other name may be outside the write scope",
            Self::ReadOnlyHandle => "opened for reading only",
        }
    }
}

/// Why an operation was refused, and how to allow it.
struct Explanation {
    reason: String,
    help: String,
}

impl View {
    /// Records that the scope denies an operation. Returns the error for the guest, which is [`ViewError::NotFound`]
    /// for a path that the stage may not see.
    pub(super) fn refuse_scope(&self, operation: Operation, path: &ScopePath) -> ViewError {
        let access = self.scope.access(path);
        let (reason, help) = match access {
            Access::Hidden => ("hidden from this stage".to_owned(), "hidden paths cannot be granted".to_owned()),
            _ if operation.reads() => ("not in the read scope".to_owned(), self.read_grant(path)),
            Access::Write => {
                ("the path is granted as a file, not as a directory".to_owned(), self.write_grant(operation, path))
            }
            _ => ("not in the write scope".to_owned(), self.write_grant(operation, path)),
        };
        self.record(operation, path, Explanation { reason, help });
        if access <= Access::Absent { ViewError::NotFound } else { ViewError::NotPermitted }
    }

    /// Records that a parent of a grant is not a directory. Returns [`ViewError::NotFound`].
    pub(super) fn refuse_scope_of_file(&self, operation: Operation, path: &ScopePath) -> ViewError {
        let reason = "not in the read scope and not a parent directory of it";
        self.record(operation, path, Explanation { reason: reason.to_owned(), help: self.read_grant(path) });
        ViewError::NotFound
    }

    /// Records that an object is hidden although the path is not: the path is another name of a hidden object.
    pub(super) fn refuse_hidden_object(&self, operation: Operation, path: &ScopePath) -> ViewError {
        let reason = "another name of a path that is hidden from this stage";
        self.record(
            operation,
            path,
            Explanation { reason: reason.to_owned(), help: "hidden paths cannot be granted".to_owned() },
        );
        ViewError::NotFound
    }

    /// Records that an operation would affect an entry below the path that is hidden or not writable.
    pub(super) fn refuse_below(&self, operation: Operation, path: &ScopePath) -> ViewError {
        let reason = "a path below it is hidden or not in the write scope";
        self.record(
            operation,
            path,
            Explanation { reason: reason.to_owned(), help: self.write_grant(Operation::MakeDirectory, path) },
        );
        ViewError::NotPermitted
    }

    /// Records that the path is or contains a symbolic link.
    pub(super) fn refuse_link(&self, operation: Operation, path: &ScopePath) -> ViewError {
        let reason = "a symbolic link, which is never followed";
        self.record(
            operation,
            path,
            Explanation { reason: reason.to_owned(), help: "name the target of the link instead".to_owned() },
        );
        ViewError::Loop
    }

    /// Records that an object may not be used: it is not a regular file, or it has several hard links.
    pub(super) fn refuse_object(&self, operation: Operation, path: &ScopePath, unusable: ObjectFault) -> ViewError {
        self.record(
            operation,
            path,
            Explanation {
                reason: unusable.as_str().to_owned(),
                help: "no grant allows it; use a plain file".to_owned(),
            },
        );
        ViewError::NotPermitted
    }

    pub(super) fn refuse_quota(&self, path: &ScopePath, limit: LimitName) -> ViewError {
        let value = self.limits.get(limit);
        let reason = format!("limit `{limit}` of {value} is used up");
        self.record(Operation::Write, path, Explanation { reason, help: format!("raise `limits.{limit}`") });
        ViewError::Quota
    }

    /// Records a text that is not a valid path of the view, for example an absolute path or one that leaves the view.
    pub fn refuse_path(&self, operation: Operation, text: &str, problem: ScopePathProblem) -> ViewError {
        let help = match (problem, self.known_as.first()) {
            (ScopePathProblem::Absolute, Some(name)) => {
                let name = crate::refusal::escaped(name);
                format!(
                    "no grant allows it: use paths relative to the workspace, or below `{name}`, which is the workspace"
                )
            }
            _ => "no grant allows it: use a path relative to the workspace that stays inside it".to_owned(),
        };
        self.refusals.record(Refusal::new(operation.as_str(), text, problem.to_string(), help));
        match problem {
            ScopePathProblem::Absolute | ScopePathProblem::ClimbsAbove => ViewError::NotPermitted,
            ScopePathProblem::TooLong => ViewError::Io(Errno::NAMETOOLONG),
            ScopePathProblem::Nul
            | ScopePathProblem::Empty
            | ScopePathProblem::EmptySegment
            | ScopePathProblem::DotSegment
            | ScopePathProblem::ParentSegment
            | ScopePathProblem::NotUtf8 => ViewError::Invalid,
        }
    }

    /// Refuses to create or read a link, which no grant allows.
    pub fn refuse_linking(&self, operation: Operation, path: &ScopePath) -> ViewError {
        let reason = "links are never created or read";
        self.record(operation, path, Explanation { reason: reason.to_owned(), help: "no grant allows it".to_owned() });
        if self.scope.access(path) <= Access::Absent { ViewError::NotFound } else { ViewError::NotPermitted }
    }

    /// Returns the error of reading a link. Reading a path that is not a link is invalid, as on Unix (`canonicalize`
    /// relies on it). The target of a link is never revealed.
    pub fn refuse_reading_link(&self, path: &ScopePath) -> ViewError {
        match self.stat(path) {
            Ok(metadata) if metadata.kind == Kind::Symlink => self.refuse_linking(Operation::ReadLink, path),
            Ok(_) => ViewError::Invalid,
            Err(denied) => denied,
        }
    }

    /// Refuses to follow a symbolic link that the guest named.
    pub fn refuse_following(&self, operation: Operation, path: &ScopePath) -> ViewError {
        self.refuse_link(operation, path)
    }

    fn record(&self, operation: Operation, path: &ScopePath, explanation: Explanation) {
        let Explanation { reason, help } = explanation;
        self.refusals.record(Refusal::new(operation.as_str(), &path.to_string(), reason, help));
    }

    fn read_grant(&self, path: &ScopePath) -> String {
        let (comma, quoted) = with_entry(&self.scope.read, path, false);
        self.grant(&format!("`read_paths=\"{comma}\"` on the node"), &format!("`grants.read = [{quoted}]`"))
    }

    /// Returns the grant that would allow writing. There is none for protected paths, which are never committed.
    fn write_grant(&self, operation: Operation, path: &ScopePath) -> String {
        if let Some(reason) = self.protected.reason(&path.to_string()) {
            return format!("no grant allows it: {}", crate::refusal::escaped(&reason));
        }
        let (comma, quoted) = with_entry(&self.scope.write, path, operation == Operation::MakeDirectory);
        self.grant(&format!("`allowed_write_paths=\"{comma}\"` on the node"), &format!("`grants.write = [{quoted}]`"))
    }

    /// Returns the text about the grant. Only a plugin needs a grant in addition to the attributes of the node.
    fn grant(&self, on_node: &str, of_plugin: &str) -> String {
        match self.is_of_plugin {
            true => format!("to allow it: {on_node}, and {of_plugin} of the plugin in glovebox.toml"),
            false => format!("to allow it: {on_node}"),
        }
    }
}

/// Returns the current entries and one more, as a node attribute and as a TOML list.
fn with_entry(entries: &[Entry], path: &ScopePath, is_folder: bool) -> (String, String) {
    let slash = if is_folder || path.is_root() { "/" } else { "" };
    let more = crate::refusal::escaped(&format!("{path}{slash}"));
    let all: Vec<String> = entries.iter().map(Entry::to_string).chain([more]).collect();
    let quoted = all.iter().map(|text| format!("\"{}\"", text.replace('"', "\\\""))).collect::<Vec<_>>().join(", ");
    (all.join(",").replace('"', "\\\""), quoted)
}
