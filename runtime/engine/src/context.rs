//! The pipeline author's key/value map, and the rules for which keys a handler may write.
//!
//! `context.x` and `x` are one key: setting either replaces the other, and both find it. A handler cannot write the engine's keys, in
//! either spelling, so that no stage can forge an outcome, a choice of a person or a counter. Sizes are bounded here, because every
//! checkpoint contains the whole map.

use crate::event::Refusal;
use rpds::RedBlackTreeMapSync;
use schemars::JsonSchema;
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

/// Values by key, keys as they were written.
// A copy shares all entries with its original.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Context(#[schemars(with = "BTreeMap<String, Value>")] RedBlackTreeMapSync<String, Value>);

impl Default for Context {
    fn default() -> Self {
        Self(RedBlackTreeMapSync::new_sync())
    }
}

impl Context {
    /// The value of a key in either spelling.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key).or_else(|| self.0.get(&ContextKey(key).twin()))
    }

    /// The value as conditions see it (spec §10.4): text as it is, other scalars and structures as JSON, nothing as empty.
    pub fn text(&self, key: &str) -> String {
        match self.get(key) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        }
    }

    /// Sets a key without a check. For the engine, and for updates that [`filter_updates`] accepted.
    pub fn set(&mut self, key: impl Into<String>, value: Value) {
        let key = key.into();
        self.0.remove_mut(&ContextKey(&key).twin());
        self.0.insert_mut(key, value);
    }

    /// Removes a key in either spelling.
    pub fn remove(&mut self, key: &str) {
        self.0.remove_mut(key);
        self.0.remove_mut(&ContextKey(key).twin());
    }

    /// All entries in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter()
    }

    /// The value of a key in this very spelling.
    pub fn exact(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }
}

/// A key in either spelling.
#[derive(Debug, Clone, Copy)]
pub struct ContextKey<'a>(pub &'a str);

impl<'a> ContextKey<'a> {
    /// True when only the engine may write the key.
    pub fn is_reserved(self) -> bool {
        let key = self.plain();
        let within =
            |namespace: &str| key.strip_prefix(namespace).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        RESERVED_KEYS.contains(&key) || RESERVED_NAMESPACES.into_iter().any(within)
    }

    /// The key without any `context.` in front.
    pub fn plain(self) -> &'a str {
        let mut key = self.0;
        while let Some(rest) = key.strip_prefix("context.") {
            key = rest;
        }
        key
    }

    /// The other spelling of the key.
    fn twin(self) -> String {
        self.0.strip_prefix("context.").map_or_else(|| format!("context.{}", self.0), str::to_owned)
    }

    /// Bytes of the key and a value.
    fn size(self, value: &Value) -> usize {
        self.0.len() + value.to_string().len()
    }
}

/// The size of a context with one more update.
#[derive(Clone, Copy)]
struct Sizes {
    /// Bytes of the update.
    update: usize,
    /// Keys with it.
    keys: usize,
    /// Bytes with it.
    total: usize,
}

/// Splits the updates of a handler into those that it may set and refusals of the others. Denied: engine keys in either spelling,
/// empty and oversized keys, oversized values, and what would make the context too large.
pub fn filter_updates(context: &Context, updates: BTreeMap<String, Value>) -> (BTreeMap<String, Value>, Vec<Refusal>) {
    let known = context.iter().map(|(key, value)| (ContextKey(key), value));
    let mut sizes: BTreeMap<String, usize> = known
        .filter(|(key, _)| !key.is_reserved())
        .map(|(key, value)| (key.plain().to_owned(), key.size(value)))
        .collect();
    let mut total: usize = sizes.values().sum();
    let mut refusals = Vec::new();
    let mut accepted = BTreeMap::new();
    for (written, value) in updates {
        let key = ContextKey(&written);
        let update = key.size(&value);
        let replaced = sizes.get(key.plain()).copied();
        let keys = sizes.len() + usize::from(replaced.is_none());
        let after = Sizes { update, keys, total: total - replaced.unwrap_or(0) + update };
        if let Some(refusal) = refusal(key, after) {
            refusals.push(refusal);
            continue;
        }
        total = after.total;
        sizes.insert(key.plain().to_owned(), update);
        accepted.insert(written, value);
    }
    (accepted, refusals)
}

/// Why a handler may not set a key; none when it may.
fn refusal(key: ContextKey<'_>, after: Sizes) -> Option<Refusal> {
    let reason = if key.plain().is_empty() {
        "a key must not be empty".to_owned()
    } else if key.0.len() > KEY_BYTES_MAX {
        format!("the key is longer than {KEY_BYTES_MAX} bytes")
    } else if key.is_reserved() {
        "only the engine can write this key".to_owned()
    } else if after.update > VALUE_BYTES_MAX {
        format!("key and value have {} bytes, and the limit is {VALUE_BYTES_MAX}", after.update)
    } else if after.keys > KEYS_MAX {
        format!("the context already has {KEYS_MAX} keys")
    } else if after.total > CONTEXT_BYTES_MAX {
        format!("the context would exceed {CONTEXT_BYTES_MAX} bytes")
    } else {
        return None;
    };
    let path: String = glovebox_sandbox::refusal::escaped(key.0).chars().take(KEY_BYTES_MAX).collect();
    let help = "no grant allows this; use another key, such as `work.result`, and an artifact for large values".into();
    Some(Refusal { operation: "context".into(), path, reason, help })
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
            let (admitted, refusals) =
                filter_updates(&Context::default(), BTreeMap::from([(key.to_owned(), json!("x"))]));
            assert!(admitted.is_empty(), "`{key}` got through");
            assert_eq!((refusals[0].operation.as_str(), refusals[0].path.as_str()), ("context", key));
        }
        for key in
            ["last_stage", "last_response", "tool.output", "context.tests", "work.item", "graphics", "humane", "x"]
        {
            let (admitted, refusals) =
                filter_updates(&Context::default(), BTreeMap::from([(key.to_owned(), json!("x"))]));
            assert_eq!((admitted.len(), refusals.len()), (1, 0), "`{key}` was refused");
        }
    }

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
    fn sizes_are_bounded_and_a_replacement_frees_what_it_replaces() {
        let big = json!("x".repeat(VALUE_BYTES_MAX - 100));
        let mut context = Context::default();
        for index in 0..CONTEXT_BYTES_MAX / VALUE_BYTES_MAX {
            let (admitted, refusals) =
                filter_updates(&context, BTreeMap::from([(format!("k{index:02}"), big.clone())]));
            assert!(refusals.is_empty());
            admitted.into_iter().for_each(|(key, value)| context.set(key, value));
        }
        let (_, refusals) = filter_updates(&context, BTreeMap::from([("one_more".to_owned(), big.clone())]));
        assert!(refusals[0].reason.contains("would exceed"));
        assert_eq!(filter_updates(&context, BTreeMap::from([("context.k00".to_owned(), big)])).1, []);
        let (_, refusals) =
            filter_updates(&Context::default(), BTreeMap::from([("k".to_owned(), json!("x".repeat(70_000)))]));
        assert!(refusals[0].reason.contains("the limit is"));
        let many = (0..KEYS_MAX + 5).map(|index| (format!("k{index}"), json!(1))).collect();
        assert_eq!(filter_updates(&Context::default(), many).1.len(), 5);
    }
}
