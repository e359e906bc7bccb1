//! Bytes kept beside the stage's record, such as `prompt.md`.

use crate::bindings::glovebox::plugin::control;

/// Keeps bytes under a name: 1 to 64 characters out of letters, digits, `.`, `_` and `-`.
///
/// # Errors
/// The host's reason, for a name it does not take or bytes over the `artifact_bytes` limit.
pub fn put(name: impl AsRef<str>, media_type: impl AsRef<str>, bytes: impl AsRef<[u8]>) -> Result<(), String> {
    control::put_artifact(name.as_ref(), media_type.as_ref(), bytes.as_ref())
}

/// Keeps Markdown or plain text, told apart by the name's ending; otherwise as [`put`].
///
/// # Errors
/// As [`put`].
pub fn put_text(name: impl AsRef<str>, text: impl AsRef<str>) -> Result<(), String> {
    let media_type = if name.as_ref().ends_with(".md") { "text/markdown" } else { "text/plain" };
    put(name, media_type, text.as_ref())
}
