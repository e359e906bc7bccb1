//! Bytes kept beside the stage's record, such as `prompt.md`.

use crate::bindings::glovebox::plugin::control;

/// Keeps bytes under a name: 1 to 64 characters out of letters, digits, `.`, `_` and `-`.
///
/// # Errors
/// The host's reason, for a name it does not take or bytes over the `artifact_bytes` limit.
pub fn put(name: &str, media_type: &str, bytes: impl AsRef<[u8]>) -> Result<(), String> {
    control::put_artifact(name, media_type, bytes.as_ref())
}

/// Keeps Markdown or plain text, told apart by the name's ending; otherwise as [`put`].
///
/// # Errors
/// As [`put`].
pub fn put_text(name: &str, text: &str) -> Result<(), String> {
    put(name, if name.ends_with(".md") { "text/markdown" } else { "text/plain" }, text)
}
