//! What the specification leaves open and `docs/decisions.md` decides, as tables of cases: goal gates on all four
//! levels, retries, limits, conditional nodes, hints, commands of agents, feedback, and what a summary may show as
//! verified.

use crate::case::Fact::{Holds, Is, Says};
use crate::case::{Case, PLAIN, check_all};
use crate::workbench::Workbench;

/// A case with two stages, of which the second is a goal gate that fails first. The attributes in `graph` determine the
/// stage at which the run continues.
const fn gate(name: &'static str, graph: &'static str) -> Case {
    Case { name, graph, visited: "imp t imp t", ..PLAIN }
}

#[test]
fn an_unmet_gate_finds_its_target_on_four_levels() {
    check_all(&[
        gate(
            "the node's own retry_target",
            "node [prompt=x]; imp; t [goal_gate=true, retry_target=imp, test.outcome_sequence=\"fail,success\"]; start -> imp -> t -> done",
        ),
        gate(
            "the node's fallback",
            "node [prompt=x]; imp; t [goal_gate=true, fallback_retry_target=imp, test.outcome_sequence=\"fail,success\"]; start -> imp -> t; t -> done [condition=\"outcome!=retry\"]",
        ),
        gate(
            "the graph's retry_target",
            "graph [retry_target=imp]; node [prompt=x]; imp; t [goal_gate=true, test.outcome_sequence=\"fail,success\"]; start -> imp -> t; t -> done [condition=\"outcome!=retry\"]",
        ),
        gate(
            "the graph's fallback",
            "graph [fallback_retry_target=imp]; node [prompt=x]; imp; t [goal_gate=true, test.outcome_sequence=\"fail,success\"]; start -> imp -> t; t -> done [condition=\"outcome!=retry\"]",
        ),
        Case {
            name: "a gate on the straight way loops back until it passes",
            graph: "implement [shape=\"box\", prompt=\"Write the feature code\"]\n test [shape=\"box\", prompt=\"Run the test suite\",\n goal_gate=true, retry_target=\"implement\", test.outcome_sequence=\"fail,fail,success\"]\n start -> implement -> test -> done",
            visited: "implement test implement test implement test",
            ..PLAIN
        },
        Case {
            name: "a gate that never passes is stopped by max_steps",
            graph: "graph [max_steps=5]; node [prompt=x]; imp; t [goal_gate=true, retry_target=imp, test.outcome=fail]; start -> imp -> t -> done",
            exit: 5,
            visited: "imp t imp t",
            facts: &[
                Is("final.json", "/failure_code", "limit/max_steps"),
                Says("help         raise the smaller of `max_steps`"),
            ],
            ..PLAIN
        },
    ]);
}

#[test]
fn presets_partial_results_and_skips() {
    check_all(&[
        Case {
            name: "a preset brings its attempts",
            graph: "A [prompt=x, retry_policy=linear, test.outcome_sequence=\"retry,retry,success\"]; start -> A -> done",
            visited: "A",
            ..PLAIN
        },
        Case {
            name: "used up, the failure is transient",
            graph: "A [prompt=x, max_retries=1, test.outcome=retry]; start -> A -> done",
            exit: 9,
            visited: "A",
            facts: &[Is("checkpoint.json", "/node_retries/A", "1"), Is("final.json", "/failure_class", "transient")],
            ..PLAIN
        },
        Case {
            name: "allow_partial takes what there is",
            graph: "A [prompt=x, max_retries=1, allow_partial=true, test.outcome=retry]; start -> A -> done",
            visited: "A",
            facts: &[Is("A/status.json", "/outcome", "partial_success")],
            ..PLAIN
        },
        Case {
            name: "the graph's default is for retry, not for a plain failure",
            graph: "graph [default_max_retries=2]; node [prompt=x]; A [test.outcome_sequence=\"retry,retry,success\"]; B [test.outcome_sequence=\"fail,success\"]; start -> A -> B -> done",
            exit: 1,
            visited: "A B",
            facts: &[Says("because      B: deterministic"), Says("glovebox show latest B")],
            ..PLAIN
        },
        Case {
            name: "max_retries on a tool repeats its non-zero exit, over what it wrote",
            graph: "T [shape=parallelogram, max_retries=2, allowed_write_paths=n, tool_command=\"echo x >> n; test $(wc -l < n) -ge 3\"]; start -> T -> done",
            visited: "T",
            facts: &[Holds("workspace/n", "x\nx\nx\n")],
            ..PLAIN
        },
    ]);
}

