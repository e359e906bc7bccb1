//! Causes of failed verification commands, with the codes of openTiger (decision failure-codes).
//!
//! For a cause that would drop a command, both the project's files and the exit code must be evidence. The output of a command is not
//! enough, because it comes from the code under test.

use crate::project::{Absence, Project, Script, Target};
use glovebox_plugin_sdk::plan::UNSUPPORTED_FORMAT;

/// Cause of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// The command ran and did not exit with 0.
    Failed,
    /// `package.json` has no such script.
    MissingScript,
    /// The makefile has no such target.
    MissingMakeTarget,
    /// There are no tests to run.
    NoTestFiles,
    /// Only a shell could run the command.
    UnsupportedFormat,
    /// The command needs a file that an earlier command removed.
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

    /// Returns true if the command could not have passed, whatever the code under test is.
    pub(crate) fn is_invalid(self) -> bool {
        !matches!(self, Self::Failed | Self::SequenceIssue)
    }
}

/// A command that has exited.
#[derive(Debug)]
pub(crate) struct CommandEnd<'a> {
    pub(crate) words: &'a [String],
    pub(crate) code: i32,
    pub(crate) stdout: &'a str,
    pub(crate) stderr: &'a str,
    /// True if the command is in the verify contract.
    pub(crate) is_operators: bool,
}

/// The cause of a failure, and what the run removed if that is the reason.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) code: Code,
    pub(crate) removed: Option<String>,
}

impl Cause {
    fn from_lack(lack: Absence, code: Code, what: impl Into<String>) -> Option<Self> {
        match lack {
            Absence::None => None,
            Absence::Removed => Some(Self { code: Code::Failed, removed: Some(what.into()) }),
            Absence::Always => Some(Self { code, removed: None }),
        }
    }
}

/// Returns the cause of a failure, based on the project before the first command. If the run removed what the command needs, the cause
/// is an ordinary failure.
pub(crate) fn cause(ended: &CommandEnd<'_>, project: &Project) -> Cause {
    let script = || {
        let Script(name) = script_of(ended)?;
        let lack = project.script(Script(name), ended.is_operators);
        Cause::from_lack(lack, Code::MissingScript, format!("the script `{name}` of package.json"))
    };
    let target = || {
        let Target(name) = target_of(ended)?;
        Cause::from_lack(project.target(Target(name)), Code::MissingMakeTarget, format!("the make target `{name}`"))
    };
    let tests = || {
        let lack = if found_no_tests(ended) { project.tests() } else { Absence::None };
        Cause::from_lack(lack, Code::NoTestFiles, "all test files")
    };
    script().or_else(target).or_else(tests).unwrap_or(Cause { code: Code::Failed, removed: None })
}

/// Returns why a command that exited with 0 did nothing: its script is missing, or the run removed all tests. `None` if it did something.
pub(crate) fn no_effect(ended: &CommandEnd<'_>, ran_no_test: bool, project: &Project) -> Option<Cause> {
    let script = || {
        let Script(name) = if_present(ended.words)?;
        let lack = project.script(Script(name), ended.is_operators);
        Cause::from_lack(lack, Code::MissingScript, format!("the script `{name}` of package.json"))
    };
    let is_removed = ran_no_test && project.tests() == Absence::Removed;
    script().or_else(|| is_removed.then(|| Cause { code: Code::Failed, removed: Some("all test files".to_owned()) }))
}

/// Returns the script of a command such as `npm run lint --if-present`, which exits with 0 if the script is missing.
fn if_present(words: &[String]) -> Option<Script<'_>> {
    let words: Vec<&str> = words.iter().map(String::as_str).take_while(|word| *word != "--").collect();
    let [program, rest @ ..] = words.as_slice() else { return None };
    let (options, names): (Vec<&str>, Vec<&str>) = rest.iter().partition(|word| word.starts_with('-'));
    let script = match names.as_slice() {
        ["run" | "run-script", script] => script,
        ["test" | "t"] => "test",
        _ => return None,
    };
    (matches!(*program, "npm" | "pnpm") && options == ["--if-present"]).then_some(Script(script))
}

/// Scripts that npm runs even if the project does not define them.
const DEFAULT_SCRIPTS: [&str; 4] = ["env", "install", "restart", "start"];

