//! The failure signature: two failures with the same signature are treated as the same failure.
//!
//! The signature covers the class, the code and the reason, without case, white space and noise: the parts of a message
//! that differ between repetitions. For a stage with output, the engine adds the end of the output. It serves only the
//! cycle breaker (decision same-failure-ends-a-loop). People and stages get the original failure.

mod noise;
#[cfg(test)]
mod tests;

use glovebox_record::Digest;
use glovebox_record::{Failure, FailureClass};

/// Returns the failure signature of a failure without output. Returns `None` for the classes for which [`text`] returns
/// `None`.
pub fn of_failure(failure: &Failure) -> Option<Digest> {
    text(failure).map(|text| Digest::hash(text.as_bytes()))
}

/// Returns the text that the signature is computed from. Returns `None` unless the class is `contract`, `deterministic`
/// or `scope`.
pub fn text(failure: &Failure) -> Option<String> {
    use FailureClass::{Contract, Deterministic, Scope};
    let (class, code) = (failure.class, failure.code.as_str());
    matches!(class, Contract | Deterministic | Scope)
        .then(|| format!("{}\n{code}\n{}\n", class.as_str(), plain(&failure.reason)))
}

/// Returns a text without what differs between repetitions of the same failure.
pub fn plain(text: &str) -> String {
    noise::without(text)
}
