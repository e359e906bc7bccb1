//! How a registry learns who asks: its challenge, the user's credential, and the token that its token server returns.
//!
//! The scope of a token is computed here, and never taken from the challenge: a token can do no more than the command needs.

use crate::body;
use crate::credential::{Credential, Secret};
use crate::error::{Fault, RegistryError};
use crate::exchange::{Content, Exchange, Request, location, unexpected};
use crate::origin;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_auth::ChallengeRef;
use reqwest::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;

/// Maximum size of the answer of a token server, in bytes.
const TOKEN_BYTES_MAX: u64 = 64 << 10;
/// What a token server is asked for, in messages.
const TOKEN: &str = "a token";
/// The name of this program at a token server.
const CLIENT_ID: &str = "glovebox";

/// How a registry wants a client to prove who it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// With the user's password.
    Basic,
    /// With a token of this server, for this service.
    Bearer { server: Url, service: Option<String> },
}

impl Challenge {
    /// Reads the challenge of an answer 401.
    ///
    /// # Errors
    ///
    /// The answer has no challenge that is supported, or names a token server that may not be used.
    pub(crate) fn read(headers: &HeaderMap, registry: &Url) -> Result<Self, RegistryError> {
        let host = origin::shown(registry);
        let unsupported = || RegistryError::answer(&host, Fault::Challenge);
        let texts = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let challenges: Vec<ChallengeRef<'_>> =
            texts.filter_map(|text| http_auth::parse_challenges(text).ok()).flatten().collect();
        let with_scheme = |scheme: &str| challenges.iter().find(|one| one.scheme.eq_ignore_ascii_case(scheme));
        let Some(bearer) = with_scheme("Bearer") else {
            return with_scheme("Basic").map(|_| Self::Basic).ok_or_else(unsupported);
        };
        let parameter = |name: &str| {
            let found = bearer.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.to_unescaped())
        };
        let server = parameter("realm").and_then(|realm| Url::parse(&realm).ok()).ok_or_else(unsupported)?;
        let server = origin::parse(server.as_str(), registry).ok_or_else(unsupported)?;
        if let Some(reason) = origin::refuse_token_server(registry, &server) {
            let to = origin::shown(&server);
            return Err(RegistryError::answer(host, Fault::TokenServer { to, reason }));
        }
        Ok(Self::Bearer { server, service: parameter("service") })
    }
}

/// Returns the header that proves who asks. `None` if there is nothing to prove it with.
///
/// # Errors
///
/// The token server does not answer as it must.
pub(crate) async fn authorize(
    exchange: &Exchange,
    challenge: &Challenge,
    credential: Option<&Credential>,
    scope: &str,
) -> Result<Option<HeaderValue>, RegistryError> {
    match (challenge, credential) {
        (_, Some(Credential::RegistryToken(token))) => Ok(header("Bearer", token)),
        (Challenge::Basic, Some(Credential::Password(user, password))) => Ok(basic(user, password)),
        (Challenge::Basic, _) => Ok(None),
        (Challenge::Bearer { server, service }, credential) => {
            let request = TokenRequest { server, service: service.as_deref(), scope };
            request.token(exchange, credential).await
        }
    }
}

fn basic(user: &str, Secret(password): &Secret) -> Option<HeaderValue> {
    header("Basic", &Secret(STANDARD.encode(format!("{user}:{password}"))))
}

fn header(scheme: &str, Secret(token): &Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("{scheme} {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A request for a token.
struct TokenRequest<'a> {
    server: &'a Url,
    service: Option<&'a str>,
    scope: &'a str,
}

#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
}

