//! Decides whether a plugin has the signature that the operator requires.
//!
//! A plugin is not signed, or its signatures are not valid, or a trusted key signed it. The three are never mixed: signatures
//! that are not valid are refused even where no signature is required, because their author wanted them to be believed
//! (decision signatures-that-do-not-count-are-refused).

use crate::key::{KeyId, PublicKey};
use crate::plugin::{PluginIdentity, SignatureFault, Signatures};
use crate::provenance::ProvenanceFile;
use glovebox_names::visible::is_deceptive;
use jiff::civil::Date;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Maximum number of trusted keys.
pub const KEYS_MAX: usize = 64;
/// Maximum length of the name of a key, in characters.
pub const KEY_NAME_CHARS_MAX: usize = 64;

/// Which plugins must be signed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Require {
    /// Only those whose name a key covers.
    #[default]
    Any,
    /// All plugins and rule plugins.
    Signed,
}

/// Names of plugins that a key may sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamePattern {
    /// `*`: all names.
    All,
    /// `acme.*`: names that begin with these words and have at least one more. Includes the last dot.
    Below(String),
    /// One name.
    Exact(String),
}

impl NamePattern {
    /// Reads a pattern. `None` for a text that is not `*`, not a name of a plugin and not words followed by `.*`.
    pub fn parse(text: &str, is_name: fn(&str) -> bool) -> Option<Self> {
        if text == "*" {
            return Some(Self::All);
        }
        match text.strip_suffix('*') {
            // With one more word, the words must be the name of a plugin.
            Some(words) => {
                (words.ends_with('.') && is_name(&format!("{words}a"))).then(|| Self::Below(words.to_owned()))
            }
            None => is_name(text).then(|| Self::Exact(text.to_owned())),
        }
    }

    /// Returns true if the pattern covers a name.
    pub fn covers(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Below(words) => name.strip_prefix(words.as_str()).is_some_and(|rest| !rest.is_empty()),
            Self::Exact(exact) => exact == name,
        }
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Below(words) => write!(f, "{words}*"),
            Self::Exact(name) => f.write_str(name),
        }
    }
}

/// A key that the operator trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedKey {
    /// The name of the key, for people.
    pub name: String,
    /// The key.
    pub key: PublicKey,
    /// The plugins that it may sign.
    pub plugins: Vec<NamePattern>,
    /// The last day, in UTC, on which its signatures are accepted. `None` if there is no last day.
    pub not_after: Option<Date>,
}

impl TrustedKey {
    /// Returns true if the key may sign plugins of this name.
    pub fn covers(&self, name: &str) -> bool {
        self.plugins.iter().any(|pattern| pattern.covers(name))
    }
}

/// The keys that the operator trusts. The default trusts no key and requires no signature.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// Which plugins must be signed.
    pub require: Require,
    /// The keys, in the order of the file.
    pub keys: Vec<TrustedKey>,
    /// The current day in UTC. If it is not known, no key with a last day is accepted.
    pub today: Option<Date>,
}

/// The key that signed a plugin, as the lock file names it. Two signers are the same if they have the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// Id of the key.
    pub key: KeyId,
    /// The name that the operator gave it.
    pub name: String,
}

/// A file of signatures that counts, of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedSignature {
    /// The key that signed.
    pub signer: Signer,
    /// The position of the file.
    pub at: usize,
}

/// A text that does not name a signer.
#[derive(Debug, thiserror::Error)]
#[error("the id of a key, a space and its name are expected, such as `sha256:… acme 2026`")]
pub struct NoSigner;

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.key)
    }
}

impl FromStr for Signer {
    type Err = NoSigner;

    fn from_str(text: &str) -> Result<Self, NoSigner> {
        let (key, name) = text.split_once(' ').ok_or(NoSigner)?;
        if !is_key_name(name) {
            return Err(NoSigner);
        }
        Ok(Self { key: key.parse().map_err(|_| NoSigner)?, name: name.to_owned() })
    }
}

