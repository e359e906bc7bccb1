//! The failure signature: two failures with the same signature are treated as the same failure.
//!
//! The signature covers the class, the code and the reason, without details that vary between repetitions: case,
//! numbers, hashes and white space. For a stage with output, the engine adds the end of the output. It serves only the
//! cycle breaker (decision same-failure-ends-a-loop). People and stages get the original failure.

use glovebox_record::Digest;
use glovebox_record::{Failure, FailureClass};

/// Minimum number of consecutive hexadecimal digits that are treated as a hash.
const HASH_MIN: usize = 7;

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

/// Returns a text without details that vary between repetitions.
pub fn plain(text: &str) -> String {
    let lower = text.to_lowercase();
    let words: Vec<String> = lower.split_whitespace().map(word).collect();
    words.join(" ")
}

/// Returns a word with its hashes and numbers replaced.
fn word(word: &str) -> String {
    let mut plain = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let run = |holds: fn(char) -> bool| rest.find(|c| !holds(c)).unwrap_or(rest.len());
        let hash = run(|c| c.is_ascii_hexdigit());
        let has = |kind: fn(&char) -> bool| rest[..hash].chars().any(|c| kind(&c));
        let is_hash = hash >= HASH_MIN && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic);
        let length = match first.is_ascii_digit() {
            _ if is_hash => hash,
            true => run(|c| c.is_ascii_digit()),
            false => first.len_utf8(),
        };
        match is_hash || first.is_ascii_digit() {
            true => plain.push_str(if is_hash { "<hex>" } else { "<n>" }),
            false => plain.push(first),
        }
        rest = &rest[length..];
    }
    plain
}
