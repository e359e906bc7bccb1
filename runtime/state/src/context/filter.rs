//! Decides which context updates of a handler are accepted.
//!
//! It refuses the engine's keys in either spelling, empty keys, and oversized keys and values. It also refuses updates
//! that would make the context too large, or exceed the limit on blobs of the run.

use super::{
    CONTEXT_BYTES_MAX, Context, ContextKey, KEY_BYTES_MAX, KEYS_MAX, STORED_BYTES_MAX, STORED_VALUE_BYTES_MAX,
    VALUE_BYTES_MAX,
};
use glovebox_journal::event::Refusal;
use glovebox_record::StoredValue;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The updates that are references to blobs, and the size of the blobs that the run has stored so far.
#[derive(Clone, Copy)]
pub struct StoredUpdates<'a> {
    /// The keys of these updates.
    pub keys: &'a BTreeSet<String>,
    /// Sum of the values that the run has stored as blobs so far, bytes.
    pub run_bytes: u64,
}

/// The size of a context after one more update.
#[derive(Clone, Copy)]
struct Sizes {
    /// Size of the update, bytes.
    update: usize,
    /// Number of keys after the update.
    keys: usize,
    /// Size of the context after the update, bytes.
    total: usize,
    /// Sum of the values stored as blobs after the update, bytes.
    stored: u64,
}

/// Splits the updates of a handler into the accepted ones and refusals of the others.
pub fn filter_updates(
    context: &Context,
    updates: BTreeMap<String, Value>,
    stored: StoredUpdates<'_>,
) -> (BTreeMap<String, Value>, Vec<Refusal>) {
    let known = context.iter().map(|(key, value)| (ContextKey(key), value));
    let mut sizes: BTreeMap<String, usize> = known
        .filter(|(key, _)| !key.is_reserved())
        .map(|(key, value)| (key.plain().to_owned(), key.size(value)))
        .collect();
    let mut total: usize = sizes.values().sum();
    let mut run_bytes = stored.run_bytes;
    let mut refusals = Vec::new();
    let mut accepted = BTreeMap::new();
    for (written, value) in updates {
        let key = ContextKey(&written);
        let update = key.size(&value);
        let replaced = sizes.get(key.plain()).copied();
        let keys = sizes.len() + usize::from(replaced.is_none());
        let new = if stored.keys.contains(&written) { context.newly_stored(&written, &value) } else { 0 };
        let total_after = total - replaced.unwrap_or(0) + update;
        let after = Sizes { update, keys, total: total_after, stored: run_bytes.saturating_add(new) };
        if let Some(refusal) = refusal(key, after) {
            refusals.push(refusal);
            continue;
        }
        (total, run_bytes) = (after.total, after.stored);
        sizes.insert(key.plain().to_owned(), update);
        accepted.insert(written, value);
    }
    (accepted, refusals)
}

impl Context {
    /// Returns the bytes that a reference adds to the blobs of the run: 0 if the key already has this value.
    pub(crate) fn newly_stored<'k>(&self, key: impl Into<ContextKey<'k>>, reference: &Value) -> u64 {
        let known = self.stored(key).map(|stored| stored.artifact);
        StoredValue::from_reference(reference)
            .filter(|stored| Some(stored.artifact) != known)
            .map_or(0, |stored| stored.bytes)
    }
}

/// Returns the reason why a handler may not set a key, or `None` if it may.
fn refusal(key: ContextKey<'_>, after: Sizes) -> Option<Refusal> {
    let reason = if key.plain().is_empty() {
        "a key must not be empty".to_owned()
    } else if key.0.len() > KEY_BYTES_MAX {
        format!("the key is longer than {KEY_BYTES_MAX} bytes")
    } else if key.is_reserved() {
        "only the engine can write this key".to_owned()
    } else if after.update > VALUE_BYTES_MAX {
        let limit = STORED_VALUE_BYTES_MAX;
        format!("the value has {} bytes, and the limit of a stored value is {limit}", after.update - key.0.len())
    } else if after.keys > KEYS_MAX {
        format!("the context already has {KEYS_MAX} keys")
    } else if after.total > CONTEXT_BYTES_MAX {
        format!("the context would exceed {CONTEXT_BYTES_MAX} bytes")
    } else if after.stored > STORED_BYTES_MAX {
        format!("the stored context values of the run would exceed {STORED_BYTES_MAX} bytes")
    } else {
        return None;
    };
    let path: String = glovebox_names::visible::line(key.0).chars().take(KEY_BYTES_MAX).collect();
    let help = "no grant allows this; use another key, such as `work.result`, and a file for larger values".into();
    Some(Refusal { operation: "context".into(), path, reason, help })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn filter_updates(context: &Context, updates: BTreeMap<String, Value>) -> (BTreeMap<String, Value>, Vec<Refusal>) {
        super::filter_updates(context, updates, StoredUpdates { keys: &BTreeSet::new(), run_bytes: 0 })
    }

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
        assert!(refusals[0].reason.contains("the limit of a stored value is 8388608"));
        let many = (0..KEYS_MAX + 5).map(|index| (format!("k{index}"), json!(1))).collect();
        assert_eq!(filter_updates(&Context::default(), many).1.len(), 5);
    }

    #[test]
    fn references_count_what_they_stand_for() {
        let reference = |bytes: u64| json!({ "artifact": glovebox_journal::event::Digest::hash(&bytes.to_le_bytes()), "bytes": bytes, "head": "x" });
        let check = |context: &Context, value: &Value, run_bytes: u64| {
            let keys = BTreeSet::from(["big".to_owned()]);
            let updates = BTreeMap::from([("big".to_owned(), value.clone())]);
            let (_, refusals) = super::filter_updates(context, updates, StoredUpdates { keys: &keys, run_bytes });
            refusals.into_iter().map(|refusal| refusal.reason).next()
        };
        let mut context = Context::default();
        assert_eq!(check(&context, &reference(1000), STORED_BYTES_MAX - 1000), None);
        let reason = check(&context, &reference(1001), STORED_BYTES_MAX - 1000).unwrap();
        assert_eq!(reason, "the stored context values of the run would exceed 67108864 bytes");
        context.set("big", reference(1001));
        context.note_reference("big", &reference(1001));
        assert_eq!(check(&context, &reference(1001), STORED_BYTES_MAX), None, "the same value again");
        assert!(check(&context, &reference(1002), STORED_BYTES_MAX).is_some());
    }
}
