//! The key of this user, and the warning about runs that cannot be signed.

use crate::exit::Stop;
use crate::terminal::{self, visible};
use glovebox_plan::prepare::user_key::{self, Signing};
use glovebox_workspace::user_key::UserKey;

/// Returns the key that signs a new run, which is created at first use. If there is no folder for it, prints a warning
/// and returns `None`.
pub fn to_sign() -> Result<Option<UserKey>, Stop> {
    match user_key::to_sign()? {
        Signing::Key(key) => Ok(Some(key)),
        Signing::Unavailable(why) => {
            terminal::say(format_args!(
                "warning: this run cannot be signed ({}): `glovebox resume` and `apply` will refuse it; set GLOVEBOX_STATE_DIR to a \
                 folder of your own\n",
                visible::line(&why)
            ));
            Ok(None)
        }
    }
}

/// Returns the key that verifies records. Returns `None` if this user has no key, so that no record is accepted as
/// signed by this user.
pub fn to_verify() -> Result<Option<UserKey>, Stop> {
    Ok(user_key::to_verify()?)
}
