//! Splits the output of a program into lines of bounded length.

/// Maximum length of a line that is read, in bytes. The rest of a longer line is dropped.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Maximum number of bytes kept from the beginning of a stream, as an artifact of the stage.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// Maximum number of bytes kept from the end of a stream, for messages.
const TAIL_BYTES_MAX: usize = 2 << 10;

/// An output stream that is still being received.
#[derive(Debug, Default)]
pub(super) struct OutputLines {
    line: Vec<u8>,
    kept: Vec<u8>,
    tail: Vec<u8>,
}

impl OutputLines {
    /// Adds bytes, and calls `on_line` for each complete line.
    pub(super) fn take(&mut self, bytes: &[u8], mut on_line: impl FnMut(&[u8])) {
        self.kept.extend_from_slice(&bytes[..bytes.len().min(KEPT_BYTES_MAX.saturating_sub(self.kept.len()))]);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL_BYTES_MAX)..]);
        let over = self.tail.len().saturating_sub(TAIL_BYTES_MAX);
        self.tail.drain(..over);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                on_line(self.line.trim_ascii_end());
                self.line.clear();
            }
        }
    }

    /// Ends the stream, and calls `on_line` for a last line without a line break.
    pub(super) fn end(&mut self, mut on_line: impl FnMut(&[u8])) {
        if !self.line.is_empty() {
            on_line(std::mem::take(&mut self.line).trim_ascii_end());
        }
    }

    /// Returns the kept beginning of the stream.
    pub(super) fn kept(&self) -> &[u8] {
        &self.kept
    }

    /// Returns the kept end of the stream as text.
    pub(super) fn tail(&self) -> String {
        String::from_utf8_lossy(&self.tail).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_however_the_bytes_arrive_and_never_grow() {
        let text = b"one\ntwo\r\n\nlast";
        for size in 1..=text.len() {
            let (mut lines, mut found) = (OutputLines::default(), Vec::new());
            text.chunks(size).for_each(|piece| lines.take(piece, |line| found.push(line.to_vec())));
            lines.end(|line| found.push(line.to_vec()));
            assert_eq!(found, [&b"one"[..], b"two", b"", b"last"], "{size}");
            assert_eq!((lines.kept(), lines.tail().as_str()), (&text[..], "one\ntwo\r\n\nlast"));
        }
        let (mut lines, mut longest) = (OutputLines::default(), 0);
        (0..40).for_each(|_| lines.take(&[b'x'; 100_000], |_| ()));
        lines.take(b"\n", |line| longest = line.len());
        assert_eq!(
            (longest, lines.kept().len(), lines.tail().len()),
            (LINE_BYTES_MAX, KEPT_BYTES_MAX, TAIL_BYTES_MAX - 1)
        );
    }
}
