//! The node attributes that a plugin declares: their types, documentation and defaults.
//!
//! The declaration is part of the manifest and comes from a stranger, so names, texts and numbers of entries are bounded. This
//! module checks single values and knows no pipeline.

use glovebox_names::visible;
use glovebox_record::LimitUnit;
use glovebox_record::path::ScopePath;
use serde::{Deserialize, Serialize};

/// Maximum number of attributes that a plugin may declare.
pub const ATTRIBUTES_MAX: usize = 64;
/// Maximum length of an attribute's name, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// Maximum length of the documentation of an attribute, in bytes.
const DOC_BYTES_MAX: usize = 1 << 10;
/// Maximum number of values of an `enum`.
const VALUES_MAX: usize = 64;
/// Maximum length of a default and of a value of an `enum`, in bytes.
const VALUE_BYTES_MAX: usize = 256;

/// The type of an attribute, with the values that it allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum AttributeType {
    /// Any text.
    String,
    /// A whole number within bounds, which are allowed values themselves.
    Integer {
        /// Lowest value.
        #[serde(skip_serializing_if = "Option::is_none")]
        min: Option<i64>,
        /// Highest value.
        #[serde(skip_serializing_if = "Option::is_none")]
        max: Option<i64>,
    },
    /// A decimal number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A whole number with a unit of time, such as `90s`.
    Duration,
    /// One of these texts.
    Enum {
        /// The allowed texts.
        values: Vec<String>,
    },
    /// A path relative to the workspace.
    Path,
}

/// An attribute that a plugin declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "AttributeText")]
pub struct AttributeSchema {
    /// Type of the value.
    #[serde(flatten)]
    pub value: AttributeType,
    /// Purpose of the attribute, in one line. Empty if the author wrote nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub doc: String,
    /// True if every node of the plugin must have the attribute.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// The value that a node without the attribute gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AttributeText {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    doc: String,
    #[serde(default)]
    required: bool,
    default: Option<DefaultText>,
    min: Option<i64>,
    max: Option<i64>,
    values: Option<Vec<String>>,
}

/// A default as authors write it: `default = 3` and `default = "3"` are the same.
#[derive(Deserialize)]
#[serde(untagged)]
enum DefaultText {
    Boolean(bool),
    Integer(i64),
    Number(f64),
    Text(String),
}

impl DefaultText {
    fn into_text(self) -> String {
        match self {
            Self::Boolean(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Number(value) => value.to_string(),
            Self::Text(text) => text,
        }
    }
}

impl TryFrom<AttributeText> for AttributeSchema {
    type Error = String;

    fn try_from(written: AttributeText) -> Result<Self, String> {
        let AttributeText { kind, doc, required, default, min, max, values } = written;
        if (min.is_some() || max.is_some()) && kind != "integer" {
            return Err("`min` and `max` belong to the type `integer`".to_owned());
        }
        if values.is_some() && kind != "enum" {
            return Err("`values` belong to the type `enum`".to_owned());
        }
        let value = match kind.as_str() {
            "string" => AttributeType::String,
            "integer" if min.zip(max).is_some_and(|(min, max)| min > max) => {
                return Err("`min` is greater than `max`".to_owned());
            }
            "integer" => AttributeType::Integer { min, max },
            "number" => AttributeType::Number,
            "boolean" => AttributeType::Boolean,
            "duration" => AttributeType::Duration,
            "enum" => AttributeType::Enum { values: checked_values(values.unwrap_or_default())? },
            "path" => AttributeType::Path,
            other => {
                return Err(format!(
                    "`type` is `{}`, expected `string`, `integer`, `number`, `boolean`, `duration`, `enum` or `path`",
                    visible::line(other)
                ));
            }
        };
        checked_text("doc", &doc, DOC_BYTES_MAX)?;
        let default = default.map(DefaultText::into_text);
        let schema = Self { value, doc, required, default };
        if let Some(default) = &schema.default {
            if required {
                return Err("`required` and `default` exclude each other".to_owned());
            }
            checked_text("default", default, VALUE_BYTES_MAX)?;
            schema.check(default).map_err(|expected| format!("`default` is `{default}`, expected {expected}"))?;
        }
        Ok(schema)
    }
}

/// Checks the name of an attribute: a key of Graphviz that needs no quotes, with dots and `-`.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '.' | '-');
    let is_name = name.starts_with(|first: char| first.is_ascii_lowercase()) && name.chars().all(allowed);
    if is_name && name.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    let shown: String = name.chars().take(NAME_BYTES_MAX).collect();
    Err(format!(
        "the attribute `{}` has no valid name: expected a letter and up to {} letters, digits, `_`, `.` or `-`, in lower case",
        visible::line(&shown),
        NAME_BYTES_MAX - 1
    ))
}

