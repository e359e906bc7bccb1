//! Runs the program and measures its cost: time, processor time of all its processes, bytes written, peak memory,
//! flushes.
//!
//! Processor time is that of the whole machine, in steps of 10 ms: the kernel reaps the jails of a run, so the
//! processor time of child processes does not include theirs. It is meaningful only for long runs on an otherwise idle
//! machine.

use super::processors::machine_cpu;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The program as cargo built it.
const BUILT: &str = env!("CARGO_BIN_EXE_glovebox");
/// Interval at which a running program is sampled.
const LOOK: Duration = Duration::from_millis(20);
/// System calls that flush data to disk.
const FLUSHES: [&str; 5] = ["fsync", "fdatasync", "syncfs", "msync", "sync_file_range"];

/// The cost of one run of a program.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    pub(crate) wall: Duration,
    /// Processor time of the whole machine during the run.
    pub(crate) cpu: Duration,
    /// Bytes that the program itself wrote to disk; 0 on a file system in memory.
    pub(crate) written: u64,
    /// Peak memory of the program itself.
    pub(crate) peak_bytes: u64,
}

/// The program under measurement.
pub(crate) struct Program {
    path: PathBuf,
}

impl Program {
    /// Copies the program, as an installation does. A linker writes the parts of a file out of order, and the kernel
    /// maps such a file in smaller pieces, so a program that runs from it starts up to a millisecond later.
    pub(crate) fn install(folder: &Path) -> Self {
        let path = folder.join("glovebox");
        fs::copy(BUILT, &path).unwrap();
        Self { path }
    }

    /// Runs the program in a folder and requires success. Does not sample it while it runs.
    pub(crate) fn run(&self, folder: &Path, arguments: &[&str]) -> Cost {
        let (cost, status) = self.measured(folder, arguments, |_| Cost::default());
        assert!(status.success(), "{arguments:?} ended with {status}");
        cost
    }

    /// Runs the program in a folder and accepts any exit status.
    pub(crate) fn run_to_any_end(&self, folder: &Path, arguments: &[&str]) -> Cost {
        self.measured(folder, arguments, |_| Cost::default()).0
    }

    /// Runs the program in a folder, requires success, and samples its memory and its writes while it runs.
    pub(crate) fn run_watched(&self, folder: &Path, arguments: &[&str]) -> Cost {
        let (cost, status) = self.measured(folder, arguments, watch);
        assert!(status.success(), "{arguments:?} ended with {status}");
        cost
    }

    /// As [`Self::run_watched`], but accepts any exit status.
    pub(crate) fn run_watched_to_any_end(&self, folder: &Path, arguments: &[&str]) -> Cost {
        self.measured(folder, arguments, watch).0
    }

    fn measured(&self, folder: &Path, arguments: &[&str], look: impl Fn(&mut Child) -> Cost) -> (Cost, ExitStatus) {
        let before = machine_cpu();
        let start = Instant::now();
        let mut child = in_folder(Command::new(&self.path).args(arguments), folder).spawn().unwrap();
        let seen = look(&mut child);
        let status = child.wait().unwrap();
        (Cost { wall: start.elapsed(), cpu: machine_cpu() - before, ..seen }, status)
    }

    /// Returns the number of flushes of a run; `None` if `strace` is not installed.
    pub(crate) fn flushes(&self, arguments: &[&str], folder: &Path) -> Option<u64> {
        let table = folder.join("strace.txt");
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-c", "-o"]).arg(&table);
        strace.arg(format!("--trace={}", FLUSHES.join(","))).arg(&self.path).args(arguments);
        let status = in_folder(&mut strace, folder).status().ok()?;
        assert!(status.success(), "under strace it ended with {status}");
        let table = fs::read_to_string(table).unwrap();
        let calls = table.lines().filter_map(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            FLUSHES.contains(columns.last()?).then(|| columns[3].parse::<u64>().unwrap())
        });
        Some(calls.sum())
    }
}

/// Sets the working folder, and places the cache and state folders of the program below it.
fn in_folder<'c>(command: &'c mut Command, folder: &Path) -> &'c mut Command {
    command.current_dir(folder);
    command.env("GLOVEBOX_CACHE_DIR", folder.join("cache")).env("GLOVEBOX_STATE_DIR", folder.join("state"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

/// Samples a program until it ends.
fn watch(child: &mut Child) -> Cost {
    let at = PathBuf::from(format!("/proc/{}", child.id()));
    let number = |file: &str, key: &str| {
        let text = fs::read_to_string(at.join(file)).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let mut cost = Cost::default();
    while child.try_wait().unwrap().is_none() {
        cost.peak_bytes = cost.peak_bytes.max(number("status", "VmHWM:").unwrap_or_default() * 1024);
        cost.written = cost.written.max(number("io", "write_bytes:").unwrap_or_default());
        std::thread::sleep(LOOK);
    }
    cost
}

/// Returns the time and processor time of one `sh -c true`, as the mean of `count`.
pub(crate) fn spawns(count: u32) -> Cost {
    let before = machine_cpu();
    let start = Instant::now();
    (0..count).for_each(|_| assert!(Command::new("sh").args(["-c", "true"]).status().unwrap().success()));
    Cost { wall: start.elapsed() / count, cpu: (machine_cpu() - before) / count, ..Cost::default() }
}
