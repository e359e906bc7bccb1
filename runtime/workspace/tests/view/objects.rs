//! Objects that are not regular files or that a name reaches in an unexpected way: links, FIFOs, sockets, devices,
//! holes, moved directories, huge listings.

use super::fixture::{Fixture, listed, path, scope};
use glovebox_record::Limits;
use glovebox_record::scope::Scope;
use glovebox_workspace::refusal::RefusalLog;
use glovebox_workspace::view::{Create, Kind, LIST_ENTRIES_MAX, NewTime, OpenOptions, OpenViewError, View, ViewError};
use rustix::fs::{CWD, Mode};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

const WRITE: OpenOptions = OpenOptions { read: true, write: true, create: Create::IfAbsent, truncate: false };

#[test]
fn pipes_and_sockets_are_refused_at_once() {
    let fixture = Fixture::new();
    rustix::fs::mkfifoat(CWD, fixture.root().join("out/pipe"), Mode::from_raw_mode(0o666)).unwrap();
    let _socket = UnixListener::bind(fixture.root().join("out/socket")).unwrap();
    let (on_disk, layered) = (Arc::new(fixture.view()), Arc::new(fixture.layered()));
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        // The layer is tested first, because it does not remove the objects from the disk.
        for (view, name) in [&layered, &on_disk].into_iter().flat_map(|view| [(view, "out/pipe"), (view, "out/socket")])
        {
            for wish in [OpenOptions::READ, OpenOptions::REPLACE, WRITE] {
                assert_eq!(view.open_file(&path(name), wish).map(drop), Err(ViewError::NotPermitted), "{name}");
            }
            assert_eq!(view.set_times(&path(name), NewTime::Now, NewTime::Now), Err(ViewError::NotPermitted));
            assert_eq!(view.rename(&path(name), &path("out/elsewhere")), Err(ViewError::NotPermitted));
            assert_eq!(view.stat(&path(name)).unwrap().kind, Kind::Special);
            assert_eq!(view.list(&path(name)), Err(ViewError::NotADirectory));
            view.unlink(&path(name)).unwrap();
        }
        done.send(()).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(10)).expect("an operation on a pipe or socket hangs or failed");
}

#[test]
fn devices_are_refused() {
    let view = View::open(Path::new("/dev"), Scope::everything(), Limits::default(), Arc::default()).unwrap();
    let view = Arc::new(view);
    for wish in [OpenOptions::READ, OpenOptions::REPLACE] {
        assert_eq!(view.open_file(&path("null"), wish).map(drop), Err(ViewError::NotPermitted));
    }
}

#[test]
fn holes_cost_their_size() {
    let fixture = Fixture::new();
    let limits = Limits { write_bytes: 1 << 20, write_entries: 10, ..Limits::default() };
    let (layered, _files) = fixture.layered_with(scope(&["./"], &["out/"], &[]), limits);
    check_holes(&Arc::new(layered));
    assert!(!fixture.root().join("out/sparse").exists());
    let view = Arc::new(fixture.view_with(scope(&["./"], &["out/"], &[]), limits));
    check_holes(&view);
    assert_eq!(fs::metadata(fixture.root().join("out/sparse")).unwrap().len(), 10);
    assert_eq!(fs::read(fixture.root().join("out/own")).unwrap(), b"own", "given up before the quota was asked");
}

fn check_holes(view: &Arc<View>) {
    let file = view.open_file(&path("out/sparse"), WRITE).unwrap();
    assert_eq!(file.set_len(1 << 40), Err(ViewError::Quota));
    assert_eq!(file.write_at(b"x", 1 << 40), Err(ViewError::Quota));
    assert_eq!(file.write_at(b"x", u64::MAX), Err(ViewError::Io(rustix::io::Errno::FBIG)));
    file.write_at(b"x", 1000).unwrap();
    assert_eq!(view.written_bytes(), 1001);
    file.append(b"y").unwrap();
    file.set_len(10).unwrap();
    assert_eq!(view.written_bytes(), 1002);
    assert_eq!(view.stat(&path("out/sparse")).unwrap().size, 10);
    assert_eq!(view.write_file(&path("out/own"), &vec![0; 1 << 20]), Err(ViewError::Quota));
    assert_eq!(view.read_file(&path("out/own"), 0, 10).unwrap(), b"own", "given up before the quota was asked");
}

