//! Files of the user, replaced as a whole or not at all.

use crate::exit::{Exit, Stop};
use rustix::fs::{Gid, OFlags, Uid, fchown};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

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
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let fresh = file.with_file_name(format!(".{name}.glovebox-{}", std::process::id()));
    let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh).and_then(|mut opened| {
        opened.write_all(content.as_ref())?;
        become_like(&opened, &before)?;
        opened.sync_all()
    });
    written.and_then(|()| fs::rename(&fresh, &file)).map_err(|error| {
        // The first error is the one to report.
        let _ = fs::remove_file(&fresh);
        failed(error)
    })
}

fn become_like(fresh: &File, before: &Metadata) -> io::Result<()> {
    if fresh.metadata()?.uid() != before.uid() || fresh.metadata()?.gid() != before.gid() {
        // Only root can give a file to another user; without that right the file belongs to the current user, as with every editor.
        let _ = fchown(fresh, Some(Uid::from_raw(before.uid())), Some(Gid::from_raw(before.gid())));
    }
    fresh.set_permissions(before.permissions())
}
