//! Texts of the component in messages: escaped, and cut to a length that can be read.

use glovebox_names::visible;

/// Maximum length of one quoted text, in characters.
const QUOTED_CHARS_MAX: usize = 120;
/// Maximum length of a whole detail, in characters.
const DETAIL_CHARS_MAX: usize = 2000;

/// Returns a text on one line, escaped, cut and between backticks.
pub(crate) fn quoted(text: &str) -> String {
    // A character that is escaped takes several, so the text is cut before and after.
    let short: String = text.chars().take(QUOTED_CHARS_MAX + 1).collect();
    format!("`{}`", cut(&visible::line(&short), QUOTED_CHARS_MAX))
}

/// Returns a text of several lines, escaped and cut.
pub(crate) fn lines(text: &str) -> String {
    let short: String = text.chars().take(DETAIL_CHARS_MAX + 1).collect();
    cut(&visible::block(&short), DETAIL_CHARS_MAX)
}

fn cut(text: &str, characters_max: usize) -> String {
    match text.char_indices().nth(characters_max) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_a_component_is_short_and_visible() {
        assert_eq!(quoted("a\u{202e}\nb"), "`a\\u{202e}\\nb`");
        assert_eq!(quoted(&"é".repeat(500)).chars().count(), QUOTED_CHARS_MAX + 3);
        assert_eq!(lines(&"é".repeat(5000)).chars().count(), DETAIL_CHARS_MAX + 1);
    }
}
