//! Where commands find their programs: the fixed PATH, the operator's folders, and toolchains found on this machine.
//!
//! The one place that looks at this process's own PATH and HOME on behalf of commands. Nothing is handed on but what
//! `glovebox.toml` names.

use crate::exit::{Exit, Stop};
use glovebox_engine::config::{ExecSetting, Toolchain};
use glovebox_sandbox::exec::ExecPolicy;
use std::path::PathBuf;

/// The policy of every command of a run. Stops when a toolchain that `glovebox.toml` names is not on this machine.
pub fn exec_policy(setting: &ExecSetting) -> Result<ExecPolicy, Stop> {
    let mut policy = ExecPolicy::default();
    policy.path.extend(setting.path.iter().map(PathBuf::from));
    for toolchain in &setting.toolchains {
        match toolchain {
            Toolchain::Rust => add_rust(&mut policy)?,
        }
    }
    policy.env.extend(setting.env.iter().map(|(name, value)| (name.clone(), value.clone())));
    Ok(policy)
}

fn add_rust(policy: &mut ExecPolicy) -> Result<(), Stop> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let cargo_home = folder("CARGO_HOME", home.as_ref().map(|home| home.join(".cargo")));
    let on_path =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>()).unwrap_or_default();
    let own = cargo_home.as_ref().map(|folder| folder.join("bin"));
    let bin = on_path.into_iter().chain(own).find(|folder| folder.is_absolute() && folder.join("cargo").is_file());
    let bin = bin.ok_or_else(|| {
        Stop::new(Exit::Invalid, "the toolchain `rust` of glovebox.toml is not on this machine: no `cargo` in PATH")
            .with_help("install it, or take `rust` out of `[exec] toolchains`")
    })?;
    if !policy.path.contains(&bin) {
        policy.path.push(bin);
    }
    let rustup_home = folder("RUSTUP_HOME", home.map(|home| home.join(".rustup")));
    for (name, folder) in [("RUSTUP_HOME", rustup_home), ("CARGO_HOME", cargo_home)] {
        if let Some(folder) = folder.as_ref().and_then(|folder| folder.to_str()) {
            policy.env.insert(name.to_owned(), folder.to_owned());
        }
    }
    if let Some(toolchain) = std::env::var("RUSTUP_TOOLCHAIN").ok().filter(|name| !name.is_empty()) {
        policy.env.insert("RUSTUP_TOOLCHAIN".to_owned(), toolchain);
    }
    Ok(())
}

/// An existing folder, named by a variable or by default.
fn folder(variable: &str, default: Option<PathBuf>) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).or(default).filter(|folder| folder.is_absolute() && folder.is_dir())
}
