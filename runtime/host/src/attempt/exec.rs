//! The `exec` interface: runs host programs that were granted to the attempt.
//!
//! Shell text and argument lists are granted separately. A shell text must be exactly what the pipeline's author wrote. An argument
//! list must begin with the words of a granted prefix and must not contain shell operators (decision shell-or-argv). Every executed
//! command leaves a receipt, which this module creates.

mod grant;
mod live;
mod no_tests;
mod printed_class;
mod usage;

pub use grant::CommandSetting;
pub use live::{LiveOutput, LivePiece, OutputStream};

use crate::attempt::Attempt;
use crate::bindings::exec::{Captured, Command, Error, Exit, Host};
use crate::command_grant::CommandGrant;
use crate::progress::Progress;
use crate::stop::Stop;
use glovebox_jail::exec::{self as sandbox, ExecError, Program};
use glovebox_jail::lazy_jail::{LazyJail, StartOverError};
use glovebox_record::path::ScopePath;
use glovebox_record::{AttemptId, CommandEnding, LimitName, NoProof, Receipt, Refusal};
use glovebox_workspace::refusal::escaped;
use live::LiveCommand;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use usage::CommandUsage;
use wasmtime::Result;

/// Maximum length of a command's arguments, variables and working directory, in bytes. Every receipt contains them.
const WORDS_BYTES_MAX: usize = 64 << 10;
/// Key in `extra` under which guest and host pass the reason why a command that passed is not a proof.
const NO_PROOF: &str = "no-proof";
/// Key in `extra` of a command, without a value. Before the command runs, the files are reset to their state at the beginning of the
/// attempt.
const START_OVER: &str = "start-over";

/// The state of `exec`: what may run, and the record of every command of the call. Hooks and agent programs count as commands.
#[derive(Debug, Default)]
pub(crate) struct ExecState {
    /// Granted commands and their jail; `None` if the call may run no commands.
    pub(crate) setting: Option<Arc<CommandSetting>>,
    /// Number of commands started.
    pub(crate) started: u64,
    /// Resource usage of these commands.
    pub(crate) usage: CommandUsage,
    /// Receipts of these commands.
    pub(crate) receipts: Vec<Receipt>,
}

impl ExecState {
    pub(crate) fn new(setting: Option<CommandSetting>) -> Self {
        Self { setting: setting.map(Arc::new), ..Self::default() }
    }

    /// Returns the id of the next receipt.
    pub(super) fn next_id(&self, attempt: &AttemptId) -> String {
        format!("{attempt}/{}", self.receipts.len() + 1)
    }

    /// Adds the receipt of a command that has ended.
    pub(super) fn add(&mut self, receipt: Receipt, exit: &sandbox::Exit) {
        self.usage.add(exit, receipt.duration_ms);
        self.receipts.push(receipt);
    }
}

impl Host for Attempt {
    fn run(&mut self, command: Command) -> Result<Result<Exit, Error>> {
        self.call.observer.called("exec.run", |call| call.record(&command));
        self.call.meter.record_bytes(
            command.stdin.as_ref().map_or(0, Vec::len) + command.argv.iter().map(String::len).sum::<usize>(),
        );
        match self.run_command(command) {
            Ok(exit) => Ok(Ok(exit)),
            Err(CommandError::Answer(error)) => Ok(Err(error)),
            Err(CommandError::End(error)) => Err(error),
        }
    }
}

/// Why a command has no exit code.
enum CommandError {
    /// The guest gets an error.
    Answer(Error),
    /// The host ends the call, so that none of its changes is committed.
    End(wasmtime::Error),
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        CommandError::Answer(error)
    }
}

impl From<ExecError> for CommandError {
    fn from(problem: ExecError) -> Self {
        let code = match &problem {
            // Surviving processes could still write to the files.
            ExecError::Survivors { .. } | ExecError::Killed | ExecError::Lost(_) => {
                return CommandError::End(wasmtime::Error::new(problem));
            }
            ExecError::NotFound(_) => ErrorCode::NotFound,
            ExecError::Invalid(_) => ErrorCode::Invalid,
            ExecError::Io { .. } => ErrorCode::Io,
        };
        CommandError::Answer(error(code, problem.to_string()))
    }
}

