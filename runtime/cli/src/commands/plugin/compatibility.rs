//! The check of `glovebox plugin push`: a version that replaces the last release for everyone who follows semantic versioning must not
//! take anything away from their pipelines.

use super::inspect_bytes;
use crate::exit::{Exit, Stop};
use crate::terminal::visible;
use glovebox_host::inspect::Inspection;
use glovebox_host::inspect::compatibility::incompatibilities;
use glovebox_plan::config::Config;
use glovebox_registry::client::Client;
use glovebox_registry::error::RegistryError;
use glovebox_registry::reference::{Repository, Tag};
use semver::Version;

/// Compares a new version with the last release before it. A version that is published already was compared then, and a new major
/// version (below 1.0: a new minor version) may change anything.
///
/// # Errors
///
/// Exit 7 if the new version is not compatible, or if the last release cannot be compared.
pub(super) fn require(client: &Client, repository: &Repository, tag: &Tag, now: &Inspection) -> Result<(), Stop> {
    let Some(version) = tag.version() else { return Ok(()) };
    let Some(before) = last_release(client, repository, &version)? else { return Ok(()) };
    let published = repository.at(Tag::for_version(&before));
    let next = next_breaking(&before);
    let cannot = |stop: Stop| {
        let message = format!("{version} cannot be compared with the last release, {before}: {}", stop.message);
        let help =
            format!("without a comparison, only a version that may change anything can be published: {next} or later");
        Stop { message, ..stop.with_help(help) }
    };
    let bytes_max = Config::default().component_bytes("");
    let pulled = client.pull(&published, bytes_max).map_err(|error| match Stop::from(error) {
        stop if stop.exit == Exit::Plugin => cannot(stop),
        // It may be another answer the next time.
        stop => stop,
    })?;
    let last = inspect_bytes(&published.to_string(), &pulled.bytes).map_err(cannot)?;
    let found = incompatibilities(&last, now);
    if found.is_empty() {
        return Ok(());
    }
    let lines = found.iter().map(|one| format!("  {}\n", visible::line(&one.to_string())));
    let message = format!("{version} is not compatible with the last release, {before}: nothing was published");
    let help = format!("restore what is named above, or publish it as {next} or later, which may change anything");
    Err(Stop { details: lines.collect(), ..Stop::new(Exit::Plugin, message).with_help(help) })
}

/// Returns the newest release below a version, if that version must be compatible with it. A repository that does not exist yet has
/// none. Pre-releases promise nothing.
fn last_release(client: &Client, repository: &Repository, version: &Version) -> Result<Option<Version>, Stop> {
    let versions = match client.versions(repository) {
        // The push itself says whether the repository may be created.
        Err(RegistryError::Missing { .. }) => return Ok(None),
        versions => versions?,
    };
    if versions.contains(version) {
        return Ok(None);
    }
    let before = versions.into_iter().find(|known| known.pre.is_empty() && known < version);
    Ok(before.filter(|before| !may_change_anything(before, version)))
}

/// Returns true if a version is outside of the range of versions that are compatible with an earlier one, as Cargo and npm define it.
fn may_change_anything(before: &Version, version: &Version) -> bool {
    let next = next_breaking(before);
    (version.major, version.minor, version.patch) >= (next.major, next.minor, next.patch)
}

/// Returns the first version that may change anything: a new major version, below 1.0 a new minor version, below 0.1 any new version.
fn next_breaking(version: &Version) -> Version {
    match (version.major, version.minor, version.patch) {
        (0, 0, patch) => Version::new(0, 0, patch + 1),
        (0, minor, _) => Version::new(0, minor + 1, 0),
        (major, ..) => Version::new(major + 1, 0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_major_version_may_change_anything() {
        let check = |before: &str, version: &str, expected: bool| {
            let (before, version) = (before.parse().unwrap(), version.parse().unwrap());
            assert_eq!(may_change_anything(&before, &version), expected, "{before} {version}");
        };
        check("1.2.3", "1.9.0", false);
        check("1.2.3", "2.0.0", true);
        check("1.2.3", "2.0.0-rc.1", true);
        check("0.1.0", "0.1.9", false);
        check("0.1.0", "0.2.0", true);
        check("0.1.0", "1.0.0", true);
        check("0.0.1", "0.0.2", true);
        check("1.0.0", "1.0.0+build", false);
    }
}