#[test]
fn entries_are_counted() {
    let fixture = Fixture::new();
    let limits = Limits { write_bytes: 100, write_entries: 3, ..Limits::default() };
    let (layered, _files) = fixture.layered_with(scope(&["./"], &["out/"], &[]), limits);
    check_entries(&Arc::new(layered));
    check_entries(&Arc::new(fixture.view_with(scope(&["./"], &["out/"], &[]), limits)));
}

fn check_entries(view: &Arc<View>) {
    view.make_directory(&path("out/a")).unwrap();
    assert_eq!(view.make_directory(&path("out/a")), Err(ViewError::Exists));
    view.write_file(&path("out/b"), b"1").unwrap();
    view.write_file(&path("out/b"), b"2").unwrap();
    view.rename(&path("out/b"), &path("out/c")).unwrap();
    assert_eq!(view.make_directory(&path("out/e")), Err(ViewError::Quota));
    assert_eq!(view.write_file(&path("out/f"), b"3"), Err(ViewError::Quota));
    assert_eq!(view.written_entries(), 3);
    assert!(view.refusals().stored()[0].help.contains("limits.write_entries"));
}

#[test]
fn another_name_of_something_hidden_does_not_exist() {
    let fixture = Fixture::new();
    fs::hard_link(fixture.root().join("scenarios/holdout/deep/x"), fixture.root().join("out/alias")).unwrap();
    let (view, layered) = (Arc::new(fixture.view()), Arc::new(fixture.layered()));
    fs::rename(fixture.root().join("scenarios/holdout/deep"), fixture.root().join("visible/deep")).unwrap();
    check_other_names(&layered);
    // The hidden object is not moved with its directory either.
    assert_eq!(layered.rename(&path("out/d"), &path("out/e")), Ok(()));
    fs::hard_link(fixture.root().join("scenarios/holdout/h.toml"), fixture.root().join("out/d/alias")).unwrap();
    let layered = Arc::new(fixture.layered());
    assert_eq!(layered.rename(&path("out/d"), &path("out/e")), Err(ViewError::NotPermitted));
    fs::remove_file(fixture.root().join("out/d/alias")).unwrap();
    check_other_names(&view);
}

fn check_other_names(view: &Arc<View>) {
    for name in ["out/alias", "visible/deep/x"] {
        assert_eq!(view.read_file(&path(name), 0, 10), Err(ViewError::NotFound), "{name}");
        assert_eq!(view.stat(&path(name)), Err(ViewError::NotFound), "{name}");
    }
    assert_eq!(view.list(&path("visible/deep")), Err(ViewError::NotFound));
    assert_eq!(view.rename(&path("out/alias"), &path("out/other")), Err(ViewError::NotFound));
    assert_eq!(view.rename(&path("out/own"), &path("out/alias")), Err(ViewError::NotFound));
    assert_eq!(view.unlink(&path("out/alias")), Err(ViewError::NotFound));
    assert_eq!(view.write_file(&path("out/alias"), b"EVIL"), Err(ViewError::NotFound));
    let names = |at: &str| listed(view, at).into_iter().map(|entry| entry.name).collect::<Vec<_>>();
    assert_eq!(names("visible"), ["v"]);
    assert!(!names("out").contains(&"alias".to_owned()));
}

#[test]
fn a_hidden_path_that_is_a_link_fails_closed() {
    let fixture = Fixture::new();
    symlink("src", fixture.root().join("hold")).unwrap();
    for hidden in ["hold/", "hold", "hold/deep"] {
        let opened = View::open(fixture.root(), scope(&["./"], &[], &[hidden]), Limits::default(), Arc::default());
        assert!(matches!(opened, Err(OpenViewError::HiddenLink { .. })), "{hidden}");
    }
}

#[test]
fn directories_of_grants_can_be_made_but_nothing_beside_them() {
    let fixture = Fixture::new();
    let rules = || scope(&[], &["new/deep/", "a/b/c.md"], &[]);
    check_directories_of_grants(&Arc::new(fixture.layered_with(rules(), Limits::default()).0));
    check_directories_of_grants(&Arc::new(fixture.view_with(rules(), Limits::default())));
    assert_eq!(fs::read(fixture.root().join("new/deep/er/x")).unwrap(), b"1");
}

