//! Requests to one repository of one registry, with the authorization that the registry asks for.

use crate::authorization::{Challenge, authorize};
use crate::body;
use crate::credential::CredentialPlaces;
use crate::error::{Access, BLOB, Fault, RegistryError, Unreachable};
use crate::exchange::{Content, Exchange, Request, expect, location};
use crate::origin;
use crate::reference::Repository;
use crate::sha256::Sha256Digest;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url};

/// Maximum size of a manifest or an index, in bytes. Registries accept at most 4 MiB.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of redirects of one request for content.
const REDIRECTS_MAX: usize = 3;
/// A manifest, in messages.
pub(crate) const MANIFEST: &str = "a manifest";

/// What the requests of a session need to be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    /// Read the repository.
    Pull,
    /// Read and write the repository.
    Push,
    /// List the repositories of the registry.
    Catalog,
}

/// The requests of one command to one repository.
pub(crate) struct Session<'a> {
    exchange: &'a Exchange,
    places: &'a CredentialPlaces,
    pub(crate) repository: &'a Repository,
    right: Right,
    base: Url,
    authorization: Option<HeaderValue>,
    access: Access,
}

/// A manifest or an index, as its bytes.
pub(crate) struct ManifestBytes {
    pub(crate) bytes: Vec<u8>,
    pub(crate) digest: Sha256Digest,
    pub(crate) media_type: String,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        exchange: &'a Exchange,
        places: &'a CredentialPlaces,
        repository: &'a Repository,
        right: Right,
    ) -> Self {
        let base = origin::base(&repository.registry);
        Self { exchange, places, repository, right, base, authorization: None, access: Access::Anonymous }
    }

    /// Returns the registry's name in messages.
    pub(crate) fn host(&self) -> String {
        self.repository.registry.to_string()
    }

    /// Returns the address of a path of the API. All parts of a path were parsed.
    pub(crate) fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("/v2/{path}"));
        url
    }

    /// Returns the address of a path below the repository.
    fn below(&self, path: &str) -> Url {
        self.url(&format!("{}/{path}", self.repository.path()))
    }

    /// Sends a request to the registry, after its challenge with authorization. Redirects are not followed.
    ///
    /// # Errors
    ///
    /// The registry does not answer, or answers 401, 403, 404 or a status of its own failure.
    pub(crate) async fn send(&mut self, request: &Request, what: &str) -> Result<Response, RegistryError> {
        let mut response = self.exchange.send(request, self.authorization.as_ref()).await?;
        if response.status() == StatusCode::UNAUTHORIZED && self.authorization.is_none() {
            self.authorize(response.headers()).await?;
            if self.authorization.is_some() {
                response = self.exchange.send(request, self.authorization.as_ref()).await?;
            }
        }
        match response.status() {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => Err(RegistryError::Missing {
                what: what.to_owned(),
                host: self.host(),
                status: response.status().as_u16(),
                access: self.access.clone(),
            }),
            status if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() => {
                Err(RegistryError::unreachable(self.host(), Unreachable::Status(status.as_u16())))
            }
            _ => Ok(response),
        }
    }

    async fn authorize(&mut self, headers: &HeaderMap) -> Result<(), RegistryError> {
        let challenge = Challenge::read(headers, &self.base)?;
        let found = self.places.find(self.repository)?;
        if let Some(found) = &found {
            self.access = Access::With(found.file.clone());
        }
        let path = self.repository.path();
        let scope = match self.right {
            Right::Pull => format!("repository:{path}:pull"),
            Right::Push => format!("repository:{path}:pull,push"),
            Right::Catalog => "registry:catalog:*".to_owned(),
        };
        let credential = found.as_ref().map(|found| &found.credential);
        self.authorization = authorize(self.exchange, &challenge, credential, &scope).await?;
        Ok(())
    }

    /// Reads a manifest or an index, by a tag or a digest. Its digest is computed from its bytes. A digest in the answer must be the
    /// same, and one in the request must be too.
    pub(crate) async fn manifest(&mut self, name: &str, what: &str) -> Result<ManifestBytes, RegistryError> {
        let request = Request { accept: Some(ACCEPTED), ..Request::get(self.below(&format!("manifests/{name}"))) };
        let response = self.send(&request, what).await?;
        let host = self.host();
        expect(&host, MANIFEST, &response, &request.url, StatusCode::OK)?;
        let stated = response.headers().get("docker-content-digest").cloned();
        let media_type = media_type(response.headers());
        let bytes = body::read(response, &host, MANIFEST, MANIFEST_BYTES_MAX).await?;
        let digest = Sha256Digest::hash(&bytes);
        if let Ok(expected) = name.parse::<Sha256Digest>() {
            expect_digest(&host, MANIFEST, expected, digest)?;
        }
        if stated.is_some_and(|stated| stated.as_bytes() != digest.to_string().as_bytes()) {
            return Err(RegistryError::answer(host, Fault::DigestHeader { what: MANIFEST, found: digest }));
        }
        Ok(ManifestBytes { bytes, digest, media_type })
    }

    /// As [`Session::manifest`]; `None` if the registry answers 404.
    pub(crate) async fn manifest_if_any(
        &mut self,
        name: &str,
        what: &str,
    ) -> Result<Option<ManifestBytes>, RegistryError> {
        match self.manifest(name, what).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a blob that has exactly this length and digest. Redirects to addresses with TLS are followed, without credentials.
    pub(crate) async fn blob(
        &mut self,
        digest: Sha256Digest,
        length: u64,
        what: &'static str,
    ) -> Result<Vec<u8>, RegistryError> {
        let mut url = self.below(&format!("blobs/{digest}"));
        let mut response = self.send(&Request::get(url.clone()), &self.repository.to_string()).await?;
        for _ in 0..REDIRECTS_MAX {
            if !response.status().is_redirection() {
                break;
            }
            let to = location(&response, &url).ok_or_else(|| {
                RegistryError::malformed(&origin::shown(&url), what, "its header `location` has no address")
            })?;
            if let Some(reason) = origin::refuse_redirect(&url, &to) {
                let fault = Fault::Redirect { what, to: origin::shown(&to), reason };
                return Err(RegistryError::answer(origin::shown(&url), fault));
            }
            let authorization = self.authorization.as_ref().filter(|_| origin::is_same(&self.base, &to));
            response = self.exchange.send(&Request::get(to.clone()), authorization).await?;
            url = to;
        }
        let host = origin::shown(&url);
        expect(&host, what, &response, &url, StatusCode::OK)?;
        let bytes = body::read(response, &host, what, length).await?;
        if bytes.len() as u64 != length {
            let fault = Fault::Length { what, expected: length, found: bytes.len() as u64 };
            return Err(RegistryError::answer(host, fault));
        }
        expect_digest(&host, what, digest, Sha256Digest::hash(&bytes))?;
        Ok(bytes)
    }

    /// Uploads a blob, unless the registry has it.
    pub(crate) async fn put_blob(&mut self, bytes: &[u8]) -> Result<Sha256Digest, RegistryError> {
        let digest = Sha256Digest::hash(bytes);
        let (host, what) = (self.host(), self.repository.to_string());
        let head = Request { method: Method::HEAD, ..Request::get(self.below(&format!("blobs/{digest}"))) };
        match self.send(&head, &what).await {
            Ok(response) if response.status() == StatusCode::OK => return Ok(digest),
            Ok(_) => {}
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error),
        }
        let begin = Request { method: Method::POST, ..Request::get(self.below("blobs/uploads/")) };
        let begin = Request { content: Some(Content { media_type: OCTETS, bytes: Vec::new() }), ..begin };
        let response = self.send(&begin, &what).await?;
        expect(&host, BLOB, &response, &begin.url, StatusCode::ACCEPTED)?;
        let mut to = location(&response, &begin.url)
            .ok_or_else(|| RegistryError::malformed(&host, BLOB, "its header `location` has no address"))?;
        if !origin::is_same(&self.base, &to) {
            let reason = "an upload stays at the registry";
            return Err(RegistryError::answer(host, Fault::Redirect { what: BLOB, to: origin::shown(&to), reason }));
        }
        to.query_pairs_mut().append_pair("digest", &digest.to_string());
        let content = Content { media_type: OCTETS, bytes: bytes.to_vec() };
        let put = Request { method: Method::PUT, content: Some(content), ..Request::get(to) };
        let response = self.send(&put, &what).await?;
        expect(&host, BLOB, &response, &put.url, StatusCode::CREATED)?;
        Ok(digest)
    }

    /// Uploads a manifest or an index under a tag or its digest, and returns its digest and the headers of the answer.
    pub(crate) async fn put_manifest(
        &mut self,
        name: &str,
        media_type: &'static str,
        bytes: Vec<u8>,
    ) -> Result<(Sha256Digest, HeaderMap), RegistryError> {
        let digest = Sha256Digest::hash(&bytes);
        let request = Request {
            method: Method::PUT,
            content: Some(Content { media_type, bytes }),
            ..Request::get(self.below(&format!("manifests/{name}")))
        };
        let response = self.send(&request, &self.repository.to_string()).await?;
        expect(&self.host(), MANIFEST, &response, &request.url, StatusCode::CREATED)?;
        Ok((digest, response.headers().clone()))
    }
}

/// The media type of an upload.
const OCTETS: &str = "application/octet-stream";

/// The media types of a manifest and of an index.
const ACCEPTED: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json";

/// Returns the media type of an answer, without parameters.
fn media_type(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn expect_digest(
    host: &str,
    what: &'static str,
    expected: Sha256Digest,
    found: Sha256Digest,
) -> Result<(), RegistryError> {
    match expected == found {
        true => Ok(()),
        false => Err(RegistryError::answer(host, Fault::Digest { what, expected, found })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oci_client::manifest::{OCI_IMAGE_INDEX_MEDIA_TYPE, OCI_IMAGE_MEDIA_TYPE};

    #[test]
    fn manifests_and_indexes_are_accepted() {
        assert_eq!(ACCEPTED, format!("{OCI_IMAGE_MEDIA_TYPE}, {OCI_IMAGE_INDEX_MEDIA_TYPE}"));
    }
}
