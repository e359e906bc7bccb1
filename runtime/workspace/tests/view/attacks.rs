//! The table of escapes, tried directly on a view: the expected results, and the expected state of the disk.

use super::fixture::{Fixture, SECRET, listed};
use super::table::{
    TABLE,
    Try::{self, *},
};
use glovebox_record::path::ScopePath;
use glovebox_workspace::protect::Protected;
use glovebox_workspace::view::{Create, NewTime, OpenOptions, Operation, View, ViewError};
use std::sync::Arc;

impl Try {
    fn run(self, view: &Arc<View>) -> Result<(), ViewError> {
        let at = |operation: Operation, text: &str| view.resolve(operation, &ScopePath::root(), text);
        match self {
            Read(path) => {
                let content = view.read_file(&at(Operation::Read, path)?, 0, 1 << 16)?;
                assert!(!content.starts_with(SECRET), "hidden content was read");
                Ok(())
            }
            Write(path) => view.open_file(&at(Operation::Write, path)?, OpenOptions::REPLACE)?.write_at(b"EVIL", 0),
            Truncate(path) => {
                let wish = OpenOptions { read: true, truncate: true, ..OpenOptions::default() };
                view.open_file(&at(Operation::Write, path)?, wish).map(drop)
            }
            Create(path) => {
                let wish = OpenOptions { write: true, create: Create::MustBeNew, ..OpenOptions::default() };
                view.open_file(&at(Operation::Write, path)?, wish).map(drop)
            }
            List(path) => view.list(&at(Operation::List, path)?).map(drop),
            Stat(path) => view.stat(&at(Operation::Stat, path)?).map(drop),
            MakeDirectory(path) => view.make_directory(&at(Operation::MakeDirectory, path)?),
            Unlink(path) => view.unlink(&at(Operation::Remove, path)?),
            RemoveDirectory(path) => view.remove_directory(&at(Operation::Remove, path)?),
            Rename(from, to) => view.rename(&at(Operation::Rename, from)?, &at(Operation::Rename, to)?),
            Times(path) => view.set_times(&at(Operation::SetTimes, path)?, NewTime::Now, NewTime::Now),
            Link(path) => Err(view.refuse_linking(Operation::Link, &at(Operation::Link, path)?)),
            Symlink(path) => Err(view.refuse_linking(Operation::Symlink, &at(Operation::Symlink, path)?)),
            ReadLink(path) => Err(view.refuse_reading_link(&at(Operation::ReadLink, path)?)),
        }
    }
}

/// Tries every escape on a view of a new tree. `changed` are the paths that an allowed operation may change on disk.
fn run_table(open: impl Fn(&Fixture) -> View, changed: &[&str]) {
    for (case, attempt, expected) in TABLE {
        let fixture = Fixture::new();
        let except = if expected.is_ok() { changed } else { &[] };
        let before = fixture.witness(except);
        let view = Arc::new(open(&fixture));
        assert_eq!(attempt.run(&view), *expected, "{case}");
        assert_eq!(fixture.witness(except), before, "{case}: the disk changed");
        let refusals = view.refusals().stored();
        if expected.is_ok() {
            assert!(refusals.is_empty() && view.touched(), "{case}: {refusals:?}");
        } else {
            let refusal = refusals.last().unwrap_or_else(|| panic!("{case}: nothing was recorded"));
            assert!(!refusal.help.is_empty() && !refusal.path.is_empty(), "{case}: {refusal:?}");
            assert!(!view.touched(), "{case}: counted as a change");
        }
    }
}

const GRANTED: &[&str] = &["src/main.rs", "out"];

#[test]
fn every_attack_is_refused_and_leaves_no_trace() {
    run_table(Fixture::view, GRANTED);
}

#[test]
fn every_attack_is_refused_without_openat2() {
    run_table(|fixture| fixture.view().without_openat2(), GRANTED);
}

#[test]
fn every_attack_on_a_layer_is_refused_and_the_workspace_is_never_changed() {
    run_table(Fixture::layered, &[]);
}

#[test]
fn every_attack_on_a_layer_is_refused_without_openat2() {
    run_table(|fixture| fixture.layered().without_openat2(), &[]);
}

/// Checks that a copy in a stage's layer does not allow access to a forbidden path.
#[test]
fn every_attack_is_refused_after_the_layer_has_copies() {
    let prepared = |fixture: &Fixture| {
        let view = Arc::new(fixture.layered());
        view.make_directory(&super::fixture::path("out/made")).unwrap();
        let keeps = OpenOptions { read: true, write: true, ..OpenOptions::default() };
        for file in ["out/own", "out/d/h.toml", "src/main.rs"] {
            view.open_file(&super::fixture::path(file), keeps).unwrap();
        }
        view
    };
    for (case, attempt, expected) in TABLE {
        let fixture = Fixture::new();
        let before = fixture.witness(&[]);
        assert_eq!(attempt.run(&prepared(&fixture)), *expected, "{case}");
        assert_eq!(fixture.witness(&[]), before, "{case}: the disk changed");
    }
}

