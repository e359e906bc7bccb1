//! The error responses of each provider for each kind of error: status and body, or an event of the stream.

use super::script::Turn;
use glovebox_models::error::{ERRORS, ErrorKind};
use glovebox_models::family::Family;
use serde_json::{Value, json};

/// Returns the kind of a turn's error.
pub(super) fn kind(turn: &Turn) -> ErrorKind {
    let name = turn.error.as_deref().unwrap_or_default();
    ERRORS.iter().find(|row| row.name == name).map_or(ErrorKind::Server, |row| row.kind)
}

/// Returns the status and the body of the response.
pub(super) fn body(family: Family, turn: &Turn) -> (u16, Value) {
    let said = ErrorBody::for_turn(family, turn);
    (said.status, said.error)
}

/// Returns the event that reports the error in a stream.
pub(super) fn event(family: Family, turn: &Turn) -> Value {
    let ErrorBody { error, code, message, .. } = ErrorBody::for_turn(family, turn);
    match family {
        Family::Openai => json!({ "type": "response.failed",
            "response": { "status": "failed", "error": { "code": code, "message": message } } }),
        _ => error,
    }
}

struct ErrorBody {
    status: u16,
    code: &'static str,
    message: String,
    error: Value,
}

impl ErrorBody {
    fn for_turn(family: Family, turn: &Turn) -> Self {
        let kind = kind(turn);
        let (status, code) = match family {
            Family::Anthropic => anthropic(kind),
            Family::Gemini => gemini(kind),
            Family::Openai | Family::OpenaiCompatible | Family::Ollama => openai(kind),
        };
        let status = turn.status.unwrap_or(status);
        let message = turn.message.as_ref().map_or_else(|| words(family, kind), String::to_owned);
        let error = match family {
            Family::Anthropic => json!({ "type": "error", "error": { "type": code, "message": message } }),
            Family::Gemini => {
                let info = "type.googleapis.com/google.rpc.RetryInfo";
                let delay = |seconds| json!({ "@type": info, "retryDelay": format!("{seconds}s") });
                let details: Vec<Value> = turn.retry_after.into_iter().map(delay).collect();
                json!({ "error": { "code": status, "status": code, "message": message, "details": details } })
            }
            Family::Ollama => json!({ "error": message }),
            Family::Openai | Family::OpenaiCompatible => {
                json!({ "error": { "message": message, "type": "invalid_request_error", "code": code } })
            }
        };
        Self { status, code, message, error }
    }
}

/// Returns the error message. Callers recognize some kinds by the message, because the code of these kinds is
/// ambiguous.
fn words(family: Family, kind: ErrorKind) -> String {
    match (family, kind) {
        (Family::Anthropic, ErrorKind::ContextLength) => {
            "prompt is too long: 200001 tokens > 200000 maximum".to_owned()
        }
        (Family::Anthropic, ErrorKind::QuotaExceeded) => "Your credit balance is too low".to_owned(),
        (Family::Gemini, ErrorKind::Authentication) => "API key not valid. Please pass a valid API key.".to_owned(),
        (Family::Gemini, ErrorKind::ContextLength) => {
            "The input token count (2) exceeds the maximum number of tokens allowed (1).".to_owned()
        }
        (Family::Ollama, ErrorKind::ContextLength) => "the input length exceeds the context length".to_owned(),
        (Family::Gemini, ErrorKind::QuotaExceeded) => "Quota: GenerateRequestsPerDayPerProjectPerModel".to_owned(),
        (_, kind) => format!("a written error: {kind}"),
    }
}

fn openai(kind: ErrorKind) -> (u16, &'static str) {
    match kind {
        ErrorKind::Authentication => (401, "invalid_api_key"),
        ErrorKind::AccessDenied => (403, "unsupported_country_region_territory"),
        ErrorKind::NotFound => (404, "model_not_found"),
        ErrorKind::RateLimit => (429, "rate_limit_exceeded"),
        ErrorKind::ContentFilter => (400, "content_policy_violation"),
        ErrorKind::ContextLength => (400, "context_length_exceeded"),
        ErrorKind::QuotaExceeded => (429, "insufficient_quota"),
        ErrorKind::RequestTimeout => (408, "timeout"),
        ErrorKind::InvalidRequest => (400, "invalid_value"),
        ErrorKind::Configuration => (302, "moved"),
        _ => (500, "server_error"),
    }
}

fn anthropic(kind: ErrorKind) -> (u16, &'static str) {
    match kind {
        ErrorKind::Authentication => (401, "authentication_error"),
        ErrorKind::AccessDenied => (403, "permission_error"),
        ErrorKind::NotFound => (404, "not_found_error"),
        ErrorKind::RateLimit => (429, "rate_limit_error"),
        ErrorKind::ContextLength | ErrorKind::QuotaExceeded | ErrorKind::InvalidRequest => {
            (400, "invalid_request_error")
        }
        ErrorKind::ContentFilter => (400, "content_filter"),
        ErrorKind::RequestTimeout => (408, "timeout_error"),
        ErrorKind::Configuration => (302, "moved"),
        _ => (529, "overloaded_error"),
    }
}

fn gemini(kind: ErrorKind) -> (u16, &'static str) {
    match kind {
        ErrorKind::Authentication | ErrorKind::ContextLength | ErrorKind::InvalidRequest => (400, "INVALID_ARGUMENT"),
        ErrorKind::AccessDenied => (403, "PERMISSION_DENIED"),
        ErrorKind::NotFound => (404, "NOT_FOUND"),
        ErrorKind::RateLimit | ErrorKind::QuotaExceeded => (429, "RESOURCE_EXHAUSTED"),
        ErrorKind::ContentFilter => (400, "content_filter"),
        ErrorKind::RequestTimeout => (408, "DEADLINE_EXCEEDED"),
        ErrorKind::Configuration => (302, "moved"),
        _ => (503, "UNAVAILABLE"),
    }
}
