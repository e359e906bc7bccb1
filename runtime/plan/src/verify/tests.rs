//! Which commands a contract and the modes select, and which contracts are refused.

use super::settings::{Part, SETTINGS, Setting};
use super::*;
use glovebox_record::no_change::Confirmation;
use std::collections::BTreeMap;

const CONTRACT: &str = r#"{
  "commands": ["pnpm run check"],
  "byRole": {"tester": ["pnpm run test", "pnpm run check"]},
  "rules": [
    {"whenChangedAny": ["apps/api/**", "*.md"], "commands": ["pnpm --filter @openTiger/api test"]},
    {"whenChangedAll": ["go.mod", "go.sum"], "commands": ["go mod verify"]}
  ]
}"#;

fn base() -> ContextBase {
    ContextBase { files: BTreeMap::new(), has_tests: false }
}

fn verify(mode: Mode) -> Verify {
    let contract = Some(Arc::new(Contract::parse(CONTRACT).unwrap()));
    let phase = |mode| Phase { mode, contract: contract.clone(), ..Phase::default() };
    let fallback = vec![DirectCommand::parse("npm test").unwrap()];
    Verify { planner: phase(Mode::Off), worker: phase(mode), fallback, ..Verify::default() }
}

#[test]
fn selects_by_role_and_change() {
    let check = |role: Option<&'static str>, changed: &[&str], expected: &[&str]| {
        let verify = verify(Mode::Contract);
        assert_eq!(
            verify.told(role.map(Role), &changed.iter().copied().collect(), base()).worker.contract,
            expected,
            "{changed:?}"
        );
    };
    check(None, &[], &["pnpm run check"]);
    check(Some("tester"), &[], &["pnpm run check", "pnpm run test"]);
    check(Some("other"), &["src/a.ts"], &["pnpm run check"]);
    let api = "pnpm --filter @openTiger/api test";
    check(None, &["apps/api/src/deep/a.ts", "go.mod"], &["pnpm run check", api]);
    check(None, &["README.md"], &["pnpm run check", api]);
    check(None, &["docs/a.md", "apps/apis/a"], &["pnpm run check"]);
    check(None, &["go.sum", "go.mod"], &["pnpm run check", "go mod verify"]);
}

#[test]
fn each_mode_has_its_sources() {
    let check = |mode: Mode, contract: usize, fallback: usize, needs_plan: bool| {
        let verify = verify(mode);
        let told = verify.told(None, &BTreeSet::new(), base());
        assert_eq!(
            (told.worker.contract.len(), told.worker.fallback.len(), told.needs_plan),
            (contract, fallback, needs_plan)
        );
        let lines: Vec<&str> = verify.commands(None).iter().map(|command| command.line.as_str()).collect();
        assert_eq!(
            lines.contains(&"go mod verify"),
            contract > 0,
            "a rule's commands are granted before it is known to hold"
        );
        assert_eq!(lines.contains(&"npm test"), fallback > 0);
    };
    check(Mode::Off, 0, 0, true);
    check(Mode::Fallback, 0, 1, false);
    check(Mode::Contract, 1, 0, false);
    check(Mode::Llm, 0, 0, true);
    check(Mode::Hybrid, 1, 1, false);
}

/// The modes decide which commands are added to a plan. A stage without a plan runs the commands that either phase adds.
#[test]
fn a_plan_is_needed_where_nothing_is_added() {
    for planner in Mode::ALL {
        for worker in Mode::ALL {
            let phase = |mode| Phase { mode, ..Phase::default() };
            let verify = Verify { planner: phase(planner), worker: phase(worker), ..Verify::default() };
            let adds_nothing = [planner, worker].iter().all(|mode| matches!(mode, Mode::Off | Mode::Llm));
            let needs_plan = verify.told(None, &BTreeSet::new(), base()).needs_plan;
            assert_eq!(needs_plan, adds_nothing, "{planner} {worker}");
        }
    }
}

