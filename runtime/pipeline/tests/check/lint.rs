//! Tests each rule of the table: a file that breaks the rule, the message, and that the severity is that of the table.

use super::{errors, found, line, run, with, with_graph, with_node};
use glovebox_pipeline::diagnostic::Severity;
use glovebox_pipeline::ir::Merge;
use glovebox_pipeline::lint::{RULES, Rule};
use glovebox_pipeline::{Inputs, Source, parse, validate};
use glovebox_record::scope::Entry;
use insta::assert_snapshot;
use std::collections::HashSet;

/// Returns the findings of one rule, one per line.
pub(super) fn rule(id: &str, source: &str) -> String {
    let rule = Rule::named(id).unwrap_or_else(|| panic!("no rule {id}"));
    let checked = run(source);
    let found: Vec<_> = checked.diagnostics.iter().filter(|found| found.rule == id).collect();
    assert!(found.iter().all(|found| found.severity == rule.severity && found.help.is_some()), "{id}");
    found.iter().map(|found| line(source, found)).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_table_is_sound() {
    let ids: HashSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), RULES.len(), "ids are unique");
    for rule in RULES {
        assert!(!rule.summary.is_empty() && !rule.help.is_empty(), "{}", rule.id);
    }
    for id in [
        "start_node",
        "terminal_node",
        "reachability",
        "edge_target_exists",
        "start_no_incoming",
        "exit_no_outgoing",
        "condition_syntax",
        "stylesheet_syntax",
        "fidelity_valid",
    ] {
        assert_eq!(Rule::named(id).map(|rule| rule.severity), Some(Severity::Error), "{id}");
    }
    for id in ["type_known", "retry_target_exists", "goal_gate_has_retry", "prompt_on_llm_nodes"] {
        assert_eq!(Rule::named(id).map(|rule| rule.severity), Some(Severity::Warning), "{id}");
    }
}

#[test]
fn a_clean_file_has_no_findings() {
    let checked = run(&with("n [prompt=p, allowed_write_paths=\"\"] start -> n -> exit"));
    assert!(checked.diagnostics.is_empty(), "{:?}", checked.diagnostics);
}

#[test]
fn starts_and_exits() {
    assert_snapshot!(rule("start_node", "digraph G { a exit a -> exit }"), @"start_node «G» the pipeline has no start node");
    assert_snapshot!(rule("start_node", &with("s2 [shape=Mdiamond] start -> exit s2 -> exit")), @"start_node «s2» `s2` is a second start node");
    assert_snapshot!(rule("terminal_node", "digraph G { start a start -> a }"), @"terminal_node «G» the pipeline has no exit node");
    assert_eq!(errors(&with("done [shape=Msquare] start -> exit start -> done")), "");
    assert_snapshot!(rule("start_no_incoming", &with("a [prompt=p] start -> a -> start a -> exit")), @"start_no_incoming «a -> start» the edge from `a` leads back into the start node `start`");
    assert_snapshot!(rule("exit_no_outgoing", &with("a [prompt=p] start -> exit -> a -> exit")), @"exit_no_outgoing «exit -> a» an edge leaves the exit node `exit`");
}

