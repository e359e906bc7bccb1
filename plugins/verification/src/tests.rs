//! Tests of the whole handler: the commands that it runs and drops, and its outcome.

use crate::Verification;
use glovebox_plugin_sdk::testing::{Host, StageBuilder, exited, stage};
use glovebox_plugin_sdk::{Outcome, Status, Value, json};

/// Returns a stage with `[verify]` whose phase `worker` adds these commands.
fn with_settings(worker: &[&str], change: impl FnOnce(&mut Value)) -> StageBuilder {
    let mut told = json!({
        "needs_plan": false,
        "planner": { "contract": [], "fallback": [], "commands_max": 4 },
        "augment_nonempty": false,
        "worker": { "contract": worker, "fallback": [], "commands_max": 4 },
        "skips_invalid": true,
        "recovery_attempts": 5,
        "recovers_explicit": true,
        "base": { "files": {}, "has_tests": false },
    });
    change(&mut told);
    stage("check").extra("verify", told.to_string())
}

fn plan(stage: StageBuilder, commands: &[&str]) -> StageBuilder {
    stage
        .context("verification.plan", json!({ "commands": commands }))
        .attribute("verification.allowed_commands", "npm,make,test,rm,cargo")
}

fn results(host: &Host) -> Value {
    let bytes = host.artifact("verification.results.json").unwrap();
    String::from_utf8(bytes).unwrap().parse().unwrap()
}

fn reason(outcome: &Outcome) -> (&str, &str) {
    outcome.failure().map_or(("", ""), |failure| (failure.code.as_str(), failure.reason.as_str()))
}

#[test]
fn runs_the_contract_without_a_plan() {
    let host = Host::new();
    host.answer_command("cargo test", Ok(exited(0, "")));
    let outcome = host.execute::<Verification>(with_settings(&["cargo test"], |_| {}));
    assert_eq!(outcome.status(), Status::Success, "{outcome:?}");
    assert_eq!(host.commands(), ["cargo test"]);
}

#[test]
fn needs_a_plan_where_the_operator_says_so() {
    let host = Host::new();
    let outcome = host.execute::<Verification>(with_settings(&["cargo test"], |told| told["needs_plan"] = json!(true)));
    let expected = "verification plan missing in context key: verification.plan";
    assert_eq!(reason(&outcome), ("verification/plan-missing", expected));
    assert!(host.commands().is_empty());
}

