//! Finds commands that execute code of the project: test runners and build tools (recognized by their names), interpreters that
//! execute a file, and programs that are started by their path.
//!
//! Files in a hold-out folder are sealed and do not count as code of the project. The search does not follow variables, aliases
//! or renamed programs. It is used only for a warning; the sandbox does not depend on it.

use super::words::{Role, Word, is_shell};
use crate::fixability::resolved;
use crate::span::Span;

/// The command that starts the program under test in a separate sandbox.
pub(super) const SUBJECT: &str = "subject";

/// A command that executes code of the project.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Execution {
    /// The command as shown in messages, such as `cargo test` or `sh src/prog.sh`.
    pub(super) what: String,
    /// Range of the program's name in the text.
    pub(super) at: std::ops::Range<usize>,
    /// True if the executed file is in a hold-out folder, but its configuration comes from the project.
    pub(super) is_over_holdouts: bool,
}

/// Programs that execute code of a project, with the subcommands that execute it. An empty list means all subcommands.
const RUNNERS: &[(&str, &[&str])] = &[
    (
        "cargo",
        &[
            "test",
            "t",
            "nextest",
            "bench",
            "run",
            "r",
            "build",
            "b",
            "check",
            "c",
            "clippy",
            "doc",
            "d",
            "miri",
            "tarpaulin",
            "llvm-cov",
            "mutants",
            "install",
            "xtask",
        ],
    ),
    ("go", &["test", "run", "generate"]),
    ("npm", &["test", "t", "run", "run-script", "start", "exec", "install", "i", "ci"]),
    ("pnpm", &["test", "t", "run", "start", "exec", "install", "i", "dlx"]),
    ("yarn", &["test", "run", "start", "exec", "install", "dlx"]),
    ("npx", &[]),
    ("deno", &["test", "run", "task", "bench"]),
    ("bun", &["test", "run", "x", "install"]),
    ("dotnet", &["test", "run", "build", "vstest"]),
    ("swift", &["test", "run", "build"]),
    ("zig", &["test", "run", "build"]),
    ("mix", &["test", "run", "compile"]),
    ("stack", &["test", "run", "build", "exec"]),
    ("cabal", &["test", "run", "build", "exec"]),
    ("bundle", &["exec"]),
    ("composer", &["test", "run", "run-script", "exec", "install"]),
    ("poetry", &["run"]),
    ("uv", &["run"]),
    ("pipenv", &["run"]),
    ("hatch", &["run", "test"]),
    ("bazel", &["test", "run", "build"]),
    ("meson", &["test", "compile"]),
    ("jest", &[]),
    ("vitest", &[]),
    ("mocha", &[]),
    ("ava", &[]),
    ("playwright", &[]),
    ("cypress", &[]),
    ("pytest", &[]),
    ("py.test", &[]),
    ("tox", &[]),
    ("nox", &[]),
    ("nose2", &[]),
    ("behave", &[]),
    ("rspec", &[]),
    ("rake", &[]),
    ("cucumber", &[]),
    ("phpunit", &[]),
    ("prove", &[]),
    ("mvn", &[]),
    ("gradle", &[]),
    ("ant", &[]),
    ("sbt", &[]),
    ("lein", &[]),
    ("rebar3", &[]),
    ("ctest", &[]),
    ("ninja", &[]),
    ("make", &[]),
    ("gmake", &[]),
    ("just", &[]),
    ("task", &[]),
];

/// Runners that read only the file or folder in one of `FILE_OPTIONS`, if that option is given.
const BY_FILE: &[&str] = &["make", "gmake", "just"];
const FILE_OPTIONS: &[&str] = &["-f", "-C", "--file", "--directory", "--makefile", "--justfile"];

/// A program that executes the file named by its first argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interpreter {
    Shell,
    Fish,
    Python,
    Node,
    Ruby,
    Perl,
    Php,
    Lua,
    Awk,
    /// An interpreter without options that matter for this search.
    Other,
}

/// Interpreters by name, except shells.
const INTERPRETERS: &[(&str, Interpreter)] = &[
    ("python", Interpreter::Python),
    ("pypy", Interpreter::Python),
    ("node", Interpreter::Node),
    ("nodejs", Interpreter::Node),
    ("ts-node", Interpreter::Node),
    ("tsx", Interpreter::Node),
    ("ruby", Interpreter::Ruby),
    ("perl", Interpreter::Perl),
    ("php", Interpreter::Php),
    ("lua", Interpreter::Lua),
    ("awk", Interpreter::Awk),
    ("fish", Interpreter::Fish),
    ("Rscript", Interpreter::Other),
    ("tclsh", Interpreter::Other),
    ("guile", Interpreter::Other),
    ("bats", Interpreter::Other),
    ("source", Interpreter::Other),
    (".", Interpreter::Other),
];

