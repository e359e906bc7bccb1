//! The settings of a parallel node (join policy, error policy, concurrency) and of its fan-in (merge).

/// Default of `max_parallel` (spec §4.8).
pub const MAX_PARALLEL_DEFAULT: u32 = 4;
/// Default of `quorum_fraction`.
const QUORUM_DEFAULT: f64 = 0.5;

/// The condition on which a parallel node is complete (decision join-and-error-policies).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum JoinPolicy {
    /// When every branch has ended.
    #[default]
    WaitAll,
    /// When one branch has succeeded.
    FirstSuccess,
    /// When this many have.
    KOfN(u32),
    /// When this share of all branches has.
    Quorum(f64),
}

/// The effect of a failed branch on its parallel node (decision join-and-error-policies).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ErrorPolicy {
    /// The others go on. The branch counts as failed.
    #[default]
    Continue,
    /// The others are canceled, and the node fails.
    FailFast,
    /// The others go on. It counts for nothing, unless every branch fails.
    Ignore,
}

/// The branches whose changes a fan-in takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Merge {
    /// Those of the best branch.
    #[default]
    Best,
    /// Those of every branch that succeeded, except where two of them disagree.
    All,
}

/// The words of `join_policy`.
pub const JOIN_POLICIES: &[(&str, JoinPolicy)] = &[
    ("wait_all", JoinPolicy::WaitAll),
    ("first_success", JoinPolicy::FirstSuccess),
    ("k_of_n", JoinPolicy::KOfN(1)),
    ("quorum", JoinPolicy::Quorum(QUORUM_DEFAULT)),
];

/// The words of `error_policy`.
pub const ERROR_POLICIES: &[(&str, ErrorPolicy)] =
    &[("continue", ErrorPolicy::Continue), ("fail_fast", ErrorPolicy::FailFast), ("ignore", ErrorPolicy::Ignore)];

/// The words of `merge`.
pub const MERGES: &[(&str, Merge)] = &[("best", Merge::Best), ("all", Merge::All)];

/// The settings of branches and their join; defaults for a node that is neither a parallel node nor a fan-in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ParallelSettings {
    /// The condition on which it is complete.
    pub join: JoinPolicy,
    /// The effect of a failed branch on it.
    pub error: ErrorPolicy,
    /// The most branches at a time.
    pub parallel_max: u32,
    /// The branches whose changes a fan-in takes.
    pub merge: Merge,
}

impl Default for ParallelSettings {
    fn default() -> Self {
        let (join, error, merge) = (JoinPolicy::default(), ErrorPolicy::default(), Merge::default());
        Self { join, error, parallel_max: MAX_PARALLEL_DEFAULT, merge }
    }
}

impl JoinPolicy {
    /// The number of `branches` that must succeed.
    pub fn needed(self, branches: usize) -> usize {
        match self {
            JoinPolicy::WaitAll | JoinPolicy::FirstSuccess => 1,
            JoinPolicy::KOfN(k) => usize::try_from(k).unwrap_or(usize::MAX),
            JoinPolicy::Quorum(share) => ((branches as f64 * share).ceil() as usize).max(1),
        }
    }

    /// The word in a pipeline.
    pub fn as_str(self) -> &'static str {
        match self {
            JoinPolicy::WaitAll => "wait_all",
            JoinPolicy::FirstSuccess => "first_success",
            JoinPolicy::KOfN(_) => "k_of_n",
            JoinPolicy::Quorum(_) => "quorum",
        }
    }
}

impl ErrorPolicy {
    /// The word in a pipeline.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorPolicy::Continue => "continue",
            ErrorPolicy::FailFast => "fail_fast",
            ErrorPolicy::Ignore => "ignore",
        }
    }
}
