//! The `[trust]` table: the keys that may sign plugins, and the lists with which plugins are revoked.
//!
//! A key is either written in the file or in a file next to it. This module reads no file: see `prepare::admission`.

use super::field::{Field, Fields};
use super::is_plugin_name;
use glovebox_names::visible::{self, is_deceptive};
use glovebox_record::LimitUnit;
use glovebox_registry::reference::Reference;
use glovebox_signing::key::PublicKey;
use glovebox_signing::trust::{KEY_NAME_CHARS_MAX, KEYS_MAX, NamePattern, Require, is_key_name};
use jiff::civil::Date;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

/// Maximum number of lists of revocations. Each of them is looked at before each call of a component.
const LISTS_MAX: usize = 16;
/// The tag of a list in a registry, if none is named.
pub const LIST_TAG: &str = "latest";
const KEY_HELP: &str =
    "add `key = \"ed25519:…\"`, the line that `glovebox plugin keygen` prints, or `path = \"keys/acme.pub\"`";
const NAME_HELP: &str = "add `name = \"acme 2026\"`, a name that you recognize";
const PLUGINS_HELP: &str = "add `plugins = [\"acme.*\"]`, the names that the key may sign";

/// The `[trust]` table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustSetting {
    /// Which plugins must be signed.
    pub require: Require,
    /// The keys, in the order of the file.
    pub keys: Vec<TrustKeySetting>,
    /// Signed lists of revocations.
    pub revocations: Vec<ListSource>,
    /// Maximum time since a list was fetched. `None` if a fetched list does not become too old.
    pub revocations_age_max: Option<Duration>,
}

/// Where a signed list of revocations is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListSource {
    /// In a file at this path, relative to `glovebox.toml`.
    File(String),
    /// In a registry. The reference has a tag and no digest.
    Registry(Box<Reference>),
    /// At an address with `https`, or with `http` on this machine.
    Address(String),
}

impl ListSource {
    /// Reads a path, a reference that begins with `oci://`, or an address.
    fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() || text.contains('\0') || text.chars().any(is_deceptive) {
            return Err("the path of a file, `oci://HOST/PATH` or `https://…` is expected");
        }
        if let Some(reference) = text.strip_prefix("oci://") {
            let expected = "`oci://HOST/PATH` or `oci://HOST/PATH:TAG` is expected, without a digest: a list changes";
            let reference: Reference = reference.parse().map_err(|_| expected)?;
            let reference = Reference { tag: reference.tag.clone().or_else(|| LIST_TAG.parse().ok()), ..reference };
            return if reference.digest.is_none() { Ok(Self::Registry(Box::new(reference))) } else { Err(expected) };
        }
        match text.split_once("://") {
            None => Ok(Self::File(text.to_owned())),
            Some(("https" | "http", _)) => Ok(Self::Address(text.to_owned())),
            Some(_) => Err("only `oci://` and `https://` are fetched"),
        }
    }
}

impl fmt::Display for ListSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.write_str(path),
            Self::Registry(reference) => write!(f, "oci://{reference}"),
            Self::Address(address) => f.write_str(address),
        }
    }
}

/// One `[[trust.key]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustKeySetting {
    /// The name of the key, for people.
    pub name: String,
    /// The key, or the file that has it.
    pub source: TrustKeySource,
    /// The plugins that it may sign.
    pub plugins: Vec<NamePattern>,
    /// The last day, in UTC, on which its signatures are accepted.
    pub not_after: Option<Date>,
    /// Byte range of `key` or `path` in the file.
    pub place: Range<usize>,
}

/// Where a key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustKeySource {
    /// In `glovebox.toml`.
    Key(PublicKey),
    /// In a PEM file at this path, relative to `glovebox.toml`.
    File(String),
}

