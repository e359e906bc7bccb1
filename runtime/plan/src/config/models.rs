//! The `[models.NAME]` tables: how a model is reached, where its key is, and its price. `scripted` is the model of `--script`.
//!
//! The file never contains a key: it names an environment variable or another file.

use super::Config;
use super::field::{Field, Fields};
use super::run::money;
use glovebox_models::chat::ModelId;
use glovebox_models::family::Family;
use glovebox_models::target::{CONTEXT_TOKENS, Endpoint, OUTPUT_TOKENS_MAX, TIMEOUT};
use glovebox_record::LimitUnit;
use glovebox_record::spend::Price;
use std::collections::BTreeMap;
use std::time::Duration;
use toml::de::DeValue;

/// One `[models.NAME]` table.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelEntry {
    /// The price of the model. `None` if the file has none.
    pub price: Option<Price>,
    /// How the model is reached. `None` for a model that only has a price.
    pub access: Option<ModelAccess>,
}

/// How a model is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAccess {
    /// The wire format of the model's provider.
    pub family: Family,
    /// The exact name of the model at the provider.
    pub model: ModelId,
    /// The address of the provider.
    pub endpoint: Endpoint,
    /// Other model names that the answers of the provider may contain.
    pub answers_as: Vec<ModelId>,
    /// Where the key of the provider is found.
    pub key: KeySource,
    /// A file with certificates that are trusted in addition to the bundled ones.
    pub ca_file: Option<String>,
    /// Maximum number of tokens of an answer.
    pub output_tokens_max: u64,
    /// Maximum number of tokens of a conversation.
    pub context_tokens: u64,
    /// Maximum time without any received byte.
    pub timeout: Duration,
    /// True if requests use the schema mode of the provider.
    pub schema_mode: bool,
    /// True if the model accepts images.
    pub images: bool,
    /// True for the model of nodes that name no model.
    pub is_default: bool,
}

/// A model with access, and the name of its table.
#[derive(Debug, Clone, Copy)]
pub struct ConfiguredModel<'a> {
    /// The name of the table.
    pub name: &'a str,
    /// How the model is reached.
    pub access: &'a ModelAccess,
}

impl Config {
    /// Returns all models that can be asked, by name.
    pub fn configured_models(&self) -> impl Iterator<Item = ConfiguredModel<'_>> {
        self.models.iter().filter_map(|(name, entry)| Some(ConfiguredModel { name, access: entry.access.as_ref()? }))
    }

    /// Returns the model with this name. `None` if no table has the name, or the table has only a price.
    pub fn configured_model(&self, name: &str) -> Option<ConfiguredModel<'_>> {
        let (name, entry) = self.models.get_key_value(name)?;
        Some(ConfiguredModel { name, access: entry.access.as_ref()? })
    }
}

/// Where the key of a provider is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// The provider needs no key.
    None,
    /// In this environment variable.
    Variable(String),
    /// In this file, relative to `glovebox.toml`.
    File(String),
}

/// All fields of a table.
const FIELDS: [&str; 14] = [
    "provider",
    "model",
    "endpoint",
    "key_env",
    "key_file",
    "ca_file",
    "answers_as",
    "output_tokens_max",
    "context_tokens",
    "timeout",
    "schema_mode",
    "images",
    "default",
    "price",
];

/// Reads all tables.
pub(super) fn parse(fields: &mut Fields<'_>, tables: &Field<'_, '_>) -> BTreeMap<String, ModelEntry> {
    let mut found = BTreeMap::new();
    let mut default_name: Option<String> = None;
    for table in fields.table(tables) {
        let written = ModelTable::read(fields, &table);
        let is_default = written.is_default;
        let Some(entry) = written.entry(fields, &table) else { continue };
        if let Some(other) = default_name.as_ref().filter(|_| is_default) {
            let message = format!("`{table}` and `models.{other}` both have `default = true`, expected one default");
            fields.value_problem(table.at_key(), message);
        }
        if is_default {
            default_name = Some(table.name.to_owned());
        }
        found.insert(table.name.to_owned(), entry);
    }
    found
}

/// The values of a table as they are written.
#[derive(Default)]
struct ModelTable {
    provider: Option<Family>,
    has_provider: bool,
    model: Option<ModelId>,
    endpoint: Option<Endpoint>,
    key: Option<KeySource>,
    ca_file: Option<String>,
    answers_as: Vec<ModelId>,
    output_tokens_max: Option<u64>,
    context_tokens: Option<u64>,
    timeout: Option<Duration>,
    schema_mode: Option<bool>,
    images: Option<bool>,
    is_default: bool,
    price: Option<Price>,
}