impl Serialize for Signer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{} {}", self.key, self.name))
    }
}

impl<'de> Deserialize<'de> for Signer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Signer {
    fn schema_name() -> Cow<'static, str> {
        "Signer".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The key that signed a plugin: its id, a space, and the name that the operator gave it.",
            "type": "string",
            "pattern": "^sha256:[0-9a-f]{64} .+$",
        })
    }
}

/// Returns true for a name of a key that can be shown: 1 to 64 characters, none of which could deceive a reader, without a
/// space at its ends.
pub fn is_key_name(name: &str) -> bool {
    (1..=KEY_NAME_CHARS_MAX).contains(&name.chars().count()) && !name.chars().any(is_deceptive) && name.trim() == name
}

/// Why a plugin is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum TrustFault {
    /// The plugin must be signed.
    #[error("`{name}` is not signed, but {}", must_be_signed(.by))]
    NotSigned {
        /// The name of the plugin.
        name: String,
        /// The names of the keys of which one must have signed it. Empty if every plugin must be signed.
        by: Vec<String>,
    },
    /// The signatures are not valid, or are not those of this plugin.
    #[error("`{name}`: {fault}")]
    Fault {
        /// The name of the plugin.
        name: String,
        /// What is wrong.
        fault: SignatureFault,
    },
    /// No trusted key signed the plugin.
    #[error("`{name}` is signed by {}, which `[trust]` does not list", shown(.keys))]
    UnknownKeys {
        /// The name of the plugin.
        name: String,
        /// The keys that the signatures name.
        keys: Vec<String>,
    },
    /// A trusted key signed the plugin, but may not sign this name.
    #[error("`{name}` is signed by the key `{key}`, which may not sign this name")]
    NotCovered {
        /// The name of the plugin.
        name: String,
        /// The name of the key.
        key: String,
    },
    /// A trusted key signed the plugin, but is not trusted any more.
    #[error("`{name}` is signed by the key `{key}`, which is trusted only until {not_after}")]
    Expired {
        /// The name of the plugin.
        name: String,
        /// The name of the key.
        key: String,
        /// The last day.
        not_after: Date,
    },
}

impl TrustFault {
    /// Returns true if the plugin has no signature. For all other faults it has one that does not count.
    pub fn is_not_signed(&self) -> bool {
        matches!(self, Self::NotSigned { .. })
    }

    /// Returns what the operator can do.
    pub fn help(&self) -> &'static str {
        match self {
            Self::NotSigned { .. } => {
                "ask the author for the file of signatures, and put it beside the component: `PATH.sig.json`"
            }
            Self::Fault { .. } => {
                "do not use it: get the component and its signatures again from the author. See `glovebox plugin verify`"
            }
            Self::UnknownKeys { .. } => {
                "ask the author for the public key by a way that you trust, and add a `[[trust.key]]` with it to glovebox.toml"
            }
            Self::NotCovered { .. } => {
                "if this key may sign it, add the name to `plugins` of the key in `[[trust.key]]`"
            }
            Self::Expired { .. } => "ask the author for a signature by a newer key, or raise `not_after` of the key",
        }
    }
}

fn must_be_signed(by: &[String]) -> String {
    match by {
        [] => "`require = \"signed\"` in `[trust]` accepts signed plugins only".to_owned(),
        [one] => format!("plugins of this name must be signed by the key `{one}`"),
        many => format!("plugins of this name must be signed by one of the keys {}", shown(many)),
    }
}

fn shown(keys: &[String]) -> String {
    keys.iter().map(|key| format!("`{}`", glovebox_names::visible::line(key))).collect::<Vec<_>>().join(", ")
}

