//! What is looked at from outside while an attack runs: its processes, and the port it may have opened.
//!
//! A watch is a thread that looks until the command has ended. It sees processes by a mark in their arguments.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(15);

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
    if let Some(standing) = found.iter().filter(|process| is_told(**process)).find_map(|process| standing(*process)) {
        watched.standing = Some(standing);
    }
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    watched.reached |= TcpStream::connect_timeout(&address, LOOK).is_ok();
}

/// True for the attack that asks to be looked at; others may not have put their own walls up yet.
fn is_told(process: u32) -> bool {
    fs::read(format!("/proc/{process}/cmdline"))
        .is_ok_and(|line| String::from_utf8_lossy(&line).contains("\0standing\0"))
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

fn standing(process: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        format!("{name}={}", line.unwrap_or("").trim())
    };
    Some(["NoNewPrivs", "Seccomp", "CapEff", "CapPrm", "CapBnd", "CapAmb"].map(field).join(" "))
}
