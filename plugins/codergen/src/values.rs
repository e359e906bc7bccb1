//! Large values of the pipeline's context. The prompt contains only their beginnings, and a tool reads them in parts.

use glovebox_plugin_sdk::{Stage, Value};

/// Length of a value's JSON, in bytes, above which the preamble contains only its beginning. The host uses the same number.
const LARGE_BYTES_MIN: usize = 60 * 1024;
/// Context key of the results of branches. If a prompt contains only the beginning of an answer, the whole answer has a key below this one.
const RESULTS: &str = "parallel.results";
/// Length of the results, in bytes, above which a prompt may contain only the beginnings of their texts.
const RESULTS_BYTES_MIN: usize = 1024;
/// Number of characters that one read returns by default.
const CHARS_DEFAULT: usize = 10_000;
/// Maximum number of characters that one read returns.
const CHARS_MAX: usize = 50_000;

/// Keys and texts of the values. For a JSON string the text is the string itself, and otherwise its JSON.
#[derive(Debug, Clone, Default)]
pub(crate) struct LargeValues(Vec<(String, String)>);

/// A part of a value, in characters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Index of the first character.
    pub(crate) offset: usize,
    /// Number of characters; `None` for the default.
    pub(crate) limit: Option<usize>,
}

/// The key of a context value, as the model names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<'a>(pub(crate) &'a str);

impl LargeValues {
    pub(crate) fn from_stage(stage: &Stage) -> Self {
        let text = |value: Value| match value {
            Value::String(text) => text,
            value => value.to_string(),
        };
        let values = stage.context_keys().filter_map(|key| Some((key.to_owned(), text(stage.context(key)?))));
        let bytes_min = |key: &str| match key.strip_prefix(RESULTS) {
            Some("") => RESULTS_BYTES_MIN,
            Some(rest) if rest.starts_with('.') => 0,
            _ => LARGE_BYTES_MIN,
        };
        Self(values.filter(|(key, text)| text.len() >= bytes_min(key)).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads a part of a value. The text begins with its position and the total length.
    ///
    /// # Errors
    /// There is no such value. The error text is a sentence for the model.
    pub(crate) fn read(&self, Key(key): Key<'_>, part: Part) -> Result<String, String> {
        let Some((_, text)) = self.0.iter().find(|(known, _)| known == key) else {
            let keys: Vec<_> = self.0.iter().map(|(known, _)| format!("`{known}`")).collect();
            return Err(format!("there is no large context value `{key}`, expected one of {}", keys.join(", ")));
        };
        let (all, limit) = (text.chars().count(), part.limit.unwrap_or(CHARS_DEFAULT).min(CHARS_MAX));
        let shown: String = text.chars().skip(part.offset).take(limit).collect();
        let (first, end) = (part.offset.min(all), part.offset.saturating_add(limit).min(all));
        Ok(format!("[characters {first} to {end} of {all}]\n{shown}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_plugin_sdk::testing;

    #[test]
    fn only_large_values_are_read_and_a_part_says_of_how_much() {
        let long = "é".repeat(LARGE_BYTES_MIN / 2) + "end";
        let stage: Stage = testing::stage("n").context("small", "x").context("big", long.as_str()).into();
        let values = LargeValues::from_stage(&stage);
        let read = |key: &str, offset, limit| values.read(Key(key), Part { offset, limit });
        let all = LARGE_BYTES_MIN / 2 + 3;
        assert_eq!(read("big", all - 4, Some(9)).unwrap(), format!("[characters {} to {all} of {all}]\néend", all - 4));
        assert_eq!(
            read("big", 0, Some(usize::MAX)).unwrap().chars().count(),
            all + format!("[characters 0 to {all} of {all}]\n").len()
        );
        assert_eq!(read("big", usize::MAX, None).unwrap(), format!("[characters {all} to {all} of {all}]\n"));
        assert_eq!(
            read("small", 0, None).unwrap_err(),
            "there is no large context value `small`, expected one of `big`"
        );
        assert!(LargeValues::from_stage(&Stage::from(testing::stage("n").context("small", "x"))).is_empty());
    }
}
