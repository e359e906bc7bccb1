//! Amounts as people write them: bytes, times, counts.
//!
//! The one parser for `glovebox.toml`, node attributes and the command line.

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes; written as an integer or with `KiB`, `MiB`, `GiB`, `kB`, `MB`, `GB`.
    Bytes,
    /// Milliseconds; written as an integer or with `ms`, `s`, `m`, `h`.
    Milliseconds,
    /// Things; written as an integer.
    Count,
}

impl Unit {
    /// The unit that a limit's name ends in: `_bytes`, `_ms`, else a count.
    pub fn of_limit(name: &str) -> Self {
        match name.rsplit('_').next() {
            Some("bytes") => Self::Bytes,
            Some("ms") => Self::Milliseconds,
            _ => Self::Count,
        }
    }

    /// What would be accepted, for messages.
    pub fn expected(self) -> &'static str {
        match self {
            Unit::Bytes => "a number of bytes such as `1048576` or `64MiB`",
            Unit::Milliseconds => "a time such as `1500` (milliseconds), `10s` or `5m`",
            Unit::Count => "a whole number",
        }
    }

    fn suffixes(self) -> &'static [(&'static str, u64)] {
        match self {
            Unit::Bytes => &[
                ("", 1),
                ("B", 1),
                ("KiB", 1 << 10),
                ("MiB", 1 << 20),
                ("GiB", 1 << 30),
                ("kB", 1_000),
                ("KB", 1_000),
                ("MB", 1_000_000),
                ("GB", 1_000_000_000),
            ],
            Unit::Milliseconds => {
                &[("", 1), ("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)]
            }
            Unit::Count => &[("", 1)],
        }
    }

    /// Reads an amount in this unit; none when the text is not one or does not fit 64 bits.
    pub fn parse(self, text: &str) -> Option<u64> {
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
        let (digits, suffix) = text.split_at(split);
        if digits.is_empty() || digits.starts_with('_') || digits.ends_with('_') {
            return None;
        }
        let number: u64 = digits.replace('_', "").parse().ok()?;
        let (_, factor) = self.suffixes().iter().find(|(name, _)| *name == suffix.trim())?;
        number.checked_mul(*factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts() {
        let check = |unit: Unit, text: &str, expected: Option<u64>| assert_eq!(unit.parse(text), expected, "{text}");
        check(Unit::Bytes, "64MiB", Some(64 << 20));
        check(Unit::Bytes, "1_000", Some(1_000));
        check(Unit::Bytes, "2 kB", Some(2_000));
        check(Unit::Bytes, "64mib", None);
        check(Unit::Bytes, "-1", None);
        check(Unit::Bytes, "", None);
        check(Unit::Bytes, "99999999999999GiB", None);
        check(Unit::Milliseconds, "10s", Some(10_000));
        check(Unit::Milliseconds, "5m", Some(300_000));
        check(Unit::Milliseconds, "1.5s", None);
        check(Unit::Count, "40", Some(40));
        check(Unit::Count, "40s", None);
    }
}
