//! The settings of a parallel node (join policy, error policy, concurrency) and of its fan-in (merge).

/// Default of `max_parallel` (spec §4.8).
pub const MAX_PARALLEL_DEFAULT: u32 = 4;
/// Default of `quorum_fraction`.
const QUORUM_DEFAULT: f64 = 0.5;

/// When a parallel node is complete (decision join-and-error-policies).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum JoinPolicy {
    /// When every branch has ended.
    #[default]
    WaitAll,
    /// When one branch has succeeded.
    FirstSuccess,
    /// When this number of branches has succeeded.
    KOfN(u32),
    /// When this fraction of all branches has succeeded.
    Quorum(f64),
}

/// What a failed branch means for its parallel node (decision join-and-error-policies).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ErrorPolicy {
    /// The other branches continue. The branch counts as failed.
    #[default]
    Continue,
    /// The other branches are canceled, and the node fails.
    FailFast,
    /// The other branches continue. The failed branch is ignored, unless all branches fail.
    Ignore,
}

/// The branches whose changes a fan-in commits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Merge {
    /// Only the best branch.
    #[default]
    Best,
    /// All branches that succeeded, except for paths on which two of them disagree.
    All,
}

/// The values of `join_policy`.
pub const JOIN_POLICIES: &[(&str, JoinPolicy)] = &[
    ("wait_all", JoinPolicy::WaitAll),
    ("first_success", JoinPolicy::FirstSuccess),
    ("k_of_n", JoinPolicy::KOfN(1)),
    ("quorum", JoinPolicy::Quorum(QUORUM_DEFAULT)),
];

/// The values of `error_policy`.
pub const ERROR_POLICIES: &[(&str, ErrorPolicy)] =
    &[("continue", ErrorPolicy::Continue), ("fail_fast", ErrorPolicy::FailFast), ("ignore", ErrorPolicy::Ignore)];

/// The values of `merge`.
pub const MERGES: &[(&str, Merge)] = &[("best", Merge::Best), ("all", Merge::All)];

/// The settings of branches and their join. A node that is neither a parallel node nor a fan-in has the defaults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ParallelSettings {
    /// When the parallel node is complete.
    pub join: JoinPolicy,
    /// What a failed branch means for the parallel node.
    pub error: ErrorPolicy,
    /// Maximum number of branches that work at the same time.
    pub parallel_max: u32,
    /// The branches whose changes a fan-in commits.
    pub merge: Merge,
}

impl Default for ParallelSettings {
    fn default() -> Self {
        let (join, error, merge) = (JoinPolicy::default(), ErrorPolicy::default(), Merge::default());
        Self { join, error, parallel_max: MAX_PARALLEL_DEFAULT, merge }
    }
}

impl JoinPolicy {
    /// Returns how many of `branches` must succeed.
    pub fn needed(self, branches: usize) -> usize {
        match self {
            JoinPolicy::WaitAll | JoinPolicy::FirstSuccess => 1,
            JoinPolicy::KOfN(k) => usize::try_from(k).unwrap_or(usize::MAX),
            JoinPolicy::Quorum(share) => ((branches as f64 * share).ceil() as usize).max(1),
        }
    }

    /// Returns the name used in pipelines.
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
    /// Returns the name used in pipelines.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorPolicy::Continue => "continue",
            ErrorPolicy::FailFast => "fail_fast",
            ErrorPolicy::Ignore => "ignore",
        }
    }
}
