//! Error responses for a program, as JSON that the clients of every family can read.

use crate::error::{ErrorKind, ModelError};
use serde_json::{Value, json};

/// Returns the HTTP status and the body for an error.
pub fn refusal(error: &ModelError) -> (u16, Value) {
    let (status, kind, gemini) = match error.kind {
        ErrorKind::Authentication => (401, "authentication_error", "UNAUTHENTICATED"),
        ErrorKind::NotFound => (404, "not_found_error", "NOT_FOUND"),
        ErrorKind::RateLimit => (429, "rate_limit_error", "RESOURCE_EXHAUSTED"),
        ErrorKind::Server | ErrorKind::Network | ErrorKind::Stream | ErrorKind::RequestTimeout => {
            (502, "api_error", "UNAVAILABLE")
        }
        ErrorKind::ContextLength => (413, "request_too_large", "INVALID_ARGUMENT"),
        // Clients do not retry after this status.
        _ => (400, "invalid_request_error", "INVALID_ARGUMENT"),
    };
    let body = json!({ "type": "error", "error": { "type": kind, "code": error.kind.as_str(), "status": gemini,
        "message": error.to_string() } });
    (status, body)
}
