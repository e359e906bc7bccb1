//! The reason why the proxy refused a request, for the client and for the record.
//!
//! A refusal names the grant that would allow the request, if there is one. It repeats a host name only after the name
//! was parsed, so that a stage cannot print arbitrary bytes to a terminal.

use glovebox_record::Refusal;
use glovebox_record::network::HostRules;
use glovebox_record::network::{Host, HostError};

/// A request that was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RefusedRequest {
    #[error("malformed request: {0}")]
    Malformed(&'static str),
    #[error("the request head has more than {0} bytes or 100 fields")]
    TooLarge(usize),
    #[error("the request was not complete in time")]
    Slow,
    #[error("the target is {0}")]
    Target(#[from] HostError),
    #[error("the stage may not reach port {1} of `{0}`; to allow it, add `\"{entry}\"` to the list of `[sandbox] network = {{ proxy = [...] }}` in glovebox.toml", entry = entry(.0, *.1))]
    NotGranted(Host, u16),
    #[error("port 80 accepts plain requests (`GET http://{0}/`), not tunnels")]
    PlainTunnel(Host),
    #[error("port 443 accepts tunnels (`CONNECT {0}:443`), not plain requests")]
    PlainRequest(Host),
    #[error("the `Host` field differs from the target `{0}`")]
    OtherHost(Host),
    #[error("a request with a body needs `Content-Length`")]
    NoLength,
    #[error("`{0}` resolves to an address that no stage may reach ({1})")]
    Address(Host, &'static str),
    #[error("failed to resolve `{0}`")]
    Unresolved(Host),
    #[error("failed to connect to `{0}`")]
    Unreachable(Host),
    #[error("the tunnel to `{0}` must begin with TLS for that host: {1}")]
    Hello(Host, &'static str),
}

fn entry(host: &Host, port: u16) -> String {
    if matches!(port, 80 | 443) { host.to_string() } else { format!("{host}:{port}") }
}

impl RefusedRequest {
    /// Returns the status line of the answer: 403 if the stage is not allowed, 502 if the host cannot be reached.
    fn status(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "400 Bad Request",
            Self::TooLarge(_) => "431 Request Header Fields Too Large",
            Self::Slow => "408 Request Timeout",
            Self::NoLength => "411 Length Required",
            Self::Unresolved(_) | Self::Unreachable(_) => "502 Bad Gateway",
            Self::Target(_)
            | Self::NotGranted(..)
            | Self::PlainTunnel(_)
            | Self::PlainRequest(_)
            | Self::OtherHost(_) => "403 Forbidden",
            Self::Address(..) | Self::Hello(..) => "403 Forbidden",
        }
    }

    /// Returns the refusal for the record: target, reason, and the line for `glovebox.toml` that would allow the
    /// request.
    pub(super) fn recorded(&self, host: Option<&Host>, granted: &HostRules) -> Refusal {
        let target = match (self, host) {
            (Self::NotGranted(host, port), _) => format!("{host}:{port}"),
            (_, Some(host)) => host.to_string(),
            (_, None) => "a request without a host name".to_owned(),
        };
        let (reason, help) = match self {
            Self::NotGranted(host, port) => {
                let list = granted.with(host, *port);
                let line = format!("to allow it: `[sandbox] network = {{ proxy = {list} }}` in glovebox.toml");
                (
                    "the stage may not reach this host".to_owned(),
                    format!("{line}, and the host in `network` of the node, if the node has this attribute"),
                )
            }
            Self::Unresolved(_) | Self::Unreachable(_) => {
                (self.to_string(), "no grant is missing: check the host name and the machine's network".to_owned())
            }
            _ => (self.to_string(), "no grant allows it".to_owned()),
        };
        Refusal::new("reach", &target, reason, help)
    }

    /// Returns the answer to the client. Inside a tunnel, where no HTTP response is possible, it is a fatal TLS alert:
    /// `unrecognized_name`.
    pub(super) fn answer(&self) -> Vec<u8> {
        if matches!(self, Self::Hello(..)) {
            return vec![21, 3, 3, 0, 2, 2, 112];
        }
        let body = format!("glovebox: {self}\n");
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.status(),
            body.len()
        );
        (head + &body).into_bytes()
    }
}
