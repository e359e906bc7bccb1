//! Parses a schema, or names the place of the first part that would not be enforced.

use super::Schema;
use super::keyword::{enforced, inner, kind};
use serde_json::Value;

/// Maximum length of a schema, in bytes.
pub const SCHEMA_BYTES_MAX: usize = 64 << 10;
/// Maximum nesting depth of schemas.
const LEVELS_MAX: usize = 24;
/// Maximum number of schemas in one schema.
const SCHEMAS_MAX: usize = 1000;

/// Why a text is not a schema that can be enforced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The text is not JSON.
    #[error("it is not JSON: {0}")]
    NotJson(String),
    /// The text is longer than [`SCHEMA_BYTES_MAX`].
    #[error("it has {0} bytes, expected at most {SCHEMA_BYTES_MAX}")]
    TooLong(usize),
    /// The schema contains too many schemas, or nests them too deep.
    #[error("it has more than {SCHEMAS_MAX} schemas, or nests them in more than {LEVELS_MAX} levels")]
    TooLarge,
    /// The schema is not the schema of an object.
    #[error("it is not the schema of an object: expected `\"type\": \"object\"` at its root")]
    NotObject,
    /// There is something other than a schema where a schema is expected.
    #[error("at `{at}`: expected a schema")]
    NotSchema {
        /// The place in the schema.
        at: String,
    },
    /// The keyword is not enforced.
    #[error("at `{at}`: the keyword `{keyword}` is not enforced")]
    Keyword {
        /// The place in the schema.
        at: String,
        /// The keyword.
        keyword: String,
    },
    /// The value of a keyword has the wrong kind.
    #[error("at `{at}`: `{keyword}` has the wrong value, expected {expected}")]
    Value {
        /// The place in the schema.
        at: String,
        /// The keyword.
        keyword: String,
        /// The expected kind of value.
        expected: &'static str,
    },
    /// A reference has no definition, or leads back to itself with no property or item in between.
    #[error("at `{at}`: `{reference}` has no definition, or refers only to itself")]
    Reference {
        /// The place in the schema.
        at: String,
        /// The reference.
        reference: String,
    },
}

impl SchemaError {
    /// Returns help for the user. `None` if the message is enough.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Keyword { .. } => {
                let enforced: Vec<String> = enforced().map(|keyword| format!("`{keyword}`")).collect();
                Some(format!("remove it; the enforced keywords are {}", enforced.join(", ")))
            }
            _ => None,
        }
    }
}

impl Schema {
    /// Parses the schema of an object.
    ///
    /// # Errors
    /// Returns an error for the first part that cannot be enforced.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        let root = Self::json(text)?;
        if root["type"] != "object" {
            return Err(SchemaError::NotObject);
        }
        Self::of(root)
    }

    /// Parses a schema whose root may describe any value, such as the schema of a file.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_any(text: &str) -> Result<Self, SchemaError> {
        Self::of(Self::json(text)?)
    }

    fn json(text: &str) -> Result<Value, SchemaError> {
        match text.len() > SCHEMA_BYTES_MAX {
            true => Err(SchemaError::TooLong(text.len())),
            false => serde_json::from_str(text).map_err(|error| SchemaError::NotJson(error.to_string())),
        }
    }

    fn of(root: Value) -> Result<Self, SchemaError> {
        let text = root.to_string();
        let schema = Self { root, text };
        let mut count = 0;
        schema.read(&schema.root, Place { at: String::new(), level: 0 }, &mut count)?;
        Ok(schema)
    }

    fn read(&self, schema: &Value, place: Place, count: &mut usize) -> Result<(), SchemaError> {
        *count += 1;
        if *count > SCHEMAS_MAX || place.level > LEVELS_MAX {
            return Err(SchemaError::TooLarge);
        }
        let Value::Object(keywords) = schema else { return Err(SchemaError::NotSchema { at: place.shown() }) };
        for (keyword, value) in keywords {
            // References find definitions only at the root.
            let known = kind(keyword).filter(|_| keyword != "$defs" || place.level == 0);
            let Some(kind) = known else {
                return Err(SchemaError::Keyword { at: place.shown(), keyword: keyword.to_owned() });
            };
            if let Some(expected) = kind.problem(value) {
                return Err(SchemaError::Value { at: place.shown(), keyword: keyword.to_owned(), expected });
            }
        }
        self.follow(schema, &place, &mut Vec::new())?;
        inner(schema).into_iter().try_for_each(|(below, inner)| self.read(inner, place.child(&below), count))
    }

    /// Refuses a reference without a definition, or one that leads back to itself with no property or item in between.
    fn follow<'a>(&'a self, schema: &'a Value, place: &Place, path: &mut Vec<&'a str>) -> Result<(), SchemaError> {
        if path.len() > LEVELS_MAX {
            return Err(SchemaError::TooLarge);
        }
        if let Some(reference) = schema["$ref"].as_str() {
            let found = self.definition(reference).filter(|_| !path.contains(&reference));
            let unknown = || SchemaError::Reference { at: place.shown(), reference: reference.to_owned() };
            path.push(reference);
            self.follow(found.ok_or_else(unknown)?, place, path)?;
            path.pop();
        }
        let choices = schema["anyOf"].as_array().into_iter().flatten();
        choices.filter(|choice| choice.get("$ref").is_some()).try_for_each(|choice| self.follow(choice, place, path))
    }
}

