//! The failure codes of openTiger (decision failure-codes), in one table: code, category, and whether a repetition can help.
//!
//! Only this module maps Glovebox's own codes to these codes. The mapping uses the code and the class, which the host
//! assigns. It uses the text of a failure only if the failure is deterministic and its code is unknown or
//! `execution_failed`. So no text can make a permanent failure retryable.

use crate::outcome::{Failure, FailureClass};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Category of a failure, which decides how often the work is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureCategory {
    /// A problem of services or machines outside of the project.
    Env,
    /// A problem of the project's set-up, or a command that the project does not have.
    Setup,
    /// A missing permission that cannot be granted.
    Permission,
    /// The work changed nothing.
    Noop,
    /// The work broke a rule, such as its write scope.
    Policy,
    /// A check found the work wrong.
    Test,
    /// A failure that may disappear without a change.
    Flaky,
    /// A problem of a model's answer, or an unknown cause.
    Model,
    /// A model that repeats itself without progress.
    ModelLoop,
}

impl FailureCategory {
    /// Every category.
    pub const ALL: [Self; 9] = [
        Self::Env,
        Self::Setup,
        Self::Permission,
        Self::Noop,
        Self::Policy,
        Self::Test,
        Self::Flaky,
        Self::Model,
        Self::ModelLoop,
    ];

    /// Returns the name used in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Env => "env",
            Self::Setup => "setup",
            Self::Permission => "permission",
            Self::Noop => "noop",
            Self::Policy => "policy",
            Self::Test => "test",
            Self::Flaky => "flaky",
            Self::Model => "model",
            Self::ModelLoop => "model_loop",
        }
    }

    /// Returns the maximum number of repetitions of work after failures of this category (decision repetitions-by-category).
    pub fn retry_limit(self) -> u32 {
        match self {
            Self::Permission | Self::Noop => 0,
            Self::ModelLoop => 1,
            Self::Setup | Self::Policy | Self::Test | Self::Model => 3,
            Self::Env => 5,
            Self::Flaky => 6,
        }
    }

    /// Returns true if failures of this category may disappear with time.
    pub fn waits(self) -> bool {
        matches!(self, Self::Env | Self::Flaky | Self::Model)
    }
}

/// The kind of work that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureSource {
    /// A check of a stage's work.
    Verification,
    /// The work itself.
    Execution,
}

impl FailureSource {
    /// Returns the name used in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Verification => "verification",
            Self::Execution => "execution",
        }
    }
}

/// A failure code of openTiger with its classification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassifiedFailure {
    /// The code in openTiger's spelling (decision failure-codes).
    pub code: &'static str,
    /// Category of the code.
    pub category: FailureCategory,
    /// True if a repetition can help.
    pub is_retryable: bool,
}

const fn row(code: &'static str, category: FailureCategory, is_retryable: bool) -> ClassifiedFailure {
    ClassifiedFailure { code, category, is_retryable }
}

/// The only code without a category. The text of the failure determines the category.
pub const EXECUTION_FAILED: &str = "execution_failed";
const NO_CHANGES: ClassifiedFailure = row("no_actionable_changes", FailureCategory::Noop, false);
const POLICY: ClassifiedFailure = row("policy_violation", FailureCategory::Policy, true);
const MISSING_SCRIPT: ClassifiedFailure = row("verification_command_missing_script", FailureCategory::Setup, false);
const NO_TEST_FILES: ClassifiedFailure = row("verification_command_no_test_files", FailureCategory::Setup, false);
const MISSING_TARGET: ClassifiedFailure =
    row("verification_command_missing_make_target", FailureCategory::Setup, false);
