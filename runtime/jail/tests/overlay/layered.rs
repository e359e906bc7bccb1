//! Stages that use both files and commands: commands see what a component wrote in its layer, and the component sees
//! what commands wrote. A copy on which both work from the start is the oracle.

use super::bench::{Bench, scope, snapshot};
use super::mounted::{open, run};
use super::upper::{commit, lines, look};
use glovebox_record::Limits;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Scope;
use glovebox_workspace::stage::{ViewOverrides, WorkspaceView};
use glovebox_workspace::view::{Create, OpenOptions, View, ViewError};
use proptest::prelude::*;
use std::sync::Arc;

const FILES: &[(&str, &str)] =
    &[("src/a", "a"), ("src/b", "b"), ("src/d/x", "x"), ("src/d/deep/y", "y"), ("src/e/z", "z"), ("hold/h", "secret")];
const EDIT: OpenOptions = OpenOptions { read: true, write: true, create: Create::IfAbsent, truncate: false };

fn at(path: &str) -> ScopePath {
    ScopePath::parse(path).unwrap()
}

fn rules() -> Scope {
    scope(&["./"], &["src/", "out/"], &["hold/"])
}

/// An operation of a component on a file or directory.
#[derive(Debug, Clone)]
enum Act {
    Write(String, String),
    Append(String, String),
    Remove(String),
    MakeDirectory(String),
    Rename(String, String),
}

fn act(view: &Arc<View>, act: &Act) -> Result<(), ViewError> {
    match act {
        Act::Write(path, content) => view.write_file(&at(path), content.as_bytes()),
        Act::Append(path, content) => view.open_file(&at(path), EDIT)?.append(content.as_bytes()),
        Act::Remove(path) => match view.unlink(&at(path)) {
            Err(ViewError::IsADirectory) => view.remove_directory(&at(path)),
            other => other,
        },
        Act::MakeDirectory(path) => view.make_directory(&at(path)),
        Act::Rename(from, to) => view.rename(&at(from), &at(to)),
    }
}

/// A stage: the component acts, a command runs, the component acts again, another command runs.
struct Stage {
    before: Vec<Act>,
    first: String,
    between: Vec<Act>,
    second: String,
}

/// The comparable result of a stage: which operations succeeded, the final tree as commands see it, the changes, and
/// the workspace.
type Seen =
    (Vec<bool>, std::collections::BTreeMap<String, String>, Vec<String>, std::collections::BTreeMap<String, String>);

fn play(stage: &Stage, is_layered: bool) -> Seen {
    let made = Bench::new(FILES);
    let (folder, scope) = (made.dir.path().join("attempt"), rules());
    let overrides = ViewOverrides::default();
    let files = match is_layered {
        true => WorkspaceView::layer(&made.workspace(), &folder, &scope, &overrides).unwrap(),
        false => WorkspaceView::copy(&made.workspace(), &folder, &scope, &overrides).unwrap(),
    };
    let view = match files.as_layer() {
        Some(layer) => View::over(layer, scope, Limits::default(), Arc::default()).unwrap(),
        None => View::open(&folder, scope, Limits::default(), Arc::default()).unwrap(),
    };
    let view = Arc::new(view);
    let mut went_well: Vec<bool> = stage.before.iter().map(|one| act(&view, one).is_ok()).collect();
    let workspace = snapshot(&made.workspace());
    let jail = open(&made, &files);
    files.as_layer().iter().for_each(|layer| layer.work_on(&jail.root()).unwrap());
    run(&jail, &stage.first);
    went_well.extend(stage.between.iter().map(|one| act(&view, one).is_ok()));
    run(&jail, &stage.second);
    let seen = snapshot(&jail.root());
    jail.end().unwrap();
    assert_eq!(snapshot(&made.workspace()), workspace, "the workspace is only read");
    let found = lines(&look(&files));
    commit(&made, &files);
    files.remove().unwrap();
    assert!(!folder.exists());
    (went_well, seen, found, snapshot(&made.workspace()))
}

