//! Digests: identifiers of bytes. Different bytes have different digests.
//!
//! A digest has the same text form in every record, file and message. This module does not know where the bytes are stored.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// BLAKE3 digest of some bytes. The text form is `blake3:` and 64 hexadecimal digits. The default is [`Digest::ZERO`].
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// A file, identified by its content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct DigestedFile {
    /// Path of the file. The field that has this type says whether it is absolute or relative to a folder.
    pub path: String,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Digest of the whole file.
    pub digest: Digest,
}

/// The error for a text that is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a digest, expected `blake3:` and 64 lower-case hexadecimal digits")]
pub struct DigestError(pub String);

impl Digest {
    /// The previous hash in the first record of a journal, which has no predecessor.
    pub const ZERO: Self = Self([0; 32]);

    /// Creates the digest with these 32 bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Computes the digest of some bytes.
    pub fn hash(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Returns the 32 bytes of the digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the 64 hexadecimal digits without the prefix. Blob files have these names.
    pub fn hex(&self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }
}

impl From<blake3::Hash> for Digest {
    fn from(hash: blake3::Hash) -> Self {
        Self(*hash.as_bytes())
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    /// Accepts the digits with or without the prefix. Upper-case digits are refused, so that a digest has only one spelling.
    fn from_str(text: &str) -> Result<Self, DigestError> {
        let digits = text.strip_prefix("blake3:").unwrap_or(text);
        if digits.bytes().any(|digit| digit.is_ascii_uppercase()) {
            return Err(DigestError(text.to_owned()));
        }
        blake3::Hash::from_hex(digits).map(Self::from).map_err(|_| DigestError(text.to_owned()))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blake3:{}", blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Digest {
    fn schema_name() -> Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^blake3:[0-9a-f]{64}$" })
    }
}
