//! Why a verification command failed, in the words of seed 4.
//!
//! A cause that would drop a command is read from files and exit codes as far as possible. What a command prints is the word of the code
//! under test.

use glovebox_plugin_sdk::plan::UNSUPPORTED_FORMAT;
use glovebox_plugin_sdk::{Value, files};

/// The cause of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// It ran and did not end with 0.
    Failed,
    /// `package.json` has no such script.
    MissingScript,
    /// The makefile has no such target.
    MissingMakeTarget,
    /// There are no tests to run.
    NoTestFiles,
    /// Only a shell could run it.
    UnsupportedFormat,
    /// It looks for a file that an earlier command removed.
    SequenceIssue,
}

impl Code {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "verification_command_failed",
            Self::MissingScript => "verification_command_missing_script",
            Self::MissingMakeTarget => "verification_command_missing_make_target",
            Self::NoTestFiles => "verification_command_no_test_files",
            Self::UnsupportedFormat => UNSUPPORTED_FORMAT,
            Self::SequenceIssue => "verification_command_sequence_issue",
        }
    }

    /// True if the command could not have passed, whatever the code under test does.
    pub(crate) fn is_invalid(self) -> bool {
        !matches!(self, Self::Failed | Self::SequenceIssue)
    }
}

/// What is known of a command that ended.
#[derive(Debug)]
pub(crate) struct Ended<'a> {
    pub(crate) words: &'a [String],
    pub(crate) code: i32,
    pub(crate) stdout: &'a str,
    pub(crate) stderr: &'a str,
}

/// Bytes of a `package.json` or a makefile that are read.
const FILE_BYTES_MAX: usize = 1 << 20;

/// Reads a file of the folder in which the commands start.
pub(crate) fn read_in(folder: Option<&str>, name: &str) -> Option<String> {
    let path = folder.map_or_else(|| name.to_owned(), |folder| format!("{folder}/{name}"));
    files::read_text(path, FILE_BYTES_MAX).ok()
}

/// The cause of a failure; `read` reads files of the folder where the command started.
pub(crate) fn cause(ended: &Ended<'_>, read: impl Fn(&str) -> Option<String>) -> Code {
    if script_of(ended.words).is_some_and(|script| script.is_missing_in(&read("package.json").unwrap_or_default())) {
        return Code::MissingScript;
    }
    let makefiles = || ["GNUmakefile", "makefile", "Makefile"].iter().find_map(|name| read(name));
    if target_of(ended).is_some_and(|target| target.is_missing_in(&makefiles().unwrap_or_default())) {
        return Code::MissingMakeTarget;
    }
    if found_no_tests(ended) {
        return Code::NoTestFiles;
    }
    Code::Failed
}

/// The script that a package manager is asked to run.
#[derive(Debug, PartialEq, Eq)]
struct Script<'a>(&'a str);

fn script_of(words: &[String]) -> Option<Script<'_>> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match *words.as_slice() {
        ["npm" | "pnpm" | "yarn" | "bun", "run" | "run-script", script, ..] if !script.starts_with('-') => {
            Some(Script(script))
        }
        ["npm" | "pnpm" | "yarn", "test" | "t", ..] => Some(Script("test")),
        _ => None,
    }
}

impl Script<'_> {
    /// True if the file can be read and its `scripts` do not have this name.
    fn is_missing_in(&self, package: &str) -> bool {
        package.parse::<Value>().is_ok_and(|package| package["scripts"].get(self.0).is_none())
    }
}

/// The target that make says it has no rule for, if the command asked for it.
#[derive(Debug, PartialEq, Eq)]
struct Target<'a>(&'a str);

fn target_of<'a>(ended: &Ended<'a>) -> Option<Target<'a>> {
    let is_make = ended.words.first().is_some_and(|program| program == "make") && ended.code == 2;
    let asked = ended.words.iter().skip(1).map(String::as_str).filter(|word| !word.starts_with('-'));
    let mut asked = asked.filter(|word| !word.contains('='));
    asked.find(|target| is_make && ended.stderr.contains(&format!("No rule to make target '{target}'"))).map(Target)
}

impl Target<'_> {
    /// True if no rule of the makefile names it. Without a makefile there is none either.
    fn is_missing_in(&self, makefile: &str) -> bool {
        let names = |line: &str| {
            let targets = line.split_once(':').map_or("", |(targets, _)| targets);
            !line.starts_with(['\t', '#']) && targets.split_whitespace().any(|name| name == self.0)
        };
        !makefile.lines().any(names)
    }
}

/// True if a test runner says that there was nothing to run. Pytest says so with its exit code.
fn found_no_tests(ended: &Ended<'_>) -> bool {
    let named = |names: &[&str]| ended.words.iter().any(|word| names.contains(&word.as_str()));
    if named(&["pytest"]) {
        return ended.code == 5;
    }
    let says =
        |start: &str| ended.stdout.lines().chain(ended.stderr.lines()).any(|line| line.trim().starts_with(start));
    let is_node = named(&["npm", "pnpm", "yarn", "bun", "npx", "jest", "vitest", "mocha"]);
    is_node
        && ended.code == 1
        && ["No tests found", "No test files found", "Error: No test files found"].into_iter().any(says)
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_plugin_sdk::exec;

    #[test]
    fn finds_scripts_and_targets() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(script_of(&exec::words(line).unwrap()), expected.map(Script), "{line}");
        };
        check("npm run lint", Some("lint"));
        check("pnpm run lint -- --fix", Some("lint"));
        check("npm test", Some("test"));
        check("npm run --silent lint", None);
        check("node run lint", None);
        let (script, target) = (Script("lint"), Target("lint"));
        assert!(script.is_missing_in(r#"{"scripts":{"test":"a"}}"#) && script.is_missing_in("{}"));
        assert!(!script.is_missing_in(r#"{"scripts":{"lint":"a"}}"#));
        assert!(!script.is_missing_in("") && !script.is_missing_in("{"));
        assert!(target.is_missing_in("all:\n\tlint\n") && target.is_missing_in(""));
        assert!(!target.is_missing_in("build lint: x\n"));
    }

    #[test]
    fn the_word_of_the_program_is_not_enough() {
        let ended = |line: &str, code: i32, stdout: &'static str| {
            let words = exec::words(line).unwrap();
            let read = |name: &str| match name {
                "package.json" => Some(r#"{"scripts":{"test":"x"}}"#.to_owned()),
                "Makefile" => Some("lint:\n".to_owned()),
                _ => None,
            };
            cause(&Ended { words: &words, code, stdout, stderr: stdout }, read)
        };
        assert_eq!(ended("npm test", 1, "npm error Missing script: \"test\""), Code::Failed);
        assert_eq!(ended("make lint", 2, "make: *** No rule to make target 'lint'.  Stop."), Code::Failed);
        assert_eq!(ended("make docs", 2, "make: *** No rule to make target 'docs'.  Stop."), Code::MissingMakeTarget);
        assert_eq!(ended("npm run lint", 1, ""), Code::MissingScript);
        assert_eq!(ended("cargo test", 5, "collected 0 items"), Code::Failed);
        assert_eq!(ended("python -m pytest", 5, ""), Code::NoTestFiles);
        assert_eq!(ended("python -m pytest", 1, "collected 0 items"), Code::Failed);
        assert_eq!(ended("npx vitest", 1, "No test files found, exiting with code 1"), Code::NoTestFiles);
    }
}
