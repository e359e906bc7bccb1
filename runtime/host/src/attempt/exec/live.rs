//! The output of a command while it runs, for people who watch it.
//!
//! The receipt and the guest get exactly what they get without a watcher: the same stored bytes, length and digest. Nothing is
//! kept for the watcher here, and a watcher that is slow slows the command down.

use glovebox_jail::exec::{CapturedOutput, Command, ExecError, Exit};
use glovebox_jail::jail::Jail;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

/// Maximum number of bytes that are read at once.
const PIECE_BYTES: usize = 64 << 10;

/// One of the two output streams of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What a watcher gets while a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LivePiece<'a> {
    /// A command begins: its text, escaped.
    Begin(&'a str),
    /// The next bytes of a stream.
    Output(OutputStream, &'a [u8]),
}

/// The watcher of an attempt's commands.
#[derive(Clone)]
pub struct LiveOutput(Arc<dyn Fn(LivePiece<'_>) + Send + Sync>);

impl LiveOutput {
    /// Creates a watcher that passes each piece to a function. Pieces of one attempt never overlap.
    pub fn new(take: impl Fn(LivePiece<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    fn send(&self, piece: LivePiece<'_>) {
        (self.0)(piece);
    }
}

impl fmt::Debug for LiveOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LiveOutput")
    }
}

/// The write end of a pipe to the standard input of a command, and the bytes to write to it.
type PipedInput<'b> = (io::PipeWriter, &'b [u8]);

/// A command that is about to run, as the watcher and the record need it.
pub(super) struct LiveCommand<'a> {
    pub(super) command: &'a Command,
    /// The text of the command, escaped.
    pub(super) shown: &'a str,
    /// Maximum number of bytes of each stream that are stored.
    pub(super) stored_bytes_max: u64,
}

impl LiveCommand<'_> {
    /// Runs the command, and passes its output to the watcher as it arrives. Without a watcher, this is [`Jail::run`].
    pub(super) fn run(
        &self,
        jail: &Jail,
        watcher: Option<&LiveOutput>,
        canceled: &AtomicBool,
    ) -> Result<Exit, ExecError> {
        let Some(watcher) = watcher else { return jail.run(self.command, canceled) };
        watcher.send(LivePiece::Begin(self.shown));
        let failed = |source| ExecError::Io { act: "open the command's pipes", source };
        let ((output, stdout), (error, stderr)) = (io::pipe().map_err(failed)?, io::pipe().map_err(failed)?);
        let (stdin, input) = self.stdin().map_err(failed)?;
        let max = self.stored_bytes_max;
        let (exit, [kept_output, kept_error]) = thread::scope(|scope| {
            let reader = scope.spawn(move || read([output, error], max, watcher));
            if let Some((mut input, bytes)) = input {
                // The error is ignored, because a command need not read its input.
                scope.spawn(move || drop(input.write_all(bytes)));
            }
            let exit = jail.run_piped(self.command, [stdin, stdout.into(), stderr.into()], canceled);
            (exit, reader.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked)))
        });
        let mut exit = exit?;
        kept_output.store_in(&mut exit.stdout);
        kept_error.store_in(&mut exit.stderr);
        Ok(exit)
    }

    /// Returns the standard input: the null device, as without a watcher, or a pipe with the bytes to write to it.
    fn stdin(&self) -> io::Result<(OwnedFd, Option<PipedInput<'_>>)> {
        let Some(bytes) = &self.command.stdin else {
            return Ok((rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?, None));
        };
        let (stdin, input) = io::pipe()?;
        Ok((stdin.into(), Some((input, bytes))))
    }
}

/// Reads both streams to their ends, in the order in which their bytes arrive.
fn read(pipes: [PipeReader; 2], stored_bytes_max: u64, watcher: &LiveOutput) -> [StoredPart; 2] {
    let [output, error] = pipes;
    let mut stored = [StoredPart::new(stored_bytes_max), StoredPart::new(stored_bytes_max)];
    let mut open = [(OutputStream::Stdout, Some(output)), (OutputStream::Stderr, Some(error))];
    let mut piece = vec![0; PIECE_BYTES];
    while open.iter().any(|(_, pipe)| pipe.is_some()) {
        for (index, _) in ready(&open).into_iter().enumerate().filter(|(_, is_ready)| *is_ready) {
            let (stream, pipe) = &mut open[index];
            match pipe.as_mut().map(|pipe| pipe.read(&mut piece)) {
                Some(Ok(count)) if count > 0 => {
                    stored[index].push(&piece[..count]);
                    watcher.send(LivePiece::Output(*stream, &piece[..count]));
                }
                Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => *pipe = None,
            }
        }
    }
    stored
}

