//! The output of commands as it arrives: of `run -- COMMAND`, standard output to standard output and standard error to standard
//! error, and of `logs --follow`.
//!
//! A pipe or a file gets the exact bytes. A terminal gets them escaped, with their colours. A closed pipe does not stop the
//! command. A reader that is slow slows the command down, as it does without a sandbox.

use super::colours::{self, OpenColours};
use super::paint::Paint;
use glovebox_engine::live::OutputWatch;
use glovebox_host::call::OutputStream;
use glovebox_pipeline::ir::NodeId;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The two streams of this process.
#[derive(Clone)]
pub struct CommandOutput(Arc<Mutex<[Stream; 2]>>);

/// One stream of this process.
pub struct Stream {
    is_stdout: bool,
    /// The colours of the terminal; `None` if the stream is not a terminal.
    terminal: Option<Paint>,
    colours: OpenColours,
    /// Bytes whose rest may follow.
    waiting: Vec<u8>,
    is_in_line: bool,
}

impl CommandOutput {
    /// Creates the output of a command that has not begun.
    pub fn new() -> Self {
        let terminal = std::io::stderr().is_terminal().then(Paint::stderr);
        let stderr = Stream { is_stdout: false, ..Stream::new(terminal) };
        Self(Arc::new(Mutex::new([Stream::stdout(), stderr])))
    }

    /// Returns the function that gets the output of the command.
    pub fn watch(&self) -> OutputWatch {
        let output = self.clone();
        Arc::new(move |_: &NodeId, stream: OutputStream, bytes: &[u8]| {
            let [stdout, stderr] = &mut *output.lock();
            let stream = if stream == OutputStream::Stdout { stdout } else { stderr };
            stream.write(bytes);
        })
    }

    /// Ends the output, so that messages begin on a new line of the terminal.
    pub fn close(&self) {
        self.lock().iter_mut().for_each(Stream::close);
    }

    fn lock(&self) -> MutexGuard<'_, [Stream; 2]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream {
    /// Returns standard output, at the beginning of a line.
    pub fn stdout() -> Self {
        let terminal = std::io::stdout().is_terminal().then(Paint::stdout);
        Self::new(terminal)
    }

    fn new(terminal: Option<Paint>) -> Self {
        Self { is_stdout: true, terminal, colours: OpenColours::default(), waiting: Vec::new(), is_in_line: false }
    }

    /// Writes bytes of a command.
    pub fn write(&mut self, bytes: &[u8]) {
        let Some(paint) = self.terminal else { return self.put(bytes) };
        self.waiting.extend_from_slice(bytes);
        let complete = colours::complete(&self.waiting);
        let text = self.colours.block(&String::from_utf8_lossy(&self.waiting[..complete]), paint);
        self.waiting.drain(..complete);
        self.put(text.as_bytes());
    }

    fn put(&mut self, bytes: &[u8]) {
        self.is_in_line = bytes.last().map_or(self.is_in_line, |last| *last != b'\n');
        let _reader_gone = match self.is_stdout {
            true => {
                let mut stdout = std::io::stdout().lock();
                stdout.write_all(bytes).and_then(|()| stdout.flush())
            }
            false => std::io::stderr().lock().write_all(bytes),
        };
    }

    /// Writes what waits, and ends the line on a terminal.
    pub fn close(&mut self) {
        let Some(paint) = self.terminal else { return };
        let waiting = std::mem::take(&mut self.waiting);
        let rest = self.colours.block(&String::from_utf8_lossy(&waiting), paint);
        self.put(rest.as_bytes());
        if self.is_in_line {
            self.put(b"\n");
        }
    }
}
