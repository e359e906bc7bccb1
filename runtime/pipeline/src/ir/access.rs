//! The access that a node requests for its stage: paths, commands and network. When the plan is bound, the access is reduced to
//! what the operator grants.

use super::Text;
use super::holdouts::NodeHoldouts;
use glovebox_record::Network;
use glovebox_record::scope::Entry;

/// The access that a node requests for its stage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// Paths that the stage may write. `None` if the file does not say (decision unset-write-scope).
    pub allowed_write_paths: Option<Vec<Entry>>,
    /// Paths that the stage may read. `None` for the whole workspace.
    pub read_paths: Option<Vec<Entry>>,
    /// Commands that an agent may run: prefixes, or `*` for a shell. `None` if the file does not say
    /// (decision granted-agent-commands).
    pub allowed_commands: Option<Vec<String>>,
    /// Confinement of the stage's commands, within the operator's limits.
    pub confinement: Confinement,
    /// Settings of the node for hold-outs.
    pub holdouts: NodeHoldouts,
    /// The program under test, which runs in a separate sandbox from the stage's own commands.
    pub subject: Subject,
}

/// The folders and the network of a node's commands. These settings never grant more than the operator does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Confinement {
    /// `codex.workdir`: the folder in which commands start (decision codex-read-scope).
    pub workdir: Option<Entry>,
    /// `codex.add_dirs`: more folders that commands may read (decision codex-read-scope).
    pub add_dirs: Vec<Entry>,
    /// `codex.strict_read_scope`: true if commands see only workdir, `add_dirs`, the agent's program and the write scope
    /// (decision codex-read-scope).
    pub strict_read_scope: bool,
    /// `codex.path`, if it names a file in the workspace.
    pub program: Option<Entry>,
    /// Folders that commands may write, and that are deleted after the stage.
    pub scratch: Vec<Entry>,
    /// Folders that commands may write, and that are kept during the run but never committed.
    pub cache: Vec<Entry>,
    /// `cache_from`: the files with which caches are filled before their first use. `None` for empty caches.
    pub cache_from: Option<CacheFrom>,
    /// The network that commands may reach at most. The operator's grant is the upper bound.
    pub network: Option<Network>,
}

/// The files with which a stage's caches are filled before their first use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheFrom {
    /// The files with which the run began, before any stage changed them.
    Base,
}

/// The values of `cache_from`.
pub const CACHE_SOURCES: &[(&str, CacheFrom)] = &[("base", CacheFrom::Base)];

/// The program under test of a verifying stage. By default there is none, and the stage's commands pass the program to
/// `subject` as arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Subject {
    /// `verify_subject`: the shell text that `subject` runs if it has no arguments.
    pub command: Option<Text>,
    /// `verify_subject_port`, from 1 to 65535: the loopback port of the program under test, which the stage's commands can reach.
    /// If it is set, the program starts with the stage.
    pub port: Option<u16>,
}
