//! HTTP requests: TLS with certificate checks, no redirects, no connection that waits forever.

use crate::error::{Fault, RegistryError, Unreachable};
use crate::origin;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Method, Response, StatusCode, Url};
use rustls::{ClientConfig, RootCertStore};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

/// Maximum time to connect, TLS included.
const CONNECT: Duration = Duration::from_secs(15);
/// Maximum time until the head of an answer arrives.
const ANSWER: Duration = Duration::from_secs(30);
/// Minimum speed of an upload, in bytes each second. The time for an answer is extended by this.
const UPLOAD_BYTES_PER_SECOND: u64 = 32 << 10;

/// One HTTP request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) accept: Option<&'static str>,
    pub(crate) content: Option<Content>,
}

/// The body of a request.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) media_type: &'static str,
    pub(crate) bytes: Vec<u8>,
}

impl Request {
    pub(crate) fn get(url: Url) -> Self {
        Self { method: Method::GET, url, accept: None, content: None }
    }
}

/// The two HTTP clients: with TLS for other machines, and without for this machine.
pub(crate) struct Exchange {
    tls: reqwest::Client,
    loopback: reqwest::Client,
}

impl Exchange {
    /// Creates the clients. Certificates are checked against the roots of the system, of `SSL_CERT_FILE` and of Mozilla.
    ///
    /// # Errors
    ///
    /// TLS cannot be set up.
    pub(crate) fn new() -> Result<Self, RegistryError> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let failed = |error: &dyn std::error::Error| RegistryError::Tls(error.to_string());
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let builder = || {
            reqwest::Client::builder()
                .tls_backend_preconfigured(config.clone())
                .redirect(Policy::none())
                .retry(reqwest::retry::never())
                .referer(false)
                .connect_timeout(CONNECT)
                .user_agent(concat!("glovebox/", env!("CARGO_PKG_VERSION")))
        };
        let loopback = builder()
            // A request to this machine goes through no proxy, and `localhost` is no other machine.
            .no_proxy()
            .resolve_to_addrs("localhost", &[(Ipv4Addr::LOCALHOST, 0).into(), (Ipv6Addr::LOCALHOST, 0).into()]);
        Ok(Self {
            tls: builder().https_only(true).build().map_err(|error| failed(&error))?,
            loopback: loopback.build().map_err(|error| failed(&error))?,
        })
    }

    /// Sends a request, and returns the head of the answer. `http` is used only for addresses that [`origin`] allows.
    ///
    /// # Errors
    ///
    /// There is no answer in time.
    pub(crate) async fn send(
        &self,
        request: &Request,
        authorization: Option<&HeaderValue>,
    ) -> Result<Response, RegistryError> {
        let client = if request.url.scheme() == "http" { &self.loopback } else { &self.tls };
        let mut sent = client.request(request.method.clone(), request.url.clone());
        if let Some(accept) = request.accept {
            sent = sent.header(ACCEPT, accept);
        }
        if let Some(authorization) = authorization {
            sent = sent.header(AUTHORIZATION, authorization.clone());
        }
        let mut limit = ANSWER;
        if let Some(Content { media_type, bytes }) = &request.content {
            limit += Duration::from_secs(bytes.len() as u64 / UPLOAD_BYTES_PER_SECOND);
            sent = sent.header(CONTENT_TYPE, *media_type).body(bytes.clone());
        }
        let host = origin::shown(&request.url);
        match tokio::time::timeout(limit, sent.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(RegistryError::unreachable(host, reason(error))),
            Err(_) => Err(RegistryError::unreachable(host, Unreachable::Silent(limit.as_secs()))),
        }
    }
}

/// Returns why a request has no answer. The text is that of the last cause, and contains nothing of the registry.
fn reason(error: reqwest::Error) -> Unreachable {
    if error.is_timeout() {
        return Unreachable::Silent(CONNECT.as_secs());
    }
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match error.is_connect() {
        true => Unreachable::Connect(cause.to_string()),
        false => Unreachable::Cut,
    }
}

/// Returns the address in the header `Location`, if it is one.
pub(crate) fn location(response: &Response, request: &Url) -> Option<Url> {
    let text = response.headers().get(LOCATION)?.to_str().ok()?;
    origin::parse(text, request)
}

/// Refuses an answer with another status than the expected one.
pub(crate) fn expect(
    host: &str,
    what: &'static str,
    response: &Response,
    request: &Url,
    expected: StatusCode,
) -> Result<(), RegistryError> {
    match response.status() {
        status if status == expected => Ok(()),
        status if status.is_redirection() => {
            let to = location(response, request).map_or("?".to_owned(), |to| origin::shown(&to));
            let reason = "only content that has a digest may come from another address";
            Err(RegistryError::answer(host, Fault::Redirect { what, to, reason }))
        }
        status => Err(unexpected(host, what, status)),
    }
}

/// Returns the error for a status that the request cannot have.
pub(crate) fn unexpected(host: &str, what: &'static str, status: StatusCode) -> RegistryError {
    let code = status.as_u16();
    match status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
        true => RegistryError::unreachable(host, Unreachable::Status(code)),
        false => RegistryError::answer(host, Fault::Status { status: code, what }),
    }
}
