//! Why an attempt could not be executed. An error of the stage itself is an outcome, and not one of these errors.

use glovebox_host::llm::TestAttributeError;
use glovebox_jail::jail::JailError;
use glovebox_jail::lazy_jail::OpenError;
use glovebox_jail::subject::SubjectError;
use glovebox_journal::ports::PortError;
use glovebox_pipeline::ir::NodeId;
use glovebox_workspace::cache::CacheError;
use glovebox_workspace::commit::CommitError;
use glovebox_workspace::stage::StageError;
use std::io;

/// Why an attempt could not be executed: an error of the runtime, never of the stage.
#[derive(Debug, thiserror::Error)]
pub enum AttemptError {
    /// The plan has no binding for the node.
    #[error("node `{0}` is bound to no component")]
    Unbound(NodeId),
    /// The stage's files could not be prepared or read.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The stage may read some hold-outs and others not, and this sandbox can only show all or none.
    #[error("some hold-out folders are blocked for the stage and others are not, which needs the sandbox tier `full`")]
    Holdouts,
    /// The build caches could not be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The stage's jail could not be built or ended.
    #[error(transparent)]
    Jail(#[from] JailError),
    /// The jail could not be opened when the stage first ran a command.
    #[error("could not open the sandbox of the stage's commands: {0}")]
    Commands(#[source] OpenError),
    /// The program under test could not be provided to the stage.
    #[error(transparent)]
    Subject(#[from] SubjectError),
    /// Changes could not be stored or moved to the quarantine.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The blob store failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The attempt's folder could not be created.
    #[error("could not make the attempt's folder: {0}")]
    Folder(#[source] io::Error),
    /// A command of the stage failed while the disk of the run was full. The failure says nothing about the stage.
    #[error("a command of the stage failed while no space was left on the disk of the run")]
    DiskFull(#[source] io::Error),
    /// The plan names a model that was not prepared.
    #[error("no endpoint was prepared for the model `{0}`")]
    Unreachable(String),
    /// Test answers that the binder accepted are no longer readable.
    #[error(transparent)]
    TestAnswers(#[from] TestAttributeError),
    /// A thread of the runtime failed.
    #[error("a thread of the runtime ended: {0}")]
    Thread(String),
}

impl AttemptError {
    pub(super) fn unbound(node: &NodeId) -> Self {
        Self::Unbound(node.clone())
    }
}
