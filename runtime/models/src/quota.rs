//! The time at which a used up quota of an account resumes, as the provider names it in a refusal.
//!
//! A provider is a stranger: a long value, a time in the past and a time more than a week ahead count as no time. A
//! quota that is not used up has nothing to do with the refusal, so its reset is ignored.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::collections::BTreeMap;

/// Maximum time until a used up quota resumes. A later time is not used.
const RESUME_MAX: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Maximum length of a value and of the name of a quota, in bytes.
const TEXT_BYTES_MAX: usize = 64;
/// Maximum number of details of an error that are searched for a time.
const DETAILS_MAX: usize = 32;

/// What the head of an answer says about the quotas of the account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct QuotaHeaders {
    retry_at: Option<Timestamp>,
    /// The quotas, such as `requests` and `input-tokens`, by name.
    quotas: BTreeMap<String, Quota>,
}

/// The state of one quota.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Quota {
    resets_at: Option<Timestamp>,
    /// `None` if the provider does not say what is left.
    is_used_up: Option<bool>,
}

impl QuotaHeaders {
    /// Reads a header of an answer that was received at `now`. Other headers are ignored.
    pub(crate) fn note(&mut self, name: &str, value: &str, now: Timestamp) {
        if value.len() > TEXT_BYTES_MAX || name.len() > TEXT_BYTES_MAX {
            return;
        }
        let name = name.to_ascii_lowercase();
        if name == "retry-after" {
            let named = seconds(value).and_then(|wait| now.checked_add(wait).ok()).or_else(|| http_date(value));
            self.retry_at = self.retry_at.max(named);
        } else if let Some((quota, field)) =
            name.strip_prefix("anthropic-ratelimit-").and_then(|rest| rest.rsplit_once('-'))
        {
            let quota = self.quotas.entry(quota.to_owned()).or_default();
            match field {
                "reset" => quota.resets_at = value.parse().ok(),
                "remaining" => quota.is_used_up = is_zero(value),
                _ => {}
            }
        } else if let Some(quota) = name.strip_prefix("x-ratelimit-reset-") {
            let quota = self.quotas.entry(quota.to_owned()).or_default();
            quota.resets_at = duration(value).and_then(|wait| now.checked_add(wait).ok());
        } else if let Some(quota) = name.strip_prefix("x-ratelimit-remaining-") {
            self.quotas.entry(quota.to_owned()).or_default().is_used_up = is_zero(value);
        }
    }

    /// Returns the time at which the account may continue after a refusal with this body. A time that the provider
    /// gives for this request comes before the resets of its quotas. `None` if the provider names no usable time.
    pub(crate) fn resume_at(&self, refusal: &Value, now: Timestamp) -> Option<Timestamp> {
        let latest = now.checked_add(RESUME_MAX).unwrap_or(Timestamp::MAX);
        let usable = |at: &Timestamp| *at > now && *at <= latest;
        let resets = |is_used_up: Option<bool>| {
            let quotas = self.quotas.values().filter(move |quota| quota.is_used_up == is_used_up);
            quotas.filter_map(|quota| quota.resets_at).filter(usable).max()
        };
        let of_request = [self.retry_at, retry_info(refusal, now)].into_iter().flatten().filter(usable).max();
        of_request.or_else(|| resets(Some(true))).or_else(|| resets(None))
    }
}

/// Returns the time in the details of an error of Gemini (`google.rpc.RetryInfo`).
fn retry_info(refusal: &Value, now: Timestamp) -> Option<Timestamp> {
    // Some endpoints put the error into a list.
    let error = [&refusal["error"], &refusal[0]["error"]].into_iter().find(|error| error.is_object())?;
    let details = error["details"].as_array()?.iter().take(DETAILS_MAX);
    let delays = details.filter_map(|detail| detail["retryDelay"].as_str());
    let times = delays.filter_map(|delay| now.checked_add(duration(delay)?).ok());
    times.max()
}

/// Parses a number of seconds, whole or with a fraction.
fn seconds(text: &str) -> Option<SignedDuration> {
    let seconds: f64 = text.parse().ok()?;
    SignedDuration::try_from_secs_f64(seconds).ok().filter(|wait| wait.is_positive())
}

/// Parses a duration such as `6m0s`, `17ms` or `34.07s`.
fn duration(text: &str) -> Option<SignedDuration> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    text.parse::<SignedDuration>().ok().filter(|wait| wait.is_positive())
}

/// Parses a date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}

