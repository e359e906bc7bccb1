//! Files of the user, replaced as a whole or not at all.

use crate::exit::{Exit, Stop};
use rustix::fs::{Gid, OFlags, Uid, fchown};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Writes a file for others to read, whether it exists or not. Refuses everything else at its place, also a link: a project may have put it
/// there, and it may lead to any file of the user.
pub fn put(file: &Path, content: impl AsRef<[u8]>) -> Result<(), Stop> {
    let failed = |error: io::Error| Stop::io(format!("write `{}`", file.display()), &error);
    let before = match fs::symlink_metadata(file) {
        Ok(found) if found.is_file() => Some(found),
        Ok(found) => {
            let what = if found.is_symlink() { "a link" } else { "not a file" };
            return Err(Stop::new(Exit::Usage, format!("`{}` is {what}: nothing was written", file.display()))
                .with_help("name a new file, or remove what is there"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    write_beside(file, content.as_ref(), before.as_ref(), FOR_OTHERS).map_err(failed)
}

/// Replaces the content of a file. Keeps its mode and, if possible, its owner. Follows a link and replaces its target. Refuses a file that
/// is not writable, even if its folder is.
pub fn replace(file: &Path, content: impl AsRef<[u8]>) -> Result<(), Stop> {
    let failed = |error: io::Error| Stop::io(format!("write `{}`", file.display()), &error);
    let file = fs::canonicalize(file).map_err(failed)?;
    if !fs::metadata(&file).map_err(failed)?.is_file() {
        return Err(Stop::new(
            Exit::Usage,
            format!("`{}` is not a regular file: it cannot be replaced", file.display()),
        ));
    }
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let before = OpenOptions::new()
        .write(true)
        .custom_flags(flags)
        .open(&file)
        .and_then(|old| old.metadata())
        .map_err(failed)?;
    write_beside(&file, content.as_ref(), Some(&before), OWN).map_err(failed)
}

/// The mode of a file that becomes like another one.
const OWN: u32 = 0o600;
/// The mode of a new file, less what the user's mask takes away.
const FOR_OTHERS: u32 = 0o666;

/// Writes a new file beside, like the old one if there is one, and puts it in its place.
fn write_beside(file: &Path, content: &[u8], before: Option<&Metadata>, mode: u32) -> io::Result<()> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let fresh = file.with_file_name(format!(".{name}.glovebox-{}", std::process::id()));
    let written = OpenOptions::new().write(true).create_new(true).mode(mode).open(&fresh).and_then(|mut opened| {
        opened.write_all(content)?;
        before.map_or(Ok(()), |before| become_like(&opened, before))?;
        opened.sync_all()
    });
    written.and_then(|()| fs::rename(&fresh, file)).inspect_err(|_| {
        // The first error is the one to report.
        let _ = fs::remove_file(&fresh);
    })
}

fn become_like(fresh: &File, before: &Metadata) -> io::Result<()> {
    if fresh.metadata()?.uid() != before.uid() || fresh.metadata()?.gid() != before.gid() {
        // Only root can give a file to another user; without that right the file belongs to the current user, as with every editor.
        let _ = fchown(fresh, Some(Uid::from_raw(before.uid())), Some(Gid::from_raw(before.gid())));
    }
    fresh.set_permissions(before.permissions())
}
