//! Runs the program under test separately from its verifier: in a second jail for each stage with access to hold-outs.
//!
//! A verifier's commands find `subject` in their `PATH`. The programs that `subject` starts run here: in a separate
//! sandbox, over the builders' view of the same tree, with separate processes, memory, temporary folders and network.
//! Only arguments, the name of a folder and three pipes cross between the jails, and for a server also one port of the
//! loopback. The first call creates the second jail. Its files are never committed.

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

/// The files and limits of the program under test. The program has no access to hold-outs (the scope must hide them) or
/// to anything that belongs to the verifier, and it cannot write files that outlive the stage.
#[derive(Debug, Clone)]
pub struct SubjectSetting {
    /// The settings of the second jail. The folder in it is that of the attempt.
    pub jail: JailSetting,
    /// The workspace of the run.
    pub workspace: PathBuf,
    /// The visible part of the workspace: the view of builders.
    pub scope: Scope,
    /// Parts of the view that do not come from the run's workspace.
    pub overrides: ViewOverrides,
    /// True if the files may be an overlay.
    pub mounts: bool,
    /// Working directory if the caller's folder does not exist in the view of the program under test.
    pub workdir: ScopePath,
    /// The shell command of `verify_subject`; `None` if the node has none.
    pub command: Option<String>,
    /// The loopback port on which the command of `verify_subject` serves; `None` if it is not started with the stage.
    pub port: Option<u16>,
    /// Maximum time of one call.
    pub timeout: Duration,
    /// Maximum number of calls.
    pub calls_max: u64,
}
