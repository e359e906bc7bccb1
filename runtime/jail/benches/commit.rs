//! Measures the start and the commit of a stage: preparing an overlay over many files, without and with its jail
//! (baseline: a walk over the files), and finding, storing and applying changes (baseline: plain writes of the same
//! files).
//!
//! `cargo bench -p glovebox-jail --bench commit` prints a table with the median of each operation, the median of its
//! baseline, and their ratio. Operation and baseline alternate in the same run. The benchmark never fails.

#![allow(clippy::unwrap_used)] // A benchmark may panic.

#[path = "../../../benches/table.rs"]
mod table;

use glovebox_jail::jail::ExecPolicy;
use glovebox_jail::jail::{Jail, JailSetting, Source};
use glovebox_record::scope::{Entry, Scope};
use glovebox_record::{Digest, Limits, Network, Tier};
use glovebox_workspace::commit;
use glovebox_workspace::protect::Protected;
use glovebox_workspace::stage::{ChangeLimits, ViewOverrides, WorkspaceView};
use std::cell::Cell;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use table::{row, timed};

const FILE_BYTES: usize = 2_000;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    table::head();
    views(folder.path());
    for files in [10, 1_000, 10_000] {
        committing(folder.path(), files);
    }
}

fn entries(texts: &[&str]) -> Vec<Entry> {
    texts.iter().map(|text| Entry::parse(text).unwrap()).collect()
}

fn name(file: usize) -> String {
    format!("d{}/f{file}", file / 100)
}

/// Measures creating and removing a view over 50,000 files.
fn views(folder: &Path) {
    let workspace = folder.join("large");
    for file in 0..50_000 {
        let path = workspace.join(name(file));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
    fs::create_dir_all(workspace.join("scripts/scenarios")).unwrap();
    let hidden = || entries(&[".git/", ".glovebox/", "scripts/scenarios/"]);
    let usual = Scope::new(entries(&["./"]), entries(&["./"]), hidden());
    let narrow = Scope::new(entries(&["d1/", "d2/", "d3/f300"]), entries(&["d4/", "d5/f500"]), hidden());
    let at = folder.join("attempt");
    let started = || {
        let mut made = None;
        let start = || {
            let view = WorkspaceView::choose(&workspace, &at, &usual, &ViewOverrides::default()).unwrap();
            (jail(folder, &view), view)
        };
        let took = timed(|| made = Some(start()));
        let (jail, view) = made.unwrap();
        jail.end().unwrap();
        view.remove().unwrap();
        took
    };
    row("stage of 50,000 files: view and jail", 21, started, || timed(|| walk(&workspace)), "a stat of each file");
    for (scope, name) in [(&usual, "everything but hold-outs"), (&narrow, "a few folders and files")] {
        let made = Cell::new(Duration::ZERO);
        let view = || {
            let mut view = None;
            let choose = || WorkspaceView::choose(&workspace, &at, scope, &ViewOverrides::default()).unwrap();
            made.set(timed(|| view = Some(choose())));
            assert!(view.as_ref().unwrap().root().is_none());
            view.unwrap().remove().unwrap();
            made.get()
        };
        row(&format!("view of 50,000 files: {name}"), 21, view, || timed(|| walk(&workspace)), "a stat of each file");
    }
}

fn jail(folder: &Path, view: &WorkspaceView) -> Jail {
    let base = folder.canonicalize().unwrap();
    let (inside, scratch) = (base.join("project"), base.join("scratch"));
    [&inside, &scratch].into_iter().for_each(|path| fs::create_dir_all(path).unwrap());
    let setting = JailSetting {
        tier: Tier::Full,
        policy: ExecPolicy::default(),
        network: Network::None,
        limits: Limits::default(),
        hidden: vec![inside.clone()],
        inside,
        inner: Vec::new(),
        kept: Vec::new(),
        folder: scratch,
        pulse: glovebox_jail::pulse::Pulse::default(),
    };
    Jail::open(&setting, view.source().unwrap()).unwrap()
}

fn walk(folder: &Path) {
    let mut pending = vec![folder.to_owned()];
    while let Some(at) = pending.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let entry = entry.unwrap();
            if entry.metadata().unwrap().is_dir() {
                pending.push(entry.path());
            }
        }
    }
}

/// Measures finding the changed files of an overlay, storing them as blobs and applying them. Each round writes
/// different content.
fn committing(folder: &Path, files: usize) {
    let base = folder.join(format!("commit{files}"));
    let (workspace, blobs, plain) = (base.join("workspace"), base.join("blobs"), base.join("plain"));
    let turn = Cell::new(0_usize);
    let content = |file: usize| format!("{} {file} {}", turn.get(), "x".repeat(FILE_BYTES)).into_bytes();
    let fill = |root: &Path| {
        for file in 0..files {
            let path = root.join(name(file));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content(file)).unwrap();
        }
    };
    fill(&workspace);
    fill(&plain);
    let scope = Scope::new(entries(&["./"]), entries(&["./"]), entries(&["hold/"]));
    let committed = || {
        turn.set(turn.get() + 1);
        let _ = fs::remove_dir_all(&blobs);
        fs::create_dir(&blobs).unwrap();
        let view =
            WorkspaceView::overlay(&workspace, &base.join("attempt"), &scope, &ViewOverrides::default()).unwrap();
        fill(&upper(&view));
        let took = timed(|| take(&view, &workspace, &blobs));
        view.remove().unwrap();
        took
    };
    let written = || {
        turn.set(turn.get() + 1);
        timed(|| {
            for file in 0..files {
                let (path, part) = (plain.join(name(file)), plain.join(format!("d{}/part", file / 100)));
                fs::write(&part, content(file)).unwrap();
                fs::rename(part, path).unwrap();
            }
        })
    };
    let samples = if files > 1_000 { 5 } else { 11 };
    row(&format!("commit of {files} changed files"), samples, committed, written, "write and rename of the same files");
}

fn upper(view: &WorkspaceView) -> PathBuf {
    match view.source().unwrap() {
        Source::Overlay { upper, .. } => upper,
        Source::Directory(path) => path,
    }
}

fn take(view: &WorkspaceView, workspace: &Path, blobs: &Path) {
    let limits = ChangeLimits::new(Limits { write_entries: 100_000, ..Limits::default() });
    let found = view.changes(&limits, &Protected::default()).unwrap();
    let mut keep = |content: &mut dyn Read| {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes)?;
        let digest = Digest::hash(&bytes);
        fs::write(blobs.join(digest.hex()), &bytes)?;
        Ok(digest)
    };
    let changes = commit::store(&found, view, &mut keep).unwrap();
    assert!(changes.len() >= 10);
    commit::apply(workspace, &changes, &|digest| File::open(blobs.join(digest.hex()))).unwrap();
}