impl Attempt {
    fn run_command(&mut self, mut command: Command) -> Result<Exit, CommandError> {
        check_size(&command)?;
        let program = self.granted_program(command.shell.take(), std::mem::take(&mut command.argv))?;
        self.check_may_start()?;
        let Some(setting) = self.exec.setting.as_ref().map(Arc::clone) else {
            return Err(error(ErrorCode::NotGranted, "the stage may not run commands").into());
        };
        let cwd = match command.cwd.as_str() {
            "" => setting.workdir.clone(),
            cwd => ScopePath::parse(cwd).map_err(|e| error(ErrorCode::Invalid, format!("cwd `{cwd}`: {e}")))?,
        };
        if command.extra.iter().any(|(key, _)| key == START_OVER) {
            self.reset(&setting.jail)?;
        }
        let jail = self.call.opened(&setting.jail).map_err(CommandError::End)?;
        let time = CommandTime::new(command.timeout_ms, self.call.limits.command_ms, self.call.remaining());
        let shown = escaped(&text_of(&program));
        let asked = sandbox::Command { program, cwd, env: command.env, stdin: command.stdin, timeout: time.timeout };
        let line = jail.line(&asked);
        self.exec.started += 1;
        self.call.report(Progress::CommandStarted(shown.clone()));
        let _call = self.call.observer.pulse().tool_call();
        let stored_bytes_max = self.call.limits.command_output_bytes;
        let running = LiveCommand { command: &asked, shown: &shown, stored_bytes_max };
        let (watcher, canceled) = (setting.live.as_ref(), &self.call.canceled);
        let begin = Instant::now();
        let mut exit = match self.call.ticker.while_guest_waits(|| running.run(&jail, watcher, canceled)) {
            Err(problem) if problem.is_lost() => {
                let receipt = line.lost_receipt(self.exec.next_id(&self.call.id), begin.elapsed(), jail.status());
                self.call.report(Progress::CommandEnded(shown, receipt.how, receipt.code, receipt.duration_ms));
                self.exec.receipts.push(receipt);
                return Err(problem.into());
            }
            ended => ended?,
        };
        shorten(&mut exit.stdout, self.call.limits.command_output_bytes);
        shorten(&mut exit.stderr, self.call.limits.command_output_bytes);
        let mut receipt = line.receipt(self.exec.next_id(&self.call.id), &exit, jail.status());
        if receipt.passed() {
            receipt.no_proof = no_proof(&command.extra, &asked.program, &exit);
        } else {
            receipt.printed_class = printed_class::printed_class(&exit);
        }
        self.call.report(Progress::CommandEnded(shown, receipt.how, receipt.code, receipt.duration_ms));
        let stop = self.ends_call(&receipt, time);
        self.exec.add(receipt.clone(), &exit);
        let answer = guest_exit(exit, &receipt);
        match stop {
            // The call is ended here and not at the next tick, because the guest could return a success before that.
            Some(stop) => Err(CommandError::End(wasmtime::Error::new(stop))),
            None => Ok(answer),
        }
    }

    /// Returns the reason if the end of a command also ends the call. A guest must not turn a command that a limit killed into a
    /// success, and partial writes of that command must not be committed (decision killed-stages-commit-nothing). A timeout that the
    /// guest chose does not end the call.
    fn ends_call(&self, receipt: &Receipt, time: CommandTime) -> Option<Stop> {
        match (receipt.how, receipt.over) {
            (CommandEnding::Canceled, _) => Some(Stop::Canceled),
            (CommandEnding::TimedOut, _) if self.call.remaining().is_zero() => Some(Stop::Limit(LimitName::WallMs)),
            (CommandEnding::TimedOut, _) => time.bound.map(Stop::Limit),
            (_, Some(over)) => Some(Stop::Limit(over)),
            _ => None,
        }
    }

    fn granted_program(&self, shell: Option<String>, argv: Vec<String>) -> Result<Program, Error> {
        let program = match (shell, argv.is_empty()) {
            (Some(text), true) => Program::Shell(text),
            (None, false) => Program::Argv(argv),
            _ => return Err(error(ErrorCode::Invalid, "expected either `argv` or `shell`")),
        };
        let grant = self.exec.setting.as_ref().map(|setting| &setting.grant);
        match grant.map_or(Err("the stage may not run commands".to_owned()), |grant| check(grant, &program)) {
            Ok(()) => Ok(program),
            Err(reason) => {
                let help = remedy(&program);
                self.call.refuse(Refusal::new("run", &text_of(&program), &reason, &help));
                Err(error(ErrorCode::NotGranted, format!("{reason}; to allow it: {help}")))
            }
        }
    }

