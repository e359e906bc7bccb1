//! The programs that a command starts, as far as its text shows them, and the folders that its environment variables
//! add to the search paths of these programs.
//!
//! This is not a shell parser: text in quotes and substitutions is split into words too, so that a program is reported
//! rather than missed. The programs that a script, a task runner or an unknown program starts are not known, so any
//! program is assumed.

use std::collections::BTreeSet;

/// The programs that a command starts, and the folders and files that they load from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Loaded {
    readers: BTreeSet<&'static str>,
    /// True if the command starts a program that may start any other program.
    pub(super) is_any: bool,
    /// Additional folders in which Python looks for modules. All paths in this struct are in lower case.
    pub(super) folders: Vec<String>,
    /// Folders of `PATH` in which the command's programs are looked up.
    pub(super) path: Vec<String>,
    /// Folders that the command uses as home folder.
    pub(super) homes: Vec<String>,
    /// Files that environment variables of the command name.
    pub(super) files: Vec<String>,
}

/// Programs: their names without a version, their readers in `table`, and whether they start programs that the command
/// does not name.
#[rustfmt::skip]
const PROGRAMS: &[(&[&str], &[&str], bool)] = &[
    (&["python", "pypy", "ipython", "mypy", "ruff", "flake8", "black", "pylint", "pyright", "unittest"], &["Python"], false),
    (&["pytest", "py.test", "coverage"], &["Python", "pytest"], false),
    (&["tox", "nox", "hatch", "poetry", "pdm", "pipenv", "uv", "rye", "pre-commit", "pip"], &["Python", "pytest"], true),
    (&["node", "nodejs", "tsx", "ts-node", "tsc", "eslint", "deno"], &["Node"], false),
    (&["jest", "vitest", "mocha", "ava", "tap", "c8", "nyc", "playwright", "karma"], &["Node", "Node's test runners"], false),
    (&["npm", "npx", "yarn", "pnpm", "pnpx", "bun", "bunx", "corepack"], &["Node", "Node's test runners"], true),
    (&["go", "gofmt", "gotestsum", "staticcheck", "golangci-lint"], &["Go"], false),
    (&["cargo", "rustc", "cargo-nextest", "clippy-driver", "rustup"], &["Cargo"], false),
    (&["java", "javac", "mvn", "mvnw", "sbt", "ant", "kotlinc", "scala"], &["Java"], false),
    (&["gradle", "gradlew"], &["Java", "Gradle"], false),
    (&["make", "gmake", "nmake"], &["make"], true),
    (&["just"], &["just"], true),
    (&["ruby", "rspec", "bundle", "irb", "rake", "minitest"], &["Ruby"], false),
    (&["php", "phpunit", "composer", "pest"], &["PHP"], false),
    (&["perl", "prove"], &["Perl"], false),
    (&["rscript", "r"], &["R"], false),
    (&["dotnet", "msbuild", "nuget"], &[".NET"], false),
    (&["direnv", "mise", "asdf"], &["direnv and mise"], true),
];

