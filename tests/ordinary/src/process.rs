//! Starts a program with a time limit, and keeps what it prints in files.

use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Interval at which a program is polled.
const PAUSE: Duration = Duration::from_millis(5);
/// Maximum number of characters of a reason.
const REASON_CHARS_MAX: usize = 160;

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// True if it succeeded within its time.
    pub(crate) is_success: bool,
    /// True if it was killed, because it took longer than the limit.
    pub(crate) is_late: bool,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Ended {
    /// Returns the last line that the program printed on standard error, else on standard output.
    pub(crate) fn last_line(&self) -> Option<String> {
        last_line(&self.stderr).or_else(|| last_line(&self.stdout))
    }
}

/// Runs a program in a process group of its own, and kills the group afterwards. `folder` gets its output.
pub(crate) fn run(command: &mut Command, folder: &Path, limit: Duration) -> io::Result<Ended> {
    let (stdout, stderr) = (folder.join("stdout"), folder.join("stderr"));
    command.stdin(Stdio::null()).stdout(File::create(&stdout)?).stderr(File::create(&stderr)?);
    let mut child = command.process_group(0).spawn()?;
    let (is_success, is_late) = wait(&mut child, limit)?;
    Ok(Ended { is_success, is_late, stdout, stderr })
}

fn wait(child: &mut Child, limit: Duration) -> io::Result<(bool, bool)> {
    let (begin, group) = (Instant::now(), Pid::from_child(child));
    loop {
        let status = child.try_wait()?;
        let is_late = status.is_none() && begin.elapsed() > limit;
        if status.is_none() && !is_late {
            std::thread::sleep(PAUSE);
            continue;
        }
        // What the program left in the background must not disturb the next one. The group may be empty.
        let _killed = kill_process_group(group, Signal::KILL);
        let status = status.map_or_else(|| child.wait(), Ok)?;
        return Ok((status.success() && !is_late, is_late));
    }
}

/// Returns the last informative line of a file, without control characters.
pub(crate) fn last_line(file: &Path) -> Option<String> {
    let bytes = std::fs::read(file).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    // Stack frames, and notes with advice.
    let is_noise = |line: &str| line.is_empty() || line.starts_with("at ") || line.starts_with("note: ");
    let line = text.lines().rev().map(str::trim).find(|line| !is_noise(line))?;
    Some(line.chars().filter(|character| !character.is_control()).take(REASON_CHARS_MAX).collect())
}
