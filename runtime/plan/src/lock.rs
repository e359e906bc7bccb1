//! The lock file `glovebox.lock`: the components and grants to which the operator agreed.
//!
//! Only `glovebox plugin lock` writes the file. A plugin that is not in the lock file, has other bytes or has more grants
//! does not run, and a lock file of an unknown version is refused. This module reads text: it opens neither the file nor the
//! plugins.

use glovebox_record::{Digest, DigestError, LimitName};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// The name of the file. It is in the same folder as `glovebox.toml`.
pub const LOCK_FILE_NAME: &str = "glovebox.lock";

/// The only version of the file that this program writes and reads.
pub const LOCK_VERSION: u32 = 1;

/// The plugins to which the operator agreed. The default contains none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lock {
    /// The agreed plugins, by name.
    pub plugins: BTreeMap<String, LockedPlugin>,
}

/// One plugin to which the operator agreed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LockedPlugin {
    /// The name of the plugin, as in `[plugins."ns.name"]`.
    pub name: String,
    /// BLAKE3 of the component's bytes, `blake3:` and 64 lower-case hex digits.
    #[serde(deserialize_with = "canonical_digest")]
    pub digest: Digest,
    /// Size of the component, in bytes.
    pub bytes: u64,
    /// The world that the component targets, such as `handler`.
    pub world: String,
    /// The imports of the component, sorted.
    pub imports: Vec<String>,
    /// The grants of the plugin when it was locked, one line each, sorted.
    pub grants: Vec<String>,
}

/// A plugin that a run would use.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'a> {
    /// The name of the plugin.
    pub name: &'a str,
    /// BLAKE3 of the component's bytes.
    pub digest: Digest,
    /// The grants of the plugin, one line each.
    pub grants: &'a [String],
}

/// Why a lock file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Not TOML, an unknown field or a value of the wrong form.
    #[error("`{LOCK_FILE_NAME}` is not a valid lock file: {0}")]
    Syntax(#[from] toml::de::Error),
    /// The file has a version that this program does not know.
    #[error("`{LOCK_FILE_NAME}` has version {found}, expected version {LOCK_VERSION}")]
    Version {
        /// The version in the file.
        found: u32,
    },
    /// The file has this name twice.
    #[error("`{LOCK_FILE_NAME}` lists the plugin `{0}` twice")]
    Duplicate(String),
}

/// Why a plugin may not run (exit 7).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockMismatch {
    /// The plugin is not in the lock file.
    #[error("plugin `{name}` is not in `{LOCK_FILE_NAME}`")]
    Absent {
        /// The name of the plugin.
        name: String,
    },
    /// The component has other bytes than those to which the operator agreed.
    #[error("plugin `{name}` has the digest {found}, but the lock has {locked}")]
    Digest {
        /// The name of the plugin.
        name: String,
        /// The digest in the lock file.
        locked: Digest,
        /// The digest of the component's bytes.
        found: Digest,
    },
    /// More is granted than what the operator agreed to.
    #[error("plugin `{name}` is granted `{grant}`, but the lock does not have this grant")]
    Grant {
        /// The name of the plugin.
        name: String,
        /// The first line that is not in the lock file.
        grant: String,
    },
    /// A limit in the lock file is no longer set.
    #[error("plugin `{name}` no longer has the `{limit}` of the lock")]
    Limit {
        /// The name of the plugin.
        name: String,
        /// The line of the limit in the lock file.
        limit: String,
    },
}

impl LockMismatch {
    /// Returns the commands with which to inspect the plugin and agree to it.
    pub fn help(&self) -> &'static str {
        "inspect it with `glovebox plugin inspect`, then agree to it with `glovebox plugin lock`"
    }
}

/// The contents of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LockFile {
    version: u32,
    #[serde(default, rename = "plugin", skip_serializing_if = "Vec::is_empty")]
    plugins: Vec<LockedPlugin>,
}

#[derive(Deserialize)]
struct LockVersion {
    version: u32,
}

impl Lock {
    /// Parses the file's text. An unknown version is refused before other fields are read.
    pub fn parse(text: &str) -> Result<Lock, LockError> {
        let LockVersion { version } = toml::from_str(text)?;
        if version != LOCK_VERSION {
            return Err(LockError::Version { found: version });
        }
        let file: LockFile = toml::from_str(text)?;
        let mut plugins = BTreeMap::new();
        for plugin in file.plugins {
            if let Some(twice) = plugins.insert(plugin.name.clone(), plugin) {
                return Err(LockError::Duplicate(twice.name));
            }
        }
        Ok(Lock { plugins })
    }

    /// Returns the file's text. Plugins are sorted by name, so that two locks of the same plugins are the same bytes.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "# Written by `glovebox plugin lock`: the components this project agreed to run.\nversion = {LOCK_VERSION}\n"
        );
        for plugin in self.plugins.values() {
            text.push_str("\n[[plugin]]\n");
            text.push_str(&toml::to_string(plugin).expect("strings, numbers and lists of strings are always TOML"));
        }
        text
    }

    /// Checks a plugin against what the operator agreed to. Fewer grants and lower limits are allowed. A removed limit is
    /// not, because the plugin would get the default instead.
    pub fn verify(&self, offer: Offer<'_>) -> Result<(), LockMismatch> {
        let name = || offer.name.to_owned();
        let Some(locked) = self.plugins.get(offer.name) else { return Err(LockMismatch::Absent { name: name() }) };
        if locked.digest != offer.digest {
            return Err(LockMismatch::Digest { name: name(), locked: locked.digest, found: offer.digest });
        }
        let is_agreed = |grant: &&String| locked.grants.contains(grant) || is_lower(grant, &locked.grants);
        if let Some(grant) = offer.grants.iter().find(|grant| !is_agreed(grant)) {
            return Err(LockMismatch::Grant { name: name(), grant: grant.clone() });
        }
        let is_offered =
            |limit: &str| offer.grants.iter().filter_map(|line| limit_of(line)).any(|(name, _)| name == limit);
        match locked.grants.iter().find(|line| limit_of(line).is_some_and(|(name, _)| !is_offered(name))) {
            Some(limit) => Err(LockMismatch::Limit { name: name(), limit: limit.clone() }),
            None => Ok(()),
        }
    }
}

