//! Parses untrusted JSON, and counts its values while it parses.
//!
//! A [`Value`] takes up to 80 times the bytes of its text, so a bound on the text does not bound the memory. [`read`] fails above
//! [`UNITS_MAX`]. [`read_within`] also asks its caller before each portion of units, so that documents that are read at the same
//! time can share one bound. The parser bounds the depth. This module does not know where a document comes from.

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
use std::fmt;

/// Maximum number of units of one document. A unit takes at most [`UNIT_BYTES`] of memory, in addition to the text of strings.
pub const UNITS_MAX: usize = 1_000_000;
/// Maximum memory of one unit, in bytes: that of a value in a list whose capacity has just been doubled.
pub const UNIT_BYTES: usize = 64;
/// Units of a value.
const VALUE: usize = 1;
/// Units of a list besides its items: for the list itself and its initial capacity.
const LIST: usize = 5;
/// Units of an object besides its members: for the object itself and one node of its tree.
const OBJECT: usize = 17;
/// Units of a member besides its value, because the name of a member is a separate string.
const MEMBER: usize = 2;
/// Number of units for which a caller is asked at a time.
pub const PORTION: usize = 4_096;

/// Why a document was not read.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The document has more than [`UNITS_MAX`] units.
    #[error("the JSON has too many values, expected at most {UNITS_MAX}; an object counts as {OBJECT} values")]
    TooManyValues,
    /// The bound that documents share is used up.
    #[error("too many JSON values are read at the same time; try again later")]
    NoRoom,
    /// The text is not JSON.
    #[error(transparent)]
    NotJson(serde_json::Error),
}

/// Reads a document of at most [`UNITS_MAX`] units.
///
/// # Errors
/// Returns an error if the text is not exactly one JSON value, or has too many values.
pub fn read(text: &[u8]) -> Result<Value, DocumentError> {
    read_within(text, &mut || true)
}

/// Reads a document that shares its memory bound with other documents. Calls `portion` before each [`PORTION`] of units, and
/// stops if `portion` returns false.
///
/// # Errors
/// As [`read`], and [`DocumentError::NoRoom`] if `portion` returned false.
pub fn read_within(text: &[u8], portion: &mut dyn FnMut() -> bool) -> Result<Value, DocumentError> {
    let counter = RefCell::new(Counter { units: 0, granted: 0, portion, exceeded: None });
    let mut parser = serde_json::Deserializer::from_slice(text);
    let found = Counted(&counter).deserialize(&mut parser).and_then(|value| parser.end().map(|()| value));
    let exceeded = counter.into_inner().exceeded;
    found.map_err(|error| exceeded.unwrap_or(DocumentError::NotJson(error)))
}

struct Counter<'p> {
    units: usize,
    granted: usize,
    portion: &'p mut dyn FnMut() -> bool,
    exceeded: Option<DocumentError>,
}

impl Counter<'_> {
    fn count(&mut self, units: usize) -> bool {
        self.units += units;
        if self.units > UNITS_MAX {
            self.exceeded = Some(DocumentError::TooManyValues);
        }
        while self.exceeded.is_none() && self.granted < self.units {
            self.granted += PORTION;
            if !(self.portion)() {
                self.exceeded = Some(DocumentError::NoRoom);
            }
        }
        self.exceeded.is_none()
    }
}

/// Reads one value with all values inside it.
#[derive(Clone, Copy)]
struct Counted<'c, 'p>(&'c RefCell<Counter<'p>>);

impl Counted<'_, '_> {
    fn count<E: Error>(self, units: usize) -> Result<(), E> {
        // `read_within` replaces this error with that of the counter.
        if self.0.borrow_mut().count(units) { Ok(()) } else { Err(E::custom("too many values")) }
    }

    fn leaf<E: Error>(self, value: Value) -> Result<Value, E> {
        self.count(VALUE).map(|()| value)
    }
}

impl<'de> DeserializeSeed<'de> for Counted<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Counted<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.leaf(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.leaf(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.leaf(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.leaf(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.leaf(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.visit_string(value.to_owned())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        self.leaf(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.count(LIST)?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.count(OBJECT)?;
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            self.count(MEMBER)?;
            object.insert(name, members.next_value_seed(self)?);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_as_without_a_count() {
        for text in [
            r#"{"a":[1,-2,3.5,1e400x],"b":null}"#,
            r#"{"a":[1,-2,3.5,18446744073709551615,1e-7],"b":{"c":"\u00e9\n","d":true,"c":false},"":""}"#,
            "[]",
            "0",
            "\"x\"",
            "[1] 2",
            "{\"a\":1",
            "",
            "nul",
            "\"\u{1}\"",
        ] {
            let plain: Option<Value> = serde_json::from_slice(text.as_bytes()).ok();
            assert_eq!(read(text.as_bytes()).ok(), plain, "{text}");
        }
        let deep = "[".repeat(100_000);
        assert!(matches!(read(deep.as_bytes()), Err(DocumentError::NotJson(_))));
    }

    #[test]
    fn values_end_the_reading_whatever_they_are() {
        let many = |item: &str, count: usize| format!("[{item}{}]", format!(",{item}").repeat(count - 1));
        for (item, most) in [("0", 990_000), ("\"\"", 990_000), ("[]", 190_000), ("{}", 58_000), (r#"{"":0}"#, 49_000)]
        {
            assert!(read(many(item, most).as_bytes()).is_ok(), "{item}");
            let found = read(many(item, most + most / 9).as_bytes());
            assert!(matches!(found, Err(DocumentError::TooManyValues)), "{item}");
        }
        let members: String = (0..350_000).map(|name| format!("\"{name}\":0,")).collect();
        assert!(matches!(read(format!("{{{members}\"x\":0}}").as_bytes()), Err(DocumentError::TooManyValues)));
        // A long string counts as one value.
        assert!(read(format!("\"{}\"", "x".repeat(20 << 20)).as_bytes()).is_ok());
    }

    #[test]
    fn documents_share_the_portions_that_they_are_given() {
        let text = format!("[0{}]", ",0".repeat(3 * PORTION));
        let mut left = 2;
        let mut take = || {
            left -= 1;
            left >= 0
        };
        assert!(matches!(read_within(text.as_bytes(), &mut take), Err(DocumentError::NoRoom)));
        assert_eq!(left, -1);
    }
}
