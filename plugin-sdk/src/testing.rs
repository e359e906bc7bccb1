//! Tests of a handler in a native `cargo test`: a [`Host`] that returns the answers that the test sets, and a [`stage`] as
//! the input.
//!
//! No command is started and no model is asked. Each host has its own folder, which is the current folder while a handler is executed,
//! so `std::fs` and [`files`](crate::files) see the same files. A process has only one current folder, so handlers are executed one
//! after the other. Grants are not checked here; `glovebox run` does that. This module is not part of a component.
//!
//! ```
//! use glovebox_plugin_sdk::testing::{Host, stage};
//! use glovebox_plugin_sdk::{Handler, Outcome, Stage, Status, files};
//!
//! struct Count;
//!
//! impl Handler for Count {
//!     fn execute(_: Stage) -> Outcome {
//!         Outcome::success().set("count", files::list("src").map_or(0, |found| found.len()))
//!     }
//! }
//!
//! let host = Host::new();
//! host.write("src/lib.rs", "");
//! let outcome = host.execute::<Count>(stage("count").goal("know the number of files"));
//! assert_eq!((outcome.status(), outcome.value("count")), (Status::Success, Some("1")));
//! ```

mod stage_builder;

pub use crate::testing_imports::LogLine;
pub use stage_builder::{StageBuilder, stage};

use crate::exec::{Captured, Exit};
use crate::llm::{Message, Request, Response, Usage};
use crate::testing_imports::{Answers, CURRENT};
use crate::{Handler, Outcome, Stage, exec};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Answers the calls of a handler in a test, and records them.
#[derive(Debug)]
pub struct Host {
    folder: PathBuf,
    answers: Rc<RefCell<Answers>>,
}

/// Held while a handler is executed, because a process has only one current folder.
static CURRENT_FOLDER: Mutex<()> = Mutex::new(());

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Host {
    /// Creates a host with an empty folder and without answers to commands and to requests to the model.
    ///
    /// # Panics
    /// If no folder for temporary files can be created.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("glovebox-plugin-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("make `{}`: {error}", folder.display()));
        let answers = Answers { folder: Some(folder.clone()), ..Answers::default() };
        Self { folder, answers: Rc::new(RefCell::new(answers)) }
    }

    /// Executes a handler in the folder of this host.
    ///
    /// # Panics
    /// If the handler panics.
    pub fn execute<H: Handler>(&self, stage: impl Into<Stage>) -> Outcome {
        let _inside = HostGuard::enter(self);
        H::execute(stage.into())
    }

    /// Offers an agent program that prints this message and ends.
    pub fn on_program(&self, name: impl Into<String>, said: impl Into<String>) {
        self.answers.borrow_mut().programs.push((name.into(), said.into()));
    }

    /// Writes a file of the workspace, and creates its folders.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let file = self.folder.join(path);
        let written = file.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&file, bytes));
        written.unwrap_or_else(|error| panic!("write `{}`: {error}", file.display()));
    }

    /// Reads a file of the workspace as text. Returns `None` if the file does not exist.
    pub fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        std::fs::read_to_string(self.folder.join(path)).ok()
    }

    /// Sets the answer to the next run of this command, given as its arguments joined by spaces, or as its shell text.
    pub fn answer_command(&self, command: impl Into<String>, answer: Result<Exit, exec::Error>) {
        self.answers.borrow_mut().commands.push((command.into(), answer));
    }

    /// Sets a text as the answer to the next request to the model.
    pub fn answer_model(&self, text: impl Into<String>) {
        let usage = Usage { input: 0, output: 0, extra: Vec::new() };
        let message = Message::text("assistant", text);
        let (finish, model) = ("stop".to_owned(), "test".to_owned());
        self.answer_model_with(Response { message, finish, usage, model, extra: Vec::new() });
    }

    /// Sets a response as the answer to the next request to the model, such as one with tool calls.
    pub fn answer_model_with(&self, response: Response) {
        self.answers.borrow_mut().responses.push_back(response);
    }

    /// Sets a limit of the attempt, such as `turns`.
    pub fn set_limit(&self, name: impl Into<String>, value: u64) {
        self.answers.borrow_mut().limits.push((name.into(), value));
    }

    /// Cancels the run: [`control::canceled`](crate::control::canceled) returns true from now on.
    pub fn cancel(&self) {
        self.answers.borrow_mut().canceled = true;
    }

    /// Returns the lines that the handler logged.
    pub fn logged(&self) -> Vec<LogLine> {
        self.answers.borrow().logged.clone()
    }

    /// Returns the progress that the handler reported, as kind and JSON.
    pub fn emitted(&self) -> Vec<(String, String)> {
        self.answers.borrow().emitted.clone()
    }

    /// Returns an artifact that the handler stored.
    pub fn artifact(&self, name: &str) -> Option<Vec<u8>> {
        self.answers.borrow().artifacts.get(name).cloned()
    }

    /// Returns the commands that the handler ran or tried to run.
    pub fn commands(&self) -> Vec<String> {
        self.answers.borrow().ran.clone()
    }

    /// Returns the commands that requested [a reset of the files](crate::exec::Command::start_over). This host only records the request:
    /// its folder stays as it is.
    pub fn started_over(&self) -> Vec<String> {
        let answers = self.answers.borrow();
        answers.started_over.iter().map(|at| answers.ran[*at].to_owned()).collect()
    }

    /// Returns the requests that the handler sent to the model.
    pub fn requests(&self) -> Vec<Request> {
        self.answers.borrow().requests.clone()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // A folder that cannot be removed is left to the system.
        let _left = std::fs::remove_dir_all(&self.folder);
    }
}

