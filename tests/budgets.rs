//! Limits on what a run may spend on model calls: tokens and money, for a run and for a node, across branches, kills
//! and resumes.

use crate::workbench::Workbench;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Creates a pipeline with stages in a row, each with one turn of 100 tokens. `graph` and `node` are additional
/// attributes.
fn bench(stages: usize, graph: &str, node: &str) -> Workbench {
    let mut text =
        format!("digraph g {{\n graph [goal=\"spend\"{graph}]\n start [shape=Mdiamond]\n done [shape=Msquare]\n");
    let mut script = String::new();
    let mut from = "start".to_owned();
    for stage in 1..=stages {
        writeln!(text, " n{stage} [prompt=p, allowed_write_paths=\"\"{node}]\n {from} -> n{stage}").unwrap();
        from = format!("n{stage}");
        script += &format!("[[node.n{stage}]]\ntext = \"done\"\nusage = {{ input = 90, output = 10 }}\n");
    }
    writeln!(text, " {from} -> done\n}}").unwrap();
    let bench = Workbench::with_pipeline(&text);
    bench.write("script.toml", &script);
    bench
}

fn run(more: &[&'static str]) -> Vec<&'static str> {
    [&["run", "pipeline.dot", "--script", "script.toml", "--run-id", "x", "-q"], more].concat()
}

fn shown(bench: &Workbench) -> Value {
    bench.glovebox(&["show", "x", "--json"]).ends(0).json()
}

/// Returns the sum of the tokens of all attempts in the journal.
fn spent(bench: &Workbench) -> u64 {
    let text = bench.run_text("x", "progress.ndjson");
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let tokens =
        |event: &Value| ["input", "output"].iter().filter_map(|side| event["tokens"][side].as_u64()).sum::<u64>();
    records.map(|record| tokens(&record["event"])).sum()
}

#[test]
fn a_bound_on_tokens_names_itself_and_a_higher_one_lets_the_run_go_on() {
    let bench = bench(4, ", max_tokens=250", "");
    bench.glovebox(&run(&[])).ends(5).says("help         raise");
    let failure = shown(&bench)["failure"].clone();
    assert_eq!((&failure["class"], &failure["code"]), (&json!("budget"), &json!("limit/max_tokens")));
    let reason = "Pipeline exceeded maximum tokens (250): 200 are spent, and the next call may take 100. Use --max-tokens to increase.";
    assert_eq!(failure["reason"], reason);
    assert_eq!(spent(&bench), 200);
    // A resume with the same limit ends at once, and so does one whose limit leaves fewer tokens than the next call may
    // take.
    bench.glovebox(&["resume", "x", "-q"]).ends(5).says("maximum tokens (250)");
    bench.glovebox(&["resume", "x", "-q", "--max-tokens", "299"]).ends(5).says("(299): 200 are spent");
    assert_eq!(spent(&bench), 200);
    bench.glovebox(&["resume", "x", "-q", "--max-tokens", "400"]).ends(0);
    assert_eq!(spent(&bench), 400);
    let visited = shown(&bench)["visited"].clone();
    let passed = visited.as_array().unwrap().iter().filter(|visit| visit["status"] == "success").count();
    assert_eq!(passed, 4);
}

#[test]
fn the_smallest_of_flag_pipeline_and_operator_counts() {
    for (graph, flag, config, most) in [
        ("", "150", "", 150),
        (", max_tokens=150", "900", "", 150),
        (", max_tokens=900", "800", "[run]\nmax_tokens = 150\n", 150),
    ] {
        let bench = bench(3, graph, "");
        bench.write("glovebox.toml", config);
        let words = ["run", "pipeline.dot", "--script", "script.toml", "--run-id", "x", "-q", "--max-tokens", flag];
        bench.glovebox(&words).ends(5).says(&format!("maximum tokens ({most})"));
        assert_eq!(spent(&bench), 100);
        let plan = ["plan", "pipeline.dot", "--script", "script.toml", "--json", "--max-tokens", flag];
        assert_eq!(bench.glovebox(&plan).ends(0).json()["spend_max"]["tokens_max"], most);
    }
    let bench = bench(1, "", "");
    bench.write("glovebox.toml", "[run]\nmax_tokens = 0\n");
    bench.glovebox(&run(&[])).ends(3).says("`run.max_tokens` is not a number of tokens above 0");
}

#[test]
fn a_node_has_a_bound_over_all_its_visits_and_its_failure_can_be_routed() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n start [shape=Mdiamond]\n done [shape=Msquare]\n work [prompt=w, allowed_write_paths=\"\", max_tokens=250]\n \
         rest [prompt=r, allowed_write_paths=\"\"]\n start -> work\n work -> work [condition=\"outcome=success\"]\n \
         work -> rest [condition=\"outcome=fail\"]\n rest -> done\n}\n",
    );
    let turn = |node: &str| format!("[[node.{node}]]\ntext = \"done\"\nusage = {{ input = 90, output = 10 }}\n");
    bench.write("script.toml", &(turn("work").repeat(9) + &turn("rest")));
    bench.glovebox(&run(&[])).ends(0);
    assert_eq!(spent(&bench), 300);
    let text = bench.glovebox(&["show", "x", "work"]);
    text.ends(0).says("budget (limit/node_max_tokens): node `work` exceeded `max_tokens` (250): 200 are spent");
}

#[test]
fn money_is_counted_by_price_or_by_what_the_provider_says() {
    // 90 tokens at 1,000 dollars per million and 10 at 10,000 dollars per million cost 19 cents.
    let prices = "[models.scripted]\nprice = { input = 1000, output = \"10000.0\" }\n";
    let priced = bench(3, ", max_budget_usd=0.40", "");
    priced.write("glovebox.toml", prices);
    priced
        .glovebox(&run(&[]))
        .ends(5)
        .says("Pipeline exceeded maximum budget ($0.4): $0.38 is spent, and the next call may cost $0.19");
    assert_eq!(priced.run_text("x", "progress.ndjson").matches("\"cost\":190000").count(), 2);
    priced.glovebox(&["resume", "x", "-q", "--max-budget-usd", "0.57"]).ends(0);
    let told = bench(3, ", max_budget_usd=\"$1\"", "");
    told.write("script.toml", &told.read("script.toml").replace("output = 10", "output = 10, cost_usd = 0.4"));
    told.glovebox(&run(&[])).ends(5).says("($1): $0.8 is spent");
}

#[test]
fn money_that_nobody_can_count_is_refused_before_the_run() {
    for (graph, node, flags) in
        [(", max_budget_usd=5", "", &[][..]), ("", ", max_budget_usd=5", &[]), ("", "", &["--max-budget-usd", "5"])]
    {
        let bench = bench(1, graph, node);
        bench
            .glovebox(&run(flags))
            .ends(3)
            .says("cannot be enforced: the price of the model `scripted` is not known")
            .says("[models.scripted]");
        assert!(!bench.has(".glovebox/runs/x"));
        let plan = [&["plan", "pipeline.dot", "--script", "script.toml"], flags].concat();
        bench.glovebox(&plan).ends(3).says("cannot be enforced");
    }
    let simulated = bench(1, ", max_budget_usd=5", "");
    simulated.glovebox(&["run", "pipeline.dot", "--simulate", "-q"]).ends(0);
    let wrong = bench(1, ", max_budget_usd=\"five\"", "");
    wrong.glovebox(&["check", "pipeline.dot"]).ends(3).says("`max_budget_usd` is `five`: expected US dollars");
}

#[test]
fn branches_at_the_same_time_never_cross_the_bound_together() {
    let mut text = "digraph g {\n graph [max_tokens=550]\n start [shape=Mdiamond]\n done [shape=Msquare]\n fork [shape=component, \
                    max_parallel=8, error_policy=ignore]\n join [shape=tripleoctagon]\n start -> fork\n join -> done\n"
        .to_owned();
    let mut script = String::new();
    for branch in 1..=8 {
        writeln!(text, " b{branch} [prompt=p, allowed_write_paths=\"\"]\n fork -> b{branch}\n b{branch} -> join")
            .unwrap();
        script += &format!("[[node.b{branch}]]\ntext = \"done\"\nusage = {{ input = 90, output = 10 }}\n");
    }
    let bench = Workbench::with_pipeline(&(text + "}\n"));
    bench.write("script.toml", &script);
    bench.glovebox(&run(&[])).ends(5).says("maximum tokens (550)");
    assert_eq!(spent(&bench), 500, "five of eight fit");
    // With a higher limit, the branches continue at the stages that the limit stopped.
    bench.glovebox(&["resume", "x", "-q", "--max-tokens", "800"]).ends(0);
    assert_eq!(spent(&bench), 800);
}

#[test]
fn what_was_spent_before_a_kill_counts() {
    let bench = bench(4, ", max_tokens=350", "");
    let mut child = bench.start(&run(&["--json"])[..].iter().copied().filter(|word| *word != "-q").collect::<Vec<_>>());
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !(line.contains("stage.finished") && line.contains("\"n2\"")) {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut output, &mut line).unwrap() > 0);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    bench.glovebox(&["resume", "x", "-q"]).ends(5).says("(350): 300 are spent");
    assert_eq!(spent(&bench), 300);
}

