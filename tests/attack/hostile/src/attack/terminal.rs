//! Attacks through terminals: injecting keys into the input of the process that started the sandbox.

use super::raw::{self, Errno, raw};
use super::{AttackResult, word};
use std::fs;
use std::path::Path;

const PASTE: usize = 0x5412; // TIOCSTI
const CONSOLE: usize = 0x541c; // TIOCLINUX

/// Injects a key into the process's own terminal, by the plain request number or with additional high bits that the
/// kernel ignores.
pub(crate) fn push(arguments: &[String]) -> AttackResult {
    let request = if word(arguments, 0) == "console" { CONSOLE } else { PASTE };
    let request = if word(arguments, 1) == "high" { request | 0x1_0000_0000 } else { request };
    let push = || -> Result<usize, Errno> {
        let (_leader, terminal) = pair()?;
        let key = [b'x'];
        raw(libc::SYS_ioctl, &[terminal, request, key.as_ptr() as usize])
    };
    match push() {
        Ok(_) => AttackResult::worked("pushed"),
        // Another error comes from the terminal, so the filter allowed the call.
        Err(error) if error == Errno::PERM => AttackResult::stopped(error),
        Err(error) => AttackResult::worked(format!("reached: {error}")),
    }
}

/// Opens the controlling terminal or a console.
pub(crate) fn open(_: &[String]) -> AttackResult {
    for path in ["/dev/tty", "/dev/console", "/dev/tty0", "/dev/tty1", "/dev/vcs"] {
        if fs::OpenOptions::new().read(true).write(true).open(path).is_ok() {
            return AttackResult::worked(path);
        }
    }
    AttackResult::from_result(fs::OpenOptions::new().write(true).open("/dev/tty"))
}

/// Opens a pseudo terminal. Returns its leader and the terminal.
pub(crate) fn pair() -> Result<(usize, usize), Errno> {
    let leader = raw::open(Path::new("/dev/ptmx"), libc::O_RDWR | libc::O_NOCTTY, 0)
        .or_else(|_| raw::open(Path::new("/dev/pts/ptmx"), libc::O_RDWR | libc::O_NOCTTY, 0))?;
    let (unlocked, mut number) = ([0_i32], [0_i32]);
    raw(libc::SYS_ioctl, &[leader, libc::TIOCSPTLCK as usize, unlocked.as_ptr() as usize])?;
    raw(libc::SYS_ioctl, &[leader, libc::TIOCGPTN as usize, number.as_mut_ptr() as usize])?;
    let terminal = raw::open(Path::new(&format!("/dev/pts/{}", number[0])), libc::O_RDWR | libc::O_NOCTTY, 0)?;
    Ok((leader, terminal))
}
