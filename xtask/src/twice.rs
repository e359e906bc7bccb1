//! Builds the shipped components a second time, from a copy of the sources in another folder, and compares the bytes.
//!
//! A build that depends on the folder, on a time or on an order differs. To keep the second build short, it leaves out what is not
//! shipped, and uses the standard library and the compiled macros of the first one. Every crate of a component is compiled again, because
//! its flags have the folder of the copy.

use crate::components::{SHIPPED, build_first_party, built};
use crate::process::at;
use crate::wasm_std::{self, StdSource};
use crate::{Step, repository, sources};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Files and folders of the repository that no build reads.
const LEFT_OUT: [&str; 2] = ["target", ".git"];

/// Compares the components in `target/components`, which must have been built from the sources as they are, with those of a second build.
///
/// # Errors
///
/// The components differ, or cannot be built.
pub(crate) fn compare() -> Step<()> {
    let digest = at(&repository(), sources::digest(&repository()))?;
    let first = repository().join("target/components").join(sources::FILE);
    if fs::read_to_string(&first).is_ok_and(|of_first| of_first != digest) {
        return Err("`target/components` is older than the sources: run `cargo xtask components` first".to_owned());
    }
    let source = repository().join("target/twice/elsewhere/source");
    copy(&repository(), &source)?;
    let target = repository().join("target/wasm");
    build_first_party(&source, &SHIPPED, &wasm_std::rustflags(StdSource::from_environment()?)?, &target)?;
    let mut differences = Vec::new();
    for name in SHIPPED {
        let (first, second) = (repository().join(format!("target/components/{name}.wasm")), built(&target, name));
        let (one, other) = (at(&first, fs::read(&first))?, at(&second, fs::read(&second))?);
        differences.extend(difference(&one, &other).map(|found| format!("`{name}` {found}")));
    }
    if differences.is_empty() {
        eprintln!("built {} components twice, with the same bytes", SHIPPED.len());
        return Ok(());
    }
    Err(format!("a second build in `{}` gives other components: {}", source.display(), differences.join(", ")))
}

/// Returns how two components differ.
fn difference(one: &[u8], other: &[u8]) -> Option<String> {
    let first = one.iter().zip(other).position(|(one, other)| one != other);
    match (first, one.len() == other.len()) {
        (None, true) => None,
        (Some(offset), true) => Some(format!("differs first at offset {offset}")),
        (_, false) => Some(format!("has {} bytes and {} bytes", one.len(), other.len())),
    }
}

/// Makes a copy of the repository. Files that are the same already are not touched, so that cargo builds nothing again for them.
fn copy(from: &Path, to: &Path) -> Step<()> {
    at(to, fs::create_dir_all(to))?;
    let mut names = BTreeSet::new();
    for entry in at(from, fs::read_dir(from))? {
        let entry = at(from, entry)?;
        let name = entry.file_name();
        let kind = at(&entry.path(), entry.file_type())?;
        if LEFT_OUT.iter().any(|left_out| name == *left_out) {
            continue;
        }
        if kind.is_dir() {
            copy(&entry.path(), &to.join(&name))?;
            names.insert(name);
        } else if kind.is_file() {
            copy_file(&entry.path(), &to.join(&name))?;
            names.insert(name);
        }
    }
    for entry in at(to, fs::read_dir(to))? {
        let entry = at(to, entry)?;
        if !names.contains(&entry.file_name()) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &PathBuf) -> Step<()> {
    let bytes = at(from, fs::read(from))?;
    match fs::read(to).is_ok_and(|known| known == bytes) {
        true => Ok(()),
        false => at(to, fs::write(to, bytes)),
    }
}

fn remove(path: &Path) -> Step<()> {
    let is_folder = at(path, fs::symlink_metadata(path))?.is_dir();
    at(path, if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_is_found() {
        assert_eq!(difference(b"abc", b"abc"), None);
        assert_eq!(difference(b"abc", b"abd").as_deref(), Some("differs first at offset 2"));
        assert_eq!(difference(b"abc", b"abcd").as_deref(), Some("has 3 bytes and 4 bytes"));
    }

    #[test]
    fn a_copy_has_exactly_the_files_that_a_build_reads() {
        let folder = std::env::temp_dir().join(format!("glovebox-twice-{}", std::process::id()));
        let (from, to) = (folder.join("from"), folder.join("to"));
        fs::create_dir_all(from.join("a/target")).unwrap();
        fs::write(from.join("a/b"), "1").unwrap();
        fs::create_dir_all(to.join("old")).unwrap();
        fs::write(to.join("old/x"), "2").unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(fs::read(to.join("a/b")).unwrap(), b"1");
        assert!(!to.join("old").exists() && !to.join("a/target").exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
