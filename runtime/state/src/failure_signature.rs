//! The failure signature: two failures with the same signature are treated as the same failure.
//!
//! The signature covers the class, the code and the reason, without case, white space and noise: the parts of a message
//! that differ between repetitions. For a stage with output, the engine adds the end of the output. It serves only the
//! cycle breaker (decision same-failure-ends-a-loop). People and stages get the original failure.

mod noise;
#[cfg(test)]
mod tests;

use glovebox_record::limit::LimitName;
use glovebox_record::{Digest, Failure, FailureClass};
use std::str::FromStr;

/// Returns the failure signature of a failure without output. Returns `None` for the classes for which [`text`] returns
/// `None`.
pub fn of_failure(failure: &Failure) -> Option<Digest> {
    text(failure).map(|text| Digest::hash(text.as_bytes()))
}

/// Returns the text that the signature is computed from. Returns `None` unless the class is `contract`, `deterministic`
/// or `scope`, or a limit of the stage cut it off. What a limit cut off has no reason and no output of its own.
pub fn text(failure: &Failure) -> Option<String> {
    use FailureClass::{Contract, Deterministic, Scope};
    let (class, code) = (failure.class.as_str(), failure.code.as_str());
    match failure.class {
        _ if is_cut_off(failure) => Some(format!("{class}\n{code}\n")),
        Contract | Deterministic | Scope => Some(format!("{class}\n{code}\n{}\n", plain(&failure.reason))),
        _ => None,
    }
}

/// Returns true if a limit of the stage, or a time limit of its command, cut the stage off at an arbitrary place.
pub fn is_cut_off(failure: &Failure) -> bool {
    let is_limit = |name: &str| LimitName::from_str(name).is_ok();
    failure.code.limit_name().is_some_and(is_limit) || failure.code.as_str().ends_with("/timeout")
}

/// Returns a text without what differs between repetitions of the same failure.
pub fn plain(text: &str) -> String {
    noise::without(text)
}
