//! Attributes by key, as a sorted list.
//!
//! A node has a handful of attributes and a file has thousands of nodes: a list of exactly that many entries is a tenth of the
//! memory of a tree, and keys this runtime knows are not copied at all.

use crate::attributes::ATTRIBUTES;
use crate::ir::Attribute;
use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

/// The key of an attribute.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Text);

/// A known key is its number in [`ATTRIBUTES`], any other owns its text.
#[derive(Clone)]
enum Text {
    Known(u8),
    Other(Box<str>),
}

/// A known key's number fits its type.
const _: () = assert!(ATTRIBUTES.len() <= u8::MAX as usize + 1);

impl Key {
    /// The key as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Its number in [`ATTRIBUTES`]; none for a key that is not of the table.
    pub(crate) fn number(&self) -> Option<usize> {
        match self.0 {
            Text::Known(number) => Some(number.into()),
            Text::Other(_) => None,
        }
    }
}

impl Text {
    fn as_str(&self) -> &str {
        match self {
            Text::Known(number) => ATTRIBUTES[usize::from(*number)].name,
            Text::Other(text) => text,
        }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl std::hash::Hash for Text {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        let known = known()[drawer(text)].iter().find(|(name, _)| *name == text);
        Self(known.map_or_else(|| Text::Other(text.into()), |(_, number)| Text::Known(*number)))
    }
}

/// Names and numbers of the table, in drawers.
fn known() -> &'static [Vec<(&'static str, u8)>; DRAWERS] {
    static KNOWN: OnceLock<[Vec<(&'static str, u8)>; DRAWERS]> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let mut drawers = [const { Vec::new() }; DRAWERS];
        for (number, known) in (0..=u8::MAX).zip(ATTRIBUTES) {
            drawers[drawer(known.name)].push((known.name, number));
        }
        drawers
    })
}

/// Into so many drawers keys are sorted: the bits of a `u64`.
const DRAWERS: usize = u64::BITS as usize;

/// The drawer of a key, by its length and its outer letters. A constant where the key is one.
#[inline]
fn drawer(key: &str) -> usize {
    let letters = key.as_bytes();
    match (letters.first(), letters.last()) {
        (Some(first), Some(last)) => (letters.len() * 7 + *first as usize * 3 + *last as usize) % DRAWERS,
        _ => 0,
    }
}

impl Deref for Key {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Attributes in the order of their keys.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    entries: Vec<(Key, Attribute)>,
    /// One bit for each drawer that some key is of: a look for any other key ends here, and most looks are for absent keys.
    drawers: u64,
}

impl Attributes {
    /// No attributes.
    pub fn new() -> Self {
        Self::default()
    }

    /// No attributes, with room for some.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self { entries: Vec::with_capacity(count), drawers: 0 }
    }

    fn place(&self, key: &str) -> Result<usize, usize> {
        // A handful of entries: looking at each is faster than searching by halves.
        for (at, (own, _)) in self.entries.iter().enumerate() {
            match own.as_str().cmp(key) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => return Ok(at),
                std::cmp::Ordering::Greater => return Err(at),
            }
        }
        Err(self.entries.len())
    }

    /// The attribute of that key.
    #[inline]
    pub fn get(&self, key: &str) -> Option<&Attribute> {
        if self.drawers & (1 << drawer(key)) == 0 { None } else { self.look(key) }
    }

    fn look(&self, key: &str) -> Option<&Attribute> {
        self.entries.iter().find(|(own, _)| own.as_str() == key).map(|(_, attribute)| attribute)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Attribute> {
        self.entries.iter_mut().find(|(own, _)| own.as_str() == key).map(|(_, attribute)| attribute)
    }

    /// True when the key is there.
    #[inline]
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Sets an attribute; gives the one it replaces.
    pub fn insert(&mut self, key: &str, attribute: Attribute) -> Option<Attribute> {
        match self.place(key) {
            Ok(at) => Some(std::mem::replace(&mut self.entries[at].1, attribute)),
            Err(at) => {
                self.put(at, key, attribute);
                None
            }
        }
    }

    /// The attribute of that key, made when it is absent.
    pub fn get_or_insert_with(&mut self, key: &str, make: impl FnOnce() -> Attribute) -> &mut Attribute {
        let at = match self.place(key) {
            Ok(at) => at,
            Err(at) => {
                self.put(at, key, make());
                at
            }
        };
        &mut self.entries[at].1
    }

    fn put(&mut self, at: usize, key: &str, attribute: Attribute) {
        self.drawers |= 1 << drawer(key);
        self.entries.insert(at, (Key::from(key), attribute));
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Keys and attributes in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Attribute)> + Clone {
        self.entries.iter().map(|(key, attribute)| (key, attribute))
    }

    /// Keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.entries.iter().map(|(key, _)| key)
    }
}

impl std::ops::Index<&str> for Attributes {
    type Output = Attribute;

    /// The attribute of a key that is known to be there.
    fn index(&self, key: &str) -> &Attribute {
        self.get(key).expect("the attribute is there: whoever indexes has looked")
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a Attributes {
    type Item = (&'a Key, &'a Attribute);
    type IntoIter = std::iter::Map<std::slice::Iter<'a, (Key, Attribute)>, fn(&'a (Key, Attribute)) -> Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter().map(|(key, attribute)| (key, attribute))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Span;

    fn attribute(value: &str) -> Attribute {
        Attribute { value: value.into(), key_span: Span::default(), span: Span::default() }
    }

    #[test]
    fn entries_are_in_order_and_replaced_not_doubled() {
        let mut attributes = Attributes::new();
        for key in ["shape", "acme.depth", "label", "zebra", "Label"] {
            assert_eq!(attributes.insert(key, attribute(key)), None, "{key}");
        }
        assert_eq!(attributes.insert("label", attribute("other")).unwrap().value, "label");
        attributes.get_or_insert_with("label", || attribute("unused"));
        attributes.get_or_insert_with("class", || attribute("made"));
        let keys: Vec<&str> = attributes.keys().map(Key::as_str).collect();
        assert_eq!(keys, ["Label", "acme.depth", "class", "label", "shape", "zebra"]);
        assert_eq!((attributes.get("label").unwrap().value.as_str(), attributes.len()), ("other", 6));
        assert!(attributes.get("depth").is_none());
    }
}
