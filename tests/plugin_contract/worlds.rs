//! The checks of tool providers and policies, and what a signal leaves.

use super::*;

#[test]
fn hostile_tool_providers_and_policies_fail_their_checks() {
    let check = |component: &[u8], failed: &[&str]| {
        let (answer, report) = tested(component, &[]);
        answer.ends(if failed.is_empty() { 0 } else { 7 });
        assert_eq!(names(&report, "failed"), failed, "{report:#}");
    };
    let listed = |schema: &str| guests::tools(&[("find", "", schema)]) + "(func $definitions (call $listed))";
    let (any, needs) =
        (r#"{"type":"object"}"#, r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}"#);
    let provider = |fields: String| guests::provider(&fields);
    check(&provider(listed(needs) + "(func $call (call $fails))"), &[]);
    check(&provider("(func $definitions) (func $call)".to_owned()), &["tools.list"]);
    check(&provider("(func $definitions unreachable) (func $call)".to_owned()), &["tools.list", "tools.same"]);
    check(&provider(listed("[]") + "(func $call)"), &["tools.list"]);
    check(&provider(listed(any) + "(func $call unreachable)"), &["tools.ends", "tools.odd"]);
    let import = "(import \"glovebox:plugin/tools@0.1.0\" \"available\" (func $available (param i32)))";
    let uses = format!("{import}{}(func $call (call $available (i32.const 128)))", listed(any));
    check(&provider(uses), &["contract.imports"]);
    check(&guests::policy("(func $judge_call (call $refuse (i32.const 0) (i32.const 4))) (func $judge_edge)"), &[]);
    let traps = "(func $judge_call) (func $judge_edge unreachable)";
    check(&guests::policy(traps), &["policy.answers", "policy.odd"]);
    let text = "(data (i32.const 1024) \"null\")";
    let odd = format!(
        "{text}(func $judge_call (if (i32.eqz (call $asks (i32.const 1024) (i32.const 1))) (then unreachable))) (func $judge_edge)"
    );
    check(&guests::policy(&odd), &["policy.odd"]);
}

/// A test takes long, so people end it with Ctrl-C.
#[test]
fn a_signal_leaves_no_folder() {
    let bench = bench(&wanting(&guests::component("(func $execute (loop $again (br $again)))"), NOTHING));
    let temporary = bench.outside().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let folders = || temporary.read_dir().unwrap().count();
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let mut command = bench.bare(&["plugin", "test", "guest.wasm", "--wall-time", "60s"]);
        command.env("TMPDIR", &temporary).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        while folders() == 0 {
            assert!(child.try_wait().unwrap().is_none(), "the test ended before it made a folder");
            std::thread::sleep(Duration::from_millis(5));
        }
        Answer::of(Command::new("kill").arg(signal).arg(child.id().to_string())).ends(0);
        Answer::from_child(child).ends(code);
        assert_eq!(folders(), 0, "{signal}");
    }
}
