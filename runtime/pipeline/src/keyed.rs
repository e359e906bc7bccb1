//! Attributes by key, stored as a sorted list, because a node has few attributes and a file may have thousands of nodes.

use crate::key::Key;
use crate::span::Span;
use std::fmt;

/// An immutable text. Up to 23 bytes are stored inline; the clones of a longer text share its memory.
pub type Text = smol_str::SmolStr;

/// The value of an attribute, with its spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Value with escapes resolved.
    pub value: Text,
    /// Span of the key.
    pub key_span: Span,
    /// Span of the value, including quotes.
    pub span: Span,
}

/// Attributes, sorted by key.
#[derive(Clone, Default)]
pub struct Attributes {
    entries: Vec<(Text, Attribute)>,
    /// A Bloom filter over the keys: a key whose bit is not set is absent. Most lookups are for absent keys.
    filter: u64,
}

impl Attributes {
    /// Creates an empty list of attributes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty list with capacity for `count` attributes.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self { entries: Vec::with_capacity(count), filter: 0 }
    }

    /// Returns the index of a key. The error is the index at which the key would be inserted.
    fn position(&self, key: Key<'_>) -> Result<usize, usize> {
        self.entries.binary_search_by(|(own, _)| own.as_str().cmp(key.as_str()))
    }

    /// Returns the attribute with this key.
    #[inline]
    pub fn get(&self, key: Key<'_>) -> Option<&Attribute> {
        if self.filter & filter_bit(key) == 0 {
            return None;
        }
        // With so few entries, comparing each key is faster than a binary search, because most keys already differ in length.
        self.entries.iter().find(|(own, _)| own == key.as_str()).map(|(_, attribute)| attribute)
    }

    /// Returns a mutable reference to the attribute with this key.
    pub fn get_mut(&mut self, key: Key<'_>) -> Option<&mut Attribute> {
        self.entries.iter_mut().find(|(own, _)| own == key.as_str()).map(|(_, attribute)| attribute)
    }

    /// Returns true if there is an attribute with this key.
    pub fn contains_key(&self, key: Key<'_>) -> bool {
        self.get(key).is_some()
    }

    /// Sets an attribute. Returns the one that it replaces.
    pub fn insert(&mut self, key: Key<'_>, attribute: Attribute) -> Option<Attribute> {
        self.filter |= filter_bit(key);
        match self.position(key) {
            Ok(at) => Some(std::mem::replace(&mut self.entries[at].1, attribute)),
            Err(at) => {
                self.entries.insert(at, (key.as_str().into(), attribute));
                None
            }
        }
    }

    /// Removes the attribute with this key and returns it.
    pub(crate) fn remove(&mut self, key: Key<'_>) -> Option<Attribute> {
        self.position(key).ok().map(|at| self.entries.remove(at).1)
    }

    /// Returns a mutable reference to the attribute with this key. If there is none, first inserts the result of
    /// `make`.
    pub fn get_or_insert_with(&mut self, key: Key<'_>, make: impl FnOnce() -> Attribute) -> &mut Attribute {
        self.filter |= filter_bit(key);
        let at = self.position(key).unwrap_or_else(|at| {
            self.entries.insert(at, (key.as_str().into(), make()));
            at
        });
        &mut self.entries[at].1
    }

    /// Returns true if there are no attributes.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of attributes.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the keys and attributes, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (Key<'_>, &Attribute)> + Clone {
        self.entries.iter().map(|(key, attribute)| (Key::new(key), attribute))
    }

    /// Returns the keys, sorted, with mutable references to their attributes.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Key<'_>, &mut Attribute)> {
        self.entries.iter_mut().map(|(key, attribute)| (Key::new(key), attribute))
    }

    /// Returns the keys in order.
    pub fn keys(&self) -> impl Iterator<Item = Key<'_>> {
        self.entries.iter().map(|(key, _)| Key::new(key))
    }
}

/// Returns the bit of a key in the filter. It depends on the length and the last letter, in which the known keys differ most.
#[inline]
fn filter_bit(key: Key<'_>) -> u64 {
    let text = key.as_str().as_bytes();
    let last = text.last().copied().unwrap_or_default();
    1 << ((text.len() * 5 + usize::from(last)) % 64)
}

impl PartialEq for Attributes {
    /// Compares the entries. The filter of two equal lists can differ, because a removed key keeps its bit.
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl Eq for Attributes {}

impl std::ops::Index<Key<'_>> for Attributes {
    type Output = Attribute;

    /// Returns the attribute with this key. Panics if there is none.
    fn index(&self, key: Key<'_>) -> &Attribute {
        self.get(key).expect("the caller has checked that the attribute is there")
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a Attributes {
    type Item = (Key<'a>, &'a Attribute);
    type IntoIter = std::iter::Map<std::slice::Iter<'a, (Text, Attribute)>, fn(&'a (Text, Attribute)) -> Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter().map(|(key, attribute)| (Key::new(key), attribute))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key;

    fn attribute(value: &str) -> Attribute {
        Attribute { value: value.into(), key_span: Span::default(), span: Span::default() }
    }

    #[test]
    fn entries_are_in_order_and_replaced_not_doubled() {
        let mut attributes = Attributes::new();
        for key in ["shape", "acme.depth", "label", "zebra", "Label"] {
            assert_eq!(attributes.insert(Key::new(key), attribute(key)), None, "{key}");
        }
        assert_eq!(attributes.insert(key::LABEL, attribute("other")).unwrap().value, "label");
        attributes.get_or_insert_with(key::LABEL, || attribute("unused"));
        attributes.get_or_insert_with(key::CLASS, || attribute("made"));
        let keys: Vec<&str> = attributes.keys().map(Key::as_str).collect();
        assert_eq!(keys, ["Label", "acme.depth", "class", "label", "shape", "zebra"]);
        assert_eq!((attributes.get(key::LABEL).unwrap().value.as_str(), attributes.len()), ("other", 6));
        assert!(attributes.get(Key::new("depth")).is_none());
    }
}
