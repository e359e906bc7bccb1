//! The key/value map of a pipeline, and the rules for which keys a handler may write.
//!
//! `context.x` and `x` are the same key: setting one spelling replaces the other, and a lookup of either spelling finds
//! the value. A handler cannot write the engine's keys, in either spelling, so no stage can forge an outcome, a
//! person's choice or a counter. This file bounds the sizes, because every checkpoint contains the whole map. A large
//! value is stored as a blob of the run, and the map contains a reference to the blob.

mod filter;

pub use filter::{StoredUpdates, filter_updates};

use glovebox_pipeline::ir::HandlerKind;
use glovebox_record::StoredValue;
use rpds::RedBlackTreeMapSync;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Maximum length of a key, bytes.
pub const KEY_BYTES_MAX: usize = 256;
/// Maximum size of a key and its value as JSON that is stored in the map, bytes. A larger value is stored as a blob
/// (spec §5.5).
pub const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Maximum size of a value that is stored as a blob, bytes as JSON. A larger value is refused.
pub const STORED_VALUE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum sum of the values that a run stores as blobs, bytes. Includes values that were replaced later.
pub const STORED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum number of keys that handlers may set.
pub const KEYS_MAX: usize = 1000;
/// Maximum sum of the keys and values as JSON that handlers set, bytes.
pub const CONTEXT_BYTES_MAX: usize = 1024 * 1024;

/// The keys of answers: the last answer of an agent's model, and the output of a tool (spec §4.5, §4.10). The answers
/// of a branch reach the fan-in.
pub const ANSWER_KEYS: [&str; 2] = ["last_response", TOOL_OUTPUT];
/// The key for the output of a tool. If a handler other than a tool sets the key, the value is not treated as an
/// answer, so that an agent cannot pose as a tool.
const TOOL_OUTPUT: &str = "tool.output";

/// Keys that only the engine writes.
const RESERVED_KEYS: [&str; 3] = ["outcome", "preferred_label", "current_node"];
/// Namespaces that only the engine writes (spec §5.1): the name alone, and every key that begins with the name and a
/// dot.
const RESERVED_NAMESPACES: [&str; 6] = ["graph", "internal", "loop_restart", "parallel", "stack", "human.gate"];

/// Values by key. Each key has the spelling with which it was set.
// Clones share their entries: the map is persistent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Context(#[schemars(with = "BTreeMap<String, Value>")] RedBlackTreeMapSync<String, Entry>);

/// A value, or a reference to a value that is stored as a blob. The flag is necessary because a handler can set a value
/// that looks like a reference. Only the engine sets the flag.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    value: Value,
    is_reference: bool,
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

impl From<Value> for Entry {
    fn from(value: Value) -> Self {
        Self { value, is_reference: false }
    }
}

impl Default for Context {
    fn default() -> Self {
        Self(RedBlackTreeMapSync::new_sync())
    }
}

impl Context {
    /// Returns the value of a key in either spelling. For a value that is stored as a blob, returns the reference.
    pub fn get<'k>(&self, key: impl Into<ContextKey<'k>>) -> Option<&Value> {
        self.entry(key.into()).map(|entry| &entry.value)
    }

    fn entry(&self, key: ContextKey<'_>) -> Option<&Entry> {
        self.0.get(key.0).or_else(|| self.0.get(&key.twin()))
    }

    /// Returns the reference to a value that is stored as a blob, by its key in either spelling.
    pub fn stored<'k>(&self, key: impl Into<ContextKey<'k>>) -> Option<StoredValue> {
        self.entry(key.into())
            .filter(|entry| entry.is_reference)
            .and_then(|entry| StoredValue::from_reference(&entry.value))
    }

    /// Returns the value as conditions see it (spec §10.4): a string unchanged, any other value as JSON, `null` or an
    /// absent key as the empty string. For a value that is stored as a blob, returns the digest of the blob.
    pub fn text<'k>(&self, key: impl Into<ContextKey<'k>>) -> String {
        let key = key.into();
        if let Some(stored) = self.stored(key) {
            return stored.artifact.to_string();
        }
        match self.get(key) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        }
    }

    /// Sets a key without a check. For the engine, and for updates that [`filter_updates`] accepted.
    pub fn set(&mut self, key: impl Into<String>, value: Value) {
        self.put(key.into(), value.into());
    }

    fn put(&mut self, key: String, entry: Entry) {
        self.0.remove_mut(&ContextKey(&key).twin());
        self.0.insert_mut(key, entry);
    }

    /// Marks the value of a key as a reference. Does nothing if the key has another value than `reference`.
    pub fn note_reference<'k>(&mut self, key: impl Into<ContextKey<'k>>, reference: &Value) {
        let ContextKey(key) = key.into();
        if let Some(entry) = self.0.get(key).filter(|entry| entry.value == *reference).cloned() {
            self.put(key.to_owned(), Entry { is_reference: true, ..entry });
        }
    }

    /// Copies an entry from another context. Does nothing if the key is absent there.
    pub fn take_over<'k>(&mut self, key: impl Into<ContextKey<'k>>, from: &Self) {
        let key = key.into();
        if let Some(entry) = from.entry(key) {
            self.put(key.0.to_owned(), entry.clone());
        }
    }

    /// Sets all keys of `updates`, as [`Context::set`] does.
    pub fn set_all<'a>(&mut self, updates: impl IntoIterator<Item = (&'a String, &'a Value)>) {
        updates.into_iter().for_each(|(key, value)| self.set(key, value.clone()));
    }

    /// Removes a key in either spelling.
    pub fn remove<'k>(&mut self, key: impl Into<ContextKey<'k>>) {
        let key = key.into();
        self.0.remove_mut(key.0);
        self.0.remove_mut(&key.twin());
    }

    /// Returns all entries in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter().map(|(key, entry)| (key, &entry.value))
    }

    /// Returns the keys that begin with `start`, in order.
    pub fn keys_within<'a>(&'a self, start: &'a str) -> impl Iterator<Item = &'a str> {
        let from = self.0.range::<str, _>((Bound::Included(start), Bound::Unbounded));
        from.map(|(key, _)| key.as_str()).take_while(move |key| key.starts_with(start))
    }

    /// Returns the value of a key in exactly this spelling.
    pub fn exact<'k>(&self, key: impl Into<ContextKey<'k>>) -> Option<&Value> {
        self.0.get(key.into().0).map(|entry| &entry.value)
    }
}

