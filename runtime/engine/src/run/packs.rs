//! The contents of a run's initial files and hold-outs, in packs, for machines that do not have the project.
//!
//! A pack is a blob with the contents of several files, one after the other, so that a small file costs no request of its own.
//! The list of packs names the files of each pack by digest, in order. Their lengths are in the list of the initial files. A
//! machine unpacks into a folder of its own and hashes each file: a pack that is not what the list says is refused.

use super::restore::BASE_BYTES_MAX;
use crate::driver::RunError;
use crate::holdouts::HoldoutError;
use glovebox_journal::event::HoldoutsSealed;
use glovebox_journal::ports::{BlobStore, PortError};
use glovebox_record::Digest;
use glovebox_workspace::apply::open_before;
use glovebox_workspace::holdout::{self, Opening, Seal, SealError};
use glovebox_workspace::project::Base;
use glovebox_workspace::regular_file::{self, Links};
use glovebox_workspace::tree;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// The version of the list of packs.
const VERSION: u32 = 1;
/// Maximum size of a pack of several files, in bytes. A larger file is a pack of its own.
const PACK_BYTES_MAX: u64 = 8 << 20;

/// The list of packs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PackList {
    version: u32,
    packs: Vec<Pack>,
    /// The opening of the commitment, if these are hold-outs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    opening: Option<Opening>,
}

/// A blob with the contents of files.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pack {
    digest: Digest,
    /// The digests of the files, in the order of their contents.
    files: Vec<Digest>,
}

/// Stores the contents of the initial files, and returns the digest of the list of packs. `workspace` has exactly the files of
/// `base`. Blocks.
pub(super) fn store(workspace: &Path, base: &Base, blobs: &impl BlobStore) -> Result<Digest, RunError> {
    let files = base.files.iter().map(|(path, fact)| (path.as_str(), fact.digest, fact.bytes));
    let packs = pack(workspace, files, blobs)?;
    put(&PackList { version: VERSION, packs, opening: None }, blobs)
}

/// As [`store`], for the hold-outs of a run.
pub(super) fn store_holdouts(seal: &Seal, blobs: &impl BlobStore) -> Result<Digest, RunError> {
    let files = seal.leaves().iter().map(|leaf| (leaf.path.as_str(), leaf.digest, leaf.bytes));
    let packs = pack(&seal.files(), files, blobs)?;
    put(&PackList { version: VERSION, packs, opening: Some(seal.opening().clone()) }, blobs)
}

/// Stores the files of a folder, each with its digest and its length, in packs.
fn pack<'a>(
    folder: &Path,
    all: impl Iterator<Item = (&'a str, Digest, u64)>,
    blobs: &impl BlobStore,
) -> Result<Vec<Pack>, RunError> {
    let (mut packs, mut known) = (Vec::new(), BTreeSet::new());
    let (mut bytes, mut files) = (Vec::new(), Vec::new());
    for (path, expected, length) in all {
        if !known.insert(expected) {
            continue;
        }
        let mut file = open_before(folder, path).map_err(|error| RunError::Workspace(Box::new(error)))?;
        if length > PACK_BYTES_MAX {
            let digest = blobs.put(&mut file)?;
            expect(digest, expected, path)?;
            packs.push(Pack { digest, files: vec![expected] });
            continue;
        }
        if bytes.len() as u64 + length > PACK_BYTES_MAX {
            packs.push(Pack { digest: blobs.put_bytes(&bytes)?, files: std::mem::take(&mut files) });
            bytes.clear();
        }
        let start = bytes.len();
        file.take(length + 1).read_to_end(&mut bytes).map_err(|error| RunError::Workspace(Box::new(error)))?;
        expect(Digest::hash(&bytes[start..]), expected, path)?;
        files.push(expected);
    }
    if !files.is_empty() {
        packs.push(Pack { digest: blobs.put_bytes(&bytes)?, files });
    }
    Ok(packs)
}

fn put(list: &PackList, blobs: &impl BlobStore) -> Result<Digest, RunError> {
    let list = serde_json::to_vec(list).map_err(|error| RunError::Project(Box::new(error)))?;
    Ok(blobs.put_bytes(&list)?)
}

