//! A command whose output is read while it runs.

use super::Jail;
use crate::exec::{Command, ExecError, Exit, io_error};
use std::io::{self, PipeReader, Read, Write};
use std::sync::atomic::AtomicBool;
use std::thread;

/// Maximum number of bytes that are read at once.
const PIECE_BYTES: usize = 16 << 10;

/// Callback for the bytes of a stream.
pub type OnBytes<'a> = &'a mut (dyn FnMut(&[u8]) + Send);

impl Jail {
    /// Runs a command as [`Jail::run`] does, and passes its output to the callbacks as it arrives: the first for
    /// standard output, the second for standard error. Only the length and digest of the streams are stored.
    ///
    /// # Errors
    /// Returns the errors of [`Jail::run`].
    pub fn run_streamed(
        &self,
        command: &Command,
        [on_output, on_error]: [OnBytes<'_>; 2],
        canceled: &AtomicBool,
    ) -> Result<Exit, ExecError> {
        let pipe = || io::pipe().map_err(io_error("open the command's pipes"));
        let ((stdin, mut input), (output, stdout), (error, stderr)) = (pipe()?, pipe()?, pipe()?);
        thread::scope(|scope| {
            scope.spawn(move || {
                // The error is ignored, because a command need not read its input.
                let _ = input.write_all(command.stdin.as_deref().unwrap_or_default());
            });
            scope.spawn(move || read_all(output, on_output));
            scope.spawn(move || read_all(error, on_error));
            self.run_piped(command, [stdin.into(), stdout.into(), stderr.into()], canceled)
        })
    }
}

fn read_all(mut from: PipeReader, on_bytes: OnBytes<'_>) {
    let mut piece = [0; PIECE_BYTES];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return,
            Ok(count) => on_bytes(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