#[test]
fn hints_and_diamonds_route() {
    check_all(&[
        Case {
            name: "a label said before a diamond is heard at it, without its key",
            graph: "node [prompt=x]; A [test.preferred_next_label=\"nö\"]; d [shape=diamond]; y; n; start -> A -> d; d -> y [label=Ja]; d -> n [label=\"[N] Nö\"]; y -> done; n -> done",
            visited: "A d n",
            ..PLAIN
        },
        Case {
            name: "the first suggested id that exists wins",
            graph: "node [prompt=x]; A [test.suggested_next_ids=\"zz, c ,b\"]; b; c; d; start -> A; A -> b; A -> c; A -> d [weight=9]; b -> done; c -> done; d -> done",
            visited: "A c",
            ..PLAIN
        },
        Case {
            name: "of two conditions that hold the heavier wins",
            graph: "node [prompt=x]; A [test.outcome=partial_success]; b; c; start -> A; A -> b [condition=\"outcome=partial_success\", weight=1]; A -> c [condition=\"outcome!=fail\", weight=5]; b -> done; c -> done",
            visited: "A c",
            ..PLAIN
        },
        Case {
            name: "a bare context key decides, an engine's key does not change hands",
            graph: "node [prompt=x]; A; d [shape=diamond]; p; q; start -> A -> d; d -> p [condition=\"deploy_env=prod\"]; d -> q; p -> done; q -> done",
            script: "[[node.A]]\ntext = \"x\"\noutcome = { status = \"success\", context_updates = { deploy_env = \"prod\", \"graph.goal\" = \"hijack\", current_node = \"zz\", \"größe\" = \"ü\" } }\n\
                     [[node.p]]\ntext = \"p\"\n",
            visited: "A d p",
            facts: &[
                Is("checkpoint.json", "/context/graph.goal", ""),
                Is("checkpoint.json", "/context/größe", "ü"),
                Says("refused      A: context graph.goal"),
            ],
            ..PLAIN
        },
    ]);
}

#[test]
fn bounds_are_the_lower_of_flag_and_attribute() {
    check_all(&[
        Case {
            name: "the attribute is lower",
            graph: "graph [max_steps=3]; node [prompt=x]; A; B; start -> A -> B -> A; B -> done [condition=\"outcome=fail\"]",
            flags: &["--max-steps", "50"],
            exit: 5,
            visited: "A B",
            ..PLAIN
        },
        Case {
            name: "the flag is the bound of a pipeline that has none",
            graph: "node [prompt=x]; A; B; start -> A -> B -> A; B -> done [condition=\"outcome=fail\"]",
            flags: &["--max-steps", "203", "--quiet"],
            exit: 5,
            visited: LOOP_202,
            ..PLAIN
        },
        Case {
            name: "wall time by flag",
            graph: "graph [max_wall_time=1h]; T [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"sleep 20\"]; start -> T -> done",
            flags: &["--max-wall-time", "1s"],
            exit: 5,
            visited: "T",
            facts: &[Is("final.json", "/failure_code", "limit/max_wall_time"), Says("--max-wall-time")],
            ..PLAIN
        },
        Case {
            name: "a node's timeout",
            graph: "V [shape=octagon, timeout=300ms, allowed_write_paths=\"\", command=\"sleep 20\"]; start -> V -> done",
            exit: 5,
            visited: "V",
            facts: &[Says("raise `timeout` of `V`"), Says("not verified V: ")],
            ..PLAIN
        },
    ]);
    let bench = Workbench::with_pipeline("digraph g { start [shape=Mdiamond]; done [shape=Msquare]; start -> done }");
    bench.glovebox(&["run", "pipeline.dot", "--max-wall-time", "soon"]).ends(2).says("expected a duration");
    let plan = bench.glovebox(&["plan", "pipeline.dot", "--json", "--max-steps", "300", "--max-wall-time", "90s"]);
    let plan = plan.ends(0).json();
    assert_eq!((&plan["steps_max"], &plan["wall_max_ms"]), (&300.into(), &90_000.into()));
}

/// `A B` repeated, 202 visits in all.
const LOOP_202: &str = match std::str::from_utf8(&LOOP_BYTES) {
    Ok(text) => text,
    Err(_) => "",
};
const LOOP_BYTES: [u8; 403] = {
    let mut bytes = [b' '; 403];
    let mut index = 0;
    while index < 202 {
        bytes[2 * index] = if index % 2 == 0 { b'A' } else { b'B' };
        index += 1;
    }
    bytes
};

