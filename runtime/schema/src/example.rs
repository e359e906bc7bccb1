//! Creates a value that matches a schema: the answer of a stage if no model is asked.

use super::Schema;
use super::check::types_of;
use serde_json::{Map, Value, json};

/// Maximum depth of an example. A schema that needs more has no example.
const LEVELS_MAX: u32 = 32;
/// Maximum length of a list or a text in an example.
const LENGTH_MAX: u64 = 1000;
/// Maximum number of values in an example. A schema that needs more has no example.
const VALUES_MAX: u32 = 10_000;

impl Schema {
    /// Returns a small value that matches the schema, found by a simple search. `None` if that search finds no matching value.
    pub fn example(&self) -> Option<Value> {
        let mut values_left = VALUES_MAX;
        let example = self.made(&self.root, LEVELS_MAX, &mut values_left)?;
        self.check(&example).is_empty().then_some(example)
    }

    fn made(&self, schema: &Value, levels: u32, values_left: &mut u32) -> Option<Value> {
        let levels = levels.checked_sub(1)?;
        *values_left = values_left.checked_sub(1)?;
        if let Some(found) = schema["$ref"].as_str().and_then(|reference| self.definition(reference)) {
            return self.made(found, levels, values_left);
        }
        if let Some(only) = schema.get("const").or_else(|| schema["enum"].get(0)) {
            return Some(only.to_owned());
        }
        if let Some(choices) = schema["anyOf"].as_array().filter(|_| schema.get("type").is_none()) {
            return choices.iter().find_map(|choice| self.made(choice, levels, values_left));
        }
        let count = |keyword: &str| schema[keyword].as_u64().unwrap_or_default().min(LENGTH_MAX);
        match schema.get("type").and_then(|types| types_of(types).next()).unwrap_or("null") {
            "object" => self.object(schema, levels, values_left),
            "array" => {
                let items = schema.get("items").unwrap_or(&Value::Null);
                let mut item = || self.made(items, levels, values_left);
                (0..count("minItems")).map(|_| item()).collect::<Option<Vec<Value>>>().map(Value::from)
            }
            "string" => Some("simulated".chars().cycle().take(text_length(schema)).collect::<String>().into()),
            "boolean" => Some(json!(false)),
            "integer" | "number" => Some(number(schema)),
            _ => Some(Value::Null),
        }
    }

    fn object(&self, schema: &Value, levels: u32, values_left: &mut u32) -> Option<Value> {
        let mut object = Map::new();
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let value = match schema["properties"].get(name) {
                Some(of_name) => self.made(of_name, levels, values_left)?,
                None => Value::Null,
            };
            object.insert(name.to_owned(), value);
        }
        Some(Value::Object(object))
    }
}

/// Returns the length of a text in an example: that of `simulated`, clamped to the bounds of the schema.
fn text_length(schema: &Value) -> usize {
    let (least, most) = (schema["minLength"].as_u64().unwrap_or(0), schema["maxLength"].as_u64().unwrap_or(LENGTH_MAX));
    usize::try_from(9.clamp(least.min(LENGTH_MAX), most.max(least).min(LENGTH_MAX))).unwrap_or_default()
}

fn number(schema: &Value) -> Value {
    let bound = |keyword: &str| schema[keyword].as_f64();
    let least = bound("minimum").or(bound("exclusiveMinimum").map(|bound| bound.floor() + 1.0)).map(f64::ceil);
    let most = bound("maximum").or(bound("exclusiveMaximum").map(|bound| bound.ceil() - 1.0)).map(f64::floor);
    let found = 0_f64.max(least.unwrap_or(f64::MIN)).min(most.unwrap_or(f64::MAX));
    // Write a whole number without a fraction: `1`, not `1.0`.
    if found.abs() < 9e15 { json!(found as i64) } else { json!(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_matches() {
        let check = |schema: Value, expected: Value| {
            let of = json!({"type": "object", "required": ["v"], "properties": {"v": schema}, "$defs": {"two": {"minItems": 2, "type": "array"}}});
            let example = Schema::parse(&of.to_string()).unwrap().example();
            assert_eq!(example.map(|mut value| value["v"].take()), Some(expected), "{of}");
        };
        check(json!({"type": "string", "maxLength": 3}), json!("sim"));
        check(json!({"type": "integer", "minimum": 3}), json!(3));
        check(json!({"type": "number", "exclusiveMaximum": 0}), json!(-1));
        check(json!({"enum": ["b", "a"]}), json!("b"));
        check(json!({"$ref": "#/$defs/two"}), json!([null, null]));
        check(json!({"anyOf": [{"type": "boolean"}]}), json!(false));
        check(json!({"type": "object", "properties": {"a": {}}}), json!({}));
    }

    #[test]
    fn some_schemas_have_no_example() {
        let never =
            json!({"type": "object", "required": ["v"], "properties": {"v": {"type": "string", "minLength": 5000}}});
        assert_eq!(Schema::parse(&never.to_string()).unwrap().example(), None);
    }

    #[test]
    fn a_short_schema_of_a_long_value_has_no_example() {
        let lists = |levels: usize| {
            let innermost = json!({"type": "null"});
            let nested =
                (0..levels).fold(innermost, |items, _| json!({"type": "array", "minItems": 90, "items": items}));
            let of = json!({"type": "object", "required": ["a"], "properties": {"a": nested}});
            Schema::parse(&of.to_string()).unwrap().example()
        };
        assert!(lists(2).is_some());
        assert_eq!(lists(3), None);
        let doubled = (0..19).fold(json!({"d0": {"type": "null"}}), |mut defs, level| {
            let below = json!({"$ref": format!("#/$defs/d{level}")});
            let two = json!({"type": "object", "required": ["a", "b"], "properties": {"a": below, "b": below}});
            defs[format!("d{}", level + 1)] = two;
            defs
        });
        let of = json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/d19"}}, "$defs": doubled});
        assert_eq!(Schema::parse(&of.to_string()).unwrap().example(), None);
    }
}
