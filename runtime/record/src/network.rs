//! Network access of commands: nothing, a list of hosts through a proxy, or everything.
//!
//! The value is parsed once, from `glovebox.toml` or an attribute of a node, and passed unchanged to the proxy. The text form is
//! that of the attribute, such as `none` or `proxy:api.example.com`.

mod host;
mod rules;

pub use host::{Host, HostError};
pub use rules::{HostRule, HostRuleError, HostRules, PORT_HTTP, PORT_TLS, parse_port};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Network access of commands. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline)]
pub enum Network {
    /// No network, except for a private loopback interface.
    #[default]
    None,
    /// Only these hosts, through Glovebox's proxy.
    Proxy(HostRules),
    /// Every address that the machine can reach.
    Full,
}

/// Why a text is not a valid value of the setting `network`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The text is not one of the three forms.
    #[error("expected `none`, `full` or `proxy:api.example.com`")]
    Form,
    /// An entry of the host list is not valid.
    #[error(transparent)]
    Hosts(#[from] HostRuleError),
}

impl Network {
    /// Returns true if this network reaches everything that the other one reaches.
    pub fn covers(&self, other: &Network) -> bool {
        match (self, other) {
            (Self::Full, _) | (_, Self::None) => true,
            (Self::Proxy(own), Self::Proxy(hosts)) => hosts.iter().all(|host| own.cover(host)),
            (Self::None | Self::Proxy(_), _) => false,
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        match text {
            "none" => Ok(Self::None),
            "full" => Ok(Self::Full),
            _ => {
                let hosts = text.strip_prefix("proxy:").ok_or(NetworkError::Form)?;
                Ok(Self::Proxy(HostRules::parse(hosts.split(',').map(str::trim))?))
            }
        }
    }
}

impl TryFrom<String> for Network {
    type Error = NetworkError;

    fn try_from(text: String) -> Result<Self, NetworkError> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Proxy(hosts) => write!(f, "proxy:{hosts}"),
            Self::Full => f.write_str("full"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_written_as_it_is_read() {
        for text in ["none", "full", "proxy:a.example,*.b.example,c.example:22"] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), text);
        }
        assert_eq!("ful".parse::<Network>(), Err(NetworkError::Form));
        assert!(matches!("proxy:".parse::<Network>(), Err(NetworkError::Hosts(_))));
    }

    #[test]
    fn a_network_covers_what_it_reaches() {
        let check = |wide: &str, narrow: &str, covers: bool| {
            let network = |text: &str| text.parse::<Network>().unwrap();
            assert_eq!(network(wide).covers(&network(narrow)), covers, "{wide} {narrow}");
        };
        check("none", "none", true);
        check("none", "proxy:a.example", false);
        check("proxy:*.a.example", "none", true);
        check("proxy:*.a.example", "proxy:b.a.example,c.a.example", true);
        check("proxy:*.a.example", "proxy:b.a.example,a.example", false);
        check("proxy:a.example", "full", false);
        check("full", "proxy:a.example", true);
    }
}