/// Programs that load nothing from the workspace unless a file is named.
#[rustfmt::skip]
const PLAIN: &[&str] = &[
    "!", ".", "[", "[[", "awk", "basename", "bash", "break", "case", "cat", "cd", "chmod", "cmp", "command", "continue", "cp", "cut", "dash",
    "date", "diff", "dirname", "do", "done", "echo", "egrep", "elif", "else", "env", "esac", "eval", "exec", "exit", "export", "expr",
    "false", "fgrep", "fi", "find", "for", "function", "git", "grep", "gzip", "head", "if", "in", "jq", "kill", "ksh", "local", "ls",
    "mkdir", "mktemp", "mv", "nice", "nohup", "printf", "pwd", "read", "return", "rm", "rmdir", "sed", "seq", "set", "sh", "shift",
    "sleep", "sort", "source", "stat", "tail", "tar", "tee", "test", "then", "time", "timeout", "touch", "tr", "trap", "true", "uname", "uniq",
    "unset", "until", "unzip", "wait", "wc", "which", "while", "xargs", "zsh", "{", "}",
];
/// Programs whose argument is a program or a shell script.
const BEFORE_A_PROGRAM: &[&str] = &[
    "!", "command", "do", "elif", "else", "env", "eval", "exec", "if", "nice", "nohup", "then", "time", "timeout",
    "until", "while", "xargs", "{",
];
const SHELLS: &[&str] = &["bash", "dash", "ksh", "sh", "zsh", "source", "."];
/// Environment variables whose value names files that a program loads at its start, alone or within options.
const OF_FILES: &[&str] = &[
    "_JAVA_OPTIONS",
    "BASH_ENV",
    "CLASSPATH",
    "ENV",
    "GRADLE_OPTS",
    "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LD_AUDIT",
    "LD_PRELOAD",
    "MAKEFILES",
    "MAKEFLAGS",
    "MAVEN_OPTS",
    "NODE_OPTIONS",
    "NPM_CONFIG_USERCONFIG",
    "PERL5OPT",
    "PYTEST_ADDOPTS",
    "PYTHONSTARTUP",
    "RUBYOPT",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "GOFLAGS",
    "GOWORK",
    "SBT_OPTS",
];
/// Environment variables that list folders of modules.
const OF_MODULES: &[&str] = &["NODE_PATH", "PERL5LIB", "PYTHONHOME", "PYTHONPATH", "PYTHONUSERBASE", "RUBYLIB"];
const OF_HOMES: &[&str] = &["HOME", "XDG_CONFIG_HOME", "ZDOTDIR"];

impl Loaded {
    /// Reads a command that starts in this folder of the workspace.
    pub(super) fn find(argv: &[String], cwd: &str) -> Self {
        let mut loaded = Self { folders: vec![Part(cwd).plain()], ..Self::default() };
        let is_shell = |word: &String| SHELLS.contains(&Part(word).name());
        // For `sh -c`, the script is read. Otherwise the arguments are the command.
        let script = argv.first().filter(|word| is_shell(word)).and_then(|_| {
            let flag = argv.iter().position(|word| word.starts_with('-') && word.contains('c'))?;
            argv.get(flag + 1)
        });
        match script {
            Some(text) => loaded.read(Part(text)),
            None => loaded.read(Part(&argv.join(" "))),
        }
        loaded
    }

    /// Returns true if the command starts one of the programs of a reader.
    pub(super) fn has(&self, reader: &str) -> bool {
        self.readers.contains(reader)
    }

    fn read(&mut self, Part(text): Part<'_>) {
        let is_separator = |c: char| matches!(c, ';' | '&' | '|' | '(' | ')' | '\n' | '`');
        text.split(is_separator).for_each(|command| self.command(Part(command)));
    }

    /// Reads one command: its variables, and its programs at any position.
    fn command(&mut self, mut text: Part<'_>) {
        let (mut is_first, mut before) = (true, "");
        while let Some((word, rest)) = text.next_word() {
            text = Part(rest);
            if let Some((variable, value)) = word.split_once('=').filter(|(name, _)| Part(name).is_variable()) {
                self.variable(Part(variable), Part(value.trim_matches(['"', '\''])));
                continue;
            }
            let program = Part(word).name();
            let known = Part(program).known();
            if let Some((readers, starts_others)) = known {
                self.readers.extend(readers);
                self.is_any |= starts_others;
            }
            let passes_on = word.starts_with('-') || word.parse::<f64>().is_ok();
            // A script for a shell, a path such as `./x`, or an unknown program.
            let is_unknown = known.is_none() && (word.contains('/') || !PLAIN.contains(&program));
            self.is_any |= is_first && !passes_on && is_unknown;
            if before == "cd" {
                self.folders.push(Part(word).plain());
            }
            if let Some((folder, _)) = word.rsplit_once('/').filter(|_| word.ends_with(".py")) {
                self.folders.push(Part(folder).plain());
            }
            is_first &= passes_on || BEFORE_A_PROGRAM.contains(&program) || SHELLS.contains(&program);
            before = word;
        }
    }

    fn variable(&mut self, Part(variable): Part<'_>, Part(value): Part<'_>) {
        let folders = || {
            value.split(':').filter(|folder| !folder.is_empty() && *folder != "$PATH").map(|path| Part(path).plain())
        };
        if variable == "PATH" {
            self.path.extend(folders());
        } else if OF_MODULES.contains(&variable) {
            self.folders.extend(folders());
        } else if OF_HOMES.contains(&variable) {
            self.homes.push(Part(value).plain());
        } else if OF_FILES.contains(&variable) {
            // `-javaagent:x.jar`, `--require=./x.js`
            let parts = value.split(|c: char| c.is_whitespace() || matches!(c, '=' | ':' | '@' | ','));
            self.files.extend(parts.map(|path| Part(path).plain()).filter(|file| !file.is_empty()));
        }
    }
}

