//! One attack: what it tries, which layer must stop it, and what proves that it was stopped.
//!
//! A row is data. Names in braces, such as `{secret}`, are placeholders: [`crate::host_fixture::HostFixture::fill`]
//! replaces them.

use crate::target::Tier;
use std::fmt;

/// The collection that an attack comes from, and its number in the collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// An attack of a host program.
    Sandbox(u16),
    /// An attack by a pipeline.
    Pipeline(u16),
    /// A finding of a review.
    Review(u16),
    /// An attack of a component on its files.
    Component,
    /// An operation that must work.
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

/// The proof that an attack was stopped. In addition, the witnesses must have seen nothing: canaries, listeners and
/// victim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// The attack reported a failure.
    Answer,
    /// The witnesses saw nothing. The report of the attack is ignored.
    Untouched,
    /// Nothing at this path of the workspace or below it may be committed.
    Commit(&'static str),
    /// Nothing below this path may be committed. The folder itself may be committed.
    Below(&'static str),
    /// The file that the attack left at this path may only be committed as a regular file.
    Plain(&'static str),
    /// The stage fails as a whole when its changes are read.
    Refused,
    /// The host ended the attack, and none of its processes is alive.
    Ended,
    /// No process that the attack started is alive.
    Reaped,
    /// The host captured no more of the output than the limit.
    Bounded,
    /// The attack saw only the variables that every command gets.
    Environment,
    /// This text is not in the output.
    Never(&'static str),
    /// The host could not connect to the port on which the attack listened.
    Closed,
    /// As the host sees it, the process of the attack has no capability and cannot gain one, and its system calls are
    /// filtered.
    Unprivileged,
    /// As the host sees it, there were never more processes at the same time than the limit.
    ProcessesAtMost(usize),
    /// The operation must work.
    Works,
}

/// The limits of the target in which an attack runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// True if no other attack runs in the same target, because this attack would disturb it.
    pub alone: bool,
    /// Wall time limit of the command, in milliseconds.
    pub timeout_ms: u64,
    /// Maximum memory of all processes, in bytes.
    pub command_memory_bytes: u64,
    /// Maximum number of processes and threads.
    pub processes: u64,
    /// Maximum processor time of one process, in milliseconds.
    pub cpu_ms: u64,
    /// Maximum size of `/tmp` and of `/dev/shm`, in bytes.
    pub tmp_bytes: u64,
    /// Maximum disk space, in bytes.
    pub disk_bytes: u64,
    /// True if the network is a proxy that allows only `allowed.example`. Otherwise there is no network.
    pub proxy: bool,
    /// True if the program under test tries the attack, with a verifier that has the hold-out.
    pub subject: bool,
    /// Arguments with which the hostile program runs first, in another target that ends before this one starts. Empty
    /// if there is no such part.
    pub before: &'static [&'static str],
}

impl Limits {
    /// The limits of a target that several attacks share.
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
    /// The collection that the attack comes from, and its number there.
    pub source: Source,
    /// Description of the attack, for people.
    pub title: &'static str,
    /// Layer that must stop the attack in the highest tier.
    pub stopped_by: &'static str,
    /// The executed program, script or component.
    pub payload: Payload,
    /// Limits of the target in which the attack runs.
    pub limits: Limits,
    /// Proof that the attack was stopped.
    pub proof: Proof,
    /// Why the attack succeeds in tier `landlock`, or fails there if it must work. `None` if that is not a known gap.
    pub gap_landlock: Option<&'static str>,
    /// Why the attack succeeds in tier `bwrap`, or fails there if it must work. `None` if that is not a known gap.
    pub gap_bwrap: Option<&'static str>,
    /// Why the attack succeeds in every tier, or fails if it must work. `None` if that is not a known gap.
    pub gap_always: Option<&'static str>,
}

impl Row {
    /// Creates an attack that the sandbox must stop. A program or component must report a failure. After a shell text,
    /// only the observations of the witnesses are used.
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

    /// Sets what proves that the attack was stopped.
    #[must_use]
    pub const fn proof(mut self, proof: Proof) -> Self {
        self.proof = proof;
        self
    }

    /// Sets the limits of the target in which the attack runs.
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

    /// Returns why the attack succeeds in this tier if that is a known gap.
    pub fn gap(&self, tier: Tier) -> Option<&'static str> {
        let own = match tier {
            Tier::Landlock => self.gap_landlock,
            Tier::Bwrap => self.gap_bwrap,
            Tier::Full | Tier::Unconfined => None,
        };
        own.or(self.gap_always)
    }

    /// Returns true if the operation must work. All other rows are attacks that must be stopped.
    pub fn must_work(&self) -> bool {
        self.proof == Proof::Works
    }
}
