//! The line of a test that could not run here. Suites of other crates include this file alone.

use std::io::Write as _;

/// Says that a test could not run here, and why: `cargo xtask test` counts these lines and lists them in its summary. Written past the
/// capture of the test harness, so that it is in the log of a test that passes.
pub fn not_run(what: &str, why: &str) {
    let first: String =
        why.lines().next().unwrap_or_default().chars().filter(|one| !one.is_control()).take(200).collect();
    let line = format!("\nnot run: {what}: {first}\n");
    std::io::stdout().write_all(line.as_bytes()).unwrap();
}
