//! The port through which the server reads and steers runs. The program implements it with the functions of its
//! commands.

use crate::right::Sight;
use glovebox_record::{Digest, NodeId, QuestionId, RunId};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;

/// What a client wants to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// The list of runs, as `ls --json`.
    Runs {
        /// Only runs in this state.
        state: Option<String>,
        /// Only runs whose pipeline's name contains this text.
        pipeline: Option<String>,
        /// Only runs that are older than this one.
        before: Option<RunId>,
        /// At most this number.
        limit: usize,
    },
    /// The summary of a run, as `show --json`.
    Run(RunId),
    /// As `evidence --json`.
    Evidence(RunId, Option<NodeId>),
    /// As `why --json`.
    Why(RunId, Option<NodeId>),
    /// As `gates --json`.
    Gates(Option<RunId>),
    /// As `diff --json`.
    Diff(RunId, Option<QuestionId>),
    /// The changes of a run as a patch, as `diff` prints it.
    Patch(RunId, Option<QuestionId>),
    /// As `holdout status --json`.
    Holdouts(RunId),
    /// The records about one node, as `show RUN NODE --json`.
    Stage(RunId, NodeId),
    /// Lines, as `transcript --json`.
    Transcript(RunId, NodeId, Option<u32>),
    /// Lines, as `logs --json`.
    Logs(RunId, NodeId, Option<u32>),
    /// The picture of a run, as `graph RUN`.
    Graph(RunId, Drawing),
    /// `checkpoint.json` of a run.
    Checkpoint(RunId),
    /// The context of a run.
    Context(RunId),
    /// The visits of stages, as `tasks --json`.
    Tasks {
        /// Only those of this run.
        run: Option<RunId>,
        /// Only those in this state.
        state: Option<String>,
    },
    /// One visit of a stage.
    Task(String),
    /// Events and ends of output of all runs, by time.
    AllLogs {
        /// Only those of this run.
        run: Option<RunId>,
        /// Only those of this node.
        node: Option<NodeId>,
        /// Only those after this time.
        since: Option<String>,
        /// At most this number.
        limit: usize,
    },
    /// A page of records, as `attach --json --all` prints them.
    Records {
        /// The run.
        run: RunId,
        /// Only records with a larger number.
        after: u64,
        /// At most this number.
        limit: usize,
    },
    /// The bytes with this digest, if a record of the run names it.
    Blob(RunId, Digest),
    /// What the plan of a run allowed, as `plan --run RUN --json`.
    Plan(RunId),
    /// The content of the change with this number among those that the run has set aside.
    SetAside(RunId, u64),
    /// Diagnostics of a pipeline, as `check --format json`.
    Check(Submitted),
    /// The plan of a pipeline, as `plan --json`.
    PlanOf(Submitted),
}

/// The form of the picture of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drawing {
    /// An SVG picture.
    Svg,
    /// Nodes, edges, layout and states.
    Json,
    /// DOT.
    Dot,
}

/// A pipeline that a client submits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The values of the pipeline's inputs, by name.
    pub inputs: Vec<(String, String)>,
    /// Limit of the cost, as `--max-budget-usd` takes it.
    pub budget_usd: Option<String>,
    /// Limit of the number of steps.
    pub steps_max: Option<u64>,
    /// Digest of the plan that the client has seen.
    pub plan_digest: Option<Digest>,
}

/// Where the text of a submitted pipeline is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pipeline {
    /// In the request.
    Text(String),
    /// In this file of the project, a relative path without `..`.
    File(String),
}

/// What a client wants to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Starts a run.
    Start(Submitted),
    /// Cancels a run for good.
    Cancel(RunId),
    /// Asks a run to pause.
    Pause(RunId),
    /// Continues a run.
    Resume(RunId),
    /// Begins a new run with what a run had before a visit of a node.
    Fork {
        /// The run.
        run: RunId,
        /// The node.
        node: NodeId,
        /// Number of the visit; `None` for the last one.
        visit: Option<u32>,
    },
    /// Answers a question.
    Answer {
        /// The run.
        run: RunId,
        /// The question.
        question: QuestionId,
        /// The answer.
        value: String,
        /// The comment; may be empty.
        text: String,
    },
    /// Sends a message to an agent.
    Steer {
        /// The run.
        run: RunId,
        /// The node of the agent.
        node: NodeId,
        /// The message.
        text: String,
    },
    /// Writes the changes of a run to the project.
    Apply {
        /// The run.
        run: RunId,
        /// Only these paths; empty for all.
        paths: Vec<String>,
        /// Hash of the last record of the run that the client has seen.
        head: Digest,
    },
}

