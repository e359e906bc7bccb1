//! What guarding costs: a jail and a command in it beside a plain spawn, with little and with much memory in this process; a
//! stage's private copy beside plain reads of the same files.
//!
//! `cargo bench -p glovebox-sandbox` prints a table: medians of the thing and of its baseline, done in turn in the same run,
//! and their ratio. Nothing here passes or fails.

#![allow(clippy::unwrap_used)] // A benchmark may panic.

#[path = "../../../benches/table.rs"]
mod table;

use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Entry, Scope};
use glovebox_record::{Limits, Network, Tier};
use glovebox_sandbox::exec::{Command, Program};
use glovebox_sandbox::jail::ExecPolicy;
use glovebox_sandbox::jail::{Jail, JailSetting, Source};
use glovebox_sandbox::protect::Protected;
use glovebox_sandbox::stage::{ChangeLimits, Copy};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use table::{row, timed};

fn main() {
    let folder = tempfile::tempdir().unwrap();
    table::head();
    for megabytes in [0, 200, 2_000] {
        // Written to, so that it is there.
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

/// A whole jail with one command, then commands in a jail that stands, of `true`.
fn jails(folder: &Path, tier: Tier, megabytes: usize) {
    let folder = folder.join(format!("{tier}{megabytes}"));
    for name in ["root", "upper", "work", "attempt"] {
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
    };
    let source = || match tier {
        Tier::Full => {
            Source::Overlay { lower: vec![folder.join("root")], upper: folder.join("upper"), work: folder.join("work") }
        }
        _ => Source::Directory(folder.join("root")),
    };
    let (program, timeout) = (Program::Argv(vec!["true".to_owned()]), Duration::from_secs(60));
    let command = Command { program, cwd: ScopePath::root(), env: vec![], stdin: None, timeout };
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

fn plain() -> Duration {
    timed(|| {
        let mut plain = std::process::Command::new("true");
        assert!(plain.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).status().unwrap().success());
    })
}

/// A private copy made, looked through and removed again, of small files.
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