const UNSUPPORTED: ClassifiedFailure = row("verification_command_unsupported_format", FailureCategory::Setup, false);
const SEQUENCE: ClassifiedFailure = row("verification_command_sequence_issue", FailureCategory::Setup, false);
const COMMAND_FAILED: ClassifiedFailure = row("verification_command_failed", FailureCategory::Test, true);
const SETUP: ClassifiedFailure = row("setup_or_bootstrap_issue", FailureCategory::Setup, true);
const ENVIRONMENT: ClassifiedFailure = row("environment_issue", FailureCategory::Env, true);
const TEST: ClassifiedFailure = row("test_failure", FailureCategory::Test, true);
const FLAKY: ClassifiedFailure = row("transient_or_flaky_failure", FailureCategory::Flaky, true);
const MODEL_LOOP: ClassifiedFailure = row("model_doom_loop", FailureCategory::ModelLoop, true);
const MODEL: ClassifiedFailure = row("model_or_unknown_failure", FailureCategory::Model, true);
const PERMISSION: ClassifiedFailure = row("external_directory_permission_prompt", FailureCategory::Permission, false);
const QUOTA: ClassifiedFailure = row("quota_failure", FailureCategory::Env, true);
const DIVERGED: ClassifiedFailure = row("branch_diverged_requires_recreate", FailureCategory::Setup, false);

/// The codes of openTiger (decision failure-codes), except `execution_failed`, which has no category.
pub const VOCABULARY: [ClassifiedFailure; 17] = [
    NO_CHANGES,
    POLICY,
    MISSING_SCRIPT,
    NO_TEST_FILES,
    MISSING_TARGET,
    UNSUPPORTED,
    SEQUENCE,
    COMMAND_FAILED,
    SETUP,
    ENVIRONMENT,
    TEST,
    FLAKY,
    MODEL_LOOP,
    MODEL,
    PERMISSION,
    QUOTA,
    DIVERGED,
];

/// Classification of Glovebox's own codes; the first match applies. A code that ends with `*` matches all codes with that prefix.
const OWN: [(&str, ClassifiedFailure); 36] = [
    ("host/required_tool_node", TEST),
    ("verify/exit-code", TEST),
    ("verify/signal", TEST),
    ("verify/no-tests", TEST),
    ("verify/timeout", FLAKY),
    ("verify/infra", ENVIRONMENT),
    ("verification/plan-missing", MODEL),
    ("verification/plan-invalid", MODEL),
    ("verification/no-commands", MODEL),
    ("verification/file-missing", TEST),
    ("verification/timeout", FLAKY),
    ("verification/*", SETUP),
    ("junit/*", TEST),
    ("json-schema/*", TEST),
    ("tree-assert/*", TEST),
    ("tool/timeout", FLAKY),
    ("agent/not-started", ENVIRONMENT),
    ("agent/not-granted", PERMISSION),
    ("agent/*", MODEL),
    ("script/*", MODEL),
    ("outcome/*", MODEL),
    ("claim/*", MODEL),
    ("status/*", MODEL),
    ("scope/*", POLICY),
    ("guardrail*", POLICY),
    ("holdout/*", POLICY),
    ("policy/*", POLICY),
    ("provider/quota-exceeded", QUOTA),
    ("provider/*", ENVIRONMENT),
    ("plugin/*", ENVIRONMENT),
    ("trap/*", ENVIRONMENT),
    ("host/*", ENVIRONMENT),
    ("limit/turns", MODEL_LOOP),
    ("limit/wall_ms", FLAKY),
    ("limit/*", ENVIRONMENT),
    ("loop/*", MODEL_LOOP),
];

/// Classification of failures by texts that their reason contains, compared in lower case; the first match applies. A
/// text that consists only of letters and digits must match a whole word.
const TEXTS: [(&[&str], ClassifiedFailure); 13] = [
    (&["external_directory permission prompt", "permission required: external_directory"], PERMISSION),
    (&["no changes were made", "no relevant changes were made", "no commits between"], NO_CHANGES),
    (&["policy violation", "guardrail_violation", "denied command", "outside allowed paths", "denied path"], POLICY),
    (&["no test files found", "no tests found", "no files found matching"], NO_TEST_FILES),
    (&["no rule to make target"], MISSING_TARGET),
    (&["err_pnpm_no_script", "missing script", "could not read package.json"], MISSING_SCRIPT),
    (&["unsupported command format", "shell operators are not allowed"], UNSUPPORTED),
    (&["branch_diverged_requires_recreate", "non-fast-forward", "failed to push some refs"], DIVERGED),
    (
        &[
            "cannot find module",
            "command not found",
            "enoent",
            "no such file or directory",
            "repository not found",
            "authentication failed",
            "permission denied",
            "no history in common",
            "package.json",
            "pnpm-workspace.yaml",
        ],
        SETUP,
    ),
    (&["database_url", "redis_url", "connection refused", "dns", "environment variable"], ENVIRONMENT),
    (
        &[
            "vitest",
            "playwright",
            "assert",
            "assertionerror",
            "expected",
            "test failed",
            "verification commands failed",
        ],
        TEST,
    ),
    (
        &[
            "rate limit",
            "429",
            "502",
            "503",
            "timeout",
            "timed out",
            "econnreset",
            "eai_again",
            "temporarily unavailable",
        ],
        FLAKY,
    ),
    (&["doom loop", "excessive planning chatter", "unsupported pseudo tool call detected: todo"], MODEL_LOOP),
];

