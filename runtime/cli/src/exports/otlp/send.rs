//! Sends telemetry to a collector: OTLP over HTTP, as JSON.

use super::Telemetry;
use crate::exit::{Exit, Stop};
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;

/// Maximum time to connect, TLS included.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Maximum time of one request.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// The address of a collector.
#[derive(Debug, Clone)]
pub struct Collector {
    base: Url,
    headers: HeaderMap,
}

impl Collector {
    /// Parses an address. `None` if the text is not an HTTP address, so that it names a file.
    pub fn parse(text: &str) -> Option<Result<Self, Stop>> {
        if !text.starts_with("http://") && !text.starts_with("https://") {
            return None;
        }
        let bad = |why: &str| Err(Stop::new(Exit::Usage, format!("`--otlp {text}`: {why}")));
        let Ok(base) = Url::parse(text) else { return Some(bad("this is not an address")) };
        if !base.username().is_empty() || base.password().is_some() {
            return Some(bad("an address with a password would be shown to every user of this machine"));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Some(bad("the address of a collector has no query and no fragment"));
        }
        let is_here = match base.host_str() {
            Some("localhost") => true,
            Some(host) => host.trim_matches(['[', ']']).parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback()),
            None => false,
        };
        if base.scheme() == "http" && !is_here {
            let help = "use `https://`, or a collector on this machine";
            return Some(bad("`http://` is allowed only for this machine").map_err(|stop: Stop| stop.with_help(help)));
        }
        Some(Ok(Self { base, headers: HeaderMap::new() }))
    }

    /// Adds headers to each request.
    #[must_use]
    pub fn with_headers(self, headers: HeaderMap) -> Self {
        Self { headers, ..self }
    }

    /// Sends traces and metrics.
    ///
    /// # Errors
    ///
    /// The collector does not answer, or refuses them: exit 9.
    pub fn send(&self, telemetry: &Telemetry) -> Result<(), NotSent> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| NotSent::now(Stop::io("send telemetry", &error)))?;
        let client = client().map_err(NotSent::now)?;
        let documents = telemetry.documents().map_err(NotSent::now)?;
        runtime.block_on(async {
            for (path, document) in ["v1/traces", "v1/metrics"].iter().zip(documents) {
                self.post(&client, path, document).await?;
            }
            Ok(())
        })
    }

    async fn post(&self, client: &Client, path: &str, document: String) -> Result<(), NotSent> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{path}", self.base.path().trim_end_matches('/')));
        let stopped = |why: String| {
            Stop::new(Exit::Transient, format!("the collector at `{url}` got no telemetry: {why}"))
                .with_help("check that it listens there and takes OTLP over HTTP, then export again")
        };
        let failed = |why: String| NotSent::now(stopped(why));
        let request = client.post(url.clone()).headers(self.headers.clone());
        let sent = request.header("content-type", "application/json").body(document).send();
        let answer = match tokio::time::timeout(ANSWER_WITHIN, sent).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) if error.is_connect() => return Err(failed("no connection".to_owned())),
            Ok(Err(error)) => return Err(failed(error.without_url().to_string())),
            Err(_) => return Err(failed(format!("no answer in {} s", ANSWER_WITHIN.as_secs()))),
        };
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => {
                let stop = stopped(format!("it answered {status}"));
                Err(NotSent { stop, is_final: REFUSALS.contains(&status.as_u16()) })
            }
        }
    }
}

/// Answers of a collector that does not take these documents, however often they are sent.
const REFUSALS: [u16; 3] = [400, 413, 422];

/// Why telemetry was not sent.
pub struct NotSent {
    /// The error for the user.
    pub stop: Stop,
    /// True if the collector does not take these documents, so that it is useless to send them again.
    pub is_final: bool,
}

impl NotSent {
    fn now(stop: Stop) -> Self {
        Self { stop, is_final: false }
    }
}

fn client() -> Result<Client, Stop> {
    let failed = |error: &dyn std::error::Error| Stop::new(Exit::Internal, format!("set up TLS: {error}"));
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Client::builder()
        .tls_backend_preconfigured(config)
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .connect_timeout(CONNECT_WITHIN)
        .user_agent(concat!("glovebox/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_reached_without_tls() {
        for address in
            ["http://localhost:4318", "http://127.0.0.1:4318/", "http://[::1]:4318", "https://example.org/otlp"]
        {
            assert!(Collector::parse(address).unwrap().is_ok(), "{address}");
        }
        for address in [
            "http://example.org:4318",
            "http://127.0.0.1.example.org",
            "http://localhost.example.org",
            "https://user:secret@example.org",
            "https://example.org/?x=y",
            "http://",
        ] {
            assert_eq!(Collector::parse(address).unwrap().unwrap_err().exit, Exit::Usage, "{address}");
        }
        assert!(Collector::parse("trace.json").is_none() && Collector::parse("file://x").is_none());
    }
}
