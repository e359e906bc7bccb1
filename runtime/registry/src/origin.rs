//! Where requests may go: the base address of a registry, and the addresses to which it may send a client.
//!
//! Credentials go to the registry, and to the token server that the registry names. A registry that is asked with TLS can name only
//! a token server with TLS. A registry on this machine can name only one on this machine. Content that has a digest may come from
//! any address with TLS, without credentials. Everything else comes from the registry itself.

use crate::reference::RegistryHost;
use reqwest::Url;
use std::net::IpAddr;

/// Maximum length of an address in an answer, in bytes.
const ADDRESS_BYTES_MAX: usize = 8 << 10;

/// Maximum number of characters of a host in a message.
const HOST_CHARS_SHOWN: usize = 253;

/// Docker Hub is known by one name, and served by another.
const DOCKER_HUB: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// Returns the address of the distribution API of a registry, which ends with `/v2/`.
pub(crate) fn base(registry: &RegistryHost) -> Url {
    let scheme = if registry.is_loopback() { "http" } else { "https" };
    let host = if registry.host() == DOCKER_HUB.0 { DOCKER_HUB.1 } else { registry.host() };
    let port = registry.port().map(|port| format!(":{port}")).unwrap_or_default();
    Url::parse(&format!("{scheme}://{host}{port}/v2/")).expect("a parsed host is a host for URLs")
}

/// Parses an address of an answer, relative to the address of the request. It must have no user and no password.
pub(crate) fn parse(text: &str, request: &Url) -> Option<Url> {
    let url = request.join(text).ok().filter(|_| text.len() <= ADDRESS_BYTES_MAX)?;
    let is_plain = url.username().is_empty() && url.password().is_none() && url.host().is_some();
    is_plain.then_some(url)
}

/// Returns the host and the port of an address, for messages. A parsed host has only ASCII characters without control characters.
pub(crate) fn shown(url: &Url) -> String {
    let host: String = url.host_str().unwrap_or_default().chars().take(HOST_CHARS_SHOWN).collect();
    url.port().map_or(host.clone(), |port| format!("{host}:{port}"))
}

/// Returns why a redirect of content that has a digest may not be followed.
pub(crate) fn refuse_redirect(from: &Url, to: &Url) -> Option<&'static str> {
    match to.scheme() {
        _ if is_same(from, to) => None,
        "https" if is_loopback(to) && !is_loopback(from) => Some("an address of this machine"),
        "https" => None,
        _ => Some("only an address with `https` is followed"),
    }
}

/// Returns why a registry may not use a token server.
pub(crate) fn refuse_token_server(registry: &Url, server: &Url) -> Option<&'static str> {
    match (registry.scheme(), server.scheme()) {
        ("https", "https") => None,
        ("https", _) => Some("a token server must have `https`"),
        _ if is_loopback(server) && server.scheme() == "http" => None,
        _ => Some("a registry on this machine needs a token server on this machine"),
    }
}

/// Returns true for an address with TLS, and for one of this machine.
pub(crate) fn is_allowed(url: &Url) -> bool {
    url.scheme() == "https" || url.scheme() == "http" && is_loopback(url)
}

/// Returns true if two addresses have the same scheme, host and port.
pub(crate) fn is_same(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn the_scheme_follows_from_the_host() {
        let base = |host: &str| base(&host.parse().unwrap()).to_string();
        assert_eq!(base("localhost:5000"), "http://localhost:5000/v2/");
        assert_eq!(base("[::1]:5000"), "http://[::1]:5000/v2/");
        assert_eq!(base("registry:5000"), "https://registry:5000/v2/");
        assert_eq!(base("docker.io"), "https://registry-1.docker.io/v2/");
        assert_eq!(base("10.0.0.1:80"), "https://10.0.0.1:80/v2/");
    }

    #[test]
    fn content_comes_from_the_registry_or_with_tls() {
        let refused = |from: &str, to: &str| refuse_redirect(&url(from), &url(to)).is_some();
        assert!(!refused("https://a.example/v2/", "https://b.example/x"));
        assert!(!refused("http://127.0.0.1:1/v2/", "http://127.0.0.1:1/x"));
        assert!(refused("http://127.0.0.1:1/v2/", "http://127.0.0.1:2/x"));
        assert!(refused("https://a.example/v2/", "http://a.example/x"));
        assert!(refused("https://a.example/v2/", "https://127.0.0.1/x"));
        assert!(refused("https://a.example/v2/", "https://localhost:8443/x"));
        assert!(refused("https://a.example/v2/", "file:///etc/passwd"));
    }

    #[test]
    fn credentials_go_to_a_token_server_that_a_registry_with_tls_names() {
        let refused = |from: &str, to: &str| refuse_token_server(&url(from), &url(to)).is_some();
        assert!(!refused("https://a.example/v2/", "https://auth.example/token"));
        assert!(!refused("http://127.0.0.1:1/v2/", "http://127.0.0.1:2/token"));
        assert!(refused("https://a.example/v2/", "http://a.example/token"));
        assert!(refused("http://127.0.0.1:1/v2/", "http://10.0.0.1/token"));
        assert!(refused("http://127.0.0.1:1/v2/", "https://auth.example/token"));
        assert!(refused("http://127.0.0.1:1/v2/", "http://0x7f000001.example/token"));
    }

    #[test]
    fn an_address_of_an_answer_has_no_user() {
        let base = url("https://a.example/v2/");
        assert_eq!(parse("/x?y", &base), Some(url("https://a.example/x?y")));
        assert_eq!(parse("//b.example/x", &base), Some(url("https://b.example/x")));
        for text in
            ["https://ada@b.example/", "https://ada:pw@b.example/", "data:text/plain,x", "https://", &"a".repeat(9000)]
        {
            assert_eq!(parse(text, &base), None, "{text}");
        }
    }
}