impl ClassifiedFailure {
    /// Classifies a failure by code, then by class, then by text.
    pub fn new(source: FailureSource, failure: &Failure) -> Self {
        let found = of_code(failure).or_else(|| of_class(failure.class)).or_else(|| of_text(failure));
        let found = found.unwrap_or(match source {
            FailureSource::Verification => COMMAND_FAILED,
            FailureSource::Execution => MODEL,
        });
        Self { is_retryable: found.is_retryable && can_be_fixed(failure), ..found }
    }

    /// Returns the maximum number of repetitions of work after failures of this kind.
    pub fn retry_limit(self) -> u32 {
        if self.is_retryable { self.category.retry_limit() } else { 0 }
    }
}

fn of_code(failure: &Failure) -> Option<ClassifiedFailure> {
    let code = failure.code.as_str().to_ascii_lowercase();
    let own = |known: &str| match known.strip_suffix('*') {
        Some(start) => code.starts_with(start),
        None => code == known,
    };
    let of_seed = VOCABULARY.iter().find(|row| row.code == code).copied();
    let found = of_seed.or_else(|| OWN.iter().find(|(known, _)| own(known)).map(|(_, row)| *row))?;
    // The call after a transient error of the provider may succeed.
    let is_passing = failure.class == FailureClass::Transient && found == ENVIRONMENT && of_seed.is_none();
    Some(if is_passing { FLAKY } else { found })
}

/// Returns the classification of a class, for failures whose code has none. `None` for `deterministic`, the class of most failures.
fn of_class(class: FailureClass) -> Option<ClassifiedFailure> {
    match class {
        FailureClass::Deterministic => None,
        FailureClass::Transient => Some(FLAKY),
        FailureClass::Scope => Some(POLICY),
        FailureClass::Contract => Some(MODEL),
        FailureClass::Canceled | FailureClass::Budget | FailureClass::Internal => Some(ENVIRONMENT),
    }
}

fn of_text(failure: &Failure) -> Option<ClassifiedFailure> {
    let reason = failure.reason.to_lowercase();
    let is_there = |text: &&str| match text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        true => reason.split(|c: char| !c.is_alphanumeric()).any(|word| word == *text),
        false => reason.contains(*text),
    };
    TEXTS.iter().find(|(texts, _)| texts.iter().any(is_there)).map(|(_, row)| *row)
}

