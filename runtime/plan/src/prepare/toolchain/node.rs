//! The toolchain `node`: the prefix in which node and npm are installed.

use super::machine::{Machine, prefix_of};
use super::{Missing, ToolchainFiles};
use crate::config::Toolchain;
use std::path::Path;

/// The variable for npm's cache, which is empty when a run begins. The user's own cache is not shown.
const KEPT_OUT: [(&str, &str); 1] = [("npm_config_cache", "{kept}/npm")];

pub(super) fn find(machine: &Machine) -> Result<ToolchainFiles, Missing> {
    let program = machine.folders_with("node").next().map(|folder| folder.join("node"));
    let program = program.ok_or_else(|| Missing::program(Toolchain::Node))?;
    let prefix = prefix_of(&program).filter(|prefix| is_prefix(prefix)).ok_or_else(|| Missing {
        why: format!("`{}` starts a node that is installed elsewhere", program.display()),
        help: "put the folder with the real `node` first in PATH".to_owned(),
    })?;
    let env = KEPT_OUT.map(|(name, value)| (name, value.to_owned())).to_vec();
    Ok(ToolchainFiles { path: vec![prefix.join("bin")], shown: vec![prefix], env, ..ToolchainFiles::default() })
}

/// Returns true for a folder that contains node itself and not only a program that selects a version of node.
fn is_prefix(prefix: &Path) -> bool {
    prefix.join("bin/node").is_file()
        && (prefix.join("lib/node_modules").is_dir() || prefix.join("include/node").is_dir())
}
