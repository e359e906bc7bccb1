//! Reports a test that could not run on this machine. Suites of other crates include only this file.

use std::io::Write as _;

/// Prints that a test could not run, and why. `cargo xtask test` counts these lines and lists them in its summary. The
/// text is written directly to stdout, so that the test harness does not capture it and the log of a passing test
/// contains it.
pub(crate) fn not_run(what: &str, why: &str) {
    let first: String =
        why.lines().next().unwrap_or_default().chars().filter(|one| !one.is_control()).take(200).collect();
    let line = format!("\nnot run: {what}: {first}\n");
    std::io::stdout().write_all(line.as_bytes()).unwrap();
}
