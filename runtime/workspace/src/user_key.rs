//! The key of one user on one machine. It authenticates files that Glovebox writes and later trusts.
//!
//! A hash does not prove who wrote a folder, because an attacker can compute hashes too. The key is created at first
//! use, outside of every project: 32 random bytes in a file of mode 0600 with one hard link, in a folder of mode 0700.
//! This user must own both. Any other file is refused and never replaced, so that an attacker cannot choose the key.

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::ffi::OsStr;
use std::fmt;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// File name of the key.
pub const KEY_FILE: &str = "run.key";

const KEY_BYTES: usize = 32;
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A key that only this user can read. Its bytes are never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct UserKey([u8; KEY_BYTES]);

impl fmt::Debug for UserKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserKey(..)")
    }
}

impl UserKey {
    /// Creates a key from bytes. [`UserKey::read`] and [`UserKey::read_or_make`] read them from the user's file.
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// Reads the key in `folder`. Returns `None` if the file does not exist.
    ///
    /// # Errors
    /// `PermissionDenied` if the folder or the file belongs to another user, or if others can write the folder or read
    /// or write the file.
    pub fn read(folder: &Path) -> io::Result<Option<Self>> {
        match open_folder(folder) {
            Ok(folder) => read(&folder),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the key in `folder`, or creates the folder and the key. If two processes create a key at the same time,
    /// both use the same one.
    ///
    /// # Errors
    /// As [`UserKey::read`]; also the system's error.
    pub fn read_or_make(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let folder = open_folder(folder)?;
        if let Some(key) = read(&folder)? {
            return Ok(key);
        }
        make(&folder)?;
        read(&folder)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    /// Returns the MAC of some bytes. `purpose` separates MACs of different kinds, so that none is valid for another purpose.
    pub fn mac(&self, purpose: &str, bytes: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&(purpose.len() as u64).to_le_bytes()).update(purpose.as_bytes()).update(bytes);
        hasher.finalize()
    }
}

fn denied(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, problem)
}

fn is_own(uid: u32) -> bool {
    uid == rustix::process::geteuid().as_raw()
}

/// Opens the folder of the key. Only this user may be able to write it, so that others cannot replace the folder's
/// files between two uses.
fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let folder = rustix::fs::open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let found = rustix::fs::fstat(&folder)?;
    if !is_own(found.st_uid) {
        return Err(denied("another user owns its folder"));
    }
    if found.st_mode & 0o022 != 0 {
        return Err(denied("others can write its folder, expected mode 0700"));
    }
    Ok(folder)
}

fn read(folder: &OwnedFd) -> io::Result<Option<UserKey>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(folder, KEY_FILE, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(denied("it is a symbolic link, expected a regular file of mode 0600")),
        Err(error) => return Err(error.into()),
    };
    let found = rustix::fs::fstat(&file)?;
    if !is_own(found.st_uid) {
        return Err(denied("another user owns it"));
    }
    let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    if !is_file || found.st_mode & 0o077 != 0 || found.st_nlink != 1 {
        return Err(denied("others can read it, expected a regular file of mode 0600 with one hard link"));
    }
    let mut key = [0; KEY_BYTES];
    File::from(file).read_exact(&mut key).map_err(|_| denied("it is cut short, expected 32 bytes"))?;
    Ok(Some(UserKey(key)))
}

/// Creates the key atomically: writes it to a temporary file and renames that, unless there is a key already.
fn make(folder: &OwnedFd) -> io::Result<()> {
    let temporary = format!("{KEY_FILE}.{:016x}", u64::from_le_bytes(random()?));
    let bytes = random::<KEY_BYTES>()?;
    let mut file = crate::tree::create_file(folder, OsStr::new(&temporary), PRIVATE)?;
    // The user's umask may have removed permissions of the owner.
    rustix::fs::fchmod(&file, PRIVATE)?;
    let written = file.write_all(&bytes).and_then(|()| file.sync_all());
    let placed = written.and_then(|()| Ok(place(folder, &temporary)?));
    match rustix::fs::unlinkat(folder, &temporary, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => placed,
        Err(error) => placed.and(Err(error.into())),
    }
}

