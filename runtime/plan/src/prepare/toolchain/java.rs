//! The toolchains `java`, `maven` and `gradle`: a JDK, and the build tools with their downloaded files.
//!
//! Only the downloads in `~/.m2` and `~/.gradle` are shown. `settings.xml`, `gradle.properties` and other files with
//! passwords do not exist for commands.

use super::configuration::linked_configuration;
use super::machine::{Machine, Variable, prefix_of};
use super::{Missing, ToolchainFiles};
use crate::config::Toolchain;
use glovebox_record::Tier;
use std::fs;
use std::path::{Path, PathBuf};

/// Finds the JDK in JAVA_HOME, or else that of the first `java` in PATH.
pub(super) fn find(machine: &Machine) -> Result<ToolchainFiles, Missing> {
    let home = home(machine)?;
    let mut found = ToolchainFiles::below(&home);
    found.configuration = linked_configuration(&[home.join("conf"), home.join("lib")], &["java", "openjdk", "jdk"]);
    found.env.push(("JAVA_HOME", home.to_string_lossy().into_owned()));
    Ok(found)
}

/// Finds Maven with its JDK and its local repository.
pub(super) fn find_maven(machine: &Machine, tier: Tier) -> Result<ToolchainFiles, Missing> {
    let home = installed(machine, Toolchain::Maven, |home| home.join("boot").is_dir())?;
    let mut found = find(machine)?;
    found.path.insert(0, home.join("bin"));
    found.configuration.extend(linked_configuration(&[home.clone(), home.join("bin")], &["maven"]));
    found.shown.push(home);
    let Some(own) = machine.below_home(".m2") else { return Ok(found) };
    for (name, at) in [("repository", ".m2/repository"), ("wrapper/dists", ".m2/wrapper/dists")] {
        let folder = own.join(name);
        found.homed.extend(Some((folder, at)).filter(|(folder, _)| folder.is_dir()));
    }
    let repository = own.join("repository");
    let is_one_word = !repository.to_string_lossy().contains(char::is_whitespace);
    if !tier.has_own_root() && repository.is_dir() && is_one_word {
        found.env.push(("MAVEN_OPTS", format!("-Dmaven.repo.local={}", repository.display())));
    }
    Ok(found)
}

/// Finds Gradle with its JDK and its downloaded modules: in PATH, or else the newest one that a wrapper downloaded.
pub(super) fn find_gradle(machine: &Machine) -> Result<ToolchainFiles, Missing> {
    let own = machine.folder(Variable::GradleUserHome, Path::new(".gradle"));
    let wrapped = || own.as_ref().and_then(|own| newest(&own.join("wrapper/dists")));
    let is_home = |home: &Path| home.join("lib").is_dir();
    let home = installed(machine, Toolchain::Gradle, is_home).or_else(|missing| wrapped().ok_or(missing))?;
    let mut found = find(machine)?;
    found.path.insert(0, home.join("bin"));
    found.shown.push(home);
    if let Some(caches) = own.map(|own| own.join("caches")).filter(|caches| caches.join("modules-2").is_dir()) {
        found.shown.push(caches.join("modules-2"));
        found.env.push(("GRADLE_RO_DEP_CACHE", caches.to_string_lossy().into_owned()));
    }
    // This folder contains compiled build scripts and transformed modules.
    found.env.push(("GRADLE_USER_HOME", "{kept}/gradle".to_owned()));
    // A daemon would outlive the command, and the jail kills it.
    found.env.push(("GRADLE_OPTS", "-Dorg.gradle.daemon=false".to_owned()));
    Ok(found)
}

fn home(machine: &Machine) -> Result<PathBuf, Missing> {
    let is_home = |home: &Path| home.join("bin/java").is_file() && home.join("lib").is_dir() && is_runtime(home);
    let named = machine.text(Variable::JavaHome).map(PathBuf::from).filter(|home| home.is_absolute());
    let named = named.and_then(|home| home.canonicalize().ok()).filter(|home| is_home(home));
    named.map_or_else(|| installed(machine, Toolchain::Java, is_home), Ok)
}

/// Returns true for the home of a Java runtime. Since version 9 its modules are in one file.
fn is_runtime(home: &Path) -> bool {
    ["lib/modules", "lib/rt.jar", "jre/lib/rt.jar"].iter().any(|file| home.join(file).is_file())
}

/// Returns the folder in which the first program of this name in PATH is installed, if it is a home of the toolchain.
fn installed(machine: &Machine, toolchain: Toolchain, is_home: impl Fn(&Path) -> bool) -> Result<PathBuf, Missing> {
    let program = super::program_of(toolchain);
    let first = machine.folders_with(program).next().ok_or_else(|| Missing::program(toolchain))?;
    let file = first.join(program);
    prefix_of(&file).filter(|home| is_home(home)).ok_or_else(|| Missing {
        why: format!("`{}` starts a {program} that is installed elsewhere", file.display()),
        help: format!("put the folder with the real `{program}` first in PATH"),
    })
}

/// Returns the newest distribution that a wrapper downloaded: `dists/gradle-8.5-bin/<digest>/gradle-8.5`.
fn newest(dists: &Path) -> Option<PathBuf> {
    let inner = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let homes =
        inner(dists.to_owned()).flat_map(inner).flat_map(inner).filter(|home| home.join("bin/gradle").is_file());
    let numbers = |home: &PathBuf| -> Vec<u32> {
        let name = home.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.split(|character: char| !character.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
    };
    homes.max_by_key(numbers)
}
