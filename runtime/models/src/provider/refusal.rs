//! Error answers of a provider, given by a status or in the middle of a stream.
//!
//! The kind of an error is determined from the provider's error code, or else from the status. Some errors have neither; they are
//! recognized by the providers' wording in a table.

use crate::error::{ErrorKind, ModelError};
use crate::quota::QuotaHeaders;
use crate::target::Target;
use jiff::Timestamp;
use serde_json::Value;
use std::time::Duration;

/// Maximum number of bytes of a provider's message that are shown.
const MESSAGE_BYTES_MAX: usize = 600;

/// The error answer of a provider.
#[derive(Debug)]
pub(crate) struct ProviderRefusal {
    /// HTTP status; `None` for an error in the middle of a stream.
    pub(crate) status: Option<u16>,
    /// Wait that the provider asks for before the next request.
    pub(crate) retry_after: Option<Duration>,
    /// What the head of the answer says about the quotas of the account.
    pub(crate) quotas: QuotaHeaders,
    /// The JSON that the provider sent, or its text as a JSON string.
    pub(crate) answer: Value,
}

/// Error codes of the providers, with the kind for each.
const CODES: &[(&str, ErrorKind)] = &[
    ("context_length_exceeded", ErrorKind::ContextLength),
    ("exceed_context_size_error", ErrorKind::ContextLength),
    ("request_too_large", ErrorKind::ContextLength),
    ("insufficient_quota", ErrorKind::QuotaExceeded),
    ("billing_hard_limit_reached", ErrorKind::QuotaExceeded),
    ("billing_error", ErrorKind::QuotaExceeded),
    ("invalid_api_key", ErrorKind::Authentication),
    ("authentication_error", ErrorKind::Authentication),
    ("UNAUTHENTICATED", ErrorKind::Authentication),
    ("permission_error", ErrorKind::AccessDenied),
    ("PERMISSION_DENIED", ErrorKind::AccessDenied),
    ("model_not_found", ErrorKind::NotFound),
    ("not_found_error", ErrorKind::NotFound),
    ("rate_limit_error", ErrorKind::RateLimit),
    ("rate_limit_exceeded", ErrorKind::RateLimit),
    ("overloaded_error", ErrorKind::Server),
    ("api_error", ErrorKind::Server),
    ("server_error", ErrorKind::Server),
    ("UNAVAILABLE", ErrorKind::Server),
    ("INTERNAL", ErrorKind::Server),
    ("timeout_error", ErrorKind::RequestTimeout),
    ("content_filter", ErrorKind::ContentFilter),
    ("content_policy_violation", ErrorKind::ContentFilter),
    ("invalid_prompt", ErrorKind::ContentFilter),
];

/// Wording of errors without a code, in lower case.
const WORDS: &[(&str, ErrorKind)] = &[
    ("prompt is too long", ErrorKind::ContextLength),
    ("maximum context length", ErrorKind::ContextLength),
    ("exceeds the maximum number of tokens", ErrorKind::ContextLength),
    ("exceeds the available context size", ErrorKind::ContextLength),
    ("input length exceeds the context length", ErrorKind::ContextLength),
    ("credit balance is too low", ErrorKind::QuotaExceeded),
    ("api key not valid", ErrorKind::Authentication),
    ("perdayper", ErrorKind::QuotaExceeded),
];

impl ProviderRefusal {
    /// Returns the error for an error event in the middle of an answer.
    pub(crate) fn in_stream(answer: &Value) -> ModelError {
        let refused = Self::without_head(answer.to_owned());
        let kind = refused.kind();
        ModelError { resume_at: refused.resume_at(kind), ..ModelError::new(kind, refused.message()) }
    }

    /// Returns the error of a call to this target.
    pub(crate) fn to_error(&self, target: &Target) -> ModelError {
        let (kind, status) = (self.kind(), self.status.unwrap_or_default());
        let message = match kind {
            // Providers quote parts of the key in this message.
            ErrorKind::Authentication => format!("the provider does not accept the key ({status})"),
            ErrorKind::Configuration => format!("the provider redirects ({status}), and redirects are not followed"),
            _ => format!("the provider answered {status}: {}", self.message()),
        };
        let message = format!("model `{}` at {}: {message}", target.model, target.endpoint);
        let resume_at = self.resume_at(kind);
        ModelError { retry_after: self.retry_after, resume_at, ..ModelError::new(kind, message) }
    }

    fn without_head(answer: Value) -> Self {
        Self { status: None, retry_after: None, quotas: QuotaHeaders::default(), answer }
    }

