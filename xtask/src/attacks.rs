//! Runs the attacks as an ordinary user in every tier, because the sandbox must not be secure for root only.
//!
//! The tests run the attacks as the current user. If that is root, the same binaries run here as `nobody`, from a folder that everyone
//! can read and with a home folder of their own.

use crate::Step;
use crate::process::{at, capture, cargo, demand};
use crate::{bubblewrap, repository};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Id of a user and a group that own no files.
const NOBODY: u32 = 65534;
/// Tiers of the sandbox.
const TIERS: [&str; 3] = ["full", "bwrap", "landlock"];

/// Runs `glovebox doctor --attack` with the binaries that the tests built.
pub(crate) fn as_ordinary_user() -> Step<()> {
    let folder = std::env::temp_dir().join(format!("glovebox-gate-{}", std::process::id()));
    let ran = run_in(&folder);
    if folder.exists() {
        at(&folder, fs::remove_dir_all(&folder))?;
    }
    ran
}

fn run_in(folder: &Path) -> Step<()> {
    let (binary, home) = (folder.join("glovebox"), folder.join("home"));
    at(&home, fs::create_dir_all(&home))?;
    let (built, battery) = (target_directory()?.join("debug"), folder.join("glovebox-attack"));
    for program in [&binary, &battery] {
        let source = program.file_name().map(|name| built.join(name)).unwrap_or_default();
        at(&source, fs::copy(&source, program))?;
    }
    for path in [folder, &home, &binary, &battery] {
        at(path, fs::set_permissions(path, fs::Permissions::from_mode(0o755)))?;
    }
    let is_root = at(Path::new("/proc/self"), fs::metadata("/proc/self"))?.uid() == 0;
    if is_root {
        at(&home, chown(&home, Some(NOBODY), Some(NOBODY)))?;
    }
    for tier in TIERS {
        eprintln!("attacks in tier {tier}");
        let mut command = Command::new("env");
        command.arg("-i").arg(format!("HOME={}", home.display())).arg("PATH=/usr/local/bin:/usr/bin:/bin");
        if is_root {
            let id = NOBODY.to_string();
            command.args(["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"]);
        }
        command.arg(&binary).args(["doctor", "--attack", "--tier", tier]).current_dir(&home);
        demand(&mut bubblewrap::beside(command))?;
    }
    Ok(())
}

/// Returns the folder where cargo puts its builds.
fn target_directory() -> Step<PathBuf> {
    let metadata = capture(cargo(&repository()).args(["metadata", "--format-version", "1", "--no-deps", "--offline"]))?;
    let folder = metadata.split("\"target_directory\":\"").nth(1).and_then(|rest| rest.split('"').next());
    folder.map(PathBuf::from).ok_or_else(|| "`cargo metadata` names no target directory".to_owned())
}
