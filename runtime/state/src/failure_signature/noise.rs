//! Noise: the parts of a message that differ between repetitions of the same failure. The text is read once, from start
//! to end.
//!
//! Noise is what a clock, a counter, a generator of names or the terminal made: times, durations, sizes, counters,
//! hashes, UUIDs, addresses, ports, process numbers, temporary names, line numbers and escape sequences. All of it
//! becomes the same mark, because one value can be written in several ways: a hash without letters is also a number.
//!
//! A number is no noise if it is part of a name (`test_2`, `E0308`), or if it says what failed (`exit code 2`).

mod shapes;
mod terminal;
mod words;

use shapes::ends_word;

/// Stands for noise.
const MARK: &str = "<n>";

/// Maximum number of digits of a number that belongs to the name before it: `step-3`.
const SUFFIX_DIGITS_MAX: usize = 3;

/// Maximum length of a number with its signs and units. Something longer is a name.
const NUMBER_BYTES_MAX: usize = 64;

/// Maximum length of the parameters of a test in its name.
const TEST_NAME_BYTES_MAX: usize = 256;

/// Minimum number of digits of a number within a name that a clock or a generator made: `run_1732885103`.
const STAMP_DIGITS_MIN: usize = 6;

/// Folders of temporary files. Every name in them is temporary.
const TEMPORARY_FOLDERS: [&str; 5] = ["/tmp/", "/var/tmp/", "/private/tmp/", "/var/folders/", "/dev/shm/"];

