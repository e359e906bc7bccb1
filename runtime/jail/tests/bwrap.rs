//! Other programs in the place of the system's `bwrap`, mounted over it in a mount namespace of the test: one that is
//! set-user-id, and one that fails.
//!
//! Only root can do this. If the test does not run as root, or the machine does not support the tier, it prints `not
//! run:`.

#![cfg(target_os = "linux")]

use crate::not_run;
use glovebox_jail::jail::probe_tier;
use glovebox_record::Tier;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

const BWRAP: &str = "/usr/bin/bwrap";
/// Environment variable that is set in the process with the mounted `bwrap`.
const BEHIND: &str = "BWRAP_BEHIND";
const NOBODY: &str = "65534";
const SETUID: u32 = 0o4000;
/// Mounts the first program over the system's `bwrap`, and runs the remaining arguments as a command.
const MOUNT: &str = r#"mount --make-rprivate / && mount --bind "$1" /usr/bin/bwrap && shift && exec "$@""#;

fn can_try() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    let missing =
        if is_root { probe_tier(Tier::Bwrap).err().map(|error| error.reason) } else { Some("not root".into()) };
    if let Some(reason) = &missing {
        not_run::not_run("another bwrap over the system's", reason);
    }
    missing.is_none()
}

/// Runs the test of this name as an ordinary user with this program as `bwrap`, and checks that it passes.
#[track_caller]
fn behind(program: &[u8], mode: u32, test: &str) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let lay = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    fs::write(at("bwrap"), program).unwrap();
    fs::copy(std::env::current_exe().unwrap(), at("test")).unwrap();
    fs::create_dir(at("tmp")).unwrap();
    for (path, mode) in [(folder.path(), 0o755), (&at("bwrap"), mode), (&at("test"), 0o755), (&at("tmp"), 0o1777)] {
        lay(path, mode);
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", MOUNT, "sh"]).arg(at("bwrap"));
    command.args(["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]).arg(at("test"));
    command.args(["--exact", test, "--nocapture"]).env(BEHIND, "1").env("TMPDIR", at("tmp")).current_dir(at("tmp"));
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn a_set_user_id_bwrap_makes_the_same_walls() {
    if std::env::var_os(BEHIND).is_some() {
        let mode = fs::metadata(BWRAP).unwrap().mode();
        assert!(mode & SETUID != 0 && !rustix::process::geteuid().is_root(), "{mode:o}");
        assert_eq!(probe_tier(Tier::Bwrap), Ok(()));
    } else if can_try() {
        behind(&fs::read(BWRAP).unwrap(), 0o755 | SETUID, "bwrap::a_set_user_id_bwrap_makes_the_same_walls");
    }
}

#[test]
fn what_a_bwrap_complains_of_is_in_the_reason() {
    if std::env::var_os(BEHIND).is_some() {
        let reason = probe_tier(Tier::Bwrap).unwrap_err().reason;
        let expected = "start /usr/bin/bwrap: `bwrap: setting up uid map: Permission denied`, expected version 0.7";
        assert!(reason.contains(expected), "{reason}");
    } else if can_try() {
        let program = b"#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n";
        behind(program, 0o755, "bwrap::what_a_bwrap_complains_of_is_in_the_reason");
    }
}
