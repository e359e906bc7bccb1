//! Tests that attributes are converted from text to types: values, defaults, scopes, classes, handlers, inputs.

use super::lint::rule;
use super::{accept, edge, errors, found, line, lowered, node, with, with_graph, with_node};
use glovebox_pipeline::Source;
use glovebox_pipeline::ir::{Backoff, CacheFrom, Confinement, Handler, JoinPolicy, NodeId};
use glovebox_pipeline::key;
use glovebox_pipeline::{Inputs, check, dot, lower};
use glovebox_record::Network;
use glovebox_record::scope::Entry;
use insta::assert_snapshot;
use std::time::Duration;

fn entries(texts: &[&str]) -> Vec<Entry> {
    texts.iter().map(|text| Entry::parse(text).expect("an entry of a scope")).collect()
}

#[test]
fn a_node_without_attributes_has_the_specification_s_defaults() {
    let pipeline = accept(&with("n start -> n -> exit"));
    let n = node(&pipeline, "n");
    assert_eq!((n.label.as_str(), n.shape.as_str()), ("n", "box"));
    assert_eq!(n.handler, Handler::Component("codergen".into()));
    assert_eq!(n.prompt.as_deref(), Some("n"));
    assert_eq!((n.routing.max_retries, n.bounds.timeout, n.bounds.max_turns), (None, None, None));
    assert_eq!(
        n.routing.backoff,
        Backoff { attempts: None, initial_ms: 200, factor: 2.0, max_ms: 60_000, jitter: true }
    );
    assert!(!n.checks.goal_gate && !n.routing.auto_status && !n.routing.allow_partial);
    assert_eq!(
        (&n.access.allowed_write_paths, &n.access.read_paths, &n.access.allowed_commands),
        (&None, &None, &None)
    );
    assert_eq!((pipeline.default_max_retries, pipeline.bounds.steps_max, pipeline.bounds.wall_max), (0, 200, None));
}

#[test]
fn node_attributes_get_types() {
    let pipeline = accept(&with_node(
        "max_retries=3, goal_gate=true, retry_target=n, fallback_retry_target=\"start\", timeout=15m, max_turns=7, \
         read_paths=\"docs/, README.md\", allowed_commands=\"cargo test,git status\", auto_status=\"true\", allow_partial=true, \
         retry_policy=patient, limits.memory_bytes=\"64MiB\", limits.wall_ms=10s, limits.turns=3, class=\"code, critical\"",
    ));
    let n = node(&pipeline, "n");
    assert_eq!(
        (n.routing.max_retries, n.bounds.max_turns, n.bounds.timeout),
        (Some(3), Some(7), Some(Duration::from_secs(900)))
    );
    assert_eq!(
        (&n.routing.retry_target, &n.routing.fallback_retry_target),
        (&Some(NodeId::new("n")), &Some(NodeId::new("start")))
    );
    assert!(n.checks.goal_gate && n.routing.auto_status && n.routing.allow_partial);
    assert_eq!(n.access.allowed_write_paths, Some(entries(&["src/"])));
    assert_eq!(n.access.read_paths, Some(entries(&["docs/", "README.md"])));
    assert_eq!(n.access.allowed_commands, Some(vec!["cargo test".to_owned(), "git status".to_owned()]));
    assert_eq!(
        (n.routing.backoff.attempts, n.routing.backoff.initial_ms, n.routing.backoff.factor),
        (Some(3), 2_000, 3.0)
    );
    let limits: Vec<(&str, u64)> = n.bounds.limits.iter().map(|(name, amount)| (name.as_str(), amount)).collect();
    assert_eq!(limits, [("memory_bytes", 64 << 20), ("turns", 3), ("wall_ms", 10_000)]);
    assert_eq!(n.classes, ["code", "critical"]);
}

#[test]
fn an_empty_scope_allows_nothing_and_is_not_an_absent_one() {
    let pipeline = accept(&with("n [allowed_write_paths=\"\", allowed_commands=\"\"] start -> n -> exit"));
    assert_eq!(node(&pipeline, "n").access.allowed_write_paths, Some(Vec::new()));
    assert_eq!(node(&pipeline, "n").access.allowed_commands, Some(Vec::new()));
}

/// Checks that this text is read as a duration of so many milliseconds.
#[track_caller]
fn check_duration(written: &str, milliseconds: u64) {
    let pipeline = accept(&with_node(&format!("timeout={written}")));
    assert_eq!(node(&pipeline, "n").bounds.timeout, Some(Duration::from_millis(milliseconds)), "{written}");
}