/// Renames a file to the key's name, unless there is a key. A hard link would give the key two names for a moment, and
/// readers would refuse it.
fn place(folder: &OwnedFd, temporary: &str) -> Result<(), Errno> {
    let moved = match rustix::fs::renameat_with(folder, temporary, folder, KEY_FILE, RenameFlags::NOREPLACE) {
        // Some file systems cannot rename without replacing.
        Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::linkat(folder, temporary, folder, KEY_FILE, AtFlags::empty()),
        moved => moved,
    };
    match moved {
        Err(Errno::EXIST) => Ok(()),
        moved => moved,
    }
}

pub fn random<const BYTES: usize>() -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    let mut filled = 0;
    while filled < BYTES {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_key_is_made_once_and_is_private() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("deep/state");
        assert_eq!(UserKey::read(&folder).unwrap(), None);
        assert!(!folder.exists(), "reading makes nothing");
        let key = UserKey::read_or_make(&folder).unwrap();
        assert_eq!(UserKey::read_or_make(&folder).unwrap(), key);
        assert_eq!(UserKey::read(&folder).unwrap(), Some(key.clone()));
        assert_eq!((mode(&folder), mode(&folder.join(KEY_FILE))), (0o700, 0o600));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing temporary stays");
        assert_ne!(key.mac("a", b"x"), key.mac("b", b"x"));
        assert_ne!(key, UserKey::read_or_make(&place.path().join("other")).unwrap());
        assert_eq!(format!("{key:?}"), "UserKey(..)");
    }

    #[test]
    fn of_many_that_make_one_at_once_all_use_the_same() {
        for _ in 0..50 {
            let place = tempfile::tempdir().unwrap();
            let makers: Vec<_> = (0..8)
                .map(|_| {
                    let folder = place.path().join("state");
                    std::thread::spawn(move || UserKey::read_or_make(&folder).unwrap())
                })
                .collect();
            let keys: Vec<UserKey> = makers.into_iter().map(|maker| maker.join().unwrap()).collect();
            assert!(keys.iter().all(|key| *key == keys[0]));
            assert_eq!(fs::read_dir(place.path().join("state")).unwrap().count(), 1, "nothing temporary stays");
        }
    }

    #[test]
    fn a_key_that_others_could_know_or_choose_is_refused_and_left_as_it_is() {
        let check = |spoil: &dyn Fn(&Path, &Path), said: &str| {
            let place = tempfile::tempdir().unwrap();
            let folder = place.path().join("state");
            UserKey::read_or_make(&folder).unwrap();
            spoil(&folder, &folder.join(KEY_FILE));
            for refused in [UserKey::read(&folder).unwrap_err(), UserKey::read_or_make(&folder).unwrap_err()] {
                assert!(refused.to_string().contains(said), "{refused}, expected {said}");
            }
        };
        let set = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        check(&|_, key| set(key, 0o640), "others can read it");
        check(&|_, key| set(key, 0o604), "others can read it");
        check(&|folder, key| fs::hard_link(key, folder.join("second")).unwrap(), "one hard link");
        check(&|folder, _| set(folder, 0o770), "others can write its folder");
        check(&|_, key| fs::write(key, b"short").unwrap(), "cut short");
        check(
            &|folder, key| {
                fs::rename(key, folder.join("elsewhere")).unwrap();
                symlink("elsewhere", key).unwrap();
            },
            "it is a symbolic link",
        );
        check(
            &|_, key| {
                fs::remove_file(key).unwrap();
                fs::create_dir(key).unwrap();
                set(key, 0o700);
            },
            "expected a regular file",
        );
    }
}
