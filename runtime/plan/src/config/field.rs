//! Reads TOML field by field, so that one pass finds all problems, each with its place.
//!
//! The values of grants and limits are checked by the types of the host: each field is deserialized on its own into them. So a
//! manifest and the operator's file accept the same values, and each error has a line. Only the size of a component has a bound of its
//! own here.

use super::{Config, ConfigProblem};
use glovebox_host::grants::Grants;
use glovebox_pipeline::nearest::nearest;
use glovebox_pipeline::span::Span;
use glovebox_record::{LimitName, LimitSettings};
use serde_json::json;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// Highest limit for the size of a component, in bytes. A component is read into memory, and a stranger may have written the project.
const COMPONENT_BYTES_MAX: u64 = 1 << 30;

/// The fields of a table of wants or grants.
const GRANTS: [&str; 6] = ["filesystem", "read", "write", "commands", "model", "limits"];

/// A value and its byte range.
pub(super) type Value<'i> = Spanned<DeValue<'i>>;

/// One field of the file: its dotted path and its value.
#[derive(Debug, Clone)]
pub(super) struct Field<'v, 't> {
    path: String,
    /// The last part of the path, as written.
    pub(super) name: &'v str,
    key: Range<usize>,
    pub(super) value: &'v DeValue<'t>,
    span: Range<usize>,
}

impl<'v, 't> Field<'v, 't> {
    fn new(key: &'v Spanned<DeString<'t>>, value: &'v Value<'t>) -> Self {
        let name = key.get_ref().as_ref();
        Self { path: name.to_owned(), name, key: key.span(), value: value.get_ref(), span: value.span() }
    }

    /// Returns the field with its name in quotes, such as `plugins."acme.review"`.
    pub(super) fn quoted(self) -> Self {
        let table = &self.path[..self.path.len() - self.name.len()];
        Self { path: format!("{table}\"{}\"", self.name), ..self }
    }

    /// Returns the place of the field's value.
    pub(super) fn at_value(&self) -> Place {
        self.at(self.span.clone())
    }

    /// Returns the place of the field's key.
    pub(super) fn at_key(&self) -> Place {
        self.at(self.key.clone())
    }

    /// Returns the place of a part of the field.
    pub(super) fn at(&self, span: Range<usize>) -> Place {
        Place { path: self.path.clone(), span }
    }
}

impl fmt::Display for Field<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

/// Where a problem is.
pub(super) struct Place {
    /// Dotted path of the field; empty for the whole file.
    pub(super) path: String,
    pub(super) span: Range<usize>,
}

/// What is wrong, and how to fix it.
pub(super) struct Message {
    text: String,
    help: Option<String>,
}

impl Message {
    /// Adds how to fix the problem, if that is known.
    pub(super) fn with_help(self, help: Option<String>) -> Self {
        Self { help, ..self }
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self { text, help: None }
    }
}

/// The stable rule name of a problem.
#[derive(Clone, Copy)]
enum Rule {
    Syntax,
    UnknownField,
    Unenforceable,
    Value,
    MissingField,
}

impl Rule {
    fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "config_syntax",
            Self::UnknownField => "config_unknown_field",
            Self::Unenforceable => "config_unenforceable",
            Self::Value => "config_value",
            Self::MissingField => "config_missing_field",
        }
    }
}

/// A type that a field must have.
#[derive(Clone, Copy)]
enum FieldType {
    Table,
    Tables,
    Text,
    Texts,
}

/// The file that is read.
#[derive(Clone, Copy)]
pub(super) struct File<'i> {
    pub(super) text: &'i str,
    pub(super) name: &'i str,
}

/// The file that is read and the problems found so far.
pub(super) struct Fields<'i> {
    file: File<'i>,
    problems: Vec<ConfigProblem>,
}

impl<'i> Fields<'i> {
    pub(super) fn new(file: File<'i>) -> Self {
        Self { file, problems: Vec::new() }
    }

