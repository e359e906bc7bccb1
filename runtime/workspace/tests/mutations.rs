//! A property test: a program does anything to its copy. After the commit, only allowed paths of the workspace differ,
//! and they are equal to those of the copy.

use glovebox_record::Digest;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Access, Entry, Scope};
use glovebox_workspace::change::ChangeLimits;
use glovebox_workspace::commit;
use glovebox_workspace::protect::Protected;
use glovebox_workspace::stage::Copy;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

const NAMES: &[&str] = &["a", "b", "src", ".git"];

#[derive(Debug, Clone)]
enum Act {
    Write(String, u8),
    Remove(String),
    Mkdir(String),
    Rename(String, String),
    HardLink(String, String),
    Symlink(String, String),
    Fifo(String),
    Mode(String, u32),
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(NAMES), 1..4).prop_map(|names| names.join("/"))
}

fn act() -> impl Strategy<Value = Act> {
    let target = prop_oneof![path(), path().prop_map(|path| format!("../{path}")), Just("/etc/passwd".to_owned())];
    prop_oneof![
        4 => (path(), 0_u8..3).prop_map(|(path, content)| Act::Write(path, content)),
        3 => path().prop_map(Act::Remove),
        2 => path().prop_map(Act::Mkdir),
        3 => (path(), path()).prop_map(|(from, to)| Act::Rename(from, to)),
        1 => (path(), path()).prop_map(|(from, to)| Act::HardLink(from, to)),
        1 => (path(), target).prop_map(|(path, target)| Act::Symlink(path, target)),
        1 => path().prop_map(Act::Fifo),
        1 => (path(), prop::sample::select(&[0o644_u32, 0o755, 0o600, 0o4755][..])).prop_map(|(path, mode)| Act::Mode(path, mode)),
    ]
}

/// Performs the action as a program would. An action that the system refuses has no effect.
fn perform(root: &Path, act: &Act) {
    let at = |path: &str| root.join(path);
    let inside = |path: &str| at(path).parent().unwrap().canonicalize().is_ok_and(|parent| parent.starts_with(root));
    match act {
        Act::Write(path, content) => {
            let _ = fs::create_dir_all(at(path).parent().unwrap());
            let special = fs::symlink_metadata(at(path)).is_ok_and(|meta| !meta.is_file());
            if inside(path) && !special {
                let _ = fs::write(at(path), [b'0' + content]);
            }
        }
        Act::Remove(path) if inside(path) => {
            let _ = fs::remove_file(at(path)).or_else(|_| fs::remove_dir_all(at(path)));
        }
        Act::Mkdir(path) => drop(fs::create_dir_all(at(path))),
        Act::Rename(from, to) if inside(from) && inside(to) => drop(fs::rename(at(from), at(to))),
        Act::HardLink(from, to) if inside(from) && inside(to) => drop(fs::hard_link(at(from), at(to))),
        Act::Symlink(path, target) if inside(path) => drop(symlink(target, at(path))),
        Act::Fifo(path) if inside(path) => {
            let _ = rustix::fs::mkfifoat(rustix::fs::CWD, at(path), rustix::fs::Mode::RWXU);
        }
        Act::Mode(path, mode) if inside(path) && fs::symlink_metadata(at(path)).is_ok_and(|meta| meta.is_file()) => {
            drop(fs::set_permissions(at(path), fs::Permissions::from_mode(*mode)));
        }
        _ => {}
    }
}

/// Returns files and links with their content. Directories are listed, but their metadata is not compared.
fn snapshot(root: &Path) -> BTreeMap<String, String> {
    let (mut all, mut pending) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                pending.push(path);
            } else if meta.is_symlink() {
                all.insert(name, format!("-> {}", fs::read_link(&path).unwrap().display()));
            } else if meta.is_file() {
                let executable = meta.permissions().mode() & 0o100 != 0;
                all.insert(name, format!("{executable} {:?}", fs::read(&path).unwrap()));
            }
        }
    }
    all
}

fn entries(texts: &[String]) -> Vec<Entry> {
    texts.iter().map(|text| Entry::parse(text).unwrap()).collect()
}

fn entry() -> impl Strategy<Value = String> {
    (path(), any::<bool>()).prop_map(|(path, subtree)| if subtree { format!("{path}/") } else { path })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn only_allowed_paths_differ_after_a_commit(
        before in prop::collection::vec(act(), 0..14),
        acts in prop::collection::vec(act(), 0..14),
        read in prop::collection::vec(entry(), 0..3),
        whole in any::<bool>(),
        write in prop::collection::vec(entry(), 0..3),
        hidden in prop::collection::vec(entry(), 0..2),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (workspace, at, blobs) = (base.join("workspace"), base.join("copy"), base.join("blobs"));
        fs::create_dir(&workspace).unwrap();
        fs::create_dir(&blobs).unwrap();
        before.iter().for_each(|act| perform(&workspace, act));
        let mut read = entries(&read);
        read.extend(whole.then(Entry::whole));
        let scope = Scope::new(read, entries(&write), entries(&hidden));
        let was = snapshot(&workspace);

        let copy = Copy::create(&workspace, &at, &scope).unwrap();
        for path in snapshot(&at).keys() {
            let access = scope.access(&ScopePath::parse(path).unwrap());
            prop_assert!(access >= Access::Read, "{path} is in the copy with {access:?}");
        }
        acts.iter().for_each(|act| perform(&at, act));
        let wanted = snapshot(&at);
        let protected = Protected::default();
        let found = copy.changes(&ChangeLimits::default(), &protected).unwrap();
        let mut keep = |content: &mut dyn Read| {
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes)?;
            let digest = Digest::hash(&bytes);
            fs::write(blobs.join(digest.hex()), &bytes)?;
            Ok(digest)
        };
        let changes = commit::store(&found, &copy, &mut keep).unwrap();
        commit::apply(&workspace, &changes, &|digest| fs::File::open(blobs.join(digest.hex()))).unwrap();
        let is = snapshot(&workspace);

        let paths = was.keys().chain(is.keys()).chain(wanted.keys());
        for path in paths {
            let access = scope.access(&ScopePath::parse(path).unwrap());
            let may = access == Access::Write && protected.reason(path).is_none();
            if was.get(path) != is.get(path) {
                prop_assert!(may, "{path} changed with {access:?}");
                prop_assert_eq!(is.get(path), wanted.get(path), "{} is not what the copy had", path);
            }
            // No allowed change is lost: a file of the copy exists, unless a disallowed change is at its path or above it.
            let blocked = found.iter().any(|change| {
                !change.is_allowed() && (path == &change.path || path.starts_with(&format!("{}/", change.path)))
            });
            if may && !blocked && wanted.contains_key(path) {
                prop_assert_eq!(is.get(path), wanted.get(path), "{} was lost: {:?}", path, found);
            }
        }
        commit::apply(&workspace, &changes, &|digest| fs::File::open(blobs.join(digest.hex()))).unwrap();
        prop_assert_eq!(snapshot(&workspace), is);
        copy.remove().unwrap();
    }
}
