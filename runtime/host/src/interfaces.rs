//! The interfaces that this host provides, and the messages for all others.
//!
//! Interfaces are matched as in the component model: the compatibility track of the versions must be the same (major, or minor below
//! 1.0). Network interfaces are never provided, and no setting can enable them.

use serde::Serialize;

/// Availability of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum ImportState {
    /// The host provides the interface.
    Provided,
    /// The host provides the interface in an incompatible version.
    OtherVersion {
        /// The version that the host provides.
        provided: String,
    },
    /// The component was built against a later version of the plugin interface.
    Newer {
        /// The version that the component needs.
        needed: String,
        /// The version that the host provides.
        provided: &'static str,
    },
    /// The interface is known, and no component ever gets it.
    Denied {
        /// The reason, and an alternative.
        reason: &'static str,
    },
    /// The host does not know the interface.
    Unknown,
}

/// The package of the plugin interface.
const PLUGIN_PACKAGE: &str = "glovebox:plugin";
/// The version of the plugin interface that the host provides.
pub const PLUGIN_VERSION: &str = "0.1.0";

/// Provided interfaces without versions: those in `wit/`, and the part of WASI that Rust's `std` imports.
const PROVIDED: &[(&str, &str, &[&str])] = &[
    (PLUGIN_PACKAGE, PLUGIN_VERSION, &["types", "chat", "files", "control", "llm", "exec", "tools", "agents"]),
    (
        "wasi:cli",
        WASI,
        &[
            "environment",
            "exit",
            "stdin",
            "stdout",
            "stderr",
            "terminal-input",
            "terminal-output",
            "terminal-stdin",
            "terminal-stdout",
            "terminal-stderr",
        ],
    ),
    ("wasi:clocks", WASI, &["wall-clock", "monotonic-clock"]),
    ("wasi:random", WASI, &["random", "insecure", "insecure-seed"]),
    ("wasi:io", WASI, &["error", "poll", "streams"]),
    ("wasi:filesystem", WASI, &["types", "preopens"]),
];

/// The WASI release that the host implements. Components built for any 0.2 release can be linked.
const WASI: &str = "0.2.12";

const DENIED: &[(&str, &str)] = &[
    ("wasi:sockets", "components have no network"),
    ("wasi:http", "components have no network; a model is asked through `glovebox:plugin/llm`"),
    ("glovebox:plugin/human", "questions to a person are not provided in this version"),
];

/// Returns the availability of the import with this name.
pub fn state_of(import: &str) -> ImportState {
    let (path, version) = import.split_once('@').unwrap_or((import, ""));
    let package = path.split('/').next().unwrap_or(path);
    if let Some((_, reason)) = DENIED.iter().find(|(name, _)| *name == path || *name == package) {
        return ImportState::Denied { reason };
    }
    if package == PLUGIN_PACKAGE && is_newer(version) {
        return ImportState::Newer { needed: version.to_owned(), provided: PLUGIN_VERSION };
    }
    let interface = path.split_once('/').map_or("", |(_, interface)| interface);
    let row = PROVIDED.iter().find(|(name, _, interfaces)| *name == package && interfaces.contains(&interface));
    match row {
        None => ImportState::Unknown,
        Some((_, provided, _)) if track(provided) == track(version) => ImportState::Provided,
        Some((_, provided, _)) => ImportState::OtherVersion { provided: (*provided).to_owned() },
    }
}

/// Returns the name and the version of an interface of the package of plugins. `None` for any other import or export.
pub fn interface(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(PLUGIN_PACKAGE)?.strip_prefix('/')?.split_once('@')
}

/// Returns true if a component that exports this interface is one for this host. An interface in another version is not.
pub fn is_export(export: &str, interface: &str) -> bool {
    let version = self::interface(export).filter(|(name, _)| *name == interface).map(|(_, version)| version);
    version.is_some_and(|version| {
        track(version).is_some() && track(version) == track(PLUGIN_VERSION) && !is_newer(version)
    })
}

/// Returns the version of the plugin interface to which an export belongs, if it is later than that of the host.
pub fn newer_export(export: &str) -> Option<&str> {
    let (_, version) = export.strip_prefix(PLUGIN_PACKAGE)?.split_once('@')?;
    is_newer(version).then_some(version)
}

/// Returns true if a version of the plugin interface is later than that of the host. A version that cannot be read is not.
fn is_newer(version: &str) -> bool {
    release(version) > release(PLUGIN_VERSION)
}

/// Returns the three numbers of a version, without those of a pre-release. `None` for any other text.
pub fn release(version: &str) -> Option<[u64; 3]> {
    let release = version.split(['-', '+']).next()?;
    let numbers: Vec<u64> = release.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

/// Returns the part of a version that must match: the major version, `0.minor`, or the whole version `0.0.patch`. `None` for pre-releases.
fn track(version: &str) -> Option<&str> {
    if version.contains(['-', '+']) {
        return None;
    }
    let mut dots = version.match_indices('.').map(|(at, _)| at);
    let (first, second) = (dots.next()?, dots.next()?);
    match (&version[..first], &version[first + 1..second]) {
        ("0", "0") => Some(version),
        ("0", _) => Some(&version[..second]),
        (major, _) => Some(major),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_judged_by_name_and_track() {
        let check = |import: &str, expected: &str| {
            let state = match state_of(import) {
                ImportState::Provided => "provided".to_owned(),
                ImportState::Newer { needed, .. } => format!("newer {needed}"),
                ImportState::OtherVersion { provided } => provided,
                ImportState::Denied { reason } => reason[..10].to_owned(),
                ImportState::Unknown => "unknown".to_owned(),
            };
            assert_eq!(state, expected, "{import}");
        };
        check("glovebox:plugin/control@0.1.0", "provided");
        check("glovebox:plugin/control@0.1.7", "newer 0.1.7");
        check("glovebox:plugin/later@0.2.0", "newer 0.2.0");
        check("glovebox:plugin/later@1.0.0-rc.1", "newer 1.0.0-rc.1");
        check("glovebox:plugin/control@0.0.9", "0.1.0");
        check("glovebox:plugin/control@9", "0.1.0");
        check("glovebox:plugin/control@0.1.0-rc.1", "0.1.0");
        check("glovebox:plugin/agents@0.1.0", "provided");
        check("glovebox:plugin/human@0.1.0", "questions ");
        check("glovebox:plugin/secrets@0.1.0", "unknown");
        check("wasi:cli/stdout@0.2.6", "provided");
        check("wasi:cli/stdout@0.3.0", "0.2.12");
        check("wasi:sockets/tcp@0.2.6", "components");
        check("wasi:http/outgoing-handler@0.2.6", "components");
        check("wasi:keyvalue/store@0.2.0", "unknown");
        check("stdout", "unknown");
    }
}
