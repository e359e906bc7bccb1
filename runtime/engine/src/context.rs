//! The pipeline author's key/value map, and the rules for who may write which key.
//!
//! `context.x` and `x` are one key: setting either replaces the other, and both find it. Keys that belong to the engine, in
//! either spelling, are refused to handlers, so that no stage can pretend an outcome, a choice of a person or a counter. Sizes
//! are bounded here, since every checkpoint carries the whole map.

use crate::event::Refusal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Longest key, bytes.
pub const KEY_BYTES_MAX: usize = 256;
/// Largest value as JSON, bytes.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Most keys that handlers may set.
pub const KEYS_MAX: usize = 1000;
/// Largest sum of what handlers set, keys and values as JSON, bytes.
pub const CONTEXT_BYTES_MAX: usize = 1024 * 1024;

/// Keys that only the engine writes.
const RESERVED_KEYS: [&str; 3] = ["outcome", "preferred_label", "current_node"];
/// Namespaces that only the engine writes (spec §5.1), with and without what follows the dot.
const RESERVED_NAMESPACES: [&str; 5] = ["graph", "internal", "parallel", "stack", "human.gate"];

/// The map. Keys are kept as they were written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Context(BTreeMap<String, Value>);

impl Context {
    /// The value of a key in either spelling.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key).or_else(|| self.0.get(&twin(key)))
    }

    /// The value as conditions see it (spec §10.4): text as it is, other scalars and structures as JSON, nothing as empty.
    pub fn text(&self, key: &str) -> String {
        match self.get(key) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        }
    }

    /// Sets a key without asking who may. For the engine and for updates that [`admit`] let through.
    pub fn set(&mut self, key: impl Into<String>, value: Value) {
        let key = key.into();
        self.0.remove(&twin(&key));
        self.0.insert(key, value);
    }

    /// Removes a key in either spelling.
    pub fn remove(&mut self, key: &str) {
        self.0.remove(key);
        self.0.remove(&twin(key));
    }

    /// All entries in the order of their keys.
    pub fn entries(&self) -> &BTreeMap<String, Value> {
        &self.0
    }
}

/// Parts what a handler wants to set into what it may set and why it may not set the rest. Denied: engine keys in either
/// spelling, empty and oversized keys, oversized values, whatever would carry the context over its bounds.
pub fn admit(context: &Context, updates: BTreeMap<String, Value>) -> (BTreeMap<String, Value>, Vec<Refusal>) {
    let own = context.entries().iter().filter(|(key, _)| !is_reserved(key));
    let mut sizes: BTreeMap<String, usize> =
        own.map(|(key, value)| (plain(key).to_owned(), size(key, value))).collect();
    let mut total: usize = sizes.values().sum();
    let mut refusals = Vec::new();
    let mut admitted = BTreeMap::new();
    for (key, value) in updates {
        let bytes = size(&key, &value);
        let replaced = sizes.get(plain(&key)).copied();
        let keys = sizes.len() + usize::from(replaced.is_none());
        let total_then = total - replaced.unwrap_or(0) + bytes;
        match objection(&key, bytes, keys, total_then) {
            Some(reason) => refusals.push(refusal(&key, reason)),
            None => {
                total = total_then;
                sizes.insert(plain(&key).to_owned(), bytes);
                admitted.insert(key, value);
            }
        }
    }
    (admitted, refusals)
}

/// True when only the engine may write the key.
pub fn is_reserved(key: &str) -> bool {
    let key = plain(key);
    let within =
        |namespace: &str| key.strip_prefix(namespace).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    RESERVED_KEYS.contains(&key) || RESERVED_NAMESPACES.into_iter().any(within)
}

