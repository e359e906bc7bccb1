//! One plugin of a lock file: the facts of its bytes, and what author and operator wrote about it.

use super::line::{grant_lines, tool_lines};
use super::source::LockSource;
use super::wants::{granted, wanted};
use crate::config::{PluginEntry, PolicyEntry, RuleEntry};
use glovebox_host::inspect::Inspection;
use glovebox_pipeline::ir::Role;
use glovebox_record::{Digest, DigestError};
use glovebox_signing::trust::Signer;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// One plugin to which the operator agreed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LockedPlugin {
    /// The name of the plugin, as in `[plugins."ns.name"]`.
    pub name: String,
    /// The version in the manifest of the component. `None` for a component without a manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where the bytes came from: `file` and the path in `glovebox.toml`, or `oci` and a reference with the digest of its manifest.
    pub source: LockSource,
    /// BLAKE3 of the component's bytes, `blake3:` and 64 lower-case hex digits.
    #[serde(deserialize_with = "canonical_digest")]
    pub digest: Digest,
    /// The key of `[trust]` that signed the component. `None` for a component without a signature, and in a project that trusts no
    /// keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<Signer>,
    /// Size of the component, in bytes.
    pub bytes: u64,
    /// The world that the component targets, such as `handler`.
    pub world: String,
    /// The imports of the component, sorted.
    pub imports: Vec<String>,
    /// What the author asked for when the plugin was locked, one line each, sorted.
    pub wants: Vec<String>,
    /// What the operator offered when the plugin was locked, one line each, sorted.
    pub offered: Vec<String>,
    /// What the plugin got when it was locked: the part of its wants that was offered. One line each, sorted.
    pub grants: Vec<String>,
}

impl LockedPlugin {
    /// Returns the entry of a plugin as it is now, without its signer. `locked` is its entry in the lock file, which knows the manifest
    /// of a plugin of a registry.
    pub fn for_plugin(name: &str, entry: &PluginEntry, locked: Option<&Self>, inspection: &Inspection) -> Self {
        let source = LockSource::of_configured(&entry.source, locked.map(|locked| &locked.source));
        let offered = entry.grants.clone().unwrap_or_default();
        let with_tools = |mut lines: Vec<String>| {
            lines.extend(tool_lines(&entry.tools));
            lines.sort();
            lines
        };
        let grants = with_tools(grant_lines(&granted(inspection, Some(entry)), entry.role));
        Self {
            wants: grant_lines(&wanted(inspection, Some(entry)), Role::Builder),
            offered: with_tools(grant_lines(&offered, entry.role)),
            ..Self::for_bytes(name, source, inspection, grants)
        }
    }

    /// Returns the entry of a rule plugin as it is now, without its signer. A rule plugin has no wants.
    pub fn for_rules(name: &str, entry: &RuleEntry, inspection: &Inspection) -> Self {
        let grants = entry.transform.lines();
        let source = LockSource::File(entry.path.clone());
        Self { offered: grants.clone(), ..Self::for_bytes(name, source, inspection, grants) }
    }

    /// Returns the entry of a policy as it is now, without its signer. A policy has no wants and no grants.
    pub fn for_policy(name: &str, entry: &PolicyEntry, inspection: &Inspection) -> Self {
        Self::for_bytes(name, LockSource::File(entry.path.clone()), inspection, Vec::new())
    }

    fn for_bytes(name: &str, source: LockSource, inspection: &Inspection, grants: Vec<String>) -> Self {
        let mut imports: Vec<String> = inspection.imports.iter().map(|import| import.name.clone()).collect();
        imports.sort();
        Self {
            name: name.to_owned(),
            version: inspection.manifest.as_ref().map(|manifest| manifest.version.to_string()),
            source,
            digest: inspection.digest,
            signer: None,
            bytes: inspection.bytes,
            world: inspection.world.to_owned(),
            imports,
            wants: Vec::new(),
            offered: Vec::new(),
            grants,
        }
    }

    /// Returns the first field that the bytes alone decide, and that differs although the digest is the same.
    pub(super) fn edited_field(&self, now: &Self) -> Option<&'static str> {
        let fields = [
            ("version", self.version == now.version),
            ("bytes", self.bytes == now.bytes),
            ("world", self.world == now.world),
            ("imports", self.imports == now.imports),
        ];
        fields.into_iter().find(|(_, is_same)| !is_same).map(|(field, _)| field)
    }

    /// Returns the fields that differ, in the order of the file.
    pub fn differences(&self, now: &Self) -> Vec<&'static str> {
        let fields = [
            ("version", self.version == now.version),
            ("source", self.source == now.source),
            ("digest", self.digest == now.digest),
            ("signer", self.signer == now.signer),
            ("bytes", self.bytes == now.bytes),
            ("world", self.world == now.world),
            ("imports", self.imports == now.imports),
            ("wants", self.wants == now.wants),
            ("offered", self.offered == now.offered),
            ("grants", self.grants == now.grants),
        ];
        fields.into_iter().filter(|(_, is_same)| !is_same).map(|(field, _)| field).collect()
    }
}

/// Accepts only the spelling that a lock file is written with.
fn canonical_digest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
    let text = String::deserialize(deserializer)?;
    let digest = text.parse().ok().filter(|digest: &Digest| digest.to_string() == text);
    digest.ok_or_else(|| serde::de::Error::custom(DigestError(text)))
}
