//! Checks with odd inputs: the component returns a well-formed outcome, whatever its status is.

use super::contract::malformed;
use crate::bench::Bench;
use crate::error::TestError;
use crate::report::Finding;
use crate::sample::ODD;

pub(super) const HELP: &str =
    "check what the input contains before you use it, and answer `fail` for what you cannot use";

pub(super) fn odd(bench: &Bench<'_>, name: &str) -> Result<Finding, TestError> {
    let Some(at) = ODD.iter().position(|(known, _)| *known == name) else {
        return Err(TestError::Host(format!("there is no input `{name}`")));
    };
    Ok(Finding::of(malformed(bench.odd(at)?)))
}