#[test]
fn every_node_is_declared_reached_and_left() {
    assert_snapshot!(errors(&with("implement [prompt=p] start -> implment -> exit")), @"edge_target_exists «implment» the edge leads to `implment`, which is not declared ~> «implement»");
    assert_snapshot!(errors(&with("start -> elsewhere -> exit")), @"edge_target_exists «elsewhere» the edge leads to `elsewhere`, which is not declared");
    assert_snapshot!(errors(&with("lonely [prompt=p] start -> exit")), @"reachability «lonely» no path from the start reaches `lonely`");
    assert_snapshot!(rule("orphan_node", &with("lonely [prompt=p] start -> exit")), @"orphan_node «lonely» no edge connects `lonely` to another node");
    assert_snapshot!(rule("orphan_node", &with("a b c a -> b -> c -> a start -> exit")), @"orphan_node «a» no edge connects `a`, `b` and `c` to the rest of the graph");
    assert_eq!(
        rule("reachability", &with("a b [prompt=p] start -> a [weight=1] a -> exit b -> exit a [retry_target=b]")),
        ""
    );
    assert_snapshot!(rule("exit_reachable", &with("a b start -> a -> b start -> exit")), @"exit_reachable «b» `b` has no outgoing edge: a run that reaches it fails without a route");
    assert_snapshot!(rule("exit_reachable", &with("a b start -> a -> b -> a start -> exit")), @"exit_reachable «a» the loop through `a` and `b` has no path to an exit");
    assert_snapshot!(rule("loop_without_bound", &with("a b start -> a -> b -> a b -> exit")), @"loop_without_bound «a» only the default of 200 steps stops the loop through `a` and `b`");
    assert_snapshot!(rule("loop_without_bound", &with("a start -> a -> a -> exit")), @"loop_without_bound «a» only the default of 200 steps stops the loop through `a`");
    assert_snapshot!(rule("loop_without_bound", &with("a [goal_gate=true, retry_target=start] start -> a -> exit")), @"loop_without_bound «a» only the default of 200 steps stops the loop through `a`");
    assert_eq!(rule("loop_without_bound", &with("max_steps=9 a start -> a -> a -> exit")), "");
}

