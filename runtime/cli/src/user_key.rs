//! The folder of this user's key, and what happens without a key.
//!
//! Without a folder for a key a run is unsigned, with a warning. A key that other users could know or choose stops the command: it
//! signs nothing, and its signatures do not count.

use crate::exit::{Exit, Stop};
use crate::terminal::{self, visible};
use glovebox_workspace::user_key::{KEY_FILE, UserKey};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The folder of the key: `$GLOVEBOX_STATE_DIR`, `$XDG_STATE_HOME/glovebox`, `~/.local/state/glovebox`, or nowhere.
pub fn folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    variable("GLOVEBOX_STATE_DIR")
        .or_else(|| variable("XDG_STATE_HOME").map(|folder| folder.join("glovebox")))
        .or_else(|| variable("HOME").map(|home| home.join(".local/state/glovebox")))
}

/// The key that signs a new run, made at first use. Without a folder for it: none, after a warning.
pub fn to_sign() -> Result<Option<UserKey>, Stop> {
    let Some(folder) = folder() else {
        warn_unsigned("no home folder");
        return Ok(None);
    };
    match UserKey::read_or_make(&folder) {
        Ok(key) => Ok(Some(key)),
        // The system refused: a read-only or missing home. What is wrong with the key itself has no number of the system's.
        Err(error) if error.raw_os_error().is_some() => {
            warn_unsigned(format_args!("`{}`: {error}", folder.display()));
            Ok(None)
        }
        Err(error) => Err(refused(&folder, &error)),
    }
}

/// The key that verifies records; none if this user has no key, so that no record counts as this user's.
pub fn to_verify() -> Result<Option<UserKey>, Stop> {
    let Some(folder) = folder() else { return Ok(None) };
    UserKey::read(&folder).or_else(|error| match error.raw_os_error() {
        Some(_) => Ok(None),
        None => Err(refused(&folder, &error)),
    })
}

fn warn_unsigned(why: impl fmt::Display) {
    let why = why.to_string();
    terminal::say(format_args!(
        "warning: this run cannot be signed ({}): `glovebox resume` and `apply` will refuse it; set GLOVEBOX_STATE_DIR to a folder \
         of your own\n",
        visible::line(&why)
    ));
}

fn refused(folder: &Path, error: &io::Error) -> Stop {
    let file = folder.join(KEY_FILE);
    let message = format!("the key of your runs, `{}`, cannot be used: {error}", file.display());
    Stop::new(Exit::Policy, message).with_help(format!(
        "if no other user could read it: `chmod 700 {0} && chmod 600 {1}`; else remove it, and its runs count as foreign",
        folder.display(),
        file.display()
    ))
}
