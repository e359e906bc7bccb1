//! Makes untrusted text safe for a terminal, and cuts it to a length.
//!
//! `glovebox_names` decides for all crates which characters could deceive a reader. This module adds only what a
//! terminal needs.

pub use glovebox_names::visible::{block, dot, json, line};

/// Returns the first line of an untrusted text. If it is longer than `characters_max`, it is cut and ends with a mark.
pub fn summary(text: &str, characters_max: usize) -> String {
    let first = text.trim_start().lines().next().unwrap_or("");
    let safe = line(first);
    if safe.chars().count() <= characters_max {
        return safe.into_owned();
    }
    let mut short: String = safe.chars().take(characters_max.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_one_short_line() {
        assert_eq!(summary("\n  first\u{7} line\nsecond", 40), "first\\x07 line");
        assert_eq!(summary("abcdef", 4), "abc…");
    }
}
