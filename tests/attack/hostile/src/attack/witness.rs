//! Waits until the host has observed this process.
//!
//! An attack that is ready blocks a harmless signal. The host sees that in `/proc`, observes as long as it needs to, and sends the
//! signal, at which the attack continues. So the speed of neither side matters.

use super::AttackResult;
use super::raw::raw;
use std::time::{Duration, Instant};

/// Longest time to wait; less than the wall time of a command.
const WAIT_MAX: Duration = Duration::from_secs(8);
const NAP: Duration = Duration::from_millis(2);

/// Waits until the host has observed this process. The error is the report for when it did not.
pub(crate) fn wait() -> Result<(), AttackResult> {
    let signals = [1_u64 << (libc::SIGURG - 1)];
    let blocked = raw(libc::SYS_rt_sigprocmask, &[libc::SIG_BLOCK as usize, signals.as_ptr() as usize, 0, 8]);
    blocked.map_err(AttackResult::stopped)?;
    let end = Instant::now() + WAIT_MAX;
    while Instant::now() < end {
        // Without waiting: while the kernel waits for a signal, it does not show it as blocked.
        let at_once = [0_u64; 2];
        if raw(libc::SYS_rt_sigtimedwait, &[signals.as_ptr() as usize, 0, at_once.as_ptr() as usize, 8]).is_ok() {
            return Ok(());
        }
        std::thread::sleep(NAP);
    }
    // The battery knows by this text that the attack was not observed.
    Err(AttackResult::stopped("not observed"))
}
