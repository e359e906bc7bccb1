//! The client of services with the protocol of S3.
//!
//! Requests go over the HTTP client of this workspace, with rustls and ring: HTTP/1.1, no redirects, certificates
//! checked against the roots of the system and of `SSL_CERT_FILE`.

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use reqwest::redirect::Policy;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;

/// Maximum time to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// Maximum time without a byte of an answer.
const READ: Duration = Duration::from_secs(60);

/// Why a store in S3 cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum S3Error {
    /// An option is unknown or has a value of the wrong form.
    #[error("option `{name}` of the object store: {reason}")]
    Option {
        /// The option.
        name: String,
        /// The problem.
        reason: String,
    },
    /// The options do not make a client.
    #[error("the client of the object store: {0}")]
    Client(String),
    /// No thread can be started.
    #[error("the thread of the object store: {0}")]
    Thread(String),
}

/// Creates a client for a bucket. Nothing is sent.
pub(crate) fn open(bucket: &str, options: &[(String, String)]) -> Result<AmazonS3, S3Error> {
    let mut builder = AmazonS3Builder::new().with_bucket_name(bucket).with_http_connector(Connector);
    for (name, value) in options {
        let key: AmazonS3ConfigKey = name
            .parse()
            .map_err(|error: object_store::Error| S3Error::Option { name: name.clone(), reason: error.to_string() })?;
        // The client has settings of its own. An option that would have no effect is refused.
        if matches!(key, AmazonS3ConfigKey::Client(key) if key != ClientConfigKey::AllowHttp) {
            return Err(S3Error::Option { name: name.clone(), reason: "this client does not have it".to_owned() });
        }
        builder = builder.with_config(key, value);
    }
    builder.build().map_err(|error| S3Error::Client(error.to_string()))
}

/// Creates the HTTP client. Addresses with `http` are refused unless they are allowed.
pub(crate) fn client(allows_http: bool) -> Result<reqwest::Client, Box<dyn std::error::Error + Send + Sync>> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(config)
        .https_only(!allows_http)
        .redirect(Policy::none())
        .referer(false)
        .connect_timeout(CONNECT)
        .read_timeout(READ)
        .user_agent(concat!("glovebox/", env!("CARGO_PKG_VERSION")));
    Ok(client.build()?)
}

/// Creates the client of an object store.
#[derive(Debug)]
struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allows_http = options.get_config_value(&ClientConfigKey::AllowHttp).is_some_and(|value| value == "true");
        let client = client(allows_http).map_err(|source| object_store::Error::Generic { store: "S3", source })?;
        Ok(HttpClient::new(Service(client)))
    }
}

/// Sends the requests of an object store.
#[derive(Debug)]
struct Service(reqwest::Client);

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let url = parts.uri.to_string().parse().map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let mut request = reqwest::Request::new(parts.method, url);
        *request.headers_mut() = parts.headers;
        *request.body_mut() = Some(reqwest::Body::wrap(body));
        let answer: http::Response<reqwest::Body> = self.0.execute(request).await.map_err(http_error)?.into();
        let (parts, body) = answer.into_parts();
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body.map_err(http_error))))
    }
}

/// Returns the kind of an error, which decides whether a request is sent again.
fn http_error(error: reqwest::Error) -> HttpError {
    let kind = match () {
        () if error.is_timeout() => HttpErrorKind::Timeout,
        () if error.is_connect() => HttpErrorKind::Connect,
        () if error.is_decode() => HttpErrorKind::Decode,
        () if error.is_request() || error.is_body() => HttpErrorKind::Interrupted,
        () => HttpErrorKind::Unknown,
    };
    // The address may have a signature in it.
    HttpError::new(kind, error.without_url())
}
