//! Evidence that the host collects about a call: its ending, resource usage, refusals, commands and network traffic.
//!
//! Host and sandbox make these values and the journal stores them unchanged. Texts from a guest are escaped and bounded when a
//! refusal is made, so that printing one can never drive a terminal.

use crate::digest::{Digest, DigestedFile};
use crate::hook::Hook;
use crate::limit::LimitName;
use crate::tier::Tier;
use glovebox_names::visible;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Longest text of a refusal before it is escaped, bytes: a guest chooses this text.
pub const REFUSAL_TEXT_BYTES_MAX: usize = 8 << 10;

/// The ending of a call, apart from the handler's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "how", content = "detail", rename_all = "snake_case")]
pub enum Ending {
    /// The export returned.
    Returned,
    /// The component trapped: the trap and the captured panic.
    Trapped(String),
    /// A named limit was hit.
    LimitHit(String),
    /// The run was asked to stop.
    Canceled,
    /// It could not be instantiated.
    NotLinked(String),
}

/// A limit and how much of it was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitUse {
    /// The limit's name, which carries the unit: `_bytes`, `_ms`, else a count.
    pub name: LimitName,
    /// Used; absent where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// The bound.
    pub limit: u64,
}

/// Something a stage asked for and did not get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// The refused operation: `read`, `write`, `run`, `context`, ….
    pub operation: String,
    /// The path, the command or the key; unprintable characters escaped.
    pub path: String,
    /// Why not.
    pub reason: String,
    /// The grant that would allow it, or why none can.
    #[serde(default)]
    pub help: String,
}

impl Refusal {
    /// Makes a refusal; `path` is escaped, and every text is cut to a bound.
    pub fn new(operation: &str, path: &str, reason: impl Into<String>, help: impl Into<String>) -> Self {
        let path = visible::line(&cut(path.to_owned())).into_owned();
        Self { operation: operation.to_owned(), path, reason: cut(reason.into()), help: cut(help.into()) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused to {} `{}`: {}", self.operation, self.path, self.reason)
    }
}

fn cut(mut text: String) -> String {
    if text.len() > REFUSAL_TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(REFUSAL_TEXT_BYTES_MAX));
        text.push('…');
    }
    text
}

/// The ending of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CommandEnding {
    /// By itself.
    Exited,
    /// By a signal that was not ours.
    Signaled,
    /// By us, at its timeout.
    TimedOut,
    /// By us, because the run was canceled.
    Canceled,
}

impl CommandEnding {
    /// The word used in records and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Signaled => "signaled",
            Self::TimedOut => "timed-out",
            Self::Canceled => "canceled",
        }
    }
}

impl fmt::Display for CommandEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a command that passed proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoProof {
    /// It runs tests, and its own report says that no test ran.
    NoTests,
    /// It stood in for a command that was dropped.
    StandIn,
    /// The stage dropped the files that it ran over, and started over.
    DroppedFiles,
}

impl NoProof {
    /// The word used in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoTests => "no_tests",
            Self::StandIn => "stand_in",
            Self::DroppedFiles => "dropped_files",
        }
    }
}

impl fmt::Display for NoProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTests => "ran no test",
            Self::StandIn => "stood in for a dropped command",
            Self::DroppedFiles => "the stage dropped the files that it ran over",
        })
    }
}

/// Host-made evidence of a command (decision receipts-prove-verdicts).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    /// Unique within the run.
    pub id: String,
    /// argv, or `["sh", "-c", text]`.
    pub argv: Vec<String>,
    /// The file of the program on this machine, by its absolute path; absent if it is in the workspace or was not found, for a program
    /// under test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<DigestedFile>,
    /// Relative to the workspace.
    pub cwd: String,
    /// Names of the environment, not values.
    pub env_names: Vec<String>,
    /// Sandbox tier.
    pub tier: Tier,
    /// Guarantees of the tier that were weaker, such as `memory=soft`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degradations: Vec<String>,
    /// True for a program under test, which ran in a separate sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub subject: bool,
    /// The tool call that it was a hook of; none for a command of the stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<Hook>,
    /// The limit it passed, when it was ended for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<LimitName>,
    /// Why it proves nothing although it passed; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_proof: Option<NoProof>,
    /// The kind of ending.
    pub how: CommandEnding,
    /// Exit code when it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// Wall time, milliseconds.
    pub duration_ms: u64,
    /// Digest of all of stdout.
    pub stdout_digest: Digest,
    /// Length of all of stdout.
    pub stdout_bytes: u64,
    /// Digest of all of stderr.
    pub stderr_digest: Digest,
    /// Length of all of stderr.
    pub stderr_bytes: u64,
}

