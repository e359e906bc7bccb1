//! What happened in a run: facts in the past tense, one enum for journal, progress lines and tests.
//!
//! These types are a promise of their own. They mirror what the host reports but share no type with it, so that an old
//! journal stays readable when the host changes. A field may be added with a default; none is renamed or removed without a
//! new [`SCHEMA_VERSION`]. Nothing here knows where records are kept.

use crate::outcome::{Failure, Outcome, Status};
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Version of the event vocabulary, written into `run.started`.
pub const SCHEMA_VERSION: u32 = 1;

/// BLAKE3 of some bytes; `blake3:` and 64 hexadecimal digits as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// Text that is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a digest, expected `blake3:` and 64 hexadecimal digits")]
pub struct NotADigest(pub String);

impl Digest {
    /// The digest before the first record of every journal.
    pub const ZERO: Self = Self([0; 32]);

    /// Digests bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The raw digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 hexadecimal digits without the prefix, as blob files are named.
    pub fn hex(&self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }
}

impl From<blake3::Hash> for Digest {
    fn from(hash: blake3::Hash) -> Self {
        Self(*hash.as_bytes())
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl FromStr for Digest {
    type Err = NotADigest;

    /// Accepts the digits with or without the prefix.
    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let hash = blake3::Hash::from_hex(text.strip_prefix("blake3:").unwrap_or(text));
        hash.map(Self::from).map_err(|_| NotADigest(text.to_owned()))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blake3:{}", blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Digest {
    fn schema_name() -> Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^blake3:[0-9a-f]{64}$" })
    }
}

/// One visit of one node: `<node>#<visit>`, the same for all its attempts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TaskId(String);

impl TaskId {
    /// Names the visit of a node; visits count from 1.
    pub fn new(node: &str, visit: u32) -> Self {
        Self(format!("{node}#{visit}"))
    }

    /// Takes a name that [`TaskId::new`] made.
    pub fn parse(name: String) -> Self {
        Self(name)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What an event is about. The journal keeps a head for each, and an append may demand that heads stand where expected.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The run itself: its beginning, its routes, its end.
    Run,
    /// One visit of one node.
    Task(TaskId),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Run => f.write_str("run"),
            Subject::Task(task) => write!(f, "task.{task}"),
        }
    }
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
pub enum Event {
    /// The run was created; always the first record.
    #[serde(rename = "run.started")]
    RunStarted(Box<RunStarted>),
    /// Another process took the run over.
    #[serde(rename = "run.resumed")]
    RunResumed(RunResumed),
    /// An attempt may be claimed; at once a fact and a queue entry.
    #[serde(rename = "stage.ready")]
    StageReady(StageReady),
    /// A worker claimed the attempt; the sequence number of this record is its fencing token.
    #[serde(rename = "stage.started")]
    StageStarted(StageStarted),
    /// The attempt was committed.
    #[serde(rename = "stage.finished")]
    StageFinished(Box<StageFinished>),
    /// Another attempt of the same visit follows.
    #[serde(rename = "stage.retrying")]
    StageRetrying(StageRetrying),
    /// An engine-native node was passed.
    #[serde(rename = "stage.passed")]
    StagePassed(StagePassed),
    /// The next node was chosen.
    #[serde(rename = "route.taken")]
    RouteTaken(RouteTaken),
    /// An exit was reached while a goal gate was unmet.
    #[serde(rename = "gate.unmet")]
    GateUnmet(GateUnmet),
    /// Somebody asked the run to stop.
    #[serde(rename = "run.canceled")]
    RunCanceled(RunCanceled),
    /// The run ended; always the last record.
    #[serde(rename = "run.finished")]
    RunFinished(RunFinished),
}

impl Event {
    /// The dotted name.
    pub fn kind(&self) -> &'static str {
        match self {
            Event::RunStarted(_) => "run.started",
            Event::RunResumed(_) => "run.resumed",
            Event::StageReady(_) => "stage.ready",
            Event::StageStarted(_) => "stage.started",
            Event::StageFinished(_) => "stage.finished",
            Event::StageRetrying(_) => "stage.retrying",
            Event::StagePassed(_) => "stage.passed",
            Event::RouteTaken(_) => "route.taken",
            Event::GateUnmet(_) => "gate.unmet",
            Event::RunCanceled(_) => "run.canceled",
            Event::RunFinished(_) => "run.finished",
        }
    }

