//! Messages about words with a typing mistake: the names of files, commands, attributes and settings.

use super::bare;
use crate::workbench::{LINEAR, Workbench};

#[test]
fn a_missing_file_offers_one_with_a_similar_name() {
    let bench = Workbench::with_pipeline(LINEAR);
    bench.write("p.dot", LINEAR);
    bench.write("sub/ship.dot", LINEAR);
    for command in ["run", "plan", "check", "fmt"] {
        bare(&bench, &[command, "p.dto"]).ends(2).says("read `p.dto`: No such file").says("did you mean `p.dot`?");
    }
    bare(&bench, &["run", "sub/shpi.dot"]).ends(2).says("did you mean `sub/ship.dot`?");
    bare(&bench, &["run", "p"]).ends(2).says("did you mean `p.dot`?");
    bare(&bench, &["run", "quite-another.dot"]).ends(2).never_says("did you mean");
    bare(&bench, &["run", "nowhere/p.dot"]).ends(2).never_says("did you mean");
}

#[test]
fn an_unknown_command_offers_the_one_with_the_smallest_distance() {
    let bench = Workbench::new();
    for (word, meant) in
        [("rn", "run"), ("plna", "plan"), ("chekc", "check"), ("transcrpit", "transcript"), ("iint", "init")]
    {
        bare(&bench, &[word]).ends(2).says(&format!("'{meant}'"));
    }
    bare(&bench, &["rn"]).never_says("transcript");
}

#[test]
fn a_misspelt_command_attribute_is_one_error() {
    let bench = Workbench::new();
    let pipeline = |attribute: &str| {
        format!(
            "digraph d {{ start; done; test [shape=parallelogram, {attribute}=\"true\", allowed_write_paths=\"\"]; \
             start -> test -> done }}"
        )
    };
    bench.write("pipeline.dot", &pipeline("tool_comand"));
    let check = bare(&bench, &["check", "pipeline.dot"]);
    check
        .ends(3)
        .says("1 error, 0 warnings")
        .says("unknown attribute `tool_comand`")
        .says("did you mean `tool_command`?");
    check.never_says("cargo test");
    bare(&bench, &["check", "--fix", "pipeline.dot"]).ends(0);
    assert!(bench.read("pipeline.dot").contains("tool_command="));
}

#[test]
fn an_unknown_setting_offers_the_known_one() {
    let bench = Workbench::with_pipeline(LINEAR);
    for (text, meant) in [
        ("[sandbox]\nnetwrk = \"none\"", "network"),
        ("[sandbx]\nnetwork = \"none\"", "sandbox"),
        ("[exec]\ntoolchain = [\"rust\"]", "toolchains"),
        ("[limits]\nwal_ms = \"5m\"", "wall_ms"),
        ("[workspace]\ninclud = []", "include"),
    ] {
        bench.write("glovebox.toml", text);
        bare(&bench, &["plan"]).ends(3).says(&format!("did you mean `{meant}`?"));
    }
}