fn read(list: &Digest, blobs: &impl BlobStore) -> Result<PackList, RunError> {
    let read = blobs.read_all(list, BASE_BYTES_MAX)?;
    let found: PackList = serde_json::from_slice(&read).map_err(|error| corrupt(list, &error.to_string()))?;
    match found.version {
        VERSION => Ok(found),
        version => Err(corrupt(list, &format!("version {version}, expected {VERSION}")).into()),
    }
}

/// Creates the run's copy of its hold-outs in the empty folder `into`. `contents` is an empty folder. Blocks.
///
/// # Errors
/// The hold-outs are not those to which the run is committed, a blob is missing or rotten, or the disk fails.
pub(super) fn fetch_holdouts(
    sealed: &HoldoutsSealed,
    blobs: &impl BlobStore,
    contents: &Path,
    into: &Path,
) -> Result<(), RunError> {
    let failed = |error: SealError| RunError::Holdouts(Box::new(HoldoutError::from(error)));
    let Some(list) = &sealed.packs_digest else { return Err(RunError::NotStarted) };
    let PackList { packs, opening, .. } = read(list, blobs)?;
    let opening = opening.ok_or_else(|| corrupt(list, "it is not a list of hold-outs"))?;
    let lengths = opening.lengths(&sealed.root).map_err(failed)?;
    let contents = Contents::new(contents.to_owned());
    contents.unpack_all(list, packs, &lengths, blobs)?;
    holdout::restore(into, opening, &|digest| contents.open(digest)).map_err(failed)
}

fn expect(found: Digest, expected: Digest, path: &str) -> Result<(), RunError> {
    match found == expected {
        true => Ok(()),
        false => Err(RunError::Workspace(format!("`{path}` was changed while it was stored").into())),
    }
}

/// The contents of files on this machine, by digest. Runs whose contents are no secret share them, so that a run of a project
/// that was made here before fetches only what has changed.
pub struct Contents {
    folder: PathBuf,
    /// Number of bytes that were fetched.
    bytes: AtomicU64,
    /// Whether the folder is removed with the value.
    is_owned: bool,
}

impl Drop for Contents {
    /// Many files take seconds to remove, so a thread of its own does it.
    fn drop(&mut self) {
        if self.is_owned {
            let folder = std::mem::take(&mut self.folder);
            let remove = move || {
                if let Err(error) = tree::remove_all(&folder) {
                    tracing::warn!(folder = %folder.display(), %error, "contents of files were not removed");
                }
            };
            if let Err(error) = thread::Builder::new().name("old-contents".to_owned()).spawn(remove) {
                tracing::warn!(%error, "no thread to remove contents of files");
            }
        }
    }
}