fn path() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "src/a",
        "src/b",
        "src/c",
        "src/d",
        "src/d/x",
        "src/d/deep",
        "src/e",
        "src/f",
        "src/f/g",
        "out",
    ])
    .prop_map(str::to_owned)
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (path(), "[0-2]").prop_map(|(path, content)| Act::Write(path, content)),
        2 => (path(), "[0-2]").prop_map(|(path, content)| Act::Append(path, content)),
        3 => path().prop_map(Act::Remove),
        2 => path().prop_map(Act::MakeDirectory),
        2 => (path(), path()).prop_map(|(from, to)| Act::Rename(from, to)),
    ]
}

fn any_script() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        (path(), "[0-2]").prop_map(|(path, content)| format!("printf {content} > {path}")),
        path().prop_map(|path| format!("rm -rf {path}")),
        path().prop_map(|path| format!("mkdir {path}")),
        (path(), path()).prop_map(|(from, to)| format!("mv -T {from} {to}")),
        path().prop_map(|path| format!("chmod +x {path}")),
    ];
    prop::collection::vec(line, 0..4)
        .prop_map(|lines| lines.iter().map(|line| format!("( {line} ) 2>/dev/null || true\n")).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn files_and_commands_see_one_state(
        before in prop::collection::vec(any_act(), 0..10),
        first in any_script(),
        second in any_script(),
    ) {
        // Directories of an overlay cannot be renamed, so the component acts only before the first command.
        let stage = Stage { before, first, between: Vec::new(), second };
        prop_assert_eq!(play(&stage, true), play(&stage, false));
    }
}

#[test]
fn a_component_goes_on_with_what_a_command_left() {
    let write = |path: &str, content: &str| Act::Write(path.to_owned(), content.to_owned());
    let stage = Stage {
        before: vec![
            write("src/a", "one"),
            write("out/new", "new"),
            Act::Remove("src/b".to_owned()),
            Act::Rename("src/d".to_owned(), "src/moved".to_owned()),
            Act::Remove("src/e/z".to_owned()),
            Act::Remove("src/e".to_owned()),
            Act::MakeDirectory("src/e".to_owned()),
        ],
        first:
            "test \"$(cat src/a)\" = one; test ! -e src/b; test ! -e hold; test ! -e src/d; test -z \"$(ls src/e)\"\n\
                test \"$(cat src/moved/deep/y)\" = y; printf two >> src/a; printf made > src/made; rm out/new"
                .to_owned(),
        between: vec![
            Act::Append("src/a".to_owned(), "three".to_owned()),
            write("src/made", "remade"),
            write("src/b", "back"),
            Act::Remove("out/new".to_owned()),
            write("hold/h", "x"),
        ],
        second: "test \"$(cat src/a)\" = onetwothree; test \"$(cat src/made)\" = remade; test -e src/b".to_owned(),
    };
    let layered = play(&stage, true);
    assert_eq!(layered, play(&stage, false));
    assert_eq!(layered.0, [[true; 7].as_slice(), &[true, true, true, false, false]].concat());
    assert_eq!(
        layered.2,
        [
            "mkdir out",
            "write src/a",
            "write src/b",
            "rmdir src/d",
            "rmdir src/d/deep",
            "delete src/d/deep/y",
            "delete src/d/x",
            "delete src/e/z",
            "write src/made",
            "mkdir src/moved",
            "mkdir src/moved/deep",
            "write src/moved/deep/y",
            "write src/moved/x",
        ]
    );
}

