//! Provides `/usr/bin/bwrap` for the tests of tier `bwrap` on a machine that does not have it.
//!
//! The sandbox accepts only the distribution's program at that path. So the package is unpacked below `target/`, and commands that
//! need it run in a mount namespace with that folder mounted over `/usr/bin`. The machine's own packages and files are not changed.

use crate::process::at;
use crate::{Step, debian, repository};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = "/usr/bin/bwrap";
/// The folder of the program.
const PROGRAMS: &str = "/usr/bin";
/// Script that mounts an overlay of the folder `$1` on the folder `$2`, and executes the remaining arguments.
const MOUNT: &str = r#"mount -t overlay overlay -o "ro,lowerdir=$1:$2" "$2" && shift 2 && exec "$@""#;

/// Changes a command so that it finds [`PROGRAM`], unless the system has it. If that is not possible, the command runs unchanged, and
/// each test of the tier reports that it was not run.
pub(crate) fn beside(command: Command) -> Command {
    if Path::new(PROGRAM).exists() {
        return command;
    }
    match unpacked().and_then(|folder| tried(&folder).map(|()| folder)) {
        Ok(folder) => behind(&folder, PROGRAMS, &command),
        Err(reason) => {
            eprintln!("no `{PROGRAM}`: {reason}\nhelp: install bubblewrap (Debian: `apt install bubblewrap`)");
            command
        }
    }
}

/// Changes a command so that it finds the programs of several packages, and their libraries, and has a `/tmp` of its own.
///
/// # Errors
/// The packages cannot be unpacked or mounted. The command must not run then: some sandboxes create folders such as `/tmp/.git`, which
/// would change what every other program finds above its folders for temporary files.
pub(crate) fn beside_packages(command: &Command, packages: &[&str]) -> Step<Command> {
    let folder = repository().join("target/peers/debian");
    let unpacked = || -> Step<()> {
        let mirror = debian::Mirror::open(&folder.join("apt"), &release()?)?;
        packages.iter().try_for_each(|package| mirror.unpack(package, &folder, |_| true))
    };
    let present = if folder.join("usr/bin/bwrap").exists() { Ok(()) } else { unpacked() };
    present.and_then(|()| tried(&folder.join("usr/bin")))?;
    let mut apart = Command::new("sh");
    apart.args(["-c", "mount -t tmpfs -o mode=1777 tmpfs /tmp && exec \"$@\"", "sh"]);
    apart.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        apart.current_dir(folder);
    }
    Ok(behind(&folder.join("usr"), "/usr", &apart))
}

/// Returns the folder with the program. Unpacks it if it is not there yet.
fn unpacked() -> Step<PathBuf> {
    let folder = repository().join("target/bubblewrap");
    let programs = folder.join("usr/bin");
    if !programs.join("bwrap").exists() {
        let mirror = debian::Mirror::open(&folder.join("apt"), &release()?)?;
        mirror.unpack("bubblewrap", &folder, |_| true)?;
    }
    Ok(programs)
}

/// Returns the code name of this machine's Debian release, for whose libraries the program is built.
fn release() -> Step<String> {
    let file = Path::new("/etc/os-release");
    let text = at(file, fs::read_to_string(file))?;
    let name = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    name.map(|name| name.trim_matches('"').to_owned()).ok_or_else(|| "this machine does not run Debian".to_owned())
}

/// Checks that [`PROGRAM`] starts in a mount namespace in which this folder is mounted over `/usr/bin`.
fn tried(folder: &Path) -> Step<()> {
    let own = Path::new("/proc/self");
    if at(own, fs::metadata(own))?.uid() != 0 {
        return Err("only root can mount its folder over `/usr/bin`".to_owned());
    }
    let mut version = Command::new(PROGRAM);
    version.arg("--version");
    let ended =
        behind(folder, PROGRAMS, &version).output().map_err(|error| format!("cannot start unshare: {error}"))?;
    if ended.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&ended.stderr).trim().to_owned()) }
}

/// Returns a command that runs `command` in a mount namespace with the folder over the system's.
fn behind(folder: &Path, system: &str, command: &Command) -> Command {
    let mut outer = Command::new("unshare");
    outer.args(["--mount", "--propagation", "private", "sh", "-c", MOUNT, "sh"]).arg(folder).arg(system);
    outer.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        outer.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer
}
