//! Names of plugins in registries: `ghcr.io/acme/review:1.2.0@sha256:…`.
//!
//! The host is part of the name. There is no default registry, because two registries may have different plugins of one name.

use crate::sha256::Sha256Digest;
use reqwest::Url;
use semver::Version;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Maximum length of a reference, in bytes.
pub const REFERENCE_BYTES_MAX: usize = 512;
/// Maximum length of the path of a repository, in bytes (OCI distribution specification).
const PATH_BYTES_MAX: usize = 255;
/// Maximum length of a tag, in bytes (OCI distribution specification).
const TAG_BYTES_MAX: usize = 128;
/// Maximum length of a host name, in bytes (RFC 1035).
const HOST_BYTES_MAX: usize = 253;

/// A registry: a host and, if it is not the default one, a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegistryHost {
    /// A name in lower case, an IPv4 address, or an IPv6 address in brackets.
    host: String,
    port: Option<u16>,
}

/// A repository: all versions of one plugin in one registry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Repository {
    /// The registry.
    pub registry: RegistryHost,
    /// The path, such as `acme/review`.
    path: String,
}

/// The tag of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(String);

/// A plugin in a registry: of a version, of a manifest, or of the newest version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The repository.
    pub repository: Repository,
    /// The version.
    pub tag: Option<Tag>,
    /// The digest of the manifest.
    pub digest: Option<Sha256Digest>,
}

/// Why a text is not a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The text is longer than [`REFERENCE_BYTES_MAX`].
    #[error("it has more than {REFERENCE_BYTES_MAX} bytes")]
    TooLong,
    /// The part before the first `/` is not a host.
    #[error("it names no registry: `HOST/PATH:VERSION` is expected, such as `ghcr.io/acme/review:1.2.0`")]
    NoHost,
    /// The host or the port is malformed.
    #[error("its host is malformed")]
    Host,
    /// The path is missing or malformed.
    #[error("its path must be words of a-z and 0-9, joined by `/`, `.`, `_`, `__` or `-`")]
    Path,
    /// The tag is malformed.
    #[error(
        "its tag must be 1 to {TAG_BYTES_MAX} letters, digits, `.`, `_` or `-`, and begin with none of `.` and `-`"
    )]
    Tag,
    /// The digest is malformed.
    #[error("its digest must be `sha256:` and 64 lower-case hexadecimal digits")]
    Digest,
}

impl RegistryHost {
    /// Returns true for a registry on this machine, which is asked without TLS. Every other registry is asked with TLS.
    pub fn is_loopback(&self) -> bool {
        let address = self.host.trim_start_matches('[').trim_end_matches(']');
        self.host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Returns the host without the port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port. `None` for the default port of the scheme.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    fn is_host(host: &str) -> bool {
        if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return address.parse::<Ipv6Addr>().is_ok();
        }
        let is_label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        // A name whose last label begins with a digit is an IPv4 address for URL parsers, also in forms such as `0x7f.1`.
        let is_number =
            host.rsplit('.').next().is_some_and(|last| last.starts_with(|first: char| first.is_ascii_digit()));
        host.len() <= HOST_BYTES_MAX
            && host.split('.').all(is_label)
            && (!is_number || host.parse::<Ipv4Addr>().is_ok_and(|address| address.to_string() == host))
    }

    /// Returns true if URLs have the host in the same spelling. This refuses malformed international names, and addresses that have a
    /// shorter form.
    fn is_canonical(host: &str) -> bool {
        Url::parse(&format!("https://{host}/")).is_ok_and(|url| url.host_str() == Some(host))
    }
}

impl FromStr for RegistryHost {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let end = text.find(']').map_or(0, |end| end + 1);
        let (host, port) = match text[end..].split_once(':') {
            Some((rest, port)) => (&text[..end + rest.len()], Some(port)),
            None => (text, None),
        };
        let host = host.to_ascii_lowercase();
        let has_port = port.is_some();
        let is_port = |port: &&str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.map(|port| Some(port).filter(is_port)?.parse().ok().filter(|port: &u16| *port != 0));
        match port {
            Some(None) => return Err(ReferenceError::Host),
            _ if !Self::is_host(&host) || !Self::is_canonical(&host) => return Err(ReferenceError::Host),
            // A single word is the first part of a path, as in `acme/review`.
            _ if !has_port && !host.contains('.') && !host.starts_with('[') && host != "localhost" => {
                return Err(ReferenceError::NoHost);
            }
            _ => {}
        }
        Ok(Self { host, port: port.flatten() })
    }
}