/// Creates the exit of a command with this exit code and output.
pub fn exited(code: i32, stdout: impl AsRef<str>) -> Exit {
    let captured = |text: &str| Captured {
        head: text.as_bytes().to_vec(),
        tail: Vec::new(),
        total_bytes: text.len() as u64,
        truncated: false,
    };
    Exit {
        how: "exited".to_owned(),
        code: Some(code),
        duration_ms: 1,
        stdout: captured(stdout.as_ref()),
        stderr: captured(""),
        changed: Vec::new(),
        receipt: "test-receipt".to_owned(),
        extra: Vec::new(),
    }
}

/// While this exists, calls of this thread go to the host, and the host's folder is the current one.
struct HostGuard {
    before: PathBuf,
    host_before: Option<Rc<RefCell<Answers>>>,
    _one_at_a_time: MutexGuard<'static, ()>,
}

impl HostGuard {
    fn enter(host: &Host) -> Self {
        let one_at_a_time = CURRENT_FOLDER.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::env::current_dir().unwrap_or_else(|error| panic!("find the current folder: {error}"));
        std::env::set_current_dir(&host.folder)
            .unwrap_or_else(|error| panic!("enter `{}`: {error}", host.folder.display()));
        let host_before = CURRENT.replace(Some(Rc::clone(&host.answers)));
        Self { before, host_before, _one_at_a_time: one_at_a_time }
    }
}

impl Drop for HostGuard {
    fn drop(&mut self) {
        CURRENT.set(self.host_before.take());
        // A handler that panicked is already reported. If the folder is gone, the next handler reports it.
        let _gone = std::env::set_current_dir(&self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Status, artifact, control, files, json, llm, log};

    struct Everything;

    impl Handler for Everything {
        fn execute(stage: Stage) -> Outcome {
            log::info("begun", &[("node", stage.node_id())]);
            control::emit("step", &json!({"at": 1}));
            let text = std::fs::read_to_string("in/a.txt").unwrap_or_default();
            let again = files::read("in/a.txt").map(|bytes| bytes.len()).unwrap_or_default();
            assert_eq!((text.len(), control::limit("turns"), control::canceled()), (again, Some(3), true));
            files::write("out/b.txt", text).unwrap();
            artifact::put_text("notes.md", "kept").unwrap();
            let exit = match exec::argv(["cargo", "test"]).run() {
                Ok(exit) => exit,
                Err(error) => return error.into(),
            };
            let question =
                Request { messages: vec![Message::text("user", "?")], tools: Vec::new(), options: Vec::new() };
            let answer = llm::complete(&question).map(|response| response.message.whole_text());
            Outcome::success().notes(exit.stdout.text()).set("answer", answer.unwrap_or_else(|error| error.kind))
        }
    }

    #[test]
    fn a_handler_is_executed_with_what_the_test_says() {
        let host = Host::new();
        host.write("in/a.txt", "hello");
        host.set_limit("turns", 3);
        host.cancel();
        host.answer_command("cargo test", Ok(exited(0, "1 passed")));
        host.answer_model("yes");
        let outcome = host.execute::<Everything>(stage("n"));
        assert_eq!((outcome.status(), outcome.value("answer")), (Status::Success, Some("\"yes\"")));
        assert_eq!(host.read("out/b.txt").as_deref(), Some("hello"));
        assert_eq!((host.logged().len(), host.emitted()[0].0.as_str()), (1, "step"));
        assert_eq!((host.artifact("notes.md"), host.artifact("none")), (Some(b"kept".to_vec()), None));
        assert_eq!((host.commands(), host.requests().len()), (vec!["cargo test".to_owned()], 1));
        // Each answer is used for one call.
        let again = host.execute::<Everything>(stage("n"));
        let failure = again.failure().expect("no second answer");
        assert!(failure.code == "exec/not-granted" && failure.reason.contains("cargo test"), "{failure:?}");
    }

    #[test]
    fn nothing_is_answered_without_a_host_and_nothing_aborts() {
        log::warn("printed", &[]);
        assert!(!control::canceled() && control::limit("turns").is_none());
        assert_eq!(files::read("a").unwrap_err().code, "io");
        assert_eq!(exec::shell("true").run().unwrap_err().code, "not-granted");
        let question = Request { messages: Vec::new(), tools: Vec::new(), options: Vec::new() };
        assert_eq!(llm::complete(&question).unwrap_err().kind, "script-exhausted");
    }

    #[test]
    fn paths_are_as_strict_as_in_a_run() {
        struct Paths;
        impl Handler for Paths {
            fn execute(_: Stage) -> Outcome {
                for path in ["/etc/passwd", "../a", "a/../b", "./a", "a//b", "a/"] {
                    assert_eq!(files::read(path).unwrap_err().code, "invalid", "{path}");
                }
                assert_eq!(files::read("").unwrap_err().code, "is-a-directory");
                assert_eq!(files::read("none").unwrap_err().code, "not-found");
                assert_eq!(files::list("a/b").unwrap()[0].name, "c");
                assert_eq!(
                    (files::stat("a").unwrap().kind, files::stat("a/b/c").unwrap().size),
                    ("directory".to_owned(), 2)
                );
                assert_eq!(files::remove("a").unwrap_err().code, "not-empty");
                files::remove("a/b/c").unwrap();
                Outcome::success()
            }
        }
        let host = Host::new();
        host.write("a/b/c", "cc");
        assert_eq!(host.execute::<Paths>(stage("n")).status(), Status::Success);
        assert_eq!(host.read("a/b/c"), None);
    }
}
