//! For each limit on commands, the highest usage of any command of the attempt.

use glovebox_jail::exec::Exit;

/// For each limit on commands, the highest usage of any command. `None` if it is unknown or no command has ended.
#[derive(Debug, Default)]
pub(crate) struct CommandUsage {
    /// Longest wall time of a command.
    pub(crate) command_ms: Option<u64>,
    /// Length of the longest kept stream.
    pub(crate) command_output_bytes: Option<u64>,
    /// The highest processor time of a command.
    pub(crate) cpu_ms: Option<u64>,
    /// The highest memory use of a command, with all of its processes.
    pub(crate) command_memory_bytes: Option<u64>,
    /// The highest number of processes that a command had at the same time.
    pub(crate) processes: Option<u64>,
    /// The highest number of open file descriptors of one process.
    pub(crate) descriptors: Option<u64>,
    /// Length of the largest file that was written.
    pub(crate) file_bytes: Option<u64>,
    /// The highest number of bytes in the folder for temporary files.
    pub(crate) tmp_bytes: Option<u64>,
}

impl CommandUsage {
    /// Adds a command that has ended.
    pub(crate) fn add(&mut self, exit: &Exit, duration_ms: u64) {
        let kept = [&exit.stdout, &exit.stderr].map(|stream| (stream.head.len() + stream.tail.len()) as u64);
        for (most, used) in [
            (&mut self.command_ms, Some(duration_ms)),
            (&mut self.command_output_bytes, kept.into_iter().max()),
            (&mut self.cpu_ms, Some(exit.cpu_ms)),
            (&mut self.command_memory_bytes, Some(exit.memory_peak_bytes)),
            (&mut self.processes, exit.processes_peak),
            (&mut self.descriptors, exit.descriptors_peak),
            (&mut self.file_bytes, exit.file_peak_bytes),
            (&mut self.tmp_bytes, exit.tmp_bytes),
        ] {
            *most = (*most).max(used);
        }
    }
}
