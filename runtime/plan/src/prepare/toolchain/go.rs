//! The toolchain `go`: its root, and the cache of modules that were downloaded before.

use super::machine::{Machine, Variable, prefix_of};
use super::{Missing, ToolchainFiles};
use crate::config::Toolchain;
use std::path::{Path, PathBuf};

pub(super) fn find(machine: &Machine) -> Result<ToolchainFiles, Missing> {
    let program = machine.folders_with("go").next().map(|folder| folder.join("go"));
    let program = program.ok_or_else(|| Missing::program(Toolchain::Go))?;
    let named = machine.text(Variable::GoRoot).map(PathBuf::from).filter(|root| root.is_absolute());
    let root = named.or_else(|| prefix_of(&program)).filter(|root| is_root(root)).ok_or_else(|| Missing {
        why: format!("`{}` does not lie in Go's root, the folder with `bin/go` and `src/runtime`", program.display()),
        help: "set GOROOT to that folder".to_owned(),
    })?;
    let mut found = ToolchainFiles::below(&root);
    // With these values, go fetches no other version of itself and reads no settings file of the user.
    for (name, value) in [("GOROOT", &*root.to_string_lossy()), ("GOTOOLCHAIN", "local"), ("GOENV", "off")] {
        found.env.push((name, value.to_owned()));
    }
    found.env.push(("GOCACHE", "{kept}/go-build".to_owned()));
    match module_cache(machine) {
        Some(modules) => {
            found.env.push(("GOMODCACHE", modules.to_string_lossy().into_owned()));
            found.shown.push(modules);
        }
        None => found.env.push(("GOMODCACHE", "{kept}/go-mod".to_owned())),
    }
    Ok(found)
}

fn is_root(root: &Path) -> bool {
    root.join("bin/go").is_file() && root.join("src/runtime").is_dir()
}

fn module_cache(machine: &Machine) -> Option<PathBuf> {
    let of_path = machine
        .text(Variable::GoPath)
        .and_then(|path| std::env::split_paths(path).next())
        .map(|path| path.join("pkg/mod"));
    match of_path {
        Some(folder) if machine.text(Variable::GoModCache).is_none() => {
            Some(folder).filter(|f| f.is_absolute() && f.is_dir())
        }
        _ => machine.folder(Variable::GoModCache, Path::new("go/pkg/mod")),
    }
}