/// Returns the line of a limit, in the unit of the limit.
pub fn limit_line(name: LimitName, amount: u64) -> String {
    format!("limit {name} {amount}")
}

/// Parses the line of a limit into the name and the amount.
fn limit_of(line: &str) -> Option<(&str, u64)> {
    let (name, amount) = line.strip_prefix("limit ")?.split_once(' ')?;
    Some((name, amount.parse().ok()?))
}

/// Returns true if the line is a limit that is not higher than the agreed one.
fn is_lower(line: &str, agreed: &[String]) -> bool {
    let Some((name, amount)) = limit_of(line) else { return false };
    agreed.iter().filter_map(|line| limit_of(line)).any(|(other, most)| other == name && amount <= most)
}

/// Accepts only the spelling that [`Lock::to_text`] writes.
fn canonical_digest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
    let text = String::deserialize(deserializer)?;
    let digest = text.parse().ok().filter(|digest: &Digest| digest.to_string() == text);
    digest.ok_or_else(|| serde::de::Error::custom(DigestError(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(digit: char) -> Digest {
        digit.to_string().repeat(64).parse().expect("64 digits")
    }

    fn locked(name: &str, byte: char) -> LockedPlugin {
        LockedPlugin {
            name: name.to_owned(),
            digest: digest(byte),
            bytes: 1234,
            world: "handler".to_owned(),
            imports: vec!["glovebox:plugin/control@0.1.0".to_owned()],
            grants: vec!["read src/".to_owned(), "write REVIEW.md".to_owned()],
        }
    }

    fn lock() -> Lock {
        let plugins = [locked("b.two", 'b'), locked("a.one", 'a')];
        Lock { plugins: plugins.into_iter().map(|plugin| (plugin.name.clone(), plugin)).collect() }
    }

    #[test]
    fn text_survives_a_round_trip_and_is_sorted() {
        let text = lock().to_text();
        assert_eq!(Lock::parse(&text).expect("own text"), lock());
        assert!(text.find("a.one") < text.find("b.two"), "{text}");
        assert_eq!(Lock::parse(&Lock::default().to_text()).expect("empty lock"), Lock::default());
    }

    #[test]
    fn another_version_is_refused_before_its_fields_are_read() {
        let text = "version = 2\nanything = { at = \"all\" }\n";
        assert!(matches!(Lock::parse(text), Err(LockError::Version { found: 2 })));
        assert!(matches!(Lock::parse("[[plugin]]\n"), Err(LockError::Syntax(_))));
    }

    #[test]
    fn doubtful_files_are_refused() {
        let twice =
            format!("{}\n[[plugin]]\n{}", lock().to_text(), toml::to_string(&locked("a.one", 'c')).expect("toml"));
        assert!(matches!(Lock::parse(&twice), Err(LockError::Duplicate(name)) if name == "a.one"));
        let unknown = lock().to_text().replacen("world =", "network = true\nworld =", 1);
        assert!(matches!(Lock::parse(&unknown), Err(LockError::Syntax(_))));
        let upper = lock().to_text().replacen(&"a".repeat(64), &"A".repeat(64), 1);
        assert!(matches!(Lock::parse(&upper), Err(LockError::Syntax(_))));
    }

    #[test]
    fn verify_refuses_absence_other_bytes_and_wider_grants() {
        let lock = lock();
        let digest = digest('a');
        let grants = ["read src/".to_owned()];
        let offer = |name| Offer { name, digest, grants: &grants };
        assert_eq!(lock.verify(offer("a.one")), Ok(()));
        assert_eq!(lock.verify(offer("c.three")), Err(LockMismatch::Absent { name: "c.three".to_owned() }));
        assert!(matches!(lock.verify(offer("b.two")), Err(LockMismatch::Digest { .. })));
        let limited = |amount: u64| vec!["read src/".to_owned(), limit_line(LimitName::MemoryBytes, amount)];
        let mut bounded = lock.clone();
        bounded.plugins.get_mut("a.one").expect("it is there").grants = limited(64);
        let check = |lock: &Lock, grants: &[String]| lock.verify(Offer { grants, ..offer("a.one") });
        assert_eq!((check(&bounded, &limited(64)), check(&bounded, &limited(63))), (Ok(()), Ok(())));
        assert!(matches!(check(&bounded, &limited(65)), Err(LockMismatch::Grant { .. })));
        assert!(
            matches!(check(&bounded, &grants), Err(LockMismatch::Limit { limit, .. }) if limit == "limit memory_bytes 64")
        );
        assert!(matches!(check(&lock, &limited(1)), Err(LockMismatch::Grant { .. })), "it may be above the default");
        let wider = ["read src/".to_owned(), "read tests/".to_owned()];
        let mismatch = lock.verify(Offer { grants: &wider, ..offer("a.one") });
        assert!(matches!(mismatch, Err(LockMismatch::Grant { grant, .. }) if grant == "read tests/"));
    }
}
