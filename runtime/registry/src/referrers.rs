//! Small artifacts that are attached to a manifest, such as signatures: the referrers of the OCI distribution specification.
//!
//! A registry with the Referrers API lists them. For every other one, an index with the tag `sha256-HEX` has the list, and a client
//! adds an entry to it.

use crate::artifact::{self, Annotations, descriptor, json};
use crate::client::Client;
use crate::error::{Fault, RegistryError};
use crate::exchange::{Request, expect};
use crate::reference::Repository;
use crate::session::{MANIFEST, MANIFEST_BYTES_MAX, ManifestBytes, Right, Session};
use crate::sha256::Sha256Digest;
use oci_client::manifest::{
    ImageIndexEntry, OCI_IMAGE_INDEX_MEDIA_TYPE, OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageIndex, OciImageManifest,
};
use reqwest::StatusCode;

/// Media type of an empty configuration.
pub(crate) const EMPTY_MEDIA_TYPE: &str = "application/vnd.oci.empty.v1+json";
/// Content of an empty configuration.
pub(crate) const EMPTY: &[u8] = b"{}";
/// Maximum number of referrers of one type that are read.
pub const REFERRERS_MAX: usize = 64;
/// Maximum size of a referrer's content, in bytes.
pub const REFERRER_BYTES_MAX: u64 = 256 << 10;
/// Maximum number of attempts to add an entry to the index of a registry without the API.
const ATTEMPTS_MAX: usize = 4;
/// The content of a referrer, in messages.
const REFERRER: &str = "a referrer";

/// An artifact that is attached to a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Referrer {
    /// The digest of its own manifest.
    pub digest: Sha256Digest,
    /// The annotations of its manifest.
    pub annotations: Annotations,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// The content of a new referrer.
#[derive(Debug, Clone)]
pub struct Attachment<'a> {
    /// The type of the artifact, a media type. It is also the media type of the content.
    pub artifact_type: &'a str,
    /// The content.
    pub bytes: &'a [u8],
    /// The annotations of the manifest.
    pub annotations: Annotations,
}

impl Client {
    /// Attaches an artifact to a manifest, and returns the digest of the artifact's own manifest. To attach the same artifact again
    /// changes nothing.
    ///
    /// # Errors
    ///
    /// The registry cannot be used, has no such manifest, or refuses the push.
    pub fn attach(
        &self,
        repository: &Repository,
        subject: Sha256Digest,
        attachment: Attachment<'_>,
    ) -> Result<Sha256Digest, RegistryError> {
        let mut session = self.session(repository, Right::Push);
        self.wait(&repository.registry, async {
            let found = session.manifest(&subject.to_string(), &repository.to_string()).await?;
            let Attachment { artifact_type, bytes, annotations } = attachment;
            session.put_blob(EMPTY).await?;
            session.put_blob(bytes).await?;
            let manifest = OciImageManifest {
                media_type: Some(OCI_IMAGE_MEDIA_TYPE.to_owned()),
                artifact_type: Some(artifact_type.to_owned()),
                config: descriptor(EMPTY_MEDIA_TYPE, EMPTY),
                layers: vec![descriptor(artifact_type, bytes)],
                subject: Some(descriptor(OCI_IMAGE_MEDIA_TYPE, &found.bytes)),
                annotations: Some(annotations.clone()).filter(|annotations| !annotations.is_empty()),
                ..OciImageManifest::default()
            };
            let manifest = json(&manifest);
            let own = descriptor(OCI_IMAGE_MEDIA_TYPE, &manifest);
            let name = own.digest.clone();
            let (digest, headers) = session.put_manifest(&name, OCI_IMAGE_MEDIA_TYPE, manifest).await?;
            // A registry with the Referrers API says that it has read the subject.
            if !headers.contains_key("oci-subject") {
                add_to_index(&mut session, subject, entry(own, artifact_type, annotations)).await?;
            }
            Ok(digest)
        })
    }

    /// Returns the artifacts of a type that are attached to a manifest, at most [`REFERRERS_MAX`]. Nothing says that their authors may
    /// attach them. Entries that are malformed, missing or too large are left out.
    ///
    /// # Errors
    ///
    /// The registry cannot be used, or its list is malformed.
    pub fn referrers(
        &self,
        repository: &Repository,
        subject: Sha256Digest,
        artifact_type: &str,
    ) -> Result<Vec<Referrer>, RegistryError> {
        let mut session = self.session(repository, Right::Pull);
        self.wait(&repository.registry, async {
            let listed = list(&mut session, subject).await?;
            let of_type = listed.iter().filter(|entry| entry.artifact_type.as_deref() == Some(artifact_type));
            let mut digests: Vec<Sha256Digest> = of_type.filter_map(|entry| entry.digest.parse().ok()).collect();
            digests.sort_unstable();
            digests.dedup();
            let mut found = Vec::new();
            for digest in digests.into_iter().take(REFERRERS_MAX) {
                match read(&mut session, digest, subject, artifact_type).await {
                    Ok(referrer) => found.extend(referrer),
                    Err(error @ RegistryError::Unreachable { .. }) => return Err(error),
                    // Everyone who may push can add an entry, and a bad one must not hide the good ones.
                    Err(_) => {}
                }
            }
            Ok(found)
        })
    }
}

