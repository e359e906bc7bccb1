//! Reads objects of the project's repository: loose files and packfiles.
//!
//! A project brings its `.git`, so nothing in it is trusted. Lengths, depths and the work are bounded, symbolic links
//! are not followed, and the content of each object is compared with its id. No program is started. Settings,
//! replacements, alternates and remotes are not read, so an object that the repository itself does not have is missing,
//! and nothing is fetched.

use super::digest::{ObjectId, ObjectKind};
use super::packed_objects::{BaseCache, PackedObjects};
use crate::tree::{self, Tree};
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Maximum number of packfiles of a repository.
const PACKS_MAX: usize = 200;
/// Maximum number of bytes that all objects together may have, compressed and uncompressed, including bases of deltas.
const BYTES_MAX: u64 = 1 << 30;
/// Number of bytes of [`BYTES_MAX`] that are charged for each lookup of an object and for each entry of a packfile.
pub(super) const STEP_BYTES: usize = 512;
/// Maximum length of the header of a loose object.
const HEADER_BYTES_MAX: usize = 32;

/// Why an object could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ObjectError {
    #[error("the repository lacks an object, as a partial clone and a repository that borrows objects do")]
    Missing,
    #[error("an object is damaged")]
    Damaged,
    #[error("an object exceeds {0} bytes")]
    TooLong(usize),
    #[error("the objects exceed {BYTES_MAX} bytes")]
    WorkTooLarge,
    #[error("the repository has more than {PACKS_MAX} packfiles; run `git gc`")]
    TooManyPacks,
    #[error(transparent)]
    Read(#[from] io::Error),
}

/// The remaining number of bytes that may be read.
pub(super) struct WorkLimit(u64);

impl WorkLimit {
    /// Creates the limit of one repository.
    pub(super) fn new() -> Self {
        Self(BYTES_MAX)
    }

    /// Subtracts bytes that are read or made. Returns an error if too few are left. All later calls then fail too.
    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), ObjectError> {
        let left = self.0.checked_sub(bytes as u64);
        self.0 = left.unwrap_or(0);
        left.map(drop).ok_or(ObjectError::WorkTooLarge)
    }
}

/// The objects of a repository.
pub(super) struct Objects {
    folder: Tree,
    packs: Vec<PackedObjects>,
    cache: BaseCache,
    limit: WorkLimit,
}

impl Objects {
    /// Opens the object database of the repository whose common directory is `shared`.
    pub(super) fn open(shared: &Path) -> Result<Self, ObjectError> {
        let folder = Tree::open(shared)?.below(Path::new("objects"))?;
        let mut packs = Vec::new();
        if let Ok(directory) = folder.directory(Path::new("pack")) {
            for name in tree::names(&directory)? {
                let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".idx")) else { continue };
                if packs.len() == PACKS_MAX {
                    return Err(ObjectError::TooManyPacks);
                }
                packs.push(PackedObjects::open(&directory, name)?);
            }
        }
        Ok(Self { folder, packs, cache: BaseCache::default(), limit: WorkLimit::new() })
    }

    /// Returns the content of an object.
    pub(super) fn read(&mut self, id: ObjectId, kind: ObjectKind, bytes_max: usize) -> Result<Vec<u8>, ObjectError> {
        self.limit.spend(STEP_BYTES)?;
        let (found, content) = match self.loose(id, bytes_max)? {
            Some(loose) => loose,
            None => self.packed(id, bytes_max)?.ok_or(ObjectError::Missing)?,
        };
        match found == kind && ObjectId::for_object(kind, &content) == id {
            true => Ok(content),
            false => Err(ObjectError::Damaged),
        }
    }

    fn loose(&mut self, id: ObjectId, bytes_max: usize) -> Result<Option<(ObjectKind, Vec<u8>)>, ObjectError> {
        let name = id.to_string();
        let (folder, name) = name.split_at(2);
        let file = match self.folder.file(&Path::new(folder).join(name)) {
            Err(error) if tree::is_absent(&error) => return Ok(None),
            other => other?,
        };
        let object = compressed(file, bytes_max)?;
        self.limit.spend(object.len())?;
        let object = decompress_to_vec_zlib_with_limit(&object, bytes_max.saturating_add(HEADER_BYTES_MAX));
        self.limit.spend(object.as_ref().map_or_else(|error| error.output.len(), Vec::len))?;
        let mut object = object.map_err(|error| match error.output.len() > bytes_max {
            true => ObjectError::TooLong(bytes_max),
            false => ObjectError::Damaged,
        })?;
        let end = object.iter().take(HEADER_BYTES_MAX).position(|byte| *byte == 0).ok_or(ObjectError::Damaged)?;
        let word = object[..end].split(|byte| *byte == b' ').next().unwrap_or_default();
        let kind = ObjectKind::from_word(word).ok_or(ObjectError::Damaged)?;
        object.drain(..=end);
        Ok(Some((kind, object)))
    }

    fn packed(&mut self, id: ObjectId, bytes_max: usize) -> Result<Option<(ObjectKind, Vec<u8>)>, ObjectError> {
        for (number, pack) in self.packs.iter().enumerate() {
            if let Some(offset) = pack.position(id)? {
                // Most objects are in the same pack as the object before.
                self.packs.swap(0, number);
                self.packs[0].prepare()?;
                return self.packs[0].read(offset, bytes_max, &mut self.cache, &mut self.limit).map(Some);
            }
        }
        Ok(None)
    }
}

