//! Checks a value against a schema. Every keyword is enforced, the number of steps is bounded, and each violation names its place.

use super::Schema;
use serde_json::{Map, Value};
use std::fmt;

/// Maximum number of steps of one check. A value that needs more does not match.
const STEPS_MAX: u32 = 100_000;
/// Maximum depth of a value.
const LEVELS_MAX: u32 = 64;
/// Maximum number of violations that are reported.
const VIOLATIONS_MAX: usize = 8;
/// Maximum length of the name of a property in a message, in characters.
const NAME_CHARS_MAX: usize = 60;

/// A violation of the schema, with its place in the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The place in the value, as a JSON pointer.
    pub at: String,
    /// What was expected there.
    pub expected: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at.is_empty() { f.write_str(&self.expected) } else { write!(f, "at `{}`: {}", self.at, self.expected) }
    }
}

impl Schema {
    /// Returns what is wrong with a value. Empty if the value matches.
    pub fn check(&self, value: &Value) -> Vec<Violation> {
        let mut check = Check { schema: self, steps: 0, found: Vec::new() };
        check.value(&self.root, value, Place::default());
        check.found.truncate(VIOLATIONS_MAX);
        check.found
    }
}

/// The place of a value, and its depth.
#[derive(Debug, Clone, Default)]
struct Place {
    at: String,
    level: u32,
}

impl Place {
    fn child(&self, name: impl fmt::Display) -> Self {
        let name: String = name.to_string().chars().take(NAME_CHARS_MAX).collect();
        let escaped = name.replace('~', "~0").replace('/', "~1");
        Self { at: format!("{}/{escaped}", self.at), level: self.level + 1 }
    }

    /// Returns the same place with a depth of one more.
    fn again(&self) -> Self {
        Self { at: self.at.to_owned(), level: self.level + 1 }
    }
}

/// A keyword, its wording in a message, and the comparison of a number with the keyword's value.
type Bound = (&'static str, &'static str, fn(f64, f64) -> bool);

/// The keywords that bound a length, and what is counted.
struct LengthKeywords {
    least: &'static str,
    most: &'static str,
    unit: &'static str,
}

const TEXT_LENGTH: LengthKeywords = LengthKeywords { least: "minLength", most: "maxLength", unit: "characters" };
const LIST_LENGTH: LengthKeywords = LengthKeywords { least: "minItems", most: "maxItems", unit: "items" };

/// The state of a check.
struct Check<'a> {
    schema: &'a Schema,
    steps: u32,
    found: Vec<Violation>,
}

impl<'a> Check<'a> {
    fn say(&mut self, place: &Place, expected: impl Into<String>) {
        if self.found.len() < VIOLATIONS_MAX {
            self.found.push(Violation { at: place.at.to_owned(), expected: expected.into() });
        }
    }

    fn value(&mut self, schema: &'a Value, value: &Value, place: Place) {
        self.steps += 1;
        if self.steps > STEPS_MAX || place.level > LEVELS_MAX {
            return self.say(&place, "the value is too large or too deep to be checked");
        }
        if let Some(found) = schema["$ref"].as_str().and_then(|reference| self.schema.definition(reference)) {
            self.value(found, value, place.again());
        }
        if let Some(types) = schema.get("type")
            && !types_of(types).any(|name| is_of(name, value))
        {
            let types: Vec<&str> = types_of(types).collect();
            return self.say(&place, format!("expected {}, found {}", types.join(" or "), name_of(value)));
        }
        if let Some(allowed) = schema["enum"].as_array()
            && !allowed.iter().any(|one| is_equal(one, value))
        {
            let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
            self.say(&place, format!("expected one of {}", allowed.join(", ")));
        }
        if let Some(only) = schema.get("const").filter(|only| !is_equal(only, value)) {
            self.say(&place, format!("expected {only}"));
        }
        match value {
            Value::Object(object) => self.object(schema, object, &place),
            Value::Array(list) => self.list(schema, list, &place),
            Value::String(text) => self.length(schema, text.chars().count(), &TEXT_LENGTH, &place),
            Value::Number(number) => self.number(schema, number.as_f64().unwrap_or(f64::NAN), &place),
            Value::Null | Value::Bool(_) => {}
        }
        if let Some(choices) = schema["anyOf"].as_array() {
            self.any_of(choices, value, &place);
        }
    }