/// Creates a pipeline with a node `work` that is visited again as long as it succeeds. `work` contains its additional
/// attributes.
fn looping(work: &str, script: &str) -> Workbench {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n graph [max_steps=60]\n start [shape=Mdiamond]\n done [shape=Msquare]\n work [shape=parallelogram, allowed_write_paths=\"\", {work}]\n \
         start -> work\n work -> work [condition=\"outcome=success\"]\n work -> done [condition=\"outcome=fail\"]\n}}\n"
    ));
    bench.write("script.toml", script);
    bench
}

/// Returns the `stage.finished` events of a node.
fn attempts(bench: &Workbench, node: &str) -> Vec<Value> {
    let text = bench.run_text("x", "progress.ndjson");
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let events = records.map(|record| record["event"].clone());
    events.filter(|event| event["kind"] == "stage.finished" && event["node"] == node).collect()
}

#[test]
fn steps_of_a_node_count_visits_retries_and_branches_and_the_bound_names_itself() {
    let bench = looping("tool_command=\"true\", max_steps=3", "");
    bench
        .glovebox(&run(&[]))
        .ends(5)
        .says("node `work` exceeded `max_steps` (3)")
        .says("raise `max_steps` of the node");
    assert_eq!(
        (attempts(&bench, "work").len(), &shown(&bench)["failure"]["code"]),
        (3, &json!("limit/node_max_steps"))
    );
    // Retries are counted too: three attempts of one visit use up the limit. The failure keeps the reason of the stage
    // itself.
    let bench = looping("tool_command=\"exit 7\", max_retries=9, max_steps=3, retry_policy=none", "");
    bench.glovebox(&run(&[])).ends(0);
    assert_eq!(attempts(&bench, "work").len(), 3);
    bench
        .glovebox(&["show", "x", "work"])
        .ends(0)
        .says("not repeated: node `work` exceeded `max_steps` (3)")
        .says("tool_exit_code_7");
    // Visits in different branches are counted together: two branches lead through the same stage.
    let forked = Workbench::with_pipeline(
        "digraph g {\n start [shape=Mdiamond]\n done [shape=Msquare]\n f [shape=component, max_parallel=1]\n j [shape=tripleoctagon]\n \
         a [shape=parallelogram, tool_command=true, allowed_write_paths=\"\"]\n b [shape=parallelogram, tool_command=true, allowed_write_paths=\"\"]\n \
         both [shape=parallelogram, tool_command=true, allowed_write_paths=\"\", max_steps=1]\n \
         start -> f\n f -> a\n f -> b\n a -> both\n b -> both\n both -> j\n j -> done\n}\n",
    );
    forked.write("script.toml", "");
    forked.glovebox(&run(&[])).ends(0);
    assert_eq!(attempts(&forked, "both").len(), 1);
    forked.glovebox(&["why", "x"]).ends(0).says("node `both` exceeded `max_steps` (1)");
}

