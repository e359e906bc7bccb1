//! The table of attacks by name.
//!
//! An attack is a function from its arguments to an [`AttackResult`]. Several rows of the table may use the same attack
//! with different arguments.

mod credentials;
mod files;
mod holding;
mod kernel;
mod left;
mod memory;
mod network;
mod planting;
mod processes;
mod raw;
mod required;
mod survival;
mod terminal;
mod victim;
mod witness;

use raw::Errno;
use serde::Serialize;
use std::process::ExitCode;

/// The result of an attack as seen from inside of the sandbox.
#[derive(Debug, Serialize)]
pub(crate) struct AttackResult {
    /// Name of the attack.
    attack: &'static str,
    /// True if the attack succeeded.
    worked: bool,
    /// Name of the error, or what the attack achieved.
    answer: String,
    /// Data that the attack read. The battery searches it for canaries.
    loot: String,
}

impl AttackResult {
    /// Returns the result of an attack that succeeded.
    pub(crate) fn worked(answer: impl Into<String>) -> Self {
        Self { attack: "", worked: true, answer: answer.into(), loot: String::new() }
    }

    /// Returns the result of an attack that was stopped.
    pub(crate) fn stopped(answer: impl ToString) -> Self {
        Self { attack: "", worked: false, answer: answer.to_string(), loot: String::new() }
    }

    /// Returns success if the call succeeded.
    pub(crate) fn from_result<T>(answer: Result<T, impl Into<Errno>>) -> Self {
        match answer {
            Ok(_) => Self::worked("ok"),
            Err(error) => Self::stopped(error.into()),
        }
    }

    /// Returns success if the kernel examined the arguments of the call.
    pub(crate) fn reached<T>(answer: Result<T, impl Into<Errno>>) -> Self {
        match answer.map_err(Into::into) {
            Ok(_) => Self::worked("ok"),
            Err(error) if error.is_refusal() => Self::stopped(error),
            Err(error) => Self::worked(format!("reached: {error}")),
        }
    }

    /// Adds the data that the attack read.
    pub(crate) fn with(mut self, loot: impl AsRef<[u8]>) -> Self {
        let text = String::from_utf8_lossy(loot.as_ref());
        self.loot = text.chars().take(4096).collect();
        self
    }
}

type Attack = fn(&[String]) -> AttackResult;

