//! Replacing a file of the user's: whole or not at all, and nothing but its content.

use crate::exit::{Exit, Stop};
use rustix::fs::{Gid, Uid, fchown};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Puts new text in the place of a file's, with the mode and, where that is allowed, the owner it had. A link stays one: what it
/// leads to is replaced. A file that may not be written is left alone, though its folder would let it be replaced.
pub fn replace(file: &Path, text: &str) -> Result<(), Stop> {
    let failed = |error: io::Error| Stop::io(format!("write `{}`", file.display()), &error);
    let file = fs::canonicalize(file).map_err(failed)?;
    if !fs::metadata(&file).map_err(failed)?.is_file() {
        return Err(Stop::new(Exit::Usage, format!("`{}` is no regular file: it cannot be replaced", file.display())));
    }
    let before = OpenOptions::new().write(true).open(&file).and_then(|old| old.metadata()).map_err(failed)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let fresh = file.with_file_name(format!(".{name}.glovebox-{}", std::process::id()));
    let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh).and_then(|mut opened| {
        opened.write_all(text.as_bytes())?;
        become_like(&opened, &before)?;
        opened.sync_all()
    });
    written.and_then(|()| fs::rename(&fresh, &file)).map_err(|error| {
        // Left behind it would only be litter; the first error is the one that matters.
        let _ = fs::remove_file(&fresh);
        failed(error)
    })
}

fn become_like(fresh: &File, before: &Metadata) -> io::Result<()> {
    if fresh.metadata()?.uid() != before.uid() || fresh.metadata()?.gid() != before.gid() {
        // Who edits a file of somebody else's may give it to nobody: as with every editor, it becomes the editor's.
        let _ = fchown(fresh, Some(Uid::from_raw(before.uid())), Some(Gid::from_raw(before.gid())));
    }
    fresh.set_permissions(before.permissions())
}
