//! What a command asks of registries: versions, plugins, and what is attached to them.
//!
//! Every call waits for its result. A call that fails has changed nothing that a later call would use.

use crate::artifact::{self, Annotations, ComponentInterface};
use crate::body;
use crate::credential::CredentialPlaces;
use crate::error::{BLOB, Fault, RegistryError, Unreachable};
use crate::exchange::{Exchange, Request, location, unexpected};
use crate::origin;
use crate::paging::List;
use crate::reference::{Reference, RegistryHost, Repository, Tag};
use crate::session::{ManifestBytes, Right, Session};
use crate::sha256::Sha256Digest;
use oci_client::manifest::OCI_IMAGE_MEDIA_TYPE;
use reqwest::{StatusCode, Url};
use semver::Version;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// Path of the repository in requests that are about the whole registry.
const NO_PATH: &str = "catalog";
/// Maximum time of all requests of a client, if the caller sets no other deadline.
pub const TIME_MAX: Duration = Duration::from_secs(30 * 60);
/// Maximum number of redirects of a download.
const DOWNLOAD_REDIRECTS_MAX: usize = 3;

/// A client of registries, with the user's credentials.
pub struct Client {
    pub(crate) runtime: Runtime,
    exchange: Exchange,
    places: CredentialPlaces,
    begin: Instant,
    time_max: Duration,
}

/// A plugin that was pulled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryPlugin {
    /// The reference with the digest of the manifest.
    pub reference: Reference,
    /// The component.
    pub bytes: Vec<u8>,
}

/// A plugin that was pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PushResult {
    /// The digest of the manifest.
    pub digest: Sha256Digest,
    /// True if the version was there already, with the same component.
    pub was_there: bool,
}

