//! `cargo xtask fleet-faults`: the suite `tests/fleet_faults.rs` with many more faults. It prints a table, and fails if a fault
//! lost or duplicated anything.

use crate::{Step, components, moto, nats, process, repository, wasm_std::StdSource};

/// Number of faults if the command names none.
const FAULTS: u64 = 1000;
const TEST: &str = "fleet_faults::random_faults_lose_nothing_and_duplicate_nothing";

/// Builds the components and makes the faults.
pub(crate) fn run(arguments: &[String]) -> Step<()> {
    let (mut faults, mut seed) = (FAULTS, None);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut number = || {
            let text = words.next().map_or("", String::as_str);
            text.parse::<u64>().map_err(|_| format!("`{word} {text}`: expected a number"))
        };
        match word.as_str() {
            "--kills" => faults = number()?,
            "--seed" => seed = Some(number()?),
            other => return Err(format!("unknown argument `{other}`")),
        }
    }
    nats::prepare()?;
    moto::prepare()?;
    components::build(StdSource::from_environment()?, &components::EXAMPLES)?;
    let mut test = process::cargo(&repository());
    test.args(["test", "--workspace", "--locked", "--test", "suites", "--"]);
    test.args(["--exact", TEST]).env("GLOVEBOX_FLEET_FAULTS", faults.to_string());
    test.envs(seed.map(|seed| ("GLOVEBOX_FLEET_SEED", seed.to_string())));
    process::demand(&mut test)
}
