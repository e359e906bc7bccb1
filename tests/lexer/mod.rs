//! The part of Rust's lexical structure that distinguishes code from comments, strings and character literals.

/// Returns where a file's test module begins, or `None`.
pub(crate) fn test_module(code: &str) -> Option<usize> {
    let marked = code.match_indices("#[cfg(test)]\nmod ").map(|(at, _)| at);
    marked.into_iter().find(|at| code[*at..].find('{') < code[*at..].find(';'))
}

/// Replaces comments, strings and character literals by spaces. Line breaks are kept.
pub(crate) fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(bytes, at);
        for byte in &mut code[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end.max(at + 1);
    }
    String::from_utf8(code).unwrap()
}

/// Returns the end of the comment, string or character literal that begins at `at`, or `at` if none begins there.
fn literal_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let after_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    if rest.starts_with(b"//") {
        return at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return at + find(rest, b"*/", 2).map_or(rest.len(), |found| found + 2);
    }
    if !after_word && (rest[0] == b'r' || rest.starts_with(b"br")) {
        let prefix = if rest[0] == b'b' { 2 } else { 1 };
        let hashes = rest[prefix..].iter().take_while(|byte| **byte == b'#').count();
        if rest.get(prefix + hashes) == Some(&b'"') {
            let close = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
            return at + find(rest, &close, prefix + hashes + 1).map_or(rest.len(), |found| found + close.len());
        }
    }
    if rest[0] == b'"' {
        return at + quoted_end(rest, b'"');
    }
    let is_character = rest[0] == b'\''
        && (rest.get(1) == Some(&b'\\')
            || find(rest, b"'", 2).is_some_and(|found| {
                std::str::from_utf8(&rest[1..found]).is_ok_and(|inner| inner.chars().count() == 1)
            }));
    if is_character { at + quoted_end(rest, b'\'') } else { at }
}

fn quoted_end(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

fn find(haystack: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    haystack.get(from..)?.windows(needle.len()).position(|window| window == needle).map(|found| found + from)
}
