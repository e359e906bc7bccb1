//! Compares a request with the names of this server before anything else is read from it.
//!
//! A page of another site can make a browser send requests to a server on the user's machine. It cannot choose `Host`,
//! `Origin` and `Sec-Fetch-Site`, so a request whose values are not ours is refused, for reading too. No answer has a CORS
//! header.

use crate::desk::Problem;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Version};

static FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The names of this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnNames {
    /// `http` or `https`.
    pub scheme: &'static str,
    /// Values of `Host`, with the port.
    pub hosts: Vec<String>,
}

impl OwnNames {
    /// Checks where a request was sent and from which page.
    ///
    /// # Errors
    ///
    /// Returns a problem with status 421 for another `Host`, and 403 for a foreign page.
    pub fn check(&self, headers: &HeaderMap, version: Version) -> Result<(), Problem> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        let is_one = hosts.next().is_none() && version == Version::HTTP_11;
        if !is_one || !host.is_some_and(|host| self.has(host)) {
            let message = format!("this server is `{}`, and the request names another host", self.hosts.join("`, `"));
            return Err(Problem::new(421, "foreign-host", message));
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        let origin = origins.next().map(|origin| origin.to_str().unwrap_or("?"));
        if origins.next().is_some() || !origin.is_none_or(|origin| self.is_own_origin(origin)) {
            return Err(Problem::new(403, "foreign-origin", "a page of another site sent this request"));
        }
        let mut sites = headers.get_all(&FETCH_SITE).iter();
        let site = sites.next().map(|site| site.to_str().unwrap_or("?"));
        if sites.next().is_some() || !site.is_none_or(|site| matches!(site, "same-origin" | "none")) {
            return Err(Problem::new(403, "foreign-origin", "a page of another site sent this request"));
        }
        Ok(())
    }

    fn has(&self, host: &str) -> bool {
        self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host))
    }

    fn is_own_origin(&self, origin: &str) -> bool {
        origin.strip_prefix(self.scheme).and_then(|rest| rest.strip_prefix("://")).is_some_and(|host| self.has(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(lines: &[(&'static str, &'static str)]) -> Option<u16> {
        let own = OwnNames { scheme: "http", hosts: vec!["127.0.0.1:4000".into(), "localhost:4000".into()] };
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        own.check(&headers, Version::HTTP_11).err().map(|problem| problem.status)
    }

    #[test]
    fn only_own_names_pass() {
        assert_eq!(checked(&[("host", "127.0.0.1:4000")]), None);
        assert_eq!(checked(&[("host", "LOCALHOST:4000")]), None);
        for host in ["127.0.0.1", "127.0.0.1:4001", "evil.example:4000", "127.0.0.1:4000.evil.example", ""] {
            assert_eq!(checked(&[("host", host)]), Some(421), "{host}");
        }
        assert_eq!(checked(&[]), Some(421));
        assert_eq!(checked(&[("host", "127.0.0.1:4000"), ("host", "127.0.0.1:4000")]), Some(421));
    }

    #[test]
    fn only_own_pages_pass() {
        let from = |name, value| checked(&[("host", "127.0.0.1:4000"), (name, value)]);
        assert_eq!(from("origin", "http://127.0.0.1:4000"), None);
        assert_eq!(from("origin", "http://localhost:4000"), None);
        for origin in
            ["https://127.0.0.1:4000", "http://127.0.0.1:4001", "null", "http://evil.example", "http://127.0.0.1:4000/"]
        {
            assert_eq!(from("origin", origin), Some(403), "{origin}");
        }
        assert_eq!(from("sec-fetch-site", "same-origin"), None);
        assert_eq!(from("sec-fetch-site", "none"), None);
        for site in ["cross-site", "same-site", ""] {
            assert_eq!(from("sec-fetch-site", site), Some(403), "{site}");
        }
    }
}