/// Returns the script without which the command cannot run. `None` if that is not certain, such as with an option that may choose
/// another folder.
fn script_of<'a>(ended: &CommandEnd<'a>) -> Option<Script<'a>> {
    let words: Vec<&str> = ended.words.iter().map(String::as_str).collect();
    let (manager, script, rest) = match words.as_slice() {
        [manager @ ("npm" | "pnpm" | "yarn" | "bun"), "run" | "run-script", script, rest @ ..] => {
            (*manager, *script, rest)
        }
        [manager @ ("npm" | "pnpm" | "yarn"), "test" | "t", rest @ ..] => (*manager, "test", rest),
        _ => return None,
    };
    let mut options = rest.iter().take_while(|word| **word != "--");
    let is_elsewhere = script.starts_with('-') || options.any(|word| word.starts_with('-'));
    // If there is no such script, yarn and bun run a program with this name, and the failure may be that program's.
    let says = |text: &str| text.contains(script) && (text.contains("not found") || text.contains("Couldn't find"));
    let is_program = matches!(manager, "yarn" | "bun") && !says(ended.stderr) && !says(ended.stdout);
    let is_open = is_elsewhere || is_program || DEFAULT_SCRIPTS.contains(&script);
    (!is_open).then_some(Script(script))
}

/// Returns the requested target for which make reports that there is no rule. `None` if an option or a variable may choose another
/// makefile.
fn target_of<'a>(ended: &CommandEnd<'a>) -> Option<Target<'a>> {
    let (program, targets) = ended.words.split_first()?;
    let is_open = targets.iter().any(|word| word.starts_with('-') || word.contains('='));
    let says = |target: &&String| ended.stderr.contains(&format!("No rule to make target '{target}'"));
    let found = targets.iter().find(says).filter(|_| program == "make" && ended.code == 2 && !is_open);
    found.map(|target| Target(target))
}

/// Returns true if a test runner reports that there were no tests. Pytest reports this by its exit code.
fn found_no_tests(ended: &CommandEnd<'_>) -> bool {
    let words: Vec<&str> = ended.words.iter().map(String::as_str).collect();
    let is_pytest =
        words.first() == Some(&"pytest") || words.windows(2).any(|pair| matches!(pair, ["-m" | "run", "pytest"]));
    if is_pytest {
        return ended.code == 5;
    }
    let says =
        |start: &str| ended.stdout.lines().chain(ended.stderr.lines()).any(|line| line.trim().starts_with(start));
    let is_node = words.first().is_some_and(|program| NODE_RUNNERS.contains(program));
    is_node
        && ended.code == 1
        && ["No tests found", "No test files found", "Error: No test files found"].into_iter().any(says)
}