pub(super) fn parse(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> TrustSetting {
    let mut setting = TrustSetting::default();
    let found = fields.table(table);
    let has_keys = found.iter().any(|field| field.name == "key");
    for field in found {
        match field.name {
            "require" => setting.require = require(fields, &field),
            "key" => setting.keys = keys(fields, &field),
            "revocations" => setting.revocations = lists(fields, &field),
            "revocations_age_max" => setting.revocations_age_max = age(fields, &field),
            _ => fields.unknown(&field, &["require", "key", "revocations", "revocations_age_max"]),
        }
    }
    let is_fetched = |list: &ListSource| !matches!(list, ListSource::File(_));
    if setting.revocations_age_max.is_some() && !setting.revocations.iter().any(is_fetched) {
        let message = "`trust.revocations_age_max` limits nothing: `revocations` names no list that is fetched";
        fields.value_problem(table.at_key(), message.to_owned());
    }
    if !has_keys && (setting.require == Require::Signed || !setting.revocations.is_empty()) {
        fields.missing(
            table,
            "key",
            "add a `[[trust.key]]` with `name`, `key` and `plugins`: without a key, nothing is signed",
        );
    }
    setting
}

fn require(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Require {
    match field.value.as_str() {
        Some("any") => Require::Any,
        Some("signed") => Require::Signed,
        _ => {
            fields.value_problem(field.at_value(), format!("`{field}` must be `\"any\"` or `\"signed\"`"));
            Require::Signed
        }
    }
}

fn keys(fields: &mut Fields<'_>, list: &Field<'_, '_>) -> Vec<TrustKeySetting> {
    let tables = fields.tables(list);
    if tables.len() > KEYS_MAX {
        fields.value_problem(
            list.at_key(),
            format!("`{list}` has {} keys, at most {KEYS_MAX} are expected", tables.len()),
        );
        return Vec::new();
    }
    let keys: Vec<TrustKeySetting> = tables.iter().filter_map(|table| key(fields, table)).collect();
    for (at, one) in keys.iter().enumerate() {
        let same = |other: &&TrustKeySetting| other.name == one.name || other.source == one.source;
        if let Some(other) = keys[..at].iter().find(same) {
            let message = format!("two keys of `{list}` have the name or the key of `{}`", other.name);
            fields.value_problem(list.at(one.place.clone()), message);
        }
    }
    keys
}

fn key(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> Option<TrustKeySetting> {
    let (mut name, mut source, mut plugins, mut not_after) = (None, None, None, None);
    let found = fields.table(table);
    // Something else than a table lacks no fields.
    table.value.as_table()?;
    for field in found {
        match field.name {
            "name" => name = Some(key_name(fields, &field)),
            "key" | "path" if source.is_some() => {
                let message = format!("`{table}` has both `key` and `path`: one of them is expected");
                fields.value_problem(field.at_key(), message);
            }
            "key" => source = Some((public_key(fields, &field), field.at_value().span)),
            "path" => source = Some((fields.path(&field).map(TrustKeySource::File), field.at_value().span)),
            "plugins" => plugins = Some(patterns(fields, &field)),
            "not_after" => not_after = last_day(fields, &field),
            _ => fields.unknown(&field, &["name", "key", "path", "plugins", "not_after"]),
        }
    }
    let missing = [
        (name.is_none(), "name", NAME_HELP),
        (source.is_none(), "key", KEY_HELP),
        (plugins.is_none(), "plugins", PLUGINS_HELP),
    ];
    for (_, field, help) in missing.into_iter().filter(|(is_missing, ..)| *is_missing) {
        fields.missing(table, field, help);
    }
    let (source, place) = source?;
    Some(TrustKeySetting { name: name??, source: source?, plugins: plugins?, not_after, place })
}

fn key_name(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Option<String> {
    let name = fields.text(field)?;
    if !is_key_name(&name) {
        let message =
            format!("`{field}` must have 1 to {KEY_NAME_CHARS_MAX} visible characters, without spaces at the ends");
        fields.value_problem(field.at_value(), message);
        return None;
    }
    Some(name)
}

fn public_key(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Option<TrustKeySource> {
    let text = fields.text(field)?;
    let key = text.parse().map_err(|error| fields.value_problem(field.at_value(), format!("`{field}`: {error}")));
    key.ok().map(TrustKeySource::Key)
}

fn patterns(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Vec<NamePattern> {
    let texts = fields.texts(field);
    if texts.is_empty() {
        fields.value_problem(
            field.at_value(),
            format!("`{field}` is empty: the names that the key may sign are expected"),
        );
    }
    let mut patterns = Vec::new();
    for (text, place) in texts {
        match NamePattern::parse(&text, is_plugin_name) {
            Some(pattern) => patterns.push(pattern),
            None => {
                let message =
                    format!("`{field}` contains `{text}`: a name such as `acme.review`, `acme.*` or `*` is expected");
                fields.value_problem(place, message);
            }
        }
    }
    patterns
}

/// Reads a day, as a date of TOML or as text.
fn last_day(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Option<Date> {
    let text = field.value.as_datetime().map(ToString::to_string).or_else(|| field.value.as_str().map(str::to_owned));
    let day = text.filter(|text| text.len() == "2027-01-01".len()).and_then(|text| text.parse().ok());
    if day.is_none() {
        fields.value_problem(field.at_value(), format!("`{field}` must be a day, such as `\"2027-01-01\"`"));
    }
    day
}

/// Reads how old a list may become.
fn age(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Option<Duration> {
    let text = field.value.as_str().unwrap_or_default();
    let found = LimitUnit::Milliseconds.parse(text).filter(|milliseconds| *milliseconds > 0);
    if found.is_none() {
        fields.value_problem(field.at_value(), format!("`{field}` must be a time, such as `\"7d\"` or `\"12h\"`"));
    }
    found.map(Duration::from_millis)
}

fn lists(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Vec<ListSource> {
    let texts = fields.texts(field);
    if texts.len() > LISTS_MAX {
        let message = format!("`{field}` has {} lists, at most {LISTS_MAX} are expected", texts.len());
        fields.value_problem(field.at_value(), message);
    }
    let mut found = Vec::new();
    for (text, place) in texts {
        match ListSource::parse(&text) {
            Ok(source) => found.push(source),
            Err(expected) => {
                fields.value_problem(place, format!("`{field}` contains `{}`: {expected}", visible::line(&text)));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::{Config, ConfigProblem};
    use super::*;
    use glovebox_signing::key::SigningKey;

    fn public(seed: u8) -> PublicKey {
        SigningKey::from_seed(&[seed; 32]).map(|key| key.public()).expect("a key")
    }

    fn problems(text: &str) -> Vec<ConfigProblem> {
        Config::parse(text, "glovebox.toml").expect_err(text)
    }

    /// Expects exactly one problem in the table of a key.
    fn check(lines: &str, field: &str, line: usize, part: &str) {
        let found = problems(&format!("[[trust.key]]\n{lines}\n"));
        assert_eq!(found.len(), 1, "{lines}\n{found:#?}");
        assert_eq!((found[0].field.as_str(), found[0].line), (field, line), "{lines}\n{found:#?}");
        assert!(found[0].message.contains(part), "{}", found[0].message);
    }

    #[test]
    fn a_full_table_is_read() {
        let text = format!(
            "[trust]\nrequire = \"signed\"\nrevocations = [\"revoked.json\"]\n\
             [[trust.key]]\nname = \"acme 2026\"\nkey = \"{}\"\nplugins = [\"acme.*\", \"zeta.lint\"]\nnot_after = \"2027-01-01\"\n\
             [[trust.key]]\nname = \"old\"\npath = \"keys/old.pub\"\nplugins = [\"*\"]\nnot_after = 2026-06-30\n",
            public(1)
        );
        let trust = Config::parse(&text, "glovebox.toml").expect("config").trust.expect("a table");
        assert_eq!(
            (trust.require, &trust.revocations[0]),
            (Require::Signed, &ListSource::File("revoked.json".to_owned()))
        );
        assert_eq!(trust.keys[0].source, TrustKeySource::Key(public(1)));
        assert_eq!(trust.keys[0].plugins.iter().map(ToString::to_string).collect::<Vec<_>>(), ["acme.*", "zeta.lint"]);
        let days: Vec<_> = trust.keys.iter().map(|key| key.not_after.map(|day| day.to_string())).collect();
        assert_eq!(days, [Some("2027-01-01".to_owned()), Some("2026-06-30".to_owned())]);
        assert_eq!(trust.keys[1].source, TrustKeySource::File("keys/old.pub".to_owned()));
        assert_eq!(Config::parse("", "x").expect("config").trust, None);
    }

    #[test]
    fn a_list_is_a_file_or_is_fetched() {
        let text = "[trust]\nkey = []\nrevocations_age_max = \"2d\"\n\
                    revocations = [\"a/b.json\", \"oci://a.example/acme/list\", \"oci://a.example/x:v1\", \"https://a.example/l\"]\n";
        let trust = Config::parse(text, "glovebox.toml").expect("config").trust.expect("a table");
        let shown: Vec<String> = trust.revocations.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            ["a/b.json", "oci://a.example/acme/list:latest", "oci://a.example/x:v1", "https://a.example/l"]
        );
        assert_eq!(trust.revocations_age_max, Some(Duration::from_secs(2 * 24 * 60 * 60)));
    }

    #[test]
    fn each_wrong_field_has_its_line() {
        let key = format!("key = \"{}\"", public(1));
        let whole = |line: &str| format!("name = \"a\"\n{key}\nplugins = [\"a.b\"]\n{line}");
        check(&whole("expires = 1"), "trust.key[1].expires", 5, "unknown field");
        check(&whole("path = \"x\""), "trust.key[1].path", 5, "both `key` and `path`");
        for day in ["\"soon\"", "\"2027-02-30\"", "1", "\"2027-01-01T00:00:00Z\"", "2027-01-01T00:00:00Z", "nan"] {
            check(&whole(&format!("not_after = {day}")), "trust.key[1].not_after", 5, "must be a day");
        }
        check("name = \"a\"\nplugins = [\"a.b\"]", "trust.key[1].key", 1, "has no `key`");
        check(&format!("{key}\nplugins = [\"a.b\"]"), "trust.key[1].name", 1, "has no `name`");
        check(&format!("name = \"a\"\n{key}"), "trust.key[1].plugins", 1, "has no `plugins`");
        check(&format!("name = \"a\"\n{key}\nplugins = []"), "trust.key[1].plugins", 4, "is empty");
        check(&format!("name = \"a\"\n{key}\nplugins = [\"acme\"]"), "trust.key[1].plugins", 4, "contains `acme`");
        check(&format!("name = \"\"\n{key}\nplugins = [\"a.b\"]"), "trust.key[1].name", 2, "visible characters");
        check("name = \"a\"\nkey = \"ed25519:AAAA\"\nplugins = [\"a.b\"]", "trust.key[1].key", 3, "32 bytes");
        check("name = \"a\"\nkey = 1\nplugins = [\"a.b\"]", "trust.key[1].key", 3, "a string is expected");
        check(
            &format!("{}\n[[trust.key]]\nname = \"b\"\n{key}\nplugins = [\"a.b\"]", whole("")),
            "trust.key",
            8,
            "have the name or the key of `a`",
        );
    }

    #[test]
    fn each_wrong_table_has_its_line() {
        let check = |text: &str, field: &str, part: &str| {
            let found = problems(text);
            assert_eq!((found.len(), found[0].field.as_str()), (1, field), "{text}\n{found:#?}");
            assert!(found[0].message.contains(part), "{}", found[0].message);
        };
        check("[trust]\nrequire = \"all\"\nkey = []", "trust.require", "must be `\"any\"` or `\"signed\"`");
        check("[trust]\nrequire = \"signed\"", "trust.key", "has no `key`");
        check("[trust]\nrevocations = [\"a\"]", "trust.key", "has no `key`");
        check("[trust]\nkeys = []", "trust.keys", "unknown field");
        check("[trust]\nkey = {}", "trust.key", "an array of tables is expected");
        check("[trust]\nkey = [1]", "trust.key[1]", "a table is expected");
        check("trust = 1", "trust", "a table is expected");
        let list = |text: &str, part: &str| {
            check(&format!("[trust]\nkey = []\nrevocations = [\"{text}\"]"), "trust.revocations", part);
        };
        list("", "the path of a file");
        list("ftp://x.example/l", "only `oci://` and `https://`");
        list("oci://acme/x", "`oci://HOST/PATH`");
        list(&format!("oci://a.example/x@sha256:{}", "0".repeat(64)), "without a digest");
        let age = |text: &str, part: &str| {
            let lists = "revocations = [\"https://x.example/l\"]";
            check(
                &format!("[trust]\nkey = []\n{lists}\nrevocations_age_max = {text}"),
                "trust.revocations_age_max",
                part,
            );
        };
        ["\"soon\"", "7", "\"0d\"", "\"-1d\"", "\"\""].iter().for_each(|text| age(text, "must be a time"));
        check("[trust]\nkey = []\nrevocations_age_max = \"7d\"", "trust", "limits nothing");
        let many = format!("[trust]\nkey = []\nrevocations = [{}]", "\"a\",".repeat(17));
        check(&many, "trust.revocations", "17 lists");
        check(&format!("[trust]\nkey = [{}]", "{},".repeat(65)), "trust.key", "65 keys");
    }
}
