//! Long results on a terminal, one screen at a time.
//!
//! The pager is `$GLOVEBOX_PAGER`, `$PAGER` or `less`, started as git starts it. It gets text that is escaped already. Without a
//! terminal, with `--no-pager` and without a pager the text is only printed.

use super::{is_capable, print};
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use tokio::signal::unix::{SignalKind, signal};

static IS_OFF: OnceLock<bool> = OnceLock::new();

/// The exit code of a shell that does not find a program.
const NOT_FOUND: i32 = 127;

/// Sets the value of `--no-pager`; the first call decides.
pub fn choose(is_off: bool) {
    let _decided_before = IS_OFF.set(is_off);
}

/// Writes a result to stdout, through a pager if a person reads it.
pub fn show(text: &str) {
    let is_off = IS_OFF.get().copied().unwrap_or(false);
    match command().filter(|_| !is_off && !text.is_empty() && is_capable(&std::io::stdout())) {
        Some(pager) if started(&pager, text) => {}
        _ => print(text),
    }
}

/// The first variable that is set decides; an empty one and `cat` mean no pager.
fn command() -> Option<String> {
    let variables = ["GLOVEBOX_PAGER", "PAGER"];
    let pager = variables.iter().find_map(|name| std::env::var(name).ok()).unwrap_or_else(|| "less".to_owned());
    (!pager.trim().is_empty() && pager.trim() != "cat").then_some(pager)
}

/// Runs the pager over a text until the reader leaves it. False if there is no such program, so that nothing was shown.
fn started(pager: &str, text: &str) -> bool {
    // Ctrl-C belongs to the pager. It would end this process first, and leave the terminal to both the pager and the shell.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let _context = runtime.as_ref().ok().map(tokio::runtime::Runtime::enter);
    let _ignored = runtime.as_ref().ok().and_then(|_| signal(SignalKind::interrupt()).ok());
    let mut command = Command::new("sh");
    command.args(["-c", pager]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Leave at once if all fits on the screen; show colours; leave the text there.
        command.env("LESS", "FRX");
    }
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut input) = child.stdin.take() {
        // A reader may leave before the end.
        let _left = input.write_all(text.as_bytes());
    }
    child.wait().is_ok_and(|status| status.code() != Some(NOT_FOUND))
}