/// Programs that run tests of Node projects.
const NODE_RUNNERS: [&str; 8] = ["npm", "pnpm", "yarn", "bun", "npx", "jest", "vitest", "mocha"];

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_plugin_sdk::exec;

    fn words(line: &str) -> Vec<String> {
        exec::words(line).unwrap()
    }

    #[test]
    fn finds_scripts() {
        let check = |line: &str, stderr: &str, expected: Option<&str>| {
            let (words, stdout) = (words(line), "");
            let ended = CommandEnd { words: &words, code: 1, stdout, stderr, is_operators: false };
            assert_eq!(script_of(&ended), expected.map(Script), "{line}");
        };
        check("npm run lint", "", Some("lint"));
        check("pnpm run lint -- --fix", "", Some("lint"));
        check("npm test", "", Some("test"));
        check("yarn run lint", "error Command \"lint\" not found.", Some("lint"));
        for line in ["npm run --silent lint", "node run lint", "npm test -w api", "npm run lint --prefix api"] {
            check(line, "", None);
        }
        for line in ["npm run lint --workspace=api", "yarn run eslint", "bun run a.ts", "npm run start"] {
            check(line, "", None);
        }
    }

    #[test]
    fn finds_targets() {
        let check = |line: &str, expected: Option<&str>| {
            let (words, stderr) = (words(line), "make: *** No rule to make target 'lint'.  Stop.");
            let ended = CommandEnd { words: &words, code: 2, stdout: "", stderr, is_operators: false };
            assert_eq!(target_of(&ended), expected.map(Target), "{line}");
        };
        check("make lint", Some("lint"));
        check("make all lint", Some("lint"));
        for line in ["make -C api lint", "make -f a.mk lint", "make A=b lint", "just lint", "make test"] {
            check(line, None);
        }
    }

    #[test]
    fn the_word_of_the_program_is_not_enough() {
        let ended_in = |project: &Project, line: &str, code: i32, text: &str| {
            let words = words(line);
            cause(&CommandEnd { words: &words, code, stdout: text, stderr: text, is_operators: true }, project).code
        };
        let files = [r#"{"scripts":{"test":"x"}}"#, "lint:\n"];
        let project = |has_tests| Project::from_texts(files, files, [has_tests, has_tests]);
        let (without, with) = (project(false), project(true));
        let ended = |line: &str, code: i32, text: &str| ended_in(&without, line, code, text);
        assert_eq!(ended("npm test", 1, "npm error Missing script: \"test\""), Code::Failed);
        assert_eq!(ended("make lint", 2, "make: *** No rule to make target 'lint'.  Stop."), Code::Failed);
        assert_eq!(ended("make docs", 2, "make: *** No rule to make target 'docs'.  Stop."), Code::MissingMakeTarget);
        assert_eq!(ended("npm run lint", 1, ""), Code::MissingScript);
        assert_eq!(ended("cargo test", 5, "collected 0 items"), Code::Failed);
        assert_eq!(ended("python -m pytest", 5, ""), Code::NoTestFiles);
        assert_eq!(ended("python -m pytest", 1, "collected 0 items"), Code::Failed);
        assert_eq!(ended("python pytest", 5, ""), Code::Failed);
        assert_eq!(ended("npx vitest", 1, "No test files found, exiting with code 1"), Code::NoTestFiles);
        assert_eq!(ended_in(&with, "python -m pytest", 5, ""), Code::Failed);
        assert_eq!(ended_in(&with, "npx vitest", 1, "No test files found, exiting with code 1"), Code::Failed);
    }

    /// A command whose script, target or tests the run removed must fail. Otherwise a stage could choose its
    /// verification by removing what a command needs.
    #[test]
    fn what_the_run_removed_stays_a_failure() {
        let files = [r#"{"scripts":{"lint":"x"}}"#, "lint:\n"];
        let project = Project::from_texts(["{}", "all:\n"], files, [false, true]);
        let check = |line: &str, code: i32, text: &str, removed: &str| {
            let words = words(line);
            let ended = CommandEnd { words: &words, code, stdout: "", stderr: text, is_operators: false };
            let expected = Cause { code: Code::Failed, removed: Some(removed.to_owned()) };
            assert_eq!(cause(&ended, &project), expected, "{line}");
        };
        check("npm run lint", 1, "", "the script `lint` of package.json");
        check("make lint", 2, "make: *** No rule to make target 'lint'.  Stop.", "the make target `lint`");
        check("python -m pytest", 5, "", "all test files");
    }

    #[test]
    fn a_command_that_did_nothing_has_not_passed() {
        let files = [r#"{"scripts":{"lint":"x"}}"#, ""];
        let removed = Project::from_texts(["{}", ""], files, [false, true]);
        let same = Project::from_texts(files, files, [true, true]);
        let check = |line: &str, ran_no_test: bool, expected: Option<Code>| {
            let words = words(line);
            let ended = CommandEnd { words: &words, code: 0, stdout: "", stderr: "", is_operators: true };
            assert_eq!(no_effect(&ended, ran_no_test, &removed).map(|cause| cause.code), expected, "{line}");
        };
        check("npm run lint --if-present", false, Some(Code::Failed));
        check("pnpm run --if-present docs", false, Some(Code::MissingScript));
        check("npm test --if-present", false, Some(Code::MissingScript));
        check("node --test", true, Some(Code::Failed));
        for line in ["node --test", "npm run lint", "npm run lint --if-present -w api", "npm test -- --if-present"] {
            check(line, false, None);
        }
        let words = words("npm run lint --if-present");
        let ended = CommandEnd { words: &words, code: 0, stdout: "", stderr: "", is_operators: true };
        assert_eq!(no_effect(&ended, true, &same), None);
    }
}
