//! The program under test, apart from what judges it: a second jail for each stage that has hold-outs in reach.
//!
//! A verifier's commands find `subject` in their PATH. What it starts runs here: behind walls of its own, over the builders' view of
//! the same tree, with its own processes, memory, temporary folders and network. Words, a folder's name and three pipes cross, and for
//! a server one port of the loopback. The second jail is made at the first call; nothing it leaves is ever committed.

mod call;
mod client_folder;
mod port;
mod sandbox;
mod service;

pub use call::Call;
pub use glovebox_jail::subject::FOLDER;
pub use service::{EndedSubjects, SubjectError, Subjects};

use crate::jail::JailSetting;
use crate::stage::ViewOverrides;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Scope;
use std::path::PathBuf;
use std::time::Duration;

/// What the program under test is to find, and what it may use up. Denied: hold-outs (the scope must hide them), everything of the
/// verifier's, writing what outlives the stage.
#[derive(Debug, Clone)]
pub struct SubjectSetting {
    /// Its walls. The folder is the attempt's.
    pub jail: JailSetting,
    /// The run's workspace.
    pub workspace: PathBuf,
    /// What of it there is: what builders see.
    pub scope: Scope,
    /// What lies in it that is not the workspace's.
    pub overrides: ViewOverrides,
    /// Whether the files may be an overlay.
    pub mounts: bool,
    /// Where it starts when it is asked for from a folder that is not in its view.
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