fn check_directories_of_grants(view: &Arc<View>) {
    view.write_file(&path("new/deep/er/x"), b"1").unwrap();
    view.write_file(&path("a/b/c.md"), b"2").unwrap();
    assert_eq!(view.write_file(&path("a/b/d.md"), b"3"), Err(ViewError::NotFound));
    assert_eq!(view.make_directory(&path("a/z")), Err(ViewError::NotFound));
    assert_eq!(view.make_directory(&path("a/b/c.md")), Err(ViewError::NotPermitted));
    assert_eq!(view.remove_directory(&path("new/deep")), Err(ViewError::NotPermitted));
    assert_eq!(view.read_file(&path("new/deep/er/x"), 0, 10).unwrap(), b"1");
    assert_eq!(view.read_file(&path("a/b/c.md"), 0, 10).unwrap(), b"2");
}

#[test]
fn a_handle_keeps_the_rights_it_was_opened_with() {
    let fixture = Fixture::new();
    check_handles(&Arc::new(fixture.layered()));
    check_handles(&Arc::new(fixture.view()));
    assert_eq!(fs::read(fixture.root().join("src/main.rs")).unwrap(), b"main");
}

fn check_handles(view: &Arc<View>) {
    let file = view.open_file(&path("src/main.rs"), OpenOptions::READ).unwrap();
    assert_eq!(file.write_at(b"x", 0), Err(ViewError::NotPermitted));
    assert_eq!(file.append(b"x"), Err(ViewError::NotPermitted));
    assert_eq!(file.set_len(0), Err(ViewError::NotPermitted));
    assert_eq!(file.set_times(NewTime::Now, NewTime::Now), Err(ViewError::NotPermitted));
    let file = view.open_file(&path("src/main.rs"), OpenOptions { truncate: false, ..OpenOptions::REPLACE }).unwrap();
    assert!(file.read_at(&mut [0; 4], 0).is_err());
}

#[test]
fn a_directory_with_too_many_entries_is_not_listed() {
    let fixture = Fixture::new();
    let full = fixture.root().join("out/full");
    fs::create_dir(&full).unwrap();
    let views = [fixture.view(), fixture.layered()];
    for n in 0..LIST_ENTRIES_MAX {
        fs::File::create(full.join(n.to_string())).unwrap();
    }
    for view in &views {
        assert_eq!(view.list(&path("out/full")).unwrap().len(), LIST_ENTRIES_MAX);
    }
    fs::File::create(full.join("one more")).unwrap();
    for view in &views {
        assert_eq!(view.list(&path("out/full")), Err(ViewError::TooLarge));
    }
}

#[test]
fn names_that_no_text_can_say_are_not_shown() {
    use std::os::unix::ffi::OsStrExt;
    let fixture = Fixture::new();
    let odd = std::ffi::OsStr::from_bytes(b"out/d/\xff");
    fs::write(fixture.root().join(odd), "x").unwrap();
    for view in [fixture.view(), fixture.layered()] {
        let names: Vec<String> = view.list(&path("out/d")).unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["h.toml"]);
    }
    // An entry whose name is not UTF-8 is not moved either.
    assert_eq!(fixture.layered().rename(&path("out/d"), &path("out/e")), Err(ViewError::NotPermitted));
}

#[test]
fn a_log_tells_of_refusals_as_they_happen() {
    let fixture = Fixture::new();
    let (tell, told) = mpsc::channel();
    let log = RefusalLog::new(1).on_refusal(move |refusal| tell.send(refusal.path.clone()).unwrap());
    let view = View::open(fixture.root(), scope(&[], &["out/"], &[]), Limits::default(), Arc::new(log)).unwrap();
    assert_eq!(view.unlink(&path("ro/a\u{1b}[2J")), Err(ViewError::NotFound));
    assert_eq!(view.unlink(&path("ro/b")), Err(ViewError::NotFound));
    assert_eq!(told.try_iter().collect::<Vec<_>>(), ["ro/a\\x1b[2J"]);
    assert_eq!((view.refusals().stored().len(), view.refusals().total()), (1, 2));
}