    /// Discards the attempt's changes so far and ends all its processes. Earlier commands ran on the discarded files, so they are
    /// not a proof for the new ones. The time that this takes is not part of the wall time of the guest.
    fn reset(&mut self, jail: &LazyJail) -> Result<(), CommandError> {
        let started = self.call.wait_for_host(|| jail.reset());
        for receipt in &mut self.exec.receipts {
            receipt.no_proof.get_or_insert(NoProof::DroppedFiles);
        }
        started.map_err(|problem| match problem {
            StartOverError::TooOften => error(ErrorCode::Limit, problem.to_string()).into(),
            StartOverError::Impossible | StartOverError::InUse | StartOverError::NoJail(_) => {
                CommandError::End(wasmtime::Error::new(problem))
            }
        })
    }

    pub(crate) fn check_may_start(&self) -> Result<(), Error> {
        if self.call.is_canceled() {
            return Err(error(ErrorCode::Canceled, "the run was asked to stop"));
        }
        if self.exec.started >= self.call.limits.commands {
            return Err(error(ErrorCode::Limit, format!("limit `commands` ({}) reached", self.call.limits.commands)));
        }
        Ok(())
    }
}

/// The timeout of a command, and the limit from which it follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CommandTime {
    timeout: Duration,
    /// `None` if the guest's own timeout is shorter than every limit.
    bound: Option<LimitName>,
}

impl CommandTime {
    fn new(asked_ms: Option<u64>, command_ms: u64, remaining: Duration) -> Self {
        let command = Duration::from_millis(command_ms);
        let (most, bound) =
            if command <= remaining { (command, LimitName::CommandMs) } else { (remaining, LimitName::WallMs) };
        match asked_ms.map(Duration::from_millis) {
            Some(asked) if asked < most => Self { timeout: asked, bound: None },
            _ => Self { timeout: most, bound: Some(bound) },
        }
    }
}

/// Removes the middle of a stream that is longer than the limit. The jail has already limited the stream to the same number of bytes.
pub(crate) fn shorten(stream: &mut sandbox::CapturedOutput, bytes_max: u64) {
    let max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    if stream.head.len() + stream.tail.len() <= max {
        return;
    }
    // Without a gap, the end of the stream may be part of `head`.
    let whole: Vec<u8> = std::mem::take(&mut stream.head).into_iter().chain(std::mem::take(&mut stream.tail)).collect();
    stream.head = whole[..max.div_ceil(2)].to_vec();
    stream.tail = whole[whole.len() - max / 2..].to_vec();
    stream.truncated = true;
}

/// Returns the reason why a passed command is not a proof, or `None` if it is one. The guest can only give such a
/// reason; it cannot turn a command into a proof.
fn no_proof(extra: &[(String, String)], program: &Program, exit: &sandbox::Exit) -> Option<NoProof> {
    let is_stand_in = extra.iter().any(|(key, value)| key == NO_PROOF && value == NoProof::Replacement.as_str());
    let ran_no_test = || no_tests::ran_no_test(program, exit);
    is_stand_in.then_some(NoProof::Replacement).or_else(|| ran_no_test().then_some(NoProof::NoTests))
}

