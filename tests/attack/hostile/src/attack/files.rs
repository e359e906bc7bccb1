//! Attacks on existing files: their content, listings, metadata, and open descriptors.

use super::raw::{self, AT_CWD, Errno, Text, raw};
use super::{AttackResult, word};
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The text that attacks write.
const MARK: &[u8] = b"hostile was here\n";

/// Reads the beginning of a file.
pub(crate) fn read(arguments: &[String]) -> AttackResult {
    let mut bytes = Vec::new();
    match fs::File::open(word(arguments, 0)).and_then(|file| file.take(4096).read_to_end(&mut bytes)) {
        Ok(_) => AttackResult::worked(format!("{} bytes", bytes.len())).with(bytes),
        Err(error) => AttackResult::stopped(Errno::from(error)),
    }
}

/// Lists a directory.
pub(crate) fn list(arguments: &[String]) -> AttackResult {
    match fs::read_dir(word(arguments, 0)) {
        Ok(entries) => {
            let names: Vec<String> =
                entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            AttackResult::worked(format!("{} names", names.len())).with(names.join("\n"))
        }
        Err(error) => AttackResult::stopped(Errno::from(error)),
    }
}

/// Creates a file, or replaces its content.
pub(crate) fn write(arguments: &[String]) -> AttackResult {
    let path = Path::new(word(arguments, 0));
    let _parent_may_be_there = path.parent().map(fs::create_dir_all);
    AttackResult::from_result(fs::write(path, MARK))
}

/// Appends to an existing file.
pub(crate) fn append(arguments: &[String]) -> AttackResult {
    AttackResult::from_result(
        OpenOptions::new().append(true).open(word(arguments, 0)).and_then(|mut file| file.write_all(MARK)),
    )
}

/// Truncates a file.
pub(crate) fn truncate(arguments: &[String]) -> AttackResult {
    AttackResult::from_result(raw(libc::SYS_truncate, &[Text::new(word(arguments, 0)).at(), 0]))
}

/// Opens each entry of a folder, or reads the target of an entry that is a link.
pub(crate) fn open_all(arguments: &[String]) -> AttackResult {
    let mut last = AttackResult::stopped("nothing there");
    let entries = match fs::read_dir(word(arguments, 0)) {
        Ok(entries) => entries,
        Err(error) => return AttackResult::stopped(Errno::from(error)),
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let opened = fs::File::open(&path).map(|_| ()).or_else(|_| fs::read_link(&path).map(|_| ()));
        last = AttackResult::from_result(opened);
        if last.worked {
            return AttackResult::worked(path.to_string_lossy());
        }
    }
    last
}

/// Reads the beginning of the first file that is readable and not empty.
pub(crate) fn read_any(arguments: &[String]) -> AttackResult {
    let mut answers = Vec::new();
    for path in arguments {
        match raw::open(Path::new(path), libc::O_RDONLY | libc::O_NONBLOCK, 0).and_then(|file| raw::read(file, 64)) {
            Ok(bytes) if !bytes.is_empty() => return AttackResult::worked(path).with(bytes),
            Ok(_) => answers.push("empty".to_owned()),
            Err(error) => answers.push(error.to_string()),
        }
    }
    answers.dedup();
    AttackResult::stopped(answers.join(", "))
}

/// Opens a file for writing without writing to it, because a write would do damage.
pub(crate) fn open_write(arguments: &[String]) -> AttackResult {
    let mut last = AttackResult::stopped("nothing tried");
    for path in arguments {
        match OpenOptions::new().write(true).open(path) {
            Ok(_) => return AttackResult::worked(path),
            Err(error) => last = AttackResult::stopped(Errno::from(error)),
        }
    }
    last
}

pub(crate) fn unlink(arguments: &[String]) -> AttackResult {
    AttackResult::from_result(fs::remove_file(word(arguments, 0)))
}

pub(crate) fn rename(arguments: &[String]) -> AttackResult {
    AttackResult::from_result(fs::rename(word(arguments, 0), word(arguments, 1)))
}

/// Creates the first directory that can be created.
pub(crate) fn mkdir(arguments: &[String]) -> AttackResult {
    let mut last = AttackResult::stopped("nothing tried");
    for path in arguments {
        match fs::create_dir(path) {
            Ok(()) => {
                let _harmless = fs::remove_dir(path);
                return AttackResult::worked(path);
            }
            Err(error) => last = AttackResult::stopped(Errno::from(error)),
        }
    }
    last
}

/// Changes a mode by both system calls, because older filters do not know the newer one.
pub(crate) fn chmod(arguments: &[String]) -> AttackResult {
    let mode = u32::from_str_radix(word(arguments, 1), 8).unwrap_or(0o777);
    let old = fs::set_permissions(word(arguments, 0), fs::Permissions::from_mode(mode));
    if old.is_ok() {
        return AttackResult::worked("chmod");
    }
    let fchmodat2 = 452;
    match raw(fchmodat2, &[AT_CWD, Text::new(word(arguments, 0)).at(), mode as usize, 0]) {
        Ok(_) => AttackResult::worked("fchmodat2"),
        Err(_) => AttackResult::from_result(old),
    }
}

