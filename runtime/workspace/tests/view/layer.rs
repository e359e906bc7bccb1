//! Compares a layer with a copied folder: the same operations have the same results, the same visible files and the
//! same changes. Also tests what a layer stores, how much of it is in memory, and what happens to open files.

use super::fixture::{Fixture, listed, path, scope};
use super::model::{Operation, any_operation, perform};
use glovebox_record::scope::Scope;
use glovebox_record::{Digest, FileChange, Limits};
use glovebox_workspace::change::ChangeLimits;
use glovebox_workspace::commit;
use glovebox_workspace::protect::Protected;
use glovebox_workspace::refusal::RefusalLog;
use glovebox_workspace::stage::{ViewOverrides, WorkspaceView};
use glovebox_workspace::view::{Create, Kind, NewTime, OpenOptions, View, ViewError};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

/// Adds everything below a path as a view shows it: kind, size and content.
fn shown(view: &Arc<View>, at: &str, into: &mut BTreeMap<String, String>) {
    for entry in listed(view, at) {
        let name = if at.is_empty() { entry.name.clone() } else { format!("{at}/{}", entry.name) };
        let found = view.stat(&path(&name)).unwrap();
        assert_eq!((found.kind, found.size), (entry.kind, entry.size), "{name}: listed and looked at");
        let content = match entry.kind {
            Kind::File => Digest::hash(&view.read_file(&path(&name), 0, 1 << 20).unwrap()).hex(),
            _ => String::new(),
        };
        into.insert(name.clone(), format!("{:?} {} {content}", entry.kind, entry.size));
        if entry.kind == Kind::Directory {
            shown(view, &name, into);
        }
    }
}

fn all_shown(view: &Arc<View>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    shown(view, "", &mut all);
    all
}

/// Returns the changes that would be committed, and all changes that were found with their verdicts.
fn changes(files: &WorkspaceView) -> (Vec<FileChange>, Vec<String>) {
    let found = files.changes(&ChangeLimits::default(), &Protected::default()).unwrap();
    let mut keep = |content: &mut dyn Read| {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes)?;
        Ok(Digest::hash(&bytes))
    };
    let stored = commit::store(&found, files, &mut keep).unwrap();
    (stored, found.iter().map(|change| format!("{change:?}")).collect())
}

fn copied(fixture: &Fixture, scope: Scope, limits: Limits) -> (View, WorkspaceView) {
    let at = fixture.aside("copy");
    let files = WorkspaceView::copy(fixture.root(), &at, &scope, &ViewOverrides::default()).unwrap();
    let view = View::open(&at, scope, limits, Arc::new(RefusalLog::default())).unwrap();
    (view, files)
}

/// An operation of the model, or one on handles and times.
#[derive(Debug, Clone)]
enum Step {
    Plain(Operation),
    Append(String, u8),
    Edit(String),
    Touch(String),
    Cut(String, u64),
    Create(String),
}

fn any_step() -> impl Strategy<Value = Step> {
    let at = || {
        prop::sample::select(vec![
            "out/own",
            "out/d/h.toml",
            "out/a",
            "out/a/b",
            "src/main.rs",
            "src/lib.rs",
            "out/d",
            "out/x",
        ])
    };
    let at = move || at().prop_map(str::to_owned);
    prop_oneof![
        12 => any_operation().prop_map(Step::Plain),
        2 => (at(), any::<u8>()).prop_map(|(path, byte)| Step::Append(path, byte)),
        2 => at().prop_map(Step::Edit),
        1 => at().prop_map(Step::Touch),
        1 => (at(), 0_u64..400_000).prop_map(|(path, length)| Step::Cut(path, length)),
        1 => at().prop_map(Step::Create),
    ]
}

const EDIT: OpenOptions = OpenOptions { read: true, write: true, create: Create::Never, truncate: false };