fn objection(key: &str, bytes: usize, keys: usize, total: usize) -> Option<String> {
    if plain(key).is_empty() {
        Some("a key must not be empty".into())
    } else if key.len() > KEY_BYTES_MAX {
        Some(format!("the key is longer than {KEY_BYTES_MAX} bytes"))
    } else if is_reserved(key) {
        Some("the key belongs to the engine".into())
    } else if bytes > VALUE_BYTES_MAX {
        Some(format!("{bytes} bytes are more than {VALUE_BYTES_MAX}"))
    } else if keys > KEYS_MAX {
        Some(format!("the context has {KEYS_MAX} keys already"))
    } else if total > CONTEXT_BYTES_MAX {
        Some(format!("the context would grow beyond {CONTEXT_BYTES_MAX} bytes"))
    } else {
        None
    }
}

fn refusal(key: &str, reason: String) -> Refusal {
    let shown: String = glovebox_sandbox::refusal::escaped(key).chars().take(KEY_BYTES_MAX).collect();
    let help =
        "no grant allows it; use a key of your own, such as `work.result`, and an artifact for large values".into();
    Refusal { operation: "context".into(), path: shown, reason, help }
}

fn size(key: &str, value: &Value) -> usize {
    key.len() + value.to_string().len()
}

/// The key without any `context.` in front.
pub(crate) fn plain(key: &str) -> &str {
    let mut key = key;
    while let Some(rest) = key.strip_prefix("context.") {
        key = rest;
    }
    key
}

/// The other spelling of a key.
fn twin(key: &str) -> String {
    key.strip_prefix("context.").map_or_else(|| format!("context.{key}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn engine_keys_are_refused_in_every_spelling() {
        for key in [
            "outcome",
            "context.outcome",
            "context.context.outcome",
            "preferred_label",
            "current_node",
            "graph.goal",
            "graph",
            "internal.retry_count.a",
            "parallel.results",
            "stack.child",
            "human.gate.selected",
            "context.human.gate",
            "",
            "context.",
        ] {
            let (admitted, refusals) = admit(&Context::default(), BTreeMap::from([(key.to_owned(), json!("x"))]));
            assert!(admitted.is_empty(), "`{key}` got through");
            assert_eq!((refusals[0].operation.as_str(), refusals[0].path.as_str()), ("context", key));
        }
        for key in
            ["last_stage", "last_response", "tool.output", "context.tests", "work.item", "graphics", "humane", "x"]
        {
            let (admitted, refusals) = admit(&Context::default(), BTreeMap::from([(key.to_owned(), json!("x"))]));
            assert_eq!((admitted.len(), refusals.len()), (1, 0), "`{key}` was refused");
        }
    }

    #[test]
    fn both_spellings_are_one_key() {
        let mut context = Context::default();
        context.set("context.passed", json!(true));
        assert_eq!((context.text("passed"), context.text("context.passed")), ("true".into(), "true".into()));
        context.set("passed", json!("no"));
        assert_eq!((context.text("context.passed").as_str(), context.entries().len()), ("no", 1));
        context.remove("context.passed");
        assert!(context.entries().is_empty());
    }

    #[test]
    fn sizes_are_bounded_and_a_replacement_frees_what_it_replaces() {
        let big = json!("x".repeat(VALUE_BYTES_MAX - 100));
        let mut context = Context::default();
        for index in 0..CONTEXT_BYTES_MAX / VALUE_BYTES_MAX {
            let (admitted, refusals) = admit(&context, BTreeMap::from([(format!("k{index:02}"), big.clone())]));
            assert!(refusals.is_empty());
            admitted.into_iter().for_each(|(key, value)| context.set(key, value));
        }
        let (_, refusals) = admit(&context, BTreeMap::from([("one_more".to_owned(), big.clone())]));
        assert!(refusals[0].reason.contains("grow beyond"));
        assert_eq!(admit(&context, BTreeMap::from([("context.k00".to_owned(), big)])).1, []);
        let (_, refusals) = admit(&Context::default(), BTreeMap::from([("k".to_owned(), json!("x".repeat(70_000)))]));
        assert!(refusals[0].reason.contains("more than"));
        let many = (0..KEYS_MAX + 5).map(|index| (format!("k{index}"), json!(1))).collect();
        assert_eq!(admit(&Context::default(), many).1.len(), 5);
    }
}
