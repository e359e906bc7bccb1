//! Evidence that the host collects about a call: its ending, resource usage, refusals, commands and network traffic.
//!
//! The host and the sandbox create these values, and the journal stores them unchanged. The path of a refusal is escaped and all
//! its texts are cut when the refusal is created, because a guest can choose them.

use crate::digest::{Digest, DigestedFile};
use crate::hook::Hook;
use crate::limit::LimitName;
use crate::tier::Tier;
use glovebox_names::visible;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Maximum length of each text of a refusal before it is escaped, in bytes. A guest can choose these texts.
pub const REFUSAL_TEXT_BYTES_MAX: usize = 8 << 10;

/// How a call of a component ended, apart from the handler's outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "how", content = "detail", rename_all = "snake_case")]
pub enum Ending {
    /// The exported function returned.
    Returned,
    /// The component trapped. The detail names the trap and the captured panic message.
    Trapped(String),
    /// A limit was reached. The detail names it.
    LimitHit(String),
    /// The run was canceled.
    Canceled,
    /// The component could not be instantiated.
    NotLinked(String),
    /// The component was revoked, before the call or during it. The detail is the reason. No change is kept.
    Revoked(String),
    /// The first process of the sandbox was killed while a command of the call ran. No change is kept.
    SandboxLost,
    /// The machines that made the attempt were lost one after the other. Nothing of their work is kept.
    MachineLost,
}

/// A limit and how much of it was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitUse {
    /// Name of the limit. Its suffix is the unit: `_bytes` or `_ms`; without one, the limit is a count.
    pub name: LimitName,
    /// Amount that was used; absent if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// Amount that was allowed.
    pub limit: u64,
}

/// A request of a stage that was not granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// The refused operation: `read`, `write`, `run`, `context`, ….
    pub operation: String,
    /// The path, the command or the key, with unprintable characters escaped.
    pub path: String,
    /// Why the request was refused.
    pub reason: String,
    /// The grant that would allow the request, or the reason why no grant can.
    #[serde(default)]
    pub help: String,
}

impl Refusal {
    /// Creates a refusal. Escapes `path`, and cuts every text to [`REFUSAL_TEXT_BYTES_MAX`].
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

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CommandEnding {
    /// The command exited.
    Exited,
    /// The command was ended by a signal that Glovebox did not send.
    Signaled,
    /// Glovebox ended the command at its timeout.
    TimedOut,
    /// Glovebox ended the command because the run was canceled.
    Canceled,
    /// The sandbox ended under the command, so its result is unknown.
    Lost,
}

impl CommandEnding {
    /// Returns the name used in records and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Signaled => "signaled",
            Self::TimedOut => "timed-out",
            Self::Canceled => "canceled",
            Self::Lost => "lost",
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
    /// The command runs tests, and its report says that no test ran.
    NoTests,
    /// The command replaced another command, which was skipped.
    Replacement,
    /// The stage discarded the files on which the command ran, and started again from the workspace.
    DroppedFiles,
}

impl NoProof {
    /// Returns the name used in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoTests => "no_tests",
            Self::Replacement => "replacement",
            Self::DroppedFiles => "dropped_files",
        }
    }
}

impl fmt::Display for NoProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTests => "ran no test",
            Self::Replacement => "replaced a skipped command",
            Self::DroppedFiles => "ran on files that the stage discarded",
        })
    }
}

/// The class of failure that a failed command printed as `failure_class=…`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrintedClass {
    /// The machine failed: a port was taken, a service was not there.
    Infra,
    /// The product failed.
    Product,
}

/// Evidence that the host creates about a command (decision receipts-prove-verdicts).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    /// Id of the receipt, unique within the run.
    pub id: String,
    /// Arguments of the command; `["sh", "-c", text]` for a shell text.
    pub argv: Vec<String>,
    /// The file of the program on this machine, with its absolute path. Absent if the file is in the workspace or was not found,
    /// and for a program under test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<DigestedFile>,
    /// Working directory, relative to the workspace.
    pub cwd: String,
    /// Names of the environment variables, without their values.
    pub env_names: Vec<String>,
    /// Sandbox tier in which the command ran.
    pub tier: Tier,
    /// Guarantees of the tier that were weaker, such as `memory=soft`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degradations: Vec<String>,
    /// True for a program under test, which ran in a separate sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub subject: bool,
    /// The tool call for which this command ran as a hook; absent for a command of the stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<Hook>,
    /// The limit that the command exceeded; absent unless it was ended for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<LimitName>,
    /// Why the command proves nothing although it passed; absent for all other commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_proof: Option<NoProof>,
    /// The class of failure that the command printed; absent if it passed or printed none. Only that of a verifier counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed_class: Option<PrintedClass>,
    /// How the command ended.
    pub how: CommandEnding,
    /// Exit code; absent unless the command exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// Wall time, milliseconds.
    pub duration_ms: u64,
    /// Digest of the whole standard output.
    pub stdout_digest: Digest,
    /// Length of the whole standard output in bytes.
    pub stdout_bytes: u64,
    /// Digest of the whole standard error.
    pub stderr_digest: Digest,
    /// Length of the whole standard error in bytes.
    pub stderr_bytes: u64,
}

impl Receipt {
    /// Returns true if the command exited with code 0.
    pub fn passed(&self) -> bool {
        self.how == CommandEnding::Exited && self.code == Some(0)
    }

    /// Returns true if the command passed and is a proof of its result.
    pub fn proves(&self) -> bool {
        self.passed() && self.no_proof.is_none()
    }
}

/// Traffic through a stage's proxy, and refused requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Traffic by host, for the first 128 hosts.
    #[serde(default)]
    pub hosts: BTreeMap<String, HostTraffic>,
    /// Traffic with all other hosts, and requests that named no host.
    #[serde(default)]
    pub others: HostTraffic,
}

impl Traffic {
    /// Returns the number of requests that were refused or not answered.
    pub fn refused(&self) -> u64 {
        self.hosts.values().fold(self.others.refused, |sum, host| sum.saturating_add(host.refused))
    }
}

impl Traffic {
    /// Adds the traffic of another attempt.
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

/// Tokens of calls of a model, as counted by the provider or the script.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    /// Tokens sent to the model.
    pub input: u64,
    /// Tokens received from the model.
    pub output: u64,
}

impl Tokens {
    /// Returns true if no tokens were counted.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the tokens of another call.
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
    /// Bytes sent to the host.
    pub bytes_sent: u64,
    /// Bytes received from the host.
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
