//! The hostile program: tries one attack with raw system calls and prints the result as one line of JSON.
//!
//! `glovebox doctor --attack` and the test suites start it inside the sandbox that it attacks. It knows neither the
//! sandbox nor the verdict: `worked` is what the program saw from inside, and a witness outside decides. Every attack
//! is limited in time and harms nothing except the prepared canaries.

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
