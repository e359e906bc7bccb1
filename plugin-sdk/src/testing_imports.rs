//! The imports of a handler in a test: functions like those of the bindings, which the `testing::Host` of this thread answers.
//!
//! Without a host, a log line is printed, and every other call is refused as the contract specifies.

use crate::bindings::glovebox::plugin::exec::{Error, Exit};
use crate::bindings::glovebox::plugin::llm::{Request, Response};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;

/// A line that a handler logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// `trace`, `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// Text of the line.
    pub message: String,
    /// Fields of the line.
    pub fields: Vec<(String, String)>,
}

/// The answers of the host, and a record of the handler's calls.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) commands: Vec<(String, Result<Exit, Error>)>,
    pub(crate) responses: VecDeque<Response>,
    pub(crate) limits: Vec<(String, u64)>,
    pub(crate) canceled: bool,
    pub(crate) logged: Vec<LogLine>,
    pub(crate) emitted: Vec<(String, String)>,
    pub(crate) artifacts: BTreeMap<String, Vec<u8>>,
    pub(crate) ran: Vec<String>,
    /// Indices into `ran`.
    pub(crate) started_over: Vec<usize>,
    pub(crate) requests: Vec<Request>,
    pub(crate) programs: Vec<(String, String)>,
}

thread_local! {
    /// The host whose handler this thread executes.
    pub(crate) static CURRENT: RefCell<Option<Rc<RefCell<Answers>>>> = const { RefCell::new(None) };
}

fn with<T>(call: impl FnOnce(&mut Answers) -> T) -> T {
    CURRENT.with_borrow(|current| match current {
        Some(answers) => call(&mut answers.borrow_mut()),
        None => call(&mut Answers::default()),
    })
}

/// `glovebox:plugin/agents`.
pub(crate) mod agents {
    use super::with;
    use crate::bindings::glovebox::plugin::agents::{Event, Task};
    use crate::bindings::glovebox::plugin::types::Failure;

    /// A program that has printed its final message.
    pub(crate) struct Session(String);

    impl Session {
        pub(crate) fn next(&self, _max: u32, _wait_ms: u32) -> Vec<Event> {
            vec![Event { kind: "done".to_owned(), text: self.0.clone(), data: None, failure: None }]
        }
    }

    pub(crate) fn backends() -> Vec<String> {
        with(|answers| answers.programs.iter().map(|(name, _)| name.clone()).collect())
    }

    pub(crate) fn start(task: &Task) -> Result<Session, Failure> {
        let said = with(|answers| answers.programs.iter().find(|(name, _)| *name == task.backend).cloned());
        said.map(|(_, said)| Session(said)).ok_or_else(|| Failure {
            class: "scope".to_owned(),
            code: "agent/not-granted".to_owned(),
            reason: "the node names no such agent program".to_owned(),
        })
    }
}

/// `glovebox:plugin/control`.
pub(crate) mod control {
    use super::{LogLine, with};

    pub(crate) fn log(level: &str, message: &str, fields: &[(String, String)]) {
        let shown: String = fields.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        println!("{level} {message}{shown}");
        let line = LogLine { level: level.to_owned(), message: message.to_owned(), fields: fields.to_vec() };
        with(|answers| answers.logged.push(line));
    }

    pub(crate) fn emit(kind: &str, data: &str) {
        with(|answers| answers.emitted.push((kind.to_owned(), data.to_owned())));
    }

    pub(crate) fn canceled() -> bool {
        with(|answers| answers.canceled)
    }

    pub(crate) fn limits() -> Vec<(String, u64)> {
        with(|answers| answers.limits.clone())
    }

    pub(crate) fn put_artifact(name: &str, _media_type: &str, data: &[u8]) -> Result<(), String> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if !(1..=64).contains(&name.len()) || !name.chars().all(is_allowed) {
            return Err(format!("`{name}` is not a name of 1 to 64 letters, digits, `.`, `_` and `-`"));
        }
        with(|answers| answers.artifacts.insert(name.to_owned(), data.to_vec()));
        Ok(())
    }
}

/// `glovebox:plugin/files`, in the folder of the host.
pub(crate) mod files {
    use super::with;
    use crate::bindings::glovebox::plugin::files::{Error, Node};
    use std::fs::{self, Metadata};
    use std::io::{self, ErrorKind};
    use std::path::PathBuf;

    pub(crate) fn read(path: &str, offset: u64, max: u32) -> Result<Vec<u8>, Error> {
        let place = place(path)?;
        if place.is_dir() {
            return Err(error("is-a-directory", path));
        }
        let bytes = fs::read(place).map_err(|problem| of_io(&problem, path))?;
        let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
        Ok(rest[..rest.len().min(max as usize)].to_vec())
    }