#[test]
fn a_dropped_command_never_counts_as_passed() {
    let host = Host::new();
    host.write("package.json", r#"{"scripts":{"test":"x"}}"#);
    host.answer_command("npm run lint", Ok(exited(1, "npm error Missing script")));
    host.answer_command("npm test", Ok(exited(0, "")));
    let outcome = host.execute::<Verification>(plan(with_settings(&[], |_| {}), &["npm run lint", "npm test"]));
    assert_eq!(outcome.status(), Status::PartialSuccess, "{outcome:?}");
    let expected = json!([{
        "reason": "verification_command_missing_script",
        "recoveryRule": "drop_failed_command",
        "previousCommands": ["npm run lint", "npm test"],
        "nextCommands": ["npm test"],
    }]);
    assert_eq!(results(&host)["adjustments"], expected);
}

#[test]
fn nothing_is_left_to_pass() {
    let host = Host::new();
    host.write("package.json", "{}");
    host.answer_command("npm test", Ok(exited(1, "")));
    let outcome = host.execute::<Verification>(plan(with_settings(&[], |_| {}), &["npm test"]));
    let (code, reason) = reason(&outcome);
    assert_eq!((outcome.status(), code), (Status::Fail, "verification_command_missing_script"));
    assert!(reason.starts_with("no verification command is left"), "{reason}");
}

#[test]
fn falls_back_when_every_command_was_dropped() {
    let host = Host::new();
    host.write("package.json", "{}");
    host.answer_command("npm test", Ok(exited(1, "")));
    host.answer_command("cargo test", Ok(exited(0, "")));
    let settings = with_settings(&[], |told| told["worker"]["fallback"] = json!(["cargo test", "npm test"]));
    let outcome = host.execute::<Verification>(plan(settings, &["npm test"]));
    assert_eq!(outcome.status(), Status::PartialSuccess, "{outcome:?}");
    assert_eq!(host.commands(), ["npm test", "cargo test"]);
    assert!(host.started_over().is_empty(), "no order was tried twice");
}

#[test]
fn what_the_run_removed_is_not_dropped() {
    let check = |base: Value, expected: &str, ran: &[&str]| {
        let host = Host::new();
        host.write("package.json", "{}");
        host.answer_command("npm run lint", Ok(exited(1, "npm error Missing script")));
        host.answer_command("cargo test", Ok(exited(0, "")));
        let settings = with_settings(&["npm run lint"], |told| {
            told["base"]["files"] = base;
            told["worker"]["fallback"] = json!(["cargo test"]);
        });
        let outcome = host.execute::<Verification>(settings);
        assert_eq!(reason(&outcome).1, expected);
        assert_eq!(host.commands(), ran);
        results(&host)
    };
    let removed =
        "verification command failed: npm run lint (exit=1); the run removed the script `lint` of package.json";
    let had = json!({ "package.json": { "text": r#"{"scripts":{"lint":"x"}}"# } });
    for base in [had, json!({ "package.json": "absent" }), json!({ "package.json": "unreadable" })] {
        assert_eq!(check(base, removed, &["npm run lint"])["dropped_checks"], Value::Null);
    }
    // The base did not have this script either. The fallback is not a proof, and the outcome names the dropped command.
    let kept = check(json!({ "package.json": { "text": "{}" } }), "", &["npm run lint", "cargo test"]);
    assert_eq!(kept["dropped_checks"], json!(["npm run lint"]));
    assert_eq!(kept["error_meta"], Value::Null, "the failure does not stand");
}

#[test]
fn a_command_of_the_plan_alone_is_no_check_of_the_operator() {
    let host = Host::new();
    host.write("package.json", "{}");
    host.answer_command("npm run lint", Ok(exited(1, "")));
    host.answer_command("cargo test", Ok(exited(0, "")));
    let outcome = host.execute::<Verification>(plan(with_settings(&["cargo test"], |_| {}), &["npm run lint"]));
    assert_eq!(outcome.status(), Status::PartialSuccess, "{outcome:?}");
    assert_eq!(results(&host)["dropped_checks"], Value::Null);
}

#[test]
fn a_plan_that_takes_the_room_of_a_check_drops_it() {
    let dropped = |commands: &[&str]| {
        let host = Host::new();
        for command in ["test -f a", "cargo a", "cargo b"] {
            host.answer_command(command, Ok(exited(0, "")));
        }
        let settings = with_settings(&["cargo a", "cargo b"], |told| {
            told["worker"]["commands_max"] = json!(1);
            told["planner"] = json!({ "contract": ["cargo a", "cargo b"], "fallback": [], "commands_max": 1 });
        });
        let outcome = host.execute::<Verification>(plan(settings, commands));
        assert!(outcome.failure().is_none(), "{outcome:?}");
        results(&host)["dropped_checks"].clone()
    };
    assert_eq!(dropped(&["test -f a"]), json!(["cargo b"]));
    assert_eq!(dropped(&[]), Value::Null);
}

#[test]
fn keeps_a_command_that_only_a_shell_could_run_out_of_the_list() {
    let host = Host::new();
    host.answer_command("cargo test", Ok(exited(0, "")));
    let outcome = host.execute::<Verification>(plan(with_settings(&[], |_| {}), &["cargo test | tee x", "cargo test"]));
    assert_eq!(outcome.status(), Status::PartialSuccess, "{outcome:?}");
    let without = with_settings(&[], |told| told["recovers_explicit"] = json!(false));
    let outcome = Host::new().execute::<Verification>(plan(without, &["cargo test | tee x", "cargo test"]));
    assert_eq!(reason(&outcome).0, "verification_command_unsupported_format");
}

#[test]
fn makes_again_what_a_cleanup_removed() {
    let host = Host::new();
    for command in ["make build", "make clean", "make build", "make clean"] {
        host.answer_command(command, Ok(exited(0, "")));
    }
    host.answer_command("test -f dist/app", Ok(exited(1, "")));
    host.answer_command("test -f dist/app", Ok(exited(0, "")));
    let commands = ["make build", "make clean", "test -f dist/app"];
    let outcome = host.execute::<Verification>(plan(with_settings(&[], |_| {}), &commands));
    assert_eq!(outcome.status(), Status::Success, "{outcome:?}");
    let again = ["make build", "make clean", "test -f dist/app", "make build", "test -f dist/app", "make clean"];
    assert_eq!(host.commands(), again);
    assert_eq!(host.started_over(), ["make build"], "the second order begins with the files of the first");
    assert_eq!(results(&host)["adjustments"][0]["recoveryRule"], "reorder_clean_and_artifact_check");
}

#[test]
fn a_failed_test_stands() {
    let host = Host::new();
    host.write("package.json", r#"{"scripts":{"test":"x"}}"#);
    host.answer_command("npm test", Ok(exited(1, "npm error Missing script: \"test\"")));
    host.answer_command("cargo test", Ok(exited(0, "")));
    let outcome = host.execute::<Verification>(plan(with_settings(&["cargo test"], |_| {}), &["npm test"]));
    assert_eq!(reason(&outcome), ("verification_command_failed", "verification command failed: npm test (exit=1)"));
    assert_eq!(host.commands(), ["npm test"]);
    let expected = json!({
        "source": "verification",
        "failureCode": "verification_command_failed",
        "failedCommand": "npm test",
        "failedCommandSource": "explicit",
        "failedCommandStderr": "",
    });
    assert_eq!(results(&host)["error_meta"], expected);
}

#[test]
fn adjusts_no_more_often_than_allowed() {
    let host = Host::new();
    host.write("package.json", "{}");
    host.answer_command("npm run a", Ok(exited(1, "")));
    host.answer_command("npm run b", Ok(exited(1, "")));
    let settings = with_settings(&[], |told| told["recovery_attempts"] = json!(1));
    let outcome = host.execute::<Verification>(plan(settings, &["npm run a", "npm run b", "cargo test"]));
    assert_eq!(reason(&outcome).0, "verification_command_missing_script");
    assert_eq!(host.commands(), ["npm run a", "npm run b"]);
}

#[test]
fn a_command_that_a_bound_left_out_is_not_verified() {
    let host = Host::new();
    for command in ["test -f a", "cargo test"] {
        host.answer_command(command, Ok(exited(0, "")));
    }
    let settings = with_settings(&["cargo test", "cargo doc"], |told| told["worker"]["commands_max"] = json!(1));
    let outcome = host.execute::<Verification>(plan(settings, &["test -f a"]));
    assert_eq!(outcome.status(), Status::PartialSuccess, "{outcome:?}");
    assert_eq!(results(&host)["left_out"], json!(["cargo doc"]));
}

#[test]
fn tests_that_are_there_are_not_missing() {
    let check = |file: &str, expected: &str| {
        let host = Host::new();
        host.write(file, "");
        host.answer_command("pytest", Ok(exited(5, "no tests ran")));
        host.answer_command("cargo test", Ok(exited(0, "")));
        let outcome = host.execute::<Verification>(with_settings(&["pytest", "cargo test"], |_| {}));
        assert_eq!(reason(&outcome).0, expected, "{file}");
    };
    check("src/test_a.py", "verification_command_failed");
    check("tests/deep/a.py", "verification_command_failed");
    check("src/a.py", "");
}
