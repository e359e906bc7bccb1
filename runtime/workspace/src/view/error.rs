//! Errors of operations on a view. Each WIT interface translates them for its guests.
//!
//! These errors reveal nothing outside the scope: a path that the stage may not see is [`ViewError::NotFound`].

use rustix::io::Errno;

/// The error of an operation that was not performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The path does not exist, or the stage may not see it.
    #[error("no such file or directory")]
    NotFound,
    /// The path is visible, but the operation is not permitted.
    #[error("not permitted")]
    NotPermitted,
    /// The path is or contains a symbolic link, which a view never follows.
    #[error("a symbolic link, which is not followed")]
    Loop,
    /// The path already exists.
    #[error("already exists")]
    Exists,
    /// A directory was expected.
    #[error("not a directory")]
    NotADirectory,
    /// A file was expected.
    #[error("is a directory")]
    IsADirectory,
    /// The directory is not empty.
    #[error("directory not empty")]
    NotEmpty,
    /// The arguments are invalid.
    #[error("invalid argument")]
    Invalid,
    /// The result would exceed a limit, such as the list of a directory with more than [`super::LIST_ENTRIES_MAX`] entries.
    #[error("too large")]
    TooLarge,
    /// A write quota is exhausted.
    #[error("write quota exceeded")]
    Quota,
    /// The system refused.
    #[error("{0}")]
    Io(Errno),
}

impl From<Errno> for ViewError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::NotFound,
            Errno::LOOP => Self::Loop,
            Errno::EXIST => Self::Exists,
            Errno::NOTDIR => Self::NotADirectory,
            Errno::ISDIR => Self::IsADirectory,
            Errno::NOTEMPTY => Self::NotEmpty,
            Errno::INVAL => Self::Invalid,
            // The error of openat2 for a path that would leave the root.
            Errno::XDEV => Self::NotPermitted,
            other => Self::Io(other),
        }
    }
}

impl From<std::io::Error> for ViewError {
    fn from(error: std::io::Error) -> Self {
        Errno::from_io_error(&error).unwrap_or(Errno::IO).into()
    }
}