/// The kind of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// One JSON document.
    Json,
    /// One JSON document per line.
    JsonLines,
    /// An SVG picture.
    Svg,
    /// DOT.
    Dot,
    /// Bytes of a stage, which a browser must not interpret.
    Bytes,
}

/// A document, as a command prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its kind.
    pub media: Media,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// One record of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordLine {
    /// Number of the record.
    pub seq: u64,
    /// Kind of the event, such as `stage.finished`.
    pub kind: &'static str,
    /// The node of the event, if it has one.
    pub node: Option<NodeId>,
    /// The record as one line of JSON, without what the client may not see.
    pub json: String,
    /// The events of section 9.6 of the Attractor specification that the record stands for: names, and JSON in one line.
    pub events: Vec<(&'static str, String)>,
}

/// The records of a run from the first on.
pub trait Follow: Send {
    /// Returns some of the next records, in order; none if there are no more now.
    ///
    /// # Errors
    ///
    /// Returns a problem if the journal cannot be read or was tampered with.
    fn next(&mut self) -> Result<Vec<Arc<RecordLine>>, Problem>;

    /// Returns true if the files of the journal have changed since the last call of `next`.
    fn has_changed(&self) -> bool;

    /// Returns true if a process drives the run.
    fn is_live(&self) -> bool;
}

/// The output of the running attempts of a stage, from now on.
pub trait FollowOutput: Send {
    /// Returns what is new, in order. The first call returns the end of the output so far, at most
    /// [`OUTPUT_BYTES_MAX`] bytes.
    ///
    /// # Errors
    ///
    /// Returns a problem if the run cannot be read.
    fn next(&mut self) -> Result<OutputNews, Problem>;
}

/// Maximum number of bytes of output that a client gets at once; older ones are left out.
pub const OUTPUT_BYTES_MAX: usize = 64 << 10;

/// New output of a stage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputNews {
    /// Names of events, and JSON in one line.
    pub events: Vec<(&'static str, String)>,
    /// True if no process drives the run, so nothing follows.
    pub has_ended: bool,
}

/// Who acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The name of the token, or of the protocol. The record gets it.
    pub name: String,
    /// The way on which the client came.
    pub way: Way,
}

/// How a client speaks to this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `glovebox serve`.
    Http,
    /// `glovebox mcp`.
    Mcp,
}

/// The functions of the commands.
///
/// All functions may block.
pub trait Desk: Send + Sync + 'static {
    /// Returns a document.
    ///
    /// # Errors
    ///
    /// Returns the problem that the command would print.
    fn read(&self, what: &Read, sight: Sight) -> Result<Document, Problem>;

    /// Does something, and returns the document that the command would print.
    ///
    /// # Errors
    ///
    /// Returns the problem that the command would print. Then nothing was done.
    fn act(&self, what: &Act, who: &Actor) -> Result<Document, Problem>;

    /// Begins to follow a run from its first record.
    ///
    /// # Errors
    ///
    /// Returns a problem if the run does not exist or cannot be read.
    fn follow(&self, run: &RunId, sight: Sight) -> Result<Box<dyn Follow>, Problem>;

    /// Begins to follow the output of a stage.
    ///
    /// # Errors
    ///
    /// Returns a problem if the run or the stage does not exist, or if the stage can read hold-outs: nobody follows its output.
    fn follow_output(&self, run: &RunId, node: &NodeId) -> Result<Box<dyn FollowOutput>, Problem>;

    /// Returns the document for `GET /health`.
    fn health(&self) -> Document;
}

/// Why a request was refused, as the body of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "serve-problem.json")]
pub struct Problem {
    /// Version of this document.
    pub schema_version: u32,
    /// A stable word for the reason.
    pub code: &'static str,
    /// One line: what is wrong, where, and what was expected.
    pub message: String,
    /// What the client can do; absent if nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The exit code of the command; absent if no command was executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<u8>,
    /// What the answer has besides: the diagnostics of a pipeline, or the first answer to a question. Absent if nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<serde_json::Value>,
    /// The status of the answer.
    #[serde(skip)]
    #[schemars(skip)]
    pub status: u16,
}

impl Problem {
    /// Creates a problem that no command reported.
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { schema_version: 1, code, message: message.into(), help: None, exit: None, about: None, status }
    }

    /// Adds what the client can do.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
