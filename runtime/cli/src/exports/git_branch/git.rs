//! Runs the `git` program on the repository of a work tree, restricted to what `apply --branch` needs.
//!
//! No setting of the repository makes git start another program: no hook, file monitor, filter, signature, pager or
//! fetch. Git uses a separate index file, so the user's index and files are not changed.

use crate::exit::{Exit, Stop};
use crate::terminal::visible;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Settings that keep git from starting another program or writing another file.
const SETTINGS: [&str; 11] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "core.logAllRefUpdates=false",
    "core.attributesFile=/dev/null",
    "core.safecrlf=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "user.useConfigOnly=true",
];
/// Environment variables of git that hold settings of the user and do not select another repository.
const KEPT: [&str; 6] = [
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
];

/// Git in a work tree, with a separate index file that is removed on drop.
pub struct Git<'a> {
    root: &'a Path,
    index: PathBuf,
    /// The commit whose attributes apply. `None` for those of the work tree.
    attributes: Option<String>,
}

impl<'a> Git<'a> {
    /// Selects the repository of the work tree with this root. `index` is a new file that becomes the index.
    pub fn new(root: &'a Path, index: PathBuf) -> Self {
        Self { root, index, attributes: None }
    }

    /// Lets the attributes of a commit apply instead of those of the work tree. Git before 2.41 ignores this.
    pub fn with_attributes(mut self, commit: &str) -> Self {
        self.attributes = Some(commit.to_owned());
        self
    }

    /// Returns the paths whose attributes select a filter that the configuration defines, each with the filter's name.
    pub fn filters(&self, paths: &BTreeSet<String>) -> Result<BTreeMap<String, String>, Stop> {
        let listed = self.output(&["config", "--null", "--name-only", "--get-regexp", "^filter\\."], b"", None)?;
        let name = |key: &[u8]| {
            let key = String::from_utf8_lossy(key).into_owned();
            key.strip_prefix("filter.").and_then(|rest| rest.rsplit_once('.')).map(|(name, _)| name.to_owned())
        };
        let defined: BTreeSet<String> = listed.stdout.split(|byte| *byte == 0).filter_map(name).collect();
        let paths: Vec<u8> = paths.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
        let found = self.run(&["check-attr", "--stdin", "-z", "filter"], &paths)?;
        let fields: Vec<String> =
            found.split(|byte| *byte == 0).map(|field| String::from_utf8_lossy(field).into_owned()).collect();
        let selected = fields.chunks_exact(3).filter(|fields| defined.contains(&fields[2]));
        Ok(selected.map(|fields| (fields[0].clone(), fields[2].clone())).collect())
    }

    /// Runs a git command that must succeed. Returns its standard output.
    pub fn run(&self, words: &[&str], input: &[u8]) -> Result<Vec<u8>, Stop> {
        let output = self.output(words, input, None)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let step = words.first().copied().unwrap_or_default();
        Err(Stop::new(Exit::Usage, format!("`git {step}` failed: {}", visible::block(said.trim()))))
    }

    /// Runs a git command and returns true if it succeeds.
    pub fn succeeds(&self, words: &[&str]) -> Result<bool, Stop> {
        Ok(self.output(words, b"", None)?.status.success())
    }

    /// Creates a commit. The author and committer are those of the user's git settings. `seconds` is the author date in
    /// seconds since 1970.
    pub fn commit(&self, words: &[&str], message: &str, seconds: i64) -> Result<String, Stop> {
        let output = self.output(words, message.as_bytes(), Some(format!("@{seconds} +0000")))?;
        if output.status.success() {
            return Ok(line(&output.stdout));
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Stop::new(Exit::Usage, format!("`git commit-tree` failed: {}", visible::block(said.trim())))
            .with_help("tell git who you are: `git config user.name NAME`, `git config user.email ADDRESS`"))
    }

    fn output(&self, words: &[&str], input: &[u8], date: Option<String>) -> Result<Output, Stop> {
        let mut command = plain();
        command.envs([("GIT_NO_REPLACE_OBJECTS", "1"), ("GIT_NO_LAZY_FETCH", "1"), ("GIT_TERMINAL_PROMPT", "0")]);
        command.env("GIT_INDEX_FILE", &self.index);
        self.attributes.as_ref().map(|commit| command.env("GIT_ATTR_SOURCE", commit));
        // Git must not search for a repository above this one.
        self.root.parent().map(|above| command.env("GIT_CEILING_DIRECTORIES", above));
        date.map(|date| command.env("GIT_AUTHOR_DATE", date));
        command.arg("-C").arg(self.root);
        SETTINGS.iter().for_each(|setting| {
            command.args(["-c", setting]);
        });
        command.args(words);
        answer(command, input)
    }
}

/// Reads a setting from the text of a git configuration. Git only parses the text and does not apply its settings.
/// Returns `None` if the text cannot be parsed or lacks the setting.
pub fn setting(text: &[u8], name: &str) -> Result<Option<Vec<u8>>, Stop> {
    let mut command = plain();
    command.env("GIT_DIR", "/dev/null").args(["-C", "/", "config", "--null", "--file", "-", "--get", name]);
    let output = answer(command, text)?;
    Ok(output.status.success().then(|| output.stdout.strip_suffix(b"\0").unwrap_or(&output.stdout).to_vec()))
}

/// Returns a command for git without the environment variables that select a repository.
fn plain() -> Command {
    let mut command = Command::new("git");
    let of_git = |name: &OsString| name.to_str().is_some_and(|name| name.starts_with("GIT_") && !KEPT.contains(&name));
    std::env::vars_os().filter(|(name, _)| of_git(name)).for_each(|(name, _)| {
        command.env_remove(name);
    });
    command.env("LC_ALL", "C");
    command
}

/// Runs a command with `input` on its standard input.
fn answer(mut command: Command, input: &[u8]) -> Result<Output, Stop> {
    let failed = |error: io::Error| Stop::io("start `git`", &error);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let stdin = child.stdin.take();
    std::thread::scope(|scope| {
        // Git may end before it has read all input.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
        child.wait_with_output().map_err(failed)
    })
}

impl Drop for Git<'_> {
    fn drop(&mut self) {
        let _never_made = std::fs::remove_file(&self.index);
    }
}

/// Returns the path that a command printed on one line.
pub fn path(mut printed: Vec<u8>) -> PathBuf {
    printed.truncate(printed.strip_suffix(b"\n").map_or(printed.len(), <[u8]>::len));
    PathBuf::from(OsString::from_vec(printed))
}

/// Returns the single line that a command printed.
pub fn line(printed: &[u8]) -> String {
    String::from_utf8_lossy(printed).trim_end_matches('\n').to_owned()
}
