//! Which file a command starts: one of the fixed `PATH`, or an absolute one outside the workspace.
//!
//! A file that the stage could have written is never started as a program. This module does not interpret arguments.

use super::ExecPolicy;
use crate::exec::{ExecError, Program};
use glovebox_jail::wire;
use std::path::Path;

/// Returns what a jail must start; it looks names up inside. A path for which `is_writable` is refused.
pub(super) fn resolve(
    policy: &ExecPolicy,
    program: &Program,
    is_writable: &dyn Fn(&Path) -> bool,
) -> Result<(wire::Program, Vec<String>), ExecError> {
    let (program, arguments) = match program {
        Program::Shell(text) => (wire::Program::Path("/bin/sh".into()), vec!["-c".to_owned(), text.clone()]),
        Program::Argv(argv) => {
            let (name, arguments) =
                argv.split_first().ok_or_else(|| ExecError::Invalid("the command is empty".to_owned()))?;
            (lookup(policy, Path::new(name), is_writable)?, arguments.to_vec())
        }
    };
    if arguments.iter().any(|argument| argument.contains('\0')) {
        return Err(ExecError::Invalid("an argument contains a NUL byte".to_owned()));
    }
    Ok((program, arguments))
}

/// Decides about a program by its name, or by its path.
fn lookup(
    policy: &ExecPolicy,
    program: &Path,
    is_writable: &dyn Fn(&Path) -> bool,
) -> Result<wire::Program, ExecError> {
    let name = program.to_str().unwrap_or_default();
    if name.is_empty() || name.contains('\0') || name == "." || name == ".." {
        return Err(ExecError::Invalid("the command does not name a program".to_owned()));
    }
    if program.is_absolute() {
        if is_writable(program) {
            let text =
                format!("`{name}` is in a folder that the stage can write; expected a program in a read-only folder");
            return Err(ExecError::Invalid(text));
        }
        return Ok(wire::Program::Path(program.to_owned()));
    }
    if name.contains('/') {
        let text = format!(
            "`{name}` is relative, expected a name in the fixed PATH or an absolute path outside the workspace"
        );
        return Err(ExecError::Invalid(text));
    }
    Ok(wire::Program::Search { name: name.to_owned(), folders: policy.path.to_vec() })
}
