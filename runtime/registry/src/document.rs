//! Small documents with a tag, such as lists of revocations: an artifact with one layer. A tag moves to each new document.

use crate::artifact::{self, descriptor, json};
use crate::client::Client;
use crate::error::{Fault, RegistryError};
use crate::reference::{Reference, Repository, Tag};
use crate::referrers::{EMPTY, EMPTY_MEDIA_TYPE};
use crate::session::{MANIFEST, Right};
use crate::sha256::Sha256Digest;
use oci_client::manifest::{OCI_IMAGE_MEDIA_TYPE, OciImageManifest};

/// A document, in messages.
const DOCUMENT: &str = "a document";

impl Client {
    /// Returns the document that a tag names now.
    ///
    /// # Errors
    ///
    /// The registry cannot be used, has no such tag, has something else there, or sends other bytes than its manifest promises. A
    /// document may have at most `bytes_max` bytes.
    pub fn document(&self, reference: &Reference, media_type: &str, bytes_max: u64) -> Result<Vec<u8>, RegistryError> {
        let what = reference.to_string();
        let name = reference.name().ok_or_else(|| RegistryError::NoVersion { what: what.clone() })?;
        let mut session = self.session(&reference.repository, Right::Pull);
        self.wait(&reference.repository.registry, async {
            let found = session.manifest(&name, &what).await?;
            let host = session.host();
            let manifest = artifact::parse(&host, &found.bytes)?;
            let other = |text: &str| RegistryError::answer(&host, Fault::NotADocument(text.to_owned()));
            let [layer] = manifest.layers.as_slice() else {
                return Err(other("it has several layers or none, and one is expected"));
            };
            if layer.media_type != media_type {
                return Err(other(&format!("its layer is not `{media_type}`")));
            }
            let malformed = |reason: &str| RegistryError::malformed(&host, MANIFEST, reason);
            let digest: Sha256Digest = layer.digest.parse().map_err(|_| malformed("its layer has no sha256 digest"))?;
            let bytes = u64::try_from(layer.size).map_err(|_| malformed("a size is negative"))?;
            if bytes > bytes_max {
                return Err(RegistryError::answer(&host, Fault::TooLong { what: DOCUMENT, bytes_max }));
            }
            session.blob(digest, bytes, DOCUMENT).await
        })
    }

    /// Lets a tag name a document.
    ///
    /// # Errors
    ///
    /// The registry cannot be used, or refuses the push.
    pub fn push_document(
        &self,
        repository: &Repository,
        tag: &Tag,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<Sha256Digest, RegistryError> {
        let mut session = self.session(repository, Right::Push);
        self.wait(&repository.registry, async {
            session.put_blob(EMPTY).await?;
            session.put_blob(bytes).await?;
            let manifest = json(&OciImageManifest {
                media_type: Some(OCI_IMAGE_MEDIA_TYPE.to_owned()),
                artifact_type: Some(media_type.to_owned()),
                config: descriptor(EMPTY_MEDIA_TYPE, EMPTY),
                layers: vec![descriptor(media_type, bytes)],
                ..OciImageManifest::default()
            });
            Ok(session.put_manifest(tag.as_str(), OCI_IMAGE_MEDIA_TYPE, manifest).await?.0)
        })
    }
}