#[test]
fn an_agent_runs_what_its_prefixes_say_and_that_verifies_nothing() {
    check_all(&[
        Case {
            name: "whole leading words, quotes honoured",
            graph: "A [prompt=x, allowed_write_paths=\"\", allowed_commands=\"echo hi,git status\"]; start -> A -> done",
            script: "[[node.A]]\ntool = [{ name = \"shell\", arguments = { command = \"echo hi 'grüße welt'\" } }]\n[[node.A]]\ntext = \"done\"\n",
            visited: "A",
            facts: &[
                Says("ran          A: echo hi 'grüße welt' exit 0"),
                Says("verified     nothing: no tool or verify stage ran a command"),
                Says("unverified   A: claimed by the scripted model"),
            ],
            ..PLAIN
        },
        Case {
            name: "a longer word is another command",
            graph: "A [prompt=x, allowed_write_paths=\"\", allowed_commands=\"echo hi\"]; start -> A -> done",
            script: "[[node.A]]\ntool = [{ name = \"shell\", arguments = { command = \"echo hiho\" } }]\n[[node.A]]\ntext = \"done\"\n",
            visited: "A",
            facts: &[Says("refused      A: run echo hiho"), Says("allowed_commands=\"echo hiho\"")],
            ..PLAIN
        },
        Case {
            name: "no shell syntax without a shell, and the tool says so",
            graph: "A [prompt=x, allowed_write_paths=\"\", allowed_commands=\"echo hi\"]; start -> A -> done",
            script: "[[node.A]]\ntool = [{ name = \"shell\", arguments = { command = \"echo hi && touch x\" } }]\n[[node.A]]\ntext = \"done\"\n",
            visited: "A",
            facts: &[Says("verification_command_unsupported_format")],
            ..PLAIN
        },
        Case {
            name: "a star is a shell, and the write scope holds",
            graph: "A [prompt=x, allowed_write_paths=\"out/\", allowed_commands=\"*\"]; start -> A -> done",
            script: "[[node.A]]\ntool = [{ name = \"shell\", arguments = { command = \"mkdir out; echo hi | tee out/ä.txt > other.txt\" } }]\n[[node.A]]\ntext = \"done\"\n",
            exit: 6,
            visited: "A",
            facts: &[
                Says("guardrail_violation: wrote disallowed files: other.txt"),
                Holds("workspace/out/ä.txt", "hi\n"),
            ],
            ..PLAIN
        },
        Case {
            name: "without the attribute there is no shell",
            graph: "A [prompt=x, allowed_write_paths=\"\"]; start -> A -> done",
            script: "[[node.A]]\ntool = [{ name = \"shell\", arguments = { command = \"echo hi\" } }]\n[[node.A]]\ntext = \"done\"\n",
            visited: "A",
            facts: &[Says("no tool `shell` was offered")],
            ..PLAIN
        },
    ]);
}

#[test]
fn what_passed_but_broke_its_scope_is_not_verified() {
    check_all(&[
        Case {
            name: "exit 0 with a disallowed write",
            graph: "V [shape=octagon, allowed_write_paths=\"\", command=\"echo x > x.txt\"]; start -> V -> done",
            exit: 6,
            visited: "V",
            facts: &[Says("not verified V: sh -c 'echo x > x.txt' exit 0")],
            ..PLAIN
        },
        Case {
            name: "a verifier has its variables and its folder",
            graph: "V [shape=octagon, allowed_write_paths=\"\", env_FOO=\"bar ü\", timeout=\"50s\", command=\"test \\\"$FOO\\\" = 'bar ü'\"]; start -> V -> done",
            visited: "V",
            facts: &[Says("verified     V: ")],
            ..PLAIN
        },
        Case {
            name: "a working directory as people write it",
            graph: "T [shape=parallelogram, allowed_write_paths=\"src/\", tool_command=\"mkdir src\"]; V [shape=octagon, allowed_write_paths=\"\", working_dir=\"./src/\", command=\"test -d ../src\"]; start -> T -> V -> done",
            visited: "T V",
            facts: &[Says("verified     V: ")],
            ..PLAIN
        },
        Case {
            name: "a working directory outside is found before anything runs",
            graph: "V [shape=octagon, working_dir=\"../x\", command=\"true\"]; start -> V -> done",
            exit: 3,
            facts: &[Says("error[working_dir_inside]")],
            ..PLAIN
        },
        Case {
            name: "a program that is not there",
            graph: "T [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"no-such-program --x\"]; start -> T -> done",
            exit: 1,
            visited: "T",
            facts: &[Says("tool_exit_code_127"), Says("`toolchains`")],
            ..PLAIN
        },
    ]);
}

