//! A rule plugin that widens a pipeline is refused unless `transform = "widen"` allows it. The refusal names the
//! plugin.

use crate::guests;
use crate::workbench::Workbench;

/// Writes a glovebox.toml in which `house.wasm` is the rule plugin `acme.house`. `transform` is the value of its key
/// `transform`.
fn grant(bench: &Workbench, more: &str, transform: &str) {
    let table = "[rules.\"acme.house\"]\npath = \"house.wasm\"\n";
    bench.write("glovebox.toml", &format!("{more}{table}transform = {transform}\n"));
}

/// A pipeline with hold-outs, a builder and a verifier that is a goal gate.
const JUDGED: &str = "digraph g {
  graph [goal=\"x\", max_steps=20]
  start [shape=Mdiamond]
  build [prompt=\"x\", allowed_write_paths=\"src/\", read_paths=\"src/\", max_turns=5, max_visits=4, \"tool_hooks.pre\"=\"sh guard.sh\"]
  judge [shape=octagon, command=\"sh scripts/scenarios/check.sh\", allowed_write_paths=\"\", goal_gate=true, timeout=\"1m\", network=none]
  done [shape=Msquare]
  start -> build -> judge
  judge -> done [condition=\"outcome=success\"]
  judge -> build [condition=\"outcome=fail\"]
}
";

/// Returns [`JUDGED`] as a transform returns it, with one text replaced.
fn answered(bench: &Workbench, from: &str, to: &str) -> String {
    let mut graph = bench.glovebox(&["graph", "pipeline.dot", "--format", "json"]).ends(0).json();
    graph.as_object_mut().unwrap().remove("layout");
    let text = graph.to_string();
    assert!(text.contains(from), "{from} is not in {text}");
    text.replace(from, to)
}

#[test]
fn whatever_a_transform_widens_is_refused_unless_it_is_accepted() {
    let config = "[sandbox]\nnetwork = { proxy = [\"api.example.com\"] }\n";
    for (from, to, widened) in [
        (r#""allowed_write_paths":"src/""#, r#""allowed_write_paths":"src/,docs/""#, "node `build`: write docs/"),
        (r#""read_paths":"src/""#, r#""read_paths":"./""#, "node `build`: read ./"),
        (r#""max_turns":"5""#, r#""max_turns":"6""#, "node `build`: spend 6 turns"),
        (r#""max_turns":"5""#, r#""allowed_commands":"cargo test""#, "node `build`: run cargo test"),
        (
            r#""tool_hooks.pre":"sh guard.sh""#,
            r#""tool_hooks.pre":"""#,
            "node `build`: its tool calls no longer have `tool_hooks.pre` sh guard.sh",
        ),
        (
            r#""max_turns":"5""#,
            r#""max_turns":"5","tool_hooks.post":"sh tell.sh""#,
            "node `build`: run sh tell.sh after each tool call",
        ),
        (r#""max_turns":"5""#, r#""codex.allow_read_scenarios":"true""#, "node `build`: hold-outs scripts/scenarios/"),
        ("sh scripts/scenarios/check.sh", "true", "node `judge`: run true"),
        ("sh scripts/scenarios/check.sh", "true", "node `judge`: no longer checks with sh scripts/scenarios/check.sh"),
        (r#""goal_gate":"true""#, r#""goal_gate":"false""#, "node `judge`: no longer a goal gate"),
        (r#""timeout":"1m""#, r#""timeout":"9m""#, "node `judge`: limit wall_ms 540000"),
        (
            r#""timeout":"1m""#,
            r#""timeout":"1m","network":"proxy:api.example.com""#,
            "node `judge`: reach api.example.com",
        ),
        (
            r#""timeout":"1m""#,
            r#""timeout":"1m","scenario_feedback":"full""#,
            "hold-outs: builders can read what `judge` prints",
        ),
        (r#""max_visits":"4""#, r#""max_visits":"40""#, "node `build`: `max_visits` is raised to 40"),
        (r#""max_steps":"20""#, r#""max_steps":"20","max_restarts":"99""#, "the run: `max_restarts` is raised to 99"),
        (r#""max_steps":"20""#, r#""max_steps":"21""#, "the run: spend 21 steps"),
        (
            r#""max_steps":"20""#,
            r#""max_steps":"20","scenario_copies":"allow""#,
            "hold-outs: the workspace may contain copies of hold-outs",
        ),
    ] {
        println!("{from} -> {to}");
        let bench = Workbench::with_pipeline(JUDGED);
        bench.write("scripts/scenarios/check.sh", "test -e src/prog\n");
        let component = guests::rules(&guests::answering(&answered(&bench, from, to)));
        std::fs::write(bench.project().join("house.wasm"), component).unwrap();
        grant(&bench, config, "true");
        bench.glovebox(&["plugin", "lock"]).ends(0);
        for command in [&["plan", "pipeline.dot"][..], &["run", "pipeline.dot"]] {
            let answer = bench.glovebox(command);
            answer.ends(6).says("`acme.house` widens what the pipeline may do").says(widened);
            answer.says("`transform = \"widen\"` under `[rules.\"acme.house\"]` (glovebox.toml:3)");
        }
        assert!(!bench.has(".glovebox"), "a run that is refused does not exist");
        grant(&bench, config, "\"widen\"");
        bench.glovebox(&["plugin", "lock"]).ends(0).says("granted  widen");
        let plan = bench.glovebox(&["plan", "pipeline.dot"]);
        plan.ends(0).says(&format!("  widened: {widened}"));
        let json = bench.glovebox(&["plan", "pipeline.dot", "--json"]).ends(0).json();
        assert!(json["rules"][0]["widened"].to_string().contains(&widened[..9]), "{json}");
    }
}

#[test]
fn what_is_only_narrowed_needs_no_more_leave() {
    for (from, to) in [
        (r#""allowed_write_paths":"src/""#, r#""allowed_write_paths":"src/a.rs""#),
        (r#""read_paths":"src/""#, r#""read_paths":"src/a.rs""#),
        (r#""max_turns":"5""#, r#""max_turns":"4""#),
        (r#""timeout":"1m""#, r#""timeout":"30s""#),
        (r#""max_steps":"20""#, r#""max_steps":"19""#),
        (r#""prompt":"x""#, r#""prompt":"say x""#),
    ] {
        println!("{from} -> {to}");
        let bench = Workbench::with_pipeline(JUDGED);
        bench.write("scripts/scenarios/check.sh", "test -e src/prog\n");
        let component = guests::rules(&guests::answering(&answered(&bench, from, to)));
        std::fs::write(bench.project().join("house.wasm"), component).unwrap();
        grant(&bench, "", "true");
        bench.glovebox(&["plugin", "lock"]).ends(0);
        bench.glovebox(&["plan", "pipeline.dot"]).ends(0).says("changed and checked the graph").never_says("widened");
    }
}

#[test]
fn what_was_widened_is_told_of_the_component_that_did() {
    let bench = Workbench::with_pipeline(JUDGED);
    bench.write("scripts/scenarios/check.sh", "test -e src/prog\n");
    let steps = answered(&bench, r#""max_steps":"20""#, r#""max_steps":"30""#);
    let both = steps.replace(r#""allowed_write_paths":"src/""#, r#""allowed_write_paths":"./""#);
    for (name, answer) in [("first", &steps), ("second", &both)] {
        let component = guests::rules(&guests::answering(answer));
        std::fs::write(bench.project().join(format!("{name}.wasm")), component).unwrap();
    }
    let config = |first: &str, second: &str| {
        let table =
            |name: &str, grant: &str| format!("[rules.\"acme.{name}\"]\npath = \"{name}.wasm\"\ntransform = {grant}\n");
        bench.write("glovebox.toml", &(table("first", first) + &table("second", second)));
        bench.glovebox(&["plugin", "lock"]).ends(0);
    };
    config("\"widen\"", "true");
    let answer = bench.glovebox(&["run", "pipeline.dot"]);
    answer.ends(6).says("`acme.second` widens what").says("node `build`: write ./").never_says("30 steps");
    config("true", "\"widen\"");
    bench.glovebox(&["run", "pipeline.dot"]).ends(6).says("`acme.first` widens what").says("the run: spend 30 steps");
    config("\"widen\"", "\"widen\"");
    let plan = bench.glovebox(&["plan", "pipeline.dot"]).ends(0).stdout.clone();
    let place = |text: &str| plan.find(text).unwrap_or_else(|| panic!("{text} is not in {plan}"));
    assert!(place("rules `acme.first`") < place("widened: the run: spend 30 steps"), "{plan}");
    assert!(place("widened: the run: spend 30 steps") < place("rules `acme.second`"), "{plan}");
    assert!(place("rules `acme.second`") < place("widened: node `build`: write ./"), "{plan}");
}
