//! The host's proxy for jails that may reach named hosts: `[sandbox] network = { proxy = ["api.example.com"] }`.
//!
//! A jail has a network of its own with nothing in it but a listener, whose descriptor the host is handed. So inside there is no
//! route, no resolver, no socket file: what is not asked of this proxy is not asked of anybody. The proxy accepts there and
//! dials out here, after [`rules`], `address` and the first bytes have all said the same host.
//! It does not look into TLS: behind an allowed name, on an allowed address, what is said is between the two.

mod address;
mod client_hello;
mod connection;
pub mod dialer;
mod refused;
mod request_head;
mod serving;
pub mod traffic;

pub use serving::{Bounds, Proxy};

/// Where the proxy is found inside a jail.
pub const ADDRESS: &str = "127.0.0.1:3128";

/// The variables that lead programs to the proxy, for every command of a jail that has one.
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
        // Without it node's own `fetch` looks at none of the others.
        ("NODE_USE_ENV_PROXY", "1"),
    ]
}

#[cfg(test)]
mod tests;