/// Reads the compressed bytes of a loose object.
fn compressed(file: File, bytes_max: usize) -> Result<Vec<u8>, ObjectError> {
    let most = bytes_max.saturating_add(bytes_max / 100).saturating_add(1 << 10);
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most { Err(ObjectError::TooLong(bytes_max)) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::process::Command;

    /// A repository with many versions of two files.
    struct Repository(tempfile::TempDir);

    impl Repository {
        fn new() -> Self {
            let made = Self(tempfile::tempdir().unwrap());
            made.git(&["init", "-q"]);
            let mut text: Vec<String> = (0..400).map(|line| format!("line {line} of a file\n")).collect();
            for version in 0..40 {
                text[version * 9] = format!("changed in {version}\n");
                fs::write(made.0.path().join("a.txt"), text.concat()).unwrap();
                fs::create_dir_all(made.0.path().join("b/c")).unwrap();
                fs::write(made.0.path().join("b/c/d.bin"), text.concat().repeat(version + 1)).unwrap();
                made.git(&["add", "-A"]);
                made.git(&["commit", "-qm", "x"]);
            }
            made
        }

        fn git(&self, words: &[&str]) -> Vec<u8> {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "gc.auto=0"]).args(words);
            let output = git.current_dir(self.0.path()).output().unwrap();
            assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
            output.stdout
        }

        fn folder(&self) -> PathBuf {
            self.0.path().join(".git")
        }

        fn all(&self) -> Vec<(ObjectKind, ObjectId)> {
            let listed = self.git(&["cat-file", "--batch-check", "--batch-all-objects"]);
            let listed = String::from_utf8(listed).unwrap();
            let parse = |line: &str| {
                let mut words = line.split(' ');
                let id = ObjectId::from_hex(words.next().unwrap()).unwrap();
                (ObjectKind::from_word(words.next().unwrap().as_bytes()).unwrap(), id)
            };
            listed.lines().map(parse).collect()
        }

        /// The output of git is the oracle.
        fn check(&self) {
            let mut objects = Objects::open(&self.folder()).unwrap();
            let all = self.all();
            assert!(all.len() > 150, "{}", all.len());
            for (kind, id) in all {
                let content = objects.read(id, kind, 1 << 20).unwrap();
                let word = format!("{kind:?}").to_lowercase();
                assert_eq!(content, self.git(&["cat-file", &word, &id.to_string()]), "{id}");
                let other = if kind == ObjectKind::Blob { ObjectKind::Tree } else { ObjectKind::Blob };
                assert!(matches!(objects.read(id, other, 1 << 20), Err(ObjectError::Damaged)));
            }
        }

        fn pack(&self) -> PathBuf {
            let packs = fs::read_dir(self.folder().join("objects/pack")).unwrap();
            let packs = packs.map(|entry| entry.unwrap().path());
            packs.filter(|path| path.extension().is_some_and(|end| end == "pack")).max().unwrap()
        }
    }

    #[test]
    fn damaged_and_missing_objects_cost_work_until_nothing_is_read() {
        let repository = Repository::new();
        let id = ObjectId::for_object(ObjectKind::Blob, b"x");
        let at = repository.folder().join("objects").join(&id.to_string()[..2]);
        fs::create_dir_all(&at).unwrap();
        let mut stream = miniz_oxide::deflate::compress_to_vec_zlib(&vec![0; 1 << 20], 6);
        *stream.last_mut().unwrap() ^= 1;
        fs::write(at.join(&id.to_string()[2..]), stream).unwrap();
        let mut objects = Objects::open(&repository.folder()).unwrap();
        assert!(matches!(objects.read(id, ObjectKind::Blob, 2 << 20), Err(ObjectError::Damaged)));
        assert!(objects.limit.0 <= BYTES_MAX - (1 << 20), "{}", objects.limit.0);
        let left = objects.limit.0;
        let absent = ObjectId::for_object(ObjectKind::Blob, b"absent");
        assert!(matches!(objects.read(absent, ObjectKind::Blob, 1), Err(ObjectError::Missing)));
        assert!(objects.limit.0 < left);
        objects.limit.0 = 1;
        (0..2).for_each(|_| {
            assert!(matches!(objects.read(absent, ObjectKind::Blob, 1), Err(ObjectError::WorkTooLarge)));
        });
    }

    #[test]
    fn objects_are_those_that_git_reads_however_they_are_stored() {
        let repository = Repository::new();
        repository.check();
        repository.git(&["repack", "-adfq", "--depth=60", "--window=60"]);
        repository.check();
        repository.git(&["-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq", "--depth=60"]);
        repository.check();
    }

    #[test]
    fn a_long_object_and_a_missing_one_are_refused() {
        let repository = Repository::new();
        let id = |name: &str| {
            let id = repository.git(&["rev-parse", name]);
            ObjectId::from_hex(String::from_utf8(id).unwrap().trim()).unwrap()
        };
        let long = id("HEAD:b/c/d.bin");
        for step in 0..2 {
            let mut objects = Objects::open(&repository.folder()).unwrap();
            let refused = objects.read(long, ObjectKind::Blob, 5_000).unwrap_err();
            assert!(matches!(refused, ObjectError::TooLong(5_000)), "{step}: {refused}");
            objects.limit = WorkLimit(5_000);
            let refused = objects.read(long, ObjectKind::Blob, 1 << 20).unwrap_err();
            assert!(matches!(refused, ObjectError::WorkTooLarge), "{step}: {refused}");
            repository.git(&["repack", "-adfq"]);
        }
        let mut objects = Objects::open(&repository.folder()).unwrap();
        assert!(matches!(objects.read(ObjectId([7; 20]), ObjectKind::Blob, 9), Err(ObjectError::Missing)));
    }

    #[test]
    fn links_and_alternates_lead_nowhere() {
        let (private, project) = (Repository::new(), tempfile::tempdir().unwrap());
        let (kind, id) = private.all()[0];
        let objects = project.path().join("objects");
        symlink(private.folder().join("objects"), &objects).unwrap();
        assert!(Objects::open(project.path()).is_err());
        fs::remove_file(&objects).unwrap();
        fs::create_dir_all(objects.join("info")).unwrap();
        let theirs = private.folder().join("objects");
        fs::write(objects.join("info/alternates"), format!("{}\n", theirs.display())).unwrap();
        let name = id.to_string();
        symlink(theirs.join(&name[..2]), objects.join(&name[..2])).unwrap();
        private.git(&["repack", "-aq"]);
        symlink(theirs.join("pack"), objects.join("pack")).unwrap();
        let refused = Objects::open(project.path()).and_then(|mut found| found.read(id, kind, 1 << 20));
        assert!(refused.is_err());
    }

    /// The repository is damaged on purpose: every read must fail or return the right bytes.
    #[test]
    fn damaged_packs_are_noticed() {
        let repository = Repository::new();
        repository.git(&["repack", "-adfq", "--depth=60"]);
        let (pack, all) = (repository.pack(), repository.all());
        let read = || -> Vec<Option<Vec<u8>>> {
            let opened = Objects::open(&repository.folder());
            let mut objects = opened.ok();
            all.iter().map(|(kind, id)| objects.as_mut()?.read(*id, *kind, 1 << 20).ok()).collect()
        };
        let right = read();
        assert!(right.iter().all(Option::is_some));
        let mut broken = 0;
        for file in [pack.with_extension("idx"), pack.clone()] {
            let bytes = fs::read(&file).unwrap();
            for number in 0..21 {
                let mut changed = bytes.clone();
                let at = 12 + number * 22_543 % (bytes.len() - 12);
                match number % 3 {
                    0 => changed[at] ^= 0xff,
                    1 => changed[at..].fill(0xff),
                    _ => changed.truncate(at),
                }
                fs::remove_file(&file).unwrap();
                fs::write(&file, &changed).unwrap();
                for (found, right) in read().into_iter().zip(&right) {
                    broken += usize::from(found.is_none());
                    assert!(found.is_none() || found == *right, "{number}");
                }
            }
            fs::remove_file(&file).unwrap();
            fs::write(&file, bytes).unwrap();
        }
        assert!(broken > 30, "{broken}");
    }
}