/// Returns a text in lower case and without noise. Runs of white space become one space.
pub(super) fn without(text: &str) -> String {
    let shown = terminal::shown(text);
    let plain = String::with_capacity(shown.len());
    let mut reader = Reader {
        text: &shown,
        at: 0,
        plain,
        lower: String::new(),
        last: String::new(),
        expects_code: false,
        named_until: 0,
    };
    while let Some(first) = reader.rest().chars().next() {
        match first {
            _ if first.is_whitespace() => reader.space(),
            _ if first.is_alphanumeric() || first == '_' => reader.word(),
            _ => reader.sign(first),
        }
    }
    reader.plain.truncate(reader.plain.trim_end().len());
    reader.plain
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    plain: String,
    /// The current word, in lower case.
    lower: String,
    /// The word before it, in lower case.
    last: String,
    /// True if the next number says what failed.
    expects_code: bool,
    /// Numbers before this position are part of the name of a test.
    named_until: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Returns the character before the current position.
    fn before(&self) -> Option<char> {
        self.text[..self.at].chars().next_back()
    }

    fn take(&mut self, length: usize) {
        self.at += length;
    }

    /// Takes noise. Numbers that only signs separate are one number: `12:58:23`, `3/50`.
    fn noise(&mut self, length: usize) {
        self.take(length);
        self.expects_code = false;
        let joined = self.plain.trim_end_matches([' ', ':', '-', '/', '.', ',', '+']);
        match joined.ends_with(MARK) && self.plain.len() - joined.len() <= 2 {
            true => self.plain.truncate(joined.len()),
            false => self.plain.push_str(MARK),
        }
    }

    fn space(&mut self) {
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
        self.expects_code &= !rest[..length].contains('\n');
        if !self.plain.is_empty() && !self.plain.ends_with(' ') {
            self.plain.push(' ');
        }
        self.take(length);
    }

    /// Takes a character that is not part of a word.
    fn sign(&mut self, first: char) {
        let rest = self.rest();
        if let Some(length) = shapes::bar(rest) {
            self.plain.push(first);
            self.take(1);
            return self.noise(length - 1);
        }
        if shapes::is_progress_sign(first) {
            let length = rest.find(|c| !shapes::is_progress_sign(c) && c != ' ').unwrap_or(rest.len());
            return self.take(length);
        }
        let follows_word = self.before().is_some_and(|c| c.is_alphanumeric() || c == '_');
        let folder = TEMPORARY_FOLDERS.iter().find(|folder| !follows_word && rest.starts_with(**folder));
        if let Some(folder) = folder {
            return self.temporary_file(folder);
        }
        if let Some(length) =
            rest.starts_with("::").then(|| shapes::colon_address(rest)).flatten().filter(|_| !follows_word)
        {
            return self.noise(length);
        }
        let next = rest[first.len_utf8()..].chars().next();
        self.expects_code &=
            matches!(first, ':' | '=' | '(' | '[' | '#' | '"' | '\'' | '`' | ',' | '/') && next != Some('/');
        if matches!(first, '+' | '-') && next.is_some_and(|c| c.is_ascii_digit()) && !self.is_after_name() {
            return self.take(1);
        }
        self.push_sign(first);
    }

    /// Returns true after a character that joins a number to a name, as in `step-3`.
    fn is_after_name(&self) -> bool {
        self.plain.chars().next_back().is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ')' | ']' | '-'))
    }

    /// Takes a run of one sign. Long runs fill lines, and their length depends on the numbers beside them.
    fn push_sign(&mut self, first: char) {
        let length = self.rest().find(|c| c != first).unwrap_or(self.rest().len());
        let count = (length / first.len_utf8()).min(3);
        self.plain.extend(std::iter::repeat_n(first, count));
        self.take(length);
    }

    fn temporary_file(&mut self, folder: &str) {
        self.plain.push_str(folder);
        self.take(folder.len());
        let ends = |c: char| c.is_whitespace() || "/\"'`:,;()[]<>".contains(c);
        let length = self.rest().find(ends).unwrap_or(self.rest().len());
        if length > 0 {
            self.noise(length);
        }
    }

    fn word(&mut self) {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let word = &rest[..end];
        let address = || shapes::uuid(rest).or_else(|| shapes::colon_address(rest));
        if let Some(length) = address().or_else(|| shapes::iso_duration(rest)) {
            return self.noise(length);
        }
        std::mem::swap(&mut self.lower, &mut self.last);
        self.lower.clear();
        self.lower.push_str(word);
        self.lower.make_ascii_lowercase();
        if word.starts_with(|c: char| c.is_ascii_digit()) && self.number() {
            return;
        }
        self.name(word);
    }

    /// Takes a number with its unit. Returns false if the word is a name that begins with a digit.
    fn number(&mut self) -> bool {
        let rest = self.rest();
        let Some(number) = Number::at_start(rest) else { return false };
        if number.is_plain && self.is_kept(&rest[..number.length]) {
            self.plain.push_str(&rest[..number.length]);
            self.take(number.length);
        } else {
            self.noise(number.length);
            let unit = spaced_unit(self.rest());
            self.take(unit);
        }
        true
    }

    /// Returns true if a number is not noise.
    fn is_kept(&self, number: &str) -> bool {
        let last = self.last.as_str();
        let rest = &self.rest()[number.len()..];
        let is_amount = rest.starts_with('%')
            || spaced_unit(rest) > 0
            || rest.strip_prefix('/').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if self.at < self.named_until || is_amount {
            return !is_amount;
        }
        let mut before = self.plain.chars().rev();
        let is_suffix = before.next() == Some('-') && before.next().is_some_and(|c| c.is_alphanumeric() || c == '_');
        let is_error =
            || last == "error" && self.plain.ends_with("error ") && (rest.is_empty() || rest.starts_with([')', '\n']));
        self.expects_code || is_suffix && number.len() <= SUFFIX_DIGITS_MAX && !words::is_counted(last) || is_error()
    }

    fn name(&mut self, word: &str) {
        let lower = std::mem::take(&mut self.lower);
        if let Some(length) = self.noise_of_name(word, &lower) {
            self.noise(length);
        } else {
            self.test_name(word);
            self.parts(word, &lower);
            self.take(word.len());
            self.expects_code = words::names_a_code(&lower) || self.expects_code && words::is_filler(&lower);
        }
        self.lower = lower;
    }

    /// Returns the length of the noise that begins with this word, if the whole word is noise.
    fn noise_of_name(&self, word: &str, lower: &str) -> Option<usize> {
        let rest = &self.rest()[word.len()..];
        let before = self.before();
        let is_separated = before.is_some_and(|c| ".-_@/".contains(c));
        let is_part = before.is_some_and(|c| ".-_".contains(c)) && word.len() >= 4;
        let is_hexadecimal = lower.strip_prefix("0x").is_some_and(|digits| u128::from_str_radix(digits, 16).is_ok());
        let is_noise = shapes::is_hash(lower)
            || is_hexadecimal && !self.expects_code
            || shapes::is_symbol_hash(lower)
            || before == Some('@') && shapes::is_short_hash(lower)
            || words::is_of_calendar(lower)
            || shapes::is_temporary(lower)
            || is_part && (rest.starts_with(".tmp") || self.plain.ends_with("tmp.") || self.plain.ends_with("tmp-"))
            || (is_separated || word.len() >= 20) && shapes::is_random(word, is_part && self.is_in_path());
        if is_noise && shapes::mangled(lower).is_none() {
            return Some(word.len());
        }
        let names_digest = matches!(lower, "sha1" | "sha256" | "sha384" | "sha512" | "md5");
        let digest = rest.strip_prefix(['-', ':']).filter(|_| names_digest).and_then(shapes::base64_digest);
        digest.map(|length| word.len() + 1 + length)
    }

    /// Returns true if the current word is part of a path.
    fn is_in_path(&self) -> bool {
        self.text[..self.at].chars().rev().take(200).take_while(|c| !c.is_whitespace()).any(|c| c == '/')
    }

    /// The parameters of a test and the name of a subtest are part of its name: `test_add[1-2]`, `TestAdd/2`.
    fn test_name(&mut self, word: &str) {
        let rest = &self.rest()[word.len()..];
        let is_subtest =
            word.strip_prefix("Test").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
        let end = match rest.chars().next() {
            Some('[') if word.starts_with("test") => start(rest).find([']', '\n']),
            Some('/') if is_subtest => start(rest).find(|c: char| c.is_whitespace() || c == ':'),
            _ => None,
        };
        self.named_until = end.map_or(self.named_until, |end| self.at + word.len() + end);
    }

    /// Adds the parts of a name that are not noise.
    fn parts(&mut self, word: &str, lower: &str) {
        if !word.is_ascii() {
            return self.plain.extend(word.chars().flat_map(char::to_lowercase));
        }
        if let Some(stem) = shapes::mangled(lower) {
            return self.plain.push_str(stem);
        }
        if self.expects_code {
            return self.plain.push_str(lower);
        }
        if !lower.contains('_') {
            return self.glued(lower);
        }
        let in_path = self.is_in_path();
        let mut parts = word.split('_').zip(lower.split('_')).peekable();
        let (mut is_first, mut is_of_date, mut last) = (true, false, "");
        while let Some((part, lower)) = parts.next() {
            if !is_first {
                self.plain.push('_');
            }
            let is_number = !lower.is_empty() && lower.bytes().all(|b| b.is_ascii_digit());
            is_of_date = is_number
                && (is_of_date && lower.len() == 2
                    || is_year(lower) && parts.peek().is_some_and(|(_, next)| is_two_digits(next)));
            let is_stamp = is_number && (lower.len() >= STAMP_DIGITS_MIN || words::is_counted(last));
            let is_noise =
                is_of_date || is_stamp || shapes::is_hash(lower) || !is_first && shapes::is_random(part, in_path);
            match is_noise {
                true => self.plain.push_str(MARK),
                false => self.glued(lower),
            }
            (is_first, last) = (false, lower);
        }
    }

    /// Adds a part of a name. Its last digits are noise after `worker` and the like, or if there are many of them.
    fn glued(&mut self, lower: &str) {
        let stem = lower.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = lower.len() - stem.len();
        match digits > 0 && !stem.is_empty() && (digits >= STAMP_DIGITS_MIN || words::is_counted(stem)) {
            true => self.plain.extend([stem, MARK]),
            false => self.plain.push_str(lower),
        }
    }
}