#[test]
fn durations_are_read() {
    check_duration("250ms", 250);
    check_duration("\"900s\"", 900_000);
    check_duration("15m", 900_000);
    check_duration("2h", 7_200_000);
    check_duration("1d", 86_400_000);
    check_duration("\"300\"", 300_000);
    let warning = found(&with_node("timeout=300"), glovebox_pipeline::diagnostic::Severity::Warning);
    assert_snapshot!(warning, @r#"duration_unit «300» `timeout` has no unit: `300` means seconds ~> «"300s"»"#);
}

#[test]
fn values_that_do_not_fit_are_errors_at_the_value() {
    assert_snapshot!(errors(&with_node("timeout=0")), @"attribute_value «0» `timeout` expects a duration of 1ms or more, such as `900s`, `15m` or `250ms`, found `0`");
    assert_snapshot!(errors(&with_node("timeout=0s")), @"attribute_value «0s» `timeout` expects a duration of 1ms or more, such as `900s`, `15m` or `250ms`, found `0s`");
    assert_snapshot!(errors(&with_node("timeout=\"1h30m\"")), @r#"attribute_value «"1h30m"» `timeout` expects a duration such as `900s`, `15m` or `250ms`, found `1h30m`"#);
    assert_snapshot!(errors(&with_node("timeout=99999999999999999999d")), @"attribute_value «99999999999999999999d» `timeout` expects a duration such as `900s`, `15m` or `250ms`, found `99999999999999999999d`");
    assert_snapshot!(errors(&with_node("goal_gate=yes")), @"attribute_value «yes» `goal_gate` expects `true` or `false`, found `yes` ~> «true»");
    assert_snapshot!(errors(&with_node("goal_gate=maybe")), @"attribute_value «maybe» `goal_gate` expects `true` or `false`, found `maybe`");
    assert_snapshot!(errors(&with_node("max_retries=-1")), @"attribute_value «-1» `max_retries` expects a whole number, 0 or more, found `-1`");
    assert_snapshot!(errors(&with_node("max_retries=three")), @"attribute_value «three» `max_retries` expects a whole number, 0 or more, found `three`");
    assert_snapshot!(errors(&with_node("max_turns=0")), @"attribute_value «0» `max_turns` expects a whole number, 1 or more, found `0`");
    assert_snapshot!(errors(&with_node("retry_policy=pateint")), @"attribute_value «pateint» `retry_policy` expects one of `none`, `standard`, `aggressive`, `linear`, `patient`, found `pateint` ~> «patient»");
    assert_snapshot!(errors(&with_node("limits.memory=1")), @"limit_known «limits.memory» unknown limit `memory`");
    assert_snapshot!(errors(&with_node("limits.memory_bytes=lots")), @"attribute_value «lots» `limits.memory_bytes` expects bytes or a size such as `64MiB`, found `lots`");
    assert_snapshot!(errors(&with_node("allowed_commands=\"*,git\"")), @r#"attribute_value «"*,git"» `allowed_commands` contains `*` and other entries; `*` must be the only entry"#);
    assert_snapshot!(errors(&with_graph("max_steps=0")), @"attribute_value «0» `max_steps` expects a whole number, 1 or more, found `0`");
    assert_snapshot!(errors(&with_graph("default_max_retries=x")), @"attribute_value «x» `default_max_retries` expects a whole number, 0 or more, found `x`");
    assert_snapshot!(errors(&with("start -> exit [weight=heavy, default=1]")), @"
    attribute_value «heavy» `weight` expects a whole number, such as 10 or -1, found `heavy`
    attribute_value «1» `default` expects `true` or `false`, found `1` ~> «true»
    ");
}

#[test]
fn path_lists_keep_to_the_workspace() {
    assert_snapshot!(errors(&with_node("read_paths=\"src/, /etc/passwd\"")), @"path_list «/etc/passwd» read_paths contains absolute path: /etc/passwd");
    assert_snapshot!(errors(&with("n [allowed_write_paths=\"a/../b,src/\"] start -> n -> exit")), @"path_list «a/../b» allowed_write_paths contains parent segment: a/../b");
    assert_snapshot!(errors(&with("n [allowed_write_paths=\"../b\"] start -> n -> exit")), @"path_list «../b» allowed_write_paths contains parent segment: ../b");
    assert_snapshot!(errors(&with("n [allowed_write_paths=\"a,,b\"] start -> n -> exit")), @"path_list «» allowed_write_paths contains empty entry");
    assert_snapshot!(errors(&with("n [allowed_write_paths=\"a,\"] start -> n -> exit")), @"path_list «» allowed_write_paths contains empty entry");
    assert_snapshot!(errors(&with("n [allowed_write_paths=\"a/./b\"] start -> n -> exit")), @"path_list «a/./b» allowed_write_paths contains `.` segment: a/./b");
    assert_snapshot!(errors(&with("n [allowed_write_paths=\".//etc/passwd\"] start -> n -> exit")), @"path_list «.//etc/passwd» allowed_write_paths contains absolute path: .//etc/passwd");
    assert_snapshot!(errors(&with("n [allowed_write_paths=\"a//b\"] start -> n -> exit")), @"path_list «a//b» allowed_write_paths contains empty segment: a//b");
    accept(&with("n [allowed_write_paths=\"a/b..c/,...,.hidden\"] start -> n -> exit"));
}

#[test]
fn the_whole_workspace_has_one_spelling() {
    for written in ["./", ".", " ./ "] {
        let pipeline =
            accept(&with_node(&format!("allowed_write_paths=\"{written}\", read_paths=\"{written},./docs/,./a\"")));
        let (write, read) = (&node(&pipeline, "n").access.allowed_write_paths, &node(&pipeline, "n").access.read_paths);
        assert_eq!(write, &Some(entries(&["./"])), "{written}");
        assert_eq!(read, &Some(entries(&["./", "docs/", "a"])), "{written}");
    }
    assert_snapshot!(errors(&with_node("scratch=\".\"")), @"path_list «.» scratch contains `.` segment: .");
}

#[test]
fn spellings_of_other_engines_mean_what_ours_do() {
    let source = with(
        "t [shape=parallelogram, script=\"make test\"] m [prompt=q] start -> t t -> exit [condition=\"outcome=succeeded\"] \
         t -> m [condition=\"outcome!=succeeded && outcome=failed\"] m -> t",
    );
    let pipeline = accept(&source);
    assert_eq!(node(&pipeline, "t").attributes[key::TOOL_COMMAND].value, "make test");
    let literals =
        pipeline.edges.iter().filter_map(|edge| edge.condition.as_ref()).flat_map(|condition| &condition.clauses);
    assert_eq!(literals.map(|clause| clause.literal.as_str()).collect::<Vec<_>>(), ["success", "success", "fail"]);
    assert_snapshot!(rule("other_spelling", &source), @"
    other_spelling «script» Glovebox reads `script` as `tool_command` ~> «tool_command»
    other_spelling «succeeded» Glovebox reads `succeeded` as `success` ~> «success»
    other_spelling «succeeded» Glovebox reads `succeeded` as `success` ~> «success»
    other_spelling «failed» Glovebox reads `failed` as `fail` ~> «fail»
    ");
    let exec = with("t [type=exec, command=\"make test\", max_retries=2.0] start -> t -> exit [weight=\"1.0\"]");
    let pipeline = accept(&exec);
    assert_eq!(node(&pipeline, "t").handler, Handler::Component("tool".into()));
    assert_eq!(node(&pipeline, "t").attributes[key::TOOL_COMMAND].value, "make test");
    assert_eq!(pipeline.edges.last().unwrap().weight, 1);
    assert_snapshot!(rule("other_spelling", &exec), @r#"
    other_spelling «exec» Glovebox reads `exec` as `tool` ~> «tool»
    other_spelling «command» Glovebox reads `command` as `tool_command` ~> «tool_command»
    other_spelling «2.0» Glovebox reads `2.0` as `2` ~> «2»
    other_spelling «"1.0"» Glovebox reads `1.0` as `1` ~> «1»
    "#);
    assert_snapshot!(errors(&with("start -> exit [weight=1.5]")), @"attribute_value «1.5» `weight` expects a whole number, such as 10 or -1, found `1.5`");
    assert_snapshot!(errors(&with("start -> exit [weight=\"1.\"]")), @r#"attribute_value «"1."» `weight` expects a whole number, such as 10 or -1, found `1.`"#);
    // If both keys are set, Glovebox's own key applies, and the other one is not reported as another spelling.
    let both = with("t [shape=parallelogram, script=a, tool_command=b] start -> t -> exit");
    assert_eq!(node(&accept(&both), "t").attributes[key::TOOL_COMMAND].value, "b");
    assert_eq!(rule("other_spelling", &both), "");
}

#[test]
fn what_confines_a_node_gets_types() {
    let pipeline = accept(&with_node(
        "codex.workdir=\"agent\", codex.add_dirs=\"examples/specs, docs/,.\", codex.strict_read_scope=true, codex.path=\"./.factory/bin/codex\", \
         scratch=\"tmp/,a/b/\", cache=\"target/\", cache_from=base, network=\"proxy:api.example.com, *.crates.io\"",
    ));
    let expected = Confinement {
        workdir: entries(&["agent/"]).pop(),
        add_dirs: entries(&["examples/specs/", "docs/", "./"]),
        strict_read_scope: true,
        program: entries(&[".factory/bin/codex"]).pop(),
        scratch: entries(&["tmp/", "a/b/"]),
        cache: entries(&["target/"]),
        cache_from: Some(CacheFrom::Base),
        network: Some("proxy:api.example.com,*.crates.io".parse().unwrap()),
    };
    assert_eq!(node(&pipeline, "n").access.confinement, expected);
    assert_eq!(node(&accept(&with_node("label=x")), "n").access.confinement, Confinement::default());
    let of = |attributes: &str| node(&accept(&with_node(attributes)), "n").access.confinement.clone();
    assert_eq!(of("network=none").network, Some(Network::None));
    assert_eq!(of("network=full, scratch=\"\", codex.workdir=\"\"").network, Some(Network::Full));
    assert_eq!(of("codex.workdir=\".\"").workdir, Some(Entry::whole()));
    assert_eq!(of("codex.path=codex").program, None, "a name is looked up on PATH");
    assert_eq!(of("codex.path=\"/opt/codex\"").program, None, "outside of the workspace");
}

#[test]
fn what_confines_a_node_keeps_to_the_workspace() {
    assert_snapshot!(errors(&with_node("codex.workdir=\"/srv/app\"")), @r#"path_list «"/srv/app"» codex.workdir contains absolute path: /srv/app"#);
    assert_snapshot!(errors(&with_node("codex.workdir=\"../app\"")), @r#"path_list «"../app"» codex.workdir contains parent segment: ../app"#);
    assert_snapshot!(errors(&with_node("codex.add_dirs=\"docs,../specs\"")), @"path_list «../specs» codex.add_dirs contains parent segment: ../specs");
    assert_snapshot!(errors(&with_node("codex.add_dirs=\"docs,,specs\"")), @"path_list «» codex.add_dirs contains empty entry");
    assert_snapshot!(errors(&with_node("codex.path=\"../bin/codex\"")), @r#"path_list «"../bin/codex"» codex.path contains parent segment: ../bin/codex"#);
    assert_snapshot!(errors(&with_node("codex.strict_read_scope=yes")), @"attribute_value «yes» `codex.strict_read_scope` expects `true` or `false`, found `yes` ~> «true»");
    assert_snapshot!(errors(&with_node("scratch=\"target\"")), @"path_list «target» scratch contains path without final `/`: target");
    assert_snapshot!(errors(&with_node("cache=\"./\"")), @"path_list «./» cache contains `.` segment: ./");
    assert_snapshot!(errors(&with_node("cache=\"/tmp/\"")), @"path_list «/tmp/» cache contains absolute path: /tmp/");
    assert_snapshot!(errors(&with_node("network=ful")), @"attribute_value «ful» `network` expects `none`, `full` or `proxy:api.example.com`, found `ful` ~> «full»");
    assert_snapshot!(errors(&with_node("network=\"proxy:10.0.0.1\"")), @r#"attribute_value «"proxy:10.0.0.1"» `network`: `10.0.0.1` is an IP address, not a host name: `api.example.com`, `*.example.com` or `api.example.com:8443` is expected"#);
    assert_snapshot!(errors(&with_node("network=\"proxy:\"")), @r#"attribute_value «"proxy:"» `network` expects `none`, `full` or `proxy:api.example.com`, found `proxy:`"#);
}

#[test]
fn defaults_hold_for_what_follows_in_their_scope() {
    let pipeline = accept(&with(
        "early node [timeout=10s] edge [weight=2] late [max_retries=1] \
         subgraph cluster_loop { label = \"Loop A\" node [thread_id=\"loop-a\", timeout=\"900s\"] edge [weight=5] \
           Plan [label=\"Plan next step\"] Implement [timeout=\"1800s\", class=own] Plan -> Implement \
           subgraph { graph [label=\"Inner: 2!\"] deep } } \
         after start -> early -> late -> Plan Implement -> deep -> after -> exit",
    ));
    let timeout = |id: &str| node(&pipeline, id).bounds.timeout.map(|timeout| timeout.as_secs());
    assert_eq!([timeout("early"), timeout("late"), timeout("Plan")], [None, Some(10), Some(900)]);
    assert_eq!([timeout("Implement"), timeout("deep"), timeout("after")], [Some(1800), Some(900), Some(10)]);
    assert_eq!(node(&pipeline, "Implement").attributes[key::THREAD_ID].value, "loop-a");
    assert!(!node(&pipeline, "after").attributes.contains_key(key::THREAD_ID));
    assert_eq!(edge(&pipeline, "Plan", "Implement").weight, 5);
    assert_eq!(edge(&pipeline, "start", "early").weight, 2);
    assert_eq!(node(&pipeline, "Plan").classes, ["loop-a"]);
    assert_eq!(node(&pipeline, "Implement").classes, ["own", "loop-a"]);
    assert_eq!(node(&pipeline, "deep").classes, ["loop-a", "inner-2"]);
    assert!(node(&pipeline, "after").classes.is_empty());
    assert_eq!(pipeline.label, "G", "a subgraph's label is not the graph's");
}

/// Checks the handler of a node with this id and these attributes.
#[track_caller]
fn check_handler(id: &str, attributes: &str, handler: &str) {
    let source = format!("digraph G {{ node [shape=box] {id} [tool_command=t, command=c, {attributes}] }}");
    let (ast, found) = dot::parse(Source::new(&source));
    assert!(found.iter().all(|found| !found.is_error()), "{source} {found:?}");
    let (pipeline, _) = lower::lower(Source::new(&source), ast, &Inputs::default());
    let node = node(&pipeline, id);
    assert_eq!(node.handler.name(), handler, "{source}");
    let unavailable = ["stack.manager_loop"];
    assert_eq!(matches!(node.handler, Handler::Unavailable(_)), unavailable.contains(&handler), "{source}");
}

#[test]
fn handlers_come_from_type_then_shape_then_id() {
    check_handler("n", "shape=Mdiamond", "start");
    check_handler("n", "shape=Msquare", "exit");
    check_handler("n", "shape=box", "codergen");
    check_handler("n", "shape=hexagon", "wait.human");
    check_handler("n", "shape=diamond", "conditional");
    check_handler("n", "shape=component", "parallel");
    check_handler("n", "shape=tripleoctagon", "parallel.fan_in");
    check_handler("n", "shape=parallelogram", "tool");
    check_handler("n", "shape=house", "stack.manager_loop");
    check_handler("n", "shape=octagon", "verify");
    check_handler("n", "", "codergen");
    check_handler("n", "shape=ellipse", "codergen");
    check_handler("n", "shape=parallelogram, type=verification", "verification");
    check_handler("n", "shape=diamond, type=\"acme.review\"", "acme.review");
    check_handler("n", "type=tool", "tool");
    check_handler("n", "type=\"\"", "codergen");
    for id in ["start", "Start"] {
        check_handler(id, "", "start");
        check_handler(id, "shape=box", "codergen");
    }
    for id in ["exit", "Exit", "end", "End", "done"] {
        check_handler(id, "", "exit");
        check_handler(id, "shape=parallelogram", "tool");
        check_handler(id, "type=codergen", "codergen");
    }
}

#[test]
fn graph_attributes_get_types() {
    let pipeline = accept(&with_graph(
        "goal=\"ship it\", label=\"Shipping\", default_max_retry=2, max_steps=50, max_wall_time=\"2h\", retry_target=start, max_turns=9",
    ));
    assert_eq!((pipeline.goal.as_str(), pipeline.label.as_str()), ("ship it", "Shipping"));
    assert_eq!((pipeline.default_max_retries, pipeline.bounds.steps_max), (2, 50));
    assert_eq!(pipeline.bounds.wall_max, Some(Duration::from_secs(7_200)));
    assert_eq!(pipeline.retry_target, Some(NodeId::new("start")));
    assert_eq!(node(&pipeline, "exit").bounds.max_turns, Some(9));
    let both = accept(&with_graph("default_max_retries=1, default_max_retry=2"));
    assert_eq!(both.default_max_retries, 1);
}

#[test]
fn targets_that_do_not_exist_are_left_out() {
    let pipeline = accept(&with_node("retry_target=nowhere, fallback_retry_target=n"));
    assert_eq!(node(&pipeline, "n").routing.retry_target, None);
    assert_eq!(node(&pipeline, "n").routing.fallback_retry_target, Some(NodeId::new("n")));
}

fn inputs(set: &[(&str, &str)]) -> Inputs {
    Inputs {
        set: set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ..Inputs::default()
    }
}

/// Checks the goal and the prompt of `n` with these inputs.
#[track_caller]
fn check_expansion(graph: &str, prompt: &str, set: &[(&str, &str)], expected: (&str, &str)) {
    let source = with(&format!("graph [{graph}] n [prompt=\"{prompt}\"] start -> n -> exit"));
    let checked = check(Source::new(&source), &inputs(set));
    let shown: Vec<String> =
        checked.diagnostics.iter().filter(|found| found.is_error()).map(|found| line(&source, found)).collect();
    let pipeline = checked.pipeline.unwrap_or_else(|| panic!("{shown:?}"));
    assert_eq!((pipeline.goal.as_str(), node(&pipeline, "n").prompt.as_deref()), (expected.0, Some(expected.1)));
}

#[test]
fn goal_and_inputs_are_put_into_prompts_once() {
    check_expansion("goal=\"ship\"", "do: $goal, $goal.", &[], ("ship", "do: ship, ship."));
    check_expansion("goal=\"ship\"", "$goals $PWD $ 5$", &[], ("ship", "$goals $PWD $ 5$"));
    check_expansion(
        "goal=\"ship $what\"",
        "$goal to $where",
        &[("what", "it"), ("where", "prod")],
        ("ship it", "ship it to prod"),
    );
    check_expansion("goal=\"a\"", "$goal", &[("goal", "b")], ("b", "b"));
    check_expansion("x=1", "$goal", &[("goal", "b")], ("b", "b"));
    check_expansion("x=1", "$a_b$a", &[("a_b", "v"), ("a", "w")], ("", "vw"));
    check_expansion("goal=\"$a\"", "$goal $b", &[("a", "$b"), ("b", "$a")], ("$b", "$b $a"));
    check_expansion("goal=\"$goal\"", "$goal", &[], ("$goal", "$goal"));
    check_expansion("region=\"eu\"", "p", &[("region", "us")], ("", "p"));
}

#[test]
fn an_input_overrides_a_graph_attribute_and_its_type() {
    let source = with_graph("max_steps=5");
    let steps = |value: &str| check(Source::new(&source), &inputs(&[("max_steps", value)]));
    assert_eq!(steps("7").pipeline.map(|pipeline| pipeline.bounds.steps_max), Some(7));
    assert!(steps("many").pipeline.is_none());
}

#[test]
fn an_input_without_a_place_is_an_error() {
    let source = with("graph [region=eu] n [prompt=\"$target\"] start -> n -> exit");
    let lines = |set: &[(&str, &str)]| {
        let checked = check(Source::new(&source), &inputs(set));
        assert!(checked.pipeline.is_none());
        let found = checked.diagnostics.iter().find(|found| found.rule == "input_declared");
        found
            .map(|found| format!("{} | {}", line(&source, found), found.help.clone().unwrap_or_default()))
            .unwrap_or_default()
    };
    assert_snapshot!(lines(&[("tarhet", "x")]), @"input_declared «G» the file does not use the input `tarhet`: it has neither `$tarhet` nor a graph attribute `tarhet` | did you mean `target`?");
    assert_snapshot!(lines(&[("nothing", "x")]), @r#"input_declared «G» the file does not use the input `nothing`: it has neither `$nothing` nor a graph attribute `nothing` | write `$nothing` in the goal or in a prompt, or `graph [nothing="…"]`"#);
}

#[test]
fn a_parallel_node_has_a_policy_with_its_number() {
    let graph = |attributes: &str| {
        with(&format!(
            "p [shape=component, {attributes}] a [prompt=a] b [prompt=b] j [shape=tripleoctagon] \
             start -> p p -> a p -> b a -> j b -> j j -> exit"
        ))
    };
    let join = |attributes: &str| node(&accept(&graph(attributes)), "p").parallel.join;
    for (attributes, expected) in [
        ("label=x", JoinPolicy::WaitAll),
        ("join_policy=k_of_n, k=1", JoinPolicy::KOfN(1)),
        ("join_policy=quorum, quorum_fraction=0.25", JoinPolicy::Quorum(0.25)),
        ("join_policy=quorum, quorum_fraction=1", JoinPolicy::Quorum(1.0)),
        ("join_policy=quorum, quorum_fraction=\"\"", JoinPolicy::Quorum(0.5)),
        ("join_policy=first_success", JoinPolicy::FirstSuccess),
    ] {
        assert_eq!(join(attributes), expected, "{attributes}");
    }
    for wrong in ["0", "-0.5", "1.01", "half"] {
        let found = errors(&graph(&format!("join_policy=quorum, quorum_fraction=\"{wrong}\"")));
        assert!(found.contains("`quorum_fraction` expects a number above 0 and up to 1"), "{wrong}: {found}");
    }
}

#[test]
fn subgraphs_have_a_label_a_parent_and_each_member_once() {
    let pipeline = accept(&with(
        "subgraph cluster_a { label = \"One\" n [prompt=p] m [prompt=q] n [class=x] m -> n \
           subgraph { label = \" \" n [timeout=9s] late [prompt=r] } } \
         subgraph { graph [label=\"!\"] other [prompt=s] } start -> m n -> late -> other -> exit",
    ));
    let shown: Vec<String> = { pipeline.subgraphs.iter() }
        .map(|one| {
            let members: Vec<&str> = one.members.iter().map(|at| pipeline.nodes[*at].id.as_str()).collect();
            format!("{:?} {:?} {:?} {}", one.name, one.label, one.parent, members.join(" "))
        })
        .collect();
    assert_snapshot!(shown.join("\n"), @r#"
    Some("cluster_a") Some("One") None n m
    None None Some(0) n late
    None Some("!") None other
    "#);
    assert_eq!(node(&pipeline, "n").classes, ["x", "one", "-"]);
    assert!(node(&pipeline, "other").classes.is_empty(), "a label without letters is no class");
}

#[test]
fn an_attribute_without_effect_on_a_subgraph_says_where_it_belongs() {
    let help = |attribute: &str| {
        let source = with(&format!("subgraph {{ {attribute} n [prompt=p] }} start -> n -> exit"));
        let found = check(Source::new(&source), &Inputs::default()).diagnostics;
        found
            .into_iter()
            .find(|found| found.rule == "subgraph_attribute")
            .and_then(|found| found.help)
            .unwrap_or_default()
    };
    assert_snapshot!(help("timeout=9s"), @r#"write `node ["timeout"=…]` before the nodes that it should apply to"#);
    assert_snapshot!(help("goal=x"), @r#"write `graph ["goal"=…]` outside of the subgraph: it applies to the whole run"#);
    assert_eq!((help("label=x"), help("rankdir=LR"), help("unknown=x")), Default::default());
}

#[test]
fn restarts_and_sessions_of_the_graph_get_types() {
    let pipeline =
        accept(&with_graph("loop_restart_persist_keys=\" a, ,b,\", loop_restart_signature_limit=4, max_restarts=2"));
    assert_eq!((pipeline.restarts.most, pipeline.signature_limit), (2, Some(4)));
    assert_eq!(pipeline.restarts.kept.iter().map(|key| key.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let plain = accept(&with("start -> exit"));
    assert_eq!((plain.signature_limit, plain.start.as_str()), (None, "start"));
    for (attributes, expected) in
        [("retry_policy=patient", 2), ("retry_policy=none", 0), ("retry_policy=patient, default_max_retry=7", 7)]
    {
        assert_eq!(accept(&with_graph(attributes)).default_max_retries, expected, "{attributes}");
    }
    for (body, expected) in [
        ("start -> n -> exit", false),
        ("start -> n -> exit [fidelity=full]", true),
        ("start -> n -> exit n [fidelity=full]", true),
        ("start -> n -> exit n [fidelity=compact]", false),
        ("start -> n -> exit graph [default_fidelity=full]", true),
    ] {
        assert_eq!(accept(&with(&format!("n [prompt=p] {body}"))).keeps_conversations, expected, "{body}");
    }
}

#[test]
fn an_outcome_in_another_spelling_is_corrected_only_if_it_is_not_quoted() {
    let fixes = |condition: &str| {
        let source = with(&format!("start -> exit [condition=\"{condition}\"] start -> exit"));
        let found = check(Source::new(&source), &Inputs::default()).diagnostics;
        let other = found.iter().filter(|found| found.rule == "other_spelling");
        other.map(|found| found.fix.as_ref().map(|fix| fix.replacement.clone())).collect::<Vec<_>>()
    };
    assert_eq!(fixes("outcome=failed"), [Some("fail".to_owned())]);
    assert_eq!(fixes("outcome=\\\"failed\\\""), [None]);
}

#[test]
fn an_added_fan_in_has_the_model_of_the_graph_and_of_the_style_sheet() {
    let branches =
        "p [shape=component] a [prompt=a] b [prompt=b] m [prompt=m] start -> p p -> a p -> b a -> m b -> m m -> exit";
    let models = |graph: &str| {
        let pipeline = accept(&with(&format!("{graph} {branches}")));
        let join = node(&pipeline, "join_p");
        (
            join.attributes.get(key::LLM_MODEL).map(|model| model.value.to_string()),
            join.span == node(&pipeline, "p").span,
        )
    };
    assert_eq!(models("label=x"), (None, true));
    assert_eq!(models("graph [llm_model=one]").0.as_deref(), Some("one"));
    assert_eq!(models("graph [model_stylesheet=\" \"]").0, None);
    assert_eq!(models("graph [model_stylesheet=\"* { llm_model: two; }\", llm_model=one]").0.as_deref(), Some("two"));
    assert_eq!(models("graph [model_stylesheet=\"#join_p { llm_model: three; }\"]").0.as_deref(), Some("three"));
}

#[test]
fn a_fan_in_is_added_only_where_branches_meet_inside() {
    let joins = |body: &str| {
        let source = with(&format!(
            "p [shape=component] a [prompt=a] b [prompt=b] m [prompt=m] start -> p p -> a p -> b {body}"
        ));
        let pipeline = lowered(&source);
        let edges = pipeline
            .edges
            .iter()
            .filter(|edge| edge.to.as_str().starts_with("join_"))
            .map(|edge| edge.from.to_string());
        edges.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(joins("a -> m b -> m m -> exit"), "a b");
    // An edge from outside of the branches still leads to the node itself.
    assert_eq!(joins("a -> m b -> m m -> c c [prompt=c] c -> m c -> exit"), "a b");
    assert_eq!(joins("a -> exit b -> exit"), "", "an exit ends the run");
    assert_eq!(joins("j [shape=tripleoctagon] a -> j b -> j j -> m m -> exit"), "");
}

/// Returns the help of each error of a node with these attributes.
fn helps(attributes: &str) -> Vec<String> {
    let found = check(Source::new(&with_node(attributes)), &Inputs::default()).diagnostics;
    found.iter().filter(|found| found.is_error()).map(|found| found.help.clone().unwrap_or_default()).collect()
}

#[test]
fn a_value_that_is_nearly_right_is_corrected() {
    let fix = |attribute: &str| {
        let found = check(Source::new(&with_node(attribute)), &Inputs::default()).diagnostics;
        let found = found.into_iter().find(|found| found.rule == "attribute_value");
        found.unwrap_or_else(|| panic!("{attribute} is accepted")).fix.map(|fix| fix.replacement)
    };
    for (attribute, expected) in [
        ("max_retries=3.10", None),
        ("max_turns=0.0", None),
        ("goal_gate=on", Some("true")),
        ("goal_gate=1", Some("true")),
        ("goal_gate=TRUE", Some("true")),
        ("goal_gate=no", Some("false")),
        ("goal_gate=off", Some("false")),
        ("goal_gate=0", Some("false")),
        ("goal_gate=2", None),
        ("goal_gate=\"y\\es\"", None),
    ] {
        assert_eq!(fix(attribute).as_deref(), expected, "{attribute}");
    }
    let of = |attributes: &str| node(&accept(&with_node(attributes)), "n").clone();
    assert!(!of("goal_gate=\"\"").checks.goal_gate && !of("goal_gate=false").checks.goal_gate);
    assert_eq!((of("max_retries=\"\"").routing.max_retries, of("max_retries=0").routing.max_retries), (None, Some(0)));
    assert_eq!(of("retry_policy=\"\"").routing.backoff.attempts, None);
    assert_eq!(of("timeout=\"\"").bounds.timeout, None);
}

#[test]
fn amounts_and_commands_that_do_not_fit_are_errors() {
    assert_snapshot!(errors(&with_node("limits.wall_ms=x")), @"attribute_value «x» `limits.wall_ms` expects milliseconds or a duration such as `10s`, found `x`");
    assert_snapshot!(errors(&with_node("limits.turns=x")), @"attribute_value «x» `limits.turns` expects a whole number, found `x`");
    assert_snapshot!(errors(&with_node("max_budget_usd=lots")), @"attribute_value «lots» `max_budget_usd` is `lots`: expected US dollars such as `5` or `0.25`, with at most six digits after the point");
    assert_snapshot!(errors(&with_node("allowed_commands=\"git,,make\"")), @r#"attribute_value «"git,,make"» `allowed_commands` contains an empty entry"#);
    assert_snapshot!(errors(&with_node("type=verification, verification.allowed_commands=\"*\"")), @r#"attribute_value «"*"» `verification.allowed_commands` is `*`, expected the prefixes of the commands that a plan may contain"#);
    accept(&with_node("allowed_commands=\"*\""));
    assert_eq!(helps("limits.memory_byte=1"), ["did you mean `limits.memory_bytes`?"]);
    let listed = helps("limits.xyzzy=1");
    assert!(listed[0].starts_with("use one of ") && listed[0].contains("memory_bytes"), "{listed:?}");
    let spend = node(&accept(&with_node("max_budget_usd=\"0.5\", max_tokens=9")), "n").bounds.spend_max;
    assert_eq!((spend.tokens_max, spend.cost_max.map(|cost| cost.0)), (Some(9), Some(500_000)));
    assert!(node(&accept(&with_node("max_budget_usd=\" \"")), "n").bounds.spend_max.is_unlimited());
}

#[test]
fn a_missing_unit_is_reported_once_with_a_fix_in_the_same_quotes() {
    let warnings = |attributes: &str| found(&with_node(attributes), glovebox_pipeline::diagnostic::Severity::Warning);
    assert_snapshot!(warnings("timeout=300, human.timeout=9"), @r#"duration_unit «300» `timeout` has no unit: `300` means seconds ~> «"300s"»"#);
    assert_snapshot!(warnings("timeout=\"300\""), @r#"duration_unit «"300"» `timeout` has no unit: `300` means seconds ~> «"300s"»"#);
    assert_eq!(warnings("timeout=300s, human.timeout=9s"), "");
    let zero = |written: &str| errors(&with_node(&format!("timeout={written}")));
    assert!(zero("00").contains("of 1ms or more") && !zero("x").contains("of 1ms or more"));
    for wrong in ["\"5 s\"", "\"5.s\"", "s", "5x", "\"-5s\""] {
        assert!(zero(wrong).contains("`timeout` expects a duration"), "{wrong}");
    }
}
