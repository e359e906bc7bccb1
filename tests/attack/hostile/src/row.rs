//! One attack: what it tries, which layer must stop it, and what proves that.
//!
//! A row is data. Words in braces, such as `{secret}`, are placeholders: [`crate::host_fixture::HostFixture::fill`] replaces them.

use crate::target::Tier;
use std::fmt;

/// The collection that an attack comes from, and its row there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// An attack of a host program.
    Sandbox(u16),
    /// An attack from a pipeline's side.
    Pipeline(u16),
    /// A finding of a review.
    Review(u16),
    /// An attack of a component on its files.
    Component,
    /// Something that must work.
    Required,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sandbox(row) => write!(f, "sandbox {row}"),
            Self::Pipeline(row) => write!(f, "pipeline {row}"),
            Self::Review(row) => write!(f, "review {row}"),
            Self::Component => f.write_str("component"),
            Self::Required => f.write_str("required"),
        }
    }
}

/// The executed program, script or component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// The hostile program with these arguments.
    Program(&'static [&'static str]),
    /// A shell text.
    Shell(&'static str),
    /// The hostile component with these arguments.
    Component(&'static [&'static str]),
}

/// The proof that an attack was stopped. The witnesses count in any case: canaries, listeners and victim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// The attack reported a failure.
    Answer,
    /// Only the witnesses count, not what the attack reported.
    Untouched,
    /// Nothing at this path of the workspace, or below it, may be committed.
    Commit(&'static str),
    /// Nothing below this path may be committed; the folder itself may.
    Below(&'static str),
    /// The file that it left at this path may be committed as a regular file at most.
    Plain(&'static str),
    /// The stage fails as a whole when its changes are read.
    Refused,
    /// The host ended it, and no process of it is alive.
    Ended,
    /// No process that it started is alive.
    Reaped,
    /// The host kept no more of its output than the limit.
    Bounded,
    /// It saw only the variables that every command gets.
    Environment,
    /// This word is not in its output.
    Never(&'static str),
    /// The host could not reach the port it listened on.
    Closed,
    /// As the host sees it, its process has no capability and cannot gain one, and its system calls are filtered.
    Unprivileged,
    /// As the host sees it, no more processes than the limit existed at the same time.
    ProcessesAtMost(usize),
    /// It must work.
    Works,
}

/// The limits of the target that an attack runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// True if no other attack runs in the same target, because this one would disturb it.
    pub alone: bool,
    /// Wall time of the command.
    pub timeout_ms: u64,
    /// Bytes of memory of all processes.
    pub command_memory_bytes: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Processor time of one process in milliseconds.
    pub cpu_ms: u64,
    /// Bytes of `/tmp` and `/dev/shm`, each.
    pub tmp_bytes: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
    /// True if the network is a proxy that allows only `allowed.example`; otherwise there is no network.
    pub proxy: bool,
    /// True if the program under test tries it, beside a verifier that has the hold-out.
    pub subject: bool,
    /// Words with which the hostile program runs in another target, which ends before this one begins; empty for none.
    pub before: &'static [&'static str],
}

impl Limits {
    /// The limits of a target that attacks share.
    pub const SHARED: Self = Self {
        alone: false,
        timeout_ms: 10_000,
        command_memory_bytes: 512 << 20,
        processes: 96,
        cpu_ms: 20_000,
        tmp_bytes: 32 << 20,
        disk_bytes: 2 << 30,
        proxy: false,
        subject: false,
        before: &[],
    };

    /// The limits of a target for one attack.
    pub const ALONE: Self = Self { alone: true, ..Self::SHARED };
}

/// One attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Stable name.
    pub id: &'static str,
    /// The collection that the attack comes from, and its row there.
    pub source: Source,
    /// Description of the attack, for people.
    pub title: &'static str,
    /// The layer that must stop it in the highest tier.
    pub stopped_by: &'static str,
    /// The executed program, script or component.
    pub payload: Payload,
    /// The limits that it runs in.
    pub limits: Limits,
    /// The proof that it was stopped.
    pub proof: Proof,
    /// The reason why it succeeds in tier `landlock`, or fails there if it must work.
    pub gap_landlock: Option<&'static str>,
    /// The reason why it succeeds in tier `bwrap`, or fails there if it must work.
    pub gap_bwrap: Option<&'static str>,
    /// The reason why it succeeds in every tier, or fails if it must work.
    pub gap_always: Option<&'static str>,
}

impl Row {
    /// An attack that the sandbox must stop: a program or component must report a failure; after a shell text only the witnesses count.
    pub const fn new(
        id: &'static str,
        source: Source,
        title: &'static str,
        stopped_by: &'static str,
        payload: Payload,
    ) -> Self {
        let proof = match payload {
            Payload::Shell(_) => Proof::Untouched,
            Payload::Program(_) | Payload::Component(_) => Proof::Answer,
        };
        Self {
            id,
            source,
            title,
            stopped_by,
            payload,
            limits: Limits::SHARED,
            proof,
            gap_landlock: None,
            gap_bwrap: None,
            gap_always: None,
        }
    }

    /// Sets what proves that it was stopped.
    #[must_use]
    pub const fn proof(mut self, proof: Proof) -> Self {
        self.proof = proof;
        self
    }

    /// Sets the limits that it runs in.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Declares a known gap of tier `landlock`.
    #[must_use]
    pub const fn landlock(mut self, why: &'static str) -> Self {
        self.gap_landlock = Some(why);
        self
    }

    /// Declares a known gap of tier `bwrap`.
    #[must_use]
    pub const fn bwrap(mut self, why: &'static str) -> Self {
        self.gap_bwrap = Some(why);
        self
    }

    /// Declares a known gap of every tier.
    #[must_use]
    pub const fn always(mut self, why: &'static str) -> Self {
        self.gap_always = Some(why);
        self
    }

    /// Returns why the attack succeeds in this tier, where that is a known gap.
    pub fn gap(&self, tier: Tier) -> Option<&'static str> {
        let own = match tier {
            Tier::Landlock => self.gap_landlock,
            Tier::Bwrap => self.gap_bwrap,
            Tier::Full | Tier::Unconfined => None,
        };
        own.or(self.gap_always)
    }

    /// True if it must work; all others must be stopped.
    pub fn must_work(&self) -> bool {
        self.proof == Proof::Works
    }
}
