//! Answers, with the headers that every answer has.

use crate::desk::{Document, Media, Problem};
use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};

/// What the page may load and do: only files of this server, no inline script or style, and no markup from text.
const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
);
/// For everything that is not the page: if a browser shows it, it can load and do nothing.
const DATA_POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox");
const OPENER: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Returns an answer with a document.
pub(crate) fn document(document: Document) -> Response<Body> {
    let media = match document.media {
        Media::Json => "application/json",
        Media::JsonLines => "application/x-ndjson",
        Media::Svg => "image/svg+xml",
        Media::Dot => "text/vnd.graphviz; charset=utf-8",
        Media::Bytes => "text/plain",
    };
    let mut response = data(StatusCode::OK, media, Body::from(document.bytes));
    if document.media == Media::Bytes {
        response.headers_mut().insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
    response
}

/// Returns an answer with a problem.
pub(crate) fn problem(problem: &Problem) -> Response<Body> {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let text = serde_json::to_vec_pretty(problem).unwrap_or_default();
    data(status, "application/json", Body::from(text))
}

/// Returns an answer with data that a browser must not interpret.
pub(crate) fn data(status: StatusCode, media: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(CONTENT_SECURITY_POLICY, DATA_POLICY);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    secure(response)
}

/// Returns an answer with a file of the page.
pub(crate) fn page(media: &'static str, bytes: &'static [u8]) -> Response<Body> {
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(CONTENT_SECURITY_POLICY, PAGE_POLICY);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    secure(response)
}

fn secure(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(OPENER, HeaderValue::from_static("same-origin"));
    headers.insert(RESOURCE, HeaderValue::from_static("same-origin"));
    response
}