#[test]
fn files_that_are_open_while_a_command_runs_are_the_commands_files() {
    let made = Bench::new(FILES);
    let (folder, scope) = (made.dir.path().join("attempt"), rules());
    let files = WorkspaceView::layer(&made.workspace(), &folder, &scope, &ViewOverrides::default()).unwrap();
    let view = Arc::new(View::over(files.as_layer().unwrap(), scope, Limits::default(), Arc::default()).unwrap());
    let small = view.open_file(&at("src/a"), EDIT).unwrap();
    let large = view.open_file(&at("src/large"), EDIT).unwrap();
    let reader = view.open_file(&at("src/b"), OpenOptions::READ).unwrap();
    let gone = view.open_file(&at("src/gone"), EDIT).unwrap();
    small.append(b"1").unwrap();
    large.append(&[b'l'; 300_000]).unwrap();
    gone.append(b"gone").unwrap();
    view.unlink(&at("src/gone")).unwrap();
    let jail = open(&made, &files);
    files.as_layer().unwrap().work_on(&jail.root()).unwrap();
    small.append(b"2").unwrap();
    run(
        &jail,
        "test \"$(cat src/a)\" = a12; printf 3 >> src/a; printf end >> src/large; printf B > src/b; test ! -e src/gone",
    );
    small.append(b"4").unwrap();
    let content = |file: &glovebox_workspace::view::FileHandle| {
        let mut bytes = vec![0; 400_000];
        let count = file.read_at(&mut bytes, 0).unwrap();
        bytes.truncate(count);
        bytes
    };
    assert_eq!(content(&small), b"a1234");
    assert_eq!((content(&large).len(), large.metadata().unwrap().size), (300_003, 300_003));
    assert_eq!(content(&reader), b"B");
    assert_eq!(content(&gone), b"gone");
    run(&jail, "test \"$(cat src/a)\" = a1234");
    drop((small, large, reader, gone, view));
    jail.end().unwrap();
    assert_eq!(lines(&look(&files)), ["write src/a", "write src/b", "write src/large"]);
    files.remove().unwrap();
}

#[test]
fn a_stage_that_only_runs_commands_has_an_overlay() {
    let made = Bench::new(FILES);
    let folder = made.dir.path().join("attempt");
    let files = WorkspaceView::layer(&made.workspace(), &folder, &rules(), &ViewOverrides::default()).unwrap();
    assert!(!folder.exists());
    let jail = open(&made, &files);
    run(&jail, "printf new > src/a; test ! -e hold");
    jail.end().unwrap();
    assert_eq!(lines(&look(&files)), ["write src/a"]);
    files.remove().unwrap();
    assert!(!folder.exists());
}

#[test]
fn a_stage_that_starts_over_is_one_that_has_just_begun() {
    for is_layered in [true, false] {
        let made = Bench::new(FILES);
        let (folder, scope) = (made.dir.path().join("attempt"), rules());
        let mut files = match is_layered {
            true => WorkspaceView::layer(&made.workspace(), &folder, &scope, &ViewOverrides::default()).unwrap(),
            false => WorkspaceView::copy(&made.workspace(), &folder, &scope, &ViewOverrides::default()).unwrap(),
        };
        let view = match files.as_layer() {
            Some(layer) => View::over(layer, scope, Limits::default(), Arc::default()).unwrap(),
            None => View::open(&folder, scope, Limits::default(), Arc::default()).unwrap(),
        };
        let view = Arc::new(view);
        for _ in 0..3 {
            for one in [
                Act::Write("src/c".to_owned(), "c".to_owned()),
                Act::Append("src/a".to_owned(), "1".to_owned()),
                Act::Remove("src/b".to_owned()),
            ] {
                act(&view, &one).unwrap();
            }
            let stale = view.open_file(&at("src/a"), EDIT).unwrap();
            let jail = open(&made, &files);
            files.as_layer().iter().for_each(|layer| layer.work_on(&jail.root()).unwrap());
            run(&jail, "test \"$(cat src/a)\" = a1; printf x > src/made; rm -r src/d; chmod 000 src/e; mkdir out");
            jail.end().unwrap();
            files.reset().unwrap();
            let _lost = stale.append(b"stale");
            assert!(lines(&look(&files)).is_empty(), "layer: {is_layered}");
            assert_eq!(view.read_file(&at("src/a"), 0, 100).unwrap(), b"a");
        }
        act(&view, &Act::Write("src/c".to_owned(), "c".to_owned())).unwrap();
        let jail = open(&made, &files);
        files.as_layer().iter().for_each(|layer| layer.work_on(&jail.root()).unwrap());
        run(
            &jail,
            "test \"$(cat src/a src/b src/c src/d/deep/y src/e/z)\" = abcyz; test ! -e src/made; printf last > src/last",
        );
        assert_eq!(view.read_file(&at("src/last"), 0, 100).unwrap(), b"last");
        drop(view);
        jail.end().unwrap();
        assert_eq!(lines(&look(&files)), ["write src/c", "write src/last"], "layer: {is_layered}");
        files.remove().unwrap();
        assert!(!folder.exists());
    }
}