fn take(view: &Arc<View>, step: &Step) -> Result<Vec<u8>, ViewError> {
    match step {
        Step::Plain(operation) => perform(view, operation).map(|()| Vec::new()),
        Step::Append(at, byte) => {
            let wish = OpenOptions { create: Create::IfAbsent, ..EDIT };
            view.open_file(&path(at), wish)?.append(&[*byte]).map(|()| Vec::new())
        }
        Step::Edit(at) => {
            // A reader that was opened before the write sees the written content.
            let reader = view.open_file(&path(at), OpenOptions::READ)?;
            let writer = view.open_file(&path(at), EDIT)?;
            writer.write_at(b"edited", 1)?;
            let mut content = vec![0; 20];
            let count = reader.read_at(&mut content, 0)?;
            content.truncate(count);
            Ok(content)
        }
        Step::Touch(at) => {
            view.set_times(&path(at), NewTime::Keep, NewTime::At(Duration::from_secs(1_000_000)))?;
            let modified = view.stat(&path(at))?.modified;
            assert_eq!(modified, Some(std::time::UNIX_EPOCH + Duration::from_secs(1_000_000)));
            Ok(Vec::new())
        }
        Step::Cut(at, length) => view.open_file(&path(at), EDIT)?.set_len(*length).map(|()| Vec::new()),
        Step::Create(at) => {
            let wish = OpenOptions { create: Create::MustBeNew, ..EDIT };
            view.open_file(&path(at), wish).map(|_| Vec::new())
        }
    }
}

fn rules() -> Scope {
    scope(&["./"], &["out/", "src/main.rs"], &["scenarios/holdout/", "out/d/hold/"])
}

