//! Replacing a file of the user's: whole or not at all, and nothing but its content.

use crate::exit::Stop;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Puts new text in the place of a file's, with the mode it had. A link stays one: what it leads to is replaced.
pub fn replace(file: &Path, text: &str) -> Result<(), Stop> {
    let failed = |error: std::io::Error| Stop::io(format!("write `{}`", file.display()), &error);
    let file = fs::canonicalize(file).map_err(failed)?;
    let mode = fs::metadata(&file).map_err(failed)?.permissions();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let fresh = file.with_file_name(format!(".{name}.glovebox-{}", std::process::id()));
    let written = fs::File::create_new(&fresh).and_then(|mut opened| {
        opened.write_all(text.as_bytes())?;
        opened.set_permissions(mode)?;
        opened.sync_all()
    });
    written.and_then(|()| fs::rename(&fresh, &file)).map_err(|error| {
        // Left behind it would only be litter; the first error is the one that matters.
        let _ = fs::remove_file(&fresh);
        failed(error)
    })
}
