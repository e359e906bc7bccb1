//! Finds the program of a command inside the sandbox.
//!
//! The lookup happens inside the sandbox, so a path has the same meaning as for the command. A name is never looked up
//! below the workspace: a file that an earlier stage wrote must not become the `go` or `sh` of a later stage.
#![forbid(unsafe_code)]

use crate::fault::{At, refused};
use glovebox_jail_helper::wire::{Command, Failure, Program, Targets};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A program with its arguments and environment, in the form that the system call takes.
#[derive(Debug)]
pub(crate) struct Start {
    /// The program.
    pub(crate) image: Image,
    /// The name of the program and its arguments.
    pub(crate) arguments: Vec<CString>,
    /// The whole environment.
    pub(crate) environment: Vec<CString>,
}

/// The program of a command.
#[derive(Debug)]
pub(crate) enum Image {
    /// The file at this path.
    File(CString),
    /// The self-test of the sandbox in the helper.
    SelfTest(Targets),
}

/// Finds the program of a command and converts its arguments.
pub(crate) fn prepare(command: &Command, workspace: &Path) -> Result<Start, Failure> {
    let (image, name) = match &command.program {
        Program::Path(path) if path.is_absolute() => (Image::File(c_string(path.as_os_str())?), path.as_os_str()),
        Program::Path(path) => {
            return Err(refused("find program", format!("`{}` is not absolute", path.display())));
        }
        Program::Search { name, folders } => {
            (Image::File(c_string(search(name, folders, workspace)?.as_os_str())?), OsStr::new(name))
        }
        Program::SelfTest(targets) => (Image::SelfTest(targets.clone()), OsStr::new("")),
    };
    let mut arguments = vec![c_string(name)?];
    for argument in &command.arguments {
        arguments.push(c_string(OsStr::new(argument))?);
    }
    let mut environment = Vec::with_capacity(command.env.len());
    for (name, value) in &command.env {
        if name.is_empty() || name.contains('=') {
            return Err(refused("build the environment", format!("`{name}` is not the name of a variable")));
        }
        environment.push(c_string(OsStr::new(&format!("{name}={value}")))?);
    }
    Ok(Start { image, arguments, environment })
}

fn search(name: &str, folders: &[PathBuf], workspace: &Path) -> Result<PathBuf, Failure> {
    if name.is_empty() || name.contains('/') {
        return Err(refused("find program", format!("`{name}` is not the name of a program")));
    }
    let workspace = fs::canonicalize(workspace).unwrap_or_else(|_| workspace.into());
    for folder in folders.iter().filter(|folder| folder.is_absolute()) {
        let path = folder.join(name);
        let is_outside = |path: &Path| !path.starts_with(&workspace);
        // The folder is checked too: through a link in the workspace to a program outside, a stage would still choose
        // the program.
        let allowed = fs::canonicalize(folder).is_ok_and(|folder| is_outside(&folder))
            && fs::canonicalize(&path).is_ok_and(|file| is_outside(&file));
        let runs = || accessat(CWD, &path, Access::EXEC_OK, AtFlags::EACCESS).is_ok() && path.is_file();
        if allowed && runs() {
            return Ok(path);
        }
    }
    Err::<PathBuf, _>(Errno::NOENT)
        .at("find program")
        .map_err(|failure| Failure { text: format!("no program `{name}` in {}", listed(folders)), ..failure })
}

fn listed(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn c_string(value: &OsStr) -> Result<CString, Failure> {
    let refuse =
        |_| refused("read the command", format!("`{}` contains a NUL byte", value.to_string_lossy().escape_debug()));
    CString::new(value.as_bytes()).map_err(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn command(program: Program) -> Command {
        Command {
            program,
            arguments: vec!["-c".to_owned()],
            env: vec![("A".to_owned(), "b=c".to_owned())],
            cwd: String::new(),
        }
    }

    fn program(folder: &Path, name: &str, mode: u32) {
        fs::create_dir_all(folder).expect("a folder");
        fs::write(folder.join(name), "#!/bin/sh\n").expect("a file");
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).expect("a mode");
    }

    #[test]
    fn names_are_found_in_order_and_never_below_the_workspace() {
        let scratch = tempfile::tempdir().expect("a folder");
        let root = scratch.path().canonicalize().expect("a path");
        let (workspace, first, second) = (root.join("workspace"), root.join("first"), root.join("second"));
        program(&workspace, "go", 0o755);
        program(&first, "go", 0o644);
        program(&second, "go", 0o755);
        fs::create_dir(first.join("sh")).expect("a folder");
        symlink(workspace.join("go"), first.join("linked")).expect("a link");
        symlink(&workspace, root.join("sneaky")).expect("a link");
        let folders = [workspace.clone(), root.join("sneaky"), first, second.clone()];
        let find = |name: &str| search(name, &folders, &workspace);
        assert_eq!(find("go").expect("found"), second.join("go"));
        for name in ["linked", "sh", "none", "../second/go", ""] {
            assert_eq!(find(name).expect_err("not found").step, "find program", "{name}");
        }
        assert_eq!(find("none").expect_err("not found").errno, Errno::NOENT.raw_os_error());
    }

    #[test]
    fn arguments_are_passed_unchanged_or_refused() {
        let start = prepare(&command(Program::Path("/bin/sh".into())), Path::new("/workspace")).expect("prepared");
        assert_eq!(start.arguments, [c"/bin/sh".to_owned(), c"-c".to_owned()]);
        assert_eq!(start.environment, [c"A=b=c".to_owned()]);
        for path in ["sh", "./sh", "/bin/s\0h"] {
            assert!(prepare(&command(Program::Path(path.into())), Path::new("/workspace")).is_err(), "{path}");
        }
        let mut forged = command(Program::Path("/bin/sh".into()));
        forged.env = vec![("LD_PRELOAD=x".to_owned(), String::new())];
        assert!(prepare(&forged, Path::new("/workspace")).is_err());
    }
}