impl Interpreter {
    /// Returns the interpreter with this name, without its version: `python3.12` is Python.
    fn named(name: &str) -> Option<Self> {
        let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let plain = if plain.is_empty() { name } else { plain };
        let known = INTERPRETERS.iter().find(|(known, _)| *known == plain).map(|(_, interpreter)| *interpreter);
        if is_shell(plain) { Some(Self::Shell) } else { known }
    }

    /// Returns the options after which the next argument is the option's value.
    fn options_with_value(self) -> &'static [&'static str] {
        match self {
            Self::Shell => &["-o", "-O", "+o", "+O"],
            Self::Python => &["-W", "-X"],
            Self::Node => &["-r", "--require", "--import", "--loader"],
            Self::Ruby => &["-I", "-r"],
            Self::Perl => &["-I"],
            Self::Php => &["-c", "-d"],
            Self::Lua => &["-l"],
            Self::Fish | Self::Awk | Self::Other => &[],
        }
    }

    /// Returns true if the next argument is the code itself. The option is alone or the last of several flags, as in
    /// `sh -ec` and `perl -ne`.
    fn takes_code(self, argument: &str) -> bool {
        let bundle = argument.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let ends = |flags: &[char]| bundle.is_some_and(|bundle| bundle.ends_with(flags));
        match self {
            Self::Shell | Self::Fish | Self::Python => ends(&['c']),
            Self::Perl | Self::Ruby | Self::Lua => ends(&['e', 'E']),
            Self::Node => matches!(argument, "-e" | "-p" | "--eval" | "--print"),
            Self::Php => argument == "-r",
            Self::Awk | Self::Other => false,
        }
    }
}

/// Python modules that do not execute code of a project.
const HARMLESS_MODULES: &[&str] = &["json.tool", "venv", "zipfile", "tarfile", "base64", "http.server", "this"];

/// The context of a command: the hold-out folders, each with a final slash, and the initial working directory.
#[derive(Clone, Copy)]
pub(super) struct CommandSite<'a> {
    pub(super) sealed: &'a [String],
    pub(super) workdir: &'a str,
}

/// Returns the commands that execute code of the project. Skips `subject` and its arguments.
pub(super) fn executions(words: &[Word<'_>], site: CommandSite<'_>) -> Vec<Execution> {
    let mut found = Vec::new();
    // The working directory of each subshell; `None` if it is unknown.
    let mut bases: Vec<Option<String>> = vec![resolved("", site.workdir)];
    for command in commands(words) {
        bases.truncate(command.depth + 1);
        while bases.len() <= command.depth {
            bases.push(bases.last().cloned().flatten());
        }
        let directory = Directory { sealed: site.sealed, base: bases[command.depth].as_deref() };
        match command.name.text {
            "cd" => bases[command.depth] = command.moved(directory),
            SUBJECT => {}
            _ => found.extend(command.executed(directory)),
        }
    }
    found
}

/// Returns true if one of the commands is `subject`.
pub(super) fn calls_subject(words: &[Word<'_>]) -> bool {
    words.iter().any(|word| word.role == Role::Program && word.text == SUBJECT)
}

/// The name of a program, and its arguments.
struct Command<'a> {
    name: Word<'a>,
    arguments: Vec<&'a str>,
    depth: usize,
}

fn commands<'a>(words: &[Word<'a>]) -> Vec<Command<'a>> {
    let mut commands: Vec<Command<'a>> = Vec::new();
    for word in words {
        match word.role {
            Role::Program => commands.push(Command { name: *word, arguments: Vec::new(), depth: word.depth }),
            Role::Argument => {
                // The arguments after a command substitution belong to the command that contains the substitution.
                let around = commands.iter_mut().rev().find(|command| command.depth <= word.depth);
                around.into_iter().for_each(|command| command.arguments.push(word.text));
            }
            Role::Other => {}
        }
    }
    commands
}

/// Who owns a path.
#[derive(Debug, PartialEq, Eq)]
enum Owner {
    Project,
    Sealed,
    Unknown,
}

/// The hold-out folders, and the directory in which a command starts (`None` if it is unknown).
#[derive(Clone, Copy)]
struct Directory<'a> {
    sealed: &'a [String],
    base: Option<&'a str>,
}

