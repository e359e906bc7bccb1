//! Walking TOML by hand, so that one reading finds every problem and each has a place.
//!
//! Grants and limits are not understood here: each of their fields is offered to the host's own types on its own, so that
//! what a manifest may say and what the operator may say can never drift apart, and an objection still has a line.

use super::{Config, ConfigProblem};
use glovebox_host::grants::Grants;
use glovebox_pipeline::span::Span;
use glovebox_record::LimitSettings;
use serde_json::json;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// A value and its place.
pub(super) type Value<'i> = Spanned<DeValue<'i>>;

/// A key and its value, each with its place.
pub(super) type Entry<'v, 't> = (&'v Spanned<DeString<'t>>, &'v Value<'t>);

/// The text being read and the problems found so far.
pub(super) struct Fields<'i> {
    text: &'i str,
    file_name: &'i str,
    problems: Vec<ConfigProblem>,
}

impl<'i> Fields<'i> {
    pub(super) fn new(text: &'i str, file_name: &'i str) -> Self {
        Self { text, file_name, problems: Vec::new() }
    }

    /// Parses the whole text; what cannot be read as TOML becomes a problem.
    pub(super) fn parse(&mut self) -> Spanned<DeTable<'i>> {
        let (root, errors) = DeTable::parse_recoverable(self.text);
        for error in errors {
            let place = error.span().unwrap_or(0..0);
            let message = error.message().lines().collect::<Vec<_>>().join(", ");
            self.push("config_syntax", "", place, message, None);
        }
        root
    }

    /// The configuration, if nothing was wrong.
    pub(super) fn finish(mut self, config: Config) -> Result<Config, Vec<ConfigProblem>> {
        if self.problems.is_empty() {
            return Ok(config);
        }
        self.problems.sort_by_key(|problem| (problem.span.start, problem.span.end));
        Err(self.problems)
    }

    /// Line of a byte, from 1.
    pub(super) fn line(&self, byte: usize) -> usize {
        1 + self.text.as_bytes().iter().take(byte).filter(|byte| **byte == b'\n').count()
    }

    /// The entries of a table; empty, with a problem, when it is something else.
    pub(super) fn table<'v, 't>(&mut self, field: &str, value: &'v Value<'t>) -> Vec<Entry<'v, 't>> {
        match value.get_ref().as_table() {
            Some(table) => table.iter().collect(),
            None => {
                self.wrong_type(field, value, "a table");
                Vec::new()
            }
        }
    }

    /// A text value.
    pub(super) fn text(&mut self, field: &str, value: &Value<'_>) -> Option<String> {
        match value.get_ref().as_str() {
            Some(text) => Some(text.to_owned()),
            None => {
                self.wrong_type(field, value, "a string");
                None
            }
        }
    }

    /// True when the text has something in it; else a problem.
    pub(super) fn not_empty(&mut self, field: &str, value: &Value<'_>, text: &str) -> bool {
        let fine = !text.is_empty() && !text.contains('\0');
        if !fine {
            self.value_problem(field, value.span(), format!("`{field}` is empty: a path is expected"), None);
        }
        fine
    }

    /// A list of texts with their places.
    pub(super) fn texts(&mut self, field: &str, value: &Value<'_>) -> Vec<(String, Range<usize>)> {
        let Some(list) = value.get_ref().as_array() else {
            self.wrong_type(field, value, "a list of strings");
            return Vec::new();
        };
        let mut found = Vec::new();
        for item in list.iter() {
            if let Some(text) = self.text(field, item) {
                found.push((text, item.span()));
            }
        }
        found
    }

    /// A list of paths in the grammar of scopes.
    pub(super) fn scope_paths(&mut self, field: &str, value: &Value<'_>) -> Vec<String> {
        let mut found = Vec::new();
        for (text, place) in self.texts(field, value) {
            match glovebox_record::scope::Entry::parse(&text) {
                Ok(_) => found.push(text),
                Err(error) => self.value_problem(field, place, format!("`{field}` holds `{text}`: {error}"), None),
            }
        }
        found
    }

    /// A `wants` or `grants` table, each field offered to the host on its own.
    pub(super) fn grants(&mut self, field: &str, value: &Value<'_>) -> Grants {
        let mut whole = serde_json::Map::new();
        for (key, value) in self.table(field, value) {
            let name = key.get_ref().as_ref();
            let path = format!("{field}.{name}");
            if name == "limits" {
                let mut limits = serde_json::Map::new();
                for (name, limit) in self.limit_fields(&path, value) {
                    limits.insert(name, limit);
                }
                whole.insert("limits".to_owned(), limits.into());
                continue;
            }
            let json = to_json(value.get_ref());
            // Beside a tier, since paths without one are an objection of their own, made to the whole table below.
            let mut alone = serde_json::Map::from_iter([("filesystem".to_owned(), json!("posix"))]);
            alone.insert(name.to_owned(), json.clone());
            match serde_json::from_value::<Grants>(alone.into()) {
                Ok(_) => {
                    whole.insert(name.to_owned(), json);
                }
                Err(error) => self.objection(&path, key.span(), &error.to_string()),
            }
        }
        match serde_json::from_value(whole.into()) {
            Ok(grants) => grants,
            Err(error) => {
                self.objection(field, value.span(), &error.to_string());
                Grants::default()
            }
        }
    }

    /// A `limits` table.
    pub(super) fn limits(&mut self, field: &str, value: &Value<'_>) -> LimitSettings {
        let limits: serde_json::Map<_, _> = self.limit_fields(field, value).into_iter().collect();
        serde_json::from_value(limits.into()).unwrap_or_default()
    }

    fn limit_fields(&mut self, field: &str, value: &Value<'_>) -> Vec<(String, serde_json::Value)> {
        let mut found = Vec::new();
        for (key, value) in self.table(field, value) {
            let name = key.get_ref().as_ref();
            let json = to_json(value.get_ref());
            match serde_json::from_value::<LimitSettings>(json!({ name: json })) {
                Ok(_) => found.push((name.to_owned(), json)),
                Err(error) => self.objection(&format!("{field}.{name}"), key.span(), &error.to_string()),
            }
        }
        found
    }

    /// A field the host's own types refused.
    fn objection(&mut self, field: &str, place: Range<usize>, reason: &str) {
        let rule = if reason.contains("cannot enforce") || reason.starts_with("unknown field") {
            "config_unenforceable"
        } else {
            "config_value"
        };
        self.push(rule, field, place, format!("`{field}`: {reason}"), None);
    }

    /// A field nobody reads.
    pub(super) fn unknown(&mut self, key: &Spanned<DeString<'_>>, field: &str, known: &[&str]) {
        let known = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let message = format!("unknown field `{field}`: one of {known} is expected");
        self.push("config_unknown_field", field, key.span(), message, None);
    }

    /// A field that has to be there.
    pub(super) fn missing(&mut self, table: &str, name: &str, place: Range<usize>, paste: &str) {
        let message = format!("`{table}` has no `{name}`");
        self.push("config_missing_field", &format!("{table}.{name}"), place, message, Some(format!("add `{paste}`")));
    }

    /// A value that is not what the field takes.
    pub(super) fn value_problem(&mut self, field: &str, place: Range<usize>, message: String, help: Option<String>) {
        self.push("config_value", field, place, message, help);
    }

    fn wrong_type(&mut self, field: &str, value: &Value<'_>, expected: &str) {
        let found = value.get_ref().type_str();
        self.value_problem(field, value.span(), format!("`{field}` is of type {found}: {expected} is expected"), None);
    }

    fn push(&mut self, rule: &'static str, field: &str, place: Range<usize>, message: String, help: Option<String>) {
        let line = self.line(place.start);
        let span = Span::new(place.start, place.end);
        let (file_name, field) = (self.file_name.to_owned(), field.to_owned());
        self.problems.push(ConfigProblem { rule, file_name, field, line, span, message, help });
    }
}

/// The same value without places. Dates become text; a number that no JSON can hold becomes its text as well, and is refused later.
fn to_json(value: &DeValue<'_>) -> serde_json::Value {
    match value {
        DeValue::String(text) => json!(text),
        DeValue::Boolean(flag) => json!(flag),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => json!(number),
            Err(_) => json!(number.as_str()),
        },
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or_else(|_| json!(number.as_str()), |n| json!(n)),
        DeValue::Datetime(moment) => json!(moment.to_string()),
        DeValue::Array(items) => items.iter().map(|item| to_json(item.get_ref())).collect(),
        DeValue::Table(table) => table
            .iter()
            .map(|(key, value)| (key.get_ref().to_string(), to_json(value.get_ref())))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}
