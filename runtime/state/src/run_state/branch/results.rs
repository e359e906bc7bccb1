//! The results of the branches of a parallel node, as `parallel.results` in the context of the parent branch
//! (spec §4.8).
//!
//! The list is part of every checkpoint, so the total size of its texts is limited. Short texts are complete, and the
//! remaining size is shared equally among the long ones. The complete answer of a branch (see `ANSWER_KEYS`) has a
//! separate key, whose value is a reference to a blob that the attempt stored.

use super::parallel::{EndedBranch, OpenParallel};
use crate::context::ANSWER_KEYS;
use glovebox_record::StoredValue;
use serde_json::{Map, Value, json};

/// The context key of the list.
pub(crate) const RESULTS: &str = "parallel.results";
/// The prefix of the context keys of complete answers.
pub(crate) const WHOLE_ANSWERS: &str = "parallel.results.";

/// Maximum number of results in the list.
const RESULTS_MAX: usize = 256;
/// Maximum size of the list as JSON without the names in `cut` and `whole`, bytes.
const RESULTS_BYTES_MAX: usize = 48 * 1024;
/// Maximum size of the results without their texts, bytes. Results beyond this size have no `changed`.
const PATHS_BYTES_MAX: usize = RESULTS_BYTES_MAX / 2;
/// Maximum number of paths of a branch in the list.
const PATHS_MAX: usize = 50;
/// Minimum size of an answer as JSON that has a separate key, bytes. This applies even if the list contains the
/// complete answer, because a prompt may show less.
const OWN_KEY_BYTES_MIN: usize = 1024;
/// The mark at the end of a text that was cut.
const CUT: &str = "…";

/// The list, and the references to complete answers with their keys.
pub(crate) struct Results {
    pub(crate) list: Value,
    pub(crate) whole: Vec<(String, Value)>,
}

/// One result before its texts are cut.
struct BranchResult {
    fields: Map<String, Value>,
    texts: Vec<Text>,
}

/// A text of a result.
#[derive(Default)]
struct Text {
    name: &'static str,
    text: String,
    /// The key and the reference of the complete text; `None` if it is not stored.
    whole: Option<(String, Value)>,
    /// True if the text gets a separate key even if the list contains all of it.
    has_own_key: bool,
    /// True if `text` is only the beginning of a text that is too large for the context.
    is_head: bool,
}

impl OpenParallel {
    /// Returns the results of branches for stages and conditions.
    pub(crate) fn results(&self) -> Results {
        let mut fixed_bytes = 0;
        let mut results: Vec<BranchResult> = Vec::new();
        for one in self.in_order().into_iter().take(RESULTS_MAX) {
            let mut result = BranchResult::new(one);
            if fixed_bytes + result.fixed_bytes() > PATHS_BYTES_MAX {
                result.fields.remove("changed");
            }
            fixed_bytes += result.fixed_bytes();
            results.push(result);
        }
        let bytes = results.iter().flat_map(|result| &result.texts).map(|text| escaped_bytes(&text.text)).collect();
        let share = share(bytes, RESULTS_BYTES_MAX.saturating_sub(fixed_bytes));
        let mut whole = Vec::new();
        let list = results.into_iter().map(|result| result.cut_to(share, &mut whole)).collect();
        Results { list, whole }
    }
}

impl BranchResult {
    fn new(one: &EndedBranch) -> Self {
        let end = &one.end;
        let reason = end.failure.as_ref().map_or("", |failure| &failure.reason);
        let changed: Vec<&str> = one.branch.changes.keys().map(|path| path.as_str()).take(PATHS_MAX).collect();
        let fields = [
            ("id", json!(end.branch)),
            ("node", json!(one.first)),
            ("outcome", json!(end.outcome)),
            ("score", json!(end.score)),
            ("changed", json!(changed)),
        ];
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let said = [("notes", end.notes.as_str()), ("failure_reason", reason)];
        let said = said.map(|(name, text)| Text { name, text: text.to_owned(), ..Text::default() });
        let answers = ANSWER_KEYS.into_iter().filter_map(|key| Text::of_answer(one, key));
        Self { fields, texts: said.into_iter().chain(answers).collect() }
    }