impl Receipt {
    /// True when the command ended by itself with code 0.
    pub fn passed(&self) -> bool {
        self.how == CommandEnding::Exited && self.code == Some(0)
    }

    /// True when the command passed and that says something.
    pub fn proves(&self) -> bool {
        self.passed() && self.no_proof.is_none()
    }
}

/// Traffic through a stage's proxy, and refused requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// The first hosts by name, at most 128.
    #[serde(default)]
    pub hosts: BTreeMap<String, HostTraffic>,
    /// All other hosts together, and requests that named none.
    #[serde(default)]
    pub others: HostTraffic,
}

impl Traffic {
    /// All requests that were refused or not answered.
    pub fn refused(&self) -> u64 {
        self.hosts.values().fold(self.others.refused, |sum, host| sum.saturating_add(host.refused))
    }
}

impl Traffic {
    /// Adds what another attempt asked.
    pub fn add(&mut self, other: &Self) {
        for (host, traffic) in &other.hosts {
            self.hosts.entry(host.clone()).or_default().add(*traffic);
        }
        self.others.add(other.others);
    }
}

impl HostTraffic {
    fn add(&mut self, other: Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.refused = self.refused.saturating_add(other.refused);
        self.bytes_sent = self.bytes_sent.saturating_add(other.bytes_sent);
        self.bytes_received = self.bytes_received.saturating_add(other.bytes_received);
    }
}

/// Tokens of exchanges with a model, as its provider or its script counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    /// Sent.
    pub input: u64,
    /// Received.
    pub output: u64,
}

impl Tokens {
    /// True if nothing was counted.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Adds those of another exchange.
    pub fn add(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
    }
}

/// Traffic with one host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostTraffic {
    /// Requests and tunnels that were carried out.
    pub requests: u64,
    /// Requests that were refused, or that the host did not answer.
    pub refused: u64,
    /// Bytes sent to it.
    pub bytes_sent: u64,
    /// Bytes received from it.
    pub bytes_received: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_guest_are_cut() {
        let long = "é\u{1b}".repeat(1 << 20);
        let refusal = Refusal::new("write", &long, long.clone(), long.clone());
        for text in [&refusal.path, &refusal.reason, &refusal.help] {
            assert!(text.len() < 10 * REFUSAL_TEXT_BYTES_MAX && text.ends_with('…'), "{} bytes", text.len());
        }
    }

    #[test]
    fn texts_of_a_guest_cannot_drive_a_terminal() {
        let refusal = Refusal::new("write", "a\u{1b}[2J\n\u{202e}b\u{9b}é", "x", "y");
        assert_eq!(refusal.path, "a\\x1b[2J\\n\\u{202e}b\\u{9b}é");
    }

    #[test]
    fn a_command_passes_only_by_itself() {
        let json = |how: &str| {
            format!(
                r#"{{"id":"a/1","argv":["true"],"cwd":"","env_names":[],"tier":"full","how":"{how}","code":0,"duration_ms":1,
                "stdout_digest":"{0}","stdout_bytes":0,"stderr_digest":"{0}","stderr_bytes":0}}"#,
                Digest::ZERO
            )
        };
        let receipt = |how| serde_json::from_str::<Receipt>(&json(how)).unwrap();
        assert!(receipt("exited").passed() && !receipt("timed-out").passed() && !receipt("signaled").passed());
        assert!(serde_json::from_str::<Receipt>(&json("passed")).is_err());
    }
}
