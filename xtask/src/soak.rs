//! `cargo xtask soak`: the test `tests/soak.rs` with many more rounds. It prints a table, and fails if a kill lost or
//! duplicated anything.

use crate::{Step, components, process, repository, wasm_std::StdSource};

/// Number of rounds if the command names none.
const ROUNDS: &str = "1000";
const TEST: &str = "soak::random_victims_lose_nothing_and_duplicate_nothing";

/// Builds the components and runs the rounds.
pub(crate) fn run(rounds: Option<&String>) -> Step<()> {
    let rounds = rounds.map_or(ROUNDS, String::as_str);
    if rounds.parse::<usize>().is_err() {
        return Err(format!("`{rounds}` is no number of rounds"));
    }
    components::build(StdSource::from_environment()?, &components::EXAMPLES)?;
    let mut test = process::cargo(&repository());
    test.args(["test", "--workspace", "--locked", "--test", "suites", "--", "--exact", TEST]);
    process::demand(test.env("GLOVEBOX_SOAK_ROUNDS", rounds))
}
