//! Renders one path of a patch as `git diff` does.

use super::binary::{self, NO_OBJECT, object};
use super::hunks::Comparison;
use super::name::{in_header, quoted};
use super::{Bytes, Delta};
use crate::terminal::visible;

/// The reader of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// A program: it gets every byte unchanged.
    Program,
    /// A terminal: control characters are escaped, and binary files are only named.
    Terminal,
}

/// Renders the part of a patch that is about one path.
pub fn render(delta: &Delta, bytes: &Bytes, reader: Reader) -> Vec<u8> {
    let mut out = Vec::new();
    let (old, new) = (delta.old_path().as_str(), delta.path.as_str());
    push(&mut out, format!("diff --git {} {}", quoted("a/", old), quoted("b/", new)));
    modes(&mut out, delta);
    if let Some((from, similarity)) = &delta.renamed {
        push(&mut out, format!("similarity index {similarity}%"));
        push(&mut out, format!("rename from {}", quoted("", from.as_str())));
        push(&mut out, format!("rename to {}", quoted("", new)));
    }
    if bytes.are_equal() {
        return out;
    }
    index(&mut out, delta, bytes);
    content(&mut out, delta, bytes, reader);
    out
}

fn push(out: &mut Vec<u8>, line: String) {
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
}

fn modes(out: &mut Vec<u8>, delta: &Delta) {
    match (delta.old.as_ref().map(|old| old.mode()), delta.new.as_ref().map(|new| new.mode())) {
        (None, Some(new)) => push(out, format!("new file mode {}", new.digits())),
        (Some(old), None) => push(out, format!("deleted file mode {}", old.digits())),
        (Some(old), Some(new)) if old != new => {
            push(out, format!("old mode {}", old.digits()));
            push(out, format!("new mode {}", new.digits()));
        }
        _ => {}
    }
}

/// Appends the full object ids of both versions, because `git apply` compares them with the files that it finds.
fn index(out: &mut Vec<u8>, delta: &Delta, bytes: &Bytes) {
    let name = |bytes: &Option<Vec<u8>>| bytes.as_deref().map_or_else(|| NO_OBJECT.to_owned(), object);
    let mode = match (&delta.old, &delta.new) {
        (Some(old), Some(new)) if old.mode() == new.mode() => format!(" {}", new.mode().digits()),
        _ => String::new(),
    };
    push(out, format!("index {}..{}{mode}", name(&bytes.old), name(&bytes.new)));
}

fn content(out: &mut Vec<u8>, delta: &Delta, bytes: &Bytes, reader: Reader) {
    let (old, new) = (bytes.old.as_deref().unwrap_or_default(), bytes.new.as_deref().unwrap_or_default());
    if old == new {
        return;
    }
    let side = |exists: bool, prefix: &'static str, path: &str, name: fn(&'static str, &str) -> String| match exists {
        true => name(prefix, path),
        false => "/dev/null".to_owned(),
    };
    let sides = |name: fn(&'static str, &str) -> String| {
        let old = side(bytes.old.is_some(), "a/", delta.old_path().as_str(), name);
        (old, side(bytes.new.is_some(), "b/", delta.path.as_str(), name))
    };
    match (bytes.is_binary(), reader) {
        (true, Reader::Program) => binary::push(out, old, new),
        (true, Reader::Terminal) => {
            let (from, to) = sides(quoted);
            push(out, format!("Binary files {from} and {to} differ: {} -> {} bytes", old.len(), new.len()));
        }
        (false, reader) => {
            let (from, to) = sides(in_header);
            push(out, format!("--- {from}"));
            push(out, format!("+++ {to}"));
            Comparison::between(old, new).lines(&mut |mark, line| {
                out.extend_from_slice(mark.as_bytes());
                match reader {
                    Reader::Program => out.extend_from_slice(line),
                    Reader::Terminal => out.extend_from_slice(shown(line).as_bytes()),
                }
                out.push(b'\n');
            });
        }
    }
}

/// Escapes a line for a terminal: all control characters except tabs.
fn shown(line: &[u8]) -> String {
    visible::block(&String::from_utf8_lossy(line)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::Version;
    use glovebox_record::Digest;
    use glovebox_record::path::ScopePath;

    #[test]
    fn a_terminal_gets_nothing_to_obey_and_a_program_every_byte() {
        let version = |bytes: &[u8]| {
            Some(Version::File { digest: Digest::hash(bytes), bytes: bytes.len() as u64, executable: false })
        };
        let (old, new) = (b"a\n".to_vec(), b"a\r\x1b[2J\tb\n".to_vec());
        let path = ScopePath::parse("x").unwrap();
        let delta = Delta { path, renamed: None, old: version(&old), new: version(&new) };
        let bytes = Bytes { old: Some(old), new: Some(new) };
        let text = |reader| String::from_utf8(render(&delta, &bytes, reader)).unwrap();
        assert!(text(Reader::Program).ends_with("-a\n+a\r\u{1b}[2J\tb\n"));
        assert!(text(Reader::Terminal).ends_with("-a\n+a\\r\\x1b[2J\tb\n"));
    }
}
