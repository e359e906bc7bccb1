//! The access that a node requests for its stage: paths, commands and network. The binder narrows it to the operator's grants.

use super::Text;
use super::holdouts::NodeHoldouts;
use glovebox_record::Network;
use glovebox_record::scope::Entry;

/// The access that a node requests for its stage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// The paths that it may write; none if the file does not set it (decision unset-write-scope).
    pub allowed_write_paths: Option<Vec<Entry>>,
    /// The paths that it may read; none for the whole workspace.
    pub read_paths: Option<Vec<Entry>>,
    /// Commands that an agent may run: none, prefixes, or `*` for a shell (decision granted-agent-commands).
    pub allowed_commands: Option<Vec<String>>,
    /// The confinement of its commands, within the operator's limits.
    pub confinement: Confinement,
    /// Its settings for hold-outs.
    pub holdouts: NodeHoldouts,
    /// The program under test, which runs apart from the stage's own commands.
    pub subject: Subject,
}

/// The folders and the network of a node's commands. It never grants more than the operator does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Confinement {
    /// `codex.workdir`: the folder where commands start (decision codex-read-scope).
    pub workdir: Option<Entry>,
    /// `codex.add_dirs`: more folders that they may read (decision codex-read-scope).
    pub add_dirs: Vec<Entry>,
    /// `codex.strict_read_scope`: they see only workdir, `add_dirs`, the agent's program and the write scope (decision codex-read-scope).
    pub strict_read_scope: bool,
    /// `codex.path`, if it names a file of the workspace.
    pub program: Option<Entry>,
    /// Folders that they may write; deleted after the stage.
    pub scratch: Vec<Entry>,
    /// Folders that they may write; kept during the run, never committed.
    pub cache: Vec<Entry>,
    /// `cache_from`: the files that fill the caches before their first use; none for empty caches.
    pub cache_from: Option<CacheFrom>,
    /// The most that they may reach over the network; the operator's grant is the maximum.
    pub network: Option<Network>,
}

/// The files that fill a stage's caches before their first use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheFrom {
    /// The files that the run began with, before any stage changed them.
    Base,
}

/// The words of `cache_from`.
pub const CACHE_SOURCES: &[(&str, CacheFrom)] = &[("base", CacheFrom::Base)];

/// The program under test of a verifying stage. By default there is none, and the stage's commands pass one to `subject`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Subject {
    /// `verify_subject`: the shell text that `subject` runs if it has no arguments.
    pub command: Option<Text>,
    /// `verify_subject_port`, 1 to 65535: the command starts with the stage, and the stage's commands can reach this loopback port.
    pub port: Option<u16>,
}
