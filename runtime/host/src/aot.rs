//! Store of compiled components on disk, so that each component is compiled once.
//!
//! The machine code of an artefact is executed without further checks, so an artefact is used only if its keyed MAC is
//! valid. The key is created at first use, only its owner can read it, and only the owner can use the folder. The file
//! is read once, and the verified bytes are loaded from memory. If any problem is found with a file, the component is
//! compiled again. `trim` keeps the folder below its size limit.

mod trim;

use crate::compiled_code::{ARTEFACT_BYTES_MAX, CompiledCode};
use crate::inspect;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, MetadataExt, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};
use glovebox_record::Digest;
use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use wasmtime::Engine;
use wasmtime::component::Component;

const KEY_FILE: &str = "mac.key";
const KEY_BYTES: usize = 32;

/// Default size limit of the store, in bytes.
pub const BYTES_MAX: u64 = 1 << 30;

/// Counts of the store's hits, misses and writes, for reports and tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AotCounts {
    /// Artefacts loaded from the store.
    pub loaded: u64,
    /// Loads that found no artefact.
    pub missing: u64,
    /// Artefacts that could not be trusted or were compiled for another engine. Their components were compiled again.
    pub rejected: u64,
    /// Artefacts written.
    pub stored: u64,
}

/// A folder of compiled components.
pub(crate) struct AotStore {
    dir: Dir,
    key: [u8; KEY_BYTES],
    compatibility: String,
    bytes_max: u64,
    loaded: AtomicU64,
    missing: AtomicU64,
    rejected: AtomicU64,
    stored: AtomicU64,
}

impl AotStore {
    /// Opens the folder `aot` in `cache_dir`, or creates it. Denied: a folder or key of another user, and a key that others can read.
    pub(crate) fn open(cache_dir: &Path, engine: &Engine, bytes_max: u64) -> io::Result<Self> {
        Dir::create_ambient_dir_all(cache_dir, ambient_authority())?;
        let cache = Dir::open_ambient_dir(cache_dir, ambient_authority())?;
        match cache.create_dir("aot") {
            Err(problem) if problem.kind() != io::ErrorKind::AlreadyExists => return Err(problem),
            _ => {}
        }
        let dir = cache.open_dir("aot")?;
        let metadata = dir.dir_metadata()?;
        PrivateFile::Folder.check(metadata.uid())?;
        if metadata.mode() & 0o777 != 0o700 {
            dir.set_permissions(".", Permissions::from_mode(0o700))?;
        }
        let key = read_key(&dir).or_else(|problem| match problem.kind() {
            io::ErrorKind::NotFound => make_key(&dir),
            _ => Err(problem),
        })?;
        let [loaded, missing, rejected, stored] = Default::default();
        let compatibility = compatibility(engine);
        Ok(AotStore { dir, key, compatibility, bytes_max, loaded, missing, rejected, stored })
    }

