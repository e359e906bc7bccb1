//! Fuzz target of the readers of references and of a registry's answers, with the properties that must hold for any bytes.
//!
//! Used only by the target in `fuzz/` and by the test below, which reads the stored corpus.

use crate::artifact;
use crate::authorization::Challenge;
use crate::origin;
use crate::paging;
use crate::reference::{REFERENCE_BYTES_MAX, Reference};
use crate::session::ManifestBytes;
use crate::sha256::Sha256Digest;
use oci_client::manifest::OCI_IMAGE_MEDIA_TYPE;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderValue, LINK, WWW_AUTHENTICATE};

/// The name of the registry.
const HOST: &str = "registry.example";

/// Reads bytes as a reference, a manifest, a challenge and a link to the next page.
///
/// # Panics
/// Panics if a reference has two spellings, if an address that may not be used is used, or if a message contains bytes of an answer
/// that a terminal obeys.
pub fn registry_answer(bytes: &[u8]) {
    if let Some(reference) = std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<Reference>().ok()) {
        let text = reference.to_string();
        assert!(text.len() <= REFERENCE_BYTES_MAX && text.is_ascii(), "{text:?}");
        assert_eq!(text.parse(), Ok(reference.clone()));
        let base = origin::base(&reference.repository.registry);
        assert_eq!(base.scheme() == "http", reference.repository.registry.is_loopback(), "{base}");
        assert!(base.path() == "/v2/" && base.username().is_empty() && base.query().is_none(), "{base}");
    }
    let digest = Sha256Digest::hash(bytes);
    let found = ManifestBytes { bytes: bytes.to_vec(), digest, media_type: OCI_IMAGE_MEDIA_TYPE.to_owned() };
    if let Err(error) = artifact::layer(HOST, &found) {
        assert!(!error.to_string().chars().any(char::is_control), "{error}");
    }
    let Ok(value) = HeaderValue::from_bytes(bytes) else { return };
    let registry = Url::parse("https://registry.example/v2/").expect("a constant address");
    let headers: HeaderMap = [(WWW_AUTHENTICATE, value.clone()), (LINK, value)].into_iter().collect();
    match Challenge::read(&headers, &registry) {
        Ok(Challenge::Bearer { server, .. }) => {
            assert!(server.scheme() == "https" && server.username().is_empty(), "{server}");
        }
        Ok(Challenge::Basic) => {}
        Err(error) => assert!(!error.to_string().chars().any(char::is_control), "{error}"),
    }
    if let Some(next) = paging::next(&headers, &registry) {
        assert!(next.host().is_some() && next.username().is_empty(), "{next}");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn registry_answer() {
        glovebox_short_run::run("registry_answer", super::registry_answer);
    }
}
