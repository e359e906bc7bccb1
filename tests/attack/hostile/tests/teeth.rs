//! Checks that the attacks work: without a sandbox they succeed, and the witnesses see it.
//!
//! Only attacks that damage nothing except canaries run here. If a row were also blocked without a sandbox, its result
//! in a sandbox would not be a proof.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

use glovebox_hostile::battery;
use glovebox_hostile::evaluate::{EvaluatedRow, Verdict};
use glovebox_hostile::host_fixture::HostFixture;
use glovebox_hostile::row::{Limits, Payload, Row, Source};
use glovebox_hostile::rows;
use glovebox_hostile::target::{
    AttackCommand, Change, CommandResult, Confinement, Ending, NotRun, Program, Target, Tier,
};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A target without a sandbox: commands are children of this test in the workspace.
struct Nothing;

struct Open {
    project: PathBuf,
}

impl Confinement for Nothing {
    type Target = Open;

    fn tier(&self) -> Tier {
        Tier::Unconfined
    }

    fn open(&self, fixture: &HostFixture, _: &Limits) -> Result<Open, String> {
        Ok(Open { project: fixture.project() })
    }
}

impl Target for Open {
    fn project(&self) -> PathBuf {
        self.project.clone()
    }

    fn run(&mut self, attack: &AttackCommand) -> Result<CommandResult, NotRun> {
        let mut command = match &attack.program {
            Program::Argv(words) => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                command
            }
            Program::Shell(text) => {
                let mut command = Command::new("/bin/sh");
                command.args(["-c", text]);
                command
            }
        };
        let output = command.env("SECRET", "x").current_dir(&self.project).stdin(Stdio::null()).output();
        let output = output.map_err(|error| error.to_string())?;
        let how = if output.status.code().is_some() { Ending::Exited } else { Ending::Signaled };
        Ok(CommandResult { how, code: output.status.code(), stdout: output.stdout, stderr: output.stderr, over: None })
    }

    fn end(self) -> Result<Vec<Change>, String> {
        Ok(Vec::new())
    }
}

fn run(ids: &[&str]) -> Vec<EvaluatedRow> {
    let table = rows::all();
    let named: Vec<Row> = ids.iter().map(|id| *table.iter().find(|row| row.id == *id).expect(id)).collect();
    let program = std::fs::read(env!("CARGO_BIN_EXE_glovebox-hostile")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let evaluated = battery::run(&Nothing, &program, folder.path(), &named, 1);
    assert_eq!(evaluated.len(), ids.len());
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "something was left behind");
    evaluated
}

