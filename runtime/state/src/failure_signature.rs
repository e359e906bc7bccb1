//! The signature of a failure: what tells a failure that repeats from one that only looks alike.
//!
//! It covers the class, the code and the reason, all without what differs by chance: case, numbers, hashes and space. It serves the cycle
//! breaker and nothing else (decision same-failure-ends-a-loop): people and stages get the words of the failure itself.

use glovebox_record::Digest;
use glovebox_record::{Failure, FailureClass};

/// Shortest run of hexadecimal digits that counts as a hash.
const HASH_MIN: usize = 7;

/// The signature of a failure without output; none for one that can pass by itself.
pub fn of_failure(failure: &Failure) -> Option<Digest> {
    text(failure).map(|text| Digest::hash(text.as_bytes()))
}

/// The signature of a failure; none for a transient failure.
pub fn text(failure: &Failure) -> Option<String> {
    use FailureClass::{Contract, Deterministic, Scope};
    let (class, code) = (failure.class, failure.code.as_str());
    matches!(class, Contract | Deterministic | Scope)
        .then(|| format!("{}\n{code}\n{}\n", class.as_str(), plain(&failure.reason)))
}

/// A text without what differs by chance.
pub fn plain(text: &str) -> String {
    let lower = text.to_lowercase();
    let words: Vec<String> = lower.split_whitespace().map(word).collect();
    words.join(" ")
}

/// A word with its hashes and numbers replaced.
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
