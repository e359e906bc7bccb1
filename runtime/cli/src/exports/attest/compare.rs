//! Compares a statement that was attested with one that is computed from a run's folder, and finds the first
//! difference.
//!
//! Every attested value must be found. A later version of Glovebox may add values about the same run, so an added value
//! is not a difference.

use serde_json::Value;
use std::fmt;

/// A value that differs from the attested one.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    /// Place of the value, such as `run.receipts[0].code`.
    pub place: String,
    /// The attested value.
    pub attested: String,
    /// The value in the folder; `None` if there is none.
    pub found: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.found.as_deref().unwrap_or("nothing");
        write!(f, "`{}`: attested {}, found {found}", self.place, self.attested)
    }
}

/// Maximum number of characters of a value in a message.
const SHOWN_MAX: usize = 100;

/// Returns the first difference, in the order of the attested values; `None` if every attested value is found.
pub fn first(attested: &Value, found: &Value) -> Option<Difference> {
    differing(attested, Some(found), &mut String::new())
}

fn differing(attested: &Value, found: Option<&Value>, place: &mut String) -> Option<Difference> {
    let length = place.len();
    match (attested, found) {
        (Value::Object(attested), Some(Value::Object(found))) => attested.iter().find_map(|(key, value)| {
            place.truncate(length);
            place.push_str(if length == 0 { "" } else { "." });
            place.push_str(key);
            differing(value, found.get(key), place)
        }),
        (Value::Array(attested), Some(Value::Array(others))) if attested.len() == others.len() => {
            attested.iter().zip(others).enumerate().find_map(|(at, (value, found))| {
                place.truncate(length);
                place.push_str(&format!("[{at}]"));
                differing(value, Some(found), place)
            })
        }
        (Value::Array(attested), Some(Value::Array(others))) => Some(Difference {
            place: std::mem::take(place),
            attested: format!("{} values", attested.len()),
            found: Some(others.len().to_string()),
        }),
        (attested, Some(found)) if attested == found => None,
        (attested, found) => {
            Some(Difference { place: std::mem::take(place), attested: shown(attested), found: found.map(shown) })
        }
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_MAX) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_difference_is_named_and_more_is_none() {
        let attested = json!({ "a": [{ "b": 1 }, { "b": 2 }], "c": null });
        let message = |found: Value| first(&attested, &found).map(|difference| difference.to_string());
        assert_eq!(message(attested.clone()), None);
        assert_eq!(message(json!({ "a": [{ "b": 1, "new": 1 }, { "b": 2 }], "c": null, "d": 4 })), None);
        let two = message(json!({ "a": [{ "b": 1 }, { "b": 3 }], "c": 1 }));
        assert_eq!(two.as_deref(), Some("`a[1].b`: attested 2, found 3"));
        assert_eq!(message(json!({ "a": [{ "b": 1 }] })).as_deref(), Some("`a`: attested 2 values, found 1"));
        let gone = message(json!({ "a": [{ "b": 1 }, {}] }));
        assert_eq!(gone.as_deref(), Some("`a[1].b`: attested 2, found nothing"));
        let absent = json!({ "a": [{ "b": 1 }, { "b": 2 }] });
        assert_eq!(message(absent).as_deref(), Some("`c`: attested null, found nothing"));
    }
}
