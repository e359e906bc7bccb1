//! Why `bwrap` ended: what it wrote into the file in memory that is its standard error.

use glovebox_names::visible;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

/// Where `bwrap` is looked for; never in a PATH, never in a workspace.
pub(super) const BWRAP: &str = "/usr/bin/bwrap";
/// Longest complaint that is passed on.
const BYTES_MAX: usize = 512;
const SETUID: u32 = 0o4000;

/// Says why it made no namespaces.
pub(super) fn explain(complaint: Option<OwnedFd>) -> String {
    let is_root = rustix::process::geteuid().is_root();
    told(&read(complaint), !is_root && is_setuid(Path::new(BWRAP)))
}

/// True for a program that gives its user the rights of its owner.
pub(super) fn is_setuid(program: &Path) -> bool {
    fs::metadata(program).is_ok_and(|meta| meta.permissions().mode() & SETUID != 0)
}

fn read(complaint: Option<OwnedFd>) -> String {
    let mut bytes = [0; BYTES_MAX];
    // At an offset of its own: the descriptor is shared with who writes.
    let read = complaint.and_then(|file| File::from(file).read_at(&mut bytes, 0).ok()).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

fn told(complaint: &str, is_setuid: bool) -> String {
    let line = complaint.lines().map(str::trim).find(|line| !line.is_empty());
    let answer = line.map_or("it ended without a word".to_owned(), |line| format!("`{}`", visible::line(line)));
    let mut text = format!("{answer}, expected version 0.7 or later that may make user namespaces");
    if is_setuid {
        text.push_str(
            "; the file is set-user-id, and Glovebox starts it without those rights: with them it cannot bound `/tmp`",
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_it_wrote_is_told_in_one_line_that_deceives_nobody() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"\nbwrap: setting up uid map: \x1b[31mPermission denied\nmore\n").unwrap();
        let read = read(Some(file.try_clone().unwrap().into()));
        let text = told(&read, false);
        assert!(text.starts_with("`bwrap: setting up uid map: ") && text.contains("Permission denied`, "), "{text}");
        assert!(!text.contains(['\n', '\x1b']) && !text.contains("set-user-id"), "{text}");
        assert!(told("", false).starts_with("it ended without a word, expected version 0.7"));
        assert!(told("", true).contains("set-user-id"));
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
