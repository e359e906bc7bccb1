//! Tests that each name of a value is the same in files and messages, and is parsed as it is written.

use crate::evidence::REFUSAL_TEXT_BYTES_MAX;
use crate::limit::{StageKind, UNBOUNDED};
use crate::no_change::Confirmation;
use crate::path::ScopePathProblem;
use crate::program::AgentProgram;
use crate::question::{ANSWER_BYTES_MAX, Answer, AnswerError, Answers};
use crate::scope::Entry;
use crate::*;
use schemars::schema_for;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Checks that the name of each value is also its JSON form.
#[track_caller]
fn check<T: Serialize>(values: &[T], word: impl Fn(&T) -> &'static str, words: &[&str]) {
    assert_eq!(values.iter().map(&word).collect::<Vec<_>>(), words);
    for value in values {
        assert_eq!(serde_json::to_value(value).unwrap(), word(value));
    }
}

#[test]
fn each_word_is_that_of_the_journal() {
    use CommandEnding::{Canceled, Exited, Signaled, TimedOut};
    let endings = ["exited", "signaled", "timed-out", "canceled"];
    check(&[Exited, Signaled, TimedOut, Canceled], |ending| ending.as_str(), &endings);
    assert_eq!([Exited, Signaled, TimedOut, Canceled].map(|ending| ending.to_string()), endings);
    let without_proof = [NoProof::NoTests, NoProof::Replacement, NoProof::DroppedFiles];
    check(&without_proof, |why| why.as_str(), &["no_tests", "replacement", "dropped_files"]);
    let why = ["ran no test", "replaced a skipped command", "ran on files that the stage discarded"];
    assert_eq!(without_proof.map(|why| why.to_string()), why);
    let sources = [FailureSource::Verification, FailureSource::Execution];
    check(&sources, |source| source.as_str(), &["verification", "execution"]);
    check(&[HookKind::Pre, HookKind::Post], |kind| kind.as_str(), &["pre", "post"]);
    assert_eq!([HookKind::Pre, HookKind::Post].map(|kind| kind.to_string()), ["pre", "post"]);
    let types = [QuestionType::MultipleChoice, QuestionType::YesNo, QuestionType::Freeform, QuestionType::Confirmation];
    check(&types, |kind| kind.as_str(), &["multiple_choice", "yes_no", "freeform", "confirmation"]);
}

#[test]
fn each_status_and_class_has_its_word_and_only_two_statuses_satisfy_a_gate() {
    use FailureClass::{Budget, Canceled, Contract, Deterministic, Internal, Scope, Transient};
    use Status::{Fail, PartialSuccess, Retry, Skipped, Success};
    let statuses = [Success, PartialSuccess, Retry, Fail, Skipped];
    check(&statuses, |status| status.as_str(), &["success", "partial_success", "retry", "fail", "skipped"]);
    assert_eq!(statuses.map(Status::satisfies_gate), [true, true, false, false, false]);
    let classes = [Transient, Deterministic, Canceled, Budget, Scope, Contract, Internal];
    let words = ["transient", "deterministic", "canceled", "budget", "scope", "contract", "internal"];
    check(&classes, |class| class.as_str(), &words);
    let failure = Failure::new(Budget, FailureCode::limit("turns"), "no turns are left");
    assert_eq!(
        (failure.code.to_string(), String::from(failure.code.clone())),
        ("limit/turns".into(), "limit/turns".into())
    );
    let (failed, ended) = (Outcome::failed(failure.clone()), Outcome::ended(Retry, Some(&failure)));
    assert_eq!((failed.status, failed.failure.as_ref()), (Fail, Some(&failure)));
    assert_eq!((ended.status, ended.failure.as_ref()), (Retry, Some(&failure)));
    assert!(FailureCode::from("provider/auth").is_of_model());
    assert_eq!(FailureCode::from("provider/auth").family(), FailureFamily::Provider);
}

