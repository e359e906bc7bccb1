//! The toolchain `rust`: cargo, rustc and the toolchains that rustup installed.
//!
//! Only programs and downloaded packages of cargo's home are shown. The home folder itself, with its lock files, belongs to
//! the command. `credentials.toml` and the user's `config.toml` do not exist for commands.

use super::machine::{Machine, Variable};
use super::{Missing, ToolchainFiles};
use crate::config::Toolchain;
use glovebox_record::Tier;
use std::fs;
use std::path::{Path, PathBuf};

pub(super) fn find(machine: &Machine, tier: Tier) -> Result<ToolchainFiles, Missing> {
    let cargo_home = machine.folder(Variable::CargoHome, Path::new(".cargo"));
    let own = cargo_home.as_ref().map(|folder| folder.join("bin")).filter(|bin| bin.join("cargo").is_file());
    let bin = machine.folders_with("cargo").next().or(own);
    let bin = bin.ok_or_else(|| Missing::program(Toolchain::Rust))?;
    let mut found = ToolchainFiles { path: vec![bin.clone()], shown: vec![bin], ..ToolchainFiles::default() };
    if let Some(rustup_home) = machine.folder(Variable::RustupHome, Path::new(".rustup")) {
        found.env.push(("RUSTUP_HOME", rustup_home.to_string_lossy().into_owned()));
        found.shown.extend(linked(&rustup_home));
        found.shown.push(rustup_home);
    }
    if let Some(cargo_home) = cargo_home {
        let packages = ["registry", "git"].map(|name| cargo_home.join(name));
        let at = [".cargo/registry", ".cargo/git"];
        found.homed = packages.into_iter().zip(at).filter(|(folder, _)| folder.is_dir()).collect();
        let real = cargo_home.to_string_lossy().into_owned();
        found.env.push(("CARGO_HOME", if tier.has_own_root() { "{home}/.cargo".to_owned() } else { real }));
    }
    if let Some(name) = machine.text(Variable::RustupToolchain) {
        found.env.push(("RUSTUP_TOOLCHAIN", name.to_owned()));
    }
    Ok(found)
}

/// Returns the toolchains to which rustup has only a symbolic link, such as one built from source.
fn linked(rustup_home: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(rustup_home.join("toolchains")).into_iter().flatten().flatten();
    let real = listed.filter_map(|entry| entry.path().canonicalize().ok()).filter(|folder| folder.is_dir());
    let home = rustup_home.canonicalize().unwrap_or_else(|_| rustup_home.to_owned());
    real.filter(|folder| !folder.starts_with(&home)).collect()
}