#[test]
fn words_of_attributes() {
    assert_snapshot!(rule("type_known", &with_node("type=tol")), @r#"type_known «tol» `type` has the unknown value `tol` ~> «tool»"#);
    assert_snapshot!(rule("type_known", &with_node("type=\"wait.humn\"")), @r#"type_known «"wait.humn"» `type` has the unknown value `wait.humn` ~> «"wait.human"»"#);
    assert_eq!(rule("type_known", &with_node("type=\"acme.review\"")), "");
    assert_snapshot!(rule("shape_known", &with_node("shape=dimond")), @r#"shape_known «dimond» `shape` has the unknown value `dimond` ~> «diamond»"#);
    assert_eq!(rule("shape_known", &with_node("shape=ellipse, type=tool, tool_command=t")), "");
    assert_snapshot!(rule("fidelity_valid", &with_node("fidelity=ful")), @r#"fidelity_valid «ful» `fidelity` has the unknown value `ful` ~> «full»"#);
    assert_snapshot!(rule("fidelity_valid", &with_graph("default_fidelity=\"summary:huge\"")), @r#"fidelity_valid «"summary:huge"» `default_fidelity` has the unknown value `summary:huge` ~> «"summary:high"»"#);
    assert_snapshot!(rule("fidelity_valid", &with("start -> exit [fidelity=none]")), @"fidelity_valid «none» `fidelity` has the unknown value `none`");
    assert_snapshot!(rule("provider_valid", &with_node("llm_provider=antropic")), @r#"provider_valid «antropic» `llm_provider` has the unknown value `antropic` ~> «anthropic»"#);
    assert_snapshot!(rule("reasoning_effort_valid", &with_node("reasoning_effort=max")), @"reasoning_effort_valid «max» `reasoning_effort` has the unknown value `max`");
    assert_snapshot!(rule("retry_target_exists", &with_node("retry_target=stat")), @"retry_target_exists «stat» `retry_target` names `stat`, which is not declared ~> «start»");
    assert_snapshot!(rule("retry_target_exists", &with_graph("fallback_retry_target=zzz")), @"retry_target_exists «zzz» `fallback_retry_target` names `zzz`, which is not declared");
    assert_snapshot!(rule("goal_gate_has_retry", &with_node("goal_gate=true")), @"goal_gate_has_retry «n» the goal gate `n` has no `retry_target`");
    assert_eq!(rule("goal_gate_has_retry", &with_node("goal_gate=true, retry_target=n")), "");
    assert_eq!(rule("goal_gate_has_retry", &with("retry_target=n n [goal_gate=true] start -> n -> exit")), "");
    assert_snapshot!(rule("prompt_on_llm_nodes", &with("n start -> n -> exit")), @"prompt_on_llm_nodes «n» the agent stage `n` has neither `prompt` nor `label`");
    assert_snapshot!(rule("auto_status_no_effect", &with_node("auto_status=true")), @"auto_status_no_effect «true» `auto_status` of `n` has no effect");
    assert_eq!(rule("auto_status_no_effect", &with_node("auto_status=false")), "");
    assert_snapshot!(rule("attribute_known", &with_node("allowed_write_path=\"a\", node_type=x, condition=c, color=red, mine=1")), @"
    attribute_known «allowed_write_path» unknown attribute `allowed_write_path`
    attribute_known «node_type» unknown attribute `node_type`
    attribute_known «condition» `condition` has no effect on a node
    ");
    let elsewhere = with_node("node_type=\"stack.observe\", script=x, stack.child_workflow=y");
    assert_snapshot!(rule("attribute_known", &elsewhere), @"
    attribute_known «node_type» unknown attribute `node_type`
    attribute_known «script» unknown attribute `script`
    attribute_known «stack.child_workflow» unknown attribute `stack.child_workflow`
    ");
    assert_snapshot!(rule("attribute_known", &with("timeout=5s start -> exit [lable=x]")), @"
    attribute_known «timeout» `timeout` has no effect on the graph
    attribute_known «lable» unknown attribute `lable` ~> «label»
    ");
    assert_eq!(
        rule("attribute_known", &with_node("type=\"acme.x\", promt=1")),
        "",
        "a plugin's attributes are its own"
    );
    assert_snapshot!(rule("attribute_known", &with_node("type=\"acme.x\", codex.strict_readscope=true")), @"attribute_known «codex.strict_readscope» unknown attribute `codex.strict_readscope` ~> «codex.strict_read_scope»");
    assert_snapshot!(rule("attribute_known", &with_node("codex.add_dir=x, codex.sandbox=read-only, codex.model=m")), @"attribute_known «codex.add_dir» unknown attribute `codex.add_dir` ~> «codex.add_dirs»");
    assert_snapshot!(rule("attribute_known", &with_graph("codex.workdir=agent")), @"attribute_known «codex.workdir» `codex.workdir` has no effect on the graph");
    assert_snapshot!(rule("duplicate_attribute", &with_node("a=1, a=2, b=1, b=1")), @"duplicate_attribute «a=2» `a` is set twice; the later value wins");
}

#[test]
fn attributes_that_nothing_reads_are_remarked_once() {
    let unread = |source: &str| rule("attribute_unread", source);
    assert_snapshot!(unread(&with("graph [team=a] n [mine=1] m [mine=2] start -> n -> m -> exit [mine=3]")), @"
    attribute_unread «team» Glovebox does not read the attribute `team`
    attribute_unread «mine» Glovebox does not read the attribute `mine`
    attribute_unread «mine» Glovebox does not read the attribute `mine`
    ");
    assert_eq!(unread(&with("graph [team=a, goal=\"for $team\"] start -> exit")), "", "an input");
    assert_eq!(unread(&with_node("type=\"acme.review\", mine=1")), "", "a plugin's");
    assert_eq!(unread(&with_node("promt=1, env_MODE=x, fontsize=9, \"codex.of_its_own\"=1")), "");
}

#[test]
fn retry_targets_that_nothing_jumps_to() {
    let unused = |body: &str| rule("unused_retry_target", &with(&format!("graph [max_steps=9] p [prompt=p] {body}")));
    let tool = |attributes: &str, edges: &str| {
        unused(&format!("t [type=tool, tool_command=t, {attributes}] start -> p -> t {edges}"))
    };
    let both = "t -> exit [condition=\"outcome=success\"] t -> p [condition=\"outcome=fail\"]";
    assert_snapshot!(tool("retry_target=p", both), @"unused_retry_target «p» this `retry_target` has no effect: a failure edge of `t` always takes precedence");
    assert_snapshot!(tool("retry_target=p, fallback_retry_target=p", "t -> exit"), @"unused_retry_target «p» this `fallback_retry_target` has no effect: `retry_target` takes precedence and names `p`");
    assert_eq!(tool("fallback_retry_target=p, retry_target=gone", "t -> exit"), "", "the first names nothing");
    assert_eq!(tool("retry_target=p, goal_gate=true", both), "", "an unmet gate jumps");
    assert_eq!(tool("retry_target=p", "t -> exit t -> p [condition=\"outcome=fail && context.x=1\"]"), "");
    assert_eq!(tool("retry_target=p", "t -> exit t -> p [condition=\"context.x=1\"]"), "", "no fail edge");
    assert_snapshot!(unused("g [shape=diamond, retry_target=p] start -> p -> g -> exit"), @"unused_retry_target «p» this `retry_target` has no effect: `g` only passes an outcome on and cannot fail itself");
    assert_snapshot!(unused("retry_target=p start -> p -> exit"), @"unused_retry_target «p» this `retry_target` has no effect: targets on the graph are used only for unmet goal gates, and no node is a goal gate");
    assert_eq!(unused("retry_target=p q [goal_gate=true] start -> p -> q -> exit"), "");
    assert_snapshot!(unused("retry_target=p q [goal_gate=true, retry_target=q] start -> p -> q -> exit"), @"unused_retry_target «p» this `retry_target` has no effect: every goal gate has a target of its own");
    assert_eq!(
        unused("node [retry_target=p] g [shape=diamond] q start -> p -> q -> g -> exit"),
        "",
        "one of them uses it"
    );
}

#[test]
fn edges_for_a_retry_that_no_run_takes() {
    let found = |body: &str| rule("retry_edge_never_taken", &with(&format!("graph [max_steps=9] p [prompt=p] {body}")));
    let stage = |attributes: &str| {
        found(&format!("a [prompt=a, {attributes}] start -> a -> exit a -> p [condition=\"outcome=retry\"] p -> exit"))
    };
    assert_snapshot!(stage("allow_partial=true"), @"retry_edge_never_taken «a -> p» `a` never ends with `outcome=retry`: after the last retry, `allow_partial` makes it `partial_success`");
    assert_eq!(stage("max_retries=2"), "");
    let other = "a [prompt=a, allow_partial=true] start -> a -> exit a -> p [condition=\"outcome!=success\"] p -> exit";
    assert_eq!(found(other), "", "a failure takes it too");
    let gate = "h [shape=hexagon] start -> h h -> exit [label=yes] h -> p [condition=\"outcome=retry\"] p -> exit";
    assert_snapshot!(found(gate), @"retry_edge_never_taken «h -> p» `h` never ends with `outcome=retry`: it never asks for a retry");
}

#[test]
fn guardrails() {
    assert_snapshot!(rule("write_scope_missing", &with("a b start -> a -> b -> exit")), @"write_scope_missing «a» `a` and `b` may write every file in the workspace");
    let mut draft = parse(Source::new(&with("a start -> a -> exit"))).lower(&Inputs::default());
    draft.pipeline.sources = ["app/", "main.py"].map(|path| Entry::parse(path).unwrap()).to_vec();
    let found = validate(draft).diagnostics.into_iter().find(|found| found.rule == "write_scope_missing").unwrap();
    assert!(found.help.unwrap().starts_with("add `allowed_write_paths=\"app/,main.py\"`"));
    assert_eq!(rule("write_scope_missing", &with("a [type=\"acme.x\"] start -> a -> exit")), "");
    assert_snapshot!(rule("path_pattern", &with_node("read_paths=\"src/**/*.rs\"")), @r#"path_pattern «"src/**/*.rs"» `src/**/*.rs` in `read_paths` is a file name here, not a pattern"#);
    assert_snapshot!(rule("path_pattern", &with_node("cache=\"*/target/\"")), @r#"path_pattern «"*/target/"» `*/target/` in `cache` is a file name here, not a pattern"#);
    assert_snapshot!(rule("read_scope_workdir", &with_node("codex.strict_read_scope=true, codex.add_dirs=docs")), @"read_scope_workdir «true» `n` sees only `codex.add_dirs` and its write scope");
    assert_eq!(rule("read_scope_workdir", &with_node("codex.strict_read_scope=true, codex.workdir=\".\"")), "");
    assert_eq!(rule("read_scope_workdir", &with_node("codex.strict_read_scope=false")), "");
    assert_snapshot!(rule("tool_command_required", &with("n [shape=parallelogram] start -> n -> exit")), @"tool_command_required «n» the tool stage `n` has no `tool_command`");
    assert_snapshot!(rule("tool_command_required", &with("n [type=tool, tool_command=\" \"] start -> n -> exit")), @"tool_command_required «n» the tool stage `n` has no `tool_command`");
    assert_snapshot!(rule("command_required", &with("n [shape=octagon] start -> n -> exit")), @"command_required «n» the verify stage `n` has no `command`");
    assert_eq!(rule("command_required", &with("n [shape=octagon, command=\"cargo test\"] start -> n -> exit")), "");
    assert_snapshot!(rule("allow_list_missing", &with("n [type=verification] start -> n -> exit")), @"allow_list_missing «n» verification.allowed_commands is required: `n` fails without it");
    // With an empty list, the author says that no plan may contain a command.
    for list in ["make", "\" \""] {
        let stage = format!("n [type=verification, verification.allowed_commands={list}] start -> n -> exit");
        assert_eq!(rule("allow_list_missing", &with(&stage)), "", "{list}");
    }
}

#[test]
fn working_directories_stay_in_the_workspace() {
    let verify = |path: &str| {
        let node = format!("n [shape=octagon, command=\"true\", working_dir=\"{path}\"]");
        rule("working_dir_inside", &with(&format!("{node} start -> n -> exit")))
    };
    for inside in ["", ".", "sub", "./sub/", "a..b/größe"] {
        assert_eq!(verify(inside), "", "{inside}");
    }
    for outside in ["/tmp", "..", "a/../b", "~/x"] {
        assert!(verify(outside).contains("outside the workspace"), "{outside}");
    }
}

/// Checks the message of the guardrail about a tool command, without its fixed beginning.
#[track_caller]
fn check_guard(command: &str, expected: &str) {
    let source = with(&format!("n [shape=parallelogram, tool_command=\"{command}\"] start -> n -> exit"));
    let message = run(&source)
        .diagnostics
        .iter()
        .find(|found| found.rule == "tool_command_guard")
        .map(|found| found.message.clone());
    let expected = (!expected.is_empty()).then(|| format!("tool_command rejected by guardrail: contains {expected}"));
    assert_eq!(message, expected, "{command}");
}

#[test]
fn tool_commands_stay_in_the_workspace() {
    check_guard("go test ./...", "");
    check_guard("cargo test --workspace && echo ok", "");
    check_guard("cat a/b..c", "");
    check_guard("cat ~/x", "~");
    check_guard("cat ../secret", "..");
    check_guard("cat a/../../b", "..");
    check_guard("cp --from=../x y", "..");
    check_guard("cat /etc/passwd", "absolute path");
    check_guard("cat '/etc/passwd'", "absolute path");
    check_guard("cd .. && ls", "..");
    let elsewhere = with("n [type=\"acme.x\", tool_command=\"cat /etc\"] start -> n -> exit");
    assert_eq!(rule("tool_command_guard", &elsewhere), "");
}

#[test]
fn routes() {
    let tool = |edges: &str| {
        with(&format!("t [shape=parallelogram, tool_command=t] f [prompt=p] g [shape=diamond] start -> t {edges}"))
    };
    assert_snapshot!(rule("no_failure_route", &tool("t -> f [condition=\"outcome=success\"] f -> exit start -> g -> exit")), @"no_failure_route «t» if `t` fails, the run stops: none of its edges holds for `outcome=fail`");
    for edges in [
        "t -> exit",
        "t -> exit [condition=\"outcome=success\"] t -> f [condition=\"outcome=fail\"]",
        "t -> exit [condition=\"outcome=success\"] t -> f [condition=\"outcome!=success && context.x=1\"]",
        "t -> exit [condition=\"outcome=success\"] t -> g",
        "t [retry_target=f] t -> exit [condition=\"outcome=success\"]",
        "t -> exit [condition=\"context.x=1\"]",
        "t -> exit [condition=\"outcome=success\"]",
    ] {
        assert_eq!(rule("no_failure_route", &tool(edges)), "", "{edges}");
    }
    let gap = |edges: &str| rule("all_conditional_edges", &tool(&format!("{edges} start -> f -> exit t -> g")));
    assert_snapshot!(gap("g -> exit [condition=\"outcome=success\"]"), @"all_conditional_edges «g» every edge of `g` has a condition, and `outcome=fail` may match none of them");
    assert_snapshot!(gap("g -> exit [condition=\"context.x=1\"] g -> f [condition=\"context.x=2\"]"), @"all_conditional_edges «g» every edge of `g` has a condition, and `outcome=success` may match none of them");
    assert_eq!(gap("g -> exit [condition=\"outcome=success\"] g -> f [condition=\"outcome!=success\"]"), "");
    assert_eq!(gap("g -> exit [condition=\"context.x=1\"] g -> f [condition=\"context.x!=1\"]"), "");
    assert_eq!(gap("g -> exit [condition=\"context.x=1\"] g -> f"), "");
    assert_eq!(
        gap("g -> exit [condition=\"context.x\"] g -> f [condition=\"context.x=\\\"\\\"\"] g -> f [condition=\"x=2\"]"),
        ""
    );
    let labels = "h -> exit [condition=\"preferred_label=Ship\"] h -> f [condition=\"preferred_label=Fix\"]";
    let gate = |shape: &str| {
        rule("all_conditional_edges", &with(&format!("h [shape={shape}] f {labels} start -> h f -> exit")))
    };
    assert_eq!(gate("hexagon"), "", "an answer that fits no label is asked for again");
    assert_snapshot!(gate("box"), @"all_conditional_edges «h» every edge of `h` has a condition, and `outcome=success` may match none of them");
    assert_snapshot!(rule("edge_to_exit_on_failure", &tool("t -> exit [condition=\"outcome=fail\"] t -> f -> exit")), @"edge_to_exit_on_failure «t -> exit» if `t` fails, the run ends as a success at `exit`");
    assert_snapshot!(rule("edge_to_exit_on_failure", &tool("t -> exit [condition=\"outcome=retry\"] t -> f -> exit")), @"edge_to_exit_on_failure «t -> exit» if `t` fails, the run ends as a success at `exit`");
    assert_eq!(rule("edge_to_exit_on_failure", &tool("t -> exit [condition=\"outcome=success\"] t -> f -> exit")), "");
    assert_snapshot!(rule("default_ignored", &tool("t -> exit [condition=\"outcome=success\", default=true]")), @"default_ignored «t -> exit» `default=true` has no effect on an edge with a condition");
}

#[test]
fn what_a_run_would_not_enforce_is_said() {
    let source = with(
        "graph [max_budget_usd=5] \
         n [prompt=p, agent.name=s, max_tokens=9, requires_tool_success=false, codex.strict_read_scope=true, codex.workdir=a, codex.profile=p] \
         h [shape=hexagon] v [shape=octagon, command=c] \
         start -> n -> h -> v -> exit",
    );
    assert_snapshot!(rule("not_enforced", &source), @r#"
    not_enforced «agent.name=s» this version does not enforce `agent.name`
    not_enforced «codex.profile=p» this version does not enforce `codex.profile`
    "#);
    let pipeline = run(&source).pipeline.unwrap_or_else(|| panic!("{}", errors(&source)));
    let listed = glovebox_pipeline::lint::not_enforced(&pipeline);
    assert_eq!(listed.len(), rule("not_enforced", &source).lines().count());
}

#[test]
fn every_known_name_is_enforced_or_refused_by_name() {
    use glovebox_pipeline::attributes::{ATTRIBUTES, Carrier, instead_of};
    use glovebox_pipeline::key::Key;
    let asked: &[&str] =
        &["codex.profile", "codex.auto_approve_commands", "codex.of_its_own", "agent.name", "loop_detection_window"];
    assert!(asked.iter().all(|name| instead_of(Key::new(name)).is_some_and(|instead| !instead.is_empty())));
    let enforced = [
        "prompt",
        "timeout",
        "fidelity",
        "thread_id",
        "default_fidelity",
        "allowed_write_paths",
        "codex.workdir",
        "agent.backend",
        "codex.sandbox",
        "max_turns",
        "status_file",
        "stall_timeout_ms",
        "stall_check_interval_ms",
        "limits.wall_ms",
        "test.outcome",
    ];
    assert!(enforced.iter().chain(&["acme.colour", "colour"]).all(|name| instead_of(Key::new(name)).is_none()));
    for known in ATTRIBUTES.iter().filter(|known| known.instead.is_some()) {
        let (name, value) = (known.key, "9");
        let source = match known.on[0] {
            Carrier::Graph => with_graph(&format!("\"{name}\"=\"{value}\"")),
            Carrier::Node => with_node(&format!("\"{name}\"=\"{value}\"")),
            Carrier::Edge => with(&format!("n start -> n -> exit [\"{name}\"=\"true\"]")),
        };
        // A value of the wrong form is an error in any case.
        let Some(pipeline) = run(&source).pipeline else { continue };
        let found = glovebox_pipeline::lint::not_enforced(&pipeline);
        assert!(
            found.iter().any(|found| found.message.starts_with(&format!("this version does not enforce `{name}`"))),
            "{name}"
        );
    }
}

#[test]
fn what_is_not_enforced_is_reported_once_for_each_name() {
    let nodes: String = (0..9).map(|n| format!("n{n} [prompt=p, agent.name=t] ")).collect();
    let chain: String = (0..9).map(|n| format!("-> n{n} ")).collect();
    let source = with(&format!(
        "node [loop_detection_window=5] p [type=tool, tool_command=c] q [type=tool, tool_command=c] {nodes} start -> p -> q {chain} -> exit"
    ));
    assert_snapshot!(rule("not_enforced", &source), @"
    not_enforced «loop_detection_window=5» this version does not enforce `loop_detection_window`: 11 uses, on `p`, `q`, `n0` and 8 more
    not_enforced «agent.name=t» this version does not enforce `agent.name`: 9 uses, on `n0`, `n1`, `n2` and 6 more
    ");
}

#[test]
fn every_finding_stands_in_the_table() {
    let sources = [
        with("a-b -- c"),
        with_node("timeout=x, limits.z=1"),
        with_graph("model_stylesheet=\"x\""),
        with("start -> exit [condition=\"a==b\"]"),
        with("subgraph s { timeout=\"5s\" a [prompt=x] } start -> a -> exit"),
    ];
    for source in sources {
        for found in run(&source).diagnostics {
            assert!(Rule::named(&found.rule).is_some_and(|rule| rule.severity == found.severity), "{}", found.rule);
        }
        assert_ne!(found(&source, Severity::Error), "");
    }
}

#[test]
fn a_start_drawn_as_a_circle_is_one() {
    let drawn = "digraph G { start [shape=circle] n [prompt=p, allowed_write_paths=\"\"] done [shape=doublecircle] start -> n -> done }";
    assert!(run(drawn).diagnostics.is_empty(), "{:?}", run(drawn).diagnostics);
    assert_snapshot!(rule("start_node", &drawn.replace("circle]", "box]")), @"start_node «G» the pipeline has no start node");
}

#[test]
fn an_undeclared_start_is_one_mistake() {
    assert_snapshot!(errors("digraph G { start -> exit }"), @"
    edge_target_exists «start» the edge comes from `start`, which is not declared
    edge_target_exists «exit» the edge leads to `exit`, which is not declared
    ");
    let help: Vec<_> =
        run("digraph G { start -> exit }").diagnostics.into_iter().filter_map(|found| found.help).collect();
    assert_eq!(help, ["declare it: `start [shape=Mdiamond]`", "declare it: `exit [shape=Msquare]`"]);
}

#[test]
fn a_parallel_node_without_a_fan_in_gets_one_where_its_branches_meet() {
    let text = "f [shape=component] a [prompt=p] b [prompt=p] more [prompt=p] both [prompt=p] start -> f f -> a f -> b a -> more \
                more -> both b -> both both -> f both -> exit";
    let checked = run(&with(text));
    assert!(
        rule("parallel_join_added", &with(text))
            .contains("meet at `both`, which is not a fan-in: Glovebox adds the fan-in `join_f` before it")
    );
    let pipeline = checked.pipeline.expect("a pipeline");
    let join = pipeline.node(&"join_f".into()).expect("the fan-in");
    assert!(join.handler.is_fan_in() && join.parallel.merge == Merge::All);
    let edges: Vec<String> = pipeline.edges.iter().map(|edge| format!("{} -> {}", edge.from, edge.to)).collect();
    for edge in ["more -> join_f", "b -> join_f", "join_f -> both", "both -> f"] {
        assert!(edges.contains(&edge.to_owned()), "{edge}: {edges:?}");
    }
    // A branch that can end at another node is a mistake, and the message says where the fan-in belongs.
    let elsewhere = run(&with(&format!("{text} a -> exit [condition=\"outcome=fail\"]")));
    let parallel = elsewhere.diagnostics.iter().find(|found| found.rule == "parallel_join").expect("a finding");
    let help = parallel.help.as_deref().expect("help");
    assert!(
        help.contains("meet at `both`: add `join_f [shape=tripleoctagon, merge=all]` and `join_f -> both`"),
        "{help}"
    );
    assert!(rule("parallel_join_added", &with(&format!("{text} a -> exit [condition=\"outcome=fail\"]"))).is_empty());
}

#[test]
fn nested_parallel_nodes_get_their_fan_ins_from_the_inside() {
    let text = "f [shape=component] g [shape=component] a [prompt=p] b [prompt=p] c [prompt=p] in [prompt=p] out [prompt=p] \
                join_g [prompt=p] start -> f f -> g f -> c g -> a g -> b a -> in b -> in in -> out c -> out out -> join_g \
                join_g -> exit";
    let checked = run(&with(text));
    let edges: Vec<String> = checked
        .pipeline
        .expect("a pipeline")
        .edges
        .iter()
        .map(|edge| format!("{} -> {}", edge.from, edge.to))
        .collect();
    for edge in ["a -> join_g_2", "b -> join_g_2", "join_g_2 -> in", "in -> join_f", "c -> join_f", "join_f -> out"] {
        assert!(edges.contains(&edge.to_owned()), "{edge}: {edges:?}");
    }
}

#[test]
fn a_parallel_node_repeats_nothing_and_says_so_unless_a_defaults_block_asks() {
    let ends = "a [prompt=p, allowed_write_paths=\"\"]; b [prompt=p, allowed_write_paths=\"\"]; start -> f -> a -> j; f -> b -> j; j -> exit";
    let policy = |text: &str| {
        let found = run(&with(&format!("{text} {ends}"))).diagnostics;
        found.into_iter().filter(|found| found.rule == "parallel_policy").map(|found| found.message).collect::<Vec<_>>()
    };
    let of = |key: &str, node: &str| vec![format!("`{key}` has no effect on the {node}, which makes no attempts")];
    let parallel = "f [shape=component, max_retries=2] j [shape=tripleoctagon]";
    assert_eq!(policy(parallel), of("max_retries", "parallel node `f`"));
    let preset = "f [shape=component, retry_policy=patient] j [shape=tripleoctagon]";
    assert_eq!(policy(preset), of("retry_policy", "parallel node `f`"));
    let join = "f [shape=component] j [shape=tripleoctagon, max_retries=1]";
    assert_eq!(policy(join), of("max_retries", "fan-in without a prompt `j`"));
    for fine in [
        "node [max_retries=2] f [shape=component] j [shape=tripleoctagon]",
        "f [shape=component, max_retries=0] j [shape=tripleoctagon, prompt=\"Which?\", allowed_write_paths=\"\", max_retries=1]",
    ] {
        assert_eq!(policy(fine), Vec::<String>::new(), "{fine}");
    }
}