impl fmt::Display for RegistryHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl Repository {
    /// Returns the path, such as `acme/review`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the repository of a registry with this path.
    ///
    /// # Errors
    ///
    /// The path is malformed.
    pub fn new(registry: RegistryHost, path: &str) -> Result<Self, ReferenceError> {
        match is_path(path) {
            true => Ok(Self { registry, path: path.to_owned() }),
            false => Err(ReferenceError::Path),
        }
    }

    /// Returns the reference of a version.
    pub fn at(&self, tag: Tag) -> Reference {
        Reference { repository: self.clone(), tag: Some(tag), digest: None }
    }
}

impl FromStr for Repository {
    type Err = ReferenceError;

    /// Parses a reference without a version and a digest.
    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        if text.len() > REFERENCE_BYTES_MAX {
            return Err(ReferenceError::TooLong);
        }
        let (host, path) = text.split_once('/').ok_or(ReferenceError::NoHost)?;
        Self::new(host.parse()?, path)
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.path)
    }
}

fn is_path(path: &str) -> bool {
    path.len() <= PATH_BYTES_MAX && path.split('/').all(is_path_part)
}

/// Returns true for words of lower-case letters and digits, joined by `.`, `_`, `__` or any number of `-`.
fn is_path_part(part: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let separators = part.split(|character: char| character.is_ascii() && is_word(character as u8));
    let separators = separators.filter(|separator| !separator.is_empty());
    let begins_and_ends = [part.bytes().next(), part.bytes().last()].iter().all(|end| end.is_some_and(is_word));
    begins_and_ends && { separators }
        .all(|found| matches!(found, "." | "_" | "__") || found.bytes().all(|byte| byte == b'-'))
}

impl Tag {
    /// Returns the tag of a version. `+` becomes `_`, because a tag has no `+`.
    pub fn for_version(version: &Version) -> Self {
        Self(version.to_string().replace('+', "_"))
    }

    /// Returns the version that a tag names, or `None` for a tag such as `latest`.
    pub fn version(&self) -> Option<Version> {
        Version::parse(&self.0.replace('_', "+")).ok()
    }

