//! Why the kit itself could not work. It never contains a fault of the component.

use glovebox_jail::jail::JailError;
use glovebox_workspace::stage::StageError;
use std::io;

/// Why the kit could not work.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// A stage file is not usable.
    #[error("{0}")]
    StageFile(String),
    /// The files of a call could not be made.
    #[error("the files of a call could not be made: {0}")]
    Folder(#[from] io::Error),
    /// The changes of a call could not be listed or read.
    #[error("the files of a call could not be used: {0}")]
    Files(#[from] StageError),
    /// The sandbox of the commands could not be built or ended.
    #[error(transparent)]
    Jail(#[from] JailError),
    /// The host lost the call.
    #[error("the host could not run the component: {0}")]
    Host(String),
}
