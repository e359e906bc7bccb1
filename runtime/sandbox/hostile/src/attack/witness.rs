//! Waiting to be looked at from outside.
//!
//! An attack that is ready blocks a signal nobody minds. The witness sees that in the kernel's words about the process, looks as long
//! as it needs to, and lets the attack go by that signal: nothing depends on how fast either of them is.

use super::AttackResult;
use super::raw::raw;
use std::time::{Duration, Instant};

/// Longest time to stand still; less than a command has.
const WAIT_MAX: Duration = Duration::from_secs(8);
const NAP: Duration = Duration::from_millis(2);

/// Stands still until somebody outside has looked. What is to be said when nobody did.
pub(crate) fn wait() -> Result<(), AttackResult> {
    let signals = [1_u64 << (libc::SIGURG - 1)];
    let blocked = raw(libc::SYS_rt_sigprocmask, &[libc::SIG_BLOCK as usize, signals.as_ptr() as usize, 0, 8]);
    blocked.map_err(AttackResult::stopped)?;
    let end = Instant::now() + WAIT_MAX;
    while Instant::now() < end {
        // Asked in passing: while the kernel waits for a signal it does not show it as blocked.
        let at_once = [0_u64; 2];
        if raw(libc::SYS_rt_sigtimedwait, &[signals.as_ptr() as usize, 0, at_once.as_ptr() as usize, 8]).is_ok() {
            return Ok(());
        }
        std::thread::sleep(NAP);
    }
    // The words by which the judge knows that the attack was not tried.
    Err(AttackResult::stopped("nobody looked"))
}
