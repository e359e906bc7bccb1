//! Attacks on memory: shared segments and queues of the host, and use of more memory than the limit allows.

use super::raw::{Text, peek, raw};
use super::{AttackResult, number, word};
use std::fs::OpenOptions;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Attaches a shared segment by its id.
pub(crate) fn sysv_shm(arguments: &[String]) -> AttackResult {
    let attached = raw(libc::SYS_shmat, &[number(arguments, 0) as usize, 0, libc::SHM_RDONLY as usize]);
    match attached.and_then(|address| peek(address, 64)) {
        Ok(bytes) => AttackResult::worked("attached").with(bytes),
        Err(error) => AttackResult::stopped(error),
    }
}

/// Opens a message queue by its name and receives a message.
pub(crate) fn queue(arguments: &[String]) -> AttackResult {
    let name = Text::new(word(arguments, 0));
    let opened = raw(libc::SYS_mq_open, &[name.at(), (libc::O_RDWR | libc::O_NONBLOCK) as usize, 0, 0]);
    let mut message = vec![0_u8; 8192];
    let taken = opened
        .and_then(|queue| raw(libc::SYS_mq_timedreceive, &[queue, message.as_mut_ptr() as usize, message.len(), 0, 0]));
    match taken {
        Ok(bytes) => AttackResult::worked("taken").with(&message[..bytes.min(message.len())]),
        Err(error) => AttackResult::stopped(error),
    }
}

const STEP_BYTES: usize = 8 << 20;
const STEP: Duration = Duration::from_millis(15);

/// Allocates up to this many MiB of memory and holds it for a while. The kind is one of `anon`, `shared`, `memfd`,
/// `tmp` or `many`.
pub(crate) fn hoard(arguments: &[String]) -> AttackResult {
    let steps = (number(arguments, 1).clamp(8, 1024) as usize) << 20 >> 23;
    if word(arguments, 0) == "many" {
        return many(steps);
    }
    let memory = Memory::from_arguments(arguments);
    let mut held = HeldMemory::default();
    for step in 0..steps {
        if let Err(answer) = held.grow(memory) {
            return AttackResult::stopped(format!("{answer} after {} MiB", step * 8));
        }
        std::thread::sleep(STEP);
    }
    std::thread::sleep(Duration::from_secs(1));
    AttackResult::worked(format!("held {} MiB", steps * 8))
}

/// A kind of memory.
#[derive(Clone, Copy)]
enum Memory {
    Anonymous,
    Shared,
    Memfd,
    Tmpfs,
}

impl Memory {
    fn from_arguments(arguments: &[String]) -> Self {
        match word(arguments, 0) {
            "shared" => Self::Shared,
            "memfd" => Self::Memfd,
            "tmp" => Self::Tmpfs,
            _ => Self::Anonymous,
        }
    }
}

/// The held memory.
#[derive(Default)]
struct HeldMemory {
    blocks: Vec<Vec<u8>>,
    descriptor: Option<usize>,
}

impl HeldMemory {
    fn grow(&mut self, memory: Memory) -> Result<(), String> {
        let shown = |error: super::raw::Errno| error.to_string();
        match memory {
            Memory::Shared => {
                let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
                let both = libc::PROT_READ | libc::PROT_WRITE;
                let vectors = [0, STEP_BYTES, both as usize, flags as usize, usize::MAX, 0];
                raw(libc::SYS_mmap, &vectors).map(|_| ()).map_err(shown)
            }
            Memory::Memfd => {
                let made = || raw(libc::SYS_memfd_create, &[Text::new("hoard").at(), 0]);
                let descriptor = self.descriptor.map_or_else(made, Ok).map_err(shown)?;
                self.descriptor = Some(descriptor);
                let block = vec![1_u8; STEP_BYTES];
                raw(libc::SYS_write, &[descriptor, block.as_ptr() as usize, block.len()]).map(|_| ()).map_err(shown)
            }
            Memory::Tmpfs => {
                let file = OpenOptions::new().create(true).append(true).open("/dev/shm/hoard");
                file.and_then(|mut file| file.write_all(&vec![1_u8; STEP_BYTES]))
                    .map_err(|error| super::raw::Errno::from(error).to_string())
            }
            Memory::Anonymous => {
                let mut block = Vec::new();
                block.try_reserve_exact(STEP_BYTES).map_err(|_| "ENOMEM".to_owned())?;
                block.resize(STEP_BYTES, 1);
                self.blocks.push(block);
                Ok(())
            }
        }
    }
}

/// Starts eight processes that each allocate an eighth.
fn many(steps: usize) -> AttackResult {
    let share = (steps * 8 / 8).max(8).to_string();
    let start = || {
        let mut command = Command::new("/proc/self/exe");
        command.args(["memory", "anon", &share]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()
    };
    let mut children = Vec::new();
    for _ in 0..8 {
        match start() {
            Ok(child) => children.push(child),
            Err(error) => return AttackResult::stopped(super::raw::Errno::from(error)),
        }
    }
    let outputs = children.into_iter().map(std::process::Child::wait_with_output);
    let held = outputs.flatten().filter(|output| String::from_utf8_lossy(&output.stdout).contains("\"worked\":true"));
    match held.count() {
        8 => AttackResult::worked("all eight held their share"),
        count => AttackResult::stopped(format!("{count} of 8 held their share")),
    }
}