#[rustfmt::skip]
const ATTACKS: &[(&str, Attack)] = &[
    ("read", files::read), ("list", files::list), ("write", files::write), ("append", files::append),
    ("truncate", files::truncate), ("open-write", files::open_write), ("open-all", files::open_all), ("unlink", files::unlink), ("rename", files::rename),
    ("mkdir", files::mkdir), ("chmod", files::chmod), ("chown", files::chown), ("utimes", files::utimes),
    ("read-any", files::read_any), ("hold", holding::hold), ("hold-undumpable", holding::hold_undumpable),
    ("hold-headless", holding::hold_headless), ("inotify", holding::inotify), ("own-table", holding::own_table),
    ("openat2-mode", holding::openat2_mode), ("machine", required::machine),
    ("setxattr", files::setxattr), ("grep", files::grep), ("hunt", files::hunt), ("flock", files::flock),
    ("reopen-stdout", files::reopen_stdout), ("descriptors", files::descriptors), ("handle", files::handle),
    ("symlink-write", planting::symlink_write), ("symlink-read", planting::symlink_read), ("hardlink", planting::hardlink),
    ("replace", planting::replace), ("mknod", planting::mknod), ("create-mode", planting::create_mode),
    ("odd-name", planting::odd_name), ("deep", planting::deep), ("many", planting::many), ("sparse", planting::sparse),
    ("fill", planting::fill), ("rename-ancestor", planting::rename_ancestor), ("plant-program", planting::plant_program),
    ("ptrace", processes::ptrace), ("vm-read", processes::vm_read), ("vm-write", processes::vm_write),
    ("pidfd-getfd", processes::pidfd_getfd), ("kcmp", processes::kcmp), ("kill", processes::kill), ("tgkill", processes::tgkill),
    ("pidfd-signal", processes::pidfd_signal), ("sigqueue", processes::sigqueue), ("owner-signal", processes::owner_signal),
    ("renice", processes::renice), ("schedule", processes::schedule), ("prlimit", processes::prlimit), ("processes", processes::processes),
    ("affinity", processes::affinity), ("priority", processes::priority), ("realtime", processes::realtime),
    ("unshare", kernel::unshare), ("clone", kernel::clone), ("clone3", kernel::clone3), ("setns", kernel::setns),
    ("call", kernel::call), ("foreign", kernel::foreign), ("x32", kernel::x32), ("memfd-exec", kernel::memfd_exec),
    ("personality", kernel::personality), ("io-uring", kernel::io_uring), ("keyring", kernel::keyring),
    ("user-namespaces", kernel::user_namespaces),
    ("setuid", credentials::setuid), ("root-id", credentials::root_id), ("setgid", credentials::setgid), ("setgroups", credentials::setgroups),
    ("capabilities", credentials::capabilities), ("privileges", credentials::privileges),
    ("setuid-program", credentials::setuid_program), ("environment", credentials::environment),
    ("core-limit", credentials::core_limit), ("raise-limits", credentials::raise_limits), ("standing", credentials::standing),
    ("tty-push", terminal::push), ("tty-open", terminal::open),
    ("tcp", network::tcp), ("udp", network::udp), ("unix", network::unix), ("unix-datagram", network::unix_datagram),
    ("pair", network::pair), ("abstract", network::abstract_socket), ("socket", network::socket), ("listen", network::listen),
    ("proxy", network::proxy), ("sysv-shm", memory::sysv_shm), ("queue", memory::queue),
    ("memory", memory::hoard), ("forks", survival::forks), ("spin", survival::spin), ("sleep", survival::sleep),
    ("flood", survival::flood), ("close-output", survival::close_output), ("daemon", survival::daemon),
    ("stubborn", survival::stubborn), ("racers", survival::racers), ("linger", survival::linger),
    ("loopback", required::loopback), ("unix-server", required::unix_server), ("pty", required::pty),
    ("threads", required::threads), ("fork", required::fork), ("replace-file", required::replace_file),
    ("create-new", required::create_new), ("shared-memory", required::shared_memory), ("edit-in-place", required::edit_in_place),
    ("temp-file", required::temp_file), ("devices", required::devices), ("proc-self", required::proc_self),
    ("remove-file", required::remove_file), ("leave", left::leave), ("find", left::find),
    ("namespace-above", left::namespace_above), ("foreign-process", left::foreign_process),
];

/// Runs the attack that the arguments name.
pub(crate) fn main(words: &[String]) -> ExitCode {
    let Some((name, arguments)) = words.split_first() else { return list() };
    match name.as_str() {
        "victim" => victim::victim(arguments),
        "lie-low" => survival::lie_low(),
        "race" => survival::race(),
        _ => {
            let Some((known, attack)) = ATTACKS.iter().find(|(known, _)| known == name) else { return list() };
            report(&AttackResult { attack: known, ..attack(arguments) })
        }
    }
}

/// Prints the result as one line of JSON.
pub(crate) fn report(result: &AttackResult) -> ExitCode {
    match serde_json::to_string(result) {
        Ok(line) => println!("{line}"),
        Err(_) => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

/// Prints the name of every attack. Exit code 2 means that no attack has the requested name.
fn list() -> ExitCode {
    ATTACKS.iter().for_each(|(name, _)| println!("{name}"));
    ExitCode::from(2)
}

/// Returns an argument, or an empty text.
pub(crate) fn word(arguments: &[String], index: usize) -> &str {
    arguments.get(index).map_or("", String::as_str)
}

/// Returns an argument as a number, or 0 if it is not a number.
pub(crate) fn number(arguments: &[String], index: usize) -> i64 {
    let text = word(arguments, index);
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).unwrap_or(0),
        None => text.parse().unwrap_or(0),
    }
}

/// Starts this program as a new process with another attack.
pub(crate) fn again(words: &[&str]) -> std::io::Result<std::process::Child> {
    std::process::Command::new("/proc/self/exe").args(words).stdin(std::process::Stdio::null()).spawn()
}
