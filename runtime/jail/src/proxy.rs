//! The host's proxy for jails that may reach named hosts: `[sandbox] network = { proxy = ["api.example.com"] }`.
//!
//! The network of a jail contains only a listener, whose descriptor the host gets. The jail has no route, resolver or
//! socket file, so this proxy is the only way out. The proxy accepts connections from the listener. It dials on the
//! host once the host rules, the address check and the first bytes of the connection permit the host. It does not
//! decrypt TLS, so it cannot see what a command sends to an allowed host.

mod address;
mod client_hello;
mod connection;
pub mod dialer;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod fuzz;
mod listener;
mod refused_request;
mod request_head;
pub mod traffic;

pub use listener::{Proxy, ProxyBounds};

/// Address of the proxy inside a jail.
pub const ADDRESS: &str = "127.0.0.1:3128";

/// Returns the variables that make programs use the proxy, for every command of a jail with a proxy.
pub fn environment() -> [(&'static str, &'static str); 7] {
    const URL: &str = "http://127.0.0.1:3128";
    const DIRECT: &str = "localhost,127.0.0.1,::1";
    [
        ("HTTP_PROXY", URL),
        ("HTTPS_PROXY", URL),
        ("http_proxy", URL),
        ("https_proxy", URL),
        ("NO_PROXY", DIRECT),
        ("no_proxy", DIRECT),
        // Without this variable, Node's own `fetch` ignores all others.
        ("NODE_USE_ENV_PROXY", "1"),
    ]
}

#[cfg(test)]
mod tests;
