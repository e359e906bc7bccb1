//! The branch and the commit of a git repository.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// HEAD of the project's repository. Both fields are absent if the project has no repository of its own, or one that
/// Glovebox cannot read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitHead {
    /// The id of the commit; absent if the branch has no commit yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The branch, without `refs/heads/`; absent if HEAD is detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

impl GitHead {
    /// Returns true if nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}