fn checked_values(values: Vec<String>) -> Result<Vec<String>, String> {
    if !(1..=VALUES_MAX).contains(&values.len()) {
        return Err(format!("`values` has {} texts, expected 1 to {VALUES_MAX}", values.len()));
    }
    for (index, value) in values.iter().enumerate() {
        checked_text("values", value, VALUE_BYTES_MAX)?;
        if value.is_empty() || values[..index].contains(value) {
            return Err("`values` has an empty text or one text twice".to_owned());
        }
    }
    Ok(values)
}

fn checked_text(field: &str, text: &str, bytes_max: usize) -> Result<(), String> {
    if text.chars().any(visible::is_deceptive) {
        return Err(format!("`{field}` has characters that could deceive a reader"));
    }
    if text.len() > bytes_max {
        return Err(format!("`{field}` has {} bytes, expected at most {bytes_max}", text.len()));
    }
    Ok(())
}

impl AttributeSchema {
    /// Checks a value that a pipeline gives the attribute. The error says what was expected.
    pub fn check(&self, text: &str) -> Result<(), String> {
        let is_value = match &self.value {
            AttributeType::String => true,
            AttributeType::Integer { min, max } => text
                .parse::<i64>()
                .is_ok_and(|value| min.is_none_or(|min| min <= value) && max.is_none_or(|max| value <= max)),
            AttributeType::Number => text.parse::<f64>().is_ok_and(f64::is_finite),
            AttributeType::Boolean => matches!(text, "true" | "false"),
            AttributeType::Duration => is_duration(text),
            AttributeType::Enum { values } => values.iter().any(|value| value == text),
            AttributeType::Path => !text.is_empty() && ScopePath::parse(text.strip_suffix('/').unwrap_or(text)).is_ok(),
        };
        if is_value { Ok(()) } else { Err(self.expected()) }
    }

    /// Returns what a value must be, as a noun phrase.
    pub fn expected(&self) -> String {
        match &self.value {
            AttributeType::String => "a text".to_owned(),
            AttributeType::Integer { min: Some(min), max: Some(max) } => format!("a whole number from {min} to {max}"),
            AttributeType::Integer { min: Some(min), max: None } => format!("a whole number of at least {min}"),
            AttributeType::Integer { min: None, max: Some(max) } => format!("a whole number of at most {max}"),
            AttributeType::Integer { min: None, max: None } => "a whole number".to_owned(),
            AttributeType::Number => "a number".to_owned(),
            AttributeType::Boolean => "`true` or `false`".to_owned(),
            AttributeType::Duration => "a duration such as `90s` or `250ms`".to_owned(),
            AttributeType::Enum { values } => match &values[..] {
                [only] => format!("`{only}`"),
                [first @ .., last] => format!("`{}` or `{last}`", first.join("`, `")),
                [] => "nothing".to_owned(),
            },
            AttributeType::Path => "a path relative to the workspace, such as `src/` or `src/a.rs`".to_owned(),
        }
    }

