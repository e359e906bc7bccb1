//! The plugin SDK and the WIT package, as files for a crate outside of the repository.
//!
//! The files are embedded in the binary, so that they match the host and need no download. The SDK's `Cargo.toml` is
//! generated, because a crate outside of the repository has no workspace to inherit from.

use toml::{Table, Value};

/// A file: its path in the new crate, and its content.
pub type SdkFile = (&'static str, &'static str);

macro_rules! files {
    ($from:literal, $to:literal, [$($name:literal),* $(,)?]) => {
        [$((concat!($to, $name), include_str!(concat!("../../../../", $from, $name)))),*]
    };
}

/// The WIT files of the package, one for each interface.
pub const WIT: [SdkFile; 12] = files!(
    "wit/",
    "wit/",
    [
        "agents.wit",
        "chat.wit",
        "control.wit",
        "exec.wit",
        "files.wit",
        "graph-rules.wit",
        "human.wit",
        "llm.wit",
        "policy-rules.wit",
        "stage.wit",
        "tools.wit",
        "types.wit",
    ]
);

/// The WIT file of the worlds, which combine the interfaces.
pub const WORLDS: SdkFile = ("wit/worlds.wit", include_str!("../../../../wit/worlds.wit"));

/// The source files of the SDK, without its `Cargo.toml`.
pub const SDK: [SdkFile; 24] = files!(
    "plugin-sdk/",
    "sdk/",
    [
        "build.rs",
        "src/agents.rs",
        "src/artifact.rs",
        "src/control.rs",
        "src/exec.rs",
        "src/extra.rs",
        "src/files.rs",
        "src/lib.rs",
        "src/llm.rs",
        "src/log.rs",
        "src/outcome.rs",
        "src/pattern.rs",
        "src/plan.rs",
        "src/policy.rs",
        "src/provider.rs",
        "src/rules.rs",
        "src/scope.rs",
        "src/stage.rs",
        "src/test_files.rs",
        "src/testing.rs",
        "src/testing/stage_builder.rs",
        "src/testing_imports.rs",
        "src/tools.rs",
        "src/words.rs",
    ]
);

/// Returns the SDK's `Cargo.toml`, with the values that it inherits from the workspace.
pub fn sdk_manifest() -> Result<String, toml::de::Error> {
    let mut manifest: Table = toml::from_str(include_str!("../../../../plugin-sdk/Cargo.toml"))?;
    let workspace: Table = toml::from_str(include_str!("../../../../Cargo.toml"))?;
    let shared = |section: &str, name: &str| workspace.get("workspace")?.get(section)?.get(name).cloned();
    manifest.remove("lints");
    for section in ["package", "dependencies"] {
        let Some(Value::Table(entries)) = manifest.get_mut(section) else { continue };
        for (name, value) in entries.iter_mut() {
            let Value::Table(own) = value else { continue };
            if own.remove("workspace").is_none() {
                continue;
            }
            match shared(section, name) {
                Some(Value::Table(base)) => own.extend(base),
                Some(version) if own.is_empty() => *value = version,
                Some(version) => drop(own.insert("version".to_owned(), version)),
                None => {}
            }
        }
    }
    Ok(manifest.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    fn files_in(folder: &Path, found: &mut BTreeSet<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                files_in(&entry, found);
            } else {
                found.insert(entry);
            }
        }
    }

    #[test]
    fn every_file_of_the_sdk_and_of_the_contract_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut on_disk = BTreeSet::new();
        files_in(&root.join("plugin-sdk"), &mut on_disk);
        files_in(&root.join("wit"), &mut on_disk);
        on_disk.retain(|path| path.extension().is_some_and(|extension| extension == "rs" || extension == "wit"));
        let listed = SDK.iter().map(|(path, _)| path.replacen("sdk/", "plugin-sdk/", 1));
        let listed = listed.chain(WIT.iter().chain([&WORLDS]).map(|(path, _)| (*path).to_owned()));
        assert_eq!(listed.map(|path| root.join(path)).collect::<BTreeSet<_>>(), on_disk);
    }

    #[test]
    fn the_manifest_inherits_nothing() {
        let text = sdk_manifest().unwrap();
        assert!(!text.contains("workspace"), "{text}");
        let manifest: Table = toml::from_str(&text).unwrap();
        assert_eq!(manifest["package"]["version"].as_str(), Some(env!("CARGO_PKG_VERSION")));
        assert_eq!(manifest["package"]["edition"].as_str(), Some("2024"));
        assert_eq!(manifest["dependencies"]["wit-bindgen"]["default-features"].as_bool(), Some(false));
        assert_eq!(manifest["dependencies"]["dlmalloc"]["optional"].as_bool(), Some(true));
    }
}
