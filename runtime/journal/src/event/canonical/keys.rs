//! Keys of canonical JSON: quoting and order.

use serde::ser::Error as _;
use serde_json::Error;
use std::borrow::Cow;
use std::cmp::Ordering;

const QUOTE: u8 = b'"';
const ESCAPE: u8 = b'\\';

/// Quotes a key that was written as a number or a boolean. Returns an error for a value that cannot be a key.
pub(super) fn quote(bytes: &mut Vec<u8>, begin: usize) -> Result<(), Error> {
    match bytes.get(begin) {
        Some(&QUOTE) => Ok(()),
        Some(b'[' | b'{' | b'n') | None => Err(Error::custom("key must be a string")),
        Some(_) => {
            bytes.insert(begin, QUOTE);
            bytes.push(QUOTE);
            Ok(())
        }
    }
}

/// Compares two quoted keys by the bytes of the unescaped text.
pub(super) fn order(one: &[u8], other: &[u8]) -> Ordering {
    let (one_inner, other_inner) = (inner(one), inner(other));
    let common = one_inner.iter().zip(other_inner).take_while(|(a, b)| a == b).count();
    let decisive = |inner: &[u8]| inner.get(..=common).unwrap_or(inner).contains(&ESCAPE);
    if decisive(one_inner) || decisive(other_inner) {
        return meaning(one).cmp(&meaning(other));
    }
    one_inner.get(common).cmp(&other_inner.get(common))
}

fn inner(quoted: &[u8]) -> &[u8] {
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default()
}

fn meaning(quoted: &[u8]) -> Cow<'_, [u8]> {
    // The text was just written by `serde_json`, so parsing it does not fail.
    serde_json::from_slice::<String>(quoted).map_or(Cow::Borrowed(inner(quoted)), |key| Cow::Owned(key.into_bytes()))
}
