//! The files of the page. They are part of the program: the page loads nothing from another host.

use crate::answer;
use crate::desk::Problem;
use axum::body::Body;
use axum::http::Response;

const HTML: &str = "text/html; charset=utf-8";

/// Files of the page by name, with their types.
const FILES: &[(&str, &str, &[u8])] = &[("index.html", HTML, include_bytes!("page/index.html"))];

/// Returns a file of the page.
pub(crate) fn file(name: &str) -> Result<Response<Body>, Problem> {
    let found = FILES.iter().find(|(known, ..)| *known == name);
    let (_, media, bytes) = found.ok_or_else(|| Problem::new(404, "unknown-file", "the page has no such file"))?;
    Ok(answer::page(media, bytes))
}
