//! The forms of a schema for providers, which support different keywords. [`Schema::check`] still enforces the keywords that a
//! form omits.
//!
//! A form is never so strict that no value could match it and the schema. If a schema has no form for a provider, the provider
//! cannot be asked in its schema mode.

use super::Schema;
use super::check::types_of;
use super::keyword::inner;
use serde_json::{Value, json};

/// Keywords that bound numbers, texts and lists.
const BOUNDS: [&str; 8] =
    ["minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];

impl Schema {
    /// Returns true if every object is closed (`"additionalProperties": false`) and requires all of its properties, and
    /// nothing has `minLength` or `maxLength`, as the strict mode of providers demands.
    pub fn is_strict(&self) -> bool {
        all(&self.root, &|schema| {
            let names = schema["properties"].as_object().map(|properties| properties.keys().collect::<Vec<_>>());
            let required: Vec<&str> =
                schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let has_all = names.unwrap_or_default().iter().all(|name| required.contains(&name.as_str()));
            let is_bounded = schema.get("minLength").or(schema.get("maxLength")).is_some();
            !is_bounded && (!is_object(schema) || has_all && schema["additionalProperties"] == false)
        })
    }

    /// Returns the schema without bounds, and with closed objects only. `None` if an object must stay open, or if a definition
    /// contains itself.
    pub fn closed_form(&self) -> Option<Value> {
        let is_open =
            |schema: &Value| matches!(schema.get("additionalProperties"), Some(Value::Bool(true) | Value::Object(_)));
        if !all(&self.root, &|schema| !is_open(schema)) || self.is_recursive() {
            return None;
        }
        let mut form = self.root.to_owned();
        each(&mut form, &|schema| {
            BOUNDS.iter().for_each(|bound| remove(schema, bound));
            if is_object(schema) {
                schema["additionalProperties"] = json!(false);
            }
        });
        Some(form)
    }

    /// Returns the schema with `enum` in place of `const`, and without bounds on the length of texts.
    pub fn plain_form(&self) -> Value {
        let mut form = self.root.to_owned();
        each(&mut form, &|schema| {
            ["minLength", "maxLength"].iter().for_each(|bound| remove(schema, bound));
            if let Some(only) = schema.as_object_mut().and_then(|keywords| keywords.remove("const")) {
                schema["enum"] = json!([only]);
            }
        });
        form
    }

    /// Returns true if a definition contains a reference to itself, directly or through other definitions.
    fn is_recursive(&self) -> bool {
        let names = self.root["$defs"].as_object().into_iter().flatten();
        names.into_iter().any(|(name, definition)| {
            let (mut seen, mut waiting) = (Vec::new(), vec![definition]);
            while let Some(schema) = waiting.pop() {
                if let Some(reference) = schema["$ref"].as_str().filter(|reference| !seen.contains(reference)) {
                    seen.push(reference);
                    waiting.extend(self.definition(reference));
                }
                waiting.extend(inner(schema).into_iter().map(|(_, inner)| inner));
            }
            seen.iter().any(|reference| {
                self.definition(reference).is_some_and(|found| std::ptr::eq(found, definition)) && !name.is_empty()
            })
        })
    }
}

fn is_object(schema: &Value) -> bool {
    schema.get("properties").is_some()
        || schema.get("type").is_some_and(|types| types_of(types).any(|name| name == "object"))
}

fn remove(schema: &mut Value, keyword: &str) {
    if let Some(keywords) = schema.as_object_mut() {
        keywords.remove(keyword);
    }
}

/// Returns true if `holds` returns true for a schema and all schemas inside it.
fn all(schema: &Value, holds: &dyn Fn(&Value) -> bool) -> bool {
    holds(schema) && inner(schema).into_iter().all(|(_, inner)| all(inner, holds))
}

/// Applies `change` to a schema and all schemas inside it.
fn each(schema: &mut Value, change: &dyn Fn(&mut Value)) {
    change(schema);
    let places: Vec<String> = inner(schema).into_iter().map(|(place, _)| place).collect();
    for place in places {
        let (keyword, name) = place.split_once('/').unwrap_or((&place, ""));
        let found = match &mut schema[keyword] {
            Value::Array(list) => name.parse().ok().and_then(|at: usize| list.get_mut(at)),
            Value::Object(_) if name.is_empty() && !place.ends_with('/') => Some(&mut schema[keyword]),
            Value::Object(named) => named.get_mut(name),
            _ => None,
        };
        if let Some(found) = found {
            each(found, change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(value: &Value) -> Schema {
        Schema::parse(&value.to_string()).unwrap()
    }

    #[test]
    fn a_strict_schema_has_closed_objects_only() {
        let inner =
            json!({"type": "object", "properties": {"b": {}}, "required": ["b"], "additionalProperties": false});
        let of = |required: Value, inner: &Value| {
            schema(
                &json!({"type": "object", "properties": {"a": inner}, "required": required, "additionalProperties": false}),
            )
        };
        assert!(of(json!(["a"]), &inner).is_strict());
        assert!(!of(json!([]), &inner).is_strict());
        assert!(!of(json!(["a"]), &json!({"type": "object"})).is_strict());
        assert!(of(json!(["a"]), &json!({"type": "string"})).is_strict());
        for bound in ["minLength", "maxLength"] {
            assert!(!of(json!(["a"]), &json!({"type": "string", bound: 3})).is_strict(), "{bound}");
        }
    }

    #[test]
    fn a_closed_form_has_no_bounds() {
        let whole = json!({"type": "object", "properties": {"a": {"type": "array", "minItems": 2, "items": {"type": "string", "maxLength": 3}},
            "": {"type": "object"}}});
        let expected = json!({"type": "object", "additionalProperties": false, "properties": {
            "a": {"type": "array", "items": {"type": "string"}}, "": {"type": "object", "additionalProperties": false}}});
        assert_eq!(schema(&whole).closed_form(), Some(expected));
        assert_eq!(schema(&json!({"type": "object", "additionalProperties": {"type": "string"}})).closed_form(), None);
        let tree = json!({"type": "object", "properties": {"t": {"$ref": "#/$defs/t"}},
            "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}});
        assert_eq!(schema(&tree).closed_form(), None);
        let flat =
            json!({"type": "object", "properties": {"t": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"type": "null"}}});
        assert!(schema(&flat).closed_form().is_some());
    }

    #[test]
    fn a_plain_form_has_no_const() {
        let whole = json!({"type": "object", "anyOf": [{"properties": {"a": {"const": 1}}}]});
        assert_eq!(
            schema(&whole).plain_form(),
            json!({"type": "object", "anyOf": [{"properties": {"a": {"enum": [1]}}}]})
        );
    }
}