impl Client {
    /// Creates a client. It connects to nothing, and reads no credentials until a registry asks for them.
    ///
    /// # Errors
    ///
    /// TLS or the runtime cannot be set up.
    pub fn new(places: CredentialPlaces) -> Result<Self, RegistryError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| RegistryError::Tls(error.to_string()))?;
        Ok(Self { runtime, exchange: Exchange::new()?, places, begin: Instant::now(), time_max: TIME_MAX })
    }

    /// Limits the time of all requests together, beginning with `begin`. A registry that answers each request in time could otherwise
    /// hold a command for days.
    #[must_use]
    pub fn within(self, begin: Instant, time_max: Duration) -> Self {
        Self { begin, time_max, ..self }
    }

    /// Waits for requests to a host, as long as the time of this client is not over.
    pub(crate) fn wait<T>(
        &self,
        host: impl ToString,
        requests: impl Future<Output = Result<T, RegistryError>>,
    ) -> Result<T, RegistryError> {
        let left = self.time_max.saturating_sub(self.begin.elapsed());
        let over = || RegistryError::unreachable(host, Unreachable::TimeOver(self.time_max));
        self.runtime.block_on(async { timeout(left, requests).await.unwrap_or_else(|_| Err(over())) })
    }

    pub(crate) fn session<'a>(&'a self, repository: &'a Repository, right: Right) -> Session<'a> {
        Session::new(&self.exchange, &self.places, repository, right)
    }

    /// Returns the versions of a repository, newest first. Tags that are no version are left out.
    ///
    /// # Errors
    ///
    /// The registry cannot be used, or has no such repository.
    pub fn versions(&self, repository: &Repository) -> Result<Vec<Version>, RegistryError> {
        let path = format!("{}/tags/list", repository.path());
        let list = List { path, field: "tags", what: "tags" };
        let mut session = self.session(repository, Right::Pull);
        let tags = self.wait(&repository.registry, list.read(&mut session, &repository.to_string()))?;
        let mut versions: Vec<Version> =
            tags.iter().filter_map(|tag| tag.parse::<Tag>().ok()).filter_map(|tag| tag.version()).collect();
        versions.sort_unstable_by(|one, other| other.cmp(one));
        Ok(versions)
    }

    /// Returns the repositories of a registry. `None` if it offers no list of them, or not to this user.
    ///
    /// # Errors
    ///
    /// The registry cannot be used.
    pub fn repositories(&self, registry: &RegistryHost) -> Result<Option<Vec<Repository>>, RegistryError> {
        let list = List { path: "_catalog".to_owned(), field: "repositories", what: "repositories" };
        let any = Repository::new(registry.clone(), NO_PATH)
            .map_err(|_| RegistryError::Address { address: registry.to_string(), reason: "it is no registry" })?;
        let mut session = self.session(&any, Right::Catalog);
        let paths = match self.wait(registry, list.read(&mut session, &registry.to_string())) {
            Err(RegistryError::Missing { .. } | RegistryError::Answer { fault: Fault::Status { .. }, .. }) => {
                return Ok(None);
            }
            paths => paths?,
        };
        Ok(Some(paths.iter().filter_map(|path| Repository::new(registry.clone(), path).ok()).collect()))
    }

    /// Returns the digest of the manifest that a reference names now. `None` if the registry answers 404.
    ///
    /// # Errors
    ///
    /// The registry cannot be used.
    pub fn digest(&self, reference: &Reference) -> Result<Option<Sha256Digest>, RegistryError> {
        let mut session = self.session(&reference.repository, Right::Pull);
        let (name, what) = (name(reference)?, reference.to_string());
        let found = self.wait(&reference.repository.registry, session.manifest_if_any(&name, &what))?;
        Ok(found.map(|found| found.digest))
    }

    /// Pulls the plugin that a reference names: its digest if it has one, else its version.
    ///
    /// # Errors
    ///
    /// The registry cannot be used, has no such plugin, or sends other bytes than its manifest promises. A component may have at
    /// most `bytes_max` bytes.
    pub fn pull(&self, reference: &Reference, bytes_max: u64) -> Result<RegistryPlugin, RegistryError> {
        let mut session = self.session(&reference.repository, Right::Pull);
        self.wait(&reference.repository.registry, async {
            let found = session.manifest(&name(reference)?, &reference.to_string()).await?;
            let bytes = component(&mut session, &found, bytes_max).await?;
            Ok(RegistryPlugin { reference: Reference { digest: Some(found.digest), ..reference.clone() }, bytes })
        })
    }

    /// Pushes a component as a version of a repository, which must not exist with another component.
    ///
    /// # Errors
    ///
    /// The registry cannot be used, refuses the push, or has the version with another component.
    pub fn push(
        &self,
        repository: &Repository,
        tag: &Tag,
        bytes: &[u8],
        component: ComponentInterface<'_>,
        annotations: Annotations,
    ) -> Result<PushResult, RegistryError> {
        let what = repository.at(tag.clone()).to_string();
        let mut session = self.session(repository, Right::Push);
        self.wait(&repository.registry, async {
            if let Some(found) = session.manifest_if_any(tag.as_str(), &what).await? {
                let is_same = artifact::layer(&session.host(), &found)
                    .is_ok_and(|layer| layer.digest == Sha256Digest::hash(bytes));
                return match is_same {
                    true => Ok(PushResult { digest: found.digest, was_there: true }),
                    false => Err(RegistryError::Published { what, digest: found.digest }),
                };
            }
            let layer = session.put_blob(bytes).await?;
            let config = artifact::config(layer, component);
            session.put_blob(&config).await?;
            let manifest = artifact::manifest(bytes, &config, annotations);
            let (digest, _) = session.put_manifest(tag.as_str(), OCI_IMAGE_MEDIA_TYPE, manifest).await?;
            Ok(PushResult { digest, was_there: false })
        })
    }

    /// Downloads a component from an address that is no registry. The caller checks its digest.
    ///
    /// # Errors
    ///
    /// The address is neither `https` nor one of this machine, cannot be reached, or sends more than `bytes_max` bytes.
    pub fn download(&self, address: &str, bytes_max: u64) -> Result<Vec<u8>, RegistryError> {
        let refused = |reason| RegistryError::Address { address: address.to_owned(), reason };
        let mut url = Url::parse(address)
            .ok()
            .and_then(|url| origin::parse(url.as_str(), &url))
            .ok_or_else(|| refused("`https://HOST/PATH` without a user is expected"))?;
        if !origin::is_allowed(&url) {
            return Err(refused("`http` is allowed only for this machine: write `https`"));
        }
        self.wait(origin::shown(&url), async {
            let mut response = self.exchange.send(&Request::get(url.clone()), None).await?;
            for _ in 0..DOWNLOAD_REDIRECTS_MAX {
                let Some(to) = location(&response, &url).filter(|_| response.status().is_redirection()) else { break };
                if let Some(reason) = origin::refuse_redirect(&url, &to) {
                    let fault = Fault::Redirect { what: BLOB, to: origin::shown(&to), reason };
                    return Err(RegistryError::answer(origin::shown(&url), fault));
                }
                response = self.exchange.send(&Request::get(to.clone()), None).await?;
                url = to;
            }
            let host = origin::shown(&url);
            match response.status() {
                StatusCode::OK => body::read(response, &host, BLOB, bytes_max).await,
                status => Err(unexpected(&host, BLOB, status)),
            }
        })
    }
}

fn name(reference: &Reference) -> Result<String, RegistryError> {
    reference.name().ok_or_else(|| RegistryError::NoVersion { what: reference.to_string() })
}

/// Reads the component that a manifest describes.
async fn component(session: &mut Session<'_>, found: &ManifestBytes, bytes_max: u64) -> Result<Vec<u8>, RegistryError> {
    let host = session.host();
    let layer = artifact::layer(&host, found)?;
    artifact::refuse_large(&host, layer, bytes_max)?;
    session.blob(layer.digest, layer.bytes, BLOB).await
}