impl Trust {
    /// Returns the key that signed a plugin: the first one of the file, if several did. `None` for a plugin without
    /// signatures that needs none.
    pub fn check(&self, plugin: &PluginIdentity, signatures: Option<&[u8]>) -> Result<Option<Signer>, TrustFault> {
        let name = || plugin.name.clone();
        let Some(signatures) = signatures else {
            let by: Vec<String> =
                self.keys.iter().filter(|key| key.covers(&plugin.name)).map(|key| key.name.clone()).collect();
            return match by.is_empty() && self.require == Require::Any {
                true => Ok(None),
                false => Err(TrustFault::NotSigned { name: name(), by }),
            };
        };
        let fault = |fault| TrustFault::Fault { name: name(), fault };
        let read = Signatures::read(signatures).map_err(fault)?;
        let signed = read.verify(plugin, self.keys.iter().map(|key| &key.key)).map_err(fault)?;
        self.judge(plugin, &signed, read.named_keys()).map(Some)
    }

    /// As [`Trust::check`], for several files of signatures, of which one that counts is enough. Of several that count, that of
    /// `preferred` is returned, else that of the key that is first in the file of keys.
    pub fn check_any(
        &self,
        plugin: &PluginIdentity,
        files: &[Vec<u8>],
        preferred: Option<&KeyId>,
    ) -> Result<Option<AcceptedSignature>, TrustFault> {
        if files.is_empty() {
            return self.check(plugin, None).map(|_| None);
        }
        let (mut found, mut refused): (Vec<AcceptedSignature>, Option<TrustFault>) = Default::default();
        for (at, file) in files.iter().enumerate() {
            match self.check(plugin, Some(file)) {
                Ok(signer) => found.extend(signer.map(|signer| AcceptedSignature { signer, at })),
                Err(fault) => refused = Some(fault),
            }
        }
        let place = |signer: &Signer| self.keys.iter().position(|key| key.key.id() == signer.key);
        let best = found.into_iter().min_by_key(|one| (Some(&one.signer.key) != preferred, place(&one.signer)));
        match (best, refused) {
            (None, Some(fault)) => Err(fault),
            (best, _) => Ok(best),
        }
    }

    /// Returns the key that signed the provenance of a plugin. The same keys count as for the plugin itself.
    ///
    /// # Errors
    ///
    /// The provenance is about another plugin, or no key that counts signed it.
    pub fn check_provenance(&self, plugin: &PluginIdentity, file: &ProvenanceFile) -> Result<Signer, TrustFault> {
        let fault = |fault| TrustFault::Fault { name: plugin.name.clone(), fault };
        let signed = file.verify(plugin, self.keys.iter().map(|key| &key.key)).map_err(fault)?;
        self.judge(plugin, &signed, file.named_keys())
    }

    /// Returns the first of the keys with these positions that may sign the plugin now.
    fn judge<'n>(
        &self,
        plugin: &PluginIdentity,
        signed: &[usize],
        named: impl Iterator<Item = &'n str>,
    ) -> Result<Signer, TrustFault> {
        let name = || plugin.name.clone();
        let signed: Vec<&TrustedKey> = signed.iter().map(|at| &self.keys[*at]).collect();
        let covering = signed.iter().find(|key| key.covers(&plugin.name) && !self.is_over(key));
        if let Some(key) = covering {
            return Ok(Signer { key: key.key.id(), name: key.name.clone() });
        }
        let expired = signed.iter().find(|key| key.covers(&plugin.name)).and_then(|key| Some((key, key.not_after?)));
        Err(match (expired, signed.first()) {
            (Some((key, not_after)), _) => TrustFault::Expired { name: name(), key: key.name.clone(), not_after },
            (None, Some(key)) => TrustFault::NotCovered { name: name(), key: key.name.clone() },
            (None, None) => TrustFault::UnknownKeys { name: name(), keys: named.map(str::to_owned).collect() },
        })
    }

    fn is_over(&self, key: &TrustedKey) -> bool {
        key.not_after.is_some_and(|last| self.today.is_none_or(|today| today > last))
    }
}

#[cfg(test)]
mod tests;