/// The place and the depth of a schema.
struct Place {
    at: String,
    level: usize,
}

impl Place {
    fn child(&self, below: &str) -> Self {
        Self { at: format!("{}/{below}", self.at), level: self.level + 1 }
    }

    fn shown(&self) -> String {
        format!("#{}", self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Schema::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_schema_with_known_keywords_is_read() {
        let text = r##"{"$schema": "x", "title": "Review", "type": "object", "required": ["verdict"], "additionalProperties": false,
            "properties": {"verdict": {"enum": ["good", "bad"]}, "tree": {"$ref": "#/$defs/tree"}},
            "$defs": {"tree": {"type": "object", "properties": {"left": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}}}}}"##;
        let schema = Schema::parse(text).unwrap();
        assert_eq!(schema.properties().collect::<Vec<_>>(), ["tree", "verdict"]);
        assert_eq!(Schema::parse(schema.text()).unwrap(), schema);
    }

    #[test]
    fn what_would_not_be_enforced_is_named_with_its_place() {
        let check = |text: &str, expected: &str| assert_eq!(refused(text), expected, "{text}");
        let pattern = r#"{"type":"object","properties":{"a":{"type":"string","pattern":"x"}}}"#;
        check(pattern, "at `#/properties/a`: the keyword `pattern` is not enforced");
        check(r#"{"type":"object","oneOf":[]}"#, "at `#`: the keyword `oneOf` is not enforced");
        check(r#"{"type":"object","items":{"$defs":{}}}"#, "at `#/items`: the keyword `$defs` is not enforced");
        check(r#"{"type":"object","properties":{"a":true}}"#, "at `#/properties/a`: expected a schema");
        let wrong = r#"{"type":"object","required":"a"}"#;
        check(wrong, "at `#`: `required` has the wrong value, expected a list of names");
        check(r#"{"type":"array"}"#, "it is not the schema of an object: expected `\"type\": \"object\"` at its root");
        assert!(refused("{").starts_with("it is not JSON: "));
        assert!(Schema::parse(pattern).unwrap_err().help().unwrap().contains("`minLength`"));
    }

    #[test]
    fn the_schema_of_a_file_may_describe_any_value() {
        let schema = Schema::parse_any(r#"{"type":"array","items":{"type":"integer"}}"#).unwrap();
        assert!(schema.check(&serde_json::json!([1])).is_empty());
        assert_eq!(
            schema.check(&serde_json::json!([1, "a"]))[0].to_string(),
            "at `/1`: expected integer, found string"
        );
        let refused = |text: &str| Schema::parse_any(text).unwrap_err().to_string();
        assert_eq!(refused("true"), "at `#`: expected a schema");
        assert_eq!(refused(r#"{"oneOf":[]}"#), "at `#`: the keyword `oneOf` is not enforced");
    }

    #[test]
    fn references_lead_somewhere() {
        let with = |defs: &str| format!(r##"{{"type":"object","items":{{"$ref":"#/$defs/a"}},"$defs":{defs}}}"##);
        let nowhere = "at `#/items`: `#/$defs/a` has no definition, or refers only to itself";
        assert_eq!(refused(&with("{}")), nowhere);
        assert!(refused(&with(r##"{"a":{"$ref":"#/$defs/a"}}"##)).ends_with("refers only to itself"));
        assert!(refused(&with(r##"{"a":{"anyOf":[{"$ref":"#/$defs/a"}]}}"##)).ends_with("refers only to itself"));
        assert!(Schema::parse(&with(r##"{"a":{"items":{"$ref":"#/$defs/a"}}}"##)).is_ok());
        let both = r##"{"a":{"anyOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{}}"##;
        assert!(Schema::parse(&with(both)).is_ok());
    }

    #[test]
    fn sizes_are_bounded() {
        let deep = format!(r#"{{"type":"object","items":{}{{}}{}}}"#, r#"{"items":"#.repeat(30), "}".repeat(30));
        assert!(refused(&deep).contains("levels"));
        let long = format!(r#"{{"type":"object","title":"{}"}}"#, "x".repeat(SCHEMA_BYTES_MAX));
        assert!(refused(&long).contains("bytes"));
    }
}