fn guest_exit(exit: sandbox::Exit, receipt: &Receipt) -> Exit {
    let captured = |stream: sandbox::CapturedOutput| Captured {
        head: stream.head,
        tail: stream.tail,
        total_bytes: stream.total_bytes,
        truncated: stream.truncated || stream.cut,
    };
    Exit {
        how: receipt.how.as_str().to_owned(),
        code: receipt.code,
        duration_ms: receipt.duration_ms,
        stdout: captured(exit.stdout),
        stderr: captured(exit.stderr),
        // The changed files are known only after the stage has ended, when the files of the stage are compared with
        // those of the workspace.
        changed: Vec::new(),
        receipt: receipt.id.clone(),
        extra: [
            ("tier", Some(receipt.tier.to_string())),
            (NO_PROOF, receipt.no_proof.map(|why| why.as_str().to_owned())),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect(),
    }
}

/// Checks the length of a command. The length of a shell text is not limited, because it is the pipeline author's own.
fn check_size(command: &Command) -> Result<(), Error> {
    let words = command.argv.iter().map(|word| word.len() + 1).sum::<usize>();
    let variables = command.env.iter().map(|(name, value)| name.len() + value.len() + 2).sum::<usize>();
    let bytes = words.saturating_add(variables).saturating_add(command.cwd.len());
    if bytes > WORDS_BYTES_MAX {
        let text =
            format!("the command's arguments and variables have {bytes} bytes, expected at most {WORDS_BYTES_MAX}");
        return Err(error(ErrorCode::Invalid, text));
    }
    Ok(())
}

fn check(grant: &CommandGrant, program: &Program) -> Result<(), String> {
    match program {
        _ if grant.any => Ok(()),
        Program::Shell(text) if grant.shell_texts.contains(text) => Ok(()),
        Program::Shell(_) => Err("the pipeline file does not contain this shell text".to_owned()),
        Program::Argv(argv) if !grant.argv_prefixes.iter().any(|prefix| begins(argv, prefix)) => {
            Err("the command is not granted".to_owned())
        }
        Program::Argv(argv) => match operator_in(argv) {
            Some(operator) => Err(format!("verification_command_unsupported_format: `{operator}` in an argument")),
            None => Ok(()),
        },
    }
}

fn begins(argv: &[String], prefix: &[String]) -> bool {
    !prefix.is_empty() && argv.len() >= prefix.len() && argv.iter().zip(prefix).all(|(word, granted)| word == granted)
}

/// Finds a shell operator in the arguments. No shell reads them, so an operator is either a mistake or an attack.
pub fn operator_in(argv: &[String]) -> Option<&'static str> {
    const OPERATORS: [&str; 9] = ["$(", "`", "&&", "||", "|", ";", "<", ">", "\n"];
    argv.iter().find_map(|word| OPERATORS.into_iter().find(|operator| word.contains(operator)))
}

fn remedy(program: &Program) -> String {
    let grant = |words: &[String]| {
        let words = words.iter().take(2).map(String::as_str).collect::<Vec<_>>().join(" ");
        format!("allowed_commands=\"{words}\"")
    };
    match program {
        Program::Shell(_) => "allowed_commands=\"*\"".to_owned(),
        Program::Argv(argv) if operator_in(argv).is_some() => "allowed_commands=\"*\"".to_owned(),
        Program::Argv(argv) => match started(argv) {
            [] => "allowed_commands=\"*\"".to_owned(),
            // A grant of a program that starts other programs would allow all of them.
            own if own.len() < argv.len() => format!("{} if the command starts without `{}`", grant(own), argv[0]),
            own => grant(own),
        },
    }
}

/// Programs whose purpose is to start another program.
const STARTERS: [&str; 16] = [
    "env", "nice", "ionice", "nohup", "timeout", "time", "xargs", "setsid", "stdbuf", "sudo", "doas", "chroot",
    "unshare", "busybox", "exec", "command",
];

/// Returns the command without leading [`STARTERS`] and their options, variables and numbers.
fn started(argv: &[String]) -> &[String] {
    let Some(first) = argv.first() else { return argv };
    let name = first.rsplit('/').next().unwrap_or(first);
    if !STARTERS.contains(&name) {
        return argv;
    }
    let is_own = |word: &String| {
        word.starts_with('-') || word.contains('=') || word.starts_with(|first: char| first.is_ascii_digit())
    };
    let rest = &argv[1..];
    started(&rest[rest.iter().take_while(|word| is_own(word)).count()..])
}

fn text_of(program: &Program) -> Cow<'_, str> {
    match program {
        Program::Shell(text) => text.into(),
        Program::Argv(argv) => argv.join(" ").into(),
    }
}

/// Codes of the errors that a guest gets.
#[derive(Clone, Copy)]
enum ErrorCode {
    Canceled,
    Invalid,
    Io,
    Limit,
    NotFound,
    NotGranted,
}

