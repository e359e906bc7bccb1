//! Which file a command starts: one of the fixed `PATH`, or an absolute one outside the workspace.
//!
//! A file the stage could have written is never started as a program, whatever it is called. Knows nothing of arguments'
//! meaning.

use super::{ExecError, ExecPolicy, Program};
use glovebox_jail::wire;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A program that was found, with its arguments.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) file: PathBuf,
    pub(super) arguments: Vec<String>,
}

/// Finds the program. `inside` are folders from which nothing is started, as the system resolves them.
pub(super) fn resolve(policy: &ExecPolicy, program: &Program, inside: &[PathBuf]) -> Result<Resolved, ExecError> {
    for folder in &policy.path {
        if !folder.is_absolute() || is_inside(folder, inside) {
            let text = format!(
                "`{}` cannot be in the fixed PATH, expected an absolute folder outside the workspace",
                folder.display()
            );
            return Err(ExecError::Invalid(text));
        }
    }
    let (file, arguments) = match program {
        Program::Shell(text) => (PathBuf::from("/bin/sh"), vec!["-c".to_owned(), text.clone()]),
        Program::Argv(argv) => {
            let (name, arguments) =
                argv.split_first().ok_or_else(|| ExecError::Invalid("the command is empty".to_owned()))?;
            (find(policy, name, inside)?, arguments.to_vec())
        }
    };
    if arguments.iter().any(|argument| argument.contains('\0')) {
        return Err(ExecError::Invalid("an argument contains a NUL byte".to_owned()));
    }
    Ok(Resolved { file, arguments })
}

/// Says what a jail is to start: names are looked up inside it. Nothing is started from where `is_writable`.
pub(crate) fn asked(
    policy: &ExecPolicy,
    program: &Program,
    is_writable: &dyn Fn(&Path) -> bool,
) -> Result<(wire::Program, Vec<String>), ExecError> {
    let (program, arguments) = match program {
        Program::Shell(text) => (wire::Program::Path("/bin/sh".to_owned()), vec!["-c".to_owned(), text.clone()]),
        Program::Argv(argv) => {
            let (name, arguments) =
                argv.split_first().ok_or_else(|| ExecError::Invalid("the command is empty".to_owned()))?;
            (named(policy, name, is_writable)?, arguments.to_vec())
        }
    };
    if arguments.iter().any(|argument| argument.contains('\0')) {
        return Err(ExecError::Invalid("an argument contains a NUL byte".to_owned()));
    }
    Ok((program, arguments))
}

fn named(policy: &ExecPolicy, name: &str, is_writable: &dyn Fn(&Path) -> bool) -> Result<wire::Program, ExecError> {
    if name.is_empty() || name.contains('\0') || name == "." || name == ".." {
        return Err(ExecError::Invalid("the command names no program".to_owned()));
    }
    if Path::new(name).is_absolute() {
        if is_writable(Path::new(name)) {
            let text = format!("`{name}` lies in a folder the stage can write, from which no program is started");
            return Err(ExecError::Invalid(text));
        }
        return Ok(wire::Program::Path(name.to_owned()));
    }
    if name.contains('/') {
        let text = format!(
            "`{name}` is relative, expected a name in the fixed PATH or an absolute path outside the workspace"
        );
        return Err(ExecError::Invalid(text));
    }
    let folders = policy.path.iter().map(|folder| folder.to_string_lossy().into_owned()).collect();
    Ok(wire::Program::Search { name: name.to_owned(), folders })
}

fn find(policy: &ExecPolicy, name: &str, inside: &[PathBuf]) -> Result<PathBuf, ExecError> {
    let not_found = || ExecError::NotFound(name.escape_default().to_string());
    if name.is_empty() || name.contains('\0') || name == "." || name == ".." {
        return Err(ExecError::Invalid("the command names no program".to_owned()));
    }
    let path = Path::new(name);
    if path.is_absolute() {
        if is_inside(path, inside) {
            return Err(ExecError::Invalid(format!(
                "`{name}` lies in the workspace, from which no program is started"
            )));
        }
        return if is_program(path) { Ok(path.to_owned()) } else { Err(not_found()) };
    }
    if name.contains('/') {
        let text = format!(
            "`{name}` is relative, expected a name in the fixed PATH or an absolute path outside the workspace"
        );
        return Err(ExecError::Invalid(text));
    }
    let candidates = policy.path.iter().map(|folder| folder.join(name));
    candidates.into_iter().find(|file| is_program(file) && !is_inside(file, inside)).ok_or_else(not_found)
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// True when the path, or what it is a link to, lies in one of the folders.
fn is_inside(path: &Path, inside: &[PathBuf]) -> bool {
    let real = std::fs::canonicalize(path);
    inside.iter().any(|folder| path.starts_with(folder) || real.as_ref().is_ok_and(|real| real.starts_with(folder)))
}
