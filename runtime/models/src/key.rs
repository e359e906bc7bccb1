//! The key of a provider. It is written only into the head of a request.
//!
//! A key has no `Display`, its `Debug` does not show it, and it can be removed from texts that a provider sent.

use std::fmt;

/// Minimum length of a key that is searched for in texts, in bytes. A shorter key would be found by chance.
const SEARCHED_BYTES_MIN: usize = 8;

/// The secret by which a provider authenticates the operator.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

/// Why a text cannot be a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text is empty or consists of white space.
    #[error("it is empty")]
    Empty,
    /// The text contains a character that a header cannot contain.
    #[error("it contains a space, a line break or another character that is not printable ASCII")]
    Unprintable,
}

impl Key {
    /// Parses a key. Surrounding white space is removed.
    pub fn parse(text: impl AsRef<str>) -> Result<Self, KeyError> {
        let text = text.as_ref().trim();
        match text {
            "" => Err(KeyError::Empty),
            text if text.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(Self(text.to_owned())),
            _ => Err(KeyError::Unprintable),
        }
    }

    /// Returns the secret for the head of a request.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Removes the key from a text.
    pub fn removed_from(&self, text: String) -> String {
        if self.0.len() < SEARCHED_BYTES_MIN || !text.contains(&self.0) {
            return text;
        }
        text.replace(&self.0, "[key]")
    }

    /// Removes the key from a text that may continue, and cuts off an end with which the key could begin. The result is a prefix of
    /// what [`removed_from`](Self::removed_from) returns for every continuation.
    pub(crate) fn removed_from_prefix(&self, mut text: String) -> String {
        if self.0.len() >= SEARCHED_BYTES_MIN {
            let rest = text.match_indices(&self.0).last().map_or(0, |(at, key)| at + key.len());
            let first = rest.max((text.len() + 1).saturating_sub(self.0.len()));
            let cut = (first..text.len()).find(|at| self.0.as_bytes().starts_with(&text.as_bytes()[*at..]));
            // The key has only ASCII characters, so a cut is never inside of another one.
            text.truncate(cut.unwrap_or(text.len()));
        }
        self.removed_from(text)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_printable_word_and_shows_nothing() {
        let key = Key::parse(" sk-0123456789\n").unwrap();
        assert_eq!((key.reveal(), format!("{key:?}")), ("sk-0123456789", "Key(..)".to_owned()));
        assert_eq!(key.removed_from("bad sk-0123456789!".to_owned()), "bad [key]!");
        assert_eq!(Key::parse(" \n"), Err(KeyError::Empty));
        assert_eq!(Key::parse("a\r\nb: c"), Err(KeyError::Unprintable));
    }

    #[test]
    fn what_is_shown_of_an_unfinished_text_is_a_prefix_of_the_finished_one() {
        for (key, text) in [
            ("sk-0123456789", "key sk-0123456789, ss sk-01 sk-0123456789sk-01234567"),
            ("aabaabaab", "aabaabaabaabaab aabaabaaabaabaab\u{e4}aab"),
            ("short", "short sho"),
        ] {
            let key = Key::parse(key).unwrap();
            for length in (0..=text.len()).filter(|length| text.is_char_boundary(*length)) {
                let shown = key.removed_from_prefix(text[..length].to_owned());
                for end in (length..=text.len()).filter(|end| text.is_char_boundary(*end)) {
                    let finished = key.removed_from(text[..end].to_owned());
                    assert!(finished.starts_with(&shown), "{shown:?} is not the beginning of {finished:?}");
                }
            }
        }
        let key = Key::parse("sk-0123456789").unwrap();
        let shown = |text: &str| key.removed_from_prefix(text.to_owned());
        assert_eq!([shown("a sk-012345678"), shown("a sk-0123456789"), shown("a sk-0x")], ["a ", "a [key]", "a sk-0x"]);
    }
}
