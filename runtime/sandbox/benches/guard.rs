//! What guarding costs: a command beside a plain spawn, a stage's private copy beside plain reads of the same files.
//!
//! `cargo bench -p glovebox-sandbox` prints a table: medians of the thing and of its baseline, done in turn in the same run,
//! and their ratio. Nothing here passes or fails.

#![allow(clippy::unwrap_used)] // A benchmark may panic.

#[path = "../../../benches/table.rs"]
mod table;

use glovebox_sandbox::exec::{Command, ExecPolicy, Program, run};
use glovebox_sandbox::path::ScopePath;
use glovebox_sandbox::protect::Protected;
use glovebox_sandbox::scope::{Entry, Scope};
use glovebox_sandbox::stage::{Copy, Limits};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use table::{row, timed};

fn main() {
    let folder = tempfile::tempdir().unwrap();
    table::head();
    command(folder.path(), Program::Argv(vec!["true".to_owned()]), "true");
    command(folder.path(), Program::Shell("true".to_owned()), "sh -c true");
    for files in [10, 1_000, 5_000] {
        copy(folder.path(), files);
    }
}

fn command(folder: &Path, program: Program, name: &str) {
    let (root, scratch) = (folder.join("root"), folder.join("scratch"));
    fs::create_dir_all(&root).unwrap();
    fs::create_dir_all(&scratch).unwrap();
    let timeout = Duration::from_secs(60);
    let command = Command { program, cwd: ScopePath::parse("").unwrap(), env: vec![], stdin: None, timeout };
    let policy = ExecPolicy::default();
    let guarded = || timed(|| drop(run(&root, &scratch, &policy, &command, &AtomicBool::new(false)).unwrap()));
    let plain = || {
        timed(|| {
            let mut plain = std::process::Command::new("true");
            assert!(
                plain.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).status().unwrap().success()
            );
        })
    };
    row(&format!("guarded `{name}`"), 101, guarded, plain, "plain spawn of `true`");
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
            assert!(copy.changes(&Limits::default(), &Protected::default()).unwrap().is_empty());
            copy.remove().unwrap();
        })
    };
    let read =
        || timed(|| (0..files).for_each(|n| drop(fs::read(workspace.join(format!("d{}/f{n}", n / 100))).unwrap())));
    row(&format!("private copy of {files} files, compared, removed"), 7, stage, read, "reading the same files");
}
