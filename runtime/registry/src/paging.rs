//! Lists that a registry gives in pages: the tags of a repository and its catalog.

use crate::body;
use crate::error::{Fault, RegistryError};
use crate::exchange::{Request, expect};
use crate::origin;
use crate::session::Session;
use reqwest::header::{HeaderMap, LINK};
use reqwest::{StatusCode, Url};
use serde_json::Value;

/// Maximum size of one page, in bytes.
const PAGE_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of entries of a list.
pub(crate) const ENTRIES_MAX: usize = 10_000;
/// Maximum number of pages of a list.
const PAGES_MAX: usize = 100;
/// Number of entries that a page is asked for.
const PAGE_ENTRIES: &str = "1000";

/// A list of a registry.
pub(crate) struct List {
    /// Its path.
    pub(crate) path: String,
    /// The field of a page with the entries.
    pub(crate) field: &'static str,
    /// The entries, in messages.
    pub(crate) what: &'static str,
}

impl List {
    /// Reads all pages.
    pub(crate) async fn read(&self, session: &mut Session<'_>, subject: &str) -> Result<Vec<String>, RegistryError> {
        let mut url = session.url(&self.path);
        url.query_pairs_mut().append_pair("n", PAGE_ENTRIES);
        let (host, what) = (session.host(), self.what);
        let too_many = || RegistryError::answer(&host, Fault::TooMany { what, max: ENTRIES_MAX });
        let mut entries = Vec::new();
        for _ in 0..PAGES_MAX {
            let request = Request { accept: Some("application/json"), ..Request::get(url.clone()) };
            let response = session.send(&request, subject).await?;
            expect(&host, what, &response, &url, StatusCode::OK)?;
            let next = next(response.headers(), &url);
            let body = body::read(response, &host, what, PAGE_BYTES_MAX).await?;
            entries.extend(self.entries(&body).ok_or_else(|| RegistryError::malformed(&host, what, "no such list"))?);
            if entries.len() > ENTRIES_MAX {
                return Err(too_many());
            }
            match next {
                None => return Ok(entries),
                Some(next) if origin::is_same(&next, &url) => url = next,
                Some(next) => {
                    let reason = "the next page must be at the registry";
                    return Err(RegistryError::answer(
                        host,
                        Fault::Redirect { what, to: origin::shown(&next), reason },
                    ));
                }
            }
        }
        Err(too_many())
    }

    /// Returns the entries of a page. A list without entries can be null.
    fn entries(&self, body: &[u8]) -> Option<Vec<String>> {
        let page: Value = serde_json::from_slice(body).ok()?;
        match page.get(self.field)? {
            Value::Null => Some(Vec::new()),
            Value::Array(entries) => entries.iter().map(|entry| entry.as_str().map(str::to_owned)).collect(),
            _ => None,
        }
    }
}

/// Returns the address of the next page, from the header `Link: <…>; rel="next"`.
pub(crate) fn next(headers: &HeaderMap, page: &Url) -> Option<Url> {
    let text = headers.get(LINK)?.to_str().ok()?;
    let (address, parameters) = text.strip_prefix('<')?.split_once('>')?;
    let is_next = parameters.split(';').any(|part| matches!(part.trim(), "rel=\"next\"" | "rel=next"));
    is_next.then(|| origin::parse(address, page))?
}