impl Contents {
    /// Uses an existing folder.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, bytes: AtomicU64::new(0), is_owned: false }
    }

    /// Uses an existing folder, which is removed after the value is dropped. No later value may use the same folder.
    pub fn owning(folder: PathBuf) -> Self {
        Self { folder, bytes: AtomicU64::new(0), is_owned: true }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the number of bytes that were fetched.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Opens the content with a digest.
    pub(super) fn open(&self, digest: &Digest) -> io::Result<File> {
        regular_file::open(&self.folder.join(digest.hex()), Links::Within(&self.folder))
    }

    fn has(&self, digest: &Digest) -> bool {
        self.folder.join(digest.hex()).symlink_metadata().is_ok()
    }

    /// Copies the contents of the initial files to this machine, from packs that have at least one that is missing here. Blocks.
    pub(super) fn fetch(&self, base: &Base, list: &Digest, blobs: &impl BlobStore) -> Result<(), RunError> {
        let lengths = base.files.values().map(|fact| (fact.digest, fact.bytes)).collect();
        self.unpack_all(list, read(list, blobs)?.packs, &lengths, blobs)
    }

    /// Unpacks the files of packs, which must be files with these digests and lengths.
    fn unpack_all(
        &self,
        list: &Digest,
        packs: Vec<Pack>,
        lengths: &BTreeMap<Digest, u64>,
        blobs: &impl BlobStore,
    ) -> Result<(), RunError> {
        for Pack { digest, files } in packs {
            if files.iter().all(|file| self.has(file)) {
                continue;
            }
            let length = |file: &Digest| {
                lengths.get(file).copied().ok_or_else(|| corrupt(list, "a file that the run does not have"))
            };
            // A pack that is longer than its files is not read to its end.
            let most =
                files.iter().try_fold(0_u64, |sum, file| Ok::<_, PortError>(sum.saturating_add(length(file)?)))?;
            let mut pack = blobs.open_at_most(&digest, most)?;
            for file in files {
                let length = length(&file)?;
                self.unpack(&mut pack, &file, length).map_err(|error| match error.kind() {
                    ErrorKind::InvalidData => corrupt(&digest, &error.to_string()).into(),
                    _ => RunError::Workspace(Box::new(error)),
                })?;
            }
        }
        Ok(())
    }

    /// Writes the next content of a pack to its file.
    fn unpack(&self, pack: &mut dyn Read, digest: &Digest, length: u64) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        let (mut hasher, mut left) = (blake3::Hasher::new(), length);
        let mut buffer = vec![0; 64 << 10];
        while left > 0 {
            let size = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let read = pack.read(&mut buffer[..size])?;
            if read == 0 {
                return Err(io::Error::new(ErrorKind::InvalidData, "it is shorter than its files"));
            }
            hasher.update(&buffer[..read]);
            file.write_all(&buffer[..read])?;
            left -= read as u64;
        }
        if Digest::from(hasher.finalize()) != *digest {
            return Err(io::Error::new(ErrorKind::InvalidData, format!("the file {digest} has another content")));
        }
        self.bytes.fetch_add(length, Ordering::Relaxed);
        file.persist(self.folder.join(digest.hex())).map(drop).map_err(|error| error.error)
    }
}

