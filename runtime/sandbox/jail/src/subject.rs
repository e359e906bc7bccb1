//! What the command `subject` and the host say to each other over the socket in [`FOLDER`].
//!
//! The command runs beside the hold-outs; what it starts runs in another jail. Only words and a folder's name cross from here to
//! there, and three pipes that the host made. Frames are those of the control socket; nothing in them is trusted by the host.

use serde::{Deserialize, Serialize};

/// The folder of the jail in which the command and its socket are.
pub const FOLDER: &str = "/run/glovebox";
/// The command's name.
pub const PROGRAM: &str = "subject";
/// The socket's name.
pub const SOCKET: &str = "socket";
/// Exit code of the command when the program under test was not started.
pub const NOT_STARTED: u8 = 125;

/// What the command asks for; its first and only frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The program under test and its arguments; without any, the command of the node's `verify_subject`.
    pub words: Vec<String>,
    /// The absolute folder it was asked from.
    pub cwd: String,
}

/// What the host answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Another program under test of the same stage has not ended yet. Comes at most once.
    Waiting,
    /// It is not started, and why. The last frame.
    Refused(String),
    /// It is about to start. Beside it three pipes: write end of its input, read ends of its output and its error.
    Started,
    /// It has ended and nothing that it started is alive. The last frame.
    Ended(End),
}

/// How the program under test ended, in the terms of a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Its exit code, 128 and the signal that ended it, or 124 when its time was over.
    pub code: u8,
    /// The limit for which it was ended, or another reason that a code does not tell.
    pub note: Option<String>,
}