    pub(crate) fn counts(&self) -> AotCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        AotCounts {
            loaded: read(&self.loaded),
            missing: read(&self.missing),
            rejected: read(&self.rejected),
            stored: read(&self.stored),
        }
    }

    /// Returns the compiled component if it is in the store and can be trusted.
    pub(crate) fn load(&self, engine: &Engine, digest: Digest) -> Option<Component> {
        let found = self.find(engine, digest);
        let counter = match &found {
            Ok(Some(_)) => &self.loaded,
            Ok(None) => &self.missing,
            Err(problem) => {
                tracing::warn!(%digest, %problem, "compiled component rejected, compiling again");
                &self.rejected
            }
        };
        counter.fetch_add(1, Ordering::Relaxed);
        found.ok().flatten()
    }

    /// As [`load`](Self::load), but without counting. Returns `None` if there is no artefact, and an error if it cannot be trusted.
    pub(crate) fn find(&self, engine: &Engine, digest: Digest) -> io::Result<Option<Component>> {
        let verified = self.verified(&self.name(digest))?;
        verified.map(|bytes| revive(engine, &bytes.trusted())).transpose()
    }

    /// Stores a compiled component whose bytes were inspected. An error is only logged as a warning: the next run compiles again.
    pub(crate) fn store(&self, digest: Digest, compiled: &CompiledCode) {
        if self.keep(digest, compiled) {
            self.stored.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// As [`store`](Self::store), but without counting. Returns true if the component was stored.
    pub(crate) fn keep(&self, digest: Digest, compiled: &CompiledCode) -> bool {
        let (name, code) = (self.name(digest), compiled.bytes());
        let mac = self.mac(&name, code);
        // The MAC is replaced last. Until then artefact and MAC do not match, and a reader compiles again.
        let written = self
            .replace(name.as_path(), code)
            .and_then(|()| self.replace(&name.mac_path(), mac.to_hex().as_bytes()))
            .and_then(|()| trim::trim(&self.dir, self.bytes_max, &name));
        if let Err(problem) = &written {
            tracing::warn!(%digest, %problem, "compiled component could not be stored");
        }
        written.is_ok()
    }

    fn verified(&self, name: &ArtefactName) -> io::Result<Option<VerifiedBytes>> {
        let Some((file, bytes)) = read_if_there(&self.dir, name.as_path(), ARTEFACT_BYTES_MAX)? else {
            return Ok(None);
        };
        // Either another process has not written the MAC yet, or it has just removed both files.
        let Some((_, mac)) = read_if_there(&self.dir, &name.mac_path(), 64)? else {
            return Ok(None);
        };
        let claimed = blake3::Hash::from_hex(&mac).map_err(|_| BadFile::MacSyntax)?;
        // `blake3::Hash` is compared in constant time.
        if claimed != self.mac(name, &bytes) {
            return Err(BadFile::Mac.into());
        }
        trim::note_use(&file);
        Ok(Some(VerifiedBytes(bytes)))
    }

    /// Returns the MAC of an artefact. The MAC covers the name, so that the artefact of one component cannot replace
    /// the artefact of another.
    fn mac(&self, name: &ArtefactName, bytes: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(name.0.len() as u64).to_le_bytes()).update(name.0.as_bytes()).update(bytes);
        hasher.finalize()
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let temporary = PathBuf::from(format!("{}.{}", path.display(), unique()?));
        let written =
            write_new(&self.dir, &temporary, bytes).and_then(|()| self.dir.rename(&temporary, &self.dir, path));
        if written.is_err() {
            // The first error is the one to report.
            let _ = self.dir.remove_file(&temporary);
        }
        written
    }

    fn name(&self, digest: Digest) -> ArtefactName {
        ArtefactName(format!("{}-{}.cwasm", digest.hex(), self.compatibility))
    }
}

/// File name of a compiled component in the store.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ArtefactName(String);

impl ArtefactName {
    fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }

    /// Returns the path of the file with the artefact's MAC.
    fn mac_path(&self) -> PathBuf {
        format!("{}.mac", self.0).into()
    }
}

/// Bytes of an artefact whose MAC was valid.
struct VerifiedBytes(Vec<u8>);

impl VerifiedBytes {
    fn trusted(&self) -> TrustedCode<'_> {
        TrustedCode(&self.0)
    }
}

/// Machine code that comes from the compiler: just compiled, or loaded from the store with a valid MAC.
pub(crate) struct TrustedCode<'a>(&'a [u8]);

impl<'a> TrustedCode<'a> {
    /// Wraps the output of the compiler.
    pub(crate) fn fresh(compiled: &'a CompiledCode) -> Self {
        TrustedCode(compiled.bytes())
    }
}

#[expect(unsafe_code, reason = "wasmtime cannot verify machine code; `TrustedCode` proves its origin")]
pub(crate) fn revive(engine: &Engine, code: &TrustedCode<'_>) -> io::Result<Component> {
    // SAFETY: the bytes are the output of `Engine::precompile_component`. `TrustedCode` is created in two places only: from the output
    // of a compiler that this process started, and after a MAC matched these bytes under a key that only this user can read. The bytes
    // are in memory and cannot change after that. Wasmtime itself refuses artefacts of another version or configuration.
    unsafe { Component::deserialize(engine, code.0) }.map_err(io::Error::other)
}

