//! Storing and applying changes: repeatedly, after interruptions, and while another process swaps folders.

use super::bench::{Bench, look, sh, snapshot};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Scope;
use glovebox_record::{ChangeOp, Digest, FileChange};
use glovebox_workspace::commit;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};

#[test]
fn applying_twice_or_again_after_any_interruption_gives_the_same_tree() {
    let files = [("keep", "k"), ("a", "file"), ("d/x", "x"), ("d/y", "y"), ("gone/deep/z", "z"), ("run.sh", "#!")];
    let script =
        "rm a; mkdir a; echo new > a/b; rm -r d; echo d > d; rm -r gone; chmod +x run.sh; mkdir -p n/m; ln -s keep l";
    let second = "rm -r a; echo again > a; rm d; mkdir d; echo y2 > d/y; rm l";
    let made = Bench::new(&files);
    let mut stages = Vec::new();
    let mut states = vec![snapshot(&made.workspace())];
    for script in [script, second] {
        let copy = made.copy(&Scope::everything());
        sh(copy.root(), script);
        let changes = made.store(&look(&copy), &copy);
        let expected = snapshot(copy.root());
        copy.remove().unwrap();
        made.apply(&changes).unwrap();
        assert_eq!(snapshot(&made.workspace()), expected);
        states.push(expected);
        stages.push(changes);
    }
    let all: Vec<FileChange> = stages.concat();
    let last = states.last().unwrap();
    // Applied to the complete tree, as one list and stage by stage.
    made.apply(&all).unwrap();
    assert_eq!(&snapshot(&made.workspace()), last);
    for changes in &stages {
        made.apply(changes).unwrap();
    }
    assert_eq!(&snapshot(&made.workspace()), last);
    // Interrupted before every blob, then applied again from the beginning.
    let steps = all.iter().filter(|change| change.op == ChangeOp::Write).count();
    for stop in 0..=steps {
        let fresh = Bench::new(&files);
        for (name, _) in fs::read_dir(made.blobs()).unwrap().map(|e| (e.unwrap().file_name(), ())) {
            fs::copy(made.blobs().join(&name), fresh.blobs().join(&name)).unwrap();
        }
        let opened = std::cell::Cell::new(0);
        let interrupted = stages.iter().try_for_each(|changes| {
            commit::apply(&fresh.workspace(), changes, &|digest| {
                opened.set(opened.get() + 1);
                if opened.get() > stop { Err(io::Error::other("interrupted")) } else { fresh.blob(digest) }
            })
        });
        assert_eq!(interrupted.is_err(), stop < steps, "{stop}");
        fresh.apply(&all).unwrap();
        assert_eq!(&snapshot(&fresh.workspace()), last, "{stop}");
    }
}

#[test]
fn a_conflicting_folder_of_the_workspace_is_replaced() {
    let made = Bench::new(&[("d/x", "x"), ("e/f/y", "y")]);
    let path = |text: &str| ScopePath::parse(text).unwrap();
    let digest = Digest::hash(b"file");
    fs::write(made.blobs().join(digest.hex()), "file").unwrap();
    let write = FileChange { digest: Some(digest), bytes: 4, ..FileChange::bare(path("d"), ChangeOp::Write) };
    let link = FileChange { target: Some("d".into()), ..FileChange::bare(path("e"), ChangeOp::Symlink) };
    made.apply(&[write, link]).unwrap();
    let after = snapshot(&made.workspace());
    assert_eq!(after, [("d", "false file"), ("e", "-> d")].map(|(path, what)| (path.into(), what.into())).into());
}

#[test]
fn a_file_that_is_as_it_should_be_is_not_written_again() {
    let made = Bench::new(&[]);
    let digest = Digest::hash(b"file");
    fs::write(made.blobs().join(digest.hex()), "file").unwrap();
    let bare = FileChange::bare(ScopePath::parse("f").unwrap(), ChangeOp::Write);
    let write = FileChange { digest: Some(digest), bytes: 4, ..bare };
    let number = |change: &FileChange| {
        made.apply(std::slice::from_ref(change)).unwrap();
        fs::metadata(made.workspace().join("f")).unwrap().ino()
    };
    let first = number(&write);
    assert_eq!(number(&write), first, "build tools look at its times");
    let executable = number(&FileChange { executable: true, ..write.clone() });
    assert_ne!(executable, first);
    fs::hard_link(made.workspace().join("f"), made.dir.path().join("elsewhere")).unwrap();
    let alone = number(&FileChange { executable: true, ..write.clone() });
    assert_ne!(alone, executable, "nobody changes it by another name");
    fs::write(made.workspace().join("f"), "FILE").unwrap();
    number(&write);
    assert_eq!(fs::read_to_string(made.workspace().join("f")).unwrap(), "file");
}

#[test]
fn a_folder_that_is_made_leaves_what_lies_beside_it() {
    let made = Bench::new(&[("n/keep", "k")]);
    made.apply(&[FileChange::bare(ScopePath::parse("n/m/o").unwrap(), ChangeOp::Mkdir)]).unwrap();
    assert_eq!(snapshot(&made.workspace()).into_keys().collect::<Vec<_>>(), ["n", "n/keep", "n/m", "n/m/o"]);
}

#[test]
fn a_removal_below_a_link_is_an_error_and_below_nothing_is_done_already() {
    let made = Bench::new(&[("f", "f")]);
    let outside = made.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), "canary").unwrap();
    symlink(&outside, made.workspace().join("way")).unwrap();
    let remove = |path: &str| made.apply(&[FileChange::bare(ScopePath::parse(path).unwrap(), ChangeOp::Delete)]);
    assert!(remove("way/x").is_err());
    assert_eq!(fs::read_to_string(outside.join("x")).unwrap(), "canary");
    for absent in ["absent", "absent/x", "f/x"] {
        remove(absent).unwrap();
    }
}

