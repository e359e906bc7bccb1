//! Sealed hold-outs: the run's copy of the scenario folders, and a salted commitment (one root hash) to all files.
//!
//! Without the salt in `seal.json`, the root reveals nothing about the files. Lengths and counts are 8 bytes,
//! little-endian. A leaf is the BLAKE3 hash, keyed by `derive_key("glovebox hold-out leaf v1", salt)`, of: the mode
//! byte (1 if executable), the length and bytes of the path, the length of the content, and the 32 bytes of the
//! content's BLAKE3 hash. The root is the BLAKE3 hash, keyed by `derive_key("glovebox hold-out root v1", salt)`, of:
//! the count of folders, the length and bytes of each folder, the count of leaves, and the leaves by path. Empty
//! directories are copied, but the commitment does not cover them. This module does not know who may see a hold-out.

pub mod canary;
mod gather;
pub mod verify;

use crate::tree::{self, Tree};
use glovebox_record::Digest;
use glovebox_record::path::{ScopePath, ScopePathProblem};
use glovebox_record::scope::Entry;
use rustix::fs::{FileType, Mode};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// The default folder of hold-outs (decision hold-out-folder).
pub const FOLDER_DEFAULT: &str = "scripts/scenarios/";
/// Version of `seal.json`.
pub const SEAL_VERSION: u32 = 1;
/// Name of the file with the opening of the commitment, in the seal's folder.
const SEAL_FILE: &str = "seal.json";
/// Name of the folder with the sealed copy, in the seal's folder.
const FILES_DIR: &str = "files";
/// Maximum number of bytes of a `seal.json` that are read.
const SEAL_BYTES_MAX: u64 = 64 << 20;
/// Minimum size in bytes of a file that is reported as a copy of a hold-out. Shorter files can be equal by chance.
pub const COPY_BYTES_MIN: u64 = 32;
/// Maximum number of bytes of a line that are read at a time.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// Maximum number of files under one seal; limit `holdout_files`.
pub const FILES_MAX: u64 = 20_000;
/// Maximum total size in bytes of the files under one seal; limit `holdout_bytes`.
pub const BYTES_MAX: u64 = 1 << 30;

/// Why sealing hold-outs or opening a seal failed.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The text does not name a folder of the project.
    #[error("hold-out folder `{text}`: {problem}")]
    Folder {
        /// The text as written.
        text: String,
        /// The problem.
        problem: ScopePathProblem,
    },
    /// The folder may never be sealed: it is the project itself, the repository, or the folder of the runs.
    #[error("hold-out folder `{0}`: expected a folder below the project, outside of `.git` and `.glovebox`")]
    Never(String),
    /// The folder does not exist.
    #[error("hold-out folder `{0}` does not exist in the project")]
    Missing(String),
    /// The path is not a folder, or a part of it is a link.
    #[error(
        "hold-out folder `{0}` is not a folder or its path contains a link: expected a real folder, because stages can see the target of a link"
    )]
    NotFolder(String),
    /// The file cannot be sealed.
    #[error("hold-out `{path}` is {what}: expected regular files only")]
    Unsupported {
        /// The path relative to the project, with unprintable characters escaped.
        path: String,
        /// The kind of the entry.
        what: &'static str,
    },
    /// A limit was exceeded.
    #[error("the hold-outs exceed the limit `{limit}` ({max})")]
    Limit {
        /// Name of the limit.
        limit: &'static str,
        /// Value of the limit.
        max: u64,
    },
    /// This version cannot read `seal.json`.
    #[error("`seal.json` is malformed: {0}")]
    Malformed(String),
    /// The operating system refused.
    #[error("could not read or store hold-out `{path}`: {source}")]
    Io {
        /// Path on which it failed.
        path: String,
        /// The system's error.
        source: io::Error,
    },
}

impl SealError {
    fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: tree::shown(path), source }
    }
}

impl From<tree::WalkError> for SealError {
    fn from(error: tree::WalkError) -> Self {
        Self::io(&error.path, error.source)
    }
}

/// A file that the commitment covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leaf {
    /// The path relative to the project.
    pub path: String,
    /// True if the owner may execute the file.
    pub executable: bool,
    /// Length in bytes.
    pub bytes: u64,
    /// Digest of the content.
    pub digest: Digest,
}

