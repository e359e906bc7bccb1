//! A third-party component as a verifier: only if the operator gives it this role, and only if its imports allow it
//! nothing but verification.
//!
//! The guest runs a script that exists only in the hold-outs, so its verdict shows whether it had access to them.

use crate::guests;
use crate::workbench::Workbench;

const PIPELINE: &str = "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n  \
     check [type=\"acme.check\", allowed_commands=\"sh scripts/scenarios/check.sh\"]\n  start -> check -> done\n}\n";

/// Creates a project with hold-outs whose only stage is a guest with this role.
fn bench(guest: &str, role: &str) -> Workbench {
    let bench = Workbench::with_pipeline(PIPELINE);
    std::fs::write(bench.project().join("guest.wasm"), guests::build(guest)).unwrap();
    bench.write("scripts/scenarios/check.sh", "test -f scripts/scenarios/answer\n");
    bench.write("scripts/scenarios/answer", "42\n");
    let commands = "commands = [\"sh scripts/scenarios/check.sh\"]";
    bench.write(
        "glovebox.toml",
        &format!(
            "[plugins.\"acme.check\"]\npath = \"guest.wasm\"\n{role}\nwants = {{ {commands} }}\ngrants = {{ {commands} }}\n"
        ),
    );
    bench
}

#[test]
fn a_plugin_that_the_operator_binds_as_a_verifier_reaches_hold_outs_and_verifies() {
    let bench = bench("runs-scenario", "role = \"verifier\"");
    bench.glovebox(&["plugin", "lock"]).ends(0).says("verifier: its commands see hold-outs");
    let plan = bench.glovebox(&["plan", "pipeline.dot"]);
    plan.ends(0)
        .says("plugin bound as a verifier")
        .says("check reads scripts/scenarios/ (")
        .says("hold-outs scripts/scenarios/");
    let json = bench.glovebox(&["plan", "pipeline.dot", "--json"]).json();
    assert_eq!(json["nodes"][0]["component"]["role"], "verifier");
    assert_eq!(json["holdouts"]["reach"], serde_json::json!(["check"]));
    let answer = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r1"]);
    answer.ends(0).says("verified     check: sh scripts/scenarios/check.sh").never_says("by the word of");
    bench.glovebox(&["show", "r1"]).ends(0).says("verified     check: sh scripts/scenarios/check.sh");
}

#[test]
fn without_the_operators_word_it_is_a_builder_and_sees_no_hold_outs() {
    for role in ["", "role = \"builder\""] {
        let bench = bench("runs-scenario", role);
        bench.glovebox(&["plugin", "lock"]).ends(0).never_says("verifier: its commands");
        bench
            .glovebox(&["plan", "pipeline.dot"])
            .ends(0)
            .says("readers  none: no stage names the hold-outs")
            .never_says("bound as a verifier");
        bench.glovebox(&["run", "pipeline.dot"]).ends(1).never_says("verified     check");
    }
}

#[test]
fn a_role_that_the_lock_does_not_have_is_refused() {
    let bench = bench("runs-scenario", "");
    bench.glovebox(&["plugin", "lock"]).ends(0);
    let config = bench.read("glovebox.toml").replace("path =", "role = \"verifier\"\npath =");
    bench.write("glovebox.toml", &config);
    bench.glovebox(&["run", "pipeline.dot"]).ends(7).says("role verifier").says("glovebox plugin lock");
}

#[test]
fn a_component_that_may_ask_a_model_is_no_verifier() {
    let bench = bench("asks-model", "role = \"verifier\"");
    for command in [&["plugin", "lock"][..], &["plan", "pipeline.dot"], &["run", "pipeline.dot"]] {
        bench.glovebox(command).ends(7).says("cannot be a verifier: it imports `chat`, `llm`");
    }
    assert!(!bench.has("glovebox.lock"));
}
