//! `cargo xtask page`: brings a browser with its driver into `target/page`, for the tests of the page of `glovebox serve`.
//!
//! A browser that is installed is used as it is. The packages of Debian are unpacked, not installed. Tests without a browser are
//! listed as not run.

use crate::debian::Mirror;
use crate::process::{cargo, demand};
use crate::{Step, plugin_tools, repository};
use std::path::Path;

/// The packages of the browser and of its driver.
const PACKAGES: [&str; 2] = ["chromium", "chromium-driver"];

/// Brings the browser and what it needs, unless it is there.
pub(crate) fn prepare() -> Step<()> {
    let folder = repository().join("target/page");
    let is_in = |root: &Path| root.join("usr/bin/chromedriver").is_file() && root.join("usr/bin/chromium").is_file();
    if is_in(Path::new("/")) || is_in(&folder) {
        return Ok(());
    }
    let mirror = Mirror::open(&folder.join("apt"), &plugin_tools::suite()?)?;
    let packages = mirror.missing(&PACKAGES)?;
    mirror.unpack_all(&packages.iter().map(String::as_str).collect::<Vec<_>>(), &folder)
}

/// Writes the pictures of every screen to `docs/pictures/page`.
pub(crate) fn pictures() -> Step<()> {
    prepare()?;
    let test = ["test", "--workspace", "--locked", "--test", "suites", "page::each_screen_shows_what_it_is_for"];
    demand(cargo(&repository()).args(test).env("GLOVEBOX_PAGE_PICTURES", "1"))
}