impl TokenRequest<'_> {
    async fn token(
        &self,
        exchange: &Exchange,
        credential: Option<&Credential>,
    ) -> Result<Option<HeaderValue>, RegistryError> {
        let host = origin::shown(self.server);
        let (request, authorization) = match credential {
            Some(Credential::IdentityToken(Secret(token))) => (self.with_identity(token), None),
            Some(Credential::Password(user, password)) => (self.plain(), basic(user, password)),
            _ => (self.plain(), None),
        };
        let response = exchange.send(&request, authorization.as_ref()).await?;
        match response.status() {
            StatusCode::OK => {}
            // The registry then answers 401 again, and the caller knows what was asked for.
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST => {
                return Ok(None);
            }
            status if status.is_redirection() => {
                let to = location(&response, self.server).map_or("?".to_owned(), |to| origin::shown(&to));
                let reason = "a token server must answer itself";
                return Err(RegistryError::answer(host, Fault::Redirect { what: TOKEN, to, reason }));
            }
            status => return Err(unexpected(&host, TOKEN, status)),
        }
        let body = body::read(response, &host, TOKEN, TOKEN_BYTES_MAX).await?;
        let malformed = |reason: &str| RegistryError::malformed(&host, TOKEN, reason);
        let answer: TokenAnswer = serde_json::from_slice(&body).map_err(|_| malformed("it is no JSON of a token"))?;
        let token = answer.token.or(answer.access_token).ok_or_else(|| malformed("it has no `token`"))?;
        let header = header("Bearer", &Secret(token)).ok_or_else(|| malformed("the token is no text of a header"))?;
        Ok(Some(header))
    }

    /// Returns the request of the token specification of docker.
    fn plain(&self) -> Request {
        let mut url = self.server.clone();
        self.service.into_iter().for_each(|service| _ = url.query_pairs_mut().append_pair("service", service));
        url.query_pairs_mut().append_pair("scope", self.scope);
        Request::get(url)
    }

    /// Returns the request with which an identity token is exchanged (OAuth 2).
    fn with_identity(&self, token: &str) -> Request {
        let mut form = Url::parse("http://form/").expect("a constant address");
        form.query_pairs_mut()
            .append_pair("grant_type", "refresh_token")
            .append_pair("client_id", CLIENT_ID)
            .append_pair("service", self.service.unwrap_or_default())
            .append_pair("scope", self.scope)
            .append_pair("refresh_token", token);
        let bytes = form.query().unwrap_or_default().as_bytes().to_vec();
        let content = Content { media_type: "application/x-www-form-urlencoded", bytes };
        Request { method: Method::POST, content: Some(content), ..Request::get(self.server.clone()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Result<Challenge, RegistryError> {
        let mut headers = HeaderMap::new();
        texts.iter().for_each(|text| _ = headers.append(WWW_AUTHENTICATE, HeaderValue::from_str(text).unwrap()));
        Challenge::read(&headers, &Url::parse("https://a.example/v2/").unwrap())
    }

    #[test]
    fn a_token_is_preferred_to_a_password() {
        let bearer = r#"Bearer realm="https://auth.example/token",service="a.example",scope="repository:x:*""#;
        let server = Url::parse("https://auth.example/token").unwrap();
        let expected = Challenge::Bearer { server, service: Some("a.example".to_owned()) };
        assert_eq!(read(&["Basic realm=\"x\"", bearer]).unwrap(), expected);
        assert_eq!(read(&["Basic realm=\"x\""]).unwrap(), Challenge::Basic);
    }

    #[test]
    fn doubtful_challenges_are_refused() {
        for texts in [
            &[][..],
            &["Digest realm=\"x\""],
            &["Bearer service=\"x\""],
            &["Bearer realm=\"/token\""],
            &["Bearer realm=\"http://auth.example/token\""],
            &["Bearer realm=\"https://ada:pw@auth.example/token\""],
            &["Bearer realm=\"https://auth.example"],
        ] {
            assert!(read(texts).is_err(), "{texts:?}");
        }
    }

    #[test]
    fn the_scope_of_the_challenge_is_not_used() {
        let server = Url::parse("https://auth.example/token?x=1").unwrap();
        let request = TokenRequest { server: &server, service: Some("a b"), scope: "repository:acme/a:pull" };
        let url = request.plain().url.to_string();
        assert_eq!(url, "https://auth.example/token?x=1&service=a+b&scope=repository%3Aacme%2Fa%3Apull");
        let form = request.with_identity("t&x").content.unwrap();
        let form = String::from_utf8(form.bytes).unwrap();
        assert!(form.ends_with("&refresh_token=t%26x") && form.starts_with("grant_type=refresh_token&"), "{form}");
    }
}
