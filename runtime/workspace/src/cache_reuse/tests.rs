//! What a later run takes, and what it must never take.

use super::*;
use std::os::unix::fs::symlink;
use std::time::Duration;

struct Place {
    folder: tempfile::TempDir,
    user_key: UserKey,
    key: Digest,
    folders: Vec<Entry>,
}

fn place() -> Place {
    Place {
        folder: tempfile::tempdir().unwrap(),
        user_key: UserKey::from_bytes([7; 32]),
        key: Digest::hash(b"key"),
        folders: vec![Entry::parse("target/").unwrap(), Entry::parse("web/out/").unwrap()],
    }
}

impl Place {
    fn reuse(&self) -> CacheReuse<'_> {
        CacheReuse { key: &self.key, folders: &self.folders, user_key: &self.user_key, bytes_max: 1 << 20 }
    }

    fn run(&self, name: &str) -> PathBuf {
        let run = self.folder.path().join(name);
        fs::create_dir_all(&run).unwrap();
        run
    }

    /// Creates a run with caches of checkers and of builders.
    fn filled(&self, name: &str) -> PathBuf {
        let run = self.run(name);
        for (file, text) in [
            ("cache/checker/0123/object", "object"),
            ("cache/checker/lock", ""),
            ("cache/ignored/checker/target/debug/lib", "lib"),
            ("cache/ignored/checker/server.pid", "7"),
            ("cache/builder/0123/object", "poison"),
            ("cache/ignored/builder/target/debug/lib", "poison"),
            ("cache/verifier/0123/object", "secret"),
        ] {
            let file = run.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        run
    }

    fn take(&self, from: &Path, to: &str, transfer: Transfer) -> Option<PathBuf> {
        let to = self.run(to);
        self.reuse().take(from, &to, transfer).unwrap().then(|| to.join("cache"))
    }
}

fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path()).into_iter().map(|below| format!("{name}/{below}"))),
            false => found.push(name),
        }
    }
    found.sort();
    found
}

const TAKEN: [&str; 3] = ["checker/0123/object", "checker/lock", "ignored/checker/target/debug/lib"];

#[test]
fn only_the_caches_of_checkers_are_taken_and_of_ignored_files_only_named_folders() {
    let place = place();
    let first = place.filled("first");
    assert_eq!(place.take(&first, "early", Transfer::Move), None, "nothing is offered");
    assert!(place.reuse().offer(&first).unwrap());
    let second = place.take(&first, "second", Transfer::Move).unwrap();
    assert_eq!(files(&second), TAKEN);
    assert_eq!(place.take(&first, "third", Transfer::Move), None, "they are gone");
    assert!(!first.join("cache").exists(), "nothing needs the other caches");
}

#[test]
fn a_run_that_may_be_resumed_keeps_its_caches() {
    let place = place();
    let first = place.filled("first");
    let object = first.join("cache/checker/0123/object");
    let old = SystemTime::now() - Duration::from_secs(3600);
    File::options().write(true).open(&object).unwrap().set_modified(old).unwrap();
    assert!(place.reuse().offer(&first).unwrap());
    for to in ["second", "third"] {
        let taken = place.take(&first, to, Transfer::Copy).unwrap();
        let copied: Vec<String> = files(&taken).into_iter().filter(|file| !file.ends_with("lock")).collect();
        assert_eq!(copied, [TAKEN[0], TAKEN[2]]);
        let time = |file: &Path| fs::metadata(file).unwrap().modified().unwrap();
        assert_eq!(time(&taken.join("checker/0123/object")), time(&object), "build tools compare times");
    }
    assert!(object.exists());
}

#[test]
fn caches_with_files_of_builders_code_are_replaced_by_the_snapshot_before_it() {
    let place = place();
    let first = place.filled("first");
    let set = CacheSet::from(Domain::Checker);
    snapshot(&first, &set, &place.folders).unwrap();
    set.mark(&first).unwrap();
    fs::write(first.join("cache/checker/0123/object"), "poison").unwrap();
    fs::write(first.join("cache/checker/0123/planted"), "poison").unwrap();
    fs::write(first.join("cache/ignored/checker/target/debug/lib"), "poison").unwrap();
    assert!(place.reuse().offer(&first).unwrap());
    let second = place.take(&first, "second", Transfer::Move).unwrap();
    for (file, text) in [("checker/0123/object", "object"), ("ignored/checker/target/debug/lib", "lib")] {
        assert_eq!(fs::read_to_string(second.join(file)).unwrap(), text);
    }
    assert!(!files(&second).iter().any(|file| file.contains("planted")), "{:?}", files(&second));
    let marked = place.filled("marked");
    set.mark(&marked).unwrap();
    assert!(!place.reuse().offer(&marked).unwrap(), "without a snapshot nothing is offered");
}

