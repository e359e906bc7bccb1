//! Shows long results on a terminal, one screen at a time.
//!
//! The pager is `$GLOVEBOX_PAGER`, `$PAGER` or `less`, and is started as git starts it. It gets text that is escaped
//! already. Without a terminal, with `--no-pager`, or without a pager, the text is only printed.

use super::{is_capable, print};
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use tokio::signal::unix::{SignalKind, signal};

static IS_OFF: OnceLock<bool> = OnceLock::new();

/// Exit code of a shell that does not find a program.
const NOT_FOUND: i32 = 127;

/// Sets the value of `--no-pager`. Only the first call has an effect.
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

/// Returns the command of the pager. The first variable that is set decides; an empty value or `cat` means no pager.
fn command() -> Option<String> {
    let variables = ["GLOVEBOX_PAGER", "PAGER"];
    let pager = variables.iter().find_map(|name| std::env::var(name).ok()).unwrap_or_else(|| "less".to_owned());
    (!pager.trim().is_empty() && pager.trim() != "cat").then_some(pager)
}

/// Runs the pager with a text until it ends. Returns false if the pager does not exist, so that nothing was shown.
fn started(pager: &str, text: &str) -> bool {
    // Ctrl-C is for the pager. Without this handler, it would end this process first, and the pager and the shell would
    // both read the terminal.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let _context = runtime.as_ref().ok().map(tokio::runtime::Runtime::enter);
    let _ignored = runtime.as_ref().ok().and_then(|_| signal(SignalKind::interrupt()).ok());
    let mut command = Command::new("sh");
    command.args(["-c", pager]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // The pager ends immediately if everything fits on the screen, shows colours, and leaves the text on the
        // screen.
        command.env("LESS", "FRX");
    }
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut input) = child.stdin.take() {
        // The reader may quit the pager before the end of the text.
        let _left = input.write_all(text.as_bytes());
    }
    child.wait().is_ok_and(|status| status.code() != Some(NOT_FOUND))
}
