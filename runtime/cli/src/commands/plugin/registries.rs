//! Registries, as the commands of plugins use them.

use super::vouched::Vouched;
use crate::compiler::amount;
use crate::exit::{Exit, Stop};
use crate::terminal::visible;
use glovebox_plan::components::ReadProblem;
use glovebox_plan::prepare::plugin_bytes;
use glovebox_record::LimitUnit;
use glovebox_registry::client::{Client, TIME_MAX};
use glovebox_registry::credential::CredentialPlaces;
use glovebox_registry::error::RegistryError;
use glovebox_registry::reference::{Reference, ReferenceError, Repository};
use glovebox_registry::store::{AttachmentKind, Store, StoreError};
use glovebox_signing::plugin::MEDIA_TYPE;
use glovebox_signing::provenance::MEDIA_TYPE as PROVENANCE_TYPE;
use semver::Version;
use std::error::Error as _;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Environment variable that limits the time of all requests of a command.
const TIME_BOUND: &str = "GLOVEBOX_REGISTRY_TIMEOUT";
/// When this process made its first client. Its time is that of all clients together.
static BEGIN: OnceLock<Instant> = OnceLock::new();

/// Returns a client with the credentials and the time limit that the environment names.
pub fn client() -> Result<Client, Stop> {
    let default = u64::try_from(TIME_MAX.as_millis()).unwrap_or(u64::MAX);
    let time_max = Duration::from_millis(amount(TIME_BOUND, LimitUnit::Milliseconds, default)?);
    let client = Client::new(CredentialPlaces::from_environment(|name| std::env::var_os(name)))?;
    Ok(client.within(*BEGIN.get_or_init(Instant::now), time_max))
}

/// Returns the store of plugins of this user.
pub fn store() -> Result<Store, Stop> {
    plugin_bytes::store().map_err(|ReadProblem { reason, help }| Stop { help, ..Stop::new(Exit::Usage, reason) })
}

/// Puts a component into the store, with its signatures, its provenance and the reference from which it was pulled. Those that are there
/// stay: another project may need them.
pub fn put(bytes: &[u8], vouched: &Vouched, origin: &Reference) -> Result<(), Stop> {
    let store = store()?;
    let digest = store.put(bytes)?;
    let (signatures, provenance) = (vouched.signatures.iter(), vouched.provenance.iter());
    let signatures = signatures.map(|content| (AttachmentKind::Signatures, content.clone()));
    let provenance = provenance.map(|content| (AttachmentKind::Provenance, content.clone()));
    // The origin comes last: a component with an origin has all that was found there.
    let origin = (AttachmentKind::Origin, origin.to_string().into_bytes());
    for (kind, content) in signatures.chain(provenance).chain([origin]) {
        store.attach(digest, kind, &content)?;
    }
    Ok(())
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Io { file, source } => {
                Self::io(format!("use `{}`", visible::line(&file.to_string_lossy())), &source)
            }
            StoreError::Busy { .. } => Self::new(Exit::Transient, visible::line(&error.to_string()).into_owned())
                .with_help("repeat the command when it has ended"),
            StoreError::Absent { .. } | StoreError::Damaged { .. } | StoreError::Attachments => {
                Self::new(Exit::Plugin, visible::line(&error.to_string()).into_owned())
            }
        }
    }
}

/// Returns the files of provenance that are attached to a component. Nothing depends on them, so only a registry that cannot be reached
/// is an error.
pub fn provenance(client: &Client, reference: &Reference) -> Result<Vec<Vec<u8>>, Stop> {
    let Some(digest) = reference.digest else { return Ok(Vec::new()) };
    match client.referrers(&reference.repository, digest, PROVENANCE_TYPE) {
        Err(error @ RegistryError::Unreachable { .. }) => Err(error.into()),
        found => Ok(found.into_iter().flatten().map(|referrer| referrer.bytes).collect()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn a_store_that_another_process_holds_can_be_tried_again() {
        let stop = Stop::from(StoreError::Busy { folder: PathBuf::from("/data/plugins") });
        assert_eq!((stop.exit, stop.help.as_deref()), (Exit::Transient, Some("repeat the command when it has ended")));
        assert_eq!(Stop::from(StoreError::Attachments).exit, Exit::Plugin);
        let source = std::io::ErrorKind::PermissionDenied.into();
        assert_eq!(Stop::from(StoreError::Io { file: PathBuf::from("/data"), source }).exit, Exit::Usage);
    }
}