    /// What the event is about.
    pub fn subject(&self) -> Subject {
        match self {
            Event::StageReady(event) => Subject::Task(event.task.clone()),
            Event::StageStarted(event) => Subject::Task(event.task.clone()),
            Event::StageFinished(event) => Subject::Task(event.task.clone()),
            Event::StageRetrying(event) => Subject::Task(event.task.clone()),
            _ => Subject::Run,
        }
    }

    /// The node the event is about, if it is about one.
    pub fn node(&self) -> Option<&str> {
        match self {
            Event::StageReady(event) => Some(&event.node),
            Event::StageStarted(event) => Some(&event.node),
            Event::StageFinished(event) => Some(&event.node),
            Event::StageRetrying(event) => Some(&event.node),
            Event::StagePassed(event) => Some(&event.node),
            Event::RouteTaken(event) => Some(&event.from),
            Event::GateUnmet(event) => Some(&event.gate),
            Event::RunStarted(_) | Event::RunResumed(_) | Event::RunCanceled(_) | Event::RunFinished(_) => None,
        }
    }
}

/// The run was created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunStarted {
    /// Version of this vocabulary: [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of the program that wrote it.
    pub engine_version: String,
    /// The run's id.
    pub run_id: String,
    /// Counts loop restarts; 0 for the first generation (seed 3).
    pub generation: u32,
    /// The graph's name.
    pub pipeline_name: String,
    /// The goal, inputs expanded.
    pub goal: String,
    /// Graph attributes; the context mirrors them as `graph.<key>` (spec §3.1).
    #[serde(default)]
    pub graph: BTreeMap<String, String>,
    /// Where the pipeline was read from, for people.
    pub pipeline_path: String,
    /// Blob with the pipeline's source.
    pub pipeline_digest: Digest,
    /// Digest of the plan: what was bound, with which grants and limits.
    pub plan_digest: Digest,
    /// Blob with the list of files the workspace began with.
    pub base_digest: Digest,
    /// Folder the workspace was copied from, for `apply` and for people.
    pub source_dir: String,
    /// The model: `scripted` or `simulated`.
    pub model: String,
    /// Blob with the script of a scripted model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_digest: Option<Digest>,
    /// `--set` values.
    #[serde(default)]
    pub inputs: BTreeMap<String, String>,
    /// Tier of subprocesses: `unconfined` in this version.
    pub sandbox_tier: String,
    /// Most steps in this run, the lower of attribute and flag.
    pub steps_max: u64,
    /// Longest driven time of this run, milliseconds; none is unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_max_ms: Option<u64>,
    /// Free labels, for people and for finding the run again.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// Another process took the run over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunResumed {
    /// Who drives it now.
    pub worker: String,
}

/// An attempt may be claimed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageReady {
    /// The visit.
    pub task: TaskId,
    /// The node.
    pub node: String,
    /// 1 for the first visit of the node in this run.
    pub visit: u32,
    /// 1 for the first attempt of the visit.
    pub ordinal: u32,
    /// Not before this moment; at once when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub due_at: Option<Timestamp>,
}

/// A worker claimed the attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageStarted {
    /// The visit.
    pub task: TaskId,
    /// The node.
    pub node: String,
    /// Which visit.
    pub visit: u32,
    /// Which attempt of the visit. An attempt cut by a crash is claimed again with the same ordinal and a new id.
    pub ordinal: u32,
    /// Unique and opaque.
    pub attempt_id: String,
    /// Who claimed it.
    pub worker: String,
}

/// The attempt was committed, with everything the host saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageFinished {
    /// The visit.
    pub task: TaskId,
    /// The node.
    pub node: String,
    /// Which visit.
    pub visit: u32,
    /// Which attempt of the visit.
    pub ordinal: u32,
    /// The attempt that was claimed.
    pub attempt_id: String,
    /// What the handler answered, or the host in its place; settled by the engine's retry rules before it is appended.
    pub outcome: Outcome,
    /// True when another attempt of this visit follows. The engine sets it; whoever executes an attempt says false.
    #[serde(default)]
    pub retrying: bool,
    /// How the call itself went.
    pub ending: Ending,
    /// Every limit, used and bound.
    #[serde(default)]
    pub usage: Vec<LimitUse>,
    /// What was refused; capped.
    #[serde(default)]
    pub refusals: Vec<Refusal>,
    /// All refusals, also those beyond the cap.
    #[serde(default)]
    pub refusals_total: u64,
    /// One per command.
    #[serde(default)]
    pub receipts: Vec<Receipt>,
    /// What changed in the workspace; every digest is stored.
    #[serde(default)]
    pub changes: Vec<FileChange>,
    /// Changes that were not allowed and were set aside.
    #[serde(default)]
    pub quarantined: Vec<Quarantined>,
    /// Kept bytes.
    #[serde(default)]
    pub artifacts: Vec<Artifact>,
    /// The stage's standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<Captured>,
    /// The stage's standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<Captured>,
    /// Model turns that were answered.
    #[serde(default)]
    pub turns_used: u32,
    /// Wall time of the call, milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
}