#[test]
fn only_the_words_of_a_setting_are_read() {
    let words = ["codex", "claude", "gemini", "opencode", "exec"];
    assert_eq!(AgentProgram::ALL.map(AgentProgram::as_str), words);
    for program in AgentProgram::ALL {
        assert_eq!(program.to_string().parse(), Ok(program));
    }
    assert!("Codex".parse::<AgentProgram>().is_err());
    for (word, confirmation) in
        [("verify", Confirmation::Verify), ("VERIFY", Confirmation::Verify), ("off", Confirmation::Off)]
    {
        assert_eq!(word.parse(), Ok(confirmation));
        assert_eq!(word.to_lowercase(), confirmation.as_str());
    }
    for word in ["false", "strict", "disabled", "none"] {
        assert_eq!(word.parse(), Ok(Confirmation::Off));
    }
    assert_eq!("on".parse::<Confirmation>().unwrap_err().to_string(), "expected `verify` or `off`");
}

#[test]
fn only_what_may_pass_with_time_waits_and_only_what_can_be_mended_is_tried_again() {
    let waits: Vec<&str> =
        FailureCategory::ALL.into_iter().filter(|category| category.waits()).map(FailureCategory::as_str).collect();
    assert_eq!(waits, ["env", "flaky", "model"]);
    let limit = |class: FailureClass| {
        let failure = Failure::new(class, "environment_issue", "it is down");
        ClassifiedFailure::new(FailureSource::Verification, &failure).retry_limit()
    };
    assert_eq!((limit(FailureClass::Deterministic), limit(FailureClass::Canceled)), (5, 0));
}

#[test]
fn a_digest_has_one_spelling_and_its_bytes() {
    let digest = Digest::hash(b"it");
    assert_eq!(digest.to_string(), format!("blake3:{}", digest.hex()));
    assert_eq!(Digest::from_bytes(*digest.as_bytes()), digest);
    assert_eq!(digest.hex().len(), 64);
    let schema = serde_json::to_value(schema_for!(Digest)).unwrap();
    assert_eq!((&schema["title"], &schema["pattern"]), (&json!("Digest"), &json!("^blake3:[0-9a-f]{64}$")));
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Holder {
        digest: Digest,
        limit: LimitName,
    }
    let fields = serde_json::to_value(schema_for!(Holder)).unwrap();
    assert_eq!(fields["properties"]["digest"], json!({ "$ref": "#/$defs/Digest" }));
    assert_eq!(fields["properties"]["limit"], json!({ "type": "string" }), "a limit is a name like any other");
    assert_eq!(serde_json::to_value(schema_for!(LimitName)).unwrap()["title"], "LimitName");
}

#[test]
fn the_stage_of_a_task_and_the_key_of_a_subject_name_it() {
    let task = Task::for_handler(2, &BranchId::new("left"), &"build".into(), 3);
    let verification = task.verification();
    assert_eq!((verification.work, verification.handling()), (Work::Verify, task.clone()));
    assert_eq!((task.stage().as_str(), verification.stage().as_str()), ("build", "build.verify"));
    assert_eq!((task.stage().verified(), verification.stage().verified()), (None, Some("build")));
    let subjects = [
        (StreamKey::Run, "run"),
        (StreamKey::from(&BranchId::main()), "branch.main"),
        (StreamKey::from(&verification), "task.2/left/build#3/verify"),
        (StreamKey::from(&QuestionId::from("gate#1")), "question.gate#1"),
    ];
    for (subject, key) in subjects {
        assert_eq!(subject.to_string(), key);
    }
}

#[test]
fn every_limit_has_an_amount_and_only_a_command_without_one_has_that_of_its_stage() {
    let limits = Limits { turns: UNBOUNDED, wall_ms: 7, ..Limits::default() };
    assert_eq!((limits.bound(LimitName::Turns), limits.bound(LimitName::CommandMs)), (UNBOUNDED, 7));
    let names: BTreeSet<LimitName> = limits.iter().map(|(name, _)| name).collect();
    assert_eq!((names.len(), limits.iter().count()), (LimitName::ALL.len(), LimitName::ALL.len()));
    assert!(LimitName::CpuMs < LimitName::Turns && LimitName::WallMs > LimitName::Turns, "in the order of their names");
    let kinds = [StageKind::Agent, StageKind::Commands, StageKind::Other].map(Limits::defaults_for);
    assert_eq!(kinds.each_ref().map(|limits| limits.wall_ms), [1_800_000, 600_000, Limits::default().wall_ms]);
    assert!(kinds.iter().all(|limits| limits.turns == Limits::default().turns));
    let mut settings = LimitSettings::default();
    assert!(settings.is_empty());
    settings.set(LimitName::Turns, 3);
    assert!(!settings.is_empty() && settings.get(LimitName::Turns) == Some(3));
}

