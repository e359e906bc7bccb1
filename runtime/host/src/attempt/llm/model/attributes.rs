//! Answers written on the node itself: `test.outcome` and its companions (decision test-attributes).
//!
//! They work without a script and without a key. Any other name that begins with `test.` is an error. Otherwise a misspelled attribute
//! would silently result in the simulated success.

use super::DeclaredOutcome;
use glovebox_models::chat::Answer;
use glovebox_record::{NodeId, Status};
use glovebox_schema::Schema;
use serde_json::Value;
use std::collections::BTreeMap;

/// Prefix of the attributes' names.
pub const TEST_PREFIX: &str = "test.";

/// Context key of a verification plan (decision plan-in-the-context).
const PLAN_KEY: &str = "verification.plan";

/// The answer that a node's `test.*` attributes give in every turn of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct TestAnswers {
    outcome: DeclaredOutcome,
}

/// Why `test.*` attributes cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TestAttributeError {
    /// The name is not one of the `test.*` attributes.
    #[error(
        "unknown attribute `{0}`, expected one of `test.outcome`, `test.outcome_sequence`, `test.preferred_next_label`, \
         `test.suggested_next_ids`, `test.notes`, `test.verification_plan_json`"
    )]
    Unknown(String),
    /// The value is not a status.
    #[error("`{name}` has the value `{value}`, expected `success`, `partial_success`, `retry`, `fail` or `skipped`")]
    Status {
        /// Name of the attribute.
        name: &'static str,
        /// The value as written.
        value: String,
    },
    /// The verification plan is not JSON.
    #[error("`test.verification_plan_json` is not JSON: {0}")]
    Plan(String),
}

impl TestAnswers {
    /// Reads the attributes of a node. Returns `None` if there are no `test.*` attributes. `finished_attempts` is the index into
    /// `test.outcome_sequence`.
    pub fn read(attributes: &[(String, String)], finished_attempts: u32) -> Result<Option<Self>, TestAttributeError> {
        let mut outcome = DeclaredOutcome {
            status: Status::Success,
            preferred_label: String::new(),
            suggested_next_ids: Vec::new(),
            context_updates: BTreeMap::new(),
            notes: String::new(),
            failure_reason: String::new(),
        };
        let mut sequence = None;
        let mut found = false;
        for (name, value) in attributes.iter().filter(|(name, _)| name.starts_with(TEST_PREFIX)) {
            found = true;
            match name.as_str() {
                "test.outcome" => outcome.status = StatusWord { name: "test.outcome", value }.read()?,
                "test.outcome_sequence" => sequence = Some(value),
                "test.preferred_next_label" => outcome.preferred_label.clone_from(value),
                "test.suggested_next_ids" => {
                    outcome.suggested_next_ids = WordList(value).words().map(str::to_owned).collect()
                }
                "test.notes" => outcome.notes.clone_from(value),
                "test.verification_plan_json" => {
                    let plan: Value =
                        serde_json::from_str(value).map_err(|e| TestAttributeError::Plan(e.to_string()))?;
                    outcome.context_updates.insert(PLAN_KEY.to_owned(), plan);
                }
                _ => return Err(TestAttributeError::Unknown(name.clone())),
            }
        }
        if let Some(sequence) = sequence {
            outcome.status = WordList(sequence).status_at(finished_attempts)?;
        }
        if outcome.status == Status::Fail {
            outcome.failure_reason =
                if outcome.notes.is_empty() { "test.outcome is fail".to_owned() } else { outcome.notes.clone() };
        }
        Ok(found.then_some(TestAnswers { outcome }))
    }

    pub(super) fn answer(&self, node: &NodeId, schema: Option<&Schema>) -> Answer {
        let mut answer = super::simulated::answer(node, schema);
        answer.parts.push(self.outcome.part());
        answer
    }
}

/// Words of an attribute's value, separated by commas.
#[derive(Clone, Copy)]
struct WordList<'a>(&'a str);

impl<'a> WordList<'a> {
    fn words(self) -> impl Iterator<Item = &'a str> {
        self.0.split(',').map(str::trim).filter(|word| !word.is_empty())
    }

    /// Returns the status of an attempt. The last status applies to all further attempts. The whole list is checked each time, so that
    /// a mistake at its end is an error in the first attempt already.
    fn status_at(self, finished_attempts: u32) -> Result<Status, TestAttributeError> {
        let name = "test.outcome_sequence";
        let statuses: Vec<Status> =
            self.words().map(|value| StatusWord { name, value }.read()).collect::<Result<_, _>>()?;
        let at = usize::try_from(finished_attempts).unwrap_or(usize::MAX);
        let found = statuses.get(at).or(statuses.last()).copied();
        found.ok_or(TestAttributeError::Status { name, value: self.0.to_owned() })
    }
}

/// A status as written in an attribute.
struct StatusWord<'a> {
    name: &'static str,
    value: &'a str,
}

impl StatusWord<'_> {
    fn read(&self) -> Result<Status, TestAttributeError> {
        let text = self.value.trim().to_ascii_lowercase();
        let wrong = |_| TestAttributeError::Status { name: self.name, value: self.value.to_owned() };
        serde_json::from_value(Value::String(text)).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn read(list: &[(&str, &str)], finished: u32) -> DeclaredOutcome {
        TestAnswers::read(&pairs(list), finished).unwrap().unwrap().outcome
    }

    #[test]
    fn a_node_without_them_has_none() {
        assert_eq!(TestAnswers::read(&pairs(&[("prompt", "x")]), 0), Ok(None));
    }

    #[test]
    fn each_attribute_acts() {
        let outcome = read(
            &[
                ("test.outcome", "FAIL"),
                ("test.preferred_next_label", "redo"),
                ("test.suggested_next_ids", "a, b"),
                ("test.notes", "broken"),
                ("test.verification_plan_json", r#"{"commands":["cargo test"]}"#),
            ],
            0,
        );
        assert_eq!((outcome.status, outcome.failure_reason.as_str()), (Status::Fail, "broken"));
        assert_eq!((outcome.preferred_label.as_str(), outcome.suggested_next_ids.len()), ("redo", 2));
        assert_eq!(outcome.context_updates["verification.plan"]["commands"][0], "cargo test");
    }

    #[test]
    fn the_sequence_goes_by_finished_attempts_and_stays_at_its_end() {
        let check = |finished, expected| {
            assert_eq!(read(&[("test.outcome_sequence", "fail, retry,success")], finished).status, expected);
        };
        check(0, Status::Fail);
        check(1, Status::Retry);
        check(2, Status::Success);
        check(9, Status::Success);
    }

    #[test]
    fn mistakes_are_errors() {
        let error = |name, value| TestAnswers::read(&pairs(&[(name, value)]), 0).unwrap_err().to_string();
        assert!(error("test.outcom", "fail").starts_with("unknown attribute `test.outcom`"));
        assert!(error("test.outcome", "maybe").contains("`maybe`, expected `success`"));
        assert!(error("test.outcome_sequence", "success,maybe").contains("`maybe`"));
        assert!(error("test.outcome_sequence", " , ").contains("`test.outcome_sequence`"));
        assert!(error("test.verification_plan_json", "{").contains("is not JSON"));
    }
}