/// Creates a tree of which a copy and a layer show the same files. It has no hard links, because a copy makes them
/// separate files, and no links to hidden paths, because a copy omits them.
fn comparable() -> Fixture {
    let fixture = Fixture::new();
    for trap in ["out/hard", "out/to_holdout", "out/to_passwd"] {
        fs::remove_file(fixture.root().join(trap)).unwrap();
    }
    fs::create_dir_all(fixture.root().join("out/deep/er")).unwrap();
    fs::write(fixture.root().join("out/deep/er/tool"), "run").unwrap();
    fs::set_permissions(fixture.root().join("out/deep/er/tool"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(fixture.root().join("out/deep/big"), vec![7; 300_000]).unwrap();
    fixture
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_layer_and_a_copied_folder_do_the_same(steps in prop::collection::vec(any_step(), 1..50)) {
        let fixture = comparable();
        let before = fixture.witness(&[]);
        let limits = Limits { write_bytes: 4 << 20, write_entries: 30, ..Limits::default() };
        let (copy, copied) = copied(&fixture, rules(), limits);
        let (layer, layered) = fixture.layered_with(rules(), limits);
        let (copy, layer) = (Arc::new(copy), Arc::new(layer));
        for step in &steps {
            let (expected, got) = (take(&copy, step), take(&layer, step));
            prop_assert_eq!(got.is_ok(), expected.is_ok(), "{:?}: layer {:?}, copy {:?}", step, got, expected);
            if got.is_ok() {
                prop_assert_eq!(got, expected, "{:?}", step);
            } else if expected == Err(ViewError::Quota) || got == Err(ViewError::Quota) {
                // Moving a directory within a layer charges all entries in it.
                prop_assert_eq!(got, expected, "{:?}", step);
            }
        }
        prop_assert_eq!(all_shown(&layer), all_shown(&copy));
        prop_assert_eq!(layer.written_bytes(), copy.written_bytes());
        let changed = changes(&layered);
        prop_assert_eq!(&changed, &changes(&copied));
        prop_assert_eq!(fixture.witness(&[]), before, "the workspace is only read");
        // After the layer was turned into files of an overlay, the changes are the same.
        layered.source().unwrap();
        prop_assert_eq!(changes(&layered), changed);
        layered.remove().unwrap();
        prop_assert!(!fixture.aside("layer-0").exists());
    }
}

#[test]
fn a_stage_that_only_reads_leaves_nothing_behind() {
    let fixture = Fixture::new();
    let (view, files) = fixture.layered_with(rules(), Limits::default());
    all_shown(&Arc::new(view));
    assert_eq!(changes(&files), (Vec::new(), Vec::new()));
    assert!(!fixture.aside("layer-0").exists());
}

#[test]
fn little_is_kept_in_memory_and_the_rest_in_the_stages_folder() {
    let fixture = Fixture::new();
    let (view, files) = fixture.layered_with(rules(), Limits::default());
    let view = Arc::new(view);
    let on_disk = || fs::read_dir(fixture.aside("layer-0")).map_or(0, Iterator::count);
    view.write_file(&path("out/small"), b"small").unwrap();
    assert_eq!(on_disk(), 0);
    let file = view.open_file(&path("out/grows"), OpenOptions { create: Create::IfAbsent, ..EDIT }).unwrap();
    for _ in 0..20 {
        file.append(&[1; 64 << 10]).unwrap();
    }
    assert_eq!((on_disk(), file.metadata().unwrap().size), (1, 20 << 16), "it moved while it was open");
    for n in 0..100 {
        view.write_file(&path(&format!("out/many{n}")), b"x").unwrap();
    }
    assert!((60..100).contains(&on_disk()), "{}", on_disk());
    for n in 0..100 {
        view.unlink(&path(&format!("out/many{n}"))).unwrap();
    }
    assert_eq!(on_disk(), 1, "what is removed takes no room");
    let mut head = [0; 2];
    assert_eq!(file.read_at(&mut head, (20 << 16) - 1).unwrap(), 1);
    let digests: Vec<_> = changes(&files).0.into_iter().map(|change| (change.path.to_string(), change.bytes)).collect();
    assert_eq!(digests, [("out/grows".to_owned(), 20 << 16), ("out/small".to_owned(), 5)]);
    files.remove().unwrap();
    assert!(!fixture.aside("layer-0").exists());
}

#[test]
fn what_is_copied_is_bounded_by_disk_bytes() {
    let fixture = comparable();
    let limits = Limits { disk_bytes: 305_000, ..Limits::default() };
    let (view, _files) = fixture.layered_with(rules(), limits);
    let view = Arc::new(view);
    view.open_file(&path("out/deep/big"), EDIT).unwrap();
    view.open_file(&path("out/deep/big"), EDIT).unwrap();
    view.open_file(&path("out/own"), EDIT).unwrap();
    assert_eq!(view.open_file(&path("out/d/h.toml"), EDIT).map(drop), Err(ViewError::Quota));
    assert!(view.refusals().stored()[0].help.contains("limits.disk_bytes"));
    // New content is only bounded by `write_bytes`.
    view.write_file(&path("out/new"), b"new").unwrap();
}

#[test]
fn a_directory_moves_with_its_tools_and_links() {
    let fixture = comparable();
    std::os::unix::fs::symlink("er/tool", fixture.root().join("out/deep/link")).unwrap();
    let (view, files) = fixture.layered_with(rules(), Limits::default());
    let view = Arc::new(view);
    view.write_file(&path("out/deep/er/new"), b"new").unwrap();
    view.unlink(&path("out/deep/big")).unwrap();
    view.rename(&path("out/deep"), &path("out/d/moved")).unwrap();
    assert_eq!(view.list(&path("out/deep")), Err(ViewError::NotFound));
    let names: Vec<String> = view.list(&path("out/d/moved")).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["er", "link"]);
    let (stored, _) = changes(&files);
    let tool = stored.iter().find(|change| change.path.as_str() == "out/d/moved/er/tool").unwrap();
    assert!(tool.executable);
    assert!(stored.iter().any(|change| change.path.as_str() == "out/d/moved/link" && change.target.is_some()));
    assert_eq!(stored.iter().filter(|change| change.path.as_str().starts_with("out/deep")).count(), 5);
}