fn check(ids: &[&str], expected: Verdict) {
    let wrong: Vec<String> = run(ids)
        .iter()
        .filter(|one| one.verdict != expected)
        .map(|one| format!("{}: {:?}, answer {:?}, witness {:?}", one.row.id, one.verdict, one.answer, one.witness))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn reading_succeeds_without_a_sandbox() {
    check(
        &[
            "read-key",
            "read-outside",
            "read-by-root",
            "read-by-climbing",
            "read-by-link",
            "list-home",
            "list-outside",
            "list-run",
            "holdout-read",
            "holdout-listed",
            "proc-environ",
            "proc-cmdline",
            "proc-list",
            "proc-fd",
            "sh-link",
            "sh-original",
            "environment",
            "sh-environment",
            "memfd-exec",
            "dev-shm",
        ],
        Verdict::Through,
    );
}

#[test]
fn writing_succeeds_without_a_sandbox_and_is_noticed() {
    check(
        &[
            "append-outside",
            "symlink-write",
            "symlink-folder",
            "hardlink-outside",
            "chmod-outside",
            "utimes-outside",
            "write-outside",
            "poison-cache",
            "sh-parent",
            "sh-no-space",
            "sh-quotes",
            "truncate-outside",
            "rename-outside",
        ],
        Verdict::Through,
    );
}

#[test]
fn other_processes_are_reached_without_a_sandbox() {
    check(&["stop", "oom-victim", "kill-host", "ptrace", "standing", "sysv-shm"], Verdict::Through);
    check(&["kill"], Verdict::Through);
    check(&["owner-signal"], Verdict::Through);
    check(&["renice-victim"], Verdict::Through);
}

#[test]
fn what_the_kernel_shares_is_reached_without_a_sandbox() {
    check(
        &[
            "cache-ask",
            "cache-evict",
            "cache-page-out",
            "cache-nowait",
            "cache-drop",
            "cache-submit",
            "thread-own-table",
            "range-own-table",
            "openat2-set-id",
            "init-status",
            "disk-unlinked",
        ],
        Verdict::Through,
    );
}

#[test]
fn what_was_left_is_found_without_a_sandbox() {
    check(
        &[
            "left-listener",
            "left-abstract",
            "left-counter",
            "left-segment",
            "left-queue",
            "left-semaphore",
            "left-files",
            "left-lock",
            "foreign-process",
        ],
        Verdict::Through,
    );
    // A remaining listener would hold the port as well.
    std::thread::sleep(std::time::Duration::from_secs(5));
    check(&["left-port"], Verdict::Through);
}

#[test]
fn listeners_notice_who_comes() {
    check(
        &[
            "unix-path",
            "unix-datagram",
            "unix-pair",
            "unix-abstract",
            "tcp-loopback",
            "udp-loopback",
            "tcp-network",
            "listen",
            "personality",
        ],
        Verdict::Through,
    );
}

#[test]
fn the_server_is_reached_without_a_sandbox() {
    check(
        &[
            "server-port",
            "server-socket",
            "server-token",
            "server-token-by-root",
            "server-token-by-link",
            "server-token-folder",
        ],
        Verdict::Through,
    );
    check(&["server-token-replace"], Verdict::Through);
}

#[test]
fn what_must_work_works_without_a_sandbox() {
    check(
        &["loopback", "unix-server", "pty", "threads", "fork", "temp-file", "devices-work", "proc-self", "machine"],
        Verdict::Works,
    );
}

#[test]
fn an_attack_that_does_not_run_is_not_called_blocked() {
    let row = Row::new("nonsense", Source::Required, "nothing", "nothing", Payload::Program(&["no-such-attack"]));
    let program = std::fs::read(env!("CARGO_BIN_EXE_glovebox-hostile")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let evaluated = battery::run(&Nothing, &program, folder.path(), &[row], 1);
    assert_eq!(evaluated[0].verdict, Verdict::Broken, "{evaluated:?}");
}

/// A sandbox that cannot be opened at first, or that its first attack breaks.
struct Failing {
    opened: AtomicUsize,
    by_attack: bool,
}

/// The sandbox, or why it fails.
struct Weak(Result<Open, NotRun>);

impl Confinement for Failing {
    type Target = Weak;

    fn tier(&self) -> Tier {
        Tier::Unconfined
    }

    fn open(&self, fixture: &HostFixture, limits: &Limits) -> Result<Weak, String> {
        match self.opened.fetch_add(1, Ordering::Relaxed) {
            0 if self.by_attack => Ok(Weak(Err(NotRun { reason: "it is gone".to_owned(), by_attack: true }))),
            0 => Err("no room".to_owned()),
            _ => Nothing.open(fixture, limits).map(|open| Weak(Ok(open))),
        }
    }
}

impl Target for Weak {
    fn project(&self) -> PathBuf {
        self.0.as_ref().map_or_else(|_| PathBuf::new(), Target::project)
    }

    fn run(&mut self, attack: &AttackCommand) -> Result<CommandResult, NotRun> {
        match &mut self.0 {
            Ok(open) => open.run(attack),
            Err(failed) => Err(failed.clone()),
        }
    }

    fn end(self) -> Result<Vec<Change>, String> {
        Ok(Vec::new())
    }
}

#[test]
fn what_the_machine_refused_is_tried_again_and_what_an_attack_broke_is_not() {
    let row = *rows::all().iter().find(|row| row.id == "read-outside").unwrap();
    let program = std::fs::read(env!("CARGO_BIN_EXE_glovebox-hostile")).unwrap();
    for (by_attack, opened, verdict) in [(false, 2, Verdict::Through), (true, 1, Verdict::Broken)] {
        let folder = tempfile::tempdir().unwrap();
        let confinement = Failing { opened: AtomicUsize::new(0), by_attack };
        let evaluated = battery::run(&confinement, &program, folder.path(), &[row], 1);
        assert_eq!((confinement.opened.into_inner(), evaluated[0].verdict), (opened, verdict), "{evaluated:?}");
    }
}

#[test]
fn every_row_names_an_attack_there_is() {
    let known = Command::new(env!("CARGO_BIN_EXE_glovebox-hostile")).output().unwrap();
    let known = String::from_utf8(known.stdout).unwrap();
    for row in battery::programs(&rows::all(), Tier::Full) {
        if let Payload::Program(words) = row.payload {
            assert!(known.lines().any(|name| name == words[0]), "{}: no attack `{}`", row.id, words[0]);
        }
    }
}