    /// Returns the values that can be listed. Empty if there are too many.
    pub fn values(&self) -> Vec<&str> {
        match &self.value {
            AttributeType::Boolean => vec!["true", "false"],
            AttributeType::Enum { values } => values.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }
}

/// Returns true for a whole number with a unit of time, as in attributes of Glovebox itself.
fn is_duration(text: &str) -> bool {
    let has_unit =
        text.bytes().all(|byte| byte.is_ascii_alphanumeric()) && !text.ends_with(|last: char| last.is_ascii_digit());
    has_unit && LimitUnit::Milliseconds.parse(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str) -> Result<AttributeSchema, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_checked_by_type() {
        let check = |declared: &str, good: &[&str], bad: &[&str], expected: &str| {
            let schema = schema(declared).unwrap();
            good.iter().for_each(|value| assert_eq!(schema.check(value), Ok(()), "{declared}: {value}"));
            bad.iter()
                .for_each(|value| assert_eq!(schema.check(value), Err(expected.to_owned()), "{declared}: {value}"));
        };
        check("type = 'string'", &["", "any"], &[], "");
        check("type = 'integer'", &["0", "-3"], &["", "1.5", "3s", "99999999999999999999"], "a whole number");
        check("type = 'integer'\nmin = 1\nmax = 9", &["1", "9"], &["0", "10"], "a whole number from 1 to 9");
        check("type = 'integer'\nmax = 9", &["-10"], &["10"], "a whole number of at most 9");
        check("type = 'number'", &["1.5", "2"], &["inf", "NaN", "x"], "a number");
        check("type = 'boolean'", &["true", "false"], &["yes", "True"], "`true` or `false`");
        check("type = 'duration'", &["90s", "250ms"], &["90", "s", "1 s"], "a duration such as `90s` or `250ms`");
        check("type = 'enum'\nvalues = ['a', 'b', 'c']", &["a", "c"], &["", "d"], "`a`, `b` or `c`");
        let path = "a path relative to the workspace, such as `src/` or `src/a.rs`";
        check("type = 'path'", &["src", "src/", "a/b.rs"], &["", "/etc", "../a", "a//b"], path);
    }

    #[test]
    fn a_declaration_that_makes_no_sense_is_refused() {
        let check = |declared: &str, expected: &str| {
            let error = schema(declared).unwrap_err();
            assert!(error.contains(expected), "{declared}: {error}");
        };
        check("type = 'text'", "`type` is `text`, expected `string`");
        check("type = \"a\\u001bb\"", "`type` is `a\\x1bb`");
        check("doc = 'x'", "missing field `type`");
        check("type = 'string'\nhint = 'x'", "unknown field `hint`");
        check("type = 'string'\nmin = 1", "`min` and `max` belong to the type `integer`");
        check("type = 'integer'\nvalues = ['1']", "`values` belong to the type `enum`");
        check("type = 'integer'\nmin = 2\nmax = 1", "`min` is greater than `max`");
        check("type = 'enum'", "`values` has 0 texts");
        check("type = 'enum'\nvalues = ['a', 'a']", "one text twice");
        check("type = 'integer'\nmax = 3\ndefault = 4", "`default` is `4`, expected a whole number of at most 3");
        check("type = 'string'\nrequired = true\ndefault = 'x'", "exclude each other");
        check("type = 'string'\ndoc = \"safe\\u202elive\"", "`doc` has characters that could deceive a reader");
        check(&format!("type = 'string'\ndoc = '{}'", "x".repeat(DOC_BYTES_MAX + 1)), "`doc` has 1025 bytes");
        check(&format!("type = 'string'\ndefault = '{}'", "x".repeat(VALUE_BYTES_MAX + 1)), "`default` has 257 bytes");
    }

    #[test]
    fn defaults_are_texts() {
        let default = |declared: &str| schema(declared).unwrap().default;
        assert_eq!(default("type = 'integer'\ndefault = 3").as_deref(), Some("3"));
        assert_eq!(default("type = 'boolean'\ndefault = true").as_deref(), Some("true"));
        assert_eq!(default("type = 'string'\ndefault = 'a'").as_deref(), Some("a"));
        assert_eq!(default("type = 'string'"), None);
    }

    #[test]
    fn names_are_plain_keys() {
        for name in ["folder", "max_files", "acme.mode", "a-b2"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "Folder", "2a", ".a", "a b", "a\u{202e}b", &"a".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
