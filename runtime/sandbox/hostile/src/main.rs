//! The hostile program: tries one attack with raw system calls and says in one line of JSON what came of it.
//!
//! It runs behind the walls it attacks, chosen by `glovebox doctor --attack` and the test suites. It knows no walls and no
//! verdicts: `worked` is what it saw from inside, and a witness outside has the last word. Every attack is bounded and harmless
//! to anything but the canaries that were laid out for it.

#[cfg(target_os = "linux")]
mod attack;

/// Tries the attack that the arguments name.
#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    attack::main(&words)
}

/// The attacks are Linux system calls.
#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(2)
}