    fn object(&mut self, schema: &'a Value, object: &Map<String, Value>, place: &Place) {
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !object.contains_key(name) {
                self.say(place, format!("the property `{name}` is missing"));
            }
        }
        let (known, others) = (schema["properties"].as_object(), &schema["additionalProperties"]);
        for (name, value) in object {
            match (known.and_then(|known| known.get(name)), others) {
                (Some(schema), _) => self.value(schema, value, place.child(name)),
                (None, Value::Bool(false)) => {
                    let name: String = name.chars().take(NAME_CHARS_MAX).collect();
                    self.say(place, format!("the property `{name}` is not allowed"));
                }
                (None, Value::Object(_)) => self.value(others, value, place.child(name)),
                (None, _) => {}
            }
        }
    }

    fn list(&mut self, schema: &'a Value, list: &[Value], place: &Place) {
        self.length(schema, list.len(), &LIST_LENGTH, place);
        if let Some(of_items) = schema.get("items") {
            for (at, item) in list.iter().enumerate() {
                self.value(of_items, item, place.child(at));
            }
        }
    }

    fn length(&mut self, schema: &Value, length: usize, keywords: &LengthKeywords, place: &Place) {
        let (length, unit) = (length as u64, keywords.unit);
        if let Some(least) = schema[keywords.least].as_u64().filter(|least| length < *least) {
            self.say(place, format!("expected at least {least} {unit}, found {length}"));
        }
        if let Some(most) = schema[keywords.most].as_u64().filter(|most| length > *most) {
            self.say(place, format!("expected at most {most} {unit}, found {length}"));
        }
    }

    fn number(&mut self, schema: &Value, number: f64, place: &Place) {
        let rules: [Bound; 4] = [
            ("minimum", "at least", |number, bound| number >= bound),
            ("maximum", "at most", |number, bound| number <= bound),
            ("exclusiveMinimum", "more than", |number, bound| number > bound),
            ("exclusiveMaximum", "less than", |number, bound| number < bound),
        ];
        for (keyword, word, holds) in rules {
            if let Some(bound) = schema[keyword].as_f64().filter(|bound| !holds(number, *bound)) {
                self.say(place, format!("expected {word} {bound}"));
            }
        }
    }

    fn any_of(&mut self, choices: &'a [Value], value: &Value, place: &Place) {
        let before = self.found.len();
        let mut first = Vec::new();
        for choice in choices {
            let said = std::mem::take(&mut self.found);
            self.value(choice, value, place.again());
            let wrong = std::mem::replace(&mut self.found, said);
            if wrong.is_empty() {
                return;
            }
            if first.is_empty() {
                first = wrong;
            }
        }
        if self.found.len() == before {
            let first = first.iter().map(Violation::to_string).collect::<Vec<_>>().join("; ");
            self.say(
                place,
                format!(
                    "it matches none of the {} schemas of `anyOf`; the problem with the first one is: {first}",
                    choices.len()
                ),
            );
        }
    }
}

/// Returns the type names in the value of the keyword `type`.
pub(crate) fn types_of(types: &Value) -> impl Iterator<Item = &str> {
    let list = types.as_array().map_or(std::slice::from_ref(types), Vec::as_slice);
    list.iter().filter_map(Value::as_str)
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        name => name == name_of(value),
    }
}

/// Returns true if two values are equal in JSON, where `1` equals `1.0`.
fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| is_equal(left, right)))
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wrong(schema: &Value, value: &Value) -> String {
        let of_value = json!({"type": "object", "properties": {"v": schema}, "$defs": {"small": {"maximum": 3}}});
        let schema = Schema::parse(&of_value.to_string()).unwrap();
        schema.check(&json!({"v": value})).iter().map(Violation::to_string).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn every_keyword_holds() {
        let check = |schema: Value, good: Value, bad: Value, expected: &str| {
            assert_eq!(wrong(&schema, &good), "", "{schema} {good}");
            assert_eq!(wrong(&schema, &bad), expected, "{schema} {bad}");
        };
        check(json!({"type": "string"}), json!("a"), json!(1), "at `/v`: expected string, found number");
        check(json!({"type": "integer"}), json!(2.0), json!(2.5), "at `/v`: expected integer, found number");
        check(
            json!({"type": ["null", "array"]}),
            json!([]),
            json!({}),
            "at `/v`: expected null or array, found object",
        );
        check(json!({"enum": [1, "a"]}), json!(1.0), json!("b"), "at `/v`: expected one of 1, \"a\"");
        check(json!({"const": {"a": 1}}), json!({"a": 1.0}), json!({}), "at `/v`: expected {\"a\":1}");
        check(json!({"minimum": 1, "exclusiveMaximum": 3}), json!(2), json!(3), "at `/v`: expected less than 3");
        check(json!({"maximum": 3, "exclusiveMinimum": 0}), json!(3), json!(0), "at `/v`: expected more than 0");
        check(
            json!({"minLength": 2, "maxLength": 3}),
            json!("äöü"),
            json!("a"),
            "at `/v`: expected at least 2 characters, found 1",
        );
        check(
            json!({"minItems": 1, "maxItems": 1}),
            json!([0]),
            json!([0, 1]),
            "at `/v`: expected at most 1 items, found 2",
        );
        check(
            json!({"items": {"type": "null"}}),
            json!([null]),
            json!([null, 1]),
            "at `/v/1`: expected null, found number",
        );
        check(json!({"required": ["a"]}), json!({"a": 1}), json!({}), "at `/v`: the property `a` is missing");
        let closed = json!({"properties": {"a": {}}, "additionalProperties": false});
        check(closed, json!({"a": 1}), json!({"b": 1}), "at `/v`: the property `b` is not allowed");
        let open = json!({"additionalProperties": {"type": "null"}});
        check(open, json!({"a": null}), json!({"a/b": 1}), "at `/v/a~1b`: expected null, found number");
        check(json!({"$ref": "#/$defs/small", "minimum": 1}), json!(2), json!(4), "at `/v`: expected at most 3");
        let either = json!({"anyOf": [{"type": "null"}, {"$ref": "#/$defs/small"}]});
        let none = "at `/v`: it matches none of the 2 schemas of `anyOf`; the problem with the first one is: at `/v`: expected null, found number";
        check(either, json!(2), json!(4), none);
    }

    #[test]
    fn a_check_is_bounded() {
        let tree = r##"{"type":"object","additionalProperties":{"$ref":"#/$defs/t"},"$defs":{"t":{"anyOf":[{"items":{"$ref":"#/$defs/t"},
            "type":"array","minItems":9},{"items":{"$ref":"#/$defs/t"},"type":"array","minItems":9}]}}}"##;
        let schema = Schema::parse(tree).unwrap();
        let deep = (0..40).fold(json!([]), |inner, _| json!([inner]));
        assert!(!schema.check(&json!({"v": deep})).is_empty());
        let many: Vec<Value> = (0..STEPS_MAX).map(Value::from).collect();
        assert!(wrong(&json!({"items": {}}), &Value::from(many)).contains("too large"));
    }
}