    /// Returns the tag's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Tag {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let begins = text.bytes().next().is_some_and(|first| is_allowed(first) && !matches!(first, b'.' | b'-'));
        match begins && text.len() <= TAG_BYTES_MAX && text.bytes().all(is_allowed) {
            true => Ok(Self(text.to_owned())),
            false => Err(ReferenceError::Tag),
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Reference {
    /// Returns true if a text that may also be a path is a reference: it begins with `oci://`, or its first part is a host and it
    /// does not end like a component. No file of the machine changes the answer.
    pub fn is_meant(text: &str) -> bool {
        let Some((first, _)) = text.split_once('/') else { return false };
        let is_host = first.parse::<RegistryHost>().is_ok() && !first.starts_with('.');
        text.starts_with("oci://") || is_host && !text.contains("://") && !text.ends_with(".wasm")
    }

    /// Returns true if this is a manifest of the version that another reference names.
    pub fn is_version(&self, version: &Self) -> bool {
        self.repository == version.repository && self.tag == version.tag
    }

    /// Returns the manifest's name in the API: its digest if there is one, else its tag.
    pub(crate) fn name(&self) -> Option<String> {
        self.digest.map(|digest| digest.to_string()).or_else(|| self.tag.as_ref().map(Tag::to_string))
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        if text.len() > REFERENCE_BYTES_MAX {
            return Err(ReferenceError::TooLong);
        }
        let text = text.strip_prefix("oci://").unwrap_or(text);
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest.parse().map_err(|_| ReferenceError::Digest)?)),
            None => (text, None),
        };
        let (host, path) = name.split_once('/').ok_or(ReferenceError::NoHost)?;
        let registry: RegistryHost = host.parse()?;
        let (path, tag) = match path.split_once(':') {
            Some((path, tag)) => (path, Some(tag.parse()?)),
            None => (path, None),
        };
        Ok(Self { repository: Repository::new(registry, path)?, tag, digest })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.repository)?;
        self.tag.as_ref().map_or(Ok(()), |tag| write!(f, ":{tag}"))?;
        self.digest.map_or(Ok(()), |digest| write!(f, "@{digest}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, ReferenceError>) {
        let parsed = text.parse::<Reference>().map(|reference| reference.to_string());
        assert_eq!(parsed.as_deref().map_err(|error| *error), expected, "{text}");
    }

    #[test]
    fn references_are_parsed_strictly() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let pinned = format!("ghcr.io/acme/review:1.2.0@{digest}");
        check(&pinned, Ok(&pinned));
        check("oci://GHCR.io/acme/review", Ok("ghcr.io/acme/review"));
        check("localhost/a", Ok("localhost/a"));
        check("localhost:5000/a/b__c-d.e:latest", Ok("localhost:5000/a/b__c-d.e:latest"));
        check("[::1]:5000/a", Ok("[::1]:5000/a"));
        check("127.0.0.1:5000/a", Ok("127.0.0.1:5000/a"));
        check("registry:5000/a", Ok("registry:5000/a"));
        for text in ["acme/review", "review", "", "acme", "acme/review:1.0.0"] {
            check(text, Err(ReferenceError::NoHost));
        }
        for text in [
            "a..b/c",
            "-a.b/c",
            "a.b:/c",
            "a.b:0/c",
            "a.b:65536/c",
            "a.b:+1/c",
            "ü.example/c",
            "a.b\u{202e}/c",
            "127.1/a",
            "0x7f.0x1/a",
            "1.2.3.4.5/a",
            "01.2.3.4/a",
            "xn--a.b/c",
            "[0:0::1]:5000/a",
            "[::1/a",
            "a b.c/d",
            "a.b@c/d",
            "user:pw@a.b/d",
        ] {
            assert!(text.parse::<Reference>().is_err(), "{text}");
        }
        for text in [
            "a.b/",
            "a.b//c",
            "a.b/C",
            "a.b/../c",
            "a.b/a___b",
            "a.b/-a",
            "a.b/a.",
            "a.b/a%2e",
            "a.b/ä",
            "a.b/a?b",
            "a.b/a#b",
        ] {
            check(text, Err(ReferenceError::Path));
        }
        for text in ["a.b/c:", "a.b/c:-1", "a.b/c:.1", "a.b/c:1:2", "a.b/c:1+2", "a.b/c:1/d"] {
            check(text, Err(ReferenceError::Tag));
        }
        for text in ["a.b/c@", "a.b/c@sha256:00", "a.b/c@sha512:00", "a.b/c@sha256:0@1"] {
            check(text, Err(ReferenceError::Digest));
        }
        check(&format!("a.b/{}", "c".repeat(600)), Err(ReferenceError::TooLong));
        check(&format!("a.b/{}", "c".repeat(300)), Err(ReferenceError::Path));
    }

    #[test]
    fn only_this_machine_is_asked_without_tls() {
        let is_loopback = |host: &str| host.parse::<RegistryHost>().unwrap().is_loopback();
        for host in ["localhost", "localhost:5000", "127.0.0.1", "127.9.9.9:1", "[::1]:5000"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in
            ["ghcr.io", "localhost.example", "10.0.0.1", "[::2]", "[::ffff:7f00:1]", "registry:5000", "128.0.0.1"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn a_text_is_a_reference_or_a_file_whatever_files_there_are() {
        for text in ["ghcr.io/acme/review", "oci://ghcr.io/a.wasm", "localhost:5000/a:1.0.0", "oci://x/y"] {
            assert!(Reference::is_meant(text), "{text}");
        }
        for text in [
            "a.wasm",
            "plugins/a.wasm",
            "./ghcr.io/a",
            "../a.b/c",
            "/a.b/c",
            "target.d/a.wasm",
            "plugins/a",
            "https://a.b/c",
        ] {
            assert!(!Reference::is_meant(text), "{text}");
        }
    }

    #[test]
    fn a_tag_names_a_version_or_none() {
        let version: Version = "1.2.0-rc.1+build.5".parse().unwrap();
        let tag = Tag::for_version(&version);
        assert_eq!((tag.as_str(), tag.version()), ("1.2.0-rc.1_build.5", Some(version)));
        for text in ["latest", "1.2", "v1.2.0", "01.2.0"] {
            assert_eq!(text.parse::<Tag>().unwrap().version(), None, "{text}");
        }
    }
}
