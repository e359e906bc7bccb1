//! The protocol between the command `subject` and the host over the socket in [`FOLDER`].
//!
//! The command runs beside the hold-outs, and the programs that it starts run in another jail. Only arguments, a folder's name and
//! three pipes of the host cross between the jails. Frames are those of the control socket. The host trusts nothing in them.

use serde::{Deserialize, Serialize};

/// The folder of the jail in which the command and its socket are.
pub const FOLDER: &str = "/run/glovebox";
/// The command's name.
pub const PROGRAM: &str = "subject";
/// The socket's name.
pub const SOCKET: &str = "socket";
/// Exit code of the command when the program under test was not started.
pub const NOT_STARTED: u8 = 125;

/// The request of the command; its first and only frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The program under test and its arguments; without any, the command of the node's `verify_subject`.
    pub words: Vec<String>,
    /// The absolute folder of the caller.
    pub cwd: String,
}

/// A reply of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SubjectReply {
    /// Another program under test of the same stage has not ended yet. Comes at most once.
    Waiting,
    /// It is not started, and why. The last frame.
    Refused(String),
    /// It is about to start. Beside it three pipes: write end of its input, read ends of its output and its error.
    Started,
    /// It has ended and nothing that it started is alive. The last frame.
    Ended(SubjectEnd),
}

/// The end of the program under test, in the terms of a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubjectEnd {
    /// Its exit code, 128 and the signal that ended it, or 124 when its time was over.
    pub code: u8,
    /// The limit for which it was ended, or another reason that an exit code cannot express.
    pub note: Option<String>,
}