/// An index, in messages.
const INDEX: &str = "a list of referrers";

/// Returns the tag of the index of a manifest's referrers.
fn tag(subject: Sha256Digest) -> String {
    format!("sha256-{}", subject.hex())
}

fn entry(own: OciDescriptor, artifact_type: &str, annotations: Annotations) -> ImageIndexEntry {
    ImageIndexEntry {
        media_type: own.media_type,
        digest: own.digest,
        size: own.size,
        platform: None,
        annotations: Some(annotations).filter(|annotations| !annotations.is_empty()),
        artifact_type: Some(artifact_type.to_owned()),
    }
}

/// Adds an entry to the index of a registry without the Referrers API. Two clients at once can overwrite each other's index, so the
/// index is read again afterwards.
async fn add_to_index(
    session: &mut Session<'_>,
    subject: Sha256Digest,
    entry: ImageIndexEntry,
) -> Result<(), RegistryError> {
    for _ in 0..ATTEMPTS_MAX {
        let mut manifests = tagged(session, subject).await?;
        if manifests.iter().any(|known| known.digest == entry.digest) {
            return Ok(());
        }
        manifests.push(entry.clone());
        let index = OciImageIndex {
            schema_version: 2,
            media_type: Some(OCI_IMAGE_INDEX_MEDIA_TYPE.to_owned()),
            manifests,
            artifact_type: None,
            annotations: None,
        };
        session.put_manifest(&tag(subject), OCI_IMAGE_INDEX_MEDIA_TYPE, json(&index)).await?;
    }
    match tagged(session, subject).await?.iter().any(|known| known.digest == entry.digest) {
        true => Ok(()),
        false => Err(RegistryError::malformed(&session.host(), INDEX, "it does not keep a new entry")),
    }
}

/// Returns all referrers of a manifest, from the API if the registry has it.
async fn list(session: &mut Session<'_>, subject: Sha256Digest) -> Result<Vec<ImageIndexEntry>, RegistryError> {
    let url = session.url(&format!("{}/referrers/{subject}", session.repository.path()));
    let request = Request { accept: Some(OCI_IMAGE_INDEX_MEDIA_TYPE), ..Request::get(url) };
    let what = session.repository.to_string();
    let response = match session.send(&request, &what).await {
        Err(error) if error.is_missing() => return tagged(session, subject).await,
        response => response?,
    };
    let host = session.host();
    expect(&host, INDEX, &response, &request.url, StatusCode::OK)?;
    let bytes = crate::body::read(response, &host, INDEX, MANIFEST_BYTES_MAX).await?;
    entries(&host, &bytes)
}

/// Returns the entries of the index with the tag of a manifest.
async fn tagged(session: &mut Session<'_>, subject: Sha256Digest) -> Result<Vec<ImageIndexEntry>, RegistryError> {
    let (host, what) = (session.host(), session.repository.to_string());
    let Some(ManifestBytes { bytes, .. }) = session.manifest_if_any(&tag(subject), &what).await? else {
        return Ok(Vec::new());
    };
    entries(&host, &bytes)
}

fn entries(host: &str, bytes: &[u8]) -> Result<Vec<ImageIndexEntry>, RegistryError> {
    let index: OciImageIndex = serde_json::from_slice(bytes)
        .map_err(|error| RegistryError::malformed(host, INDEX, format_args!("line {}", error.line())))?;
    Ok(index.manifests)
}

/// Reads one referrer. `None` if its manifest is for another subject or of another type: a list can have any entries.
async fn read(
    session: &mut Session<'_>,
    digest: Sha256Digest,
    subject: Sha256Digest,
    artifact_type: &str,
) -> Result<Option<Referrer>, RegistryError> {
    let (host, what) = (session.host(), session.repository.to_string());
    let found = session.manifest(&digest.to_string(), &what).await?;
    let manifest = artifact::parse(&host, &found.bytes)?;
    let is_for_subject = manifest.subject.as_ref().is_some_and(|named| named.digest == subject.to_string());
    let [layer] = manifest.layers.as_slice() else { return Ok(None) };
    if !is_for_subject || manifest.artifact_type.as_deref() != Some(artifact_type) {
        return Ok(None);
    }
    let malformed = |reason: &str| RegistryError::malformed(&host, MANIFEST, reason);
    let content: Sha256Digest = layer.digest.parse().map_err(|_| malformed("its layer has no sha256 digest"))?;
    let bytes = u64::try_from(layer.size).map_err(|_| malformed("a size is negative"))?;
    if bytes > REFERRER_BYTES_MAX {
        return Err(RegistryError::answer(host, Fault::TooLong { what: REFERRER, bytes_max: REFERRER_BYTES_MAX }));
    }
    let bytes = session.blob(content, bytes, REFERRER).await?;
    Ok(Some(Referrer { digest, annotations: manifest.annotations.unwrap_or_default(), bytes }))
}
