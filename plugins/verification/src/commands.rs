//! The list of commands that a stage runs: those of the plan, and those that the operator's `[verify]` adds (decision verify-contract).

use crate::failure::Code;
use crate::settings::{Phase, Settings};
use glovebox_plugin_sdk::exec;
use glovebox_plugin_sdk::plan::Problem;

/// Where a command comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The plan, or the phase `planner` that completes it. Reported as explicit.
    Plan,
    /// The phase `worker`. Reported as automatic.
    Worker,
}

impl Source {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "explicit",
            Self::Worker => "auto",
        }
    }
}

/// One command of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    /// The command as written.
    pub(crate) line: String,
    /// Program and arguments; empty if only a shell could run the command.
    pub(crate) words: Vec<String>,
    pub(crate) source: Source,
    /// True if the command is in the verify contract.
    pub(crate) is_operators: bool,
    /// True if the command is a substitute for commands that were dropped.
    pub(crate) stands_in: bool,
}

impl Command {
    /// Creates a command of the plan. `words` is empty if only a shell could run it.
    pub(crate) fn planned(line: &str, words: Vec<String>) -> Self {
        Self { line: line.trim().to_owned(), words, source: Source::Plan, is_operators: false, stands_in: false }
    }

    /// Creates a command of the operator. The host has checked its form.
    fn added(line: &str, source: Source) -> Self {
        Self { source, ..Self::planned(line, exec::words(line).unwrap_or_default()) }
    }

    /// Returns why the command cannot be started, or `None` if it can.
    pub(crate) fn fault(&self) -> Option<Code> {
        self.words.is_empty().then_some(Code::UnsupportedFormat)
    }
}

/// The commands in order, and those that were left out because of a limit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Commands {
    pub(crate) list: Vec<Command>,
    pub(crate) left_out: Vec<String>,
    /// Commands of the verify contract that were left out because the plan's commands reach `max_commands`.
    pub(crate) crowded_out: Vec<String>,
}

impl Commands {
    /// Adds the commands of the settings to those of the plan. Without settings, the plan's commands are not changed.
    ///
    /// # Errors
    /// There is no command to run, or a command of the plan is not allowed for the stage's role.
    pub(crate) fn complete(
        planned: Vec<Command>,
        settings: Option<&Settings>,
        role: Option<&str>,
    ) -> Result<Self, Problem> {
        let is_docs_only = role == Some(DOCS_ROLE);
        if let Some(other) = planned.iter().find(|command| is_docs_only && !is_of_docs(&command.words)) {
            let reason = format!("verification command not allowed for the role {DOCS_ROLE}: {}", other.line);
            return Err(Problem::new("verification/role", reason));
        }
        let has_plan = !planned.is_empty();
        let mut commands = Self { list: planned, ..Self::default() };
        let Some(settings) = settings else { return Ok(commands) };
        let allows = |line: &&String| !is_docs_only || is_of_docs(&exec::words(line).unwrap_or_default());
        if commands.list.is_empty() || settings.augment_nonempty {
            commands.add(&settings.planner, Source::Plan, allows);
        }
        commands.add(&settings.worker, Source::Worker, allows);
        // A command for which one phase has no room may have been added by the other phase.
        let lines = commands.lines();
        commands.left_out.retain(|line| !lines.contains(line));
        let asked: Vec<_> = settings.contract().map(|line| exec::words(line).unwrap_or_default()).collect();
        for command in &mut commands.list {
            command.is_operators = asked.contains(&command.words);
        }
        if has_plan && !commands.left_out.is_empty() {
            let alone = Self::complete(Vec::new(), Some(settings), role).map(|alone| alone.lines()).unwrap_or_default();
            let is_asked = |line: &&String| alone.contains(line) && settings.contract().any(|asked| asked == *line);
            commands.crowded_out = commands.left_out.iter().filter(is_asked).cloned().collect();
        }
        match commands.list.is_empty() {
            true => Err(Problem::new(
                "verification/no-commands",
                "no verification command: the plan has none, and `[verify]` adds none for this change",
            )),
            false => Ok(commands),
        }
    }

    /// Adds the commands of the verify contract. If the list is still empty, adds the fallback commands for the kind of project.
    fn add(&mut self, phase: &Phase, source: Source, allows: impl Fn(&&String) -> bool) {
        let mut room = phase.commands_max;
        self.add_all(&phase.contract, source, &mut room, &allows);
        if self.list.is_empty() {
            self.add_all(&phase.fallback, source, &mut room, &allows);
        }
    }

    fn add_all(&mut self, lines: &[String], source: Source, room: &mut usize, allows: impl Fn(&&String) -> bool) {
        for line in lines.iter().filter(allows) {
            let command = Command::added(line, source);
            if self.list.iter().any(|known| known.words == command.words) {
                continue;
            }
            if *room == 0 {
                if !self.left_out.contains(line) {
                    self.left_out.push(command.line);
                }
                continue;
            }
            *room -= 1;
            self.list.push(command);
        }
    }

