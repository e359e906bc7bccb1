//! Random operations against a model: the view must return what the model expects, the disk must have the state of the
//! model, and nothing outside the write scope may change.

use super::fixture::{Fixture, SECRET, path, scope};
use glovebox_workspace::view::{OpenOptions, View, ViewError};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Write(String, u8),
    Read(String),
    List(String),
    MakeDirectory(String),
    Unlink(String),
    RemoveDirectory(String),
    Rename(String, String),
}

fn any_path() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "",
        "out",
        "out/d",
        "out/d/h.toml",
        "out/d/hold",
        "out/d/hold/x",
        "out/own",
        "src",
        "src/main.rs",
        "src/lib.rs",
        "src/new",
        "ro",
        "ro/a",
        "scenarios",
        "scenarios/holdout",
        "scenarios/holdout/h.toml",
        "scenarios/readme",
        "new",
    ]);
    let made = prop::collection::vec(prop::sample::select(vec!["a", "b", "d"]), 1..4)
        .prop_map(|names| format!("out/{}", names.join("/")));
    prop_oneof![fixed.prop_map(str::to_owned), made]
}

pub(crate) fn any_operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => (any_path(), any::<u8>()).prop_map(|(path, byte)| Operation::Write(path, byte)),
        2 => any_path().prop_map(Operation::Read),
        1 => any_path().prop_map(Operation::List),
        3 => any_path().prop_map(Operation::MakeDirectory),
        2 => any_path().prop_map(Operation::Unlink),
        2 => any_path().prop_map(Operation::RemoveDirectory),
        4 => (any_path(), any_path()).prop_map(|(from, to)| Operation::Rename(from, to)),
    ]
}

/// The paths that the stage can see, with the content of each file, or `None` for a directory.
#[derive(Debug, Clone, PartialEq)]
struct Model(BTreeMap<String, Option<Vec<u8>>>);

fn below<'a>(base: &str, path: &'a str) -> Option<&'a str> {
    path.strip_prefix(base)?.strip_prefix('/')
}

fn hidden(path: &str) -> bool {
    ["scenarios/holdout", "out/d/hold"].iter().any(|hold| path == *hold || below(hold, path).is_some())
}

fn hides(path: &str) -> bool {
    ["scenarios/holdout", "out/d/hold"].iter().any(|hold| path.is_empty() || below(path, hold).is_some())
}

fn subtree(path: &str) -> bool {
    below("out", path).is_some() && !hidden(path)
}

fn writable(path: &str) -> bool {
    subtree(path) || path == "src/main.rs"
}

impl Model {
    fn of(root: &Path) -> Self {
        let mut seen = BTreeMap::from([(String::new(), None)]);
        Self::take(root, "", &mut seen);
        Self(seen)
    }

    fn take(root: &Path, at: &str, seen: &mut BTreeMap<String, Option<Vec<u8>>>) {
        for entry in fs::read_dir(root.join(at)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = if at.is_empty() { name } else { format!("{at}/{name}") };
            if hidden(&path) {
                continue;
            }
            if root.join(&path).is_dir() {
                seen.insert(path.clone(), None);
                Self::take(root, &path, seen);
            } else {
                seen.insert(path.clone(), Some(fs::read(root.join(&path)).unwrap()));
            }
        }
    }

    fn is_directory(&self, path: &str) -> bool {
        self.0.get(path) == Some(&None)
    }

    fn is_file(&self, path: &str) -> bool {
        matches!(self.0.get(path), Some(Some(_)))
    }

    fn in_directory(&self, path: &str) -> bool {
        self.is_directory(path.rsplit_once('/').map_or("", |(parent, _)| parent))
    }

    fn is_empty(&self, path: &str) -> bool {
        !self.0.keys().any(|key| below(path, key).is_some())
    }

