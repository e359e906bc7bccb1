//! The shapes of noise that a single word has: hashes, identifiers, addresses, durations and random names.

/// Minimum number of hexadecimal digits that are treated as a hash.
const HASH_MIN: usize = 7;

/// English words that consist of hexadecimal digits.
const HEX_WORDS: [&str; 3] = ["acceded", "defaced", "effaced"];

/// Maximum length of an address: eight groups of four digits, and the signs between and after them.
const ADDRESS_BYTES_MAX: usize = 40;

/// Groups of a UUID, in hexadecimal digits.
const UUID_GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Returns true for a hash: at least seven hexadecimal digits. `word` is in lower case.
pub(super) fn is_hash(word: &str) -> bool {
    word.len() >= HASH_MIN && is_hex(word) && !HEX_WORDS.contains(&word)
}

/// Returns true for the hash at the end of a name of Rust: `h` and 16 hexadecimal digits.
pub(super) fn is_symbol_hash(word: &str) -> bool {
    word.len() == 17 && word.strip_prefix('h').is_some_and(is_hex)
}

/// Returns a mangled name of C++ or Rust without the hash at its end; `None` for another name. `word` is in lower case.
pub(super) fn mangled(word: &str) -> Option<&str> {
    let name = word.strip_prefix("_zn").map(|_| word)?;
    let hashed =
        name.strip_suffix('e').and_then(|name| name.len().checked_sub(17).and_then(|at| name.split_at_checked(at)));
    Some(hashed.filter(|(_, hash)| is_symbol_hash(hash)).map_or(name, |(stem, _)| stem))
}

/// Returns true for the short hash after `@`, as Java prints it.
pub(super) fn is_short_hash(word: &str) -> bool {
    word.len() >= 5 && is_hex(word)
}

/// Returns the length of the UUID at the start of a text.
pub(super) fn uuid(text: &str) -> Option<usize> {
    if text.as_bytes().get(UUID_GROUPS[0]) != Some(&b'-') {
        return None;
    }
    let mut at = 0;
    for (index, length) in UUID_GROUPS.into_iter().enumerate() {
        at += usize::from(index > 0);
        let is_separated = index == 0 || text.as_bytes().get(at - 1) == Some(&b'-');
        is_separated.then(|| text.get(at..at + length)).flatten().filter(|group| is_hex(group))?;
        at += length;
    }
    ends_word(text, at).then_some(at)
}

/// Returns the length of the IPv6 or MAC address at the start of a text.
pub(super) fn colon_address(text: &str) -> Option<usize> {
    // Every word is tried, so a longer text is not read to its end.
    let is_of_address = |b: u8| b.is_ascii_hexdigit() || b == b':';
    let length = text.bytes().take(ADDRESS_BYTES_MAX + 1).take_while(|b| is_of_address(*b)).count();
    if length > ADDRESS_BYTES_MAX || !text[..length].contains(':') {
        return None;
    }
    let address = text[..length].trim_end_matches(':');
    let groups: Vec<&str> = address.split(':').collect();
    let has_digit = |group: &&str| group.bytes().any(|b| b.is_ascii_digit());
    let is_whole = groups.len() >= 4 || address.contains("::") && (groups[0].is_empty() || has_digit(&groups[0]));
    let fits = groups.len() >= 3 && groups.len() <= 8 && groups.iter().all(|group| group.len() <= 4);
    (fits && is_whole && address.contains(|c: char| c != ':') && ends_word(text, address.len()))
        .then_some(address.len())
}

/// Returns the length of the ISO 8601 duration at the start of a text: `PT1M30.5S`.
pub(super) fn iso_duration(text: &str) -> Option<usize> {
    let mut rest = text.strip_prefix(['P', 'p'])?;
    let mut parts = 0;
    loop {
        rest = rest.strip_prefix(['T', 't']).unwrap_or(rest);
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let unit = rest[digits..].chars().next().is_some_and(|c| "YMWDHSymwdhs".contains(c));
        if digits == 0 || !unit {
            break;
        }
        parts += 1;
        rest = &rest[digits + 1..];
    }
    let length = text.len() - rest.len();
    (parts > 0 && ends_word(text, length)).then_some(length)
}