/// The opening of a commitment: salt, folders and leaves. It is as secret as the hold-outs.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opening {
    schema_version: u32,
    salt: String,
    folders: Vec<String>,
    leaves: Vec<Leaf>,
}

/// Sealed hold-outs.
#[derive(Clone)]
pub struct Seal {
    at: PathBuf,
    opening: Opening,
}

impl fmt::Debug for Opening {
    /// As for [`Seal`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening").finish_non_exhaustive()
    }
}

impl Opening {
    /// Checks that this opens the commitment with the root and exceeds no limit. Returns the length of each content, by digest.
    ///
    /// # Errors
    /// [`SealError::Malformed`] for an opening of another version or of another commitment, [`SealError::Limit`] for too many files
    /// or bytes.
    pub fn lengths(&self, expected: &Digest) -> Result<BTreeMap<Digest, u64>, SealError> {
        self.check_form()?;
        if Digest::from(root(self)) != *expected {
            return Err(SealError::Malformed("it does not open the commitment of the run".to_owned()));
        }
        if self.leaves.len() as u64 > FILES_MAX {
            return Err(SealError::Limit { limit: "holdout_files", max: FILES_MAX });
        }
        let total = self.leaves.iter().fold(0_u64, |sum, leaf| sum.saturating_add(leaf.bytes));
        if total > BYTES_MAX {
            return Err(SealError::Limit { limit: "holdout_bytes", max: BYTES_MAX });
        }
        let mut lengths = BTreeMap::new();
        for leaf in &self.leaves {
            // Otherwise one long content would be copied for many leaves that say that they are short.
            if lengths.insert(leaf.digest, leaf.bytes).is_some_and(|other| other != leaf.bytes) {
                return Err(SealError::Malformed("files with the same digest have different lengths".to_owned()));
            }
        }
        Ok(lengths)
    }

    fn check_form(&self) -> Result<(), SealError> {
        if self.schema_version != SEAL_VERSION {
            let found = self.schema_version;
            return Err(SealError::Malformed(format!("found version {found}, expected {SEAL_VERSION}")));
        }
        match blake3::Hash::from_hex(&self.salt) {
            Ok(_) => Ok(()),
            Err(_) => Err(SealError::Malformed("expected a salt of 64 hexadecimal digits".to_owned())),
        }
    }
}

/// Creates a seal in the new folder `into` from its opening, which must have been checked with [`Opening::lengths`]. `open` must return
/// the content with exactly this digest: it is not compared here.
///
/// # Errors
/// [`SealError`]. A partial copy is not removed; a folder without `seal.json` is not a valid seal.
pub fn restore(
    into: &Path,
    opening: Opening,
    open: &dyn Fn(&Digest) -> io::Result<std::fs::File>,
) -> Result<(), SealError> {
    let made = Tree::create(into).map_err(|source| SealError::io(into, source))?;
    let files = Tree::create(&into.join(FILES_DIR)).map_err(|source| SealError::io(into, source))?;
    let texts = entries(&opening.folders)?;
    let folders = outermost(&texts)?;
    for Leaf { path, executable, digest, .. } in &opening.leaves {
        // The opening comes from another machine.
        let named = ScopePath::parse(path).ok().filter(|path| folders.iter().any(|folder| path.starts_with(folder)));
        let Some(named) = named.filter(|named| named.as_str() == path) else {
            return Err(SealError::Malformed("a file is outside of the hold-out folders".to_owned()));
        };
        let failed = |source| SealError::io(Path::new(path), source);
        let mut content = open(digest).map_err(failed)?;
        gather::put(&files, Path::new(named.as_str()), *executable, &mut content).map_err(failed)?;
    }
    keep(&made, &opening).map_err(|source| SealError::io(Path::new(SEAL_FILE), source))
}

impl fmt::Debug for Seal {
    /// Prints neither a file name nor the salt, because debug output may be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seal").field("root", &self.root()).finish_non_exhaustive()
    }
}

