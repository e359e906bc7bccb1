//! The host's part of tier `bwrap`: the second setup, and the reason why `bwrap` ended.
//!
//! `bwrap` starts the helper a second time, inside the namespaces. The standard error of `bwrap` is a memfd that the
//! host reads.

use super::JailError;
use super::control::Control;
use glovebox_jail_helper::wire::Request;
use glovebox_names::visible;
use glovebox_record::Tier;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

/// Path of `bwrap`. The program is never looked up in `PATH` or in a workspace.
pub(super) const BWRAP: &str = "/usr/bin/bwrap";
/// Maximum number of bytes that are read from the errors of `bwrap`.
const BYTES_MAX: usize = 512;
const SETUID: u32 = 0o4000;

/// The state of `bwrap` in a jail.
#[derive(Debug, Default)]
pub(super) struct Bwrap {
    is_started: bool,
    /// The standard error of `bwrap`.
    errors: Option<OwnedFd>,
}

impl Bwrap {
    /// Sends the setup again, because the helper that `bwrap` starts inside needs it, and no argument may show it.
    pub(super) fn spawned(&mut self, control: &Control, setup: &Request, errors: Option<OwnedFd>) -> io::Result<()> {
        (self.is_started, self.errors) = (true, errors);
        match control.send(setup, &[]) {
            // The helper inside was not started. The next reply contains the reason.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            sent => sent,
        }
    }

    /// Returns the reason why `bwrap` created no namespaces. Returns `None` if it was not started.
    pub(super) fn explain(&self) -> Option<JailError> {
        let is_root = rustix::process::geteuid().is_root();
        let text = || explained(&read(self.errors.as_ref()), !is_root && is_setuid(Path::new(BWRAP)));
        let build = |text| JailError::Build { tier: Tier::Bwrap, step: format!("start {BWRAP}"), text };
        self.is_started.then(|| build(text()))
    }
}

/// Returns true if the program has the set-user-id bit.
pub(super) fn is_setuid(program: &Path) -> bool {
    fs::metadata(program).is_ok_and(|meta| meta.permissions().mode() & SETUID != 0)
}

fn read(errors: Option<&OwnedFd>) -> String {
    let mut bytes = [0; BYTES_MAX];
    // Read at an explicit offset, because the writer shares the descriptor and its offset.
    let copy = errors.and_then(|file| file.try_clone().ok());
    let read = copy.and_then(|file| File::from(file).read_at(&mut bytes, 0).ok()).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

fn explained(errors: &str, is_setuid: bool) -> String {
    let line = errors.lines().map(str::trim).find(|line| !line.is_empty());
    let answer = line.map_or("it ended and printed no message".to_owned(), |line| format!("`{}`", visible::line(line)));
    let mut text = format!("{answer}, expected version 0.7 or later with the permission to create user namespaces");
    if is_setuid {
        text.push_str(
            "; the file is set-user-id, and Glovebox starts it without these rights, \
             because a set-user-id `bwrap` cannot limit the size of `/tmp`",
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn its_errors_are_shown_in_one_safe_line() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"\nbwrap: setting up uid map: \x1b[31mPermission denied\nmore\n").unwrap();
        let read = read(Some(&file.try_clone().unwrap().into()));
        let text = explained(&read, false);
        assert!(text.starts_with("`bwrap: setting up uid map: ") && text.contains("Permission denied`, "), "{text}");
        assert!(!text.contains(['\n', '\x1b']) && !text.contains("set-user-id"), "{text}");
        assert!(explained("", false).starts_with("it ended and printed no message, expected version 0.7"));
        assert!(explained("", true).contains("set-user-id"));
    }

    #[test]
    fn only_a_set_user_id_program_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("bwrap");
        assert!(!is_setuid(&program));
        fs::write(&program, "").unwrap();
        for (mode, expected) in [(0o755, false), (0o4755, true), (0o2755, false)] {
            fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_setuid(&program), expected, "{mode:o}");
        }
    }
}
