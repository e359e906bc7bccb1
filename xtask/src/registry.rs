//! `cargo xtask registry` and `cargo xtask wkg`: the registry of Debian and the program `wkg`, for the tests of plugins in registries.
//!
//! Both are below `target/`, and each is fetched once. The tests that need one of them report that they did not run without it.

use crate::process::{cargo, demand};
use crate::{Step, debian, repository};

/// The release with a registry for containers.
const SUITE: &str = "bookworm";
/// The package.
const PACKAGE: &str = "docker-registry";
/// The release of `wkg`, which takes minutes to build.
const WKG: &str = "wkg@0.16.1";

/// Unpacks the registry, unless it is there.
pub(crate) fn prepare() -> Step<()> {
    let folder = repository().join("target/registry");
    if folder.join("usr/bin/docker-registry").is_file() {
        return Ok(());
    }
    debian::Mirror::open(&folder.join("apt"), SUITE)?.unpack(PACKAGE, &folder, |_| true)
}

/// Builds `wkg`, unless it is there.
pub(crate) fn prepare_wkg() -> Step<()> {
    let folder = repository().join("target/wkg");
    if folder.join("bin/wkg").is_file() {
        return Ok(());
    }
    demand(cargo(&repository()).args(["install", "--locked", "--root"]).arg(&folder).arg(WKG))
}
