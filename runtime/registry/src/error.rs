//! Why a registry could not be used.
//!
//! Texts of a registry are never part of a message: a message has its host, which the user named, and facts that Glovebox found.

use crate::credential::CredentialError;
use crate::sha256::Sha256Digest;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Why a request to a registry has no result.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The registry does not show it. Registries give one answer for what is missing and for what is private, so this error does too.
    #[error("`{what}` is not there, or not for you: `{host}` answered {status} to a request {access}")]
    Missing {
        /// The reference, or what else was asked for.
        what: String,
        /// The host that answered.
        host: String,
        /// The status of the answer: 401, 403 or 404.
        status: u16,
        /// How the request was made.
        access: Access,
    },
    /// The registry cannot be reached, or does not answer in time, or is overloaded. A later request may succeed.
    #[error("`{host}` {reason}")]
    Unreachable {
        /// The host.
        host: String,
        /// What happened.
        reason: Unreachable,
    },
    /// The answer is not what the protocol or the request demands.
    #[error("`{host}` {fault}")]
    Answer {
        /// The host.
        host: String,
        /// What is wrong.
        fault: Fault,
    },
    /// The user's credentials cannot be read.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// The version exists with other content.
    #[error("`{what}` is published already, with other bytes: its manifest is {digest}")]
    Published {
        /// The reference.
        what: String,
        /// The digest of the published manifest.
        digest: Sha256Digest,
    },
    /// The repository has no version.
    #[error("`{what}` has no version: none of its tags is a version such as `1.2.0`")]
    NoVersion {
        /// The repository.
        what: String,
    },
    /// The client could not be created.
    #[error("TLS cannot be used: {0}")]
    Tls(String),
    /// An address cannot be used.
    #[error("`{address}` cannot be used: {reason}")]
    Address {
        /// The address, escaped.
        address: String,
        /// Why.
        reason: &'static str,
    },
}

/// How a request was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// No credentials were found for the host.
    Anonymous,
    /// With the credentials in this file.
    With(PathBuf),
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => f.write_str("without credentials"),
            Self::With(file) => write!(f, "with the credentials in `{}`", file.display()),
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// The connection could not be made.
    #[error("cannot be reached: {0}")]
    Connect(String),
    /// The registry did not answer in time.
    #[error("did not answer within {0} s")]
    Silent(u64),
    /// The answer arrives too slowly.
    #[error("answers too slowly: {bytes} bytes in {seconds} s")]
    Slow {
        /// Bytes that arrived.
        bytes: u64,
        /// In this time.
        seconds: u64,
    },
    /// The time of the whole command is over.
    #[error("answers too slowly: the command may use registries for {} s", .0.as_secs_f64())]
    TimeOver(Duration),
    /// The connection ended before the answer was complete.
    #[error("closed the connection before its answer was complete")]
    Cut,
    /// The registry is overloaded or broken.
    #[error("answered {0}: try again later")]
    Status(u16),
}

/// What is wrong with an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A status that the request cannot have.
    #[error("answered {status} to a request for {what}")]
    Status {
        /// The status.
        status: u16,
        /// What was asked for.
        what: &'static str,
    },
    /// The answer is too long.
    #[error("sends more than {bytes_max} bytes for {what}")]
    TooLong {
        /// What was asked for.
        what: &'static str,
        /// The limit.
        bytes_max: u64,
    },
    /// The component is larger than the operator allows.
    #[error("has a component of {bytes} bytes, and at most {bytes_max} are allowed (limit `component_bytes`)")]
    TooLarge {
        /// The length in the manifest.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// Bytes have another length than the manifest says.
    #[error("sent {found} bytes for {what}, and its manifest says {expected}")]
    Length {
        /// What was asked for.
        what: &'static str,
        /// The length in the manifest.
        expected: u64,
        /// The received length.
        found: u64,
    },
    /// Bytes have another digest than the expected one.
    #[error("sent other bytes for {what}: they are {found}, expected {expected}")]
    Digest {
        /// What was asked for.
        what: &'static str,
        /// The expected digest.
        expected: Sha256Digest,
        /// The digest of the received bytes.
        found: Sha256Digest,
    },
    /// A header has another digest than the bytes.
    #[error("states a digest that {what} does not have: its bytes are {found}")]
    DigestHeader {
        /// What was asked for.
        what: &'static str,
        /// The digest of the received bytes.
        found: Sha256Digest,
    },
    /// The answer leads to a place that is not allowed.
    #[error("redirects {what} to `{to}`: {reason}")]
    Redirect {
        /// What was asked for.
        what: &'static str,
        /// The origin, escaped.
        to: String,
        /// Why it is not followed.
        reason: &'static str,
    },
    /// The token server is at a place that is not allowed.
    #[error("names `{to}` as its token server: {reason}, and nothing was sent there")]
    TokenServer {
        /// The origin, escaped.
        to: String,
        /// Why it is not asked.
        reason: &'static str,
    },
    /// The registry wants a kind of authentication that is not supported.
    #[error("wants a kind of authentication that is not supported: `Basic` or `Bearer` is expected")]
    Challenge,
    /// The answer is malformed.
    #[error("sent {what} that cannot be read: {reason}")]
    Malformed {
        /// What was asked for.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// The artifact is not a plugin.
    #[error("has something else than a plugin there: {0}")]
    NotAPlugin(String),
    /// The artifact is not a document of the expected type.
    #[error("has something else there: {0}")]
    NotADocument(String),
    /// There is more than one program reads.
    #[error("lists more than {max} {what}")]
    TooMany {
        /// What is listed.
        what: &'static str,
        /// The limit.
        max: usize,
    },
}

/// The name of a component's bytes in [`Fault`].
pub(crate) const BLOB: &str = "the component";

impl RegistryError {
    pub(crate) fn answer(host: impl ToString, fault: Fault) -> Self {
        Self::Answer { host: host.to_string(), fault }
    }

    pub(crate) fn malformed(host: &str, what: &'static str, reason: impl ToString) -> Self {
        Self::answer(host, Fault::Malformed { what, reason: reason.to_string() })
    }

    pub(crate) fn unreachable(host: impl ToString, reason: Unreachable) -> Self {
        Self::Unreachable { host: host.to_string(), reason }
    }

    /// Returns true if the registry says that it does not have it.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Missing { status: 404, .. })
    }

    /// Returns what the user can do.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Missing { host, access: Access::Anonymous, .. } => Some(format!(
                "check the spelling; if it is private, log in with `docker login {host}`, or with `podman login` or `oras login`"
            )),
            Self::Missing { host, .. } => Some(format!(
                "check the spelling, and ask its owner for access; to log in again: `docker login {host}`"
            )),
            Self::Unreachable { .. } => Some("nothing was changed; repeat the command later".to_owned()),
            Self::Answer { fault: Fault::TooLarge { .. }, .. } => {
                Some("a larger plugin needs a higher `component_bytes` under `[limits]` in glovebox.toml".to_owned())
            }
            Self::Answer { .. } => {
                Some("nothing of this answer was used or stored; tell the operator of the registry".to_owned())
            }
            Self::Credential(error) => Some(error.help()),
            Self::Published { .. } => Some("publish other bytes under another version".to_owned()),
            Self::NoVersion { .. } => Some("name a tag or a digest: `HOST/PATH@sha256:…`".to_owned()),
            Self::Tls(_) => Some("`SSL_CERT_FILE` names a file of certificates in PEM form".to_owned()),
            Self::Address { .. } => None,
        }
    }
}
