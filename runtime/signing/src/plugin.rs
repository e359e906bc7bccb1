//! The signatures of a plugin: an in-toto statement about the bytes, the name and the version of a component.
//!
//! A statement has no time, because the holder of a stolen key could write any time into it. How long a key is trusted is for
//! the reader to decide (see [`crate::trust`]).

use crate::envelope::{Broken, Envelope, PayloadType, UncheckedPayload};
use crate::key::{PublicKey, SigningKey, sha256_hex};
use glovebox_record::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The media type of the signatures of a plugin, where they are stored next to it in a registry.
pub const MEDIA_TYPE: &str = "application/vnd.glovebox.plugin.signatures.v1+json";
/// What is added to the name of a component's file for the file of its signatures.
pub const FILE_SUFFIX: &str = ".sig.json";
/// Maximum size of a file of signatures, in bytes.
pub const FILE_BYTES_MAX: u64 = 64 << 10;

pub(crate) const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The type of the predicate of a statement about a plugin.
pub const PREDICATE_TYPE: &str = "glovebox:attestation/plugin/v1";

/// What is signed about a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginIdentity {
    /// The name of the plugin.
    pub name: String,
    /// The version in its manifest. `None` for a component without a manifest.
    pub version: Option<String>,
    /// BLAKE3 of the bytes.
    pub digest: Digest,
    /// SHA-256 of the bytes as hexadecimal digits, for tools that do not know BLAKE3.
    pub sha256: String,
}

impl PluginIdentity {
    /// Returns the identity of a plugin with these bytes.
    pub fn new(name: impl Into<String>, version: Option<String>, bytes: &[u8]) -> Self {
        Self { name: name.into(), version, digest: Digest::hash(bytes), sha256: sha256_hex(bytes) }
    }
}

/// The signed statement about a plugin.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "plugin-statement.json")]
pub struct PluginStatement {
    /// Always `https://in-toto.io/Statement/v1`.
    #[serde(rename = "_type")]
    statement_type: String,
    /// The component. There is exactly one.
    subject: Vec<PluginSubject>,
    /// Always `glovebox:attestation/plugin/v1`.
    #[serde(rename = "predicateType")]
    predicate_type: String,
    /// The plugin that the component is.
    predicate: PluginPredicate,
}

/// A component and its digests.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PluginSubject {
    /// The name of the plugin.
    name: String,
    /// The digests of the bytes.
    digest: SubjectDigests,
}

/// Digests as in-toto writes them: hexadecimal digits without a prefix.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubjectDigests {
    /// SHA-256.
    sha256: String,
    /// BLAKE3, with which Glovebox names components.
    blake3: String,
}

impl SubjectDigests {
    pub(crate) fn for_plugin(plugin: &PluginIdentity) -> Self {
        Self { sha256: plugin.sha256.clone(), blake3: plugin.digest.hex() }
    }

    /// Compares the digests with those of a plugin. `same` compares the text in the statement with the one that was found.
    pub(crate) fn require(
        &self,
        plugin: &PluginIdentity,
        same: impl Fn(&'static str, &str, &str) -> Result<(), SignatureFault>,
    ) -> Result<(), SignatureFault> {
        same("BLAKE3 digest", &self.blake3, &plugin.digest.hex())?;
        same("SHA-256 digest", &self.sha256, &plugin.sha256)
    }
}

/// Name and version of a plugin.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PluginPredicate {
    /// The name of the plugin, which is the `type` of its nodes.
    name: String,
    /// The version of the plugin; absent for a component without a manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

/// Why the signatures of a plugin are not valid.
#[derive(Debug, thiserror::Error)]
pub enum SignatureFault {
    /// The file of signatures is too long.
    #[error("the file of its signatures has more than {FILE_BYTES_MAX} bytes")]
    TooLong,
    /// The envelope is damaged or changed.
    #[error("its signature is not valid: {0}")]
    Broken(#[from] Broken),
    /// The signed document is not a statement about one plugin.
    #[error("what is signed is not a statement about a plugin: {0}")]
    Statement(String),
    /// The signature is one of another plugin, another version or other bytes.
    #[error("the signature is about another {field}: `{signed}`, and not `{found}`")]
    Other {
        /// What differs.
        field: &'static str,
        /// The signed value.
        signed: String,
        /// The value of this plugin.
        found: String,
    },
    /// The file of provenance cannot be read.
    #[error("its provenance cannot be read: {0}")]
    Provenance(String),
    /// The provenance is that of another plugin or other bytes.
    #[error("the provenance is about another {field}: `{stated}`, and not `{found}`")]
    OtherBuild {
        /// What differs.
        field: &'static str,
        /// The value in the statement.
        stated: String,
        /// The value of this plugin.
        found: String,
    },
}

/// The signatures of one plugin. None of them was checked.
#[derive(Debug, Clone)]
pub struct Signatures(UncheckedPayload);

impl Signatures {
    /// Reads the file of signatures.
    pub fn read(bytes: &[u8]) -> Result<Self, SignatureFault> {
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(SignatureFault::TooLong);
        }
        Ok(Self(Envelope::read(PayloadType::IN_TOTO, bytes)?))
    }

