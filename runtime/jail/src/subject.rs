//! The program under test runs apart from its verifier: a second jail for each stage that has hold-outs in reach.
//!
//! A verifier's commands find `subject` in their PATH. The programs that it starts run here: in their own sandbox, over the builders'
//! view of the same tree, with their own processes, memory, temporary folders and network. Only arguments, a folder's name and three
//! pipes cross, and for a server one port of the loopback. The first call makes the second jail. Its files are never committed.

mod call;
mod client_folder;
mod port;
mod sandbox;
mod service;

pub use call::SubjectCall;
pub use glovebox_jail_helper::subject::FOLDER;
pub use service::{SubjectError, Subjects, SubjectsReport};

use crate::jail::JailSetting;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Scope;
use glovebox_workspace::stage::ViewOverrides;
use std::path::PathBuf;
use std::time::Duration;

/// The files and limits of the program under test. Denied: hold-outs (the scope must hide them), everything of the verifier,
/// writing files that outlive the stage.
#[derive(Debug, Clone)]
pub struct SubjectSetting {
    /// Its sandbox. The folder is the attempt's.
    pub jail: JailSetting,
    /// The run's workspace.
    pub workspace: PathBuf,
    /// The visible part: the view of builders.
    pub scope: Scope,
    /// Parts that do not come from the run's workspace.
    pub overrides: ViewOverrides,
    /// True if the files may be an overlay.
    pub mounts: bool,
    /// Working directory if the caller's folder is not in its view.
    pub workdir: ScopePath,
    /// The shell text of `verify_subject`.
    pub command: Option<String>,
    /// The loopback port at which that one serves, where it is to be started with the stage.
    pub port: Option<u16>,
    /// Longest time of one call.
    pub timeout: Duration,
    /// Most calls.
    pub calls_max: u64,
}