#[test]
fn incomplete_and_large_caches_are_not_offered() {
    let place = place();
    let set = CacheSet::from(Domain::Checker);
    let unsettled = place.filled("unsettled");
    fs::write(unsettled.join("cache/checker.unsettled"), "").unwrap();
    let changing = place.filled("changing");
    fs::write(changing.join("cache/ignored/checker.changing"), "").unwrap();
    let large = place.filled("large");
    fs::write(large.join("cache/checker/0123/large"), vec![1; 2 << 20]).unwrap();
    for run in [&unsettled, &changing, &large, &place.run("empty")] {
        assert!(!place.reuse().offer(run).unwrap(), "{}", run.display());
    }
    set.settle(&unsettled).unwrap();
    assert!(place.reuse().offer(&unsettled).unwrap());
}

/// A failed run may be resumed after it made an offer.
#[test]
fn an_offer_is_void_when_the_caches_change() {
    let place = place();
    let set = CacheSet::from(Domain::Checker);
    let marked = place.filled("marked");
    assert!(place.reuse().offer(&marked).unwrap());
    set.mark(&marked).unwrap();
    assert_eq!(place.take(&marked, "to", Transfer::Copy), None);
    let unsettled = place.filled("unsettled");
    assert!(place.reuse().offer(&unsettled).unwrap());
    fs::write(unsettled.join("cache/checker.unsettled"), "").unwrap();
    assert_eq!(place.take(&unsettled, "to", Transfer::Copy), None);
    assert!(!place.reuse().offer(&unsettled).unwrap());
    set.settle(&unsettled).unwrap();
    assert_eq!(place.take(&unsettled, "to", Transfer::Copy), None, "the old offer was withdrawn");
    let withdrawn = place.filled("withdrawn");
    assert!(place.reuse().offer(&withdrawn).unwrap() && place.reuse().is_offered_by(&withdrawn));
    withdraw(&withdrawn).unwrap();
    withdraw(&withdrawn).unwrap();
    assert!(!place.reuse().is_offered_by(&withdrawn));
}

#[test]
fn a_removed_file_is_noticed() {
    let place = place();
    let before = place.run("before");
    fs::create_dir_all(before.join("src/empty")).unwrap();
    fs::write(before.join("src/a"), "").unwrap();
    symlink("a", before.join("src/link")).unwrap();
    let mut base = Base::default();
    let fact = crate::project::FileFact { digest: Digest::hash(b""), bytes: 0, executable: false };
    base.files.insert("src/a".to_owned(), fact.clone());
    base.files.insert("src/added".to_owned(), fact);
    assert!(!has_all_files(&before, &base, |_| false).unwrap(), "the link is missing");
    base.symlinks.insert("src/link".to_owned(), "a".to_owned());
    assert!(has_all_files(&before, &base, |_| false).unwrap());
    assert!(!keeps_base(&before, &base).unwrap(), "`src/added` is missing");
    base.files.remove("src/added");
    assert!(keeps_base(&before, &base).unwrap());
    fs::remove_file(before.join("src/link")).unwrap();
    assert!(!keeps_base(&before, &base).unwrap());
    base.files.remove("src/a");
    assert!(!has_all_files(&before, &base, |_| false).unwrap());
}

#[test]
fn another_key_another_user_and_a_forged_offer_take_nothing() {
    let place = place();
    let first = place.filled("first");
    assert!(place.reuse().offer(&first).unwrap());
    let (other_key, stranger) = (Digest::hash(b"other"), UserKey::from_bytes([8; 32]));
    let to = place.run("to");
    for reuse in [CacheReuse { key: &other_key, ..place.reuse() }, CacheReuse { user_key: &stranger, ..place.reuse() }]
    {
        assert!(!reuse.take(&first, &to, Transfer::Copy).unwrap());
    }
    let offer = first.join("cache/offer");
    let text = fs::read_to_string(&offer).unwrap();
    for forged in [String::new(), text.replace("false", "true"), text[1..].to_owned(), format!("{text} ")] {
        fs::write(&offer, &forged).unwrap();
        assert!(!place.reuse().take(&first, &to, Transfer::Copy).unwrap(), "{forged}");
    }
    fs::write(&offer, &text).unwrap();
    assert!(place.reuse().take(&first, &to, Transfer::Copy).unwrap());
    assert!(!place.reuse().take(&first, &to, Transfer::Copy).unwrap(), "the run has caches already");
}