    /// Returns the size of the result as JSON with empty texts, bytes.
    fn fixed_bytes(&self) -> usize {
        let names = self.texts.iter().map(|text| text.name.len() + r#""":"","#.len());
        Value::Object(self.fields.clone()).to_string().len() + names.sum::<usize>()
    }

    fn cut_to(mut self, share: usize, whole: &mut Vec<(String, Value)>) -> Value {
        let (before, mut names) = (whole.len(), Vec::new());
        for Text { name, text, whole: stored, has_own_key, is_head } in self.texts {
            let is_long = escaped_bytes(&text) > share;
            whole.extend(stored.filter(|_| is_long || has_own_key));
            names.extend((is_long || is_head).then_some(name));
            self.fields.insert(name.to_owned(), Value::String(if is_long { cut(text, share) } else { text }));
        }
        if !names.is_empty() {
            self.fields.insert("cut".to_owned(), json!(names));
        }
        let keys: Vec<&str> = whole[before..].iter().map(|(key, _)| key.as_str()).collect();
        if !keys.is_empty() {
            self.fields.insert("whole".to_owned(), json!(keys));
        }
        Value::Object(self.fields)
    }
}

impl Text {
    /// Returns the last answer of a branch under a context key.
    fn of_answer(one: &EndedBranch, key: &'static str) -> Option<Self> {
        let answers = &one.branch.answers;
        let value = answers.get(key)?;
        let name = if key == "tool.output" { "tool_output" } else { key };
        let own_key = format!("{WHOLE_ANSWERS}{}.{name}", one.end.branch);
        if let Some(stored) = answers.stored(key) {
            let whole = Some((own_key, value.clone()));
            return Some(Self { name, text: stored.head + CUT, whole, has_own_key: true, is_head: true });
        }
        let (json, text) = (value.to_string(), answers.text(key));
        let whole = Some((own_key, StoredValue::new(&json, &text).reference()));
        Some(Self { name, text, whole, has_own_key: json.len() > OWN_KEY_BYTES_MIN, is_head: false })
    }
}

/// Returns the maximum size of each text, so that all texts together have at most `bytes_max` bytes.
pub fn share(mut bytes: Vec<usize>, bytes_max: usize) -> usize {
    bytes.sort_unstable();
    let mut left = bytes_max;
    for (index, of_text) in bytes.iter().enumerate() {
        let equal = left / (bytes.len() - index);
        if *of_text > equal {
            return equal;
        }
        left -= of_text;
    }
    usize::MAX
}

/// Returns the beginning of a text, with at most `bytes_max` bytes in JSON. The mark [`CUT`] at the end shows that the
/// text was cut.
fn cut(mut text: String, bytes_max: usize) -> String {
    let room = bytes_max.saturating_sub(CUT.len());
    let mut bytes = 0;
    let end = text.char_indices().find(|(_, character)| {
        bytes += escaped_len(*character);
        bytes > room
    });
    text.truncate(end.map_or(text.len(), |(at, _)| at));
    if bytes_max >= CUT.len() { text + CUT } else { text }
}

fn escaped_bytes(text: &str) -> usize {
    text.chars().map(escaped_len).sum()
}

/// Returns the size of a character in a JSON string, bytes.
fn escaped_len(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => character.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_are_whole_and_long_ones_share_the_rest() {
        for (bytes, bytes_max, expected) in [
            (vec![], 10, usize::MAX),
            (vec![3, 4], 7, usize::MAX),
            (vec![3, 4], 6, 3),
            (vec![100, 1, 100], 51, 25),
            (vec![5, 5], 0, 0),
        ] {
            let shared = share(bytes.clone(), bytes_max);
            assert_eq!(shared, expected, "{bytes:?} within {bytes_max}");
            assert!(bytes.iter().map(|of_text| of_text.min(&shared)).sum::<usize>() <= bytes_max);
        }
    }

    #[test]
    fn a_text_is_cut_by_its_bytes_in_json() {
        for text in ["a\nb\"c\\d", "ä\u{1}ö\u{8}", "…………", "\u{1f600}\u{7f}\0", ""] {
            let whole = json!(text).to_string().len() - 2;
            assert_eq!(escaped_bytes(text), whole, "{text:?}");
            for bytes_max in 0..whole {
                let short = cut(text.to_owned(), bytes_max);
                assert!(json!(short).to_string().len() - 2 <= bytes_max, "{text:?} within {bytes_max}: {short:?}");
                let kept = short.strip_suffix(CUT);
                assert_eq!(kept.is_some(), bytes_max >= CUT.len(), "{text:?} within {bytes_max}: {short:?}");
                let Some(kept) = kept else { continue };
                let rest = text.strip_prefix(kept).unwrap();
                let next = rest.chars().next().map_or(usize::MAX, escaped_len);
                let room = bytes_max - CUT.len() - escaped_bytes(kept);
                assert!(next > room, "{text:?} within {bytes_max}: {short:?} could be longer");
            }
        }
    }
}
