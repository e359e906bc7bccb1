//! Downloads single packages from the machine's own Debian mirror, without installing them and without root.
//!
//! A private apt root contains its own sources, lists and cache. Signatures are checked with Debian's keyring. The machine's own
//! sources and packages are not changed.

use crate::Step;
use crate::process::{at, capture, demand};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Suites with the source of recent compilers and a C library for `wasm32-wasip2`.
pub(crate) const BACKPORTS: &str = "trixie-backports bookworm-backports";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A private apt root for the mirror.
pub(crate) struct Mirror {
    folder: PathBuf,
    suites: String,
}

impl Mirror {
    /// Creates the apt root and reads the package lists of the suites.
    ///
    /// # Errors
    /// The machine is not a Debian machine, or no mirror is configured or reachable.
    pub(crate) fn open(folder: &Path, suites: &str) -> Step<Self> {
        Self::open_types(folder, suites, "deb")
    }

    /// As [`Mirror::open`], for sources of packages.
    pub(crate) fn open_sources(folder: &Path, suites: &str) -> Step<Self> {
        Self::open_types(folder, suites, "deb-src")
    }

    fn open_types(folder: &Path, suites: &str, types: &str) -> Step<Self> {
        let uri = mirror_uri()?;
        for part in [
            "etc/sources.list.d",
            "etc/apt.conf.d",
            "etc/preferences.d",
            "state/lists/partial",
            "cache/archives/partial",
        ] {
            at(folder, fs::create_dir_all(folder.join(part)))?;
        }
        let sources =
            format!("Types: {types}\nURIs: {uri}\nSuites: {suites}\nComponents: main\nSigned-By: {KEYRING}\n");
        write(&folder.join("etc/sources.list.d/mirror.sources"), &sources)?;
        write(&folder.join("status"), "")?;
        write(&folder.join("apt.conf"), &configuration(folder))?;
        let mirror = Self { folder: folder.to_owned(), suites: suites.to_owned() };
        demand(mirror.apt("apt-get").args(["-qq", "update"]))?;
        Ok(mirror)
    }

    /// Downloads the newest version of a package for which `wanted` returns true, and unpacks it into a folder.
    ///
    /// # Errors
    /// There is no such version, or it cannot be downloaded or unpacked.
    pub(crate) fn unpack(&self, package: &str, folder: &Path, wanted: impl Fn(&str) -> bool) -> Step<()> {
        let listed = capture(self.apt("apt-cache").args(["madison", package]))?;
        let version = versions(&listed)
            .find(|version| wanted(version))
            .ok_or_else(|| format!("no fitting version of the Debian package {package} in {}", self.suites))?;
        self.unpack_all(&[&format!("{package}={version}")], folder)
    }

    /// Downloads the newest version of each package, or the version after `=`, and unpacks all of them into a folder.
    ///
    /// # Errors
    /// One of them does not exist, or cannot be downloaded or unpacked.
    pub(crate) fn unpack_all(&self, packages: &[&str], folder: &Path) -> Step<()> {
        let downloads = folder.join("deb");
        at(&downloads, fs::create_dir_all(&downloads))?;
        demand(self.apt("apt-get").args(["-qq", "download"]).args(packages).current_dir(&downloads))?;
        for entry in at(&downloads, fs::read_dir(&downloads))? {
            demand(Command::new("dpkg-deb").arg("--extract").arg(at(&downloads, entry)?.path()).arg(folder))?;
        }
        Ok(())
    }

    /// Returns the packages, of these and of all that they depend on, that this machine does not have.
    ///
    /// # Errors
    /// One of them does not exist, or its dependencies do not fit this machine.
    pub(crate) fn missing(&self, packages: &[&str]) -> Step<Vec<String>> {
        let mut simulated = self.apt("apt-get");
        simulated.args(["-o", "Dir::State::status=/var/lib/dpkg/status", "--simulate", "--no-install-recommends"]);
        Ok(installs(&capture(simulated.arg("install").args(packages))?))
    }

    /// Downloads the files of a source package into a folder.
    ///
    /// # Errors
    /// There is no such package, or it cannot be downloaded.
    pub(crate) fn download_source(&self, package: &str, folder: &Path) -> Step<()> {
        demand(self.apt("apt-get").args(["-qq", "source", "--download-only", package]).current_dir(folder))
    }

    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", self.folder.join("apt.conf"));
        command
    }
}

/// Returns the version column of `apt-cache madison`, newest first.
fn versions(listed: &str) -> impl Iterator<Item = &str> {
    listed.lines().filter_map(|line| line.split('|').nth(1)).map(str::trim)
}

/// Returns the names of the packages that `apt-get --simulate` would install.
fn installs(simulated: &str) -> Vec<String> {
    let names = simulated.lines().filter_map(|line| line.strip_prefix("Inst ")?.split(' ').next());
    names.map(str::to_owned).collect()
}

/// Finds the mirror that the machine itself uses, so that no mirror has to be named here.
fn mirror_uri() -> Step<String> {
    let targets = ["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"];
    let printed = capture(Command::new("apt-get").args(targets))?;
    let is_archive = |uri: &&str| uri.trim_end_matches('/').ends_with("/debian");
    printed
        .lines()
        .find(is_archive)
        .map(str::to_owned)
        .ok_or_else(|| "no Debian mirror is set up on this machine".to_owned())
}

fn configuration(folder: &Path) -> String {
    let root = folder.display();
    format!(
        "Dir::Etc \"{root}/etc\"; Dir::Etc::sourcelist \"/dev/null\"; Dir::Etc::sourceparts \"{root}/etc/sources.list.d\";\n\
         Dir::Etc::parts \"{root}/etc/apt.conf.d\"; Dir::State \"{root}/state\"; Dir::State::status \"{root}/status\";\n\
         Dir::Cache \"{root}/cache\"; Acquire::Languages \"none\"; APT::Sandbox::User \"root\";\n"
    )
}

fn write(path: &Path, text: &str) -> Step<()> {
    at(path, fs::write(path, text))
}

#[cfg(test)]
mod tests {
    #[test]
    fn reads_what_would_be_installed() {
        let simulated = "Reading package lists...\nInst libogg0 (1.3.5-3 Debian:12.11/stable [amd64])\nInst chromium (156 x [amd64]) []\nConf libogg0 (1)\n";
        assert_eq!(super::installs(simulated), ["libogg0", "chromium"]);
    }

    #[test]
    fn reads_versions_newest_first() {
        let listed = " rust-src | 1.96.1+dfsg1-1~bpo13+1 | http://m/debian trixie-backports/main amd64 Packages\n rust-src | 1.95.0+dfsg1-2~bpo13+1 | x\n";
        assert_eq!(super::versions(listed).collect::<Vec<_>>(), ["1.96.1+dfsg1-1~bpo13+1", "1.95.0+dfsg1-2~bpo13+1"]);
    }
}
