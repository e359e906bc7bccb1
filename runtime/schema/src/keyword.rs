//! The supported keywords, one row each, with the kind of their values. A keyword without a row is refused.

use serde_json::Value;

/// The prefix of a `$ref`.
pub(crate) const DEFINITIONS: &str = "#/$defs/";

/// The names of types.
pub(crate) const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

/// The kind of a keyword's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anything: the keyword does not restrict values.
    Note,
    /// A type, or a list of different types.
    Types,
    /// A list of values, at least one.
    Values,
    /// Any value, to compare with.
    Value,
    /// An object of schemas by name.
    Schemas,
    /// A list of schemas, at least one.
    Choices,
    /// A schema.
    Schema,
    /// `true`, `false` or a schema.
    Open,
    /// A list of names.
    Names,
    /// A whole number, at least 0.
    Count,
    /// A number.
    Number,
    /// `#/$defs/` and a name.
    Reference,
}

/// All supported keywords, including those that do not restrict values.
const KEYWORDS: [(&str, Kind); 25] = [
    ("$schema", Kind::Note),
    ("$comment", Kind::Note),
    ("title", Kind::Note),
    ("description", Kind::Note),
    ("default", Kind::Note),
    ("examples", Kind::Note),
    ("deprecated", Kind::Note),
    ("type", Kind::Types),
    ("enum", Kind::Values),
    ("const", Kind::Value),
    ("properties", Kind::Schemas),
    ("required", Kind::Names),
    ("additionalProperties", Kind::Open),
    ("items", Kind::Schema),
    ("minItems", Kind::Count),
    ("maxItems", Kind::Count),
    ("minLength", Kind::Count),
    ("maxLength", Kind::Count),
    ("minimum", Kind::Number),
    ("maximum", Kind::Number),
    ("exclusiveMinimum", Kind::Number),
    ("exclusiveMaximum", Kind::Number),
    ("anyOf", Kind::Choices),
    ("$ref", Kind::Reference),
    ("$defs", Kind::Schemas),
];

/// Returns the kind of a keyword. `None` for a keyword that is not supported.
pub(crate) fn kind(keyword: &str) -> Option<Kind> {
    KEYWORDS.iter().find(|(known, _)| *known == keyword).map(|(_, kind)| *kind)
}

/// Returns the keywords that restrict values.
pub(crate) fn enforced() -> impl Iterator<Item = &'static str> {
    KEYWORDS.iter().filter(|(_, kind)| *kind != Kind::Note).map(|(keyword, _)| *keyword)
}

impl Kind {
    /// Returns what is expected instead of this value, or `None` if the value has this kind. The schemas inside the
    /// value are not checked.
    pub(crate) fn problem(self, value: &Value) -> Option<&'static str> {
        let is_type = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
        let all = |of: fn(&Value) -> bool| value.as_array().is_some_and(|list| list.iter().all(of));
        let some = value.as_array().is_some_and(|list| !list.is_empty());
        let (is_right, expected) = match self {
            Self::Note | Self::Value => (true, ""),
            Self::Types => (
                is_type(value) || (some && all(|name| name.as_str().is_some_and(|name| TYPES.contains(&name)))),
                "a type, or a list of types",
            ),
            Self::Values => (some, "a list of at least one value"),
            Self::Schemas => (value.is_object(), "an object of schemas"),
            Self::Choices => (some && all(Value::is_object), "a list of at least one schema"),
            Self::Schema => (value.is_object(), "a schema"),
            Self::Open => (value.is_object() || value.is_boolean(), "`true`, `false` or a schema"),
            Self::Names => (all(Value::is_string), "a list of names"),
            Self::Count => (value.is_u64(), "a whole number, 0 or more"),
            Self::Number => (value.is_number(), "a number"),
            Self::Reference => {
                (value.as_str().is_some_and(|text| text.starts_with(DEFINITIONS)), "`#/$defs/` followed by a name")
            }
        };
        (!is_right).then_some(expected)
    }
}

/// Returns the schemas directly inside a schema, each with its place relative to that schema.
pub(crate) fn inner(schema: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        match kind(keyword) {
            Some(Kind::Schemas) => {
                let named = value.as_object().into_iter().flatten();
                found.extend(named.map(|(name, inner)| (format!("{keyword}/{name}"), inner)));
            }
            Some(Kind::Choices) => {
                let listed = value.as_array().into_iter().flatten().enumerate();
                found.extend(listed.map(|(at, inner)| (format!("{keyword}/{at}"), inner)));
            }
            Some(Kind::Schema) => found.push((keyword.to_owned(), value)),
            Some(Kind::Open) if value.is_object() => found.push((keyword.to_owned(), value)),
            _ => {}
        }
    }
    found
}
