//! Measures a jail with a command, with little and with much memory in this process. The baselines are a plain spawn,
//! and the same namespaces and mounts without the rest of the jail. Also measures a stage's private copy; its baseline
//! is plain reads of the same files.
//!
//! `cargo bench -p glovebox-jail` prints a table with the median of each operation, the median of its baseline, and
//! their ratio. Operation and baseline alternate in the same run. The benchmark never fails.

#![allow(clippy::unwrap_used)] // A benchmark may panic.

#[path = "guard/floor.rs"]
mod floor;
#[path = "../../../benches/processors.rs"]
mod processors;
#[path = "../../../benches/table.rs"]
mod table;

use glovebox_jail::exec::{Command, Program};
use glovebox_jail::jail::ExecPolicy;
use glovebox_jail::jail::{Jail, JailSetting, Source, wait_for_cleanup};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Entry, Scope};
use glovebox_record::{Limits, Network, Tier};
use glovebox_workspace::protect::Protected;
use glovebox_workspace::stage::{ChangeLimits, Copy};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use table::{median, print, row, timed};

/// Number of jails in one measurement of processor time.
const JAILS: u32 = 200;
const ROUNDS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [floor::ARGUMENT, folder] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return floor::repeat(JAILS, Path::new(folder));
    }
    let folder = tempfile::tempdir().unwrap();
    table::head();
    beside_the_kernel(&folder.path().join("kernel"));
    receipts(&folder.path().join("receipts"));
    for megabytes in [0, 200, 2_000] {
        // The memory is written to, so that the kernel allocates it.
        let held = vec![1_u8; megabytes << 20];
        for tier in [Tier::Full, Tier::Unconfined] {
            jails(folder.path(), tier, megabytes);
        }
        drop(std::hint::black_box(held));
    }
    for files in [10, 1_000, 5_000] {
        copy(folder.path(), files);
    }
}

/// Measures the processor time of a whole jail with `sh -c true`, of the kernel's part alone, and of a plain spawn.
fn beside_the_kernel(folder: &Path) {
    fs::create_dir_all(folder.join("lower")).unwrap();
    let (setting, source) = setting(folder, Tier::Full);
    let command = command(Program::Shell("true".to_owned()));
    let jail = || {
        for _ in 0..JAILS {
            let jail = Jail::open(&setting, source()).unwrap();
            assert_eq!(jail.run(&command, &AtomicBool::new(false)).unwrap().code, Some(0));
            jail.end().unwrap();
        }
        wait_for_cleanup();
    };
    let kernel = || {
        let mut own = std::process::Command::new(std::env::current_exe().unwrap());
        assert!(own.arg(floor::ARGUMENT).arg(folder).status().unwrap().success());
    };
    let spawn = || {
        (0..JAILS).for_each(|_| {
            assert!(std::process::Command::new("sh").args(["-c", "true"]).status().unwrap().success());
        });
    };
    let measured = |act: &dyn Fn()| {
        let before = processors::machine_cpu();
        act();
        (processors::machine_cpu() - before) / JAILS
    };
    let rounds: Vec<_> = (0..ROUNDS).map(|_| [measured(&jail), measured(&kernel), measured(&spawn)]).collect();
    let of = |index: usize| median(rounds.iter().map(|round| round[index]).collect());
    let name = "jail, `sh -c true`, end: processor";
    print(name, of(0), of(1), "the kernel's own: namespaces, mounts, filters, `sh -c true`");
    print(name, of(0), of(2), "plain spawn of `sh -c true`");
}

