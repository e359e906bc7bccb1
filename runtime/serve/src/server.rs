//! From a request to an answer.

use crate::answer;
use crate::desk::{Actor, Desk, Document, Media, Problem, Way};
use crate::guard::OwnNames;
use crate::openapi;
use crate::output;
use crate::page;
use crate::parse::{Parts, Wanted, wanted};
use crate::place::{Place, unknown_token};
use crate::right::{Right, Rights, Sight};
use crate::route::{Endpoint, ROUTES, Route, Verb};
use crate::stream::{self, Form};
use crate::token::{Bearer, Tokens};
use crate::watcher::Watchers;
use axum::Router;
use axum::body::Body;
use axum::extract::{RawPathParams, Request, State};
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::{MethodFilter, on};
use http_body_util::{BodyExt, Limited};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Maximum length of a request's body, bytes.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// How long the body of a request may take to arrive.
pub const BODY_WITHIN: Duration = Duration::from_secs(30);
/// Maximum number of clients that follow runs at the same time.
pub const FOLLOWERS_MAX: usize = 64;
/// Maximum number of requests that read or write files at the same time. The others wait.
const READERS_MAX: usize = 8;
/// Maximum number of parameters in a query.
const PARAMETERS_MAX: usize = 16;

/// The state of the server.
pub struct Server {
    names: OwnNames,
    tokens: Arc<Tokens>,
    desk: Arc<dyn Desk>,
    watchers: Watchers,
    followers: Arc<Semaphore>,
    readers: Arc<Semaphore>,
}

/// The answer to `POST /session`.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "serve-session.json")]
pub struct Session<'a> {
    /// Version of this document.
    schema_version: u32,
    /// The token of the page. It is not shown again.
    token: &'a str,
    /// The name that records get.
    name: &'a str,
    /// What the page may do.
    rights: &'a Rights,
}

impl Server {
    /// Creates a server that answers to these names.
    pub fn new(names: OwnNames, tokens: Tokens, desk: Arc<dyn Desk>) -> Arc<Self> {
        Arc::new(Self {
            names,
            tokens: Arc::new(tokens),
            watchers: Watchers::new(Arc::clone(&desk)),
            desk,
            followers: Arc::new(Semaphore::new(FOLLOWERS_MAX)),
            readers: Arc::new(Semaphore::new(READERS_MAX)),
        })
    }

    /// Returns the accepted tokens.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Returns the service that answers requests.
    pub fn router(self: &Arc<Self>) -> Router {
        let mut router = Router::new();
        for route in ROUTES {
            let method = match route.verb {
                Verb::Get => MethodFilter::GET,
                Verb::Post => MethodFilter::POST,
            };
            let handle = move |State(server): State<Arc<Server>>, path: RawPathParams, request: Request| async move {
                server.handle(route, &path, request).await.unwrap_or_else(|problem| answer::problem(&problem))
            };
            router = router.route(route.path, on(method, handle));
        }
        router
            .fallback(|| async {
                answer::problem(&Problem::new(404, "unknown-route", "this server has no such route"))
            })
            .method_not_allowed_fallback(|| async {
                answer::problem(&Problem::new(405, "method", "this route has another method"))
            })
            .layer(from_fn_with_state(Arc::clone(self), guarded))
            .with_state(Arc::clone(self))
    }

    async fn handle(
        self: Arc<Self>,
        route: &'static Route,
        path: &RawPathParams,
        request: Request,
    ) -> Result<Response<Body>, Problem> {
        // Rights are checked before the body is read: a stranger cannot make the server keep a body.
        let bearer = self.bearer(request.headers())?;
        let token = token(request.headers()).unwrap_or_default().to_owned();
        let bearer = authorize(route, bearer)?;
        let headers = request.headers().clone();
        let parts = parts(path, request).await?;
        let wanted = wanted(route, &parts)?;
        match wanted {
            Wanted::Page(name) => page::file(&name),
            Wanted::Health => Ok(answer::document(self.desk.health())),
            Wanted::Session(code) => self.session(&code),
            Wanted::OpenApi => {
                Ok(answer::document(Document { media: Media::Json, bytes: openapi::document().into_bytes() }))
            }
            Wanted::Follow(followed) => {
                let sight = sight(&bearer)?;
                let after = stream::position(&headers, followed.after)?;
                let form = Form::of(headers.get(ACCEPT), followed.is_named_by_specification);
                let place = self.place(token, bearer)?;
                let watched = self.watchers.watch(&followed.run, sight).await?;
                stream::answer(watched, followed, after, form, place).await
            }
            Wanted::Output(run, node) => {
                let place = self.place(token, bearer)?;
                let follow = self.blocking(move |desk| desk.follow_output(&run, &node)).await?;
                Ok(output::answer(follow, place))
            }
            Wanted::Read(what) => {
                let sight = sight(&bearer)?;
                self.blocking(move |desk| desk.read(&what, sight)).await.map(answer::document)
            }
            Wanted::Act(act) => {
                let bearer = bearer.ok_or_else(no_token)?;
                let is_unseen = matches!(&act, crate::desk::Act::Start(submitted) if submitted.plan_digest.is_none());
                if is_unseen {
                    require(&bearer, Right::StartUnseen)?;
                }
                let actor = Actor { name: bearer.name, way: Way::Http };
                self.blocking(move |desk| desk.act(&act, &actor)).await.map(answer::document)
            }
        }
    }

