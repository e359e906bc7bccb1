//! The most that a command of the attempt used of each bound.

use glovebox_jail::exec::Exit;

/// The most that a command used of each bound.
#[derive(Debug, Default)]
pub(crate) struct CommandUsage {
    /// Wall time of the longest.
    pub(crate) command_ms: Option<u64>,
    /// Longest kept stream.
    pub(crate) command_output_bytes: Option<u64>,
    /// Most processor time.
    pub(crate) cpu_ms: Option<u64>,
    /// Most memory of all its processes together.
    pub(crate) command_memory_bytes: Option<u64>,
    /// Most processes at the same time.
    pub(crate) processes: Option<u64>,
    /// Most open descriptors of a process.
    pub(crate) descriptors: Option<u64>,
    /// Length of the largest file that was written.
    pub(crate) file_bytes: Option<u64>,
    /// Size of the fullest folder for temporary files.
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
