//! The domain list of a proxy: allowed names and their ports.
//!
//! This module knows names only. The address of a name is checked where it is resolved; no rule can allow an address.

use super::host::{Host, HostError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

const RULES_MAX: usize = 256;

/// The port of TLS, reached through tunnels whose first record must name the host.
pub const PORT_TLS: u16 = 443;
/// The port of plain HTTP, reached by single requests only.
pub const PORT_HTTP: u16 = 80;

/// A domain list. The default list is empty and allows nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct HostRules(Vec<HostRule>);

/// One entry of a list: a host name, or `*.` and a domain for every name below it (not the domain itself). It may end in `:port`;
/// without a port it allows 443 and 80. Addresses, capitals, names without a dot and `*.com` are refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct HostRule {
    name: Host,
    below: bool,
    port: Option<u16>,
}

/// Why an entry of a domain list was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostRuleError {
    /// The entry names no host.
    #[error("`{entry}` is {reason}: `api.example.com`, `*.example.com` or `api.example.com:8443` is expected")]
    Name {
        /// The entry.
        entry: String,
        /// The problem of the name.
        reason: HostError,
    },
    /// Capitals, which two spellings of one host would hide behind.
    #[error("`{0}` has capitals: host names in lower case are expected")]
    Capitals(String),
    /// The port is none.
    #[error("`{0}` has no valid port: a number from 1 to 65535 is expected after `:`")]
    Port(String),
    /// `*` somewhere else than in front.
    #[error("`{0}` has `*` in it: only `*.` in front of a domain is expected")]
    Star(String),
    /// More entries than a list may have.
    #[error("the domain list has {0} entries: at most {RULES_MAX} are expected")]
    TooMany(usize),
}

impl HostRules {
    /// Reads a list; each entry as [`HostRule`] does.
    pub fn parse<'t>(entries: impl Iterator<Item = &'t str>) -> Result<Self, HostRuleError> {
        Self::new(entries.map(str::parse).collect::<Result<_, _>>()?)
    }

    /// Makes a list of rules, unless there are too many.
    pub fn new(rules: Vec<HostRule>) -> Result<Self, HostRuleError> {
        if rules.len() > RULES_MAX { Err(HostRuleError::TooMany(rules.len())) } else { Ok(Self(rules)) }
    }

    /// The rules, as written.
    pub fn iter(&self) -> impl Iterator<Item = &HostRule> {
        self.0.iter()
    }

    /// Writes the list with one more host, in the form for `glovebox.toml`.
    pub fn with(&self, host: &Host, port: u16) -> String {
        let port = (!matches!(port, PORT_TLS | PORT_HTTP)).then_some(port);
        let more = HostRule { name: host.clone(), below: false, port };
        let quoted: Vec<String> = self.iter().chain([&more]).map(|rule| format!("\"{rule}\"")).collect();
        format!("[{}]", quoted.join(", "))
    }

    /// True when everything that a rule allows is allowed by this list.
    pub fn cover(&self, other: &HostRule) -> bool {
        self.iter().any(|rule| rule.covers(other))
    }

    /// True when the list names this host on this port.
    pub fn allow(&self, host: &Host, port: u16) -> bool {
        self.iter().any(|rule| rule.matches(host) && rule.has(port))
    }
}

impl fmt::Display for HostRules {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<String> = self.iter().map(HostRule::to_string).collect();
        formatter.write_str(&rules.join(","))
    }
}

impl TryFrom<String> for HostRule {
    type Error = HostRuleError;

    fn try_from(entry: String) -> Result<Self, HostRuleError> {
        entry.parse()
    }
}

impl From<HostRule> for String {
    fn from(rule: HostRule) -> Self {
        rule.to_string()
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let below = if self.below { "*." } else { "" };
        write!(formatter, "{below}{}", self.name)?;
        self.port.map_or(Ok(()), |port| write!(formatter, ":{port}"))
    }
}

impl HostRule {
    /// True when one of the rules allows a host that the other allows too; ports make no difference.
    pub fn overlaps(&self, other: &HostRule) -> bool {
        self.covers_hosts(other) || other.covers_hosts(self)
    }

    fn covers_hosts(&self, other: &HostRule) -> bool {
        (self.name == other.name && self.below == other.below) || (self.below && self.matches(&other.name))
    }

    fn matches(&self, host: &Host) -> bool {
        if !self.below {
            return self.name == *host;
        }
        let front = host.as_str().strip_suffix(self.name.as_str());
        front.is_some_and(|front| front.len() > 1 && front.ends_with('.'))
    }