    /// Signs a plugin with each key. Returns the content of the file of signatures.
    pub fn sign(plugin: &PluginIdentity, keys: &[&SigningKey]) -> String {
        let statement = PluginStatement {
            statement_type: STATEMENT_TYPE.to_owned(),
            subject: vec![PluginSubject { name: plugin.name.clone(), digest: SubjectDigests::for_plugin(plugin) }],
            predicate_type: PREDICATE_TYPE.to_owned(),
            predicate: PluginPredicate { name: plugin.name.clone(), version: plugin.version.clone() },
        };
        let payload = serde_json::to_vec(&statement).expect("a statement holds texts only");
        Envelope::sign(PayloadType::IN_TOTO, &payload, keys).to_line()
    }

    /// Returns the ids of the keys that the signatures name. Anyone can write any id.
    pub fn named_keys(&self) -> impl Iterator<Item = &str> {
        self.0.named_keys()
    }

    /// Checks that the statement is about this plugin. No signature is checked, so this is for the author of the statement.
    ///
    /// # Errors
    ///
    /// Fails if the statement is about another plugin, another version or other bytes.
    pub fn require_about(&self, plugin: &PluginIdentity) -> Result<(), SignatureFault> {
        let (payload, _) = self.0.verify(std::iter::empty())?;
        PluginStatement::read(payload)?.require(plugin)
    }

    /// Returns the positions of the keys that signed this plugin. Empty if the signatures name none of the keys.
    ///
    /// # Errors
    ///
    /// Fails if a signature that names one of the keys does not match, or if the statement is not about this plugin.
    pub fn verify<'k>(
        &self,
        plugin: &PluginIdentity,
        keys: impl IntoIterator<Item = &'k PublicKey>,
    ) -> Result<Vec<usize>, SignatureFault> {
        let (payload, signed) = self.0.verify(keys)?;
        if !signed.is_empty() {
            // The statement is read only after the check, so that no bytes of strangers reach the parser.
            PluginStatement::read(payload)?.require(plugin)?;
        }
        Ok(signed)
    }
}

impl PluginStatement {
    fn read(payload: &[u8]) -> Result<Self, SignatureFault> {
        let wrong = |what: &str| Err(SignatureFault::Statement(what.to_owned()));
        let read: Self =
            serde_json::from_slice(payload).map_err(|error| SignatureFault::Statement(error.to_string()))?;
        if read.statement_type != STATEMENT_TYPE {
            return wrong("it is of another type than an in-toto statement of version 1");
        }
        if read.predicate_type != PREDICATE_TYPE {
            return wrong("its predicate is of another type, or of a later version");
        }
        if read.subject.len() != 1 {
            return wrong("it has several subjects or none, and one is expected");
        }
        Ok(read)
    }

    fn require(&self, plugin: &PluginIdentity) -> Result<(), SignatureFault> {
        let unnamed = || "none".to_owned();
        let version = |version: &Option<String>| version.clone().unwrap_or_else(unnamed);
        let same = |field, signed: &str, found: &str| match signed == found {
            true => Ok(()),
            false => Err(SignatureFault::Other { field, signed: signed.to_owned(), found: found.to_owned() }),
        };
        same("plugin", &self.predicate.name, &plugin.name)?;
        same("version", &version(&self.predicate.version), &version(&plugin.version))?;
        for subject in &self.subject {
            same("plugin", &subject.name, &plugin.name)?;
            subject.digest.require(plugin, same)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
