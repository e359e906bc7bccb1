//! The protocol between the command `subject` and the host over the socket in [`FOLDER`].
//!
//! The command runs next to the hold-outs, and the programs that it starts run in another jail. Only arguments, the
//! name of a folder and three pipes of the host cross between the jails. Frames have the format of the control socket.
//! The host trusts nothing in them.

use serde::{Deserialize, Serialize};

/// The folder of the jail that contains the command and its socket.
pub const FOLDER: &str = "/run/glovebox";
/// Name of the command.
pub const PROGRAM: &str = "subject";
/// Name of the socket.
pub const SOCKET: &str = "socket";
/// Exit code of the command if the program under test was not started.
pub const NOT_STARTED: u8 = 125;

/// The request of the command, which is its first and only frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The program under test and its arguments. If empty, the command of the node's `verify_subject` is used.
    pub words: Vec<String>,
    /// The absolute path of the caller's working directory.
    pub cwd: String,
}

/// A reply of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SubjectReply {
    /// Another program under test of the same stage has not ended yet. Sent at most once.
    Waiting,
    /// The program is not started, for this reason. The last frame.
    Refused(String),
    /// The program is about to start. Sent with three pipes: the write end of its input, and the read ends of its
    /// output and its error.
    Started,
    /// The program has ended, and nothing that it started is alive. The last frame.
    Ended(SubjectEnd),
}

/// The end of the program under test, expressed as in a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubjectEnd {
    /// The exit code, or 128 plus the number of the signal that ended the program, or 124 after a timeout.
    pub code: u8,
    /// The limit that the program exceeded, or another reason that an exit code cannot express; `None` if there is
    /// none.
    pub note: Option<String>,
}