    pub(crate) fn write(path: &str, data: &[u8]) -> Result<(), Error> {
        let place = place(path)?;
        let folder = place.parent().map_or(Ok(()), fs::create_dir_all);
        folder.and_then(|()| fs::write(&place, data)).map_err(|problem| of_io(&problem, path))
    }

    pub(crate) fn list(path: &str) -> Result<Vec<Node>, Error> {
        let entries = fs::read_dir(place(path)?).and_then(|entries| {
            let nodes = entries.map(|entry| {
                let entry = entry?;
                Ok(node(&entry.file_name().to_string_lossy(), &entry.metadata()?))
            });
            nodes.collect::<io::Result<Vec<Node>>>()
        });
        let mut nodes = entries.map_err(|problem| of_io(&problem, path))?;
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(nodes)
    }

    pub(crate) fn stat(path: &str) -> Result<Node, Error> {
        let found = fs::metadata(place(path)?).map_err(|problem| of_io(&problem, path))?;
        Ok(node(path.rsplit('/').next().unwrap_or(path), &found))
    }

    pub(crate) fn remove(path: &str) -> Result<(), Error> {
        let place = place(path)?;
        let removed = if place.is_dir() { fs::remove_dir(place) } else { fs::remove_file(place) };
        removed.map_err(|problem| of_io(&problem, path))
    }

    fn node(name: &str, found: &Metadata) -> Node {
        let (kind, size) = if found.is_dir() { ("directory", 0) } else { ("file", found.len()) };
        Node { name: name.to_owned(), kind: kind.to_owned(), size }
    }

    /// Resolves a path of the workspace. Refuses the same paths as a run.
    fn place(path: &str) -> Result<PathBuf, Error> {
        let Some(folder) = with(|answers| answers.folder.clone()) else {
            return Err(Error {
                code: "io".to_owned(),
                message: "the test has no host; create a `testing::Host` first".to_owned(),
            });
        };
        let is_relative = path.is_empty() || path.split('/').all(|name| !matches!(name, "" | "." | ".."));
        if is_relative { Ok(folder.join(path)) } else { Err(error("invalid", path)) }
    }

    fn of_io(problem: &io::Error, path: &str) -> Error {
        error(
            match problem.kind() {
                ErrorKind::NotFound => "not-found",
                ErrorKind::PermissionDenied => "not-permitted",
                ErrorKind::NotADirectory => "not-a-directory",
                ErrorKind::IsADirectory => "is-a-directory",
                ErrorKind::DirectoryNotEmpty => "not-empty",
                ErrorKind::AlreadyExists => "exists",
                _ => "io",
            },
            path,
        )
    }

    fn error(code: &str, path: &str) -> Error {
        Error { code: code.to_owned(), message: format!("`{path}`: {code}") }
    }
}

/// `glovebox:plugin/exec`: a command is answered but never started.
pub(crate) mod exec {
    use super::with;
    use crate::bindings::glovebox::plugin::exec::{Command, Error, Exit};
    use crate::extra::START_OVER;

    pub(crate) fn run(command: &Command) -> Result<Exit, Error> {
        let text = command.shell.clone().unwrap_or_else(|| command.argv.join(" "));
        with(|answers| {
            if command.extra.iter().any(|(key, _)| key == START_OVER) {
                answers.started_over.push(answers.ran.len());
            }
            answers.ran.push(text.clone());
            match answers.commands.iter().position(|(known, _)| *known == text) {
                Some(index) => answers.commands.remove(index).1,
                None => {
                    let message =
                        format!("the test has no answer for `{text}`; add `host.answer_command({text:?}, …)`");
                    Err(Error { code: "not-granted".to_owned(), message })
                }
            }
        })
    }
}

/// `glovebox:plugin/llm`: a request is answered without a model.
pub(crate) mod llm {
    use super::with;
    use crate::bindings::glovebox::plugin::llm::{Error, Request, Response};

    pub(crate) fn info() -> Vec<(String, String)> {
        vec![("provider".to_owned(), "test".to_owned()), ("model".to_owned(), "test".to_owned())]
    }

    pub(crate) fn complete(request: &Request) -> Result<Response, Error> {
        with(|answers| {
            answers.requests.push(request.clone());
            answers.responses.pop_front().ok_or_else(|| Error {
                kind: "script-exhausted".to_owned(),
                message: "the test has no more answers of the model; add `host.answer_model(…)`".to_owned(),
                retryable: false,
            })
        })
    }
}

/// `glovebox:plugin/tools`: there are no tools.
pub(crate) mod tools {
    use crate::bindings::glovebox::plugin::chat::ToolDef;
    use crate::bindings::glovebox::plugin::tools::{Error, Output};

    pub(crate) fn available() -> Vec<ToolDef> {
        Vec::new()
    }

    pub(crate) fn call(name: &str, _arguments: &str, _call_id: &str) -> Result<Output, Error> {
        Err(Error { code: "not-granted".to_owned(), message: format!("a test has no tool server for `{name}`") })
    }
}
