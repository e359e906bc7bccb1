//! Amounts for some of the limits, as one source (a plugin, an operator, a node) sets them.
//!
//! When two sources are merged, the lower amount wins.

use super::LimitName;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::collections::BTreeMap;
use std::fmt;

/// Why a limit cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// No limit has this name.
    #[error("unknown limit `{name}`, expected one of {}", names())]
    Unknown {
        /// The name as written.
        name: String,
    },
    /// The value is not an amount in the unit of the limit.
    #[error("limit `{name}` has the value `{value}`, expected {}", name.unit().expected())]
    Value {
        /// The limit.
        name: LimitName,
        /// The value as written.
        value: String,
    },
}

fn names() -> String {
    let quoted: Vec<String> = LimitName::ALL.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// The amounts that one source sets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct LimitSettings(BTreeMap<LimitName, u64>);

impl LimitSettings {
    /// Sets the amount of one limit.
    pub fn set(&mut self, name: LimitName, amount: u64) {
        self.0.insert(name, amount);
    }

    /// Returns the settings of both sources. If both set a limit, the lower amount wins.
    pub fn merge(&self, other: &LimitSettings) -> LimitSettings {
        let lower = |(name, amount)| (name, other.get(name).map_or(amount, |most| most.min(amount)));
        other.iter().chain(self.iter().map(lower)).collect()
    }

    /// Returns the amount of a limit. `None` if it is not set.
    pub fn get(&self, name: LimitName) -> Option<u64> {
        self.0.get(&name).copied()
    }

    /// Returns true if no limit is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all limits that are set, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (LimitName, u64)> + '_ {
        self.0.iter().map(|(name, amount)| (*name, *amount))
    }
}

impl FromIterator<(LimitName, u64)> for LimitSettings {
    fn from_iter<I: IntoIterator<Item = (LimitName, u64)>>(settings: I) -> Self {
        Self(settings.into_iter().collect())
    }
}

/// An amount in a file: a number, or a text with a unit.
#[derive(Deserialize)]
#[serde(untagged)]
enum LimitAmount {
    Number(i64),
    Text(String),
}

impl fmt::Display for LimitAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitAmount::Number(number) => number.fmt(f),
            LimitAmount::Text(text) => text.fmt(f),
        }
    }
}

impl LimitAmount {
    fn amount(&self, name: LimitName) -> Result<u64, LimitError> {
        let value = self.to_string();
        name.unit().parse(&value).ok_or(LimitError::Value { name, value })
    }
}

impl<'de> Deserialize<'de> for LimitSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = BTreeMap::<LimitName, LimitAmount>::deserialize(deserializer)?;
        let amount = |(name, value): (LimitName, LimitAmount)| Ok((name, value.amount(name)?));
        written.into_iter().map(amount).collect::<Result<_, LimitError>>().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        let check = |written: &str, expected: &str| {
            let wrong = serde_json::from_str::<LimitSettings>(written).unwrap_err().to_string();
            assert!(wrong.starts_with(expected), "{wrong}");
        };
        check(r#"{"memory": 1}"#, "unknown limit `memory`, expected one of `wall_ms`");
        check(r#"{"turns": "many"}"#, "limit `turns` has the value `many`, expected a whole number");
        check(r#"{"fuel": 3}"#, "unknown limit `fuel`");
    }

    #[test]
    fn numbers_and_texts_are_read_alike() {
        let read: LimitSettings = serde_json::from_str(r#"{"memory_bytes": "64MiB", "turns": 3}"#).unwrap();
        let expected = [(LimitName::MemoryBytes, 64 << 20), (LimitName::Turns, 3)];
        assert_eq!(read.iter().collect::<Vec<_>>(), expected);
        assert_eq!(serde_json::to_string(&read).unwrap(), r#"{"memory_bytes":67108864,"turns":3}"#);
    }
}
