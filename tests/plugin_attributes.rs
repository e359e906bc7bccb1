//! The attributes that a plugin declares: `check`, `plan` and `run` compare the nodes of the plugin with them, at the place of the
//! mistake. A plugin without a declaration may read any attribute.

use crate::guests;
use crate::workbench::{Answer, Workbench};

const DECLARED: &str = r#""attributes":{
    "folder":{"type":"path","default":"src","doc":"The folder that is searched."},
    "mode":{"type":"enum","values":["strict","lenient"]},
    "most":{"type":"integer","min":1,"max":9}}"#;

/// Creates a project with a plugin whose manifest has these fields, and a node of the plugin with these attributes.
fn bench(fields: &str, attributes: &str) -> Workbench {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n  look [type=\"acme.look\"{attributes}]\n  start -> look -> done\n}}\n"
    ));
    std::fs::write(bench.project().join("bare.wasm"), guests::component("(func $execute)")).unwrap();
    bench.write("manifest.json", &format!(r#"{{"name":"acme.look","version":"0.1.0",{fields}}}"#));
    bench.glovebox(&["plugin", "embed-manifest", "bare.wasm", "manifest.json", "-o", "look.wasm"]).ends(0);
    bench.write("glovebox.toml", "[plugins.\"acme.look\"]\npath = \"look.wasm\"\n");
    bench
}

fn check(fields: &str, attributes: &str, exit: i32) -> Answer {
    let bench = bench(fields, attributes);
    if exit != 7 {
        bench.glovebox(&["plugin", "lock"]).ends(0);
    }
    let answer = bench.glovebox(&["check", "pipeline.dot"]);
    answer.ends(exit);
    let run = bench.glovebox(&["run", "pipeline.dot"]);
    run.ends(exit);
    assert_eq!(bench.has(".glovebox"), exit == 0, "a run that is refused leaves nothing behind");
    answer
}

#[test]
fn good_attributes_pass() {
    check(DECLARED, "", 0).never_says("plugin_attribute");
    check(DECLARED, ", folder=\"lib/\", mode=lenient, most=9", 0).never_says("plugin_attribute");
    check(r#""wants":{}"#, ", folder=\"/etc\", anything=1", 0).never_says("plugin_attribute");
}

#[test]
fn a_wrong_value_is_an_error_at_its_place() {
    let most = check(DECLARED, ", most=\"10\"", 3);
    most.says("plugin_attribute_value")
        .says("`most` is `10`, but plugin `acme.look` expects a whole number from 1 to 9");
    most.says("pipeline.dot:3:");
    check(DECLARED, ", folder=\"/etc\"", 3)
        .says("expects a path relative to the workspace")
        .says("The folder that is searched.");
    check(DECLARED, ", mode=\"strikt\"", 3).says("expects `strict` or `lenient`").says("did you mean `strict`?");
}

#[test]
fn a_required_attribute_must_be_there() {
    let required = r#""attributes":{"program":{"type":"string","required":true,"doc":"The command."}}"#;
    check(required, "", 3).says("plugin_attribute_required").says("node `look` has no `program`").says("The command.");
    check(required, ", program=\"\"", 0);
}

#[test]
fn an_unknown_attribute_is_a_warning_with_what_was_meant() {
    check(DECLARED, ", foldr=\"lib\"", 0).says("plugin_attribute_known").says("did you mean `folder`?");
    check(DECLARED, ", colour=\"red\"", 0)
        .says("plugin `acme.look` has no attribute `colour`")
        .says("it has `folder`, `mode`, `most`");
    check(r#""attributes":{}"#, ", colour=\"red\"", 0).says("the plugin reads no attributes of its own");
}

#[test]
fn an_attribute_of_glovebox_cannot_be_declared() {
    let declared = r#""attributes":{"allowed_write_paths":{"type":"string"}}"#;
    check(declared, "", 7).says("declares the attribute `allowed_write_paths`, which Glovebox itself reads");
}

#[test]
fn a_default_of_the_graph_is_reported_once() {
    let bench = bench(DECLARED, "");
    let text = bench.read("pipeline.dot").replace("  look [", "  node [most=99]\n  look [");
    let text = text
        .replace("-> look ->", "-> look -> again ->")
        .replace("  start ->", "  again [type=\"acme.look\"]\n  start ->");
    bench.write("pipeline.dot", &text);
    bench.glovebox(&["plugin", "lock"]).ends(0);
    let answer = bench.glovebox(&["check", "pipeline.dot"]);
    answer.ends(3);
    let count = answer.stdout.matches("`most` is `99`").count() + answer.stderr.matches("`most` is `99`").count();
    assert_eq!(count, 1, "{}{}", answer.stdout, answer.stderr);
}

#[test]
fn explain_knows_the_findings() {
    let bench = Workbench::new();
    for rule in ["plugin_attribute_value", "plugin_attribute_required", "plugin_attribute_known"] {
        bench.glovebox(&["explain", rule]).ends(0).says(rule);
    }
}

#[test]
fn explain_shows_the_attributes_of_a_plugin() {
    let bench = bench(
        r##""description":"Looks.","docs":"# Look\n",
           "attributes":{"most":{"type":"integer","min":1,"default":3,"doc":"How many."},
           "program":{"type":"string","required":true}}"##,
        "",
    );
    let page = bench.glovebox(&["explain", "acme.look"]);
    page.ends(0).says("plugin    acme.look 0.1.0 (handler)\nabout     Looks.\n").says("\n# Look\n");
    page.says("attribute most\n  value   a whole number of at least 1\n  default 3\n  meaning How many.\n");
    page.says("attribute program\n  value   a text\n  default none: every node must have it\n");
    page.says("Use it in a node: [type=\"acme.look\", program=\"…\"]");
    bench.glovebox(&["explain", "acme.look", "most"]).ends(0).says("How many.").never_says("program");
    bench.glovebox(&["explain", "acme.look", "mots"]).ends(2).says("did you mean `most`?");
    bench.glovebox(&["explain", "acme.look", "colour"]).ends(2).says("it has `most`, `program`");
    bench.glovebox(&["explain", "acme.lok"]).ends(2).says("did you mean `glovebox explain acme.look`?");
    bench.glovebox(&["explain", "other.plugin"]).ends(2).says("is not a plugin of this project");
    let names = bench.glovebox(&["explain", "acme.look", "--names"]);
    assert_eq!(names.ends(0).stdout, "most\tHow many.\nprogram\ta text\n");
    bench.glovebox(&["explain", "--names"]).ends(0).says("\nacme.look\tplugin of this project\n");
    std::fs::remove_file(bench.project().join("look.wasm")).unwrap();
    bench.glovebox(&["explain", "acme.look"]).ends(2).says("look.wasm");
}

#[test]
fn inspect_lists_what_a_plugin_says_about_itself() {
    let bench = bench(
        r##""licenses":"MIT","source":"https://example.com/look","authors":"Kim","docs":"# Look\n\nLooks.\n",
           "attributes":{"most":{"type":"integer","min":1,"default":3,"doc":"How many."}}"##,
        "",
    );
    let shown = bench.glovebox(&["plugin", "inspect", "look.wasm"]);
    shown.ends(0).says("licence   MIT\n").says("source    https://example.com/look\n").says("authors   Kim\n");
    shown.says("attribute most: a whole number of at least 1, by default `3`; How many.\n").says("made by   ");
    shown.says("docs      3 lines; `--all` prints them\n").never_says("# Look");
    bench.glovebox(&["plugin", "inspect", "--all", "look.wasm"]).ends(0).says("# Look\n\nLooks.\n");
    let json = bench.glovebox(&["plugin", "inspect", "--json", "look.wasm"]).json();
    assert_eq!(json["manifest"]["attributes"]["most"]["default"], "3");
    assert_eq!(json["standard"]["licenses"], "MIT");
}