#[test]
fn an_amount_has_the_factor_of_its_unit() {
    let bytes = [("1B", 1), ("1KiB", 1 << 10), ("1MiB", 1 << 20), ("1GiB", 1 << 30), ("1kB", 1_000), ("1KB", 1_000)];
    for (text, amount) in bytes.into_iter().chain([("1MB", 1_000_000), ("1GB", 1_000_000_000)]) {
        assert_eq!(LimitUnit::Bytes.parse(text), Some(amount), "{text}");
    }
    for text in ["_1", "1_", "_", "KiB"] {
        assert_eq!(LimitUnit::Bytes.parse(text), None, "{text}");
    }
}

#[test]
fn a_refusal_is_cut_beyond_its_bound_and_not_at_it() {
    let refusal = |bytes: usize| Refusal::new("read", "x", "y".repeat(bytes), "").reason.len();
    assert_eq!(refusal(REFUSAL_TEXT_BYTES_MAX), REFUSAL_TEXT_BYTES_MAX);
    assert_eq!(refusal(REFUSAL_TEXT_BYTES_MAX + 1), REFUSAL_TEXT_BYTES_MAX + '…'.len_utf8());
    assert_eq!(Refusal::new("read", "a b", "no grant", "").to_string(), "refused to read `a b`: no grant");
}

#[test]
fn a_path_that_is_refused_names_its_fault() {
    for (problem, fault) in [
        (ScopePathProblem::Absolute, "absolute path"),
        (ScopePathProblem::Nul, "NUL character"),
        (ScopePathProblem::Empty, "empty entry"),
        (ScopePathProblem::EmptySegment, "empty segment"),
        (ScopePathProblem::DotSegment, "`.` segment"),
        (ScopePathProblem::ParentSegment, "parent segment"),
        (ScopePathProblem::ClimbsAbove, "path above its base"),
        (ScopePathProblem::NotUtf8, "text that is not UTF-8"),
        (ScopePathProblem::TooLong, "path that is too long"),
    ] {
        assert_eq!(problem.fault(), fault);
    }
}

#[test]
fn a_network_and_an_entry_are_read_as_they_are_written() {
    for text in ["none", "full", "proxy:a.example,*.b.example:22"] {
        let network: Network = serde_json::from_value(json!(text)).unwrap();
        assert_eq!(serde_json::to_value(network).unwrap(), text);
    }
    for text in ["src/", "src/main.rs", "./"] {
        let entry: Entry = serde_json::from_value(json!(text)).unwrap();
        assert_eq!(serde_json::to_value(entry).unwrap(), text);
    }
    assert!(serde_json::from_value::<Entry>(json!("../x")).is_err());
    assert_eq!(Entry::parse("src/").unwrap().path().as_str(), "src");
}

fn answers(kind: QuestionType, labels: &[&str]) -> (Vec<Choice>, QuestionType) {
    (labels.iter().map(|label| Choice::new(label, NodeId::new(label.to_lowercase()))).collect(), kind)
}