#[test]
fn a_resume_keeps_the_steps_of_a_node() {
    let bench = looping("tool_command=\"test $(cat n 2>/dev/null || echo 0) -lt 99\", max_steps=4", "");
    bench.write("pipeline.dot", &bench.read("pipeline.dot").replace("max_steps=60", "max_steps=3"));
    // The visit of the start node is also a step of the run.
    bench.glovebox(&run(&[])).ends(5).says("maximum step count (3)");
    assert_eq!(attempts(&bench, "work").len(), 2);
    bench.glovebox(&["resume", "x", "-q", "--max-steps", "60"]).ends(5).says("node `work` exceeded `max_steps` (4)");
    assert_eq!(attempts(&bench, "work").len(), 4);
}

#[test]
fn the_time_of_a_node_cuts_its_attempt_over_all_visits_and_the_failure_is_routed() {
    // The first attempt takes at least 2 s, so at most 1.9 s are left. The second attempt needs 2 s.
    let bench = looping("tool_command=\"sleep 2\", max_wall_time=\"3900ms\"", "");
    bench.glovebox(&run(&[])).ends(0);
    let ended = attempts(&bench, "work");
    assert_eq!(ended.len(), 2, "{ended:?}");
    let failure = &ended.last().unwrap()["outcome"]["failure"];
    assert_eq!((&failure["code"], &failure["class"]), (&json!("limit/node_max_wall_time"), &json!("budget")));
    assert_eq!(failure["reason"], "node `work` exceeded `max_wall_time` (3900 ms)");
    // No time is left for another visit, not even after a resume.
    let again = looping("tool_command=\"sleep 9\", max_wall_time=\"300ms\"", "");
    again.write(
        "pipeline.dot",
        &again
            .read("pipeline.dot")
            .replace("work -> done [condition=\"outcome=fail\"]", "work -> done [condition=\"context.never=1\"]"),
    );
    again
        .glovebox(&run(&[]))
        .ends(5)
        .says("node `work` exceeded `max_wall_time` (300 ms)")
        .says("raise `max_wall_time` of the node");
    again.glovebox(&["resume", "x", "-q"]).ends(5).says("node `work` exceeded `max_wall_time` (300 ms)");
    assert_eq!(attempts(&again, "work").len(), 1);
}

