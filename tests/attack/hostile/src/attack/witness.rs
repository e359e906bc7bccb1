//! Waits until the host has observed this process.
//!
//! An attack that is ready blocks a harmless signal. The host sees this in `/proc`, observes the process for as long as
//! it needs, and sends the signal. Then the attack continues. So the result does not depend on the speed of the attack
//! or of the host.

use super::AttackResult;
use super::raw::raw;
use std::time::{Duration, Instant};

/// Maximum time to wait. It is shorter than the wall time limit of a command.
const WAIT_MAX: Duration = Duration::from_secs(8);
const NAP: Duration = Duration::from_millis(2);

/// Waits until the host has observed this process. Returns the result of the attack as an error if the host has not.
pub(crate) fn wait() -> Result<(), AttackResult> {
    let signals = [1_u64 << (libc::SIGURG - 1)];
    let blocked = raw(libc::SYS_rt_sigprocmask, &[libc::SIG_BLOCK as usize, signals.as_ptr() as usize, 0, 8]);
    blocked.map_err(AttackResult::stopped)?;
    let end = Instant::now() + WAIT_MAX;
    while Instant::now() < end {
        // With a timeout of 0, because the kernel does not show a signal as blocked while a process waits for it.
        let at_once = [0_u64; 2];
        if raw(libc::SYS_rt_sigtimedwait, &[signals.as_ptr() as usize, 0, at_once.as_ptr() as usize, 8]).is_ok() {
            return Ok(());
        }
        std::thread::sleep(NAP);
    }
    // The battery recognises an attack that was not observed by this text.
    Err(AttackResult::stopped("not observed"))
}