/// Measures a command in an existing jail with its serialized receipt, compared with the same command without a
/// receipt.
fn receipts(folder: &Path) {
    let (setting, source) = setting(folder, Tier::Full);
    let command = command(Program::Shell("true".to_owned()));
    let jail = Jail::open(&setting, source()).unwrap();
    let run = || jail.run(&command, &AtomicBool::new(false)).unwrap();
    run();
    let without = || timed(|| assert_eq!(run().code, Some(0)));
    let with = || {
        timed(|| {
            let line = jail.line(&command);
            let receipt = line.receipt("r".to_owned(), &run(), jail.status());
            assert!(serde_json::to_vec(&receipt).unwrap().len() > 100);
        })
    };
    row("`sh -c true` in a jail, with its receipt", 501, with, without, "the same without a receipt");
    let line = || timed(|| drop(std::hint::black_box(jail.line(&command))));
    row("the part of a receipt made before the start", 501, line, without, "`sh -c true` in a jail");
    jail.end().unwrap();
}

/// Measures a whole jail with one command, then the command `true` in an existing jail.
fn jails(folder: &Path, tier: Tier, megabytes: usize) {
    let folder = folder.join(format!("{tier}{megabytes}"));
    let (setting, source) = setting(&folder, tier);
    let command = command(Program::Argv(vec!["true".to_owned()]));
    let run = |jail: &Jail| assert_eq!(jail.run(&command, &AtomicBool::new(false)).unwrap().code, Some(0));
    let open = || Jail::open(&setting, source()).unwrap();
    let whole = || {
        timed(|| {
            let jail = open();
            run(&jail);
            jail.end().unwrap();
        })
    };
    row(&format!("jail `{tier}`, `true`, end; host of {megabytes} MB"), 51, whole, plain, "plain spawn of `true`");
    let jail = open();
    run(&jail);
    let again = || timed(|| run(&jail));
    row(
        &format!("`true` again in a jail `{tier}`; host of {megabytes} MB"),
        101,
        again,
        plain,
        "plain spawn of `true`",
    );
    jail.end().unwrap();
}

fn command(program: Program) -> Command {
    Command { program, cwd: ScopePath::root(), env: vec![], stdin: None, timeout: Duration::from_secs(60) }
}

/// Returns the settings of a jail over an empty workspace below `folder`.
fn setting(folder: &Path, tier: Tier) -> (JailSetting, impl Fn() -> Source) {
    for name in ["root", "upper", "attempt"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    let setting = JailSetting {
        tier,
        policy: ExecPolicy::default(),
        network: Network::None,
        limits: Limits::default(),
        inside: "/workspace".into(),
        inner: Vec::new(),
        kept: Vec::new(),
        hidden: Vec::new(),
        folder: folder.join("attempt"),
        pulse: glovebox_jail::pulse::Pulse::default(),
    };
    let (folder, jails) = (folder.to_owned(), AtomicU32::new(0));
    let source = move || match tier {
        Tier::Full => {
            // The kernel accepts a work folder only once.
            let work = folder.join(format!("work-{}", jails.fetch_add(1, Ordering::Relaxed)));
            fs::create_dir(&work).unwrap();
            Source::Overlay { lower: vec![folder.join("root")], upper: folder.join("upper"), work }
        }
        _ => Source::Directory(folder.join("root")),
    };
    (setting, source)
}

fn plain() -> Duration {
    timed(|| {
        let mut plain = std::process::Command::new("true");
        assert!(plain.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).status().unwrap().success());
    })
}

/// Measures creating, comparing and removing a private copy of small files.
fn copy(folder: &Path, files: usize) {
    let (workspace, at) = (folder.join(format!("w{files}")), folder.join(format!("c{files}")));
    for file in 0..files {
        let path = workspace.join(format!("d{}/f{file}", file / 100));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, [b'x'; 2000]).unwrap();
    }
    let everything = || vec![Entry::parse("./").unwrap()];
    let scope = Scope::new(everything(), everything(), vec![]);
    let stage = || {
        timed(|| {
            let copy = Copy::create(&workspace, &at, &scope).unwrap();
            assert!(copy.changes(&ChangeLimits::default(), &Protected::default()).unwrap().is_empty());
            copy.remove().unwrap();
        })
    };
    let read =
        || timed(|| (0..files).for_each(|n| drop(fs::read(workspace.join(format!("d{}/f{n}", n / 100))).unwrap())));
    row(&format!("private copy of {files} files, compared, removed"), 7, stage, read, "reading the same files");
}
