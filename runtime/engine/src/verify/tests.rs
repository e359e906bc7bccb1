//! Which commands a contract and the modes select, and what is refused.

use super::settings::{Part, SETTINGS, Setting};
use super::*;

const CONTRACT: &str = r#"{
  "commands": ["pnpm run check"],
  "byRole": {"tester": ["pnpm run test", "pnpm run check"]},
  "rules": [
    {"whenChangedAny": ["apps/api/**", "*.md"], "commands": ["pnpm --filter @openTiger/api test"]},
    {"whenChangedAll": ["go.mod", "go.sum"], "commands": ["go mod verify"]}
  ]
}"#;

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
            verify.told(role.map(Role), &changed.iter().copied().collect()).worker.contract,
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
        let told = verify.told(None, &BTreeSet::new());
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
fn every_setting_has_an_effect_or_is_refused() {
    for setting in SETTINGS {
        let values = ["off", "contract.json", "2", "true", "false"];
        let changes = |value: &&str| {
            let mut verify = Verify::default();
            setting.apply(&mut verify, value).is_ok() && verify != Verify::default()
        };
        assert_eq!(values.iter().any(changes), setting.is_followed(), "{}", setting.variable);
        let refused = setting.apply(&mut Verify::default(), "\u{1}").is_err() || setting.field == "contract";
        assert!(refused, "{}", setting.variable);
    }
    assert_eq!(
        Setting::of_field(Part::Worker, "mode").map(|setting| setting.variable),
        Some("WORKER_AUTO_VERIFY_MODE")
    );
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
    check(&pattern("src/"), "`rules[0].whenChangedAny[0]`: a folder does not change, its files do: `src/**`");
    for never in ["./src/**", "src//a", " src/**", "src/** ", "/src", "../src", "!src", "~/src", "src/./a", "", "/"] {
        check(&pattern(never), "expected a pattern of paths below the project");
    }
    check(&pattern(r"src\\a"), "expected a pattern of paths below the project");
}

/// The library that reads patterns panics over some, and overflows the stack over others.
#[test]
fn a_pattern_that_nobody_could_read_is_refused() {
    for depth in [9, 5_000, 60_000] {
        let pattern = format!("{}a{}", "{".repeat(depth), "}".repeat(depth));
        let text = format!(r#"{{"rules": [{{"whenChangedAny": ["{pattern}"], "commands": ["x"]}}]}}"#);
        let found = Contract::parse(&text).unwrap_err().to_string();
        assert!(found.contains("8 braces within each other"), "{found}");
    }
}
