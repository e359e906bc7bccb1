//! One attack: what is tried, which wall has to stop it, and how that is proven.
//!
//! A row is data. Words in braces are filled in from the world the attack runs in, such as `{secret}`; see
//! [`crate::host_fixture::HostFixture::fill`].

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// The hostile program with these words.
    Program(&'static [&'static str]),
    /// A text for the shell.
    Shell(&'static str),
    /// The hostile component with these words.
    Component(&'static [&'static str]),
}

/// What proves that an attack was stopped. Whatever it is, the canaries, the listeners and the victim outside are looked at as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// It was told no.
    Answer,
    /// What it believes does not count, only what stands outside.
    Untouched,
    /// Nothing at this path of the workspace, or below it, may be committed.
    Commit(&'static str),
    /// Nothing below this path may be committed; the folder itself may.
    Below(&'static str),
    /// What it left at this path may be committed as a regular file at most.
    Plain(&'static str),
    /// The stage fails as a whole when its changes are read.
    Refused,
    /// It was ended from outside, and nothing of it is alive.
    Ended,
    /// Nothing it started is alive, however it went.
    Reaped,
    /// No more was kept of its output than the bound.
    Bounded,
    /// It saw no variable but those every command gets.
    Environment,
    /// This word is not in its output.
    Never(&'static str),
    /// The port it listened on was closed from outside.
    Closed,
    /// CommandResult from outside, its process has no capability and cannot gain any, and its system calls are filtered.
    Unprivileged,
    /// No more processes existed at the same time than the bound, seen from outside.
    ProcessesAtMost(usize),
    /// This has to work.
    Works,
}

/// The bounds of the place an attack runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Whether the attack has it for itself, for what would disturb others.
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
    /// Whether the network is a proxy that lets nothing but `allowed.example` through; else there is none.
    pub proxy: bool,
    /// Whether it is tried by the program under test, beside a verifier that has the hold-out.
    pub subject: bool,
}

impl Limits {
    /// The room that attacks share.
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
    };

    /// A room for one attack.
    pub const ALONE: Self = Self { alone: true, ..Self::SHARED };
}

/// One attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Stable name.
    pub id: &'static str,
    /// Where the attack comes from: a collection and its row.
    pub source: &'static str,
    /// What is tried, in words.
    pub title: &'static str,
    /// The layer that has to stop it in the highest tier.
    pub stopped_by: &'static str,
    /// What is tried.
    pub payload: Payload,
    /// Where.
    pub limits: Limits,
    /// What proves that it was stopped.
    pub proof: Proof,
    /// Why it gets through, or why what must work does not, in tier `landlock`.
    pub gap_landlock: Option<&'static str>,
    /// The same in tier `bwrap`.
    pub gap_bwrap: Option<&'static str>,
    /// The same in every tier.
    pub gap_always: Option<&'static str>,
}

impl Row {
    /// An attack by the hostile program that must be told no.
    pub const fn program(
        id: &'static str,
        source: &'static str,
        title: &'static str,
        stopped_by: &'static str,
        words: &'static [&'static str],
    ) -> Self {
        Self {
            id,
            source,
            title,
            stopped_by,
            payload: Payload::Program(words),
            limits: Limits::SHARED,
            proof: Proof::Answer,
            gap_landlock: None,
            gap_bwrap: None,
            gap_always: None,
        }
    }

    /// An attack by the shell; only what stands outside counts.
    pub const fn shell(
        id: &'static str,
        source: &'static str,
        title: &'static str,
        stopped_by: &'static str,
        text: &'static str,
    ) -> Self {
        let row = Self::program(id, source, title, stopped_by, &[]);
        Self { payload: Payload::Shell(text), proof: Proof::Untouched, ..row }
    }

    /// An attack by the hostile component that must be told no.
    pub const fn component(
        id: &'static str,
        source: &'static str,
        title: &'static str,
        stopped_by: &'static str,
        words: &'static [&'static str],
    ) -> Self {
        let row = Self::program(id, source, title, stopped_by, &[]);
        Self { payload: Payload::Component(words), ..row }
    }

    /// Something that has to work.
    pub const fn works(
        id: &'static str,
        source: &'static str,
        title: &'static str,
        words: &'static [&'static str],
    ) -> Self {
        let row = Self::program(id, source, title, "nothing may", words);
        Self { proof: Proof::Works, ..row }
    }

    /// Says what proves it.
    #[must_use]
    pub const fn proof(mut self, proof: Proof) -> Self {
        self.proof = proof;
        self
    }

    /// Says where it runs.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Admits that tier `landlock` does not do this.
    #[must_use]
    pub const fn landlock(mut self, why: &'static str) -> Self {
        self.gap_landlock = Some(why);
        self
    }

    /// Admits that tier `bwrap` does not do this.
    #[must_use]
    pub const fn bwrap(mut self, why: &'static str) -> Self {
        self.gap_bwrap = Some(why);
        self
    }

    /// Admits that no tier does this.
    #[must_use]
    pub const fn always(mut self, why: &'static str) -> Self {
        self.gap_always = Some(why);
        self
    }

    /// Returns what is admitted for a tier, by the tier's name.
    pub fn gap(&self, tier: &str) -> Option<&'static str> {
        let own = match tier {
            "landlock" => self.gap_landlock,
            "bwrap" => self.gap_bwrap,
            _ => None,
        };
        own.or(self.gap_always)
    }

    /// True for what must work rather than be stopped.
    pub fn must_work(&self) -> bool {
        self.proof == Proof::Works
    }
}