#[test]
fn listings_show_only_what_exists_for_the_stage() {
    let fixture = Fixture::new();
    let names =
        |view: &View, at: &str| -> Vec<String> { listed(view, at).into_iter().map(|entry| entry.name).collect() };
    for view in [fixture.view(), fixture.layered()] {
        assert_eq!(names(&view, ""), ["Cargo.toml", "out", "ro", "scenarios", "src", "visible"]);
        assert_eq!(names(&view, "scenarios"), ["readme"]);
    }
    let narrow = || super::fixture::scope(&["src/lib.rs", "visible/v/deep"], &["out/"], &[]);
    for view in [fixture.view_with(narrow(), Default::default()), fixture.layered_with(narrow(), Default::default()).0]
    {
        assert_eq!(names(&view, ""), ["out", "src", "visible"]);
        assert_eq!(names(&view, "src"), ["lib.rs"]);
        assert_eq!(names(&view, "visible"), [""; 0]);
        assert_eq!(view.refusals().total(), 0);
        assert_eq!(view.stat(&super::fixture::path("visible/v")), Err(ViewError::NotFound));
        assert_eq!(view.stat(&super::fixture::path("ro/a")), Err(ViewError::NotFound));
    }
}

#[test]
fn no_grant_is_named_where_none_would_help() {
    let fixture = Fixture::new();
    let view = fixture.view_with(super::fixture::scope(&["./"], &["out/"], &[]), Default::default());
    let view = Arc::new(view.protecting(Protected::new(&["pipeline.dot"])));
    for attempt in [Write("pipeline.dot"), Write(".git/config"), MakeDirectory(".github/workflows")] {
        attempt.run(&view).unwrap_err();
    }
    let kept = view.refusals().stored();
    let told: Vec<&str> = kept.iter().map(|refusal| refusal.help.as_str()).collect();
    assert!(told.iter().all(|help| help.starts_with("no grant allows it: `")), "{told:?}");
    assert!(told[0].contains("`pipeline.dot` is protected by this run"), "{told:?}");
    assert!(told[1].contains("`.git` is protected"), "{told:?}");
}

#[test]
fn no_directory_is_made_where_a_file_is_granted() {
    let fixture = Fixture::new();
    let scope = super::fixture::scope(&["./"], &["src/go.mod", "new/go.mod"], &[]);
    let view = Arc::new(fixture.view_with(scope, Default::default()));
    let before = fixture.witness(&[]);
    let at = super::fixture::path;
    assert_eq!(view.write_file(&at("src/go.mod/inner.txt"), b"x"), Err(ViewError::NotPermitted));
    for path in ["src/go.mod", "src/go.mod/inner", "new/go.mod"] {
        assert!(view.make_directory(&at(path)).is_err(), "{path}");
    }
    assert_eq!(fixture.witness(&[]), before);
    let refusals = view.refusals().stored();
    assert_eq!(refusals[1].reason, "the path is granted as a file, not as a directory");
    assert!(refusals[1].help.contains("allowed_write_paths=\"src/go.mod,new/go.mod,src/go.mod/\""), "{refusals:?}");
    // The parent folder of a grant is still created.
    view.write_file(&at("new/go.mod"), b"x").unwrap();
}

#[test]
fn an_absolute_path_outside_says_how_the_workspace_is_named() {
    let fixture = Fixture::new();
    let view = Arc::new(fixture.view());
    Write("/tmp/x").run(&view).unwrap_err();
    let told = view.refusals().stored().pop().unwrap();
    assert_eq!((told.operation.as_str(), told.path.as_str()), ("write", "/tmp/x"));
    assert_eq!(
        told.help,
        "no grant allows it: use paths relative to the workspace, or below `/home/me/proj`, which is the workspace"
    );
}

#[test]
fn refusals_name_the_grant() {
    let fixture = Fixture::new();
    let narrow = super::fixture::scope(&["src/"], &["out/", "src/main.rs"], &["scenarios/holdout/"]);
    let view = Arc::new(fixture.view_with(narrow, Default::default()));
    for attempt in [Write("src/lib.rs"), Read("Cargo.toml"), Read("scenarios/holdout/h.toml"), MakeDirectory("src/new")]
    {
        attempt.run(&view).unwrap_err();
    }
    let told = |view: &View| -> Vec<String> {
        view.refusals().stored().iter().map(|refusal| format!("{refusal}; {}", refusal.help)).collect()
    };
    assert_eq!(
        told(&view),
        [
            "refused to write `src/lib.rs`: not in the write scope; to allow it: \
             `allowed_write_paths=\"out/,src/main.rs,src/lib.rs\"` on the node",
            "refused to read `Cargo.toml`: not in the read scope; to allow it: `read_paths=\"src/,Cargo.toml\"` on the node",
            "refused to read `scenarios/holdout/h.toml`: hidden from this stage; hidden paths cannot be granted",
            "refused to make directory `src/new`: not in the write scope; to allow it: \
             `allowed_write_paths=\"out/,src/main.rs,src/new/\"` on the node",
        ]
    );
    let narrow = super::fixture::scope(&["src/"], &["out/"], &[]);
    let of_plugin = Arc::new(fixture.view_with(narrow, Default::default()).for_plugin(true));
    Write("src/lib.rs").run(&of_plugin).unwrap_err();
    assert_eq!(
        told(&of_plugin),
        [
            "refused to write `src/lib.rs`: not in the write scope; to allow it: `allowed_write_paths=\"out/,src/lib.rs\"` on the \
          node, and `grants.write = [\"out/\", \"src/lib.rs\"]` of the plugin in glovebox.toml"
        ]
    );
}