#[test]
fn refuses_a_contract_with_its_place() {
    let check = |text: &str, expected: &str| {
        let problem = Contract::parse(text).unwrap_err().to_string();
        assert!(problem.starts_with(expected), "{problem}");
    };
    check(r#"{"commands": ["a && b"]}"#, "`commands[0]`: verification_command_unsupported_format: `&` needs a shell");
    check(
        r#"{"commands": ["a 'b | c'"]}"#,
        "`commands[0]`: verification_command_unsupported_format: `|` in an argument",
    );
    check(r#"{"byRole": {"tester": ["a", ""]}}"#, "`byRole.tester[1]`: the command is empty");
    check(r#"{"commands": ["CI=1 a"]}"#, "`commands[0]`: the command begins with the assignment `CI=1`");
    check(r#"{"rules": [{"commands": ["a"]}]}"#, "`rules[0]`: expected `whenChangedAny` or `whenChangedAll`");
    check(
        r#"{"rules": [{"whenChangedAny": ["../a"], "commands": []}]}"#,
        "`rules[0].whenChangedAny[0]`: expected a pattern",
    );
    check(r#"{"rules": [{"whenChangedAny": ["a["], "commands": []}]}"#, "`rules[0].whenChangedAny[0]`: unclosed");
    check(r#"{"visualProbes": []}"#, "`visualProbes`: this version makes no pictures");
    check(r#"{"command": ["a"]}"#, "unknown field `command`");
    check("{", "EOF while parsing");
    let many = format!(r#"{{"commands": [{}]}}"#, vec![r#""a""#; 201].join(","));
    check(&many, "`commands`: 201 entries, expected at most 200");
}

#[test]
fn every_setting_has_an_effect_and_refuses_what_it_does_not_know() {
    for setting in SETTINGS {
        let values = ["off", "contract.json", "1", "3", "true", "false"];
        let changes = |value: &&str| {
            let mut verify = Verify::default();
            setting.apply(&mut verify, value).is_ok() && verify != Verify::default()
        };
        assert!(values.iter().any(changes), "{}", setting.variable);
        let refused = setting.apply(&mut Verify::default(), "\u{1}").is_err() || setting.field == "contract";
        assert!(refused, "{}", setting.variable);
    }
    assert_eq!(
        Setting::of_field(Part::Worker, "mode").map(|setting| setting.variable),
        Some("WORKER_AUTO_VERIFY_MODE")
    );
}

#[test]
fn numbers_and_words_have_bounds() {
    let check = |field: &str, good: &[&str], bad: &[&str]| {
        let setting = Setting::of_field(Part::Worker, field).unwrap();
        for value in good {
            assert_eq!(setting.apply(&mut Verify::default(), value), Ok(()), "{field} {value}");
        }
        for value in bad {
            let refused = setting.apply(&mut Verify::default(), value).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("`{value}` is ")), "{refused}");
        }
    };
    check("plan_timeout_seconds", &["1", " 3600 "], &["0", "3601", "-1", "1.5", ""]);
    check("reconcile_timeout_seconds", &["180"], &["0", "1h"]);
    check("plan_parse_retries", &["0", "10"], &["11", "two"]);
    check("no_change_recovery_attempts", &["0", "100"], &["101", "-1"]);
    check("no_change_confirm_mode", &["verify", "OFF", "strict", "none"], &["on", "maybe", ""]);
}

#[test]
fn one_of_the_settings_for_no_change_brings_the_default_of_the_other() {
    let set = |field: &str, value: &str| {
        let mut verify = Verify::default();
        Setting::of_field(Part::Worker, field).unwrap().apply(&mut verify, value).unwrap();
        verify.no_change.map(|setting| (setting.recovery_attempts, setting.confirm))
    };
    assert_eq!(set("no_change_confirm_mode", "off"), Some((5, Confirmation::Off)));
    assert_eq!(set("no_change_recovery_attempts", "2"), Some((2, Confirmation::Verify)));
    assert_eq!(Verify::default().no_change, None);
}

#[test]
fn questions_for_a_plan_have_the_lower_time_of_the_phases_that_ask() {
    let questions = |planner: (Mode, u32), worker: (Mode, u32), retries: u32| {
        let phase = |(mode, plan_timeout_seconds)| Phase { mode, plan_timeout_seconds, ..Phase::default() };
        let plan_parse_retries = retries;
        let verify = Verify { planner: phase(planner), worker: phase(worker), plan_parse_retries, ..Verify::default() };
        verify.questions().map(|questions| (questions.plan_seconds, questions.may_be_empty))
    };
    assert_eq!(questions((Mode::Llm, 30), (Mode::Hybrid, 20), 2), Some((20, true)));
    assert_eq!(questions((Mode::Llm, 10), (Mode::Llm, 20), 1), Some((10, false)));
    assert_eq!(questions((Mode::Hybrid, 30), (Mode::Contract, 20), 1), Some((30, true)));
    assert_eq!(questions((Mode::Off, 30), (Mode::Hybrid, 20), 1), None, "no agent is asked for a plan at all");
    assert_eq!(questions((Mode::Llm, 30), (Mode::Llm, 20), 0), None);
}

#[test]
fn nothing_that_verifies_is_dropped_in_silence() {
    let check = |text: &str, expected: &str| {
        let found = Contract::parse(text).map(drop).map_err(|problem| problem.to_string());
        match expected {
            "" => assert_eq!(found, Ok(()), "{text}"),
            expected => assert!(found.as_ref().is_err_and(|found| found.contains(expected)), "{text}: {found:?}"),
        }
    };
    check(r#"{"byRole": {"a": ["x"], "b": ["x"]}}"#, "");
    check(r#"{"byRole": {"a": ["false"], "a": ["true"]}}"#, "`byRole` has the role `a` twice");
    let pattern = |pattern: &str| format!(r#"{{"rules": [{{"whenChangedAny": ["{pattern}"], "commands": ["x"]}}]}}"#);
    for fine in ["src/**", "*.md", "{src/**,docs/a.md}", "[!a]*/b"] {
        check(&pattern(fine), "");
    }
    check(&pattern("src/"), "`rules[0].whenChangedAny[0]`: a pattern matches files, not folders: write `src/**`");
    for never in ["./src/**", "src//a", " src/**", "src/** ", "/src", "../src", "!src", "~/src", "src/./a", "", "/"] {
        check(&pattern(never), "expected a pattern of paths below the project");
    }
    check(&pattern(r"src\\a"), "expected a pattern of paths below the project");
}

/// The library that parses patterns panics for some patterns, and overflows the stack for others.
#[test]
fn a_pattern_that_nobody_could_read_is_refused() {
    for depth in [9, 5_000, 60_000] {
        let pattern = format!("{}a{}", "{".repeat(depth), "}".repeat(depth));
        let text = format!(r#"{{"rules": [{{"whenChangedAny": ["{pattern}"], "commands": ["x"]}}]}}"#);
        let found = Contract::parse(&text).unwrap_err().to_string();
        assert!(found.contains("8 nested braces"), "{found}");
    }
}
