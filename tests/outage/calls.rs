//! Parses system calls as `strace -f -y -x` prints them: name, arguments, result, and the paths of file descriptors.

use std::collections::HashMap;
use std::path::PathBuf;

/// A call that has returned.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) result: i64,
    /// Path of the descriptor that the call returned.
    pub(crate) made: Option<PathBuf>,
}

/// Returns all calls in the order in which they returned.
pub(crate) fn read(log: &str) -> Vec<Call> {
    let mut begun: HashMap<&str, String> = HashMap::new();
    let mut calls = Vec::new();
    for line in log.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(beginning) = rest.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, beginning.to_owned());
        } else if rest.starts_with("<... ") {
            let end = rest.split_once(" resumed>").map_or("", |(_, end)| end);
            calls.extend(begun.remove(thread).and_then(|beginning| parse(&(beginning + end))));
        } else {
            calls.extend(parse(rest));
        }
    }
    calls
}

fn parse(text: &str) -> Option<Call> {
    let (name, rest) = text.split_once('(')?;
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return None;
    }
    let (arguments, rest) = split(rest)?;
    let result = rest.trim_start().strip_prefix("= ")?;
    let number: String = result.chars().take_while(|c| c.is_ascii_digit() || *c == '-').collect();
    let made = result.split_once('<').and_then(|(_, path)| path.split_once('>')).map(|(path, _)| PathBuf::from(path));
    Some(Call { name: name.to_owned(), arguments, result: number.parse().ok()?, made })
}

/// Splits the arguments up to the closing bracket and returns them with the text after it. Strings, structures and
/// paths of descriptors are not split.
fn split(text: &str) -> Option<(Vec<String>, &str)> {
    let (mut arguments, mut from, mut depth, mut in_text, mut is_escaped) = (Vec::new(), 0, 0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' | b'<' | b'(' => depth += 1,
            b'}' | b']' | b'>' => depth -= 1,
            b')' if depth > 0 => depth -= 1,
            b',' | b')' if depth == 0 => {
                arguments.push(text[from..at].trim().to_owned());
                from = at + 1;
                if byte == b')' {
                    return Some((arguments, &text[at + 1..]));
                }
            }
            _ => {}
        }
    }
    None
}

impl Call {
    /// Returns the number of an argument that is a descriptor.
    pub(crate) fn descriptor(&self, index: usize) -> Option<i32> {
        let argument = self.arguments.get(index)?;
        argument.split('<').next()?.parse().ok()
    }

    /// Returns the path of an argument that is a descriptor.
    pub(crate) fn behind(&self, index: usize) -> Option<PathBuf> {
        let argument = self.arguments.get(index)?;
        let path = argument.split_once('<')?.1.strip_suffix('>')?;
        Some(PathBuf::from(path))
    }

    /// Returns the bytes of an argument that is a string.
    pub(crate) fn text(&self, index: usize) -> Option<Vec<u8>> {
        let quoted = self.arguments.get(index)?.strip_prefix('"')?;
        let quoted = quoted.strip_suffix('"').expect("strace wrote the text to its end");
        Some(unescape(quoted.as_bytes()))
    }

    /// Returns an argument that is a number.
    pub(crate) fn number(&self, index: usize) -> Option<u64> {
        self.arguments.get(index)?.parse().ok()
    }

    /// Returns the path in an argument. If the argument before it is a descriptor of a folder, the path is relative to
    /// this folder.
    pub(crate) fn path(&self, index: usize) -> Option<PathBuf> {
        let path = PathBuf::from(String::from_utf8(self.text(index)?).ok()?);
        let folder = index.checked_sub(1).and_then(|before| self.behind(before));
        let path = folder.map_or(path.clone(), |folder| folder.join(&path));
        Some(path.components().collect())
    }
}

fn unescape(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4);
    let mut rest = text.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next().expect("an escape is whole") {
            b'x' => {
                let digits = [rest.next(), rest.next()].map(|digit| char::from(digit.expect("two digits")));
                u8::try_from(digits[0].to_digit(16).unwrap() * 16 + digits[1].to_digit(16).unwrap()).unwrap()
            }
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 11,
            b'f' => 12,
            other => other,
        });
    }
    bytes
}