impl ModelTable {
    fn read(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> Self {
        let mut written = Self::default();
        for field in fields.table(table) {
            match field.name {
                "provider" => (written.has_provider, written.provider) = (true, family(fields, &field)),
                "model" => written.model = fields.text(&field).and_then(|text| model_id(fields, &field, text)),
                "endpoint" => written.endpoint = endpoint(fields, &field),
                "key_env" | "key_file" => written.take_key(fields, &field),
                "ca_file" => written.ca_file = fields.path(&field),
                "answers_as" => {
                    let names = fields.texts(&field).into_iter().map(|(name, _)| name);
                    written.answers_as = names.filter_map(|name| model_id(fields, &field, name)).collect();
                }
                "output_tokens_max" => written.output_tokens_max = tokens(fields, &field),
                "context_tokens" => written.context_tokens = tokens(fields, &field),
                "timeout" => written.timeout = timeout(fields, &field),
                "schema_mode" => written.schema_mode = switch(fields, &field),
                "images" => written.images = switch(fields, &field),
                "default" => written.is_default = switch(fields, &field).unwrap_or_default(),
                "price" => written.price = price(fields, &field),
                _ => fields.unknown(&field, &FIELDS),
            }
        }
        written
    }

    fn take_key(&mut self, fields: &mut Fields<'_>, field: &Field<'_, '_>) {
        let Some(text) = fields.path(field) else { return };
        if self.key.is_some() {
            fields.value_problem(field.at_key(), format!("`{field}`: expected one of `key_env` and `key_file`"));
        }
        let is_name = |text: &String| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        self.key = match field.name {
            "key_file" => Some(KeySource::File(text)),
            _ if is_name(&text) => Some(KeySource::Variable(text)),
            _ => {
                let message =
                    format!("`{field}` is not the name of an environment variable; a key is never written here");
                fields.value_problem(field.at_value(), message);
                None
            }
        };
    }

    fn entry(self, fields: &mut Fields<'_>, table: &Field<'_, '_>) -> Option<ModelEntry> {
        if !self.has_provider {
            if self.price.is_none() {
                let message = format!(
                    "`{table}` has neither `provider` nor `price`: add `provider = \"openai\"`, or `price = {{ input = 3, output = 15 }}`"
                );
                fields.value_problem(table.at_key(), message);
            }
            return Some(ModelEntry { price: self.price, access: None });
        }
        let family = self.provider?;
        let usual = family.endpoint().and_then(|text| text.parse().ok());
        let Some(endpoint) = self.endpoint.or(usual) else {
            let message =
                format!("`{table}` has no `endpoint`, expected a URL such as `\"https://api.example.com/v1\"`");
            fields.value_problem(table.at_key(), message);
            return None;
        };
        let model = match self.model {
            Some(model) => model,
            None => model_id(fields, table, table.name.to_owned())?,
        };
        let usual_key = family.key_variable().map(|name| KeySource::Variable(name.to_owned()));
        let access = ModelAccess {
            family,
            model,
            endpoint,
            answers_as: self.answers_as,
            key: self.key.or(usual_key).unwrap_or(KeySource::None),
            ca_file: self.ca_file,
            output_tokens_max: self.output_tokens_max.unwrap_or(OUTPUT_TOKENS_MAX),
            context_tokens: self.context_tokens.unwrap_or(CONTEXT_TOKENS),
            timeout: self.timeout.unwrap_or(TIMEOUT),
            schema_mode: self.schema_mode.unwrap_or_else(|| family.has_schema_mode()),
            images: self.images.unwrap_or_else(|| family.takes_images()),
            is_default: self.is_default,
        };
        Some(ModelEntry { price: self.price, access: Some(access) })
    }
}

fn switch(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Option<bool> {
    let is_on = field.value.as_bool();
    if is_on.is_none() {
        fields.value_problem(field.at_value(), format!("`{field}` must be `true` or `false`"));
    }
    is_on
}

fn family(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Option<Family> {
    let text = fields.text(field)?;
    let found = Family::ALL.into_iter().find(|family| family.as_str() == text);
    if found.is_none() {
        let known = Family::ALL.map(|family| format!("`{family}`")).join(", ");
        fields.value_problem(field.at_value(), format!("`{field}` is `{text}`: one of {known} is expected"));
    }
    found
}

/// Reads the name of a model. Only letters, digits and `-_.:/@` are allowed, without `..`, because the name is used in
/// paths and messages.
fn model_id(fields: &mut Fields<'_>, field: &Field<'_, '_>, text: String) -> Option<ModelId> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/@".contains(&byte);
    if (1..=200).contains(&text.len()) && text.bytes().all(is_plain) && !text.contains("..") {
        return Some(text.as_str().into());
    }
    let message = format!("`{field}`: `{text}` is not the name of a model: letters, digits and `-_.:/@` are expected");
    fields.value_problem(field.at_value(), message);
    None
}

fn endpoint(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Option<Endpoint> {
    let parsed = fields.text(field)?.parse();
    parsed.map_err(|error| fields.value_problem(field.at_value(), format!("`{field}`: {error}"))).ok()
}

fn tokens(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Option<u64> {
    let found = match field.value {
        DeValue::Integer(number) => number.as_str().parse().ok().filter(|tokens| *tokens > 0),
        _ => None,
    };
    if found.is_none() {
        fields.value_problem(field.at_value(), format!("`{field}` is not a number of tokens above 0"));
    }
    found
}

pub(super) fn timeout(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Option<Duration> {
    let text = match field.value {
        DeValue::String(text) => text.as_ref(),
        DeValue::Integer(number) => number.as_str(),
        _ => "",
    };
    let found = LimitUnit::Milliseconds.parse(text).filter(|milliseconds| *milliseconds > 0);
    if found.is_none() {
        fields
            .value_problem(field.at_value(), format!("`{field}`: {} is expected", LimitUnit::Milliseconds.expected()));
    }
    found.map(Duration::from_millis)
}

/// Reads the prices, in US dollars per million tokens sent and received.
fn price(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> Option<Price> {
    let (mut input, mut output, mut cache_read, mut cache_write) = (None, None, None, None);
    for field in fields.table(table) {
        match field.name {
            "input" => input = money(fields, &field),
            "output" => output = money(fields, &field),
            "cache_read" => cache_read = money(fields, &field),
            "cache_write" => cache_write = money(fields, &field),
            _ => fields.unknown(&field, &["input", "output", "cache_read", "cache_write"]),
        }
    }
    Some(Price { input: input?, output: output?, cache_read, cache_write })
}