    /// True when this rule allows everything that another one allows.
    pub fn covers(&self, other: &HostRule) -> bool {
        self.covers_hosts(other)
            && (self.port == other.port || self.port.is_none() && other.port.is_some_and(|port| self.has(port)))
    }

    fn has(&self, port: u16) -> bool {
        self.port.map_or(port == PORT_TLS || port == PORT_HTTP, |own| own == port)
    }
}

impl FromStr for HostRule {
    type Err = HostRuleError;

    fn from_str(entry: &str) -> Result<Self, HostRuleError> {
        if entry.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(HostRuleError::Capitals(entry.to_owned()));
        }
        if entry.contains('/') {
            return Err(HostRuleError::Name { entry: entry.to_owned(), reason: HostError::Syntax });
        }
        let (name, port) = match entry.rsplit_once(':') {
            // More than one colon is an IPv6 address, and named as such below.
            Some((name, port)) if !name.contains(':') => {
                (name, Some(parse_port(port).ok_or_else(|| HostRuleError::Port(entry.to_owned()))?))
            }
            _ => (entry, None),
        };
        let below = name.strip_prefix("*.");
        let bare = below.unwrap_or(name);
        if bare.contains('*') {
            return Err(HostRuleError::Star(entry.to_owned()));
        }
        let name = Host::parse(bare).map_err(|reason| HostRuleError::Name { entry: entry.to_owned(), reason })?;
        Ok(Self { name, below: below.is_some(), port })
    }
}

/// Reads a port, digits only.
pub fn parse_port(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten().filter(|port| *port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(entries: &[&str]) -> Result<HostRules, HostRuleError> {
        HostRules::parse(entries.iter().copied())
    }

    #[test]
    fn names_ports_and_subdomains_match_as_written() {
        let rules = rules(&["api.example.com", "*.crates.io", "git.example.org:22"]).unwrap();
        let cases = [
            ("api.example.com", 443, true),
            ("api.example.com", 80, true),
            ("API.example.com", 443, true),
            ("api.example.com", 22, false),
            ("x.api.example.com", 443, false),
            ("example.com", 443, false),
            ("crates.io", 443, false),
            ("static.crates.io", 443, true),
            ("a.b.crates.io", 443, true),
            ("evilcrates.io", 443, false),
            ("crates.io.evil.com", 443, false),
            ("git.example.org", 22, true),
            ("git.example.org", 443, false),
        ];
        for (host, port, allowed) in cases {
            assert_eq!(rules.allow(&Host::parse(host).unwrap(), port), allowed, "{host}:{port}");
        }
        assert!(!HostRules::default().allow(&Host::parse("a.b").unwrap(), 443));
    }

    #[test]
    fn an_entry_covers_what_it_allows() {
        let cases = [
            ("a.io", "a.io", true),
            ("a.io", "b.a.io", false),
            ("a.io", "*.a.io", false),
            ("*.a.io", "a.io", false),
            ("*.a.io", "b.a.io", true),
            ("*.a.io", "*.a.io", true),
            ("*.a.io", "*.b.a.io", true),
            ("*.b.a.io", "*.a.io", false),
            ("*.a.io", "ba.io", false),
            ("a.io", "a.io:443", true),
            ("a.io", "a.io:22", false),
            ("a.io:443", "a.io", false),
            ("*.a.io:22", "b.a.io:22", true),
            ("*.a.io:22", "b.a.io", false),
        ];
        for (granted, named, covered) in cases {
            assert_eq!(rules(&[granted]).unwrap().cover(&named.parse().unwrap()), covered, "{granted} {named}");
        }
    }

    #[test]
    fn what_is_no_name_is_no_rule() {
        for entry in [
            "",
            "*",
            "*.",
            "*.com",
            "a.*.com",
            "**.a.com",
            "*a.com",
            "Api.example.com",
            "1.2.3.4",
            "*.1.2.3.4",
            "[::1]:443",
            "::1",
            "0x7f.1",
            "localhost",
            "a.com.",
            "a.com:",
            "a.com:0",
            "a.com:65536",
            "a.com:+1",
            "a.com:http",
            "https://a.com",
            "a.com/x",
            "bücher.de",
            " a.com",
        ] {
            assert!(rules(&[entry]).is_err(), "{entry}");
        }
        assert!(rules(&vec!["a.com"; RULES_MAX + 1]).is_err());
    }
}