    /// Adds the fallback commands that were not tried yet, after all commands were dropped. Returns false if the list is still empty.
    pub(crate) fn fall_back(&mut self, settings: &Settings, tried: &[String]) -> bool {
        let untried = settings.worker.fallback.iter().filter(|line| !tried.contains(line));
        let stand_in = |line: &String| Command { stands_in: true, ..Command::added(line, Source::Worker) };
        let untried: Vec<Command> = untried.map(stand_in).collect();
        self.list.extend(untried.into_iter().take(settings.worker.commands_max));
        !self.list.is_empty()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.list.iter().map(|command| command.line.clone()).collect()
    }
}

/// Role of stages that change only documents (decision verify-contract).
const DOCS_ROLE: &str = "docser";
/// Programs that check documents.
const DOCS_PROGRAMS: [&str; 8] =
    ["markdownlint", "markdownlint-cli2", "mdl", "vale", "prettier", "cspell", "codespell", "lychee"];
/// Names of scripts and targets that check. They are also recognized as the first part of a name such as `lint:docs`.
const CHECKS: [&str; 6] = ["check", "docs", "format", "lint", "spell", "typecheck"];

/// Returns true if a command only checks documents or code: `pnpm run check`, `make lint`, `cargo doc`.
fn is_of_docs(words: &[String]) -> bool {
    let mut words = words.iter().map(String::as_str);
    let (program, mut first) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if matches!(program, "npm" | "pnpm" | "yarn" | "bun") && first == "run" {
        first = words.next().unwrap_or_default();
    }
    let is_check = |name: &str| CHECKS.contains(&name.split([':', '-']).next().unwrap_or_default());
    match program {
        "npm" | "pnpm" | "yarn" | "bun" => is_check(first),
        // All further words are targets too.
        "make" | "just" => is_check(first) && words.all(is_check),
        "cargo" => matches!(first, "check" | "doc" | "fmt"),
        other => DOCS_PROGRAMS.contains(&other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    fn phase(contract: &[&str], fallback: &[&str]) -> Phase {
        Phase { contract: owned(contract), fallback: owned(fallback), commands_max: 2 }
    }

    fn settings(planner: Phase, worker: Phase) -> Settings {
        Settings { planner, worker, ..Settings::default() }
    }

    fn planned(lines: &[&str]) -> Vec<Command> {
        lines.iter().map(|line| Command::added(line, Source::Plan)).collect()
    }

    fn check(plan: &[&str], settings: &Settings, role: Option<&str>, expected: &[&str]) {
        let commands = Commands::complete(planned(plan), Some(settings), role);
        let lines = commands.map(|commands| {
            commands.list.iter().map(|command| format!("{} {}", command.source.as_str(), command.line)).collect()
        });
        assert_eq!(lines, Ok(owned(expected)));
    }

    #[test]
    fn completes_a_plan() {
        let both = settings(phase(&["a 1"], &["f"]), phase(&["b 1", "a 1"], &["f"]));
        check(&[], &both, None, &["explicit a 1", "auto b 1"]);
        check(&["p"], &both, None, &["explicit p", "auto b 1", "auto a 1"]);
        check(&["b  1"], &both, None, &["explicit b  1", "auto a 1"]);
        let augmenting = Settings { augment_nonempty: true, ..both };
        check(&["p"], &augmenting, None, &["explicit p", "explicit a 1", "auto b 1"]);
    }

    #[test]
    fn falls_back_when_there_is_nothing_else() {
        check(&[], &settings(phase(&[], &[]), phase(&[], &["f", "g"])), None, &["auto f", "auto g"]);
        check(&["p"], &settings(phase(&[], &[]), phase(&[], &["f"])), None, &["explicit p"]);
        let nothing = Commands::complete(Vec::new(), Some(&settings(phase(&[], &[]), phase(&[], &[]))), None);
        assert!(nothing.is_err());
    }

    #[test]
    fn adds_no_more_than_the_bound() {
        let many = settings(phase(&[], &[]), phase(&["a", "b", "c", "d"], &[]));
        let commands = Commands::complete(Vec::new(), Some(&many), None).unwrap();
        assert_eq!((commands.lines(), commands.left_out), (owned(&["a", "b"]), owned(&["c", "d"])));
        let both = settings(phase(&["a", "b", "c", "d", "e"], &[]), phase(&["a", "b", "c", "d", "e"], &[]));
        let commands = Commands::complete(Vec::new(), Some(&both), None).unwrap();
        assert_eq!((commands.lines(), commands.left_out), (owned(&["a", "b", "c", "d"]), owned(&["e"])));
    }

    #[test]
    fn documents_get_checks_alone() {
        let of_all = settings(phase(&[], &[]), phase(&["pnpm run check", "pnpm run test", "cargo doc"], &[]));
        check(&[], &of_all, Some("docser"), &["auto pnpm run check", "auto cargo doc"]);
        assert!(Commands::complete(planned(&["cargo test"]), Some(&of_all), Some("docser")).is_err());
        for line in ["npm run lint:docs", "make docs", "vale README.md", "yarn format"] {
            assert!(is_of_docs(&exec::words(line).unwrap()), "{line}");
        }
        for line in ["npm test", "make", "make docs test", "cargo run", "sh check", "npm run checkout"] {
            assert!(!is_of_docs(&exec::words(line).unwrap()), "{line}");
        }
    }
}
