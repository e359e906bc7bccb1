//! A filter program that lets renames wait for the jail's first process.
#![forbid(unsafe_code)]

use super::lookup::{ARCHITECTURE, NUMBER, OWN, answer, jump, load};
use seccompiler::BpfProgram;

/// A bit in the flags of `renameat2` that the kernel ignores, because it uses only the lower half of the argument. The
/// filter allows a call with this bit at once, instead of notifying the jail's first process. A command that sets the bit
/// itself gets the kernel's usual rename.
pub(crate) const RENAME_MARK: u64 = 1 << 32;
/// Offset of the upper half of the fifth argument in `seccomp_data`.
#[cfg(target_endian = "little")]
const FLAGS_UPPER: u32 = 16 + 4 * 8 + 4;
#[cfg(target_endian = "big")]
const FLAGS_UPPER: u32 = 16 + 4 * 8;

/// Compiles the program.
pub(crate) fn renames() -> BpfProgram {
    #[cfg(target_arch = "x86_64")]
    let old = [libc::SYS_rename, libc::SYS_renameat];
    #[cfg(not(target_arch = "x86_64"))]
    let old = [libc::SYS_renameat];
    let allow = || answer(libc::SECCOMP_RET_ALLOW);
    let wait = || answer(libc::SECCOMP_RET_USER_NOTIF);
    let mut program = vec![load(ARCHITECTURE), jump(libc::BPF_JEQ, OWN, 1, 0), allow(), load(NUMBER)];
    for number in old {
        program.extend([jump(libc::BPF_JEQ, number as u32, 0, 1), wait()]);
    }
    let mark = (RENAME_MARK >> 32) as u32;
    program.extend([
        jump(libc::BPF_JEQ, libc::SYS_renameat2 as u32, 1, 0),
        allow(),
        load(FLAGS_UPPER),
        jump(libc::BPF_JEQ, mark, 0, 1),
        allow(),
        wait(),
    ]);
    program
}
