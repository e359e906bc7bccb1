//! Converts the attributes of parallel nodes and fan-ins from text to [`ParallelSettings`].

use super::reader::Findings;
use super::scope::Attributes;
use crate::ir::{ERROR_POLICIES, JOIN_POLICIES, JoinPolicy, MAX_PARALLEL_DEFAULT, MERGES, ParallelSettings};
use crate::key;

pub(super) fn settings(from: &Attributes, findings: &mut Findings<'_>) -> ParallelSettings {
    let k = findings.count(from, key::K, 1);
    let fraction = fraction(from, findings);
    let join = findings.choice(from, key::JOIN_POLICY, JOIN_POLICIES).unwrap_or_default();
    ParallelSettings {
        join: match join {
            JoinPolicy::KOfN(default) => JoinPolicy::KOfN(k.unwrap_or(default)),
            JoinPolicy::Quorum(default) => JoinPolicy::Quorum(fraction.unwrap_or(default)),
            other => other,
        },
        error: findings.choice(from, key::ERROR_POLICY, ERROR_POLICIES).unwrap_or_default(),
        parallel_max: findings.count(from, key::MAX_PARALLEL, 1).unwrap_or(MAX_PARALLEL_DEFAULT),
        merge: findings.choice(from, key::MERGE, MERGES).unwrap_or_default(),
    }
}

/// Returns a fraction that is greater than 0 and at most 1.
fn fraction(from: &Attributes, findings: &mut Findings<'_>) -> Option<f64> {
    let attribute = from.get(key::QUORUM_FRACTION).filter(|attribute| !attribute.value.is_empty())?;
    let found = attribute.value.parse::<f64>().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    if found.is_none() {
        let message =
            format!("`{}` expects a number above 0 and up to 1, found `{}`", key::QUORUM_FRACTION, attribute.value);
        findings.invalid(attribute, message);
    }
    found
}
