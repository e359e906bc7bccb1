//! The service for all calls of the command `subject` in one stage. It runs from before the first command until after
//! the last command.

use super::SubjectSetting;
use super::call::{self, SubjectCall};
use super::client_folder;
use super::port::Server;
use super::sandbox::SubjectSandbox;
use crate::acceptor::{Acceptor, Threads};
use crate::exec::Program;
use crate::jail::{Jail, JailChannels, JailError, ResourceUsage};
use glovebox_workspace::stage::WorkspaceView;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// Name of the files of a program under test in the attempt's folder.
pub(super) const FILES: &str = "subject";
/// Name of the folder with the command and its socket in the attempt's folder.
const OFFER: &str = "offer";
/// Maximum size of arguments and folders in the receipts of a stage, bytes. Further receipts contain only the first
/// arguments, shortened.
const RECORDED_BYTES_MAX: usize = 1 << 20;
const SHORT_WORDS: usize = 4;
const SHORT_CHARS: usize = 64;
/// Only one call runs at a time. The others wait.
const THREADS: Threads = Threads { name: "subject", connections: 32, stack_bytes: 2 << 20 };

/// Why the program under test is not available.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// The command could not be put into its folder.
    #[error("could not offer `subject` to the stage: {0}")]
    Offer(#[source] io::Error),
    /// The files or the sandbox of a server could not be created.
    #[error("could not make the sandbox of `verify_subject`: {0}")]
    SubjectSandbox(String),
    /// A server could not be started, or its port could not be opened.
    #[error("could not {act} `verify_subject_port` {port}: {source}")]
    Port {
        /// The port of the server.
        port: u16,
        /// The failed action.
        act: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// A sandbox could not be ended.
    #[error(transparent)]
    Jail(#[from] JailError),
}

/// The state that the threads of one stage share.
#[derive(Debug)]
pub(super) struct StageState {
    pub(super) setting: SubjectSetting,
    sandbox: Mutex<Option<SubjectSandbox>>,
    calls: Mutex<CallLog>,
}

#[derive(Debug, Default)]
struct CallLog {
    begun: u64,
    words_bytes: usize,
    ended: Vec<SubjectCall>,
}

impl StageState {
    /// Returns the sandbox if no call is using it.
    pub(super) fn turn(&self) -> Option<MutexGuard<'_, Option<SubjectSandbox>>> {
        match self.sandbox.try_lock() {
            Ok(sandbox) => Some(sandbox),
            Err(TryLockError::Poisoned(sandbox)) => Some(sandbox.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Counts a call that begins. Returns an error if the maximum is reached.
    pub(super) fn count(&self) -> Result<(), String> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.begun >= self.setting.calls_max {
            return Err(format!("the stage reached `limits.commands` ({})", self.setting.calls_max));
        }
        calls.begun += 1;
        Ok(())
    }

    /// Stores the result of a call that ended. Its arguments are shortened if the receipts of the stage are too large.
    pub(super) fn record(&self, mut call: SubjectCall) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.words_bytes = calls.words_bytes.saturating_add(bytes(&call));
        if calls.words_bytes > RECORDED_BYTES_MAX {
            call.words = shortened(&call.words);
            if call.cwd.len() > SHORT_CHARS {
                call.cwd = short(&call.cwd);
            }
        }
        calls.ended.push(call);
    }
}

/// Returns the maximum size of a call's arguments in a record, bytes: an escaped byte takes six.
fn bytes(call: &SubjectCall) -> usize {
    let escaped = |text: &str| text.bytes().map(|byte| if byte.is_ascii_control() { 6 } else { 1 }).sum::<usize>();
    call.words.iter().map(|word| escaped(word) + 3).sum::<usize>() + escaped(&call.cwd)
}

/// Returns the first arguments of a call whose receipt has no space for all.
fn shortened(words: &[String]) -> Vec<String> {
    let mut kept: Vec<String> = words.iter().take(SHORT_WORDS).map(|word| short(word)).collect();
    if words.len() > SHORT_WORDS {
        kept.push(format!("… {} more arguments", words.len() - SHORT_WORDS));
    }
    kept
}

fn short(word: &str) -> String {
    match word.char_indices().nth(SHORT_CHARS) {
        Some((at, _)) => format!("{}…", &word[..at]),
        None => word.to_owned(),
    }
}

/// The programs under test of one stage. Dropping it kills them.
#[derive(Debug)]
pub struct Subjects {
    shared: Arc<StageState>,
    offer: PathBuf,
    accepting: Option<Acceptor>,
    server: Option<Server>,
    /// Resource usage of the sandboxes that ended because the stage was restarted.
    used: Vec<ResourceUsage>,
}

/// The report on a stage's programs under test.
#[derive(Debug, Default)]
pub struct SubjectsReport {
    /// The programs that ran, in the order of their ends.
    pub calls: Vec<SubjectCall>,
    /// Resource usage of each sandbox.
    pub usage: Vec<ResourceUsage>,
    /// The files of each sandbox. All its processes have ended.
    pub views: Vec<WorkspaceView>,
}

impl Subjects {
    /// Creates the command `subject` and begins to serve it. Starts no program.
    ///
    /// # Errors
    /// Returns [`SubjectError::Offer`] if the system refuses.
    pub fn offer(setting: SubjectSetting) -> Result<Self, SubjectError> {
        let offer = setting.jail.folder.join(OFFER);
        let listener = client_folder::make(&offer).map_err(SubjectError::Offer)?;
        let shared = Arc::new(StageState { setting, sandbox: Mutex::default(), calls: Mutex::default() });
        let serving = Arc::clone(&shared);
        let accepting = Acceptor::start(listener, THREADS, move |caller, stop| call::serve(&serving, &caller, stop));
        Ok(Self {
            shared,
            offer,
            accepting: Some(accepting.map_err(SubjectError::Offer)?),
            server: None,
            used: Vec::new(),
        })
    }

    /// Returns the channels for the verifier's jail. The jail's `PATH` must begin with
    /// [`glovebox_jail_helper::subject::FOLDER`].
    pub fn channels(&self) -> JailChannels {
        JailChannels { client_folder: Some(self.offer.clone()), sockets: self.shared.setting.port.is_some() }
    }

    /// Starts the program of `verify_subject` if it serves a port, and waits until the port accepts connections, at
    /// most 30 seconds and no longer than until `is_stopped`.
    ///
    /// # Errors
    /// Returns [`SubjectError::SubjectSandbox`], [`SubjectError::Port`].
    pub fn begin(&mut self, verifier: &Jail, is_stopped: &AtomicBool) -> Result<(), SubjectError> {
        let setting = &self.shared.setting;
        if let (Some(text), Some(port)) = (&setting.command, setting.port) {
            self.server = Some(Server::start(setting, Program::Shell(text.to_owned()), port, verifier, is_stopped)?);
        }
        Ok(())
    }

    /// Ends running programs and removes their files: the next call and the next [`Subjects::begin`] start with the
    /// original files. The verifier's jail must be dead.
    ///
    /// # Errors
    /// Returns [`SubjectError::Jail`] if a process could not be killed, and [`SubjectError::SubjectSandbox`] if files
    /// could not be removed.
    pub fn reset(&mut self) -> Result<(), SubjectError> {
        for view in self.end_sandboxes()? {
            view.remove().map_err(|error| SubjectError::SubjectSandbox(error.to_string()))?;
        }
        Ok(())
    }

    /// Ends all programs and returns the report. The verifier's jail must be dead.
    ///
    /// # Errors
    /// Returns [`SubjectError::Jail`] if a process could not be killed.
    pub fn end(mut self) -> Result<SubjectsReport, SubjectError> {
        self.accepting = None;
        let views = self.end_sandboxes()?;
        let calls = std::mem::take(&mut self.calls().ended);
        Ok(SubjectsReport { calls, usage: self.used, views })
    }

    /// Ends the sandboxes, records their usage and returns their files.
    fn end_sandboxes(&mut self) -> Result<Vec<WorkspaceView>, SubjectError> {
        let (served, call) = self.server.take().map_or((None, None), Server::end);
        let sandbox = self.shared.sandbox.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut views = Vec::new();
        for SubjectSandbox { view, jail } in sandbox.into_iter().chain(served) {
            self.used.push(jail.end()?);
            views.push(view);
        }
        self.calls().ended.extend(call);
        Ok(views)
    }

    fn calls(&self) -> MutexGuard<'_, CallLog> {
        self.shared.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
