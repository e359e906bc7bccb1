//! The key of this user. It signs runs and what the user confirmed.
//!
//! A key that other users could read or replace is refused: it signs nothing, and its signatures are not accepted.

use super::folders::state_dir;
use super::refusal::{Class, Refusal};
use glovebox_workspace::user_key::{KEY_FILE, UserKey};
use std::io;
use std::path::Path;

/// The key for signatures, or why there is none.
pub enum Signing {
    /// The user's key.
    Key(UserKey),
    /// This user cannot have a key on this machine, for this reason.
    Unavailable(String),
}

/// Returns the key that signs a new run. It is created at the first use.
///
/// # Errors
///
/// Fails if the existing key cannot be trusted.
pub fn to_sign() -> Result<Signing, Refusal> {
    let Some(folder) = state_dir() else { return Ok(Signing::Unavailable("no home folder".to_owned())) };
    match UserKey::read_or_make(&folder) {
        Ok(key) => Ok(Signing::Key(key)),
        // An error with an error number comes from the system, for example because the home folder is missing or
        // read-only. A problem of the key itself has no number.
        Err(error) if error.raw_os_error().is_some() => {
            Ok(Signing::Unavailable(format!("`{}`: {error}", folder.display())))
        }
        Err(error) => Err(refused(&folder, &error)),
    }
}

/// Returns the key that verifies records. `None` if this user has no key; then no record is accepted as signed by this
/// user.
///
/// # Errors
///
/// Fails if the existing key cannot be trusted.
pub fn to_verify() -> Result<Option<UserKey>, Refusal> {
    let Some(folder) = state_dir() else { return Ok(None) };
    UserKey::read(&folder).or_else(|error| match error.raw_os_error() {
        Some(_) => Ok(None),
        None => Err(refused(&folder, &error)),
    })
}

fn refused(folder: &Path, error: &io::Error) -> Refusal {
    let file = folder.join(KEY_FILE);
    let message = format!("the key of your runs, `{}`, cannot be used: {error}", file.display());
    Refusal::new(Class::Policy, message).with_help(format!(
        "if only its mode is wrong and no other user could read it, run `chmod 700 {0} && chmod 600 {1}`; otherwise remove \
         it: its runs then count as runs of another user",
        folder.display(),
        file.display()
    ))
}
