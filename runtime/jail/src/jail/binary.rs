//! The embedded helper as a sealed memfd, created once per process.
//!
//! The seal protects the program that builds the sandbox: even a process that obtains the descriptor cannot change the
//! file.

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

#[cfg(target_os = "linux")]
const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/glovebox-jail"));
#[cfg(not(target_os = "linux"))]
const BYTES: &[u8] = &[];
/// The BLAKE3 hash of `BYTES`, computed when Glovebox was built.
#[cfg(target_os = "linux")]
const DIGEST: &str = include_str!(concat!(env!("OUT_DIR"), "/glovebox-jail.blake3"));
#[cfg(not(target_os = "linux"))]
const DIGEST: &str = "";

static PROGRAM: OnceLock<OwnedFd> = OnceLock::new();

/// Returns the file that contains the helper.
pub(super) fn program() -> io::Result<&'static OwnedFd> {
    if let Some(program) = PROGRAM.get() {
        return Ok(program);
    }
    let made = sealed()?;
    // If two threads create the file at once, one file is kept and the other one is closed.
    Ok(PROGRAM.get_or_init(|| made))
}

/// Returns the bytes of the helper. If they are executed under the name `subject`, they act as the command `subject`.
pub(crate) fn program_bytes() -> &'static [u8] {
    BYTES
}

/// Returns the BLAKE3 hash of the helper as hexadecimal digits. A probe result is valid for one helper only.
pub(super) fn digest() -> &'static str {
    DIGEST
}

fn sealed() -> io::Result<OwnedFd> {
    if BYTES.is_empty() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "Glovebox has no jail helper for this system"));
    }
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let held = match rustix::fs::memfd_create("glovebox-jail", flags | MemfdFlags::EXEC) {
        // Kernels before 6.3 do not know the flag. There, every memfd may be executed.
        Err(Errno::INVAL) => rustix::fs::memfd_create("glovebox-jail", flags),
        other => other,
    };
    let held = held.map_err(|error| match error {
        Errno::ACCESS => io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the kernel does not execute memory files; set the sysctl `vm.memfd_noexec` to 0 or 1",
        ),
        other => other.into(),
    })?;
    let mut file = File::from(held);
    file.write_all(BYTES)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_program() {
        assert_eq!(digest(), blake3::hash(BYTES).to_hex().as_str());
    }

    #[test]
    fn nobody_can_change_the_program() {
        let mut file = File::from(program().unwrap().try_clone().unwrap());
        assert!(file.write_all(b"x").is_err() && file.set_len(0).is_err());
        assert_eq!(file.metadata().unwrap().len(), BYTES.len() as u64);
        assert!(rustix::fs::fcntl_add_seals(&file, SealFlags::FUTURE_WRITE).is_err());
    }
}
