//! The host list of a proxy: names of hosts, with their ports.
//!
//! This module knows names only. The proxy checks the address of a name when it resolves the name; no rule can allow an address.

use super::host::{Host, HostError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

const RULES_MAX: usize = 256;

/// The port of TLS. A tunnel to this port must name the host in its first TLS record.
pub const PORT_TLS: u16 = 443;
/// The port of plain HTTP, for single requests without a tunnel.
pub const PORT_HTTP: u16 = 80;

/// A list of allowed hosts. The default list is empty and allows no host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct HostRules(Vec<HostRule>);

/// One entry of a host list: a host name, or `*.` and a domain for every name below the domain, but not the domain itself. The
/// entry may end in `:port`; without a port it allows 443 and 80. Addresses, upper case, names without a dot and `*.com` are
/// refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct HostRule {
    name: Host,
    below: bool,
    port: Option<u16>,
}

/// Why an entry of a host list was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostRuleError {
    /// The entry does not contain a valid host name.
    #[error("`{entry}` is {reason}: `api.example.com`, `*.example.com` or `api.example.com:8443` is expected")]
    Name {
        /// The entry.
        entry: String,
        /// What is wrong with the name.
        reason: HostError,
    },
    /// The entry has upper-case letters, which would allow two spellings of one host.
    #[error("`{0}` has capitals: host names in lower case are expected")]
    Capitals(String),
    /// The entry has no valid port.
    #[error("`{0}` has no valid port: a number from 1 to 65535 is expected after `:`")]
    Port(String),
    /// The entry has `*` in a place other than the beginning.
    #[error("`{0}` has `*` in it: only `*.` in front of a domain is expected")]
    Star(String),
    /// The list has more entries than allowed.
    #[error("the domain list has {0} entries: at most {RULES_MAX} are expected")]
    TooMany(usize),
}

impl HostRules {
    /// Parses a list, with each entry in the form of [`HostRule`].
    pub fn parse<'t>(entries: impl Iterator<Item = &'t str>) -> Result<Self, HostRuleError> {
        Self::new(entries.map(str::parse).collect::<Result<_, _>>()?)
    }

    /// Creates a list of rules. Returns an error if there are too many.
    pub fn new(rules: Vec<HostRule>) -> Result<Self, HostRuleError> {
        if rules.len() > RULES_MAX { Err(HostRuleError::TooMany(rules.len())) } else { Ok(Self(rules)) }
    }

    /// Returns the rules in the order in which they are written.
    pub fn iter(&self) -> impl Iterator<Item = &HostRule> {
        self.0.iter()
    }

    /// Returns the text of this list with one more host, in the syntax of `glovebox.toml`.
    pub fn with(&self, host: &Host, port: u16) -> String {
        let port = (!matches!(port, PORT_TLS | PORT_HTTP)).then_some(port);
        let more = HostRule { name: host.clone(), below: false, port };
        let quoted: Vec<String> = self.iter().chain([&more]).map(|rule| format!("\"{rule}\"")).collect();
        format!("[{}]", quoted.join(", "))
    }

    /// Returns true if this list allows everything that the rule allows.
    pub fn cover(&self, other: &HostRule) -> bool {
        self.iter().any(|rule| rule.covers(other))
    }

    /// Returns true if this list allows the host on the port.
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
    /// Returns true if there are hosts that both rules allow, whatever the ports.
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

    /// Returns true if this rule allows everything that the other rule allows.
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
            // An entry with several colons is an IPv6 address; `Host::parse` reports it as one.
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

/// Parses a port of decimal digits. `None` for 0 and for text that is not a port.
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