#[test]
fn a_stage_that_mends_is_told_who_failed_and_how() {
    check_all(&[Case {
        name: "a build loop: build, test, fix",
        graph: "generate [prompt=\"Create code.\\n\", allowed_write_paths=\"main.go\"]; test [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"echo said; echo 'größe: undefined' >&2; test -f main.go\"];\n\
                fix [prompt=\"Fix build failures.\\n\", allowed_write_paths=\"main.go\"]; start -> generate -> test; test -> done [condition=\"outcome=success\"]; test -> fix [condition=\"outcome=fail\"]; fix -> test",
        script: "[[node.generate]]\ntext = \"nothing yet\"\n\
                 [[node.fix]]\ntool = [{ name = \"write_file\", arguments = { path = \"main.go\", content = \"package main\\n\" } }]\n[[node.fix]]\ntext = \"done\"\n",
        visited: "generate test fix test",
        facts: &[
            Holds(
                "fix/prompt.md",
                "Failure feedback (from previous failed stage):\nfailed_node: test\nfailure_reason: tool_exit_code_1\n",
            ),
            Holds("fix/prompt.md", "größe: undefined"),
            Holds("fix/prompt.md", "said"),
        ],
        exit: 0,
        ..PLAIN
    }]);
}

#[test]
fn a_failure_that_nobody_after_it_could_mend_ends_the_run() {
    const LOOP: &str = "start -> test; test -> done [condition=\"outcome=success\"]; test -> fix [condition=\"outcome=fail\"]; fix -> test";
    let looping = |test: &str, scope: &str| {
        let graph = format!(
            "test [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"{test}\"]; fix [prompt=x, allowed_write_paths=\"{scope}\"]; {LOOP}"
        );
        &*graph.leak()
    };
    check_all(&[
        Case {
            name: "scripts outside of the builder's scope",
            graph: looping("sh checks/unit.sh && sh checks/lint.sh", "src/"),
            exit: 1,
            visited: "test",
            facts: &[
                Is("final.json", "/failure_code", "unfixable_failure_source"),
                Is(
                    "final.json",
                    "/failure_reason",
                    "unfixable_failure_source: failed node test references checks/unit.sh,checks/lint.sh outside allowed_write_paths for fix",
                ),
                Says("warning[unfixable_failure_source]"),
            ],
            ..PLAIN
        },
        Case {
            name: "a scope that holds them",
            graph: looping("sh checks/unit.sh", "src/,checks/"),
            flags: &["--max-steps", "4"],
            exit: 5,
            visited: "test fix test",
            ..PLAIN
        },
        Case {
            name: "hold-outs are nobody's to mend",
            graph: looping("sh scripts/scenarios/one.sh", "src/"),
            flags: &["--max-steps", "4"],
            exit: 5,
            visited: "test fix test",
            ..PLAIN
        },
    ]);
}

#[test]
fn guardrails_of_pipelines_are_told_before_anything_runs() {
    let tool = |command: &str| format!("n [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"{command}\"]");
    let scope = |paths: &str| format!("n [prompt=x, allowed_write_paths=\"{paths}\"]");
    for (node, message) in [
        (tool("cat ~/x"), "tool_command rejected by guardrail: contains ~"),
        (tool("cat ../x"), "tool_command rejected by guardrail: contains .."),
        (tool("cat '/etc/passwd'"), "tool_command rejected by guardrail: contains absolute path"),
        (scope("/etc/x"), "allowed_write_paths contains absolute path: /etc/x"),
        (scope("src/,../x"), "allowed_write_paths contains parent segment: ../x"),
        (scope("src/,,x"), "allowed_write_paths contains empty entry"),
    ] {
        let bench = Workbench::with_pipeline(&format!(
            "digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]; {node}; start -> n -> done }}"
        ));
        for words in [&["check", "pipeline.dot"][..], &["run", "pipeline.dot"]] {
            bench.glovebox(words).ends(3).says(message);
        }
        assert!(!bench.has(".glovebox"), "{node}");
    }
    check_all(&[Case {
        name: "`./...` is no parent segment",
        graph: "n [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"echo ./...\"]; start -> n -> done",
        visited: "n",
        ..PLAIN
    }]);
}

#[test]
fn beginning_and_end_of_what_failed_are_told() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
         test [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"printf '%01000d' 0; printf '%020000d' 0 | tr 0 7 >&2; false\"]\n\
         fix [prompt=\"Mend.\", allowed_write_paths=\"src/\"]\n\
         start -> test; test -> fix [condition=\"outcome=fail\"]; test -> done [condition=\"outcome=success\"]; fix -> done }",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    let prompt = bench.run_text("r", "fix/prompt.md");
    assert!(prompt.contains("Failure feedback (from previous failed stage):\nfailed_node: test\n"), "{prompt}");
    let longest = |digit: char| prompt.split(|c| c != digit).map(str::len).max().unwrap();
    let bytes = prompt.len();
    assert_eq!((longest('0'), (7 << 10..9 << 10).contains(&bytes)), (1000, true), "{bytes}: {prompt}");
    assert!(prompt.contains("the artifact `tool.stderr.txt` has all of it"), "{prompt}");
}
