//! Which commands execute code of the project: test runners and build tools by name, interpreters over a path, programs by path.
//!
//! What lies in a hold-out folder is sealed and is not the project's. What stands behind a variable, an alias or a program of
//! another name is not seen: the rule that asks is a friendly word, and no promise rests on it.

use super::words::{Role, Word, is_shell};
use crate::mending::resolved;

/// The command that starts the program under test apart from the verifier.
pub(super) const SUBJECT: &str = "subject";

/// A command that executes code of the project.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Execution {
    /// What is executed, such as `cargo test` or `sh src/prog.sh`.
    pub(super) what: String,
    /// Where its name begins and ends.
    pub(super) at: std::ops::Range<usize>,
    /// What it is to execute lies in a hold-out folder; what it reads beside that does not.
    pub(super) is_over_holdouts: bool,
}

/// Programs that execute what they find in a project, each with those of its subcommands that do; with none all do.
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

/// Runners that read nothing but the file or folder behind one of these options.
const BY_FILE: &[&str] = &["make", "gmake", "just"];
const FILE_OPTIONS: &[&str] = &["-f", "-C", "--file", "--directory", "--makefile", "--justfile"];

/// Programs that execute the file in their first argument.
const INTERPRETERS: &[&str] = &[
    "python", "node", "ruby", "perl", "php", "lua", "Rscript", "tclsh", "guile", "bats", "awk", "source", ".", "fish",
];
/// Options of theirs that take the next word.
const VALUED: &[(&str, &[&str])] = &[
    ("sh", &["-o", "-O", "+o", "+O"]),
    ("python", &["-W", "-X"]),
    ("node", &["-r", "--require", "--import", "--loader"]),
    ("ruby", &["-I", "-r"]),
    ("perl", &["-I"]),
    ("php", &["-c", "-d"]),
    ("lua", &["-l"]),
];
/// Modules of Python that execute nothing of a project.
const HARMLESS_MODULES: &[&str] = &["json.tool", "venv", "zipfile", "tarfile", "base64", "http.server", "this"];

/// Where commands stand: the folders with hold-outs, each with a final slash, and where the first command starts.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    pub(super) sealed: &'a [&'a str],
    pub(super) workdir: &'a str,
}

/// The commands among the words that execute code of the project, `subject` and its arguments aside.
pub(super) fn executions(words: &[Word<'_>], ground: Ground<'_>) -> Vec<Execution> {
    let mut found = Vec::new();
    // Where the shell is, for each subshell; none where that is not known.
    let mut bases: Vec<Option<String>> = vec![resolved("", ground.workdir)];
    for command in commands(words) {
        bases.truncate(command.depth + 1);
        while bases.len() <= command.depth {
            bases.push(bases.last().cloned().flatten());
        }
        let base = bases[command.depth].clone();
        match command.name.text {
            "cd" => bases[command.depth] = command.moved(base.as_deref()),
            SUBJECT => {}
            _ => found.extend(command.executed(ground.sealed, base.as_deref())),
        }
    }
    found
}

/// True when a command among the words is `subject`.
pub(super) fn calls_subject(words: &[Word<'_>]) -> bool {
    words.iter().any(|word| word.role == Role::Program && word.text == SUBJECT)
}

/// A program's name and its arguments.
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
                // The argument of a command around a substitution comes after the commands in it.
                let around = commands.iter_mut().rev().find(|command| command.depth <= word.depth);
                around.into_iter().for_each(|command| command.arguments.push(word.text));
            }
            Role::Other => {}
        }
    }
    commands
}

/// A path as far as it is known.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Project,
    Sealed,
    Unknown,
}

fn place(path: &str, sealed: &[&str], base: Option<&str>) -> Place {
    let path = ["$PWD/", "${PWD}/"].iter().find_map(|here| path.strip_prefix(here)).unwrap_or(path);
    let is_known = !path.is_empty() && !path.starts_with(['/', '~', '-', '+']) && !path.contains(['$', '*', '?', '%']);
    let found = base.filter(|_| is_known).and_then(|base| resolved(base, path));
    match found {
        None => Place::Unknown,
        Some(path) if sealed.iter().any(|folder| format!("{path}/").starts_with(*folder)) => Place::Sealed,
        Some(_) => Place::Project,
    }
}

