//! The ids of objects in a git repository.
//!
//! Git uses SHA-1. The security of Glovebox does not depend on it: a person who can forge an object of the project's
//! repository can also write the object itself.

use sha1_smol::Sha1;
use std::fmt;

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Commit,
    Tree,
    Blob,
    Tag,
}

impl ObjectKind {
    const ALL: [Self; 4] = [Self::Commit, Self::Tree, Self::Blob, Self::Tag];

    /// Returns the kind with this word in the header of an object.
    pub(super) fn from_word(word: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word().as_bytes() == word)
    }

    /// Returns the kind with this number in a packfile.
    pub(super) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        }
    }

    /// Returns the number of the kind in a packfile.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Commit => 1,
            Self::Tree => 2,
            Self::Blob => 3,
            Self::Tag => 4,
        }
    }
}

/// The id of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ObjectId(pub(super) [u8; 20]);

impl ObjectId {
    /// Parses 40 hexadecimal digits. `None` for any other text, also for an id of a repository that uses SHA-256.
    pub(super) fn from_hex(text: &str) -> Option<Self> {
        let mut id = [0; 20];
        let is_hex = text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        for (byte, at) in id.iter_mut().zip((0..40).step_by(2)).filter(|_| is_hex) {
            *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
        }
        is_hex.then_some(Self(id))
    }

    /// Creates the id from its 20 bytes. `None` for another number of bytes.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Returns the id of an object with this content.
    pub(super) fn for_object(kind: ObjectKind, content: &[u8]) -> Self {
        let mut digest = Sha1::new();
        digest.update(format!("{} {}\0", kind.word(), content.len()).as_bytes());
        digest.update(content);
        Self(digest.digest().bytes())
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_git() {
        assert_eq!(ObjectId::for_object(ObjectKind::Blob, b"").to_string(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(ObjectId::for_object(ObjectKind::Tree, b"").to_string(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    }
}