impl ErrorCode {
    fn as_str(self) -> &'static str {
        match self {
            Self::Canceled => "canceled",
            Self::Invalid => "invalid",
            Self::Io => "io",
            Self::Limit => "limit",
            Self::NotFound => "not-found",
            Self::NotGranted => "not-granted",
        }
    }
}

fn error(code: ErrorCode, message: impl Into<String>) -> Error {
    Error { code: code.as_str().to_owned(), message: message.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn commands_need_their_own_grant() {
        let grant = CommandGrant {
            shell_texts: vec!["make check | tail".to_owned()],
            argv_prefixes: vec![words("cargo test"), words("git status"), Vec::new()],
            any: false,
        };
        let argv = |text: &str, expected: bool| {
            assert_eq!(check(&grant, &Program::Argv(words(text))).is_ok(), expected, "{text}");
        };
        argv("cargo test", true);
        argv("cargo test --lib", true);
        argv("cargo tests", false);
        argv("cargo", false);
        argv("cargo build", false);
        argv("sh -c cargo", false);
        argv("cargo test $(id)", false);
        argv("cargo test a;b", false);
        argv("cargo test >out", false);
        let shell = |text: &str, expected: bool| {
            assert_eq!(check(&grant, &Program::Shell(text.to_owned())).is_ok(), expected, "{text}");
        };
        shell("make check | tail", true);
        shell("make check | tail ", false);
        shell("make check", false);
        shell("cargo test", false);
        let any = CommandGrant { any: true, ..CommandGrant::default() };
        assert!(check(&any, &Program::Shell("a | b".to_owned())).is_ok());
        assert!(check(&CommandGrant::default(), &Program::Argv(words("true"))).is_err());
    }

    #[test]
    fn a_command_that_would_swell_the_record_is_refused() {
        let command = |argv: Vec<String>, env: Vec<(String, String)>| Command {
            argv,
            shell: None,
            cwd: String::new(),
            env,
            stdin: None,
            timeout_ms: None,
            extra: Vec::new(),
        };
        let long = "x".repeat(WORDS_BYTES_MAX);
        assert!(check_size(&command(words("cargo test"), Vec::new())).is_ok());
        assert!(check_size(&command(vec!["cargo".to_owned(), long.clone()], Vec::new())).is_err());
        assert!(check_size(&command(vec![String::new(); WORDS_BYTES_MAX + 1], Vec::new())).is_err());
        assert!(check_size(&command(words("cargo"), vec![("A".to_owned(), long)])).is_err());
    }

    #[test]
    fn a_time_the_guest_asked_for_is_no_bound() {
        let check = |asked_ms, command_ms, remaining_ms, expected: (u64, Option<LimitName>)| {
            let time = CommandTime::new(asked_ms, command_ms, Duration::from_millis(remaining_ms));
            assert_eq!((time.timeout, time.bound), (Duration::from_millis(expected.0), expected.1), "{asked_ms:?}");
        };
        check(None, 500, 900, (500, Some(LimitName::CommandMs)));
        check(None, 900, 500, (500, Some(LimitName::WallMs)));
        check(None, u64::MAX, 500, (500, Some(LimitName::WallMs)));
        check(Some(100), 500, 900, (100, None));
        check(Some(500), 500, 900, (500, Some(LimitName::CommandMs)));
        check(Some(u64::MAX), 500, 900, (500, Some(LimitName::CommandMs)));
    }

    #[test]
    fn a_refusal_names_what_would_allow_it() {
        let remedy_of = |text: &str| remedy(&Program::Argv(words(text)));
        assert_eq!(remedy_of("cargo test --lib"), "allowed_commands=\"cargo test\"");
        assert_eq!(
            remedy_of("env PATH=agent:/bin bash x"),
            "allowed_commands=\"bash x\" if the command starts without `env`"
        );
        assert_eq!(
            remedy_of("/usr/bin/env -i nice -n 5 cargo test"),
            "allowed_commands=\"cargo test\" if the command starts without `/usr/bin/env`"
        );
        assert_eq!(remedy_of("env A=b"), "allowed_commands=\"*\"");
        assert_eq!(remedy_of("cargo test a|b"), "allowed_commands=\"*\"");
        assert_eq!(remedy(&Program::Shell("make".to_owned())), "allowed_commands=\"*\"");
    }
}
