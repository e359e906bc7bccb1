//! A program that returns credentials: `docker-credential-NAME get`, with the name of the registry on its standard input.

use super::value::{Credential, Secret};
use serde::Deserialize;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Maximum time for the program. It may ask the user to unlock a keyring.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Maximum size of its answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// Time between two checks whether the program has ended.
const POLL: Duration = Duration::from_millis(10);
/// User name of a credential that is a token for the token server.
const TOKEN_USER: &str = "<token>";

/// Why a program returned no credential.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ProgramError {
    /// The configured name is not a name.
    #[error("its name may have only letters, digits, `.`, `_` and `-`")]
    Name,
    /// The program cannot be started.
    #[error("it cannot be started: {0}")]
    Start(String),
    /// The program did not end in time.
    #[error("it did not end within {} s", TIME_MAX.as_secs())]
    Time,
    /// The program failed.
    #[error("it ended with {0}")]
    Failed(String),
    /// The answer cannot be read.
    #[error("its answer cannot be read")]
    Answer,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

/// Returns the name of the program of a configured name.
pub(super) fn name(configured: &str) -> String {
    let shown: String = configured.chars().filter(|one| one.is_ascii_graphic()).take(64).collect();
    format!("docker-credential-{shown}")
}

/// Asks a program for the credential of a registry. `None` if it has none.
pub(super) fn ask(configured: &str, registry: &str) -> Result<Option<Credential>, ProgramError> {
    let is_allowed = |one: char| one.is_ascii_alphanumeric() || matches!(one, '.' | '_' | '-');
    if configured.is_empty() || configured.len() > 64 || !configured.chars().all(is_allowed) {
        return Err(ProgramError::Name);
    }
    ask_within(Command::new(name(configured)), registry, TIME_MAX)
}

fn ask_within(mut program: Command, registry: &str, time_max: Duration) -> Result<Option<Credential>, ProgramError> {
    let started = program.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = started.map_err(|error| ProgramError::Start(error.to_string()))?;
    if let Some(mut input) = child.stdin.take() {
        // A program that reads nothing ends with an error of its own.
        drop(input.write_all(registry.as_bytes()));
    }
    let output = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut answer = Vec::new();
        output.map(|output| output.take(ANSWER_BYTES_MAX + 1).read_to_end(&mut answer));
        answer
    });
    let Some(status) = wait(&mut child, time_max) else {
        drop(child.kill());
        drop(child.wait());
        // The reader is not waited for: a child of the program can hold the output open.
        return Err(ProgramError::Time);
    };
    let printed = finished(reader, time_max).ok_or(ProgramError::Time)?;
    if !status.success() {
        // The protocol has no exit code for `none`: all programs print this sentence.
        let is_none = String::from_utf8_lossy(&printed).contains("credentials not found");
        return if is_none { Ok(None) } else { Err(ProgramError::Failed(status.to_string())) };
    }
    let answer: Answer = serde_json::from_slice(&printed).map_err(|_| ProgramError::Answer)?;
    if printed.len() as u64 > ANSWER_BYTES_MAX {
        return Err(ProgramError::Answer);
    }
    let secret = Secret(answer.secret);
    Ok(Some(match answer.username.as_str() {
        TOKEN_USER => Credential::IdentityToken(secret),
        _ => Credential::Password(answer.username, secret),
    }))
}

/// Returns what the program printed, or `None` if a child of the program holds its output open.
fn finished(reader: JoinHandle<Vec<u8>>, time_max: Duration) -> Option<Vec<u8>> {
    let begin = Instant::now();
    while !reader.is_finished() && begin.elapsed() < time_max {
        thread::sleep(POLL);
    }
    reader.is_finished().then(|| reader.join().unwrap_or_default())
}

fn wait(child: &mut Child, time_max: Duration) -> Option<ExitStatus> {
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            _ if begin.elapsed() >= time_max => return None,
            _ => thread::sleep(POLL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask_script(script: &str, time_max: Duration) -> Result<Option<Credential>, ProgramError> {
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]);
        ask_within(shell, "ghcr.io", time_max)
    }

    #[test]
    fn a_program_returns_a_credential_or_none() {
        let time_max = Duration::from_secs(20);
        let script =
            r#"read -r name || true; printf '{"ServerURL":"%s","Username":"%s","Secret":"s"}' "$name" "$name""#;
        let expected = Credential::Password("ghcr.io".to_owned(), Secret("s".to_owned()));
        assert_eq!(ask_script(script, time_max), Ok(Some(expected)));
        let token = r#"echo '{"Username":"<token>","Secret":"t"}'"#;
        assert_eq!(ask_script(token, time_max), Ok(Some(Credential::IdentityToken(Secret("t".to_owned())))));
        let none = "sleep 0.1; echo 'credentials not found in native keychain'; exec 1>&-; sleep 0.1; exit 1";
        assert_eq!(ask_script(none, time_max), Ok(None));
        assert!(matches!(ask_script("exit 3", time_max), Err(ProgramError::Failed(_))));
        assert_eq!(ask_script("echo nonsense", time_max), Err(ProgramError::Answer));
        assert!(ask_script("head -c 100000 /dev/zero", time_max).is_err());
    }

    #[test]
    fn a_program_that_hangs_is_killed() {
        let begin = Instant::now();
        assert_eq!(ask_script("sleep 600", Duration::from_millis(200)), Err(ProgramError::Time));
        assert!(begin.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_program_has_a_plain_name() {
        for name in ["", "../x", "a b", "a/b", "a\n", &"a".repeat(65)] {
            assert_eq!(ask(name, "ghcr.io"), Err(ProgramError::Name), "{name}");
        }
        let missing = ask("not-a-program-of-this-machine", "ghcr.io");
        assert!(matches!(missing, Err(ProgramError::Start(_))), "{missing:?}");
    }
}