/// Waits until at least one stream can be read without blocking, and returns which streams are ready. A stream whose state is unknown counts as ready.
fn ready(open: &[(OutputStream, Option<PipeReader>); 2]) -> [bool; 2] {
    let awaited = |index: usize| open[index].1.as_ref().map(|pipe| (index, PollFd::new(pipe, PollFlags::IN)));
    let (indexes, mut waiting): (Vec<usize>, Vec<PollFd<'_>>) = [0, 1].into_iter().filter_map(awaited).unzip();
    let mut found = [false; 2];
    let asked = rustix::event::poll(&mut waiting, None);
    for (index, waited) in indexes.into_iter().zip(&waiting) {
        found[index] = match asked {
            Ok(_) => !waited.revents().is_empty(),
            Err(Errno::INTR) => false,
            Err(_) => true,
        };
    }
    found
}

/// The first and the last bytes of a stream.
struct StoredPart {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_max: usize,
    tail_max: usize,
}

impl StoredPart {
    /// Keeps at most `bytes_max` bytes: half from the beginning of the stream and half from the end.
    fn new(bytes_max: u64) -> Self {
        let max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        Self { head: Vec::new(), tail: VecDeque::new(), head_max: max.div_ceil(2), tail_max: max / 2 }
    }

    fn push(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(self.head_max - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.tail_max)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_max);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Moves the kept bytes to the record of a stream, whose length and digest the jail has already set.
    fn store_in(self, stream: &mut CapturedOutput) {
        let kept = (self.head.len() + self.tail.len()) as u64;
        stream.truncated = stream.total_bytes > kept;
        (stream.head, stream.tail) = (self.head, self.tail.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_record::Digest;
    use proptest::prelude::*;
    use std::sync::Mutex;

    #[test]
    fn both_streams_are_read_to_their_ends() {
        let ((output, mut stdout), (error, mut stderr)) = (io::pipe().unwrap(), io::pipe().unwrap());
        let seen = Arc::new(Mutex::new((Vec::new(), Vec::new())));
        let watched = Arc::clone(&seen);
        let watcher = LiveOutput::new(move |piece| {
            let mut seen = watched.lock().unwrap();
            match piece {
                LivePiece::Output(OutputStream::Stdout, bytes) => seen.0.extend_from_slice(bytes),
                LivePiece::Output(OutputStream::Stderr, bytes) => seen.1.extend_from_slice(bytes),
                LivePiece::Begin(_) => {}
            }
        });
        let many = vec![b'x'; 300 << 10];
        let [kept_output, kept_error] = thread::scope(|scope| {
            let reader = scope.spawn(|| read([output, error], 10, &watcher));
            stderr.write_all(b"bad").unwrap();
            drop(stderr);
            stdout.write_all(&many).unwrap();
            drop(stdout);
            reader.join().unwrap()
        });
        assert_eq!(*seen.lock().unwrap(), (many, b"bad".to_vec()));
        assert_eq!((kept_output.head.len(), kept_output.tail.len()), (5, 5));
        assert_eq!((kept_error.head.as_slice(), kept_error.tail.len()), (b"bad".as_slice(), 0));
    }

    proptest! {
        #[test]
        fn the_stored_part_is_that_of_the_whole(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20), max in 0_u64..60) {
            let whole = chunks.concat();
            let mut part = StoredPart::new(max);
            chunks.iter().for_each(|chunk| part.push(chunk));
            let mut stream = CapturedOutput {
                head: Vec::new(), tail: Vec::new(), total_bytes: whole.len() as u64, truncated: true, cut: false, digest: Digest::hash(&whole),
            };
            part.store_in(&mut stream);
            prop_assert!(whole.starts_with(&stream.head) && whole.ends_with(&stream.tail));
            prop_assert_eq!(stream.truncated, whole.len() as u64 > max);
            if !stream.truncated {
                prop_assert_eq!([stream.head, stream.tail].concat(), whole);
            }
        }
    }
}