    /// Returns the time at which the quota resumes, if the refusal is because of a quota and names a time. A mere limit
    /// on the rate of requests is waited for with `retry_after`.
    fn resume_at(&self, kind: ErrorKind) -> Option<Timestamp> {
        let is_of_quota = kind == ErrorKind::QuotaExceeded;
        is_of_quota.then(|| self.quotas.resume_at(&self.answer, Timestamp::now()))?
    }

    fn kind(&self) -> ErrorKind {
        let error = self.error();
        let codes = [&error["code"], &error["type"], &error["status"]].map(|code| code.as_str().unwrap_or_default());
        let of_status = self.status.map_or(ErrorKind::Server, ErrorKind::of_status);
        let is_general = matches!(of_status, ErrorKind::InvalidRequest | ErrorKind::RateLimit | ErrorKind::Server);
        let by_code = CODES.iter().find(|(code, _)| codes.contains(code)).map(|(_, kind)| *kind);
        let text = self.answer.to_string().to_lowercase();
        let by_words = WORDS.iter().find(|(words, _)| text.contains(words)).map(|(_, kind)| *kind);
        match by_words.or(by_code) {
            Some(kind) if is_general => kind,
            _ => of_status,
        }
    }

    /// Returns the JSON object with code and message.
    fn error(&self) -> &Value {
        let inside = [&self.answer["error"], &self.answer["response"]["error"]];
        inside.into_iter().find(|error| !error.is_null()).unwrap_or(&self.answer)
    }

    fn message(&self) -> String {
        let error = self.error();
        let text = [&error["message"], error].into_iter().find_map(Value::as_str);
        let mut text = text.map_or_else(|| error.to_string(), str::to_owned);
        text.truncate(text.floor_char_boundary(MESSAGE_BYTES_MAX));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn codes_come_before_statuses_and_words_before_both() {
        let check = |status: Option<u16>, answer: Value, kind: ErrorKind| {
            assert_eq!(ProviderRefusal { status, ..ProviderRefusal::without_head(answer) }.kind(), kind);
        };
        let openai = |code: &str| json!({"error": {"message": "no", "type": "x", "code": code}});
        let anthropic =
            |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}});
        check(Some(429), openai("insufficient_quota"), ErrorKind::QuotaExceeded);
        check(Some(429), openai("rate_limit_exceeded"), ErrorKind::RateLimit);
        check(Some(400), openai("context_length_exceeded"), ErrorKind::ContextLength);
        check(Some(401), openai("invalid_api_key"), ErrorKind::Authentication);
        check(Some(400), anthropic("invalid_request_error", "prompt is too long: 9 > 8"), ErrorKind::ContextLength);
        let poor = anthropic("invalid_request_error", "Your credit balance is too low");
        check(Some(400), poor, ErrorKind::QuotaExceeded);
        check(Some(529), anthropic("overloaded_error", "Overloaded"), ErrorKind::Server);
        check(None, anthropic("overloaded_error", "Overloaded"), ErrorKind::Server);
        check(None, anthropic("rate_limit_error", "slow"), ErrorKind::RateLimit);
        let gemini = json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "API key not valid."}});
        check(Some(400), gemini, ErrorKind::Authentication);
        let daily = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota",
            "details": [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}]}});
        check(Some(429), daily, ErrorKind::QuotaExceeded);
        check(Some(404), json!({"error": "model 'x' not found"}), ErrorKind::NotFound);
        check(Some(400), json!({"error": "the input length exceeds the context length"}), ErrorKind::ContextLength);
        check(Some(500), json!("<html>"), ErrorKind::Server);
        check(Some(403), openai("server_error"), ErrorKind::AccessDenied);
    }

    #[test]
    fn only_a_quota_has_a_time_at_which_it_resumes() {
        let check = |code: &str, has_time: bool| {
            let mut refused = ProviderRefusal::without_head(json!({"error": {"code": code}}));
            refused.quotas.note("retry-after", "60", Timestamp::now());
            assert_eq!(refused.resume_at(refused.kind()).is_some(), has_time, "{code}");
        };
        check("insufficient_quota", true);
        check("rate_limit_exceeded", false);
        check("server_error", false);
        let details = json!([{"retryDelay": "60s"}]);
        let event = json!({"error": {"code": 429, "message": "GenerateRequestsPerDayPerProject", "details": details}});
        assert!(ProviderRefusal::in_stream(&event).resume_at.is_some());
    }

    #[test]
    fn a_message_is_found_and_cut() {
        let message = |answer: Value| ProviderRefusal::without_head(answer).message();
        assert_eq!(message(json!({"error": {"message": "no"}})), "no");
        assert_eq!(message(json!({"error": "gone"})), "gone");
        assert_eq!(message(json!({"type": "response.failed", "response": {"error": {"message": "x"}}})), "x");
        assert_eq!(message(json!("é".repeat(1000))).len(), MESSAGE_BYTES_MAX);
    }
}
