//! JSON Schemas for the answers of models and for files: read once, then every value is checked against them.
//!
//! [`Schema::parse`] accepts only keywords that [`Schema::check`] enforces, and names any other: a rule that nobody enforces is none.
//! [`document`] reads JSON that somebody else wrote, with a bound on its values.
//! [`form`] says what a provider can be told of a schema, and [`example`] makes a value that matches. Pure; the crate knows no model and
//! no pipeline, so that the check of a file and the check of an answer are the same.

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

/// A schema whose every keyword is enforced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    root: Value,
    text: String,
}

impl Schema {
    /// Its JSON, in one line.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its JSON.
    pub fn value(&self) -> &Value {
        &self.root
    }

    /// The names of the properties of the object itself, in the order of the schema.
    pub fn properties(&self) -> impl Iterator<Item = &str> {
        self.root["properties"].as_object().into_iter().flat_map(|properties| properties.keys().map(String::as_str))
    }

    /// The schema that a `$ref` names; none for a name without a definition.
    fn definition(&self, reference: &str) -> Option<&Value> {
        self.root["$defs"].get(reference.strip_prefix(keyword::DEFINITIONS)?)
    }
}