/// Copies `folders` of `project` to the new folder `into` and commits to them. Refuses links and special files anywhere
/// below a folder, links in the path of a folder, and names with deceptive characters. The project is only read.
///
/// # Errors
/// [`SealError`]. A partial copy is not removed; a folder without `seal.json` is not a valid seal.
pub fn seal(project: &Path, folders: &[Entry], into: &Path) -> Result<Seal, SealError> {
    let source = Tree::open(project).map_err(|source| SealError::io(project, source))?;
    let folders = outermost(folders)?;
    folders.iter().try_for_each(|folder| check_folder(&source, folder))?;
    let made = Tree::create(into).map_err(|source| SealError::io(into, source))?;
    let files = Tree::create(&into.join(FILES_DIR)).map_err(|source| SealError::io(into, source))?;
    let leaves = gather::copy(&source, &folders, &files)?;
    let failed = |source| SealError::io(Path::new(SEAL_FILE), source);
    let opening = Opening {
        schema_version: SEAL_VERSION,
        salt: blake3::Hash::from(salt().map_err(failed)?).to_hex().to_string(),
        folders: folders.iter().map(|folder| format!("{folder}/")).collect(),
        leaves,
    };
    keep(&made, &opening).map_err(failed)?;
    Ok(Seal { at: into.to_owned(), opening })
}

impl Seal {
    /// Opens a seal that [`seal`] created. It does not check the files; [`Seal::verify`] does.
    ///
    /// # Errors
    /// [`SealError::Malformed`] for a seal that this version cannot read, [`SealError::Io`] if there is none.
    pub fn open(at: &Path) -> Result<Self, SealError> {
        let failed = |source| SealError::io(Path::new(SEAL_FILE), source);
        let file = Tree::open(at).and_then(|tree| tree.file(Path::new(SEAL_FILE))).map_err(failed)?;
        let mut text = Vec::new();
        file.take(SEAL_BYTES_MAX).read_to_end(&mut text).map_err(failed)?;
        let opening: Opening = serde_json::from_slice(&text)
            .map_err(|error| SealError::Malformed(tree::shown(Path::new(&error.to_string()))))?;
        opening.check_form()?;
        Ok(Self { at: at.to_owned(), opening })
    }

    /// Returns the opening of the commitment.
    pub fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Returns the root of the commitment.
    pub fn root(&self) -> Digest {
        root(&self.opening).into()
    }

    /// Returns the sealed folders, sorted, each with a final slash. No folder is below another one.
    pub fn folders(&self) -> &[String] {
        &self.opening.folders
    }

    /// Returns the committed files by path.
    pub fn leaves(&self) -> &[Leaf] {
        &self.opening.leaves
    }

    /// Returns the total size of all committed files in bytes.
    pub fn bytes(&self) -> u64 {
        self.opening.leaves.iter().map(|leaf| leaf.bytes).sum()
    }

    /// Calls `act` for each line of the sealed files, without its line break. A very long line is passed in pieces.
    ///
    /// # Errors
    /// [`SealError::Io`] if the sealed copy cannot be read.
    pub(crate) fn each_line(&self, act: &mut dyn FnMut(&[u8])) -> Result<(), SealError> {
        let files = self.files();
        let tree = Tree::open(&files).map_err(|source| SealError::io(&files, source))?;
        for leaf in self.leaves() {
            let failed = |source| SealError::io(Path::new(&leaf.path), source);
            let mut reader = BufReader::new(tree.file(Path::new(&leaf.path)).map_err(failed)?);
            let mut line = Vec::new();
            while reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line).map_err(failed)? > 0 {
                act(line.strip_suffix(b"\n").unwrap_or(&line));
                line.clear();
            }
        }
        Ok(())
    }

    /// Returns a digest of some bytes, keyed by `derive_key("glovebox hold-out text v1", salt)`. Without the salt, it
    /// reveals nothing about the bytes.
    pub fn keyed_digest(&self, bytes: &[u8]) -> Digest {
        blake3::keyed_hash(&blake3::derive_key("glovebox hold-out text v1", &salt_of(&self.opening)), bytes).into()
    }

    /// Returns the folder of the sealed copy, in which the files have the same paths as in the project. It must be
    /// mounted read-only and never written.
    pub fn files(&self) -> PathBuf {
        self.at.join(FILES_DIR)
    }
}

/// Returns the folders to seal: the named ones, which must exist, or the default one if it exists.
///
/// # Errors
/// [`SealError::Missing`] or [`SealError::NotFolder`] for a folder that cannot be sealed.
pub fn folders(project: &Path, named: Option<&[Entry]>) -> Result<Vec<Entry>, SealError> {
    let Some(named) = named else { return Ok(default_folder(project)?.into_iter().collect()) };
    let source = Tree::open(project).map_err(|source| SealError::io(project, source))?;
    outermost(named)?.iter().try_for_each(|folder| check_folder(&source, folder))?;
    Ok(named.to_vec())
}