#[test]
fn what_an_interrupted_write_left_is_gone_after_the_next() {
    let made = Bench::new(&[("a", "old")]);
    let copy = made.copy(&Scope::everything());
    sh(copy.root(), "echo new > a");
    let changes = made.store(&look(&copy), &copy);
    // A blob whose content does not match its digest is refused, and the workspace does not change.
    let digest = changes[0].digest.unwrap();
    let forged = commit::apply(&made.workspace(), &changes, &|_| {
        let path = made.dir.path().join("forged");
        fs::write(&path, "evil").unwrap();
        File::open(path)
    });
    assert!(matches!(forged, Err(commit::CommitError::Corrupt { .. })), "{digest}");
    assert_eq!(snapshot(&made.workspace()).into_values().collect::<Vec<_>>(), ["false old"]);
    // A temporary file that a crash left has a fixed name, so the next attempt replaces it.
    let name = format!(".glovebox-part-{}", &blake3::hash(b"a").to_hex()[..16]);
    fs::write(made.workspace().join(name), "half").unwrap();
    made.apply(&changes).unwrap();
    assert_eq!(snapshot(&made.workspace()).into_values().collect::<Vec<_>>(), ["false new\n"]);
}

#[test]
fn a_file_that_changes_between_the_verdict_and_the_store_is_not_committed() {
    let check = |disturb: &str| {
        let made = Bench::new(&[("a", "old")]);
        let copy = made.copy(&Scope::everything());
        sh(copy.root(), "echo judged > a");
        let found = look(&copy);
        sh(copy.root(), disturb);
        let stored = commit::store(&found, &copy, &mut |content| {
            io::copy(content, &mut io::sink())?;
            Ok(Digest::ZERO)
        });
        assert!(stored.is_err(), "{disturb}: {stored:?}");
    };
    check("echo longer than judged > a");
    check(": > a");
    check("rm a; ln -s /etc/passwd a");
    check("rm a; mkfifo a");
}

#[test]
fn changes_with_paths_that_lead_out_are_refused() {
    let made = Bench::new(&[]);
    let outside = made.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, made.workspace().join("way")).unwrap();
    let write = |path: &str| FileChange {
        path: ScopePath::parse(path).unwrap(),
        op: ChangeOp::Write,
        digest: Some(Digest::hash(b"x")),
        bytes: 1,
        executable: false,
        mode: None,
        target: None,
    };
    fs::write(made.blobs().join(blake3::hash(b"x").to_hex().as_str()), "x").unwrap();
    for path in ["../x", "/etc/x", "a/../../x", "a//b"] {
        let forged = format!(r#"{{"path":"{path}","op":"delete"}}"#);
        assert!(serde_json::from_str::<FileChange>(&forged).is_err(), "{path:?}");
    }
    assert!(made.apply(&[write("")]).is_err());
    let link = FileChange { op: ChangeOp::Symlink, target: Some("../../x".to_owned()), digest: None, ..write("a/l") };
    assert!(made.apply(&[link]).is_err());
    // A link in the path is replaced, and nothing is written through it.
    made.apply(&[write("way/x")]).unwrap();
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert!(made.workspace().join("way/x").is_file());
}

#[test]
fn a_swapped_directory_never_lets_a_commit_out() {
    let made = Bench::new(&[("d/f", "0"), ("d/sub/g", "0")]);
    let outside = made.dir.path().join("outside");
    fs::create_dir_all(outside.join("sub")).unwrap();
    fs::write(outside.join("f"), "canary").unwrap();
    let workspace = made.workspace();
    symlink(&outside, workspace.join("link")).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (mut done, mut failed) = (0, 0);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = renameat_with(CWD, workspace.join("d"), CWD, workspace.join("link"), RenameFlags::EXCHANGE);
            }
        });
        let begin = std::time::Instant::now();
        let (least, most) = (std::time::Duration::from_secs(3), std::time::Duration::from_secs(60));
        let mut turn = 0_u32;
        // Repeats until some commits succeeded, which can take long on a busy machine.
        while begin.elapsed() < least || done <= 5 && begin.elapsed() < most {
            turn += 1;
            let content = turn.to_string();
            let digest = Digest::hash(content.as_bytes());
            let blob = made.blobs().join("blob");
            fs::write(&blob, &content).unwrap();
            let change = |path: &str| FileChange {
                path: ScopePath::parse(path).unwrap(),
                op: ChangeOp::Write,
                digest: Some(digest),
                bytes: content.len() as u64,
                executable: false,
                mode: None,
                target: None,
            };
            let gone = FileChange { op: ChangeOp::Delete, digest: None, ..change("d/f") };
            let list = if turn.is_multiple_of(3) {
                vec![gone]
            } else {
                vec![change("d/f"), change("d/sub/g"), change("d/n/h")]
            };
            match commit::apply(&workspace, &list, &|_| File::open(&blob)) {
                Ok(()) => done += 1,
                Err(_) => failed += 1,
            }
            if !workspace.join("link").is_symlink() && !workspace.join("d").is_symlink() {
                // The commit may have removed the link, which is correct. It is created again.
                let _ = fs::remove_dir_all(workspace.join("link"));
                let _ = symlink(&outside, workspace.join("link"));
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(done > 5, "{done} commits, {failed} refused");
    let expected: BTreeMap<String, String> =
        [("f".to_owned(), "false canary".to_owned()), ("sub".to_owned(), "dir".to_owned())].into();
    assert_eq!(snapshot(&outside), expected);
}
