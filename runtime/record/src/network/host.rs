//! Host names: ASCII, lower case, at least two labels, never an IP address.
//!
//! A name that a resolver could read as an IP address (`127.1`, `0x7f.1`, `2130706433`, `[::1]`) is not valid. In a
//! host list, such a name could bypass the proxy's check of addresses.

use std::fmt;

const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// A host name that can be resolved: lower case, with dots, without a trailing dot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(String);

/// Why a text is not a [`Host`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The text is an IP address in some spelling.
    #[error("an IP address, not a host name")]
    Literal,
    /// The text is not a valid DNS name.
    #[error("not a host name of two or more labels with ASCII letters, digits and `-`, without a trailing dot")]
    Syntax,
}

impl Host {
    /// Parses a name. Converts upper case to lower case.
    pub fn parse(text: &str) -> Result<Host, HostError> {
        let name = text.to_ascii_lowercase();
        if is_literal(&name) {
            return Err(HostError::Literal);
        }
        let sized = !name.is_empty() && name.len() <= NAME_BYTES_MAX;
        if !sized || !name.contains('.') || !name.split('.').all(is_label) {
            return Err(HostError::Syntax);
        }
        Ok(Host(name))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Returns true for a name that resolvers read as an address. The last label of such a name is a number (the rule of
/// the URL standard), or the name begins with a bracket or has several colons.
fn is_literal(name: &str) -> bool {
    let bare = name.strip_suffix('.').unwrap_or(name);
    let last = bare.rsplit('.').next().unwrap_or_default();
    let decimal = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    let hex = last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    decimal || hex || name.starts_with('[') || name.matches(':').count() > 1
}

fn is_label(label: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !label.is_empty()
        && label.len() <= LABEL_BYTES_MAX
        && label.bytes().all(allowed)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_and_addresses_are_not() {
        for name in ["api.example.com", "API.Example.com", "xn--bcher-kva.example", "a-b.c1", "1e100.net"] {
            assert!(Host::parse(name).is_ok(), "{name}");
        }
        let literals = [
            "127.0.0.1",
            "127.0.0.1.",
            "127.1",
            "2130706433",
            "017700000001",
            "0x7f000001",
            "0x7f.0.0.0x1",
            "0x",
            "a.0X1",
            "[::1]",
            "::1",
            "[::ffff:127.0.0.1]",
            "1.2.3.4.5",
            "example.1",
        ];
        for text in literals {
            assert_eq!(Host::parse(text), Err(HostError::Literal), "{text}");
        }
        let long = format!("{}.com", "a".repeat(64));
        let longer = vec!["abcdefg"; 40].join(".");
        for text in [
            "",
            ".",
            "localhost",
            "a..b",
            ".a.b",
            "a.b.",
            "-a.b",
            "a-.b",
            "a_b.c",
            "a b.c",
            "a.b/c",
            "u@a.b",
            "a%2eb.c",
            "bücher.de",
            "a.b\0",
            "a.b:80",
            &long,
            &longer,
        ] {
            assert_eq!(Host::parse(text), Err(HostError::Syntax), "{text}");
        }
    }
}
