//! What is looked at from outside while an attack runs: its processes, and the port it may have opened.
//!
//! A watch is a thread that looks until the command has ended. It sees processes by a mark in their arguments. An attack that has to be
//! caught in the act waits until it has been looked at, and is let go by a signal.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(15);
/// A listener on the loopback answers at once, a port that is closed does as well.
const CONNECT_MAX: Duration = Duration::from_millis(500);

/// What was seen while the command ran.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Watched {
    /// Most processes with the mark at the same time.
    pub(crate) processes_peak: usize,
    /// The kernel's words about one of them.
    pub(crate) standing: Option<String>,
    /// Whether the port answered.
    pub(crate) reached: bool,
}

/// Runs `act` while looking from outside; `look` says whether there is something to look for.
pub(crate) fn during<T>(look: bool, mark: &str, port: u16, act: impl FnOnce() -> T) -> (T, Watched) {
    let over = AtomicBool::new(!look);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut watched = Watched::default();
            while !over.load(Ordering::Relaxed) {
                turn(mark, port, &mut watched);
                std::thread::sleep(LOOK);
            }
            watched
        });
        let done = act();
        over.store(true, Ordering::Relaxed);
        (done, watch.join().unwrap_or_default())
    })
}

fn turn(mark: &str, port: u16, watched: &mut Watched) {
    let found = marked(mark);
    watched.processes_peak = watched.processes_peak.max(found.len());
    for process in found {
        let Some(status) = fs::read_to_string(format!("/proc/{process}/status")).ok().filter(|text| is_ready(text))
        else {
            continue;
        };
        watched.standing = Some(standing(&status));
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        watched.reached |= TcpStream::connect_timeout(&address, CONNECT_MAX).is_ok();
        // It waits for this, and nobody minds it who does not.
        let _gone = Pid::from_raw(process.cast_signed()).map(|process| kill_process(process, Signal::URG));
    }
}

/// True for an attack that asks to be looked at: it blocks the signal that lets it go. Before, it may not have come so far.
fn is_ready(status: &str) -> bool {
    let blocked = u64::from_str_radix(&field(status, "SigBlk"), 16).unwrap_or(0);
    blocked & 1 << (Signal::URG.as_raw() - 1) != 0
}

/// Processes of this machine that carry the mark in their arguments; dead ones do not.
pub fn marked(mark: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let own = std::process::id();
    numbers
        .filter(|process| *process != own)
        .filter(|process| {
            let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&line);
            words.contains(mark) && !words.contains("\0victim\0")
        })
        .collect()
}

fn standing(status: &str) -> String {
    ["NoNewPrivs", "Seccomp", "CapEff", "CapPrm", "CapBnd", "CapAmb"]
        .map(|name| format!("{name}={}", field(status, name)))
        .join(" ")
}

fn field(status: &str, name: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or("").trim().to_owned()
}
