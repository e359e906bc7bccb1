//! A verification plan, the allowed commands, and the errors of a plan, whose messages are fixed (decision verification-plan).
//!
//! The agent that writes a plan and the stage that runs it use the same code to read it. The host checks separately which commands may run.

use crate::words::words;
use crate::{Outcome, Value, json};

/// Form of a plan, for messages.
const FORM: &str = r#"expected {"files": ["a/path"], "commands": ["a command"]}"#;
/// Maximum number of commands of one plan.
const COMMANDS_MAX: usize = 100;
/// Maximum number of files that one plan may name.
const FILES_MAX: usize = 1000;

/// Why a plan cannot run: a code and a sentence.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    code: &'static str,
    reason: String,
}

impl Problem {
    /// Creates a problem with this code.
    pub fn new(code: &'static str, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }

    /// Returns true if the problem is a command that only a shell could run.
    pub fn is_of_form(&self) -> bool {
        self.code == UNSUPPORTED_FORMAT
    }

    /// Returns a description of the problem for people and models.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    fn of_plan(reason: impl Into<String>) -> Self {
        Self::new("verification/plan-invalid", reason)
    }
}

impl From<Problem> for Outcome {
    fn from(problem: Problem) -> Self {
        Outcome::fail(problem.code, problem.reason)
    }
}

/// The checks that a model proposes for its work.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Files that must exist.
    pub files: Vec<String>,
    /// Commands, in order.
    pub commands: Vec<String>,
}

impl Plan {
    /// Reads a plan from a JSON object, or from a text that contains one.
    ///
    /// # Errors
    /// The value has another form, has no command although it must have one, or exceeds a bound.
    pub fn read(value: &Value, may_be_empty: bool) -> Result<Self, Problem> {
        let parsed;
        let value = match value {
            Value::String(text) => {
                parsed = serde_json_of(text)?;
                &parsed
            }
            value => value,
        };
        let Value::Object(object) = value else {
            return Err(Problem::of_plan(format!("the verification plan is not a JSON object, {FORM}")));
        };
        let texts = |name: &str| match object.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(value) => texts(value).ok_or_else(|| {
                Problem::of_plan(format!("`{name}` of the verification plan is not a list of strings, {FORM}"))
            }),
        };
        let plan = Self { files: texts("files")?, commands: texts("commands")? };
        if plan.commands.is_empty() && !may_be_empty {
            return Err(Problem::of_plan("verification plan must contain at least one command"));
        }
        if plan.commands.iter().any(|command| command.trim().is_empty()) {
            return Err(Problem::of_plan("verification command cannot be empty"));
        }
        if plan.commands.len() > COMMANDS_MAX || plan.files.len() > FILES_MAX {
            let (commands, files) = (plan.commands.len(), plan.files.len());
            let reason = format!("the verification plan has {commands} commands and {files} files");
            return Err(Problem::of_plan(format!("{reason}, expected at most {COMMANDS_MAX} and {FILES_MAX}")));
        }
        for file in &plan.files {
            let invalid = |what| Problem::of_plan(format!("invalid verification file path \"{file}\": {what}"));
            relative(file).map_err(invalid)?;
        }
        Ok(plan)
    }

    /// Returns the plan as JSON.
    pub fn to_json(&self) -> Value {
        json!({ "files": self.files, "commands": self.commands })
    }
}

fn serde_json_of(text: &str) -> Result<Value, Problem> {
    let wrong = || Problem::of_plan(format!("the verification plan is not valid JSON, {FORM}"));
    text.parse::<Value>().map_err(|_| wrong())
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|entry| entry.as_str().map(str::to_owned)).collect()
}

/// Returns a path within the workspace without `.` components and double slashes.
///
/// # Errors
/// The path is empty, is absolute, or leads out of the workspace.
pub fn relative(path: &str) -> Result<String, &'static str> {
    let names: Vec<&str> = path.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    match path {
        _ if path.trim().is_empty() => Err("is empty"),
        _ if path.starts_with(['/', '~']) => Err("must be relative"),
        _ if names.contains(&"..") => Err("cannot contain parent segment"),
        _ => Ok(names.join("/")),
    }
}

/// The prefixes of `verification.allowed_commands`, each split into words.
#[derive(Debug)]
pub struct AllowedCommands<'a>(Vec<Vec<&'a str>>);

impl<'a> AllowedCommands<'a> {
    /// Parses a list separated by commas.
    ///
    /// # Errors
    /// The list is empty.
    pub fn parse(text: &'a str) -> Result<Self, Problem> {
        let prefixes: Vec<Vec<&str>> = text.split(',').map(|prefix| prefix.split_whitespace().collect()).collect();
        let prefixes: Vec<Vec<&str>> = prefixes.into_iter().filter(|prefix| !prefix.is_empty()).collect();
        match prefixes.is_empty() {
            true => Err(Problem::new("verification/allowed-commands", "verification.allowed_commands is required")),
            false => Ok(Self(prefixes)),
        }
    }