/// Parses the texts of hold-out folders.
///
/// # Errors
/// [`SealError::Folder`] if a text is not a path.
pub fn entries(texts: &[String]) -> Result<Vec<Entry>, SealError> {
    let parse = |text: &String| Entry::parse(text);
    let parsed: Result<_, _> = texts.iter().map(parse).collect();
    parsed.map_err(|error| SealError::Folder { text: error.text, problem: error.problem })
}

/// Returns the default folder to seal, or `None` if the project does not have it.
///
/// # Errors
/// [`SealError::NotFolder`] if it exists and cannot be sealed, for example because it is a link.
pub fn default_folder(project: &Path) -> Result<Option<Entry>, SealError> {
    if !project.join(FOLDER_DEFAULT).exists() {
        return Ok(None);
    }
    let entry =
        Entry::parse(FOLDER_DEFAULT).map_err(|error| SealError::Folder { text: error.text, problem: error.problem })?;
    let source = Tree::open(project).map_err(|source| SealError::io(project, source))?;
    check_folder(&source, entry.path())?;
    Ok(Some(entry))
}

/// Returns the folders sorted by path, without those below another one.
fn outermost(folders: &[Entry]) -> Result<Vec<ScopePath>, SealError> {
    let mut paths: Vec<&ScopePath> = folders.iter().map(Entry::path).collect();
    paths.sort();
    let mut kept: Vec<ScopePath> = Vec::new();
    for path in paths {
        if path.is_root() || path.names().any(|name| matches!(name, ".git" | ".glovebox")) {
            return Err(SealError::Never(path.to_string()));
        }
        if !kept.iter().any(|outer| path.starts_with(outer)) {
            kept.push(path.clone());
        }
    }
    Ok(kept)
}

/// Checks that a path is a folder, one name at a time, because kernels return different errors for a link within a path.
fn check_folder(source: &Tree, folder: &ScopePath) -> Result<(), SealError> {
    let mut at = PathBuf::new();
    for name in folder.names() {
        at.push(name);
        match source.stat(&at).map_err(|error| SealError::io(&at, error))? {
            None => return Err(SealError::Missing(folder.to_string())),
            Some(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {}
            Some(_) => return Err(SealError::NotFolder(folder.to_string())),
        }
    }
    Ok(())
}

fn salt() -> io::Result<[u8; 32]> {
    let mut salt = [0; 32];
    let got = rustix::rand::getrandom(&mut salt, rustix::rand::GetRandomFlags::empty())?;
    if got == salt.len() { Ok(salt) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn keep(made: &Tree, opening: &Opening) -> io::Result<()> {
    let text = serde_json::to_vec_pretty(opening)?;
    let at = made.directory(Path::new(""))?;
    let mut file = tree::create_file(at, OsStr::new(SEAL_FILE), Mode::RUSR | Mode::WUSR)?;
    file.write_all(&text)?;
    file.sync_all()
}

/// Returns the salt. `open` accepts only a valid salt; zeros would only lead to a different root.
fn salt_of(opening: &Opening) -> [u8; 32] {
    blake3::Hash::from_hex(&opening.salt).map_or([0; 32], |salt| *salt.as_bytes())
}

fn root(opening: &Opening) -> blake3::Hash {
    let salt = salt_of(opening);
    let leaf_key = blake3::derive_key("glovebox hold-out leaf v1", &salt);
    let mut hasher = blake3::Hasher::new_keyed(&blake3::derive_key("glovebox hold-out root v1", &salt));
    hasher.update(&count(opening.folders.len()));
    for folder in &opening.folders {
        hasher.update(&count(folder.len())).update(folder.as_bytes());
    }
    hasher.update(&count(opening.leaves.len()));
    for leaf in &opening.leaves {
        hasher.update(leaf_hash(&leaf_key, leaf).as_bytes());
    }
    hasher.finalize()
}

fn leaf_hash(key: &[u8; 32], leaf: &Leaf) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&[u8::from(leaf.executable)]);
    hasher.update(&count(leaf.path.len())).update(leaf.path.as_bytes());
    hasher.update(&leaf.bytes.to_le_bytes()).update(leaf.digest.as_bytes());
    hasher.finalize()
}

fn count(number: usize) -> [u8; 8] {
    (number as u64).to_le_bytes()
}
