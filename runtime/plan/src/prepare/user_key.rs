//! The key of this user, which signs runs and what the user confirmed.
//!
//! A key that other users could know or choose is refused: it signs nothing, and its signatures do not count.

use super::folders::state_dir;
use super::refusal::{Class, Refusal};
use glovebox_workspace::user_key::{KEY_FILE, UserKey};
use std::io;
use std::path::Path;

/// The key that signs, or why there is none.
pub enum Signing {
    /// The user's key.
    Key(UserKey),
    /// This user can have no key here, for this reason.
    Unavailable(String),
}

/// The key that signs a new run, made at first use.
///
/// # Errors
/// The key that is there cannot be trusted.
pub fn to_sign() -> Result<Signing, Refusal> {
    let Some(folder) = state_dir() else { return Ok(Signing::Unavailable("no home folder".to_owned())) };
    match UserKey::read_or_make(&folder) {
        Ok(key) => Ok(Signing::Key(key)),
        // An error of the system: a read-only or missing home. A problem of the key itself has no error number.
        Err(error) if error.raw_os_error().is_some() => {
            Ok(Signing::Unavailable(format!("`{}`: {error}", folder.display())))
        }
        Err(error) => Err(refused(&folder, &error)),
    }
}

/// The key that verifies records; none if this user has no key, so that no record counts as this user's.
///
/// # Errors
/// The key that is there cannot be trusted.
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
        "if no other user could read it: `chmod 700 {0} && chmod 600 {1}`; else remove it, and its runs count as foreign",
        folder.display(),
        file.display()
    ))
}
