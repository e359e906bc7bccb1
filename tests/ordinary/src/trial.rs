//! A trial: one behaviour, in a new project, in one place.

use crate::behaviour::Behaviour;
use crate::glovebox;
use crate::place::{self, Folders, Place};
use crate::process;
use crate::project;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{env, fs, io};

/// Time that one part of a behaviour may take.
pub(crate) const PART_TIME_MAX: Duration = Duration::from_secs(30);

/// The result of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The behaviour succeeded.
    Pass,
    /// It did not, with the reason.
    Fail(String),
    /// The machine does not have this program, so nothing was tried.
    NotHere(String),
}

/// Tries a behaviour in a folder that does not exist yet, and removes the folder.
pub(crate) fn run(behaviour: &Behaviour, place: &Place, with_settings: bool, base: &Path) -> Verdict {
    if let Some(missing) = behaviour.needs.iter().find(|need| !is_here(need)) {
        return Verdict::NotHere(missing.clone());
    }
    let folders = Folders { base: base.to_owned() };
    let tried = prepare(behaviour, &folders).and_then(|prepared| match prepared {
        Ok(()) => in_place(behaviour, place, with_settings, &folders),
        failed => Ok(failed),
    });
    remove(base);
    match tried {
        Ok(Ok(())) => Verdict::Pass,
        Ok(Err(reason)) => Verdict::Fail(reason),
        Err(error) => Verdict::Fail(format!("could not be tried: {error}")),
    }
}

/// Creates the folders and the project.
fn prepare(behaviour: &Behaviour, folders: &Folders) -> io::Result<Result<(), String>> {
    for folder in [&folders.base, &folders.programs(), &folders.temporary(), &folders.home()] {
        fs::create_dir(folder)?;
    }
    for (number, part) in behaviour.parts.iter().enumerate() {
        fs::write(folders.programs().join(format!("{}.sh", number + 1)), part)?;
    }
    let script = project::find(&behaviour.project).unwrap_or_default();
    let mut command = outside(folders);
    command.args(["sh", "-euc", script]).current_dir(&folders.base).env("PROGRAMS", folders.programs());
    let ended = process::run(&mut command, &folders.base, PART_TIME_MAX)?;
    let failed = || format!("the project `{}`: {}", behaviour.project, ended.last_line().unwrap_or_default());
    Ok(if ended.is_success { Ok(()) } else { Err(failed()) })
}

/// Runs the parts in their place, and then the command outside of it.
fn in_place(
    behaviour: &Behaviour,
    place: &Place,
    with_settings: bool,
    folders: &Folders,
) -> io::Result<Result<(), String>> {
    let ran = match place {
        Place::Glovebox { program, tier } => glovebox::run(behaviour, (program, tier), with_settings, folders)?,
        Place::Command { words, takes_text } => below(behaviour, words, *takes_text, folders)?,
    };
    let Some(after) = behaviour.after.as_ref().filter(|_| ran.is_ok()) else { return Ok(ran) };
    let mut command = outside(folders);
    command.args(["sh", "-euc", after]).current_dir(folders.project());
    let ended = process::run(&mut command, &folders.base, PART_TIME_MAX)?;
    Ok(if ended.is_success { Ok(()) } else { Err(format!("afterwards in the project: `{after}` is not true")) })
}

/// Runs the parts under a command.
fn below(
    behaviour: &Behaviour,
    words: &[String],
    takes_text: bool,
    folders: &Folders,
) -> io::Result<Result<(), String>> {
    for part in 1..=behaviour.parts.len() {
        let mut command = outside(folders);
        command.args(place::words(words, takes_text, folders, part)).current_dir(folders.project());
        let ended = process::run(&mut command, &folders.base, PART_TIME_MAX)?;
        if ended.is_late {
            return Ok(Err(format!("took longer than {} s", PART_TIME_MAX.as_secs())));
        }
        if !ended.is_success {
            return Ok(Err(ended.last_line().unwrap_or_else(|| "failed without a word".to_owned())));
        }
    }
    Ok(Ok(()))
}

/// Returns an `env` command that runs outside of Glovebox's sandbox, with the folders of the trial and without the
/// user's git settings.
fn outside(folders: &Folders) -> Command {
    let mut command = Command::new("env");
    command.env("HOME", folders.home()).env("TMPDIR", folders.temporary());
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env("LANG", "C.UTF-8");
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "LC_ALL"] {
        command.env_remove(name);
    }
    command
}

/// Returns true if the machine has a program, and the module of Python after a colon.
fn is_here(need: &str) -> bool {
    let (program, module) = need.split_once(':').unwrap_or((need, ""));
    let folders = env::var_os("PATH").unwrap_or_default();
    let is_found = env::split_paths(&folders).any(|folder| folder.join(program).is_file());
    let imports = || Command::new(program).args(["-c", &format!("import {module}")]).output();
    is_found && (module.is_empty() || imports().is_ok_and(|output| output.status.success()))
}

/// Removes the folder of a trial, including folders in it that are not writable.
fn remove(base: &Path) {
    if fs::remove_dir_all(base).is_err() {
        let _changed = Command::new("chmod").args(["-R", "u+rwX"]).arg(base).output();
        let _removed = fs::remove_dir_all(base);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_no_pass() {
        let text = "# why: w\n# source: https://s\n# needs: a-program-of-nobody\ntrue\n";
        let behaviour = Behaviour::parse("g/n", text).unwrap();
        let verdict = run(&behaviour, &Place::plain(), false, Path::new("/absent"));
        assert_eq!(verdict, Verdict::NotHere("a-program-of-nobody".to_owned()));
        assert!(is_here("sh") && !is_here("python3:a_module_of_nobody"));
    }
}
