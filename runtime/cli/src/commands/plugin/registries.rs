//! Registries, as the commands of plugins use them.

use crate::exit::{Exit, Stop};
use crate::replaced_file;
use crate::terminal::visible;
use glovebox_plan::components::ReadProblem;
use glovebox_plan::prepare::admission::signatures_file;
use glovebox_plan::prepare::plugin_bytes;
use glovebox_registry::client::Client;
use glovebox_registry::credential::CredentialPlaces;
use glovebox_registry::error::RegistryError;
use glovebox_registry::reference::{Reference, ReferenceError, Repository};
use glovebox_registry::store::{Store, StoreError};
use glovebox_signing::plugin::MEDIA_TYPE;
use semver::Version;
use std::error::Error as _;

/// Returns a client with the credentials that the environment names.
pub fn client() -> Result<Client, Stop> {
    Ok(Client::new(CredentialPlaces::from_environment(|name| std::env::var_os(name)))?)
}

/// Returns the store of plugins of this user.
pub fn store() -> Result<Store, Stop> {
    plugin_bytes::store().map_err(|ReadProblem { reason, help }| Stop { help, ..Stop::new(Exit::Usage, reason) })
}

/// Puts a component and the file of its signatures into the store. Without signatures, those that are there stay: another project
/// may need them.
pub fn put(bytes: &[u8], signatures: Option<&[u8]>) -> Result<(), Stop> {
    let store = store()?;
    match store.put(bytes) {
        Ok(digest) => signatures.map_or(Ok(()), |found| {
            // The folder is the user's own, and may be reached through a link.
            replaced_file::put(&signatures_file(&store.file(digest)), found)
        }),
        Err(StoreError::Io { file, source }) => {
            Err(Stop::io(format!("write `{}`", visible::line(&file.to_string_lossy())), &source))
        }
        Err(error) => Err(Stop::new(Exit::Plugin, error.to_string())),
    }
}

/// Returns the files of signatures that are attached to a component.
pub fn signatures(client: &Client, reference: &Reference) -> Result<Vec<Vec<u8>>, Stop> {
    let Some(digest) = reference.digest else { return Ok(Vec::new()) };
    let found = client.referrers(&reference.repository, digest, MEDIA_TYPE)?;
    Ok(found.into_iter().map(|referrer| referrer.bytes).collect())
}

/// Parses a reference of the command line.
pub fn parse_reference(text: &str) -> Result<Reference, Stop> {
    text.parse().map_err(|error| {
        let stop = Stop::new(Exit::Usage, format!("`{}` is no reference: {error}", visible::line(text)));
        match without_scheme(text) {
            Some(meant) => stop.with_help(format!("a registry is named without a scheme: `{meant}`")),
            None if error == ReferenceError::NoHost => {
                let path = visible::line(text).trim_start_matches("oci://").to_owned();
                stop.with_help(format!("add the host of the registry, such as `ghcr.io/{path}`"))
            }
            None => stop,
        }
    })
}

/// Returns the reference that an address of the web probably means.
pub fn without_scheme(text: &str) -> Option<Reference> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
    rest.parse().ok()
}

/// Parses the version in a component's manifest.
pub fn parse_version(text: &str) -> Result<Version, Stop> {
    Version::parse(text).map_err(|_| {
        let message = format!("`{}` is no version of a plugin in a registry", visible::line(text));
        Stop::new(Exit::Plugin, message)
            .with_help("write three numbers, such as `1.2.0`, into the component's manifest")
    })
}

/// Returns the newest version of a repository: a pre-release only if there is nothing else.
pub fn newest(client: &Client, repository: &Repository) -> Result<Version, Stop> {
    let versions = client.versions(repository)?;
    let newest = newest_of(&versions).cloned();
    Ok(newest.ok_or_else(|| RegistryError::NoVersion { what: repository.to_string() })?)
}

/// Returns the newest of versions that are sorted, newest first.
pub fn newest_of(versions: &[Version]) -> Option<&Version> {
    versions.iter().find(|version| version.pre.is_empty()).or(versions.first())
}

impl From<RegistryError> for Stop {
    fn from(error: RegistryError) -> Self {
        let exit = match &error {
            RegistryError::Missing { .. }
            | RegistryError::Credential(_)
            | RegistryError::NoVersion { .. }
            | RegistryError::Tls(_)
            | RegistryError::Address { .. } => Exit::Usage,
            RegistryError::Unreachable { .. } => Exit::Transient,
            RegistryError::Answer { .. } | RegistryError::Published { .. } => Exit::Plugin,
        };
        let mut message = visible::line(&error.to_string()).into_owned();
        if let Some(source) = error.source().filter(|source| !message.contains(&source.to_string())) {
            message = format!("{message}: {}", visible::line(&source.to_string()));
        }
        Self { help: error.help(), ..Self::new(exit, message) }
    }
}
