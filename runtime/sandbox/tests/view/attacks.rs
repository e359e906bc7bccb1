//! The table of escapes: what is tried, what the guest must be told, and what the disk must look like after.

use crate::fixture::{Fixture, SECRET};
use glovebox_sandbox::path::ScopePath;
use glovebox_sandbox::view::{Create, Denied, NewTime, Operation, View, Wish};
use std::sync::Arc;

/// One operation of a guest; paths are as a guest writes them.
#[derive(Debug, Clone, Copy)]
enum Try {
    Read(&'static str),
    Write(&'static str),
    Truncate(&'static str),
    Create(&'static str),
    List(&'static str),
    Stat(&'static str),
    MakeDirectory(&'static str),
    Unlink(&'static str),
    RemoveDirectory(&'static str),
    Rename(&'static str, &'static str),
    Times(&'static str),
    Link(&'static str),
    Symlink(&'static str),
    ReadLink(&'static str),
}

use Denied::{Loop, NotFound, NotPermitted};
use Try::*;

const OK: Result<(), Denied> = Ok(());
const NO: Result<(), Denied> = Err(NotPermitted);
const GONE: Result<(), Denied> = Err(NotFound);
const LINK: Result<(), Denied> = Err(Loop);

#[rustfmt::skip]
const TABLE: &[(&str, Try, Result<(), Denied>)] = &[
    ("write the allowed exact file", Write("src/main.rs"), OK),
    ("write below an allowed directory by a crooked path", Write("src/../out/./new"), OK),
    ("write the sibling of the allowed file", Write("src/lib.rs"), NO),
    ("write a root file", Write("Cargo.toml"), NO),
    ("create a root file", Create("new.txt"), NO),
    ("truncate a read-only file", Truncate("src/lib.rs"), NO),
    ("write a read-only directory by a crooked path", Write("./ro/a"), NO),
    ("write a read-only directory through another", Write("src/../ro/a"), NO),
    ("list the hidden directory", List("scenarios/holdout"), GONE),
    ("stat the hidden directory", Stat("scenarios/holdout"), GONE),
    ("read a hidden file", Read("scenarios/holdout/h.toml"), GONE),
    ("read a hidden file through a visible directory", Read("visible/../scenarios/holdout/h.toml"), GONE),
    ("create in the hidden directory", Create("scenarios/holdout/new"), GONE),
    ("read through a link into the hidden directory", Read("out/to_holdout/h.toml"), LINK),
    ("list through a link into the hidden directory", List("out/to_holdout"), LINK),
    ("write through a link into a read-only directory", Write("out/to_src/lib.rs"), LINK),
    ("create through a link into a read-only directory", Create("out/to_src/new.rs"), LINK),
    ("read through a link out of the workspace", Read("out/to_passwd"), LINK),
    ("rename the ancestor of what is hidden", Rename("scenarios", "out/scenarios"), NO),
    ("rename what is hidden", Rename("scenarios/holdout", "out/holdout"), GONE),
    ("rename a read-only file out", Rename("src/lib.rs", "out/lib.rs"), NO),
    ("rename a read-only directory out", Rename("ro", "out/ro"), NO),
    ("rename the own file over a read-only file", Rename("out/own", "src/lib.rs"), NO),
    ("rename the own file over the allowed exact file", Rename("out/own", "src/main.rs"), OK),
    ("rename the own directory over the allowed exact file", Rename("out/d", "src/main.rs"), NO),
    ("write through an old hard link to a read-only file", Write("out/hard"), NO),
    ("truncate through an old hard link", Truncate("out/hard"), NO),
    ("set times through an old hard link", Times("out/hard"), NO),
    ("make a hard link to a read-only file", Link("src/lib.rs"), NO),
    ("make a hard link to a hidden file", Link("scenarios/holdout/h.toml"), GONE),
    ("make a symbolic link", Symlink("out/new_link"), NO),
    ("read a symbolic link", ReadLink("out/to_holdout"), NO),
    ("remove a read-only file", Unlink("src/lib.rs"), NO),
    ("remove the writable directory itself", RemoveDirectory("out"), NO),
    ("rename the writable directory itself", Rename("out", "visible/out"), NO),
    ("make a directory outside", MakeDirectory("src/sub"), NO),
    ("set times of a read-only file", Times("src/lib.rs"), NO),
    ("climb out", Read("../etc/passwd"), NO),
    ("climb out after going in", Write("out/../../evil"), NO),
    ("name an absolute path", Read("/etc/passwd"), NO),
    ("name an absolute path inside", Write("/out/x"), NO),
    ("hide a name behind NUL", Read("visible/v\0/../../scenarios"), Err(Denied::Invalid)),
];

impl Try {
    fn run(self, view: &Arc<View>) -> Result<(), Denied> {
        let at = |operation: Operation, text: &str| {
            ScopePath::root().resolve(text).map_err(|problem| view.refuse_path(operation, text, problem))
        };
        match self {
            Read(path) => {
                let content = view.read_file(&at(Operation::Read, path)?, 0, 1 << 16)?;
                assert!(!content.starts_with(SECRET), "hidden content was read");
                Ok(())
            }
            Write(path) => view.open_file(&at(Operation::Write, path)?, Wish::REPLACE)?.write_at(b"EVIL", 0),
            Truncate(path) => {
                let wish = Wish { read: true, truncate: true, ..Wish::default() };
                view.open_file(&at(Operation::Write, path)?, wish).map(drop)
            }
            Create(path) => {
                let wish = Wish { write: true, create: Create::MustBeNew, ..Wish::default() };
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
            ReadLink(path) => Err(view.refuse_linking(Operation::ReadLink, &at(Operation::ReadLink, path)?)),
        }
    }
}

fn run_table(prepare: impl Fn(View) -> View) {
    for (case, attempt, expected) in TABLE {
        let fixture = Fixture::new();
        let outside = ["src/main.rs", "out"];
        let before = fixture.witness(if expected.is_ok() { &outside } else { &[] });
        let view = Arc::new(prepare(fixture.view()));
        assert_eq!(attempt.run(&view), *expected, "{case}");
        assert_eq!(fixture.witness(if expected.is_ok() { &outside } else { &[] }), before, "{case}: the disk changed");
        let refusals = view.refusals().kept();
        if expected.is_ok() {
            assert!(refusals.is_empty() && view.touched(), "{case}: {refusals:?}");
        } else {
            let refusal = refusals.last().unwrap_or_else(|| panic!("{case}: nothing was recorded"));
            assert!(!refusal.help.is_empty() && !refusal.path.is_empty(), "{case}: {refusal:?}");
            assert!(!view.touched(), "{case}: counted as a change");
        }
    }
}

#[test]
fn every_attack_is_refused_and_leaves_no_trace() {
    run_table(|view| view);
}

#[test]
fn every_attack_is_refused_without_openat2() {
    run_table(View::without_openat2);
}

#[test]
fn listings_show_only_what_exists_for_the_stage() {
    let fixture = Fixture::new();
    let names = |view: &View, at: &str| -> Vec<String> {
        view.list(&crate::fixture::path(at)).unwrap().into_iter().map(|entry| entry.name).collect()
    };
    let view = fixture.view();
    assert_eq!(names(&view, ""), ["Cargo.toml", "out", "ro", "scenarios", "src", "visible"]);
    assert_eq!(names(&view, "scenarios"), ["readme"]);
    let narrow = crate::fixture::scope(&["src/lib.rs", "visible/v/deep"], &["out/"], &[]);
    let view = fixture.view_with(narrow, Default::default());
    assert_eq!(names(&view, ""), ["out", "src", "visible"]);
    assert_eq!(names(&view, "src"), ["lib.rs"]);
    assert_eq!(names(&view, "visible"), [""; 0]);
    assert_eq!(view.refusals().total(), 0);
    assert_eq!(view.stat(&crate::fixture::path("visible/v")), Err(NotFound));
    assert_eq!(view.stat(&crate::fixture::path("ro/a")), Err(NotFound));
}

#[test]
fn refusals_name_the_grant() {
    let fixture = Fixture::new();
    let narrow = crate::fixture::scope(&["src/"], &["out/", "src/main.rs"], &["scenarios/holdout/"]);
    let view = Arc::new(fixture.view_with(narrow, Default::default()));
    for attempt in [Write("src/lib.rs"), Read("Cargo.toml"), Read("scenarios/holdout/h.toml"), MakeDirectory("src/new")]
    {
        attempt.run(&view).unwrap_err();
    }
    let told: Vec<String> =
        view.refusals().kept().iter().map(|refusal| format!("{refusal}; {}", refusal.help)).collect();
    assert_eq!(
        told,
        [
            "refused to write `src/lib.rs`: not in the write scope; to allow it: \
             `allowed_write_paths=\"out/,src/main.rs,src/lib.rs\"` on the node, and for a plugin \
             `grants.write = [\"out/\", \"src/main.rs\", \"src/lib.rs\"]` in glovebox.toml",
            "refused to read `Cargo.toml`: not in the read scope; to allow it: `read_paths=\"src/,Cargo.toml\"` on the node, \
             and for a plugin `grants.read = [\"src/\", \"Cargo.toml\"]` in glovebox.toml",
            "refused to read `scenarios/holdout/h.toml`: hidden from this stage; hidden paths cannot be granted",
            "refused to make directory `src/new`: not in the write scope; to allow it: \
             `allowed_write_paths=\"out/,src/main.rs,src/new/\"` on the node, and for a plugin \
             `grants.write = [\"out/\", \"src/main.rs\", \"src/new/\"]` in glovebox.toml",
        ]
    );
}