    /// Performs the operation. Returns false if it must be denied.
    fn apply(&mut self, operation: &Operation) -> bool {
        match operation {
            Operation::Read(path) => self.is_file(path),
            Operation::List(path) => self.is_directory(path),
            Operation::Write(path, byte) => {
                let may = writable(path) && self.in_directory(path) && !self.is_directory(path);
                may && self.0.insert(path.clone(), Some(vec![*byte])).is_none_or(|_| true)
            }
            Operation::MakeDirectory(path) => {
                // An exact entry of the scope grants a file, not a directory.
                let may = subtree(path) && self.in_directory(path) && !self.0.contains_key(path);
                may && self.0.insert(path.clone(), None).is_none()
            }
            Operation::Unlink(path) => writable(path) && self.is_file(path) && self.0.remove(path).is_some(),
            Operation::RemoveDirectory(path) => {
                let may = writable(path) && !hides(path) && self.is_directory(path) && self.is_empty(path);
                may && self.0.remove(path).is_some()
            }
            Operation::Rename(from, to) => self.may_rename(from, to) && self.rename(from, to),
        }
    }

    fn may_rename(&self, from: &str, to: &str) -> bool {
        let ends = writable(from) && writable(to) && !hides(from) && !hides(to);
        if !ends || !self.0.contains_key(from) || !self.in_directory(to) || below(from, to).is_some() {
            return false;
        }
        if self.is_file(from) {
            return !self.is_directory(to);
        }
        let room = !self.0.contains_key(to) || (self.is_directory(to) && (from == to || self.is_empty(to)));
        subtree(from) && subtree(to) && room
    }

    fn rename(&mut self, from: &str, to: &str) -> bool {
        let moved = |key: &str| match below(from, key) {
            Some(rest) => format!("{to}/{rest}"),
            None if key == from => to.to_owned(),
            None => key.to_owned(),
        };
        if from != to {
            self.0.remove(to);
        }
        self.0 = std::mem::take(&mut self.0).into_iter().map(|(key, value)| (moved(&key), value)).collect();
        true
    }
}

pub(crate) fn perform(view: &Arc<View>, operation: &Operation) -> Result<(), ViewError> {
    match operation {
        Operation::Write(at, byte) => view.open_file(&path(at), OpenOptions::REPLACE)?.write_at(&[*byte], 0),
        Operation::Read(at) => view.read_file(&path(at), 0, 100).map(|content| assert_ne!(content, SECRET)),
        Operation::List(at) => view.list(&path(at)).map(drop),
        Operation::MakeDirectory(at) => view.make_directory(&path(at)),
        Operation::Unlink(at) => view.unlink(&path(at)),
        Operation::RemoveDirectory(at) => view.remove_directory(&path(at)),
        Operation::Rename(from, to) => view.rename(&path(from), &path(to)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_view_does_what_the_model_expects_and_nothing_outside(
        operations in prop::collection::vec(any_operation(), 1..60),
        openat2 in any::<bool>(),
    ) {
        let fixture = Fixture::new();
        for trap in ["out/hard", "out/to_holdout", "out/to_src", "out/to_passwd"] {
            fs::remove_file(fixture.root().join(trap)).unwrap();
        }
        fs::create_dir(fixture.root().join("out/d/hold")).unwrap();
        fs::write(fixture.root().join("out/d/hold/x"), SECRET).unwrap();
        let rules = scope(&["./"], &["out/", "src/main.rs"], &["scenarios/holdout/", "out/d/hold/"]);
        let view = fixture.view_with(rules, Default::default());
        let view = Arc::new(if openat2 { view } else { view.without_openat2() });
        let before = fixture.witness(&["out", "src/main.rs"]);
        let mut model = Model::of(fixture.root());
        for operation in &operations {
            let expected = model.apply(operation);
            let got = perform(&view, operation);
            prop_assert_eq!(got.is_ok(), expected, "{:?} answered {:?}", operation, got);
        }
        prop_assert_eq!(Model::of(fixture.root()), model);
        prop_assert_eq!(fixture.witness(&["out", "src/main.rs"]), before);
        prop_assert_eq!(fs::read(fixture.root().join("out/d/hold/x")).unwrap(), SECRET);
    }
}