/// A key in either spelling.
#[derive(Debug, Clone, Copy)]
pub struct ContextKey<'a>(pub &'a str);

impl<'a, K: AsRef<str> + ?Sized> From<&'a K> for ContextKey<'a> {
    fn from(key: &'a K) -> Self {
        Self(key.as_ref())
    }
}

impl<'a> ContextKey<'a> {
    /// Returns true if a stage with this handler stores its answer under this key.
    pub fn is_answer_of(self, handler: &str) -> bool {
        let key = self.plain();
        ANSWER_KEYS.contains(&key) && (key != TOOL_OUTPUT || HandlerKind::from_name(handler) == HandlerKind::Tool)
    }

    /// Returns true if only the engine may write the key.
    pub fn is_reserved(self) -> bool {
        let key = self.plain();
        let within =
            |namespace: &str| key.strip_prefix(namespace).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        RESERVED_KEYS.contains(&key) || RESERVED_NAMESPACES.into_iter().any(within)
    }

    /// Returns the key without any leading `context.`.
    pub fn plain(self) -> &'a str {
        let mut key = self.0;
        while let Some(rest) = key.strip_prefix("context.") {
            key = rest;
        }
        key
    }

    /// Returns the other spelling of the key.
    fn twin(self) -> String {
        self.0.strip_prefix("context.").map_or_else(|| format!("context.{}", self.0), str::to_owned)
    }

    /// Returns the size of the key and a value, bytes.
    fn size(self, value: &Value) -> usize {
        self.0.len() + value.to_string().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_spellings_are_one_key() {
        let mut context = Context::default();
        context.set("context.passed", json!(true));
        assert_eq!((context.text("passed"), context.text("context.passed")), ("true".into(), "true".into()));
        context.set("passed", json!("no"));
        assert_eq!((context.text("context.passed").as_str(), context.iter().count()), ("no", 1));
        context.remove("context.passed");
        assert!(context.iter().next().is_none());
    }

    #[test]
    fn only_the_engine_makes_an_entry_a_reference() {
        let reference = StoredValue::new(r#""text""#, "text").reference();
        let mut context = Context::default();
        context.set("forged", reference.clone());
        assert_eq!((context.stored("forged"), context.text("forged")), (None, reference.to_string()));
        context.set("big", reference.clone());
        context.note_reference("big", &json!("another value by now"));
        assert_eq!(context.stored("big"), None);
        context.note_reference("big", &reference);
        let stored = context.stored("context.big").unwrap();
        assert_eq!((stored.bytes, stored.head.as_str()), (6, "text"));
        assert_eq!(context.text("big"), stored.artifact.to_string());
        let mut next = Context::default();
        next.take_over("big", &context);
        assert_eq!(next.stored("big"), Some(stored));
        next.set("context.big", json!("small"));
        assert_eq!((next.stored("big"), next.text("big").as_str()), (None, "small"));
        let read: Context = serde_json::from_value(serde_json::to_value(&context).unwrap()).unwrap();
        assert_eq!(read.stored("big"), None, "what is read from a file is data");
    }
}
