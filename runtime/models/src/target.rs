//! Address, trusted certificates and key of a model.
//!
//! A key is sent over TLS or to this machine only. Nothing is derived from a model's name.

use crate::chat::{ModelId, Settings};
use crate::error::{ErrorKind, ModelError};
use crate::family::Family;
use crate::key::Key;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

/// Default for the longest time without received bytes before a call fails. A model may think for minutes.
pub const TIMEOUT: Duration = Duration::from_secs(300);

/// A base URL: scheme, host, port and the path in front of every request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// True if TLS is used.
    pub is_tls: bool,
    /// A name or an address, an IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Empty, or `/` and more, without a `/` at its end.
    pub path: String,
}

/// A text that is no endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a URL such as `https://api.example.com/v1`, without user, query and fragment")]
pub struct EndpointError;

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let (is_tls, rest) = match text.split_once("://") {
            Some(("https", rest)) => (true, rest),
            Some(("http", rest)) => (false, rest),
            _ => return Err(EndpointError),
        };
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"@?#\\\"<>`{}|^".contains(&byte);
        if !rest.bytes().all(is_plain) {
            return Err(EndpointError);
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.strip_prefix('[') {
            Some(inside) => inside.split_once(']').ok_or(EndpointError)?,
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let port = match port.strip_prefix(':') {
            Some(digits) => digits.parse().ok().filter(|port| *port > 0).ok_or(EndpointError)?,
            None if port.is_empty() => {
                if is_tls {
                    443
                } else {
                    80
                }
            }
            None => return Err(EndpointError),
        };
        if host.is_empty() || (host.contains(':') && host.parse::<IpAddr>().is_err()) {
            return Err(EndpointError);
        }
        Ok(Self { is_tls, host: host.to_ascii_lowercase(), port, path: path.trim_end_matches('/').to_owned() })
    }
}

impl Endpoint {
    /// Returns true for an endpoint on this machine.
    pub fn is_local(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Scheme, host and port: what decides who gets a request.
    pub fn origin(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }

    /// Host and port as a `Host` header has them.
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.to_owned() };
        match (self.is_tls, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path)
    }
}

/// Certificates of authorities that are trusted beside the bundled ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Authorities(pub(crate) Vec<CertificateDer<'static>>);

impl Authorities {
    /// Reads a file of PEM certificates, or `None` if it has none, or one that cannot be read.
    pub fn parse(pem: &[u8]) -> Option<Self> {
        let found: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().ok()?;
        (!found.is_empty()).then_some(Self(found))
    }
}

/// A model that can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its wire format.
    pub family: Family,
    /// Its endpoint.
    pub endpoint: Endpoint,
    /// Its exact name.
    pub model: ModelId,
    /// Other names that its answers may carry.
    pub answers_as: Vec<ModelId>,
    /// The provider's key; some local servers need none.
    pub key: Option<Key>,
    /// Trusted beside the bundled certificates.
    pub authorities: Authorities,
    /// Most tokens of an answer, unless a request asks for fewer.
    pub output_tokens_max: u64,
    /// Most tokens of a conversation, the answer included.
    pub context_tokens: u64,
    /// Longest time without received bytes.
    pub timeout: Duration,
    /// True if the provider's schema mode is used where an answer must match a schema.
    pub schema_mode: bool,
    /// True if the model accepts images.
    pub images: bool,
}

/// Maximum number of tokens of an answer, unless the operator says otherwise.
pub const OUTPUT_TOKENS_MAX: u64 = 16_384;
/// Maximum number of tokens of a conversation, unless the operator says otherwise.
pub const CONTEXT_TOKENS: u64 = 131_072;

impl Target {
    /// Returns most tokens of the answer to a request.
    pub fn output_tokens(&self, settings: &Settings) -> u64 {
        settings.output_tokens_max.unwrap_or(u64::MAX).min(self.output_tokens_max)
    }

    /// Refuses a key that would cross a network in the clear.
    pub fn check(&self) -> Result<(), ModelError> {
        if self.key.is_some() && !self.endpoint.is_tls && !self.endpoint.is_local() {
            let message = format!("the key of `{}` would go to {} without TLS", self.model, self.endpoint);
            return Err(ModelError::new(ErrorKind::Configuration, message));
        }
        Ok(())
    }

    /// Checks that the answer is of this model.
    pub(crate) fn check_answered(&self, answered: Option<&ModelId>) -> Result<(), ModelError> {
        let is_expected = |name: &ModelId| self.model.is_answered_by(name) || self.answers_as.contains(name);
        match answered {
            Some(name) if is_expected(name) => Ok(()),
            Some(name) => {
                let message = format!("model `{}` was asked, and `{name}` answered", self.model);
                Err(ModelError::new(ErrorKind::PinViolation, message))
            }
            None => {
                let message = format!("model `{}` was asked, and the answer does not name its model", self.model);
                Err(ModelError::new(ErrorKind::PinViolation, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read_and_written() {
        let check = |text: &str, shown: &str| assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), shown);
        check("https://api.openai.com/v1/", "https://api.openai.com/v1");
        check("http://127.0.0.1:11434", "http://127.0.0.1:11434");
        check("http://[::1]:8080/x", "http://[::1]:8080/x");
        check("https://EXAMPLE.com:443", "https://example.com");
        let wrong = [
            "",
            "api.openai.com",
            "ftp://x",
            "https://",
            "https://user:pass@x",
            "https://x/?key=1",
            "https://x#a",
            "https://x:0",
            "https://x:99999",
            "https://a b",
            "https://x\r\ny",
            "http://[::1",
            "http://::1",
        ];
        for text in wrong {
            assert_eq!(text.parse::<Endpoint>(), Err(EndpointError), "{text}");
        }
    }

    #[test]
    fn this_machine_is_known_by_its_addresses() {
        let local = |text: &str| text.parse::<Endpoint>().unwrap().is_local();
        assert!(local("http://localhost:1") && local("http://127.8.0.1") && local("http://[::1]"));
        assert!(!local("http://localhost.example.com") && !local("http://10.0.0.1") && !local("http://0.0.0.0"));
    }
}