/// Returns the length of the Base64 text at the start of a text, if it is long enough for a digest.
pub(super) fn base64_digest(text: &str) -> Option<usize> {
    let length = text.find(|c: char| !c.is_ascii_alphanumeric() && !"+/=_-".contains(c)).unwrap_or(text.len());
    (length >= 20).then_some(length)
}

/// Returns true for a word that a random generator made: its letters and digits, or its large and small letters,
/// alternate as they do in no name. At the end of a name in a path (`ends_file_name`), fewer alternations are enough.
pub(super) fn is_random(word: &str, ends_file_name: bool) -> bool {
    if word.len() < 5 || !word.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return false;
    }
    let digit = |b: &u8| b.is_ascii_digit();
    let pairs = || word.as_bytes().windows(2);
    let mixes = pairs().filter(|pair| digit(&pair[0]) != digit(&pair[1])).count();
    let has_both = word.bytes().any(|b| b.is_ascii_uppercase()) && word.bytes().any(|b| b.is_ascii_lowercase());
    let has_inner_digit = pairs().any(|pair| digit(&pair[0]) && !digit(&pair[1]));
    let odd = odd_humps(word);
    mixes >= 4
        || has_both && odd >= 2
        || ends_file_name && word.len() <= 12 && has_both && (odd >= 1 || has_inner_digit)
        || ends_file_name && mixes >= 3
        || word.len() >= 20 && mixes >= 3
}

/// Returns how many parts of a word in camel case have no vowel or only one letter. A run of large letters is an
/// acronym.
fn odd_humps(word: &str) -> usize {
    let bytes = word.as_bytes();
    let (mut odd, mut at) = (0, 0);
    while at < bytes.len() {
        let upper = bytes[at..].iter().take_while(|b| b.is_ascii_uppercase()).count();
        let lower = bytes[at + upper..].iter().take_while(|b| b.is_ascii_lowercase()).count();
        let hump = &word[at + upper.saturating_sub(1)..at + upper + lower];
        let has_vowel = hump.bytes().any(|b| b"aeiouyAEIOUY".contains(&b));
        let is_acronym = upper >= 2 && lower == 0;
        odd += usize::from(!hump.is_empty() && !is_acronym && (!has_vowel || hump.len() == 1));
        at += (upper + lower).max(1);
    }
    odd
}

/// Returns true for the name of a temporary file: `tmpab12cd34`, `.tmpAbC123`. `word` is in lower case.
pub(super) fn is_temporary(word: &str) -> bool {
    const NAMED: [&str; 5] = ["file", "dir", "path", "name", "fs"];
    let is_number = |rest: &str| rest.len() >= 4 && rest.bytes().any(|b| b.is_ascii_digit());
    match (word.strip_prefix("tmp"), word.strip_prefix("temp")) {
        (Some(rest), _) => rest.len() >= 6 && !NAMED.iter().any(|name| rest.starts_with(name)) || is_number(rest),
        (None, Some(rest)) => is_number(rest),
        (None, None) => false,
    }
}

/// Returns the length of the progress bar at the start of a text, without its closing character: `[===>   ]`.
pub(super) fn bar(text: &str) -> Option<usize> {
    let close = match text.chars().next()? {
        '[' => ']',
        '|' => '|',
        '(' => ')',
        _ => return None,
    };
    let end = text[1..].find(|c| c == close || !is_of_bar(c))? + 1;
    (text[end..].starts_with(close) && end >= 4).then_some(end)
}

fn is_of_bar(c: char) -> bool {
    matches!(c, '=' | '#' | '>' | '-' | '.' | ' ' | '*' | '+') || is_progress_sign(c)
}

/// Returns true for block elements, Braille patterns and other signs of progress bars and spinners.
pub(super) fn is_progress_sign(c: char) -> bool {
    matches!(c, '\u{2800}'..='\u{28ff}' | '\u{2580}'..='\u{259f}' | '\u{25d0}'..='\u{25d7}' | '━' | '╸' | '╺' | '●' | '○')
}

/// Returns true if a word ends at this position of a text.
pub(super) fn ends_word(text: &str, at: usize) -> bool {
    text[at..].chars().next().is_none_or(|c| !c.is_alphanumeric() && c != '_')
}