/// Sets the current user as the owner of a file, which at least changes its times.
pub(crate) fn chown(arguments: &[String]) -> AttackResult {
    let own = raw(libc::SYS_geteuid, &[]).unwrap_or(0);
    let path = Text::new(word(arguments, 0));
    AttackResult::from_result(raw(libc::SYS_fchownat, &[AT_CWD, path.at(), own, usize::MAX, 0]))
}

/// Sets both times of a file to one second after the epoch.
pub(crate) fn utimes(arguments: &[String]) -> AttackResult {
    let times = [1_usize, 0, 1, 0];
    let path = Text::new(word(arguments, 0));
    AttackResult::from_result(raw(libc::SYS_utimensat, &[AT_CWD, path.at(), times.as_ptr() as usize, 0]))
}

/// Sets an extended attribute: path, name, value.
pub(crate) fn setxattr(arguments: &[String]) -> AttackResult {
    let (path, name) = (Text::new(word(arguments, 0)), Text::new(word(arguments, 1)));
    let value = word(arguments, 2);
    AttackResult::from_result(raw(libc::SYS_setxattr, &[path.at(), name.at(), value.as_ptr() as usize, value.len(), 0]))
}

/// Searches files for a text. Missing files are skipped.
pub(crate) fn grep(arguments: &[String]) -> AttackResult {
    let wanted = word(arguments, 0);
    let mut files = arguments.iter().skip(1);
    let holds = |path: &String| {
        let mut text = Vec::new();
        let read = fs::File::open(path).and_then(|file| file.take(1 << 20).read_to_end(&mut text));
        read.is_ok() && String::from_utf8_lossy(&text).contains(wanted)
    };
    match files.find(|path| holds(path)) {
        Some(path) => AttackResult::worked(path),
        None => AttackResult::stopped("not in there"),
    }
}

/// Searches all folders below a folder for a name that contains a text.
pub(crate) fn hunt(arguments: &[String]) -> AttackResult {
    let wanted = word(arguments, 1);
    let (mut waiting, mut seen) = (vec![Path::new(word(arguments, 0)).to_owned()], 0);
    while let Some(folder) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            let path = entry.path();
            if entry.file_name().to_string_lossy().contains(wanted) {
                return AttackResult::worked("found").with(path.to_string_lossy().as_bytes());
            }
            let skipped = ["/usr", "/proc", "/sys"].iter().any(|folder| path.starts_with(folder));
            if seen < 20_000 && !skipped && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(path);
            }
        }
    }
    AttackResult::stopped(format!("not among {seen} names"))
}

/// Locks a file, so that other processes must wait.
pub(crate) fn flock(arguments: &[String]) -> AttackResult {
    match raw::open(Path::new(word(arguments, 0)), libc::O_RDONLY, 0) {
        Ok(file) => AttackResult::from_result(raw(libc::SYS_flock, &[file, (libc::LOCK_EX | libc::LOCK_NB) as usize])),
        Err(error) => AttackResult::stopped(error),
    }
}

/// Reopens the process's own standard output to read and truncate it.
pub(crate) fn reopen_stdout(_: &[String]) -> AttackResult {
    match raw::open(Path::new("/proc/self/fd/1"), libc::O_RDWR, 0) {
        Ok(file) => AttackResult::from_result(raw(libc::SYS_ftruncate, &[file, 0])),
        Err(error) => AttackResult::stopped(error),
    }
}

/// Reads every open descriptor except the standard three.
pub(crate) fn descriptors(_: &[String]) -> AttackResult {
    let mut found: Vec<String> = Vec::new();
    for descriptor in 3..1024_usize {
        if raw(libc::SYS_fcntl, &[descriptor, libc::F_GETFD as usize]).is_err() {
            continue;
        }
        let path = fs::read_link(format!("/proc/self/fd/{descriptor}")).unwrap_or_default();
        let content = raw(libc::SYS_lseek, &[descriptor, 0, 0]).and_then(|_| raw::read(descriptor, 256));
        let content = String::from_utf8_lossy(&content.unwrap_or_default()).into_owned();
        found.push(format!("{descriptor} {} {content}", path.display()));
    }
    if found.is_empty() {
        AttackResult::stopped("none open")
    } else {
        AttackResult::worked(format!("{} open", found.len())).with(found.join("\n"))
    }
}

/// Creates a file handle and opens the file by it, without a path.
pub(crate) fn handle(arguments: &[String]) -> AttackResult {
    let path = Text::new(word(arguments, 0));
    let mut handle = [0_u32; 34];
    handle[0] = 128;
    let mut mount = 0_i32;
    let made = raw(
        libc::SYS_name_to_handle_at,
        &[AT_CWD, path.at(), handle.as_mut_ptr() as usize, &raw mut mount as usize, 0],
    );
    let root = raw::open(Path::new("/"), libc::O_RDONLY, 0).unwrap_or(AT_CWD);
    let opened = raw(libc::SYS_open_by_handle_at, &[root, handle.as_ptr() as usize, libc::O_RDONLY as usize]);
    match (made, opened) {
        (_, Ok(_)) => AttackResult::worked("opened by handle"),
        (_, Err(error)) => AttackResult::from_result::<()>(Err(error)),
    }
}

/// Writes a file, for other attacks.
pub(crate) fn touch(path: &Path) -> io::Result<()> {
    fs::write(path, MARK)
}
