//! Address, trusted certificates and key of a model.
//!
//! A key is sent only over TLS or to this machine. No setting is derived from a model's name.

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

/// Default for the maximum time without received bytes before a call fails. A model may think for minutes.
pub const TIMEOUT: Duration = Duration::from_secs(300);

/// Base URL of a provider: scheme, host, port and a path prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// True if TLS is used.
    pub is_tls: bool,
    /// Name or address of the host. An IPv6 address has no brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Path prefix: empty, or beginning with `/` and without a `/` at its end.
    pub path: String,
}

/// A text that is not an endpoint.
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
    /// Returns true if the endpoint is on this machine.
    pub fn is_local(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Returns scheme, host and port, which together identify the receiver of a request.
    pub fn origin(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }

    /// Returns host and port in the format of a `Host` header.
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

/// Certificate authorities that are trusted in addition to the bundled ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Authorities(pub(crate) Vec<CertificateDer<'static>>);

impl Authorities {
    /// Reads a file of PEM certificates. Returns `None` if it contains no certificate or an unreadable one.
    pub fn parse(pem: &[u8]) -> Option<Self> {
        let found: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().ok()?;
        (!found.is_empty()).then_some(Self(found))
    }
}

/// The address of a model and the settings for asking it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Wire format.
    pub family: Family,
    /// Endpoint of the provider.
    pub endpoint: Endpoint,
    /// Exact name of the model.
    pub model: ModelId,
    /// Other names that an answer may state as its model.
    pub answers_as: Vec<ModelId>,
    /// The provider's key; `None` for a local server that needs none.
    pub key: Option<Key>,
    /// Certificate authorities that are trusted in addition to the bundled ones.
    pub authorities: Authorities,
    /// Maximum number of tokens of an answer, unless a request asks for fewer.
    pub output_tokens_max: u64,
    /// Maximum number of tokens of a conversation, including the answer.
    pub context_tokens: u64,
    /// Maximum time without received bytes.
    pub timeout: Duration,
    /// True if the provider's schema mode is used for answers that must match a schema.
    pub schema_mode: bool,
    /// True if the model accepts images.
    pub images: bool,
}

/// Default for the maximum number of tokens of an answer.
pub const OUTPUT_TOKENS_MAX: u64 = 16_384;
/// Default for the maximum number of tokens of a conversation.
pub const CONTEXT_TOKENS: u64 = 131_072;

impl Target {
    /// Returns the maximum number of tokens of the answer to a request.
    pub fn output_tokens(&self, settings: &Settings) -> u64 {
        settings.output_tokens_max.unwrap_or(u64::MAX).min(self.output_tokens_max)
    }

    /// Returns an error if the key would be sent over a network without encryption.
    pub fn check(&self) -> Result<(), ModelError> {
        if self.key.is_some() && !self.endpoint.is_tls && !self.endpoint.is_local() {
            let message = format!("the key of `{}` would go to {} without TLS", self.model, self.endpoint);
            return Err(ModelError::new(ErrorKind::Configuration, message));
        }
        Ok(())
    }

    /// Checks that the answer comes from this model.
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
