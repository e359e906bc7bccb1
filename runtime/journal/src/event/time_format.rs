//! Times in JSON: RFC 3339 in UTC with exactly three decimals, so that they sort as text. Any RFC 3339 time can be read.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serializer};

/// Returns the time as text.
pub fn text(at: &Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// Serializes a time.
pub fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text(at))
}

/// Deserializes a time.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    Timestamp::deserialize(deserializer)
}

/// As the parent module, but for a time that may be absent.
pub mod option {
    use super::{Deserialize, Deserializer, Serializer, Timestamp, text};

    /// Serializes a time, or null.
    pub fn serialize<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => serializer.serialize_some(&text(at)),
            None => serializer.serialize_none(),
        }
    }

    /// Deserializes a time, or null.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
        Option::<Timestamp>::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_sort_as_text() {
        let of = |milliseconds| text(&Timestamp::from_millisecond(milliseconds).unwrap());
        let texts = [0, 1, 100, 999, 1000, 1_000_000_000_000].map(of);
        assert_eq!((texts[0].as_str(), texts[2].as_str()), ("1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.100Z"));
        assert!(texts.is_sorted());
    }
}