impl Directory<'_> {
    /// Returns who owns a path that a command in this directory names.
    fn owner(self, path: &str) -> Owner {
        let path = ["$PWD/", "${PWD}/"].iter().find_map(|here| path.strip_prefix(here)).unwrap_or(path);
        let is_known =
            !path.is_empty() && !path.starts_with(['/', '~', '-', '+']) && !path.contains(['$', '*', '?', '%']);
        let found = self.base.filter(|_| is_known).and_then(|base| resolved(base, path));
        match found {
            None => Owner::Unknown,
            Some(path) if self.sealed.iter().any(|folder| format!("{path}/").starts_with(folder.as_str())) => {
                Owner::Sealed
            }
            Some(_) => Owner::Project,
        }
    }
}

impl Command<'_> {
    /// Returns the working directory after a `cd`. `None` if it is unknown.
    fn moved(&self, from: Directory<'_>) -> Option<String> {
        let [to] = self.arguments[..] else { return None };
        let is_known = !to.starts_with(['/', '~', '-']) && !to.contains('$');
        from.base.filter(|_| is_known).and_then(|base| resolved(base, to))
    }

    fn executed(&self, directory: Directory<'_>) -> Option<Execution> {
        let name = match self.name.text {
            "[sys.executable" => "python",
            name if name.starts_with('/') => name.rsplit('/').next().unwrap_or(name),
            name => name,
        };
        if self.arguments.iter().any(|argument| matches!(*argument, "--version" | "--help")) {
            return None;
        }
        let is_sealed = |path: &str| directory.owner(path) == Owner::Sealed;
        let is_projects = |path: &str| directory.owner(path) == Owner::Project;
        let is_over_holdouts = self.arguments.iter().any(|argument| is_sealed(argument));
        let Span { start, end } = self.name.span;
        let found = |what: String| Some(Execution { what, at: start..end, is_over_holdouts });
        if name.contains('/') {
            return if is_projects(name) { found(name.to_owned()) } else { None };
        }
        if let Some(sub) = runs(name, &self.arguments) {
            let is_exempt = BY_FILE.contains(&name) && self.is_by_file(is_sealed);
            return if is_exempt { None } else { found(format!("{name} {sub}").trim_end().to_owned()) };
        }
        match self.operand(Interpreter::named(name)?)? {
            Operand::Module(module) if HARMLESS_MODULES.contains(&module) => None,
            Operand::Module(module) => found(format!("{name} -m {module}")),
            Operand::Tests => found(format!("{name} --test")),
            Operand::File(file) if is_projects(file) => found(format!("{name} {file}")),
            Operand::File(_) => None,
        }
    }

    fn is_by_file(&self, is_sealed: impl Fn(&str) -> bool) -> bool {
        self.arguments.windows(2).any(|pair| FILE_OPTIONS.contains(&pair[0]) && is_sealed(pair[1]))
    }

    /// Returns what an interpreter executes. `None` if the code is in the command itself or comes from standard input.
    fn operand(&self, interpreter: Interpreter) -> Option<Operand<'_>> {
        if interpreter == Interpreter::Awk {
            return self.arguments.windows(2).find(|pair| pair[0] == "-f").map(|pair| Operand::File(pair[1]));
        }
        let valued = interpreter.options_with_value();
        let mut arguments = self.arguments.iter().copied();
        while let Some(argument) = arguments.next() {
            let bundle = argument.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            match argument {
                "--test" if interpreter == Interpreter::Node => return Some(Operand::Tests),
                _ if interpreter.takes_code(argument) => return None,
                _ if interpreter == Interpreter::Python && bundle.is_some_and(|bundle| bundle.ends_with('m')) => {
                    return arguments.next().map(Operand::Module);
                }
                _ if valued.contains(&argument) => drop(arguments.next()),
                _ if argument.starts_with(['-', '+']) => {}
                _ => return Some(Operand::File(argument)),
            }
        }
        None
    }
}

/// What an interpreter executes.
enum Operand<'a> {
    File(&'a str),
    Module(&'a str),
    Tests,
}

/// Returns the subcommand that executes code of the project. Empty if every subcommand of the runner executes it;
/// `None` if nothing is executed.
fn runs<'a>(name: &str, arguments: &[&'a str]) -> Option<&'a str> {
    let (_, subcommands) = RUNNERS.iter().find(|(runner, _)| *runner == name)?;
    if subcommands.is_empty() {
        return Some("");
    }
    let is_option = |argument: &str| argument.starts_with(['-', '+']);
    let mut bare = arguments.iter().enumerate().filter(|(_, argument)| !is_option(argument));
    let (at, first) = bare.next()?;
    // In `npm --prefix app test`, the first argument that is not an option may be the value of an option.
    let second = bare.next().filter(|_| at > 0 && arguments[at - 1].starts_with('-')).map(|(_, second)| second);
    [Some(first), second].into_iter().flatten().find(|word| subcommands.contains(word)).copied()
}

#[cfg(test)]
mod tests;