#[test]
fn builds_from_before_the_clock_was_set_back_are_not_taken() {
    let place = place();
    let run = place.filled("first");
    assert!(place.reuse().offer(&run).unwrap() && place.reuse().is_offered_by(&run));
    let offer = File::options().write(true).open(run.join("cache/offer")).unwrap();
    offer.set_modified(SystemTime::now() + Duration::from_secs(3600)).unwrap();
    assert!(!place.reuse().is_offered_by(&run));
    assert_eq!(place.take(&run, "to", Transfer::Copy), None);
}

/// A name of a folder, and what replaces the folder.
type Replacement<'a> = (&'a str, &'a dyn Fn(&Path));

/// The offer is signed, but a stranger could have put other folders beside it.
#[test]
fn a_folder_that_was_replaced_is_not_taken() {
    let place = place();
    let outside = place.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("planted"), "poison").unwrap();
    let replace: [Replacement<'_>; 3] = [
        ("by a copy", &|folder| {
            let old = folder.with_file_name("old");
            fs::rename(folder, &old).unwrap();
            copy(&old, folder).unwrap();
        }),
        ("by a link", &|folder| {
            fs::rename(folder, folder.with_file_name("old")).unwrap();
            symlink(&outside, folder).unwrap();
        }),
        ("by nothing", &|folder| fs::remove_dir_all(folder).unwrap()),
    ];
    for (how, replace) in replace {
        for part in ["cache/checker", "cache/ignored/checker"] {
            let run = place.filled(&format!("{how} {part}").replace('/', "-"));
            assert!(place.reuse().offer(&run).unwrap());
            replace(&run.join(part));
            for transfer in [Transfer::Copy, Transfer::Move] {
                assert_eq!(place.take(&run, "to", transfer), None, "{how} {part}");
            }
        }
    }
    let link = place.filled("link");
    assert!(place.reuse().offer(&link).unwrap());
    fs::rename(link.join("cache/offer"), outside.join("offer")).unwrap();
    symlink(outside.join("offer"), link.join("cache/offer")).unwrap();
    assert_eq!(place.take(&link, "to", Transfer::Copy), None, "the offer is a link to another folder");
}

#[test]
fn a_link_in_place_of_a_folder_of_ignored_files_is_not_followed() {
    let place = place();
    let outside = place.folder.path().join("outside");
    fs::create_dir_all(outside.join("out")).unwrap();
    fs::write(outside.join("out/canary"), "canary").unwrap();
    for (transfer, to) in [(Transfer::Copy, "copied"), (Transfer::Move, "moved")] {
        let run = place.filled(&format!("run-{to}"));
        let ignored = run.join("cache/ignored/checker");
        fs::remove_dir_all(ignored.join("target")).unwrap();
        symlink(&outside, ignored.join("target")).unwrap();
        symlink(&outside, ignored.join("web")).unwrap();
        assert!(place.reuse().offer(&run).unwrap());
        let taken = place.take(&run, to, transfer).unwrap();
        assert!(!files(&taken).iter().any(|file| file.starts_with("ignored/")), "{:?}", files(&taken));
        assert_eq!(fs::read_to_string(outside.join("out/canary")).unwrap(), "canary");
    }
}

#[test]
fn only_unchanged_files_keep_their_time() {
    let place = place();
    let (before, now) = (place.run("before"), place.run("now"));
    let old = SystemTime::now() - Duration::from_secs(3600);
    let mut base = Base::default();
    let outside = place.folder.path().join("outside");
    fs::write(&outside, "same").unwrap();
    for (path, earlier, new) in [
        ("same", "same", "same"),
        ("changed", "a", "b"),
        ("written", "same", "same"),
        ("new", "", "same"),
        ("link", "", "same"),
    ] {
        match path {
            "new" => {}
            "link" => symlink(&outside, before.join(path)).unwrap(),
            _ => fs::write(before.join(path), earlier).unwrap(),
        }
        fs::write(now.join(path), new).unwrap();
        for file in [before.join(path), now.join(path)].iter().filter(|file| file.exists()) {
            File::options().write(true).open(file).unwrap().set_modified(old).unwrap();
        }
        let digest = Digest::hash(new.as_bytes());
        let fact = crate::project::FileFact { digest, bytes: new.len() as u64, executable: false };
        base.files.insert(path.to_owned(), fact);
    }
    keep_times(&before, &now, &base, |path| path == "written").unwrap();
    let is_old = |path: &str| fs::metadata(now.join(path)).unwrap().modified().unwrap() == old;
    let kept: Vec<&str> = base.files.keys().map(String::as_str).filter(|path| is_old(path)).collect();
    assert_eq!(kept, ["same"]);
}
