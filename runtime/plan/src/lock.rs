//! The lock file `glovebox.lock`: the components and grants to which the operator agreed.
//!
//! Only `glovebox plugin` writes the file. A plugin that is not in the lock file, has other bytes, or may do more than when
//! it was locked, does not run. A lock file of an unknown version is refused. This module reads text: it opens neither the
//! file nor the plugins.

pub mod growth;
pub mod line;
mod locked;
mod source;
pub mod wants;

pub use locked::LockedPlugin;
pub use source::{LockSource, LockSourceError};

use glovebox_record::Digest;
use growth::{Growth, growth};
use serde::{Deserialize, Serialize};
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
    /// A field of the lock file is not that of the bytes, although their digest is the same.
    #[error(
        "plugin `{name}` has another `{field}` than the lock, although its bytes are the same: the lock was edited"
    )]
    Edited {
        /// The name of the plugin.
        name: String,
        /// The name of the field in the lock file.
        field: &'static str,
    },
    /// The plugin may do more than what the operator agreed to, or may do it as soon as its author asks for it.
    #[error("plugin `{name}` {growth}")]
    Grown {
        /// The name of the plugin.
        name: String,
        /// The first thing that grew.
        growth: Box<Growth>,
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
                return Err(LockError::Duplicate(glovebox_names::visible::line(&twice.name).into_owned()));
            }
        }
        Ok(Lock { plugins })
    }

    /// Returns the file's text. Plugins are sorted by name, so that two locks of the same plugins are the same bytes.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "# Written by `glovebox plugin`: the components this project agreed to run.\nversion = {LOCK_VERSION}\n"
        );
        for plugin in self.plugins.values() {
            text.push_str("\n[[plugin]]\n");
            text.push_str(&toml::to_string(plugin).expect("strings, numbers and lists of strings are always TOML"));
        }
        text
    }

    /// Checks a plugin as it is now against what the operator agreed to. Fewer grants and lower limits are allowed. A
    /// removed limit is not, because the plugin would get the default instead.
    pub fn verify(&self, now: &LockedPlugin) -> Result<(), LockMismatch> {
        let name = || now.name.clone();
        let Some(locked) = self.plugins.get(&now.name) else { return Err(LockMismatch::Absent { name: name() }) };
        if locked.digest != now.digest {
            return Err(LockMismatch::Digest { name: name(), locked: locked.digest, found: now.digest });
        }
        if let Some(field) = locked.edited_field(now) {
            return Err(LockMismatch::Edited { name: name(), field });
        }
        match growth(locked, now).into_iter().next() {
            Some(growth) => Err(LockMismatch::Grown { name: name(), growth: Box::new(growth) }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(digit: char) -> Digest {
        digit.to_string().repeat(64).parse().expect("64 digits")
    }

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    fn locked(name: &str, byte: char) -> LockedPlugin {
        LockedPlugin {
            name: name.to_owned(),
            version: Some("0.1.0".to_owned()),
            source: LockSource::File("a.wasm".to_owned()),
            digest: digest(byte),
            signer: None,
            bytes: 1234,
            world: "handler".to_owned(),
            imports: lines(&["glovebox:plugin/control@0.1.0"]),
            wants: lines(&["read ./"]),
            offered: lines(&["read src/", "write REVIEW.md"]),
            grants: lines(&["read src/"]),
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
    fn verify_refuses_absence_and_other_bytes() {
        let lock = lock();
        assert_eq!(lock.verify(&locked("a.one", 'a')), Ok(()));
        assert_eq!(lock.verify(&locked("c.three", 'a')), Err(LockMismatch::Absent { name: "c.three".to_owned() }));
        assert!(matches!(lock.verify(&locked("b.two", 'a')), Err(LockMismatch::Digest { .. })));
    }

    #[test]
    fn verify_refuses_what_grew_and_allows_what_shrank() {
        let now = |grants: &[&str], offered: &[&str]| LockedPlugin {
            grants: lines(grants),
            offered: lines(offered),
            ..locked("a.one", 'a')
        };
        let refused = |now: &LockedPlugin, expected: &str| {
            let mismatch = lock().verify(now).expect_err("it is refused").to_string();
            assert!(mismatch.contains(expected), "{mismatch}");
        };
        assert_eq!(lock().verify(&now(&["read src/a/"], &["read src/a/"])), Ok(()));
        assert_eq!(lock().verify(&now(&[], &[])), Ok(()));
        refused(&now(&["read src/", "read tests/"], &["read src/"]), "is granted `read tests/`");
        refused(&now(&["read src/"], &["read src/", "model"]), "is offered `model` in `glovebox.toml`");
        refused(&LockedPlugin { wants: lines(&["model"]), ..now(&[], &[]) }, "wants `model`");
    }

    #[test]
    fn a_lock_that_was_edited_is_named() {
        let check = |edited: LockedPlugin, field: &str| {
            let lock = Lock { plugins: [(edited.name.clone(), edited)].into() };
            let mismatch = lock.verify(&locked("a.one", 'a')).expect_err("it is refused").to_string();
            assert!(mismatch.contains(&format!("another `{field}`")), "{mismatch}");
        };
        check(LockedPlugin { version: None, ..locked("a.one", 'a') }, "version");
        check(LockedPlugin { bytes: 1, ..locked("a.one", 'a') }, "bytes");
        check(LockedPlugin { world: "agent".to_owned(), ..locked("a.one", 'a') }, "world");
        check(LockedPlugin { imports: Vec::new(), ..locked("a.one", 'a') }, "imports");
    }
}