    /// Splits a command into a program and its arguments. Checks its form, its paths, and that it begins with the words of a prefix.
    ///
    /// # Errors
    /// Only a shell could run the command, it refers to paths outside of the workspace, or no prefix allows it.
    pub fn check(&self, line: &str) -> Result<Vec<String>, Problem> {
        let line = line.trim();
        let words = words(line).map_err(|reason| match reason.strip_prefix(UNSUPPORTED_FORMAT) {
            Some(_) => Problem::new(UNSUPPORTED_FORMAT, format!("{reason}: {line}")),
            None => Problem::new(UNSUPPORTED_FORMAT, format!("{UNSUPPORTED_FORMAT}: {reason}: {line}")),
        })?;
        if let Some(what) = words.iter().find_map(|word| misplaced(word)) {
            let reason = format!("verification command rejected by guardrail: contains {what}: {line}");
            return Err(Problem::new("verification/guardrail", reason));
        }
        let begins = |prefix: &Vec<&str>| words.len() >= prefix.len() && words.iter().zip(prefix).all(|(a, b)| a == b);
        match self.0.iter().any(begins) {
            true => Ok(words),
            false => {
                let reason = format!("verification command not allowed: {line}");
                Err(Problem::new("verification/not-allowed", reason))
            }
        }
    }
}

/// Code of a command that only a shell could run (decision shell-or-argv).
pub const UNSUPPORTED_FORMAT: &str = "verification_command_unsupported_format";

/// Returns why a word is a path outside of the workspace. This only reports the mistake early (decision tool-command-guard): the
/// sandbox decides what a command can reach.
fn misplaced(word: &str) -> Option<&'static str> {
    match word {
        _ if word.starts_with('~') => Some("~"),
        _ if word.split('/').any(|name| name == "..") => Some(".."),
        _ if word.starts_with('/') => Some("absolute path"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Plan, String> {
        Plan::read(&Value::String(text.to_owned()), false).map_err(|problem| problem.reason)
    }

    #[test]
    fn reads_a_plan() {
        let plan = read(r#"{"files":["a/b.go"],"commands":["go test ./x"],"why":"because"}"#).unwrap();
        assert_eq!((plan.files, plan.commands), (vec!["a/b.go".to_owned()], vec!["go test ./x".to_owned()]));
        assert_eq!(read(r#"{"commands":["a"]}"#).unwrap().files, [""; 0]);
        for (text, reason) in [
            ("{}", "verification plan must contain at least one command"),
            (r#"{"commands":["a"," "]}"#, "verification command cannot be empty"),
            (
                r#"{"commands":["a"],"files":["/etc/passwd"]}"#,
                "invalid verification file path \"/etc/passwd\": must be relative",
            ),
            (
                r#"{"commands":["a"],"files":["a/../b"]}"#,
                "invalid verification file path \"a/../b\": cannot contain parent segment",
            ),
            (r#"{"commands":["a"],"files":[""]}"#, "invalid verification file path \"\": is empty"),
        ] {
            assert_eq!(read(text), Err(reason.to_owned()));
        }
        for text in ["[]", "{", r#"{"commands":"a"}"#, r#"{"commands":[1]}"#] {
            assert!(read(text).unwrap_err().contains(FORM), "{text}");
        }
        let many = format!(r#"{{"commands":[{}]}}"#, vec![r#""a""#; COMMANDS_MAX + 1].join(","));
        assert!(read(&many).unwrap_err().contains("expected at most 100"));
    }

    #[test]
    fn compares_prefixes_by_words() {
        let allowed = AllowedCommands::parse(" go test , bash scripts/check.sh,test -f").unwrap();
        let check = |line: &str| allowed.check(line).map_err(|problem| problem.reason);
        assert_eq!(check(" go test ./internal/x ").unwrap(), ["go", "test", "./internal/x"]);
        assert_eq!(check("'go' \"test\"").unwrap(), ["go", "test"]);
        for line in ["go testing", "go", "gotest", "./go test", "agent/bin/go test", "env go test", "bash -c x"] {
            assert_eq!(check(line).unwrap_err(), format!("verification command not allowed: {line}"));
        }
        for line in [
            "BASH_ENV=$PWD/agent/env.sh bash scripts/check.sh",
            "PATH=$PWD/agent:/bin bash scripts/check.sh",
            "LD_PRELOAD=x.so go test",
            "go test && rm x",
            "go test | tee x",
            "go test $(x)",
            "go test `x`",
            "go test > x",
            "(go test)",
            "go test 'x",
        ] {
            assert!(check(line).unwrap_err().starts_with(UNSUPPORTED_FORMAT), "{line}");
        }
        for (line, what) in [("go test ../x", ".."), ("test -f /etc/passwd", "absolute path"), ("test -f ~/x", "~")] {
            assert!(check(line).unwrap_err().contains(&format!("contains {what}: ")), "{line}");
        }
        assert_eq!(AllowedCommands::parse(" , ").unwrap_err().reason, "verification.allowed_commands is required");
    }
}