/// Returns the part of a text in which the end of a test's name is searched. A text has many tests, so it is not read to its
/// end for each.
fn start(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEST_NAME_BYTES_MAX)]
}

fn is_year(digits: &str) -> bool {
    digits.len() == 4 && (digits.starts_with("19") || digits.starts_with("20"))
}

fn is_two_digits(text: &str) -> bool {
    text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit())
}

/// Returns the length of the unit that follows a number after a space, with the space.
fn spaced_unit(rest: &str) -> usize {
    let Some(rest) = rest.strip_prefix(' ') else { return 0 };
    let end = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
    // The longest unit has 12 letters.
    let is_unit = (1..=12).contains(&end) && ends_word(rest, end) && words::is_spaced_unit(&rest[..end].to_lowercase());
    if is_unit { 1 + end } else { 0 }
}

/// A number with its units: `1m30.5s`, `20261129T125823Z`, `1.5e-3`.
struct Number {
    length: usize,
    /// True if it consists of digits only, or of the digits of a version.
    is_plain: bool,
}

impl Number {
    /// Returns the number at the start of a text. `None` if the digits are part of a name.
    fn at_start(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        let (mut at, mut is_plain) = (0, true);
        loop {
            let is_joined = |at: usize| bytes.get(at).is_some_and(|b| b".,'_".contains(b)) && digit(at + 1);
            while at < NUMBER_BYTES_MAX && (digit(at) || is_joined(at)) {
                at += 1;
            }
            if at >= NUMBER_BYTES_MAX {
                return None;
            }
            let rest = &text[at..];
            let letters = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
            if letters == 0 {
                return (!rest.starts_with('_')).then_some(Self { length: at, is_plain });
            }
            let unit = rest[..letters].to_lowercase();
            let sign = usize::from(matches!(bytes.get(at + letters), Some(b'-' | b'+')));
            let exponent = unit == "e" && digit(at + letters + sign);
            if !exponent && !words::is_unit(&unit) {
                return None;
            }
            is_plain = false;
            at += letters + if exponent { sign } else { 0 };
            if !digit(at) {
                return ends_word(text, at).then_some(Self { length: at, is_plain });
            }
        }
    }
}
