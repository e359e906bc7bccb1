//! The inputs of the kit: a normal one, an empty one, and odd ones that a run could have.
//!
//! The odd inputs are made of the normal one, so that a handler reaches its work and is not stopped by a missing attribute.

use crate::stage_file::{HIDDEN, StageFile, StageFileEdge, StageFileFailure, StageFileInput};
use glovebox_host::grants::Grants;
use glovebox_host::inspect::Manifest;
use glovebox_host::inspect::attribute_schema::{AttributeSchema, AttributeType};
use glovebox_record::FailureClass;
use glovebox_record::scope::Entry;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A text of the hidden files. A component that returns it has read what does not exist for it.
pub(crate) const CANARY: &str = "canary-of-the-hidden-files";
/// The file with the canary.
const CANARY_FILE: &str = "holdout.txt";

/// Length of the long prompt, in bytes.
const PROMPT_BYTES: usize = 1 << 20;
/// Number of attributes of the node with many.
const ATTRIBUTES: usize = 10_000;
/// Number of outgoing edges of the node with many.
const EDGES: usize = 500;
/// Nesting depth of the deep value. JSON parsers refuse more than 128 levels.
const LEVELS: usize = 100;

/// Returns the normal input: a node of a pipeline that reviews a change.
pub(crate) fn normal() -> StageFile {
    let edge = |to: &str, label: &str, condition: &str| StageFileEdge {
        to: to.to_owned(),
        label: label.to_owned(),
        condition: condition.to_owned(),
        weight: 0,
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    StageFile {
        input: StageFileInput {
            label: "Review the change".to_owned(),
            prompt: Some("Review the change and say whether it is ready.".to_owned()),
            goal: "The greeting names its reader".to_owned(),
            attributes: BTreeMap::from([
                pair("shape", "box"),
                pair("prompt", "Review the change and say whether it is ready."),
            ]),
            context: BTreeMap::from([
                ("graph.goal".to_owned(), json!("The greeting names its reader")),
                ("tests_passed".to_owned(), json!("true")),
                ("review".to_owned(), json!({"round": 2, "open": ["names", "docs"]})),
            ]),
            outgoing: vec![edge("done", "ready", "outcome=success"), edge("implement", "again", "outcome=fail")],
            last_failure: Some(StageFileFailure {
                class: FailureClass::Deterministic,
                code: "tool/exit-code".to_owned(),
                reason: "tool_exit_code_1".to_owned(),
            }),
            extra: BTreeMap::from([pair("failed-node", "test")]),
            ..StageFileInput::default()
        },
        ..StageFile::default()
    }
}

/// Returns the empty input: a node without any attribute, in a project without files.
pub(crate) fn empty() -> StageFile {
    let input = StageFileInput { label: String::new(), ..StageFileInput::default() };
    StageFile { input, files: Some(BTreeMap::new()), ..StageFile::default() }
}

/// Returns sample files: a small project, and one file for each path that the component wants to read.
pub(crate) fn files(wants: &Grants) -> BTreeMap<String, String> {
    let mut files = BTreeMap::from([
        ("README.md".to_owned(), "# Greeting\n\nSays hello.\n".to_owned()),
        ("src/main.rs".to_owned(), "fn main() {\n    println!(\"hello\"); // TODO: name the reader\n}\n".to_owned()),
    ]);
    let sample = |entry: &Entry| match (entry.path().as_str(), entry.is_subtree()) {
        ("", _) => None,
        (path, true) => Some(format!("{path}/sample.txt")),
        (path, false) => Some(path.to_owned()),
    };
    for path in wants.read.iter().filter_map(sample) {
        // A wanted file may be a folder of another wanted path, which stays a folder.
        let is_free =
            |known: &String| !known.starts_with(&format!("{path}/")) && !path.starts_with(&format!("{known}/"));
        if files.keys().all(is_free) && !path.starts_with(HIDDEN) {
            files.entry(path).or_insert_with(|| "a sample\n".to_owned());
        }
    }
    files
}

/// Returns a value for each attribute that the manifest requires. A run would not start without them.
pub(crate) fn required(manifest: Option<&Manifest>) -> BTreeMap<String, String> {
    let declared = manifest.and_then(|manifest| Some((manifest.attributes.as_ref()?, &manifest.wants)));
    let required = declared.into_iter().flat_map(|(declared, wants)| {
        declared.iter().filter(|(_, schema)| schema.required).map(move |(name, schema)| (name, schema, wants))
    });
    let value = |schema: &AttributeSchema, wants: &Grants| match (&schema.value, wants.read.first()) {
        (AttributeType::Path, Some(entry)) if !entry.path().is_root() => entry.path().to_string(),
        _ => right_values(schema).into_iter().next().unwrap_or_default(),
    };
    required.map(|(name, schema, wants)| (name.clone(), value(schema, wants))).collect()
}

/// Returns values that an attribute allows: its default, its bounds, and everything that can be listed.
pub(crate) fn right_values(schema: &AttributeSchema) -> Vec<String> {
    let mut values: Vec<String> = match &schema.value {
        AttributeType::String => vec!["a text".to_owned()],
        AttributeType::Integer { min: None, max: None } => vec!["0".to_owned()],
        AttributeType::Integer { min, max } => [min, max].into_iter().flatten().map(ToString::to_string).collect(),
        AttributeType::Number => vec!["0.5".to_owned()],
        AttributeType::Duration => vec!["1s".to_owned()],
        AttributeType::Path => vec!["README.md".to_owned()],
        AttributeType::Boolean | AttributeType::Enum { .. } => schema.values().into_iter().map(str::to_owned).collect(),
    };
    values.extend(schema.default.clone());
    values
}

/// Returns a value that an attribute does not allow. `None` if it allows every text.
pub(crate) fn wrong_value(schema: &AttributeSchema) -> Option<String> {
    let candidates = match &schema.value {
        AttributeType::Integer { max: Some(max), .. } => vec![max.saturating_add(1).to_string(), "many".to_owned()],
        AttributeType::Path => vec!["../outside".to_owned()],
        _ => vec!["none of the values".to_owned()],
    };
    candidates.into_iter().find(|value| schema.check(value).is_err())
}

/// Returns the path and the text of the hidden file.
pub(crate) fn hidden_file() -> (String, String) {
    (format!("{HIDDEN}{CANARY_FILE}"), format!("{CANARY}\n"))
}

/// Changes a normal input to an odd one.
pub(crate) type MakeOdd = fn(&mut StageFileInput);

/// The odd inputs, with their names.
pub(crate) const ODD: &[(&str, MakeOdd)] = &[
    ("huge-prompt", |input| {
        let line = "This line is one of very many in a prompt.\n";
        input.prompt = Some(line.repeat(PROMPT_BYTES.div_ceil(line.len())));
    }),
    ("many-attributes", |input| {
        let many = (0..ATTRIBUTES).map(|number| (format!("x.attribute_{number:05}"), format!("value {number}")));
        input.attributes.extend(many);
    }),
    ("empty-texts", |input| {
        input.prompt = Some(String::new());
        (input.goal, input.label) = (String::new(), String::new());
        input.attributes.values_mut().for_each(String::clear);
        input.attributes.insert(String::new(), String::new());
        input.context.values_mut().for_each(|value| *value = json!(""));
        input.outgoing.iter_mut().for_each(|edge| edge.label.clear());
        input.last_failure.iter_mut().for_each(|failure| failure.reason.clear());
    }),
    ("unicode", |input| {
        fill(input, "ß é e\u{301} ﷺ 漢字 😀 👩‍👩‍👧 𠀀 𰀀 \u{E0101} \u{F0000} \u{10FFFD} \u{FFFF} \u{1FFFE}")
    }),
    ("deceptive", |input| {
        fill(input, "\u{202e}txt.exe\u{202c} \u{200b}\u{feff}\u{1b}[2J\u{7} аdmin \r\n\u{85}\u{2028}")
    }),
    ("nul", |input| fill(input, "a\u{0}b\u{0}")),
    ("deep-context", |input| {
        let nested =
            |value: Value, level: usize| if level.is_multiple_of(2) { json!([value]) } else { json!({"in": value}) };
        input.context.insert("deep".to_owned(), (0..LEVELS).fold(json!(1), nested));
        input.context.insert("long".to_owned(), (0..ATTRIBUTES).collect());
        input.context.insert("number".to_owned(), json!(1.0e300));
    }),
    ("many-edges", |input| {
        let many = (0..EDGES).map(|number| StageFileEdge {
            to: format!("node_{number}"),
            label: format!("label {number}"),
            condition: String::new(),
            weight: i32::MIN,
        });
        input.outgoing.extend(many);
    }),
    ("unknown-extra", |input| {
        let unknown = (0..100).map(|number| (format!("of-a-later-version-{number}"), "{not JSON".to_owned()));
        input.extra.extend(unknown);
        input.extra.insert(String::new(), String::new());
    }),
];

/// Puts a text into every field that a pipeline's author or an earlier stage writes.
fn fill(input: &mut StageFileInput, text: &str) {
    input.prompt = Some(text.to_owned());
    (input.goal, input.label) = (text.to_owned(), text.to_owned());
    input.attributes.values_mut().for_each(|value| *value = text.to_owned());
    input.attributes.insert("x.odd".to_owned(), text.to_owned());
    input.context.insert("odd".to_owned(), json!({ text: [text] }));
    input.outgoing.iter_mut().for_each(|edge| edge.label = text.to_owned());
    input.last_failure.iter_mut().for_each(|failure| failure.reason = text.to_owned());
    input.extra.insert("x-odd".to_owned(), text.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_odd_input_differs_and_can_be_written_as_a_stage_file() {
        let ordinary = normal();
        for (name, make) in ODD {
            let mut odd = ordinary.clone();
            make(&mut odd.input);
            assert_ne!(odd, ordinary, "{name}");
            let text = serde_json::to_string(&odd).unwrap();
            assert_eq!(StageFile::parse(&text).unwrap(), odd, "{name}");
        }
        let planes: std::collections::BTreeSet<u32> = {
            let mut odd = ordinary.input;
            ODD.iter().find(|(name, _)| *name == "unicode").unwrap().1(&mut odd);
            odd.goal.chars().map(|c| u32::from(c) >> 16).collect()
        };
        assert_eq!(planes.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 14, 15, 16], "every plane with characters");
    }

    #[test]
    fn values_of_attributes_are_right_or_wrong() {
        let check = |declared: &str, right: &[&str], wrong: Option<&str>| {
            let schema: AttributeSchema = serde_json::from_str(declared).unwrap();
            let values = right_values(&schema);
            assert_eq!(
                (values.iter().map(String::as_str).collect::<Vec<_>>(), wrong_value(&schema).as_deref()),
                (right.to_vec(), wrong)
            );
            assert!(values.iter().all(|value| schema.check(value).is_ok()), "{declared}: {values:?}");
        };
        check(r#"{"type":"string"}"#, &["a text"], None);
        check(r#"{"type":"integer","min":1,"max":9,"default":3}"#, &["1", "9", "3"], Some("10"));
        check(&format!(r#"{{"type":"integer","max":{}}}"#, i64::MAX), &[&i64::MAX.to_string()], Some("many"));
        check(r#"{"type":"integer"}"#, &["0"], Some("none of the values"));
        check(r#"{"type":"number"}"#, &["0.5"], Some("none of the values"));
        check(r#"{"type":"boolean"}"#, &["true", "false"], Some("none of the values"));
        check(r#"{"type":"duration","default":"90s"}"#, &["1s", "90s"], Some("none of the values"));
        check(r#"{"type":"enum","values":["a","b"]}"#, &["a", "b"], Some("none of the values"));
        check(r#"{"type":"enum","values":["none of the values"]}"#, &["none of the values"], None);
        check(r#"{"type":"path","default":"src"}"#, &["README.md", "src"], Some("../outside"));
    }

    #[test]
    fn each_wanted_path_has_a_file() {
        let read = ["docs/", "a.txt", "a.txt/", "./", "src/"].map(|text| Entry::parse(text).unwrap());
        let wants = Grants { read: read.to_vec(), ..Grants::default() };
        let names: Vec<String> = files(&wants).into_keys().collect();
        assert_eq!(names, ["README.md", "a.txt", "docs/sample.txt", "src/main.rs", "src/sample.txt"]);
    }
}
