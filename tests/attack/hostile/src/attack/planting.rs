//! Attacks that leave files behind: links, special files, deceptive names, very many or very large files.

use super::raw::{AT_CWD, Errno, Text, raw};
use super::{AttackResult, files, number, word};
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;

/// Creates a symbolic link to the first path at the second, and writes through the link.
pub(crate) fn symlink_write(arguments: &[String]) -> AttackResult {
    let (target, link) = (word(arguments, 0), word(arguments, 1));
    let _older = fs::remove_file(link);
    if let Err(error) = symlink(target, link) {
        return AttackResult::stopped(Errno::from(error));
    }
    let file = OpenOptions::new().append(true).open(Path::new(link).join(word(arguments, 2)));
    let file = if word(arguments, 2).is_empty() { OpenOptions::new().append(true).open(link) } else { file };
    AttackResult::from_result(file.and_then(|mut file| file.write_all(b"hostile was here\n")))
}

/// Creates a symbolic link to the first path at the second, and reads through the link.
pub(crate) fn symlink_read(arguments: &[String]) -> AttackResult {
    let (target, link) = (word(arguments, 0), word(arguments, 1));
    let _older = fs::remove_file(link);
    if let Err(error) = symlink(target, link) {
        return AttackResult::stopped(Errno::from(error));
    }
    files::read(&[link.to_owned()])
}

/// Creates a hard link, and writes through the link if the third argument is `write`.
pub(crate) fn hardlink(arguments: &[String]) -> AttackResult {
    let (target, link) = (word(arguments, 0), word(arguments, 1));
    match fs::hard_link(target, link) {
        Ok(()) if word(arguments, 2) == "write" => files::append(&[link.to_owned()]),
        Ok(()) => files::read(&[link.to_owned()]),
        Err(error) => AttackResult::stopped(Errno::from(error)),
    }
}

/// Replaces a path with another kind of file: `symlink`, `fifo`, `socket`, `directory`, `device`.
pub(crate) fn replace(arguments: &[String]) -> AttackResult {
    let (kind, path) = (word(arguments, 0), Path::new(word(arguments, 1)));
    let _parent = path.parent().map(fs::create_dir_all);
    let _was_file = fs::remove_file(path);
    let _was_folder = fs::remove_dir(path);
    match kind {
        "symlink" => AttackResult::from_result(symlink("/etc/passwd", path)),
        "directory" => {
            AttackResult::from_result(fs::create_dir(path).and_then(|()| files::touch(&path.join("inside"))))
        }
        "fifo" => AttackResult::from_result(node(path, libc::S_IFIFO, 0)),
        "socket" => AttackResult::from_result(node(path, libc::S_IFSOCK, 0)),
        _ => AttackResult::from_result(node(path, libc::S_IFCHR, 0x0103)),
    }
}

/// Creates a device. Arguments: path, `char` or `block`, device number.
pub(crate) fn mknod(arguments: &[String]) -> AttackResult {
    let kind = if word(arguments, 1) == "block" { libc::S_IFBLK } else { libc::S_IFCHR };
    let device = usize::try_from(number(arguments, 2)).unwrap_or(0);
    AttackResult::from_result(node(Path::new(word(arguments, 0)), kind, device))
}

fn node(path: &Path, kind: u32, device: usize) -> Result<usize, Errno> {
    raw(libc::SYS_mknodat, &[AT_CWD, Text::of_path(path).at(), (kind | 0o666) as usize, device])
}

/// Creates a program with set-id bits in its initial mode, without calling chmod.
pub(crate) fn create_mode(arguments: &[String]) -> AttackResult {
    let path = Path::new(word(arguments, 0));
    let mode = u32::from_str_radix(word(arguments, 1), 8).unwrap_or(0o4755);
    let _mask = raw(libc::SYS_umask, &[0]);
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY;
    if let Err(error) = super::raw::open(path, flags, mode) {
        return AttackResult::stopped(error);
    }
    match fs::metadata(path) {
        Ok(meta) if meta.permissions().mode() & 0o6000 != 0 => AttackResult::worked("the bits are there"),
        Ok(_) => AttackResult::stopped("the bits are not there"),
        Err(error) => AttackResult::stopped(Errno::from(error)),
    }
}