    /// Parses the whole text. Invalid TOML becomes a problem.
    pub(super) fn parse(&mut self) -> Spanned<DeTable<'i>> {
        let (root, errors) = DeTable::parse_recoverable(self.file.text);
        for error in errors {
            let place = Place { path: String::new(), span: error.span().unwrap_or(0..0) };
            let message = error.message().lines().collect::<Vec<_>>().join(", ");
            self.push(Rule::Syntax, place, message.into());
        }
        root
    }

    /// Returns the configuration if there is no problem, else all problems in file order.
    pub(super) fn finish(mut self, config: Config) -> Result<Config, Vec<ConfigProblem>> {
        if self.problems.is_empty() {
            return Ok(config);
        }
        self.problems.sort_by_key(|problem| (problem.span.start, problem.span.end));
        Err(self.problems)
    }

    /// Returns the line of a field's key, from 1.
    pub(super) fn line(&self, field: &Field<'_, '_>) -> usize {
        self.line_of(field.key.start)
    }

    fn line_of(&self, byte: usize) -> usize {
        1 + self.file.text.as_bytes().iter().take(byte).filter(|byte| **byte == b'\n').count()
    }

    /// Returns the fields at the root of the file.
    pub(super) fn root<'v, 't>(root: &'v DeTable<'t>) -> Vec<Field<'v, 't>> {
        root.iter().map(|(key, value)| Field::new(key, value)).collect()
    }

    /// Returns the fields of a table. If the field is not a table, reports a problem and returns an empty list.
    pub(super) fn table<'v, 't>(&mut self, field: &Field<'v, 't>) -> Vec<Field<'v, 't>> {
        let Some(table) = field.value.as_table() else {
            self.wrong_type(field, field.at_value(), FieldType::Table);
            return Vec::new();
        };
        let below = |(key, value): (&'v Spanned<DeString<'t>>, &'v Value<'t>)| {
            let child = Field::new(key, value);
            Field { path: format!("{field}.{}", child.name), ..child }
        };
        table.iter().map(below).collect()
    }

    /// Returns the tables of an array of tables, with their numbers from 1 in the paths. If the field is something else, reports
    /// a problem and returns an empty list.
    pub(super) fn tables<'v, 't>(&mut self, field: &Field<'v, 't>) -> Vec<Field<'v, 't>> {
        let Some(items) = field.value.as_array() else {
            self.wrong_type(field, field.at_value(), FieldType::Tables);
            return Vec::new();
        };
        let table = |(at, item): (usize, &'v Value<'t>)| Field {
            path: format!("{field}[{}]", at + 1),
            name: field.name,
            key: item.span(),
            value: item.get_ref(),
            span: item.span(),
        };
        items.iter().enumerate().map(table).collect()
    }

    /// Reads a text value.
    pub(super) fn text(&mut self, field: &Field<'_, '_>) -> Option<String> {
        let text = field.value.as_str().map(str::to_owned);
        if text.is_none() {
            self.wrong_type(field, field.at_value(), FieldType::Text);
        }
        text
    }

    /// Reads a path that is not empty.
    pub(super) fn path(&mut self, field: &Field<'_, '_>) -> Option<String> {
        let text = self.text(field)?;
        if text.is_empty() || text.contains('\0') {
            self.value_problem(field.at_value(), format!("`{field}` is empty: a path is expected"));
            return None;
        }
        Some(text)
    }

    /// Reads a list of texts with their places.
    pub(super) fn texts(&mut self, field: &Field<'_, '_>) -> Vec<(String, Place)> {
        let Some(list) = field.value.as_array() else {
            self.wrong_type(field, field.at_value(), FieldType::Texts);
            return Vec::new();
        };
        let mut found = Vec::new();
        for item in list.iter() {
            let place = field.at(item.span());
            match item.get_ref().as_str() {
                Some(text) => found.push((text.to_owned(), place)),
                None => {
                    let of_type = Field { value: item.get_ref(), ..field.clone() };
                    self.wrong_type(&of_type, place, FieldType::Text);
                }
            }
        }
        found
    }

    /// Reads a list of paths in the syntax of scope entries, with their byte ranges.
    pub(super) fn scope_paths(&mut self, field: &Field<'_, '_>) -> Vec<(String, Range<usize>)> {
        let mut found = Vec::new();
        for (text, place) in self.texts(field) {
            match glovebox_record::scope::Entry::parse(&text) {
                Ok(_) => found.push((text, place.span)),
                Err(error) => self.value_problem(place, format!("`{field}` contains `{text}`: {error}")),
            }
        }
        found
    }

    /// Reads a `wants` or `grants` table. Each field is deserialized on its own.
    pub(super) fn grants(&mut self, field: &Field<'_, '_>) -> Grants {
        let mut whole = serde_json::Map::new();
        for child in self.table(field) {
            if child.name == "limits" {
                let limits: serde_json::Map<_, _> = self.limit_fields(&child).into_iter().collect();
                whole.insert("limits".to_owned(), limits.into());
                continue;
            }
            // The field is deserialized together with a file tier, because paths without a tier are an error of the whole
            // table, which is reported below.
            let alone = json!({ "filesystem": "posix", (child.name): to_json(child.value) });
            match serde_json::from_value::<Grants>(alone) {
                Ok(_) => {
                    whole.insert(child.name.to_owned(), to_json(child.value));
                }
                Err(error) => self.objection(child.at_key(), &error, meant(child.name, GRANTS)),
            }
        }
        match serde_json::from_value(whole.into()) {
            Ok(grants) => grants,
            Err(error) => {
                self.objection(field.at_value(), &error, None);
                Grants::default()
            }
        }
    }

    /// Reads a `limits` table.
    pub(super) fn limits(&mut self, field: &Field<'_, '_>) -> LimitSettings {
        let limits: serde_json::Map<_, _> = self.limit_fields(field).into_iter().collect();
        serde_json::from_value(limits.into()).unwrap_or_default()
    }

    fn limit_fields(&mut self, field: &Field<'_, '_>) -> Vec<(String, serde_json::Value)> {
        let mut found = Vec::new();
        for child in self.table(field) {
            match serde_json::from_value::<LimitSettings>(json!({ (child.name): to_json(child.value) })) {
                Ok(one) if one.get(LimitName::ComponentBytes).is_some_and(|bytes| bytes > COMPONENT_BYTES_MAX) => {
                    let message = Message::from(format!("`{child}` is more than {COMPONENT_BYTES_MAX} bytes (1GiB)"));
                    let help = "a component is read into memory before anything else is known about it";
                    self.value_problem(child.at_value(), message.with_help(Some(help.to_owned())));
                }
                Ok(_) => found.push((child.name.to_owned(), to_json(child.value))),
                Err(error) => {
                    let known = LimitName::ALL.iter().map(|limit| limit.as_str());
                    self.objection(child.at_key(), &error, meant(child.name, known));
                }
            }
        }
        found
    }

    /// Reports a field that the types of the host refuse.
    fn objection(&mut self, place: Place, error: &serde_json::Error, help: Option<String>) {
        let reason = error.to_string();
        let is_unenforceable = reason.contains("cannot enforce") || reason.starts_with("unknown field");
        let rule = if is_unenforceable { Rule::Unenforceable } else { Rule::Value };
        let message = Message::from(format!("`{}`: {reason}", place.path));
        self.push(rule, place, message.with_help(help));
    }

    /// Reports an unknown field.
    pub(super) fn unknown(&mut self, field: &Field<'_, '_>, known: &[&str]) {
        let names = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let message = Message::from(format!("unknown field `{field}`: one of {names} is expected"));
        self.push(Rule::UnknownField, field.at_key(), message.with_help(meant(field.name, known.iter().copied())));
    }

    /// Reports a table without its required `path`.
    pub(super) fn missing_path(&mut self, table: &Field<'_, '_>, example: &Path) {
        self.missing(table, "path", &format!("add `path = \"{}\"`", example.display()));
    }

    /// Reports a table without a required field.
    pub(super) fn missing(&mut self, table: &Field<'_, '_>, name: &str, help: &str) {
        let message = Message::from(format!("`{table}` has no `{name}`"));
        let place = Place { path: format!("{table}.{name}"), ..table.at_key() };
        self.push(Rule::MissingField, place, message.with_help(Some(help.to_owned())));
    }

    /// Reports a value that the field does not accept.
    pub(super) fn value_problem(&mut self, place: Place, message: impl Into<Message>) {
        self.push(Rule::Value, place, message.into());
    }

    fn wrong_type(&mut self, field: &Field<'_, '_>, place: Place, expected: FieldType) {
        let expected = match expected {
            FieldType::Table => "a table",
            FieldType::Tables => "an array of tables",
            FieldType::Text => "a string",
            FieldType::Texts => "a list of strings",
        };
        let found = field.value.type_str();
        self.value_problem(place, format!("`{field}` is of type {found}: {expected} is expected"));
    }

    fn push(&mut self, rule: Rule, place: Place, message: Message) {
        let Place { path: field, span: Range { start, end } } = place;
        let (line, span) = (self.line_of(start), Span::new(start, end));
        let (file_name, Message { text: message, help }) = (self.file.name.to_owned(), message);
        self.problems.push(ConfigProblem { rule: rule.as_str(), file_name, field, line, span, message, help });
    }
}

/// Returns a help text with the known name that is most similar to an unknown one. `None` if the name is known, or if none is
/// similar.
fn meant<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(name, known).filter(|nearest| *nearest != name).map(|nearest| format!("did you mean `{nearest}`?"))
}

/// Converts a value to JSON, without places. Dates become texts. A number that JSON cannot represent becomes a text as well,
/// and is refused later.
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
