//! `glovebox plan --against` and `--deny`: the capabilities that a pipeline has and another has not, and refusing them.

use crate::workbench::{LINEAR, Workbench};

/// Returns a pipeline with one stage that runs this command and has these additional attributes.
fn one_tool(command: &str, more: &str) -> String {
    format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n  t [shape=parallelogram, tool_command=\"{command}\"{more}]\n  \
         start -> t -> done\n}}\n"
    )
}

#[test]
fn plan_against_a_pipeline_tells_what_is_new_and_what_is_gone() {
    let bench =
        Workbench::with_pipeline(&one_tool("make ship", ", allowed_write_paths=\"src/,docs/a.md\", network=none"));
    bench.write("old.dot", &one_tool("make test", ", allowed_write_paths=\"docs/\""));
    bench.write("glovebox.toml", "[sandbox]\nnetwork = { proxy = [\"api.example.com\"] }\n");
    let against = ["plan", "pipeline.dot", "--against", "old.dot"];
    let shown = bench.glovebox(&against);
    shown.ends(0);
    let lines = "  + write src/\n  + run make ship\n  - write docs/\n  - run make test\n  - reach api.example.com\n";
    let told = format!("against old.dot\nall nodes\n{lines}t\n{lines}");
    assert!(shown.stdout.ends_with(&told), "{}", shown.stdout);
    let json = bench.glovebox(&[&against[..], &["--json"]].concat()).ends(0).json();
    assert_eq!(json["against"]["could"]["more"], serde_json::json!(["write src/", "run make ship"]));
    assert_eq!(json["against"]["nodes"][0]["presence"], "kept");
    assert!(json.get("denied").is_none());
    bench.glovebox(&["plan", "old.dot", "--against", "old.dot"]).ends(0).says("against old.dot: no difference");
    bench
        .glovebox(&["plan", "pipeline.dot", "--against", "old.dot", "--deny", "widened"])
        .ends(6)
        .says("write src/")
        .says("`t`");
    bench.glovebox(&["plan", "old.dot", "--against", "old.dot", "--deny", "widened"]).ends(0);
}

#[test]
fn plan_against_a_run_takes_its_pipeline_and_the_configuration_of_today() {
    let bench = Workbench::with_pipeline(LINEAR);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "before", "--max-steps", "9"]).ends(0);
    let same = ["plan", "pipeline.dot", "--against", "before", "--max-steps", "9"];
    bench.glovebox(&same).ends(0).says("its pipeline with the current configuration").says("no difference");
    bench.write("pipeline.dot", &LINEAR.replace("src/", "lib/,src/"));
    bench.glovebox(&same).ends(0).says("  + write lib/\n");
    let widened = bench.glovebox(&["plan", "pipeline.dot", "--against", "latest", "--deny", "widened", "--json"]);
    let json = widened.ends(6).json();
    let denied: Vec<&str> = json["denied"].as_array().unwrap().iter().filter_map(|one| one["grant"].as_str()).collect();
    assert_eq!(denied, ["write lib/", "spend 200 steps"]);
    assert!(json["denied"][0]["from"].as_str().unwrap().contains("allowed_write_paths"), "{json}");
    bench.glovebox(&["plan", "pipeline.dot", "--against", "nowhere"]).ends(2).says("no run `nowhere`");
    bench.glovebox(&["plan", "pipeline.dot", "--against", "nowhere.dot"]).ends(2);
}

#[test]
fn plan_denies_what_a_rule_names() {
    let bench = Workbench::with_pipeline(&one_tool("cargo publish --dry-run", ", allowed_write_paths=\"src/a/\""));
    for (rule, said) in [
        ("run=*", "`t`: run cargo publish --dry-run (from: `tool_command` of the node)"),
        ("run=cargo publish", "denied by `run=cargo publish`"),
        ("write=src/", "write src/a/ (from: built-in `tool`, `allowed_write_paths` of the node)"),
        ("read=secrets/", "read ./"),
    ] {
        bench.glovebox(&["plan", "pipeline.dot", "--deny", rule]).ends(6).says(said).says("1 grant denied");
    }
    let fine = ["run=npm", "write=.github/", "reach=*", "model", "network-full", "plugin=*", "read=.git/"];
    let words: Vec<&str> = fine.iter().flat_map(|rule| ["--deny", rule]).collect();
    let json = bench.glovebox(&[&["plan", "pipeline.dot", "--json"], &words[..]].concat()).ends(0).json();
    assert_eq!(json["denied"], serde_json::json!([]));
    for (rule, said) in [("wirte=src/", "did you mean `write=src/`?"), ("reach", "`reach=*`"), ("widened", "--against")]
    {
        bench.glovebox(&["plan", "pipeline.dot", "--deny", rule]).ends(2).says(said);
    }
}

