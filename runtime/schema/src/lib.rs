//! JSON Schemas for the answers of models and for files. A schema is parsed once, and then each value is checked against it.
//!
//! [`Schema::parse`] accepts only keywords that [`Schema::check`] enforces, and reports any other, so that no rule of a schema is
//! silently ignored. [`document`] reads untrusted JSON with a bound on the number of its values. [`form`] derives the form of a
//! schema that a provider supports, and [`example`] creates a value that matches. The crate is pure and knows no models and no
//! pipelines, so that files and answers are checked by the same code.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod check;
pub mod document;
pub mod example;
pub mod form;
mod keyword;
mod parse;

pub use check::Violation;
pub use parse::{SCHEMA_BYTES_MAX, SchemaError};

use serde_json::Value;

/// A schema in which every keyword is enforced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    root: Value,
    text: String,
}

impl Schema {
    /// Returns the JSON of the schema, in one line.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the JSON of the schema.
    pub fn value(&self) -> &Value {
        &self.root
    }

    /// Returns the names of the root object's properties, in the order of the schema.
    pub fn properties(&self) -> impl Iterator<Item = &str> {
        self.root["properties"].as_object().into_iter().flat_map(|properties| properties.keys().map(String::as_str))
    }

    /// Returns the definition that a `$ref` names. `None` for a name without a definition.
    fn definition(&self, reference: &str) -> Option<&Value> {
        self.root["$defs"].get(reference.strip_prefix(keyword::DEFINITIONS)?)
    }
}