    /// Returns the place of one client that follows a run.
    fn place(&self, token: String, bearer: Option<Bearer>) -> Result<Place, Problem> {
        let bearer = bearer.ok_or_else(no_token)?;
        let permit = Arc::clone(&self.followers).try_acquire_owned().map_err(|_| {
            Problem::new(503, "too-many-followers", format!("{FOLLOWERS_MAX} clients follow runs already"))
        })?;
        Ok(Place::new(Arc::clone(&self.tokens), token, bearer, permit))
    }

    /// Calls a function that may block, on a thread for such functions. At most a few run at the same time.
    async fn blocking<T: Send + 'static>(
        &self,
        function: impl FnOnce(&dyn Desk) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let desk = Arc::clone(&self.desk);
        let permit = Arc::clone(&self.readers).acquire_owned().await;
        let called = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            function(&*desk)
        });
        called.await.unwrap_or_else(|_| Err(Problem::new(500, "internal", "this request met a bug of the server")))
    }

    /// Returns who sent a request; `None` without a token.
    fn bearer(&self, headers: &HeaderMap) -> Result<Option<Bearer>, Problem> {
        if !headers.contains_key(AUTHORIZATION) {
            return Ok(None);
        }
        token(headers).and_then(|token| self.tokens.bearer(token)).map(Some).ok_or_else(unknown_token)
    }

    fn session(&self, code: &str) -> Result<Response<Body>, Problem> {
        let Some((token, bearer)) = self.tokens.begin(code, Instant::now()) else {
            return Err(Problem::new(401, "unknown-code", "this code is unknown, used or older than a minute")
                .with_help("`glovebox serve` prints a new link when it starts"));
        };
        let session = Session { schema_version: 1, token: &token, name: &bearer.name, rights: &bearer.rights };
        let bytes = serde_json::to_vec_pretty(&session).unwrap_or_default();
        Ok(answer::document(Document { media: Media::Json, bytes }))
    }
}

/// Returns the token of a request. `None` without one, and if there are several.
fn token(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let token = values.next()?.to_str().ok()?.strip_prefix("Bearer ")?;
    values.next().is_none().then_some(token)
}

/// Refuses requests to other hosts and from pages of other sites.
async fn guarded(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response<Body> {
    match server.names.check(request.headers(), request.version()) {
        Ok(()) => next.run(request).await,
        Err(problem) => answer::problem(&problem),
    }
}

fn authorize(route: &Route, bearer: Option<Bearer>) -> Result<Option<Bearer>, Problem> {
    let Some(right) = route.right else { return Ok(bearer) };
    let bearer = bearer.ok_or_else(no_token)?;
    // The right depends on the body: with a digest of the plan, `start` is enough.
    let is_enough = bearer.rights.has(right) || route.endpoint == Endpoint::Start && bearer.rights.has(Right::Start);
    if is_enough { Ok(Some(bearer)) } else { Err(no_right(right)) }
}

fn require(bearer: &Bearer, right: Right) -> Result<(), Problem> {
    if bearer.rights.has(right) { Ok(()) } else { Err(no_right(right)) }
}

fn sight(bearer: &Option<Bearer>) -> Result<Sight, Problem> {
    bearer.as_ref().and_then(|bearer| bearer.rights.sight()).ok_or_else(|| no_right(Right::View))
}

fn no_token() -> Problem {
    Problem::new(401, "no-token", "this route needs a token: `Authorization: Bearer TOKEN`")
}

fn no_right(right: Right) -> Problem {
    Problem::new(403, "no-right", format!("this token does not have the right `{right}`: to {}", right.about()))
}

async fn parts(path: &RawPathParams, request: Request) -> Result<Parts, Problem> {
    let path = path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let query = query(request.uri().query().unwrap_or_default())?;
    let media = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = media.map(|value| value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
    let body = tokio::time::timeout(BODY_WITHIN, body).await.map_err(|_| {
        Problem::new(408, "slow", format!("the body took longer than {} seconds", BODY_WITHIN.as_secs()))
    })?;
    let body = body.map_err(|error| match error.downcast_ref::<http_body_util::LengthLimitError>() {
        Some(_) => Problem::new(413, "too-long", format!("the body is longer than {BODY_BYTES_MAX} bytes")),
        None => Problem::new(400, "usage", "the body did not arrive"),
    })?;
    Ok(Parts { path, query, media, body: body.to_bytes().to_vec() })
}

/// Parses the query of a request. A parameter that occurs twice is refused.
fn query(text: &str) -> Result<BTreeMap<String, String>, Problem> {
    let mut query = BTreeMap::new();
    let bad = |message: &str| Problem::new(400, "usage", message);
    for part in text.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let decoded = |text| decoded(text).ok_or_else(|| bad("the query is not percent-encoded UTF-8"));
        if query.insert(decoded(name)?, decoded(value)?).is_some() || query.len() > PARAMETERS_MAX {
            return Err(bad("a parameter of the query occurs twice, or there are too many"));
        }
    }
    Ok(query)
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Returns the answer to a request that could not be parsed.
pub fn unreadable() -> Response<Body> {
    answer::data(StatusCode::BAD_REQUEST, "application/json", Body::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded_once() {
        let parsed = query("a=b%2Fc&d=x+y&e=%252F&f").unwrap();
        let of = |name: &str| parsed[name].as_str();
        assert_eq!((of("a"), of("d"), of("e"), of("f")), ("b/c", "x y", "%2F", ""));
        for text in ["a=1&a=2", "a=%", "a=%f", "a=%zz", "a=%ff"] {
            assert_eq!(query(text).unwrap_err().status, 400, "{text}");
        }
    }
}