#[test]
fn approval_is_yes_or_the_first_choice_that_declines_nothing() {
    let approved = |kind: QuestionType, labels: &[&str], declines: usize| {
        let (mut choices, kind) = answers(kind, labels);
        choices.iter_mut().take(declines).for_each(|choice| choice.declines = true);
        match (Answers { kind, choices: &choices }).approval() {
            Some(Answer::Choice(choice)) => choice.label,
            other => format!("{other:?}"),
        }
    };
    assert_eq!(approved(QuestionType::Freeform, &[], 0), "Some(Text)");
    assert_eq!(approved(QuestionType::YesNo, &["Stop", "Go"], 0), "Go");
    assert_eq!(approved(QuestionType::MultipleChoice, &["Stop", "Go"], 0), "Stop");
    assert_eq!(approved(QuestionType::MultipleChoice, &["Stop", "Go"], 1), "Go");
    assert_eq!(approved(QuestionType::MultipleChoice, &["Stop"], 1), "None");
}

#[test]
fn a_message_about_an_answer_names_the_valid_ones() {
    let expected = |kind: QuestionType, labels: &[&str]| {
        let (choices, kind) = answers(kind, labels);
        Answers { kind, choices: &choices }.expected()
    };
    assert_eq!(expected(QuestionType::Freeform, &[]), "any text");
    assert_eq!(expected(QuestionType::Confirmation, &["Go"]), "`G` (Go) or `no`");
    assert_eq!(expected(QuestionType::Confirmation, &["Go", "Stop"]), "`G` (Go), `S` (Stop)");
    assert_eq!(expected(QuestionType::YesNo, &["Go"]), "`G` (Go)");
}

#[test]
fn of_two_choices_the_second_is_the_no_where_none_says_so() {
    let (choices, kind) = answers(QuestionType::YesNo, &["Ship", "Wait"]);
    let read = |word: &str| match (Answers { kind, choices: &choices }).read(word) {
        Ok(Answer::Choice(choice)) => choice.label,
        other => format!("{other:?}"),
    };
    assert_eq!((read("yes"), read("no")), ("Ship".to_owned(), "Wait".to_owned()));
}

#[test]
fn a_free_text_may_be_as_long_as_its_bound() {
    let read = |bytes: usize| Answers { kind: QuestionType::Freeform, choices: &[] }.read(&"x".repeat(bytes));
    assert_eq!(read(ANSWER_BYTES_MAX), Ok(Answer::Text));
    assert_eq!(read(ANSWER_BYTES_MAX + 1), Err(AnswerError::TooLong(ANSWER_BYTES_MAX + 1)));
}

#[test]
fn a_stored_value_is_known_by_its_whole_reference_and_by_nothing_like_it() {
    let stored = StoredValue::new("\"long\"", "long");
    assert_eq!(StoredValue::from_reference(&stored.reference()), Some(stored.clone()));
    assert_eq!(stored.reference()["head"], "long");
    let mut more = stored.reference();
    more["more"] = Value::Null;
    assert_eq!((StoredValue::from_reference(&more), StoredValue::from_reference(&json!("long"))), (None, None));
    assert_eq!(stored.file_name(), format!("context-{}.json", &stored.artifact.hex()[..16]));
}

#[test]
fn each_tier_names_the_layers_that_its_commands_run_behind() {
    let tiers = [Tier::Unconfined, Tier::Landlock, Tier::Bwrap, Tier::Full];
    assert_eq!(tiers.map(|tier| tier.layers().len()), [0, 3, 5, 6]);
    let added = |tier: Tier, below: Tier| -> Vec<&str> {
        tier.layers().iter().copied().filter(|layer| !below.layers().contains(layer)).collect()
    };
    assert_eq!(Tier::Landlock.layers(), ["landlock", "seccomp", "limits"]);
    assert_eq!(added(Tier::Bwrap, Tier::Landlock), ["namespaces", "own root"]);
    assert_eq!(added(Tier::Full, Tier::Bwrap), ["overlay"]);
    assert_eq!(tiers.map(Tier::has_own_root), [false, false, true, true]);
    assert_eq!(tiers.map(Tier::can_mount), [false, false, false, true]);
}

#[test]
fn a_change_that_removes_leaves_nothing() {
    use ChangeOp::{Delete, Mkdir, Rmdir, Symlink, Write};
    assert_eq!([Write, Delete, Mkdir, Rmdir, Symlink].map(ChangeOp::removes), [false, true, false, true, false]);
}