fn is_zero(text: &str) -> Option<bool> {
    text.parse::<f64>().ok().map(|left| left <= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(text: &str) -> Timestamp {
        format!("2026-01-02T{text}Z").parse().unwrap()
    }

    /// Checks the time for a refusal at noon with these headers and this body.
    fn check(headers: &[(&str, &str)], body: &Value, expected: Option<&str>) {
        let mut found = QuotaHeaders::default();
        headers.iter().for_each(|(name, value)| found.note(name, value, at("12:00:00")));
        assert_eq!(found.resume_at(body, at("12:00:00")), expected.map(at), "{headers:?} {body}");
    }

    #[test]
    fn each_provider_names_its_time() {
        let none = Value::Null;
        check(&[("Retry-After", "90")], &none, Some("12:01:30"));
        check(&[("retry-after", "1.5")], &none, Some("12:00:01.5"));
        check(&[("retry-after", "90"), ("retry-after", "soon")], &none, Some("12:01:30"));
        check(&[("retry-after", "Fri, 02 Jan 2026 13:00:00 GMT")], &none, Some("13:00:00"));
        check(&[("anthropic-ratelimit-requests-reset", "2026-01-02T12:00:09Z")], &none, Some("12:00:09"));
        check(&[("anthropic-ratelimit-input-tokens-reset", "2026-01-02T14:00:00+01:00")], &none, Some("13:00:00"));
        check(&[("x-ratelimit-reset-requests", "1s")], &none, Some("12:00:01"));
        check(&[("x-ratelimit-reset-tokens", "6m0s")], &none, Some("12:06:00"));
        check(&[("x-ratelimit-reset-tokens", "1h2m3.5s")], &none, Some("13:02:03.5"));
        check(&[("x-ratelimit-reset-tokens", "120ms")], &none, Some("12:00:00.12"));
        let info = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"});
        let details = json!([{"@type": "type.googleapis.com/google.rpc.QuotaFailure"}, info]);
        check(&[], &json!({"error": {"code": 429, "details": details}}), Some("12:00:34.5"));
        check(&[], &json!([{"error": {"code": 429, "details": details}}]), Some("12:00:34.5"));
    }

    #[test]
    fn the_quota_that_is_used_up_decides_and_else_the_latest() {
        let none = Value::Null;
        let requests = ("x-ratelimit-reset-requests", "1s");
        let tokens = ("x-ratelimit-reset-tokens", "6m");
        check(&[requests, tokens], &none, Some("12:06:00"));
        let (no_requests, no_tokens) = (("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-remaining-tokens", "0"));
        let many_tokens = ("x-ratelimit-remaining-tokens", "149000");
        check(&[requests, no_requests, tokens, many_tokens], &none, Some("12:00:01"));
        check(&[no_tokens, tokens, no_requests, requests], &none, Some("12:06:00"));
        // Nothing is used up, so the account lacks credit, and no reset helps.
        check(&[tokens, many_tokens], &none, None);
        check(&[tokens, many_tokens, ("retry-after", "5")], &none, Some("12:00:05"));
        let anthropic = [
            ("anthropic-ratelimit-requests-reset", "2026-01-02T12:00:09Z"),
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-output-tokens-reset", "2026-01-02T12:00:04Z"),
            ("anthropic-ratelimit-output-tokens-remaining", "0"),
            ("anthropic-ratelimit-output-tokens-limit", "8000"),
        ];
        check(&anthropic, &none, Some("12:00:04"));
    }

    #[test]
    fn what_no_provider_can_mean_is_no_time() {
        let none = Value::Null;
        let long = format!("{}1s", "0".repeat(1000));
        for value in ["0", "-5", "soon", "", "NaN", "inf", "1e300", "604801", "Fri, 02 Jan 2026 11:59:59 GMT", &long] {
            check(&[("retry-after", value)], &none, None);
        }
        for value in ["-1s", "P1Y", "200h", "1", "0s", &long] {
            check(&[("x-ratelimit-reset-tokens", value)], &none, None);
            let details = json!([{"retryDelay": value}]);
            check(&[], &json!({"error": {"details": details}}), None);
        }
        for value in ["2026-01-02T11:59:59Z", "2026-01-09T12:00:01Z", "9999-12-31T23:59:59Z", "noon"] {
            check(&[("anthropic-ratelimit-tokens-reset", value)], &none, None);
        }
        check(&[], &json!({"error": {"details": "x"}}), None);
        check(&[("anthropic-ratelimit-", "1s"), ("x-ratelimit-reset", "1s")], &none, None);
    }
}