/// How a call went, apart from what the handler answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "how", content = "detail", rename_all = "snake_case")]
pub enum Ending {
    /// The export returned.
    Returned,
    /// The component trapped: the trap and the captured panic.
    Trapped(String),
    /// A named limit was hit.
    LimitHit(String),
    /// The run was told to stop.
    Canceled,
    /// It could not be instantiated.
    NotLinked(String),
}

/// A limit and how much of it was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitUse {
    /// The limit's name, which carries the unit.
    pub name: String,
    /// Used.
    pub used: u64,
    /// The bound.
    pub limit: u64,
}

/// Something a stage asked for and was not given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// What was asked: `read`, `write`, `run`, `context`, ….
    pub operation: String,
    /// The path, the command or the key.
    pub path: String,
    /// Why not.
    pub reason: String,
    /// The grant that would allow it, or why none can.
    #[serde(default)]
    pub help: String,
}

/// Host-made evidence of a command (design §1, promise 3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    /// Unique within the run.
    pub id: String,
    /// argv, or `["sh", "-c", text]`.
    pub argv: Vec<String>,
    /// Relative to the workspace.
    pub cwd: String,
    /// Names of the environment, not values.
    pub env_names: Vec<String>,
    /// Sandbox tier.
    pub tier: String,
    /// `exited`, `signaled`, `timed-out`, `canceled`.
    pub how: String,
    /// Exit code when it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// Wall time, milliseconds.
    pub duration_ms: u64,
    /// BLAKE3 of all of stdout, hexadecimal.
    pub stdout_digest: String,
    /// Length of all of stdout.
    pub stdout_bytes: u64,
    /// BLAKE3 of all of stderr, hexadecimal.
    pub stderr_digest: String,
    /// Length of all of stderr.
    pub stderr_bytes: u64,
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeOp {
    /// A regular file has these bytes and this mode now.
    Write,
    /// No file is there.
    Delete,
    /// A directory is there.
    Mkdir,
    /// No directory is there, unless something still lies in it.
    Rmdir,
    /// A symbolic link is there.
    Symlink,
}

/// One change of the workspace. Applying it twice is the same as once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// Relative to the workspace, `/`-separated.
    pub path: String,
    /// What happened.
    pub op: ChangeOp,
    /// Blob with the bytes, for a write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Length.
    #[serde(default)]
    pub bytes: u64,
    /// Whether the owner may execute it.
    #[serde(default)]
    pub executable: bool,
    /// Where a link points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// A change that was not allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quarantined {
    /// Relative to the workspace.
    pub path: String,
    /// Why it was not taken.
    pub reason: String,
}

/// Bytes a stage asked to keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    /// File name, checked.
    pub name: String,
    /// As claimed.
    pub media_type: String,
    /// Blob with the bytes.
    pub digest: Digest,
    /// Length.
    pub bytes: u64,
}

/// Captured output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Captured {
    /// Blob with the bytes kept.
    pub digest: Digest,
    /// Length of what was kept.
    pub bytes: u64,
}

/// Another attempt of the same visit follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageRetrying {
    /// The visit.
    pub task: TaskId,
    /// The node.
    pub node: String,
    /// The attempt that follows.
    pub ordinal: u32,
    /// Back-off, milliseconds.
    pub delay_ms: u64,
    /// When it may start.
    #[schemars(with = "String")]
    pub due_at: Timestamp,
}

/// An engine-native node was passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StagePassed {
    /// The node.
    pub node: String,
    /// Which visit.
    pub visit: u32,
    /// The status it passes on: a diamond hands the previous one through (design §9 #3).
    pub status: Status,
}

