//! Observes an attack from the host while it runs: its processes, and the port that it may have opened.
//!
//! A thread observes until the command has ended. It finds processes by a mark in their arguments. An attack that must
//! be observed waits until the host has seen it, and continues when it gets a signal.

use crate::host_fixture::Mark;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const PERIOD: Duration = Duration::from_millis(15);
/// Maximum time to connect. A listener on the loopback address answers at once, and so does a closed port.
const CONNECT_MAX: Duration = Duration::from_millis(500);

/// The host's observations while the command ran.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Observation {
    /// Maximum number of processes with the mark at the same time.
    pub(crate) processes_peak: usize,
    /// Rights of one of the processes, as the kernel lists them.
    pub(crate) rights: Option<String>,
    /// True if the host could connect to the port.
    pub(crate) reached: bool,
}

/// Runs `attack`. If `observes` is true, also observes it from the host.
pub(crate) fn during<T>(observes: bool, mark: &Mark, port: u16, attack: impl FnOnce() -> T) -> (T, Observation) {
    let over = AtomicBool::new(!observes);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut watched = Observation::default();
            while !over.load(Ordering::Relaxed) {
                watched.observe(mark, port);
                std::thread::sleep(PERIOD);
            }
            watched
        });
        let done = attack();
        over.store(true, Ordering::Relaxed);
        (done, watch.join().unwrap_or_default())
    })
}

impl Observation {
    fn observe(&mut self, mark: &Mark, port: u16) {
        let found = marked(mark);
        self.processes_peak = self.processes_peak.max(found.len());
        for process in found {
            let Some(status) = ProcessStatus::read(process).filter(ProcessStatus::is_waiting) else { continue };
            self.rights = Some(status.rights());
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            self.reached |= TcpStream::connect_timeout(&address, CONNECT_MAX).is_ok();
            // An attack that waits continues at this signal. All other programs ignore it.
            let _gone = Pid::from_raw(process.cast_signed()).map(|process| kill_process(process, Signal::URG));
        }
    }
}

/// The text of `/proc/<pid>/status`.
struct ProcessStatus(String);

impl ProcessStatus {
    fn read(process: u32) -> Option<Self> {
        fs::read_to_string(format!("/proc/{process}/status")).ok().map(Self)
    }

    /// Returns true if the attack blocks the signal at which it continues. Before that it may not be ready.
    fn is_waiting(&self) -> bool {
        let blocked = u64::from_str_radix(self.field("SigBlk"), 16).unwrap_or(0);
        blocked & 1 << (Signal::URG.as_raw() - 1) != 0
    }

    fn rights(&self) -> String {
        ["NoNewPrivs", "Seccomp", "CapEff", "CapPrm", "CapBnd", "CapAmb"]
            .map(|name| format!("{name}={}", self.field(name)))
            .join(" ")
    }

    fn field(&self, name: &str) -> &str {
        let line = self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or("").trim()
    }
}

/// Returns the living processes of this machine that have the mark in their arguments.
pub fn marked(mark: &Mark) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let own = std::process::id();
    numbers
        .filter(|process| *process != own)
        .filter(|process| {
            let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&line);
            words.contains(mark.as_str()) && !words.contains("\0victim\0")
        })
        .collect()
}
