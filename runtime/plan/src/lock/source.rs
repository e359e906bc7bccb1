//! Where the bytes of a locked plugin came from: `file PATH`, or `oci REFERENCE@sha256:…`.

use crate::config::ComponentSource;
use glovebox_registry::reference::Reference;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Prefix of a file.
const FILE: &str = "file ";
/// Prefix of a reference.
const REGISTRY: &str = "oci ";

/// Where the bytes of a plugin came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockSource {
    /// A path relative to `glovebox.toml`.
    File(String),
    /// A version in a registry, with the digest of its manifest. Without a digest, the version was never pulled.
    Registry(Box<Reference>),
}

/// The error for a text that is not a source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected `file PATH` or `oci HOST/PATH:VERSION@sha256:…` as `source`")]
pub struct LockSourceError;

impl LockSource {
    /// Returns the source of a plugin that is configured like this. The digest of the manifest is that of the lock file, if the lock
    /// file has this version.
    pub fn of_configured(configured: &ComponentSource, locked: Option<&LockSource>) -> Self {
        match configured {
            ComponentSource::File(path) => Self::File(path.clone()),
            ComponentSource::Registry(source) => {
                let wanted = source.reference();
                let pinned = locked.and_then(Self::reference).filter(|pinned| pinned.is_version(&wanted));
                Self::Registry(Box::new(pinned.cloned().unwrap_or(wanted)))
            }
        }
    }

    /// Returns the reference of a plugin of a registry.
    pub fn reference(&self) -> Option<&Reference> {
        match self {
            Self::File(_) => None,
            Self::Registry(reference) => Some(reference),
        }
    }
}

impl FromStr for LockSource {
    type Err = LockSourceError;

    fn from_str(text: &str) -> Result<Self, LockSourceError> {
        if let Some(path) = text.strip_prefix(FILE).filter(|path| !path.is_empty()) {
            return Ok(Self::File(path.to_owned()));
        }
        let reference: Reference =
            text.strip_prefix(REGISTRY).and_then(|text| text.parse().ok()).ok_or(LockSourceError)?;
        // A hand-written spelling would differ from the written one, although it is the same reference.
        let is_complete = reference.tag.is_some() && reference.digest.is_some();
        let source = Self::Registry(Box::new(reference));
        if is_complete && source.to_string() == text { Ok(source) } else { Err(LockSourceError) }
    }
}

impl fmt::Display for LockSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{FILE}{path}"),
            Self::Registry(reference) => write!(f, "{REGISTRY}{reference}"),
        }
    }
}

impl Serialize for LockSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LockSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for LockSource {
    fn schema_name() -> Cow<'static, str> {
        "LockSource".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^(file|oci) .+$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_file_or_a_pinned_version() {
        let pinned = format!("oci ghcr.io/acme/review:1.2.0@sha256:{}", "0a".repeat(32));
        for text in ["file plugins/a b.wasm", &pinned] {
            assert_eq!(text.parse::<LockSource>().expect("a source").to_string(), text);
        }
        let upper = pinned.replace("ghcr", "GHCR");
        let without_tag = pinned.replace(":1.2.0", "");
        for text in
            ["", "file ", "oci ", "oci ghcr.io/acme/review:1.2.0", "ghcr.io/a", &upper, &without_tag, &pinned[4..]]
        {
            assert_eq!(text.parse::<LockSource>(), Err(LockSourceError), "{text}");
        }
    }
}