/// Returns false for a failure that the host declares final: a cancellation, a limit, a breach of contract, or a
/// refusal by the provider other than its quota.
fn can_be_fixed(failure: &Failure) -> bool {
    use FailureClass::{Budget, Canceled, Contract, Transient};
    let is_refused = failure.code.as_str().starts_with("provider/") && failure.class != Transient;
    let is_quota = failure.code == crate::FailureCode::PROVIDER_QUOTA;
    !matches!(failure.class, Canceled | Budget | Contract) && (!is_refused || is_quota)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[track_caller]
    fn check(class: FailureClass, code: &str, reason: &str, expected: (&str, &str, bool)) {
        let failure = Failure::new(class, code.to_owned(), reason);
        let found = ClassifiedFailure::new(FailureSource::Execution, &failure);
        assert_eq!((found.code, found.category.as_str(), found.is_retryable), expected, "{code} {reason}");
    }

    #[test]
    fn the_vocabulary_is_that_of_opentiger() {
        let codes: BTreeSet<&str> = VOCABULARY.iter().map(|row| row.code).chain([EXECUTION_FAILED]).collect();
        assert_eq!(codes.len(), 18);
        let limits = FailureCategory::ALL.map(|category| (category.as_str(), category.retry_limit()));
        let expected = [
            ("env", 5),
            ("setup", 3),
            ("permission", 0),
            ("noop", 0),
            ("policy", 3),
            ("test", 3),
            ("flaky", 6),
            ("model", 3),
            ("model_loop", 1),
        ];
        assert_eq!(limits, expected);
        for row in VOCABULARY {
            let (category, is_retryable) = (row.category.as_str(), row.is_retryable);
            check(FailureClass::Deterministic, row.code, "rate limit", (row.code, category, is_retryable));
            check(FailureClass::Budget, row.code, "rate limit", (row.code, category, false));
        }
        let never = VOCABULARY.iter().filter(|row| !row.is_retryable).count();
        assert_eq!(never, 8);
    }

    #[test]
    fn own_codes_map_into_it() {
        use FailureClass::{Budget, Contract, Deterministic, Internal, Scope, Transient};
        let flaky = ("transient_or_flaky_failure", "flaky", true);
        let env = ("environment_issue", "env", true);
        check(Deterministic, "verify/exit-code", "", ("test_failure", "test", true));
        check(Transient, "verification/timeout", "", flaky);
        check(Deterministic, "verification/plan-invalid", "", ("model_or_unknown_failure", "model", true));
        check(Deterministic, "verification/workdir", "", ("setup_or_bootstrap_issue", "setup", true));
        check(Scope, "scope/write", "", ("policy_violation", "policy", true));
        check(Deterministic, "guardrail_violation", "", ("policy_violation", "policy", true));
        check(Transient, "provider/overloaded", "", flaky);
        check(Deterministic, "provider/auth", "429", ("environment_issue", "env", false));
        check(Deterministic, "provider/quota-exceeded", "", ("quota_failure", "env", true));
        check(Internal, "trap/unreachable", "", env);
        check(Internal, "host/fault", "test failed", env);
        check(Budget, "limit/turns", "", ("model_doom_loop", "model_loop", false));
        check(Budget, "limit/wall_ms", "rate limit", ("transient_or_flaky_failure", "flaky", false));
        check(Budget, "limit/memory_bytes", "", ("environment_issue", "env", false));
        check(Contract, "claim/unproven", "timed out", ("model_or_unknown_failure", "model", false));
        check(Contract, "acme/x", "timed out", ("model_or_unknown_failure", "model", false));
        check(Transient, "acme/x", "no changes were made", flaky);
    }

    #[test]
    fn text_decides_where_the_code_says_nothing() {
        let text = |reason: &str, code: &str, category: &str, is_retryable: bool| {
            for unknown in [EXECUTION_FAILED, "tool/exit-code", "stage/failed", "acme/own"] {
                check(FailureClass::Deterministic, unknown, reason, (code, category, is_retryable));
            }
        };
        text("", "model_or_unknown_failure", "model", true);
        text("No changes were made by the agent", "no_actionable_changes", "noop", false);
        text("permission required: external_directory", "external_directory_permission_prompt", "permission", false);
        text("change to denied path a/b", "policy_violation", "policy", true);
        text("npm error Missing script: \"x\"", "verification_command_missing_script", "setup", false);
        text("make: *** No rule to make target 'x'", "verification_command_missing_make_target", "setup", false);
        text("No tests found", "verification_command_no_test_files", "setup", false);
        text("Shell operators are not allowed.", "verification_command_unsupported_format", "setup", false);
        text("sh: x: command not found", "setup_or_bootstrap_issue", "setup", true);
        text("connect: Connection refused", "environment_issue", "env", true);
        text("! [rejected] main (non-fast-forward)", "branch_diverged_requires_recreate", "setup", false);
        text("expected 3, found 4", "test_failure", "test", true);
        text("HTTP 503", "transient_or_flaky_failure", "flaky", true);
        text("line 5031 dnsmasq unexpectedly", "model_or_unknown_failure", "model", true);
        text("Doom loop detected", "model_doom_loop", "model_loop", true);
        let own = Failure::new(FailureClass::Deterministic, "acme/lint".to_owned(), "it is ugly");
        assert_eq!(ClassifiedFailure::new(FailureSource::Verification, &own), COMMAND_FAILED);
    }
}