impl Command<'_> {
    /// Where a `cd` leads.
    fn moved(&self, base: Option<&str>) -> Option<String> {
        let [to] = self.arguments[..] else { return None };
        let is_known = !to.starts_with(['/', '~', '-']) && !to.contains('$');
        base.filter(|_| is_known).and_then(|base| resolved(base, to))
    }

    fn executed(&self, sealed: &[&str], base: Option<&str>) -> Option<Execution> {
        let name = match self.name.text {
            "[sys.executable" => "python",
            name if name.starts_with('/') => name.rsplit('/').next().unwrap_or(name),
            name => name,
        };
        if self.arguments.iter().any(|argument| matches!(*argument, "--version" | "--help")) {
            return None;
        }
        let is_sealed = |path: &str| place(path, sealed, base) == Place::Sealed;
        let is_projects = |path: &str| place(path, sealed, base) == Place::Project;
        let is_over_holdouts = self.arguments.iter().any(|argument| is_sealed(argument));
        let at = self.name.span.start..self.name.span.end;
        let found = |what: String| Some(Execution { what, at: at.clone(), is_over_holdouts });
        if name.contains('/') {
            return if is_projects(name) { found(name.to_owned()) } else { None };
        }
        if let Some(sub) = runs(name, &self.arguments) {
            let is_exempt = BY_FILE.contains(&name) && self.is_by_file(is_sealed);
            return if is_exempt { None } else { found(format!("{name} {sub}").trim_end().to_owned()) };
        }
        match self.operand(interpreter(name)?)? {
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

    /// What an interpreter executes; none when the code stands in the command or comes from its input.
    fn operand(&self, language: &str) -> Option<Operand<'_>> {
        if language == "awk" {
            return self.arguments.windows(2).find(|pair| pair[0] == "-f").map(|pair| Operand::File(pair[1]));
        }
        let valued = VALUED.iter().find(|(name, _)| *name == language).map_or(&[][..], |(_, options)| *options);
        let mut arguments = self.arguments.iter().copied();
        while let Some(argument) = arguments.next() {
            let bundle = argument.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            match argument {
                "--test" if language == "node" => return Some(Operand::Tests),
                _ if is_inline(language, argument) => return None,
                _ if language == "python" && bundle.is_some_and(|bundle| bundle.ends_with('m')) => {
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

/// The language of an interpreter: python3.12 reads Python.
fn interpreter(name: &str) -> Option<&str> {
    let plain = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let plain = if plain.is_empty() { name } else { plain };
    match plain {
        "pypy" => Some("python"),
        "nodejs" | "ts-node" | "tsx" => Some("node"),
        _ if is_shell(plain) => Some("sh"),
        _ => INTERPRETERS.contains(&plain).then_some(plain),
    }
}

/// True for an option behind which the code itself stands, alone or as the last of several: `sh -ec`, `perl -ne`.
fn is_inline(language: &str, argument: &str) -> bool {
    let bundle = argument.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    let ends = |letters: &[char]| bundle.is_some_and(|bundle| bundle.ends_with(letters));
    match language {
        "sh" | "fish" | "python" => ends(&['c']),
        "perl" | "ruby" | "lua" => ends(&['e', 'E']),
        "node" => matches!(argument, "-e" | "-p" | "--eval" | "--print"),
        "php" => argument == "-r",
        _ => false,
    }
}

/// The subcommand with which a runner executes code of the project, empty for one that always does.
fn runs<'a>(name: &str, arguments: &[&'a str]) -> Option<&'a str> {
    let (_, subcommands) = RUNNERS.iter().find(|(runner, _)| *runner == name)?;
    if subcommands.is_empty() {
        return Some("");
    }
    let is_option = |argument: &str| argument.starts_with(['-', '+']);
    let mut bare = arguments.iter().enumerate().filter(|(_, argument)| !is_option(argument));
    let (at, first) = bare.next()?;
    // `npm --prefix app test`: the first word may be an option's value.
    let second = bare.next().filter(|_| at > 0 && arguments[at - 1].starts_with('-')).map(|(_, second)| second);
    [Some(first), second].into_iter().flatten().find(|word| subcommands.contains(word)).copied()
}

#[cfg(test)]
mod tests;
