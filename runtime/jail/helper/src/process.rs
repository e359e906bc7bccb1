//! One process as `/proc` shows it: its parent and its resource usage.
//!
//! The helper uses it to find processes to kill, and the host uses it to measure them. A process whose first thread has
//! ended continues with its other threads, so a zombie is treated as dead only if it has no other thread.

use std::fs;

/// One process, as `/proc` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// Process id, as in the `/proc` that was read.
    pub pid: i32,
    /// Start time, in clock ticks. Together with the id, it identifies one process.
    pub started: u64,
    /// Process id of the parent: the process that started this one, or that adopted it.
    pub parent: i32,
    /// Number of living threads; 0 for a zombie.
    pub threads: u64,
    /// True if the first thread has ended and others continue. `/proc` then shows details only in the folders of the
    /// other threads.
    pub is_headless: bool,
    /// Resident memory, bytes.
    pub resident_bytes: u64,
    /// Processor time of all threads, in clock ticks.
    pub cpu_ticks: u64,
}

/// Reads one process from `/proc`. Returns `None` if it has ended.
#[expect(clippy::disallowed_methods, reason = "the kernel's own file")]
pub fn stat(pid: i32) -> Option<ProcessStat> {
    parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Returns every process that `/proc` lists.
pub fn all() -> Vec<ProcessStat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| stat(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// Parses a line `pid (name) state ppid …`. The name may contain any bytes, including parentheses, so the fields start
/// after the last parenthesis.
pub fn parse(pid: i32, line: &[u8]) -> Option<ProcessStat> {
    let end = line.iter().rposition(|byte| *byte == b')')?;
    let fields: Vec<&str> = std::str::from_utf8(&line[end + 1..]).ok()?.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let (state, threads) = (*fields.first()?, number(17)?);
    let has_ended = matches!(state, "Z" | "X");
    Some(ProcessStat {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        threads: match (has_ended, threads) {
            (true, 0 | 1) => 0,
            (true, threads) => threads - 1,
            (false, threads) => threads.max(1),
        },
        is_headless: has_ended && threads > 1,
        started: number(19)?,
        resident_bytes: number(21)?.saturating_mul(rustix::param::page_size() as u64),
        cpu_ticks: number(11)?.saturating_add(number(12)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_the_line() {
        let line = b"7 (a) S 1 1 (x) R 42 7 7 0 -1 0 0 0 0 0 1 2 3 4 20 0 5 0 99 1000 3 0\n";
        let seen = parse(7, line).expect("a line");
        assert_eq!((seen.parent, seen.threads, seen.started, seen.cpu_ticks), (42, 5, 99, 3));
        assert_eq!(seen.resident_bytes, 3 * rustix::param::page_size() as u64);
        assert!(parse(7, b"7 (a").is_none());
    }

    #[test]
    fn a_zombie_is_dead_only_without_other_threads() {
        let with = |threads: u64| {
            let line = format!("7 (a) Z 42 7 7 0 -1 0 0 0 0 0 1 2 3 4 20 0 {threads} 0 99 0 0 0\n");
            parse(7, line.as_bytes()).expect("a line")
        };
        assert_eq!((with(1).threads, with(1).is_headless), (0, false));
        assert_eq!((with(3).threads, with(3).is_headless), (2, true));
    }
}
