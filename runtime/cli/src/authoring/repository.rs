//! The git repository of a plugin's project: which revision it is at, and a revision in a fresh folder.
//!
//! Git is started without hooks, file monitors and the variables that select another repository. A repository of a stranger is only
//! cloned, by a transport that starts no other program, and its files are written without its filters.

use super::program::run_to_end;
use crate::exit::{Exit, Stop};
use crate::terminal::visible;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Settings that keep git from starting another program.
const SETTINGS: [&str; 6] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
];
/// Variables of the author that select no other repository.
const KEPT: [&str; 2] = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"];
/// Transports of a clone. Others, such as `ext`, start programs.
const TRANSPORTS: &str = "file:https:ssh";

/// The revision of a project's folder.
#[derive(Debug, PartialEq, Eq)]
pub struct Revision {
    /// The commit.
    pub commit: String,
    /// The folder of the project in the repository; empty if it is the repository itself.
    pub folder: String,
    /// Where the repository was cloned from, without a password. `None` if the remote is a folder or missing.
    pub remote: Option<String>,
    /// True if all files are as in the commit. Files that git ignores do not count.
    pub is_clean: bool,
}

/// Returns the revision of a folder. `None` if it is in no repository, if the repository has no commit, or without git. What the build
/// writes (`built`, relative to the folder) does not count as a change.
pub fn revision(folder: &Path, built: &[&str]) -> Option<Revision> {
    let answer = run(folder, &["rev-parse", "--show-prefix", "HEAD"]).ok()?;
    let (prefix, commit) = answer.split_once('\n')?;
    let mut status = vec!["--no-optional-locks", "status", "--porcelain=v1", "-z", "--untracked-files=all", "--", ":/"];
    let excluded: Vec<String> = built.iter().map(|path| format!(":(exclude){path}")).collect();
    status.extend(excluded.iter().map(String::as_str));
    let changes = run(folder, &status).ok()?;
    let remote = run(folder, &["config", "--get", "remote.origin.url"]).ok();
    Some(Revision {
        commit: commit.trim().to_owned(),
        folder: prefix.trim_end_matches('/').to_owned(),
        remote: remote.and_then(|remote| address(remote.trim())),
        is_clean: changes.is_empty(),
    })
}

/// Returns the address of a repository as in-toto writes it, without user and password. `None` for a folder of this machine.
pub fn address(remote: &str) -> Option<String> {
    let (scheme, rest) = remote.split_once("://")?;
    let scheme = scheme.strip_prefix("git+").unwrap_or(scheme);
    let (host, path) = rest.split_once('/')?;
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let is_plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
    (matches!(scheme, "https" | "ssh") && is_plain(host) && is_plain(path))
        .then(|| format!("git+{scheme}://{host}/{path}"))
}

/// Writes the files of a commit into a new folder.
///
/// # Errors
///
/// Exit 4 if the commit does not exist, and 130 or 143 if a signal stopped the command.
pub fn check_out(from: &OsStr, commit: &str, to: &Path) -> Result<(), Stop> {
    let place = to.parent().unwrap_or(to);
    let arguments = ["clone", "--quiet", "--no-checkout", "--no-hardlinks", "--template="].map(OsStr::new);
    let mut clone = git(place);
    clone.args(arguments).arg("--").arg(from).arg(to);
    let mut check_out = git(to);
    check_out.args(["-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", commit]);
    for mut command in [clone, check_out] {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let output = run_to_end(child.map_err(|error| Stop::io("start `git`", &error))?)?;
        printed(&output).map_err(|reason| Stop::new(Exit::Unverified, format!("git: {reason}")))?;
    }
    Ok(())
}

fn run(folder: &Path, words: &[&str]) -> Result<String, String> {
    let mut command = git(folder);
    command.args(words);
    answer(command)
}

fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    for (name, _) in std::env::vars_os() {
        let is_kept = KEPT.iter().any(|kept| name == *kept);
        if name.to_string_lossy().starts_with("GIT_") && !is_kept {
            command.env_remove(&name);
        }
    }
    command.envs([("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_ALLOW_PROTOCOL", TRANSPORTS)]);
    command.arg("-C").arg(if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    SETTINGS.iter().for_each(|setting| {
        command.args(["-c", setting]);
    });
    command.stdin(Stdio::null());
    command
}

/// Returns what a command printed, or its last line of errors.
fn answer(mut command: Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("`git` cannot be started: {error}"))?;
    printed(&output)
}

fn printed(output: &Output) -> Result<String, String> {
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.trim().lines().last().unwrap_or("git failed");
        return Err(visible::line(last).into_owned());
    }
    String::from_utf8(output.stdout.clone()).map_err(|_| "git printed a name that is not UTF-8".to_owned())
}

/// Returns the absolute path of a folder, for a clone from there.
pub fn absolute(folder: &Path) -> PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_no_password_and_is_no_folder() {
        let check = |remote: &str, expected: Option<&str>| assert_eq!(address(remote).as_deref(), expected, "{remote}");
        check("https://ada:pw@git.example/acme/x.git", Some("git+https://git.example/acme/x.git"));
        check("git+https://git.example/acme/x", Some("git+https://git.example/acme/x"));
        check("ssh://git@git.example/acme/x", Some("git+ssh://git.example/acme/x"));
        for other in
            ["/home/ada/x", "../x", "file:///home/ada/x", "ext::sh -c x", "http://a/b", "https://", "https://a/b c"]
        {
            check(other, None);
        }
    }

    #[test]
    fn a_folder_in_no_repository_has_no_revision() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(revision(folder.path(), &[]), None);
    }
}