/// What deleted files and other branches contain is not part of the project's files.
#[test]
fn plan_shows_that_commands_see_the_history() {
    let text = one_tool("make", ", allowed_write_paths=\"src/\"");
    let bench = Workbench::with_pipeline(&text);
    bench.write("old/old.dot", &text);
    bench.write("old/glovebox.toml", "[workspace]\ngit = \"commit\"\n");
    bench.write(
        "glovebox.toml",
        "[workspace]\ngit = \"history\"\n[sandbox]\nnetwork = { proxy = [\"api.example.com\"] }\n",
    );
    let row = "  git      every commit, branch and tag of the repository\n";
    let shown = bench.glovebox(&["plan", "pipeline.dot", "--against", "old/old.dot"]);
    shown.ends(0).says(row).says("  + read the history of the repository\n").says("git history");
    bench.glovebox(&["plan", "old/old.dot"]).ends(0).never_says("every commit").never_says("git history");
    let json = bench.glovebox(&["plan", "pipeline.dot", "--json"]).ends(0).json();
    assert_eq!(json["could"]["history"], true);
    assert_eq!(json["egress"][0]["source"], "git history");
    bench.glovebox(&["run", "pipeline.dot", "--no-input"]).ends(6).says("`git history` goes to proxy api.example.com");
    bench.write("pipeline.dot", &text.replace("allowed_write_paths=\"src/\"", "read_paths=\"src/\""));
    bench.glovebox(&["plan", "pipeline.dot"]).ends(0).never_says("every commit").never_says("git history");
}

#[test]
fn plan_shows_what_doing_without_walls_would_mean() {
    let bench = Workbench::with_pipeline(&one_tool("make", ""));
    bench.glovebox(&["plan", "pipeline.dot"]).ends(0).never_says("unconfined");
    let json = bench.glovebox(&["plan", "pipeline.dot", "--dangerously-no-sandbox", "--json"]).ends(0).json();
    assert_eq!(json["sandbox_tier"], "unconfined");
}

#[test]
fn plan_says_what_a_run_and_a_visit_could_use_up() {
    let bench = Workbench::with_pipeline(&LINEAR.replace("\"src/\"", "\"src/\", max_turns=7, timeout=\"90s\""));
    let shown = bench.glovebox(&["plan", "pipeline.dot"]);
    shown
        .ends(0)
        .says("model    yes\n  spend    200 steps, unlimited wall time, 10GiB of disk, 10m00s without progress\n");
    shown.says("model    yes\n  spend    7 turns, 1m30s per visit\n");
    let bound = bench.glovebox(&["plan", "pipeline.dot", "--max-steps", "9", "--max-wall-time", "2h"]);
    bound.ends(0).says("  spend    9 steps, 2h00m, 10GiB of disk, 10m00s without progress\n");
}

#[test]
fn plan_against_sees_changes_of_human_gates() {
    let text = |gate: &str, edges: &str| {
        format!("digraph g {{ start; exit; gate [shape=hexagon, {gate}]; start -> gate; {edges} }}")
    };
    let both = "gate -> exit [label=\"[S] Ship\"]; gate -> gate [label=\"[A] Again\"]";
    let bench = Workbench::with_pipeline(&text("\"human.default_choice\"=S", both));
    bench.write("old.dot", &text("label=Ship", "gate -> exit [label=\"[S] Ship\"]"));
    let against =
        |new: &str, old: &str, more: &[&str]| bench.glovebox(&[&["plan", new, "--against", old], more].concat());
    let lines = "  + offer the choice [A] Again -> gate\n  + go on to exit when no person answers\n";
    against("pipeline.dot", "old.dot", &[]).ends(0).says(lines);
    against("pipeline.dot", "old.dot", &["--deny", "widened"])
        .ends(6)
        .says("go on to exit when no person answers")
        .says("human.default_choice");
    bench.write("none.dot", "digraph g { start; exit; start -> exit }");
    against("none.dot", "old.dot", &[]).ends(0).says("gate (gone)").says("  - offer the choice [S] Ship -> exit\n");
    // Adding a gate to an edge that had none does not widen the plan.
    against("pipeline.dot", "none.dot", &["--deny", "widened"]).ends(0);
}

#[test]
fn a_plan_that_holds_back_less_is_widened() {
    let old = "digraph g { graph [max_restarts=1, loop_restart_signature_limit=2, \"tool_hooks.pre\"=\"exit 1\"]
        start [shape=Mdiamond]; done [shape=Msquare]
        a [prompt=x, allowed_write_paths=\"\", max_visits=2, max_tokens=50, max_wall_time=\"1m\", goal_gate=true, retry_target=a]
        start -> a -> done }";
    let bench = Workbench::new();
    bench.write("old.dot", old);
    let against = |text: &str| {
        bench.write("new.dot", text);
        bench.glovebox(&["plan", "new.dot", "--against", "old.dot", "--deny", "widened"])
    };
    against(old).ends(0).says("no difference");
    for (was, now, said) in [
        ("max_restarts=1", "max_restarts=9", "the run: `max_restarts` is raised to 9"),
        (
            "loop_restart_signature_limit=2",
            "loop_restart_signature_limit=8",
            "`loop_restart_signature_limit` is raised to 8",
        ),
        ("\"tool_hooks.pre\"=\"exit 1\"", "max_steps=200", "its tool calls no longer have `tool_hooks.pre` exit 1"),
        (", max_visits=2", "", "node `a`: `max_visits` is no longer set"),
        ("max_tokens=50", "max_tokens=51", "node `a`: `max_tokens` is raised to 51"),
        ("max_wall_time=\"1m\"", "max_wall_time=\"2m\"", "node `a`: `max_wall_time` is raised to 120000"),
        (", goal_gate=true, retry_target=a", "", "node `a`: no longer a goal gate"),
    ] {
        against(&old.replace(was, now)).ends(6).says("denied by `widened`").says(said);
    }
    for (was, now) in
        [("max_restarts=1", "max_restarts=0"), ("max_visits=2", "max_visits=1"), ("max_tokens=50", "max_tokens=5")]
    {
        against(&old.replace(was, now)).ends(0);
    }
}
