//! Artifacts: files for people beside the stage's record, such as `prompt.md`.

use crate::imports::control;

/// Keeps an artifact. `name` has 1 to 64 letters, digits, `.`, `_` and `-`.
///
/// # Errors
/// The host's reason, if it refuses the name or the bytes exceed the limit `artifact_bytes`.
pub fn put(name: impl AsRef<str>, media_type: impl AsRef<str>, bytes: impl AsRef<[u8]>) -> Result<(), String> {
    control::put_artifact(name.as_ref(), media_type.as_ref(), bytes.as_ref())
}

/// Keeps a text: Markdown if the name ends in `.md`, else plain text.
///
/// # Errors
/// As [`put`].
pub fn put_text(name: impl AsRef<str>, text: impl AsRef<str>) -> Result<(), String> {
    let media_type = if name.as_ref().ends_with(".md") { "text/markdown" } else { "text/plain" };
    put(name, media_type, text.as_ref())
}