#[test]
fn bounds_of_nodes_that_make_no_attempt_are_refused() {
    for (node, help) in [
        ("x [shape=hexagon, max_wall_time=\"1m\"]", "set its `timeout`"),
        ("x [shape=component, max_wall_time=\"1m\"]", "set its `timeout`"),
        ("x [shape=diamond, max_wall_time=\"1m\"]", "remove it, or set it on a stage"),
    ] {
        let bench = Workbench::with_pipeline(&format!(
            "digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]; {node}; start -> x; x -> done }}\n"
        ));
        bench.glovebox(&["check", "pipeline.dot"]).ends(3).says("`max_wall_time` has no effect on").says(help);
    }
}

#[test]
fn a_visit_that_a_bound_of_the_run_ended_does_not_count_for_max_visits() {
    // A stage outside of a parallel node.
    let late = Workbench::with_pipeline(
        "digraph g { graph [max_wall_time=\"800ms\"]\n start [shape=Mdiamond]; done [shape=Msquare]\n \
         a [shape=parallelogram, tool_command=\"sleep 2; echo a > a\", allowed_write_paths=a, max_visits=1]\n start -> a -> done }\n",
    );
    late.write("script.toml", "");
    late.glovebox(&run(&[])).ends(5).says("maximum wall time");
    late.glovebox(&["resume", "x", "-q", "--max-wall-time", "1h"]).ends(0);
    assert_eq!(late.run_text("x", "workspace/a"), "a\n");
    // A stage in a branch: the work of the branch is not lost.
    let forked = Workbench::with_pipeline(
        "digraph g { graph [max_tokens=100]\n start [shape=Mdiamond]; done [shape=Msquare]\n \
         f [shape=component]; j [shape=tripleoctagon, merge=all]\n \
         a [prompt=x, allowed_write_paths=\"src/\", max_visits=1]\n \
         b [shape=parallelogram, tool_command=\"echo b > other\", allowed_write_paths=other]\n \
         start -> f; f -> a -> j; f -> b -> j; j -> done }\n",
    );
    let write = "[[node.a]]\ntool = [{ name = \"write_file\", arguments = { path = \"src/a\", content = \"x\" } }]\nusage = { input = 60, output = 0 }\n";
    let end = "[[node.a]]\ntext = \"ok\"\nusage = { input = 60, output = 0 }\noutcome = { status = \"success\" }\n";
    forked.write("script.toml", &format!("{write}{end}"));
    forked.glovebox(&run(&[])).ends(5).says("max_tokens");
    forked.write("script.toml", &format!("{write}{end}{write}{end}"));
    forked.glovebox(&["resume", "x", "-q", "--max-tokens", "1000"]).ends(0);
    assert_eq!(
        (forked.run_text("x", "workspace/src/a"), forked.run_text("x", "workspace/other")),
        ("x".into(), "b\n".into())
    );
}

#[test]
fn the_operators_bound_wins_over_the_flag_of_a_resume_which_is_refused_before_it_begins() {
    let bench = bench(3, "", "");
    bench.write("glovebox.toml", "[run]\nmax_tokens = 150\n");
    bench.glovebox(&run(&[])).ends(5).says("maximum tokens (150)");
    let before = bench.run_text("x", "progress.ndjson");
    for most in ["1000", "2000"] {
        let resumed = bench.glovebox(&["resume", "x", "-q", "--max-tokens", most]);
        resumed.ends(5).says("maximum tokens (150)").says("`[run]` in glovebox.toml wins over the flag");
    }
    assert_eq!(bench.run_text("x", "progress.ndjson"), before, "a resume was recorded");
    // A higher limit in glovebox.toml does not raise the limit of an existing run. The resume needs the flag as well.
    bench.write("glovebox.toml", "[run]\nmax_tokens = 500\n");
    bench.glovebox(&["resume", "x", "-q"]).ends(5).says("maximum tokens (150)");
    bench.glovebox(&["resume", "x", "-q", "--max-tokens", "300"]).ends(0);
    assert_eq!(spent(&bench), 300);
}
