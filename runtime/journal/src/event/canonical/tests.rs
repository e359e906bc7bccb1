//! Tests that canonical JSON equals the text that is written through a tree of values, for every shape of value.

use super::canonical;
use proptest::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// Writes a value with sorted keys through a tree of values. This is the plain definition of canonical JSON.
fn by_tree(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            let fields = sorted.into_iter().map(|(key, value)| format!("{}:{}", json!(key), by_tree(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(by_tree).collect::<Vec<_>>().join(",")),
        scalar => scalar.to_string(),
    }
}

fn check<T: Serialize>(fact: &T) {
    assert_eq!(canonical(fact).unwrap(), by_tree(&serde_json::to_value(fact).unwrap()));
}

#[derive(Serialize)]
struct Whole {
    z: u64,
    #[serde(flatten)]
    flat: Flat,
    kinds: Vec<Kind>,
    map: HashMap<String, Option<f64>>,
    by_number: BTreeMap<u32, i8>,
    by_bool: BTreeMap<bool, ()>,
    by_kind: BTreeMap<Name, (char, f32)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    absent: Option<u8>,
    empty: BTreeMap<String, Value>,
    a: &'static str,
}

#[derive(Serialize)]
struct Flat {
    y: i64,
    b: [u8; 2],
    last: Value,
}

#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    #[serde(rename = "zz")]
    First,
    Second,
}

#[derive(Serialize)]
enum Kind {
    Unit,
    New(Flat),
    Tuple(u8, bool),
    Struct { y: &'static str, x: Option<()> },
}

#[derive(Serialize)]
#[serde(tag = "kind")]
enum Tagged {
    Plain { z: u8, a: u8 },
}

#[derive(Serialize)]
struct Unit;

#[derive(Serialize)]
struct Pair(u8, Unit);

#[derive(Serialize)]
struct Newtype(u8);

struct Bytes;

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&[0, 255])
    }
}

fn flat() -> Flat {
    Flat {
        y: i64::MIN,
        b: [0, 255],
        last: json!({"ü": 1, "\u{1}": [{"b": -0.0, "a": 1e300}], "": null, "a\"": 2, "a!": 3}),
    }
}

#[test]
fn every_shape_is_written_as_by_a_tree_of_values() {
    let kinds = vec![Kind::Unit, Kind::New(flat()), Kind::Tuple(1, true), Kind::Struct { y: "q\n", x: Some(()) }];
    check(&Whole {
        z: u64::MAX,
        flat: flat(),
        kinds,
        map: [("k2".to_owned(), Some(0.1)), ("k1".to_owned(), Some(f64::NAN)), ("k10".to_owned(), None)].into(),
        by_number: [(10, -1), (9, 2), (100, 3)].into(),
        by_bool: [(true, ()), (false, ())].into(),
        by_kind: [(Name::First, ('"', 0.1)), (Name::Second, ('ß', f32::MAX))].into(),
        absent: None,
        empty: BTreeMap::new(),
        a: "\u{7f}\u{2028}\\",
    });
    check(&Tagged::Plain { z: 1, a: 2 });
    check(&Pair(3, Unit));
    check(&Newtype(7));
    check(&Bytes);
}

#[test]
fn of_two_fields_with_one_key_the_later_counts() {
    #[derive(Serialize)]
    struct Twice {
        b: u8,
        a: u8,
        #[serde(flatten)]
        more: BTreeMap<String, u8>,
    }
    let twice =
        |more: [(&str, u8); 2]| Twice { b: 1, a: 2, more: more.map(|(key, value)| (key.to_owned(), value)).into() };
    assert_eq!(canonical(&twice([("a", 3), ("c", 4)])).unwrap(), r#"{"a":3,"b":1,"c":4}"#);
    check(&twice([("a", 3), ("b", 4)]));
}

#[test]
fn what_cannot_be_a_key_is_an_error() {
    assert!(canonical(&BTreeMap::from([(vec![1], 2)])).is_err());
    assert!(canonical(&BTreeMap::from([((), 2)])).is_err());
}

fn values() -> impl Strategy<Value = Value> {
    let scalars = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    scalars.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_is_written_as_by_a_tree(value in values()) {
        prop_assert_eq!(canonical(&value).unwrap(), by_tree(&value));
    }
}