fn corrupt(digest: &Digest, found: &str) -> PortError {
    PortError::Corrupt { what: format!("blob {digest}"), found: found.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_journal::memory::MemoryBlobs;
    use glovebox_workspace::project::{Include, copy};

    #[test]
    fn hold_outs_are_unpacked_if_the_run_is_committed_to_them() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("project/checks")).unwrap();
        std::fs::write(at("project/checks/a"), "same").unwrap();
        std::fs::write(at("project/checks/b"), "same").unwrap();
        let seal =
            holdout::seal(&at("project"), &holdout::entries(&["checks/".to_owned()]).unwrap(), &at("sealed")).unwrap();
        let blobs = MemoryBlobs::default();
        let sealed = |packs, root| HoldoutsSealed {
            folders: seal.folders().to_vec(),
            root,
            files: 2,
            bytes: 8,
            reach: Vec::new(),
            packs_digest: Some(packs),
            opt_outs: Vec::new(),
        };
        let packs = store_holdouts(&seal, &blobs).unwrap();
        std::fs::create_dir(at("contents")).unwrap();
        let fetch = |sealed, into| fetch_holdouts(&sealed, &blobs, &at("contents"), &at(into));
        fetch(sealed(packs, seal.root()), "again").unwrap();
        let again = Seal::open(&at("again")).unwrap();
        assert_eq!(again.verify(&seal.root(), &again.files()).unwrap(), []);
        let error = fetch(sealed(packs, Digest::hash(b"another run")), "other").unwrap_err();
        let error = std::error::Error::source(&error).unwrap().to_string();
        assert!(error.contains("does not open the commitment of the run"), "{error}");
        // The list of the initial files is not one of hold-outs.
        let base = copy(&at("project"), &at("workspace"), &Include::default()).unwrap();
        let list = store(&at("workspace"), &base, &blobs).unwrap();
        let error = fetch(sealed(list, seal.root()), "base").unwrap_err().to_string();
        assert!(error.contains("it is not a list of hold-outs"), "{error}");
    }

    #[test]
    fn contents_that_are_here_are_not_fetched_again_and_go_with_their_owner() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("project")).unwrap();
        let large = usize::try_from(PACK_BYTES_MAX).unwrap();
        std::fs::write(at("project/a"), vec![1; large]).unwrap();
        std::fs::write(at("project/b"), "before").unwrap();
        std::fs::create_dir(at("contents")).unwrap();
        let contents = Contents::owning(at("contents"));
        let blobs = MemoryBlobs::default();
        let first = copy(&at("project"), &at("first"), &Include::default()).unwrap();
        contents.fetch(&first, &store(&at("first"), &first, &blobs).unwrap(), &blobs).unwrap();
        assert_eq!(contents.bytes(), large as u64 + 6);
        std::fs::write(at("project/b"), "changed").unwrap();
        let second = copy(&at("project"), &at("second"), &Include::default()).unwrap();
        let list = store(&at("second"), &second, &blobs).unwrap();
        // A store that has only what is new.
        let new = MemoryBlobs::default();
        new.put_bytes(&blobs.read_all(&list, u64::MAX).unwrap()).unwrap();
        new.put_bytes(b"changed").unwrap();
        contents.fetch(&second, &list, &new).unwrap();
        assert_eq!(contents.bytes(), large as u64 + 13);
        assert!(second.files.values().all(|fact| contents.open(&fact.digest).is_ok()));
        drop(contents);
        let begun = std::time::Instant::now();
        while at("contents").exists() {
            assert!(begun.elapsed() < std::time::Duration::from_secs(30), "the folder stays");
            thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    #[test]
    fn files_of_all_sizes_are_packed_and_unpacked_and_a_wrong_pack_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (project, workspace) = (folder.path().join("project"), folder.path().join("workspace"));
        std::fs::create_dir_all(project.join("src")).unwrap();
        let large = usize::try_from(PACK_BYTES_MAX).unwrap() + 1;
        for (path, content) in [
            ("a", b"same".to_vec()),
            ("src/b", b"same".to_vec()),
            ("empty", Vec::new()),
            ("half", vec![1; large / 2]),
            ("other-half", vec![2; large / 2]),
            ("large", vec![3; large]),
        ] {
            std::fs::write(project.join(path), content).unwrap();
        }
        let base = copy(&project, &workspace, &Include::default()).unwrap();
        let blobs = MemoryBlobs::default();
        let list = store(&workspace, &base, &blobs).unwrap();
        let contents = Contents::new(folder.path().join("contents"));
        std::fs::create_dir(folder.path().join("contents")).unwrap();
        contents.fetch(&base, &list, &blobs).unwrap();
        for (path, fact) in &base.files {
            let mut bytes = Vec::new();
            contents.open(&fact.digest).unwrap().read_to_end(&mut bytes).unwrap();
            assert!(bytes == std::fs::read(project.join(path)).unwrap(), "{path}");
        }
        let wrong = PackList {
            version: VERSION,
            packs: vec![Pack { digest: blobs.put_bytes(b"emas").unwrap(), files: vec![base.files["a"].digest] }],
            opening: None,
        };
        let wrong = blobs.put_bytes(&serde_json::to_vec(&wrong).unwrap()).unwrap();
        let empty = Contents::new(folder.path().join("empty"));
        std::fs::create_dir(folder.path().join("empty")).unwrap();
        let error = empty.fetch(&base, &wrong, &blobs).unwrap_err().to_string();
        assert!(error.contains("has another content"), "{error}");
        // A file that the run does not have would fill the disk.
        let packs = vec![Pack { digest: blobs.put_bytes(b"x").unwrap(), files: vec![Digest::hash(b"x")] }];
        let list = serde_json::to_vec(&PackList { version: VERSION, packs, opening: None }).unwrap();
        let error = empty.fetch(&base, &blobs.put_bytes(&list).unwrap(), &blobs).unwrap_err().to_string();
        assert!(error.contains("a file that the run does not have"), "{error}");
        std::fs::write(workspace.join("a"), "changed").unwrap();
        let error = store(&workspace, &base, &blobs).unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(cause, "`a` was changed while it was stored");
    }
}
