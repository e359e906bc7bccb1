//! Units of limits (bytes, times, counts), and the parser of amounts.
//!
//! Amounts in `glovebox.toml`, node attributes and the command line are all parsed here.

/// Unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitUnit {
    /// Bytes; written as an integer or with `KiB`, `MiB`, `GiB`, `kB`, `MB`, `GB`.
    Bytes,
    /// Milliseconds; written as an integer or with `ms`, `s`, `m`, `h`.
    Milliseconds,
    /// A number of items; written as an integer.
    Count,
}

impl LimitUnit {
    /// Returns a description of the accepted values, for messages.
    pub fn expected(self) -> &'static str {
        match self {
            LimitUnit::Bytes => "a number of bytes such as `1048576` or `64MiB`",
            LimitUnit::Milliseconds => "a time such as `1500` (milliseconds), `10s` or `5m`",
            LimitUnit::Count => "a whole number",
        }
    }

    fn suffixes(self) -> &'static [(&'static str, u64)] {
        match self {
            LimitUnit::Bytes => &[
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
            LimitUnit::Milliseconds => {
                &[("", 1), ("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)]
            }
            LimitUnit::Count => &[("", 1)],
        }
    }

    /// Parses an amount in this unit. `None` if the text is not an amount, or if the amount does not fit 64 bits.
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
        let check =
            |unit: LimitUnit, text: &str, expected: Option<u64>| assert_eq!(unit.parse(text), expected, "{text}");
        check(LimitUnit::Bytes, "64MiB", Some(64 << 20));
        check(LimitUnit::Bytes, "1_000", Some(1_000));
        check(LimitUnit::Bytes, "2 kB", Some(2_000));
        check(LimitUnit::Bytes, "64mib", None);
        check(LimitUnit::Bytes, "-1", None);
        check(LimitUnit::Bytes, "", None);
        check(LimitUnit::Bytes, "99999999999999GiB", None);
        check(LimitUnit::Milliseconds, "10s", Some(10_000));
        check(LimitUnit::Milliseconds, "5m", Some(300_000));
        check(LimitUnit::Milliseconds, "1.5s", None);
        check(LimitUnit::Count, "40", Some(40));
        check(LimitUnit::Count, "40s", None);
    }
}