/// Creates a file with a name that could deceive a reader or break a parser: `newline`, `escape`, `bytes`, `option`,
/// `bidi`, `c1`, `zero-width`, `separator`, `tag`, or otherwise the longest possible name.
pub(crate) fn odd_name(arguments: &[String]) -> AttackResult {
    let long = "n".repeat(255);
    let name: &[u8] = match word(arguments, 1) {
        "newline" => b"a\nb",
        "escape" => b"\x1b[2J\x1b]0;owned\x07",
        "bytes" => b"\xff\xfe\x80",
        "option" => b"--force",
        "bidi" => "\u{202e}gpj.exe".as_bytes(),
        "c1" => "a\u{9b}2Jb".as_bytes(),
        "zero-width" => "main\u{200b}.rs".as_bytes(),
        "separator" => "a\u{2028}b".as_bytes(),
        "tag" => "a\u{e0041}".as_bytes(),
        _ => long.as_bytes(),
    };
    let folder = Path::new(word(arguments, 0));
    AttackResult::from_result(
        fs::create_dir_all(folder).and_then(|()| fs::write(folder.join(OsStr::from_bytes(name)), "odd")),
    )
}

/// Creates nested directories.
pub(crate) fn deep(arguments: &[String]) -> AttackResult {
    let levels = number(arguments, 1);
    let mut result = std::env::set_current_dir(word(arguments, 0));
    for _ in 0..levels {
        result = result.and_then(|()| fs::create_dir("d")).and_then(|()| std::env::set_current_dir("d"));
    }
    AttackResult::from_result(result)
}

/// Creates many empty files.
pub(crate) fn many(arguments: &[String]) -> AttackResult {
    for index in 0..number(arguments, 1) {
        if let Err(error) = fs::write(format!("{}/many-{index}", word(arguments, 0)), "") {
            return AttackResult::stopped(format!("{} after {index} files", Errno::from(error)));
        }
    }
    AttackResult::worked("all of them")
}

/// Creates a sparse file of one terabyte.
pub(crate) fn sparse(arguments: &[String]) -> AttackResult {
    let file = fs::File::create(word(arguments, 0));
    AttackResult::from_result(file.and_then(|file| file.write_all_at(b"end", 1 << 40)))
}

/// Writes files of 16 MiB until the disk is full, but at most this many MiB in total.
pub(crate) fn fill(arguments: &[String]) -> AttackResult {
    let (folder, most) = (word(arguments, 0), number(arguments, 1));
    let block = vec![0x5a_u8; 1 << 20];
    for at in 0..most {
        let path = format!("{folder}/fill-{}", at / 16);
        let wrote = OpenOptions::new().create(true).append(true).open(path).and_then(|mut file| file.write_all(&block));
        if let Err(error) = wrote {
            let _room = (0..=at / 16).map(|index| fs::remove_file(format!("{folder}/fill-{index}"))).count();
            return AttackResult::stopped(format!("{} after {at} MiB", Errno::from(error)));
        }
    }
    AttackResult::worked(format!("{most} MiB"))
}

/// Moves the parent of a protected file aside, changes the file, and moves the parent back. Arguments: parent, path of
/// the file below it.
pub(crate) fn rename_ancestor(arguments: &[String]) -> AttackResult {
    let (parent, inside) = (word(arguments, 0), word(arguments, 1));
    let aside = format!("{parent}-aside");
    let moved = fs::rename(parent, &aside).and_then(|()| files::touch(&Path::new(&aside).join(inside)));
    AttackResult::from_result(moved.and_then(|()| fs::rename(&aside, parent)))
}

/// Creates a program in a folder that may be in a search path for programs.
pub(crate) fn plant_program(arguments: &[String]) -> AttackResult {
    let path = word(arguments, 0);
    let wrote = fs::write(path, "#!/bin/sh\necho hijacked\n");
    AttackResult::from_result(wrote.and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755))))
}