/// The next node was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouteTaken {
    /// From which node.
    pub from: String,
    /// To which.
    pub to: String,
    /// By which rule: `condition`, `preferred_label`, `suggested_id`, `default`, `weight`, `lexical`, after a failure also
    /// `retry_target`, `fallback_retry_target`, `diamond`, and at an exit `gate_target`. More may come.
    pub how: String,
    /// Index of the edge in file order; none for a jump to a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<usize>,
    /// Every outgoing edge and why it was or was not taken.
    #[serde(default)]
    pub candidates: Vec<RouteCandidate>,
}

/// An edge that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouteCandidate {
    /// Index of the edge in file order.
    pub edge: usize,
    /// Its target.
    pub to: String,
    /// Its condition as written; empty when it has none.
    #[serde(default)]
    pub condition: String,
    /// Whether the deciding step could have taken it.
    pub matched: bool,
    /// Why, or why not.
    pub reason: String,
}

/// An exit was reached while a goal gate was unmet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateUnmet {
    /// The exit that was reached.
    pub exit_node: String,
    /// The gate: the first in file order.
    pub gate: String,
    /// Its last status; none when it was never visited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Where the run goes instead; none when no level names a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// Somebody asked the run to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunCanceled {
    /// Who: `signal INT`, `signal TERM`, ….
    pub by: String,
}

/// How a run ended (seed 3: binary).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// An exit was reached with every goal gate satisfied.
    Success,
    /// Anything else.
    Fail,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Success => "success",
            Verdict::Fail => "fail",
        })
    }
}

/// The run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunFinished {
    /// How.
    pub status: Verdict,
    /// The exit that was reached, after success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_node: Option<String>,
    /// Why, after a failure: the stage's reason unchanged (seed 3, failure causality).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// An event with its place in the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Counts from 1 without gaps.
    pub seq: u64,
    /// When it was appended, whole milliseconds. Not trusted for order; `seq` is.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// Hash of the record before; all zeros for the first.
    pub prev: Digest,
    /// Hash over `prev`, `seq`, `at` and the event: [`chain`].
    pub hash: Digest,
    /// What happened.
    pub event: Event,
}

/// Cuts a moment to the whole milliseconds that records keep, so that a record reads back as it was made.
pub fn whole_milliseconds(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at)
}

/// Hashes a record: BLAKE3 over previous hash, sequence number, milliseconds since the epoch (both little-endian) and the
/// event's [`canonical`] text. Keyed by a purpose, so that no other hash in this program can stand in for it.
pub fn chain(prev: &Digest, seq: u64, at: Timestamp, canonical_event: &str) -> Digest {
    let mut hasher = blake3::Hasher::new_derive_key("glovebox 2026 journal record v1");
    hasher.update(prev.as_bytes());
    hasher.update(&seq.to_le_bytes());
    hasher.update(&at.as_millisecond().to_le_bytes());
    hasher.update(canonical_event.as_bytes());
    hasher.finalize().into()
}

/// Writes an event, or anything made from one, as canonical JSON: object keys sorted, no white space.
pub fn canonical<T: Serialize>(fact: &T) -> Result<String, serde_json::Error> {
    let mut text = String::with_capacity(256);
    write_canonical(&serde_json::to_value(fact)?, &mut text)?;
    Ok(text)
}

fn write_canonical(value: &Value, text: &mut String) -> Result<(), serde_json::Error> {
    match value {
        Value::Object(fields) => {
            // Sorted here because the map's own order depends on a feature that any dependency may switch on.
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            write_sequence(text, ['{', '}'], sorted.into_iter(), |(key, value), text| {
                text.push_str(&serde_json::to_string(key)?);
                text.push(':');
                write_canonical(value, text)
            })
        }
        Value::Array(items) => write_sequence(text, ['[', ']'], items.iter(), write_canonical),
        scalar => {
            text.push_str(&serde_json::to_string(scalar)?);
            Ok(())
        }
    }
}

fn write_sequence<T>(
    text: &mut String,
    brackets: [char; 2],
    items: impl Iterator<Item = T>,
    write: impl Fn(T, &mut String) -> Result<(), serde_json::Error>,
) -> Result<(), serde_json::Error> {
    text.push(brackets[0]);
    for (index, item) in items.enumerate() {
        if index > 0 {
            text.push(',');
        }
        write(item, text)?;
    }
    text.push(brackets[1]);
    Ok(())
}