/// Why a file of the store is not used.
#[derive(Debug, thiserror::Error)]
enum BadFile {
    #[error("the MAC is malformed")]
    MacSyntax,
    #[error("the MAC does not match")]
    Mac,
    #[error("the compiled component is not a regular file, or is too large")]
    Artefact,
    #[error("the key of compiled components is not private, expected a file of mode 0600")]
    Key,
}

impl From<BadFile> for io::Error {
    fn from(problem: BadFile) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, problem)
    }
}

/// Returns a name that no other process or thread uses.
fn unique() -> io::Result<String> {
    Ok(random::<8>()?.map(|byte| format!("{byte:02x}")).concat())
}

fn random<const BYTES: usize>() -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    let mut filled = 0;
    while filled < BYTES {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

/// A file or folder that must belong to the current user.
enum PrivateFile {
    Folder,
    Key,
    Artefact,
}

impl PrivateFile {
    fn check(self, uid: u32) -> io::Result<()> {
        if uid == rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        let problem = match self {
            Self::Folder => "the folder of compiled components belongs to another user",
            Self::Key => "the key of compiled components belongs to another user",
            Self::Artefact => "the compiled component belongs to another user",
        };
        Err(io::Error::new(io::ErrorKind::PermissionDenied, problem))
    }
}

fn open_nofollow(dir: &Dir, path: &Path) -> io::Result<File> {
    dir.open_with(path, OpenOptions::new().read(true).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()))
}

fn read_if_there(dir: &Dir, path: &Path, bytes_max: u64) -> io::Result<Option<(File, Vec<u8>)>> {
    let file = match open_nofollow(dir, path) {
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let metadata = file.metadata()?;
    PrivateFile::Artefact.check(metadata.uid())?;
    if !metadata.is_file() || metadata.len() > bytes_max {
        return Err(BadFile::Artefact.into());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    (&file).take(bytes_max).read_to_end(&mut bytes)?;
    Ok(Some((file, bytes)))
}

fn write_new(dir: &Dir, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = dir.open_with(path, OpenOptions::new().write(true).create_new(true).mode(0o600))?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn read_key(dir: &Dir) -> io::Result<[u8; KEY_BYTES]> {
    let mut file = open_nofollow(dir, Path::new(KEY_FILE))?;
    let metadata = file.metadata()?;
    PrivateFile::Key.check(metadata.uid())?;
    if !metadata.is_file() || metadata.mode() & 0o077 != 0 || metadata.nlink() != 1 {
        return Err(BadFile::Key.into());
    }
    let mut key = [0; KEY_BYTES];
    file.read_exact(&mut key)?;
    Ok(key)
}

/// Creates a key and moves it into place without replacing an existing one, so that two processes that start at the
/// same time use the same key. If the file system does not support this (`RENAME_NOREPLACE`), a hard link is used. The
/// key then has two links for a moment, and another process refuses a key with two links.
fn make_key(dir: &Dir) -> io::Result<[u8; KEY_BYTES]> {
    let temporary = PathBuf::from(format!("{KEY_FILE}.{}", unique()?));
    write_new(dir, &temporary, &random::<KEY_BYTES>()?)?;
    let moved = match renameat_with(dir, &temporary, dir, KEY_FILE, RenameFlags::NOREPLACE) {
        Ok(()) => return read_key(dir),
        Err(Errno::INVAL) => dir.hard_link(&temporary, dir, KEY_FILE),
        Err(problem) => Err(problem.into()),
    };
    dir.remove_file(&temporary)?;
    match moved {
        Err(problem) if problem.kind() != io::ErrorKind::AlreadyExists => Err(problem),
        _ => read_key(dir),
    }
}

/// Returns the part of an artefact's name that depends on the engine, since an engine loads only artefacts of its own version and
/// configuration. It includes the rules of inspection, because the bytes of a stored component are not validated again.
fn compatibility(engine: &Engine) -> String {
    struct Sink(blake3::Hasher);
    impl Hasher for Sink {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut sink = Sink(blake3::Hasher::new());
    engine.precompile_compatibility_hash().hash(&mut sink);
    inspect::rules().hash(&mut sink);
    sink.0.finalize().to_hex()[..16].to_owned()
}
