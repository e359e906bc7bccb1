//! An ordinary user who runs built programs: the sandbox must be secure and usable not only for root.
//!
//! Programs are copied to a folder that everyone can read, and get a home folder of their own and no variables of the
//! current user. If the current user is root, they run as `nobody`.

use crate::process::{at, capture, cargo};
use crate::{Step, repository};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Id of a user and a group that own no files.
const NOBODY: u32 = 65534;

/// A user with copies of built programs. The folder is removed on drop.
pub(crate) struct OrdinaryUser {
    folder: PathBuf,
    is_root: bool,
}

impl OrdinaryUser {
    /// Creates the user's folders, and copies programs of `target/debug` to them.
    pub(crate) fn new(name: &str, programs: &[&str]) -> Step<Self> {
        Self::new_in(&std::env::temp_dir(), name, programs)
    }

    /// As [`OrdinaryUser::new`], with the user's folders below a folder.
    pub(crate) fn new_in(folder: &Path, name: &str, programs: &[&str]) -> Step<Self> {
        let folder = folder.join(format!("glovebox-{name}-{}", std::process::id()));
        let is_root = at(Path::new("/proc/self"), fs::metadata("/proc/self"))?.uid() == 0;
        let user = Self { folder, is_root };
        let home = user.home();
        at(&home, fs::create_dir_all(&home))?;
        let built = target_directory()?.join("debug");
        for program in programs {
            let (source, copy) = (built.join(program), user.folder.join(program));
            at(&source, fs::copy(&source, &copy))?;
            at(&copy, fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)))?;
        }
        for path in [&user.folder, &home] {
            at(path, fs::set_permissions(path, fs::Permissions::from_mode(0o755)))?;
        }
        if is_root {
            at(&home, chown(&home, Some(NOBODY), Some(NOBODY)))?;
        }
        Ok(user)
    }

    /// Returns the folder with the programs.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    /// Returns the command of a copied program, as this user.
    pub(crate) fn command(&self, program: &str) -> Command {
        let home = self.home();
        let mut command = Command::new("env");
        command.arg("-i").arg(format!("HOME={}", home.display())).arg("PATH=/usr/local/bin:/usr/bin:/bin");
        if self.is_root {
            let id = NOBODY.to_string();
            command.args(["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"]);
        }
        command.arg(self.folder.join(program)).current_dir(&home);
        command
    }
}

impl Drop for OrdinaryUser {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("warning: `{}` is left: {error}", self.folder.display());
        }
    }
}

/// Returns the folder where cargo puts its builds.
fn target_directory() -> Step<PathBuf> {
    let metadata = capture(cargo(&repository()).args(["metadata", "--format-version", "1", "--no-deps", "--offline"]))?;
    let folder = metadata.split("\"target_directory\":\"").nth(1).and_then(|rest| rest.split('"').next());
    folder.map(PathBuf::from).ok_or_else(|| "`cargo metadata` names no target directory".to_owned())
}
