//! Artifacts: files for people, such as `prompt.md`, which are stored with the stage's record.

use crate::imports::control;

/// Stores an artifact. `name` consists of 1 to 64 letters, digits, `.`, `_` and `-`.
///
/// # Errors
/// The host's reason, if it refuses the name, or if the bytes exceed the limit `artifact_bytes`.
pub fn put(name: impl AsRef<str>, media_type: impl AsRef<str>, bytes: impl AsRef<[u8]>) -> Result<(), String> {
    control::put_artifact(name.as_ref(), media_type.as_ref(), bytes.as_ref())
}

/// Stores a text: as Markdown if the name ends in `.md`, and as plain text otherwise.
///
/// # Errors
/// As [`put`].
pub fn put_text(name: impl AsRef<str>, text: impl AsRef<str>) -> Result<(), String> {
    let media_type = if name.as_ref().ends_with(".md") { "text/markdown" } else { "text/plain" };
    put(name, media_type, text.as_ref())
}
