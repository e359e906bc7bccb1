//! Runs the attacks as an ordinary user in every tier, because the sandbox must not be secure for root only.
//!
//! The tests run the attacks as the current user.

use crate::ordinary_user::OrdinaryUser;
use crate::process::demand;
use crate::{Step, bubblewrap};

/// Tiers of the sandbox.
pub(crate) const TIERS: [&str; 3] = ["full", "bwrap", "landlock"];

/// Runs `glovebox doctor --attack` with the binaries that the tests built.
pub(crate) fn as_ordinary_user() -> Step<()> {
    let user = OrdinaryUser::new("gate", &["glovebox", "glovebox-attack"])?;
    for tier in TIERS {
        eprintln!("attacks in tier {tier}");
        let mut command = user.command("glovebox");
        command.args(["doctor", "--attack", "--tier", tier]);
        demand(&mut bubblewrap::beside(command))?;
    }
    Ok(())
}