/// A part of a command's text.
#[derive(Clone, Copy)]
struct Part<'c>(&'c str);

impl<'c> Part<'c> {
    /// Returns the first word of a command and the rest. The quoted value of a variable belongs to its word; other
    /// quotes separate words.
    fn next_word(self) -> Option<(&'c str, &'c str)> {
        let is_gap = |c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '\'' | '[' | ']' | ',');
        let text = self.0.trim_start_matches(is_gap);
        let end = text.find(is_gap).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let quote = rest.chars().next().filter(|mark| matches!(mark, '"' | '\''));
        let quoted = quote.filter(|_| word.strip_suffix('=').is_some_and(|name| Part(name).is_variable()));
        let closed = quoted.and_then(|mark| rest[1..].find(mark)).map(|at| end + at + 2);
        (!word.is_empty()).then(|| text.split_at(closed.unwrap_or(end)))
    }

    /// Returns true for the name of a variable.
    fn is_variable(self) -> bool {
        !self.0.is_empty() && self.0.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    }

    /// Returns the name of the program in a word that may be a path.
    fn name(self) -> &'c str {
        self.0.rsplit('/').next().unwrap_or(self.0)
    }

    /// Returns the row of a program in the table. `python3.12` is found as `python`.
    fn known(self) -> Option<(&'static [&'static str], bool)> {
        let lower = self.0.to_ascii_lowercase();
        let bare = lower.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let row = PROGRAMS.iter().find(|(names, ..)| names.contains(&&*lower) || names.contains(&bare))?;
        Some((row.1, row.2))
    }

    /// Returns a path of the workspace in lower case, without `./`, `$PWD` and a final `/`. The root of the workspace
    /// is the empty string.
    fn plain(self) -> String {
        let lower = self.0.to_lowercase();
        let inside = ["$pwd", "${pwd}"].into_iter().find_map(|pwd| lower.strip_prefix(pwd)).unwrap_or(&lower);
        inside.split('/').filter(|name| !matches!(*name, "" | ".")).collect::<Vec<_>>().join("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Loaded {
        Loaded::find(&["sh".to_owned(), "-c".to_owned(), text.to_owned()], "")
    }

    #[test]
    fn programs_are_found_wherever_a_shell_would_start_them() {
        for (text, readers, is_any) in [
            ("cargo test -q", &["Cargo"][..], false),
            ("timeout 30 .venv/bin/python3.12 -m pytest", &["Python", "pytest"], false),
            ("x=$(node a.js); test \"$x\" = 1", &["Node"], false),
            ("A=1 env B=2 go test ./...", &["Go"], false),
            ("test -f a && ! grep -q b c | wc -l", &[], false),
            ("sh tests/check.sh", &[], true),
            ("bash -e ./run", &[], true),
            ("bin/check all", &[], true),
            ("judge --all", &[], true),
            ("make test", &["make"], true),
            ("if cargo build; then target/debug/x; fi", &["Cargo"], true),
        ] {
            let loaded = parse(text);
            assert_eq!(
                (loaded.readers.iter().copied().collect::<Vec<_>>(), loaded.is_any),
                (readers.to_vec(), is_any),
                "{text}"
            );
        }
    }

    #[test]
    fn folders_and_files_of_variables_are_paths_of_the_workspace() {
        assert_eq!(
            parse("NODE_OPTIONS=\"--no-warnings --require=./x.js\" node --test a.js").files,
            ["--no-warnings", "--require", "x.js"]
        );
        let loaded = parse("PYTHONPATH=./A:b/ PATH=$PWD/t:$PATH BASH_ENV=./e.sh python3 tools/x.py");
        assert_eq!(loaded.folders, ["", "a", "b", "tools"]);
        assert_eq!((&*loaded.path, &*loaded.files), (&["t".to_owned()][..], &["e.sh".to_owned()][..]));
    }
}
