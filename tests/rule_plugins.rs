//! Rule plugins with the real binary: their findings are merged and escaped, their execution is limited, and their
//! imports are refused.

use crate::guests;
use crate::workbench::{Answer, Workbench};

const PIPELINE: &str = "digraph g {
  graph [goal=\"x\"]
  start [shape=Mdiamond]
  build [prompt=\"x\", allowed_write_paths=\"src/\"]
  done [shape=Msquare]
  start -> build -> done
}
";

/// Returns the functions of a component that gets each graph as JSON, reports this finding about `build`, and changes
/// nothing.
fn finds(severity: &str, message: &str) -> String {
    let quoted: String = message.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    format!(
        "(data (i32.const 2048) \"no-build\") (data (i32.const 2064) \"{severity}\") (data (i32.const 2080) \"build\")\n\
         (data (i32.const 4096) \"{quoted}\")\n\
         (func $lint (param $graph i32) (param $length i32)\n\
           (if (i32.ne (i32.load8_u (local.get $graph)) (i32.const 0x7b)) (then unreachable))\n\
           (if (i32.lt_u (local.get $length) (i32.const 100)) (then unreachable))\n\
           (call $text (i32.const 0) (i32.const 2048) (i32.const 8))\n\
           (call $text (i32.const 8) (i32.const 2064) (i32.const {}))\n\
           (call $text (i32.const 16) (i32.const 4096) (i32.const {}))\n\
           (call $node (i32.const 2080) (i32.const 5))\n\
           (call $findings (i32.const 1)))\n\
         (func $transform)",
        severity.len(),
        message.len()
    )
}

/// Creates a project with these bytes as the component of the locked rule plugin `acme.house`, which may change the
/// graph.
fn bench(component: &[u8], more: &str) -> Workbench {
    granted(component, more, "true")
}

/// As [`bench`], but `transform` is the value of the key `transform` in glovebox.toml.
fn granted(component: &[u8], more: &str, transform: &str) -> Workbench {
    let bench = unlocked(component, more);
    grant(&bench, more, transform);
    bench.glovebox(&["plugin", "lock"]).ends(0).says("acme.house (rules, new)");
    bench
}

fn grant(bench: &Workbench, more: &str, transform: &str) {
    let table = "[rules.\"acme.house\"]\npath = \"house.wasm\"\n";
    bench.write("glovebox.toml", &format!("{more}{table}transform = {transform}\n"));
}

fn unlocked(component: &[u8], more: &str) -> Workbench {
    let bench = Workbench::with_pipeline(PIPELINE);
    std::fs::write(bench.project().join("house.wasm"), component).unwrap();
    bench.write("glovebox.toml", &format!("{more}[rules.\"acme.house\"]\npath = \"house.wasm\"\n"));
    bench
}

#[test]
fn findings_are_merged_at_their_place_and_hold_for_run_and_plan() {
    let bench = bench(&guests::rules(&finds("error", "no building here")), "");
    let check = bench.glovebox(&["check", "pipeline.dot"]);
    check.ends(3).says("error[acme.house/no-build]: no building here").says("pipeline.dot:4:3").says("1 error");
    let json = bench.glovebox(&["check", "pipeline.dot", "--format", "json"]).ends(3).json();
    let found = json.as_array().unwrap().iter().find(|found| found["rule"] == "acme.house/no-build").unwrap();
    assert_eq!(found["node"], "build");
    bench.glovebox(&["plan", "pipeline.dot"]).ends(3).says("acme.house/no-build");
    bench.glovebox(&["run", "pipeline.dot"]).ends(3).says("acme.house/no-build");
    assert!(!bench.has(".glovebox"), "a run that is refused does not exist");
}

#[test]
fn a_warning_stops_only_a_strict_check_and_an_unknown_severity_is_an_error() {
    let warns = bench(&guests::rules(&finds("warning", "rather not")), "");
    warns.glovebox(&["check", "pipeline.dot"]).ends(0).says("warning[acme.house/no-build]: rather not");
    warns.glovebox(&["check", "--strict", "pipeline.dot"]).ends(3);
    warns.glovebox(&["run", "pipeline.dot"]).ends(0).says("rather not");
    let odd = bench(&guests::rules(&finds("grave", "hm")), "");
    odd.glovebox(&["check", "pipeline.dot"]).ends(3).says("`grave` is not a severity");
}

#[test]
fn what_nobody_agreed_to_does_not_judge_and_hides_no_finding() {
    let bench = unlocked(&guests::rules(&finds("info", "x")), "");
    for command in ["check", "plan", "run"] {
        bench.glovebox(&[command, "pipeline.dot"]).ends(7).says("`acme.house` is not in `glovebox.lock`");
    }
    bench.write("broken.dot", &PIPELINE.replace("start -> build", "start -> built -> build"));
    let check = bench.glovebox(&["check", "broken.dot", "pipeline.dot"]);
    check.ends(7).says("edge_target_exists").says("`acme.house` is not in `glovebox.lock`").says("2 checked: 1 error");
    assert_eq!(check.stderr.matches("is not in `glovebox.lock`").count(), 1, "told once: {}", check.stderr);
    let json = bench.glovebox(&["check", "broken.dot", "--format", "json"]).ends(7).json();
    assert!(json.to_string().contains("edge_target_exists"), "{json}");
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.glovebox(&["check", "pipeline.dot"]).ends(0);
    std::fs::write(bench.project().join("house.wasm"), guests::rules(&finds("info", "y"))).unwrap();
    bench.glovebox(&["check", "pipeline.dot"]).ends(7).says("has the digest");
    std::fs::remove_file(bench.project().join("house.wasm")).unwrap();
    bench.glovebox(&["check", "pipeline.dot"]).ends(7).says("cannot be read");
}

#[test]
fn a_component_that_imports_anything_is_no_rules() {
    let import = "(import \"wasi:cli/exit@0.2.6\" \"exit\" (func $exit (param i32)))\n\
        (func $lint (param i32 i32) (call $exit (i32.const 0)))\n(func $transform)";
    let bench = unlocked(&guests::rules(import), "");
    bench.glovebox(&["plugin", "lock"]).ends(7).says("wasi:cli/exit@0.2.6").says("rules must not import anything");
    assert!(!bench.has("glovebox.lock"));
    let handler = unlocked(&guests::component("(func $execute)"), "");
    handler.glovebox(&["plugin", "lock"]).ends(7).says("cannot be used for rules");
}

#[test]
fn a_component_whose_parts_call_each_other_runs() {
    let bench = bench(&guests::build("nested"), "");
    bench.glovebox(&["check", "pipeline.dot"]).ends(0).never_says("acme.house");
    // A changed component, whose inner part expects another first byte of the graph.
    let wat = std::fs::read_to_string(guests::folder().join("nested/component.wat")).unwrap();
    let broken = wat::parse_str(wat.replace("(i32.const 0x7b)", "(i32.const 0x7c)")).unwrap();
    std::fs::write(bench.project().join("house.wasm"), broken).unwrap();
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.glovebox(&["check", "pipeline.dot"]).ends(3).says("unreachable");
    // The memories of all parts are counted together. Each part alone is within this limit.
    bench.write("glovebox.toml", &format!("[limits]\nmemory_bytes = 300000\n{}", bench.read("glovebox.toml")));
    bench.glovebox(&["check", "pipeline.dot"]).ends(3).says("limit `memory_bytes`");
}

#[test]
fn hostile_rules_are_errors_that_name_them_and_end_in_time() {
    let lint = |body: &str| format!("(func $lint (param i32 i32) {body})\n(func $transform)");
    for (name, fields, said) in [
        ("endless loop", lint("(loop br 0)"), "limit `wall_ms` (300) reached"),
        ("trap", lint("unreachable"), "unreachable"),
        ("stack", format!("(func $deep call $deep)\n{}", lint("call $deep")), "stack"),
        (
            "memory",
            lint("(loop (br_if 0 (i32.ne (memory.grow (i32.const 256)) (i32.const -1))))"),
            "limit `memory_bytes`",
        ),
        (
            "a million",
            lint("(drop (memory.grow (i32.const 1100))) (call $findings (i32.const 1000000))"),
            "limit `hostcall_bytes`",
        ),
        ("some", lint("(call $findings (i32.const 51))"), "has 51 findings, and only the first 50 are shown"),
        ("out of bounds", lint("(call $findings (i32.const 10000))"), "acme.house"),
        (
            "refuses the graph",
            "(func $lint (param i32 i32))\n(func $transform (i32.store8 (i32.const 32) (i32.const 1)))".to_owned(),
            "`acme.house` refuses the graph",
        ),
    ] {
        let bench = bench(&guests::rules(&fields), "[limits]\nwall_ms = 300\n");
        println!("{name}");
        bench.glovebox(&["check", "pipeline.dot"]).ends(3).says(said).says("error[acme.house");
        bench.glovebox(&["run", "pipeline.dot"]).ends(3);
    }
}

#[test]
fn what_rules_say_cannot_drive_the_terminal_or_flood_it() {
    let message = format!("\u{1b}]0;owned\u{7}\u{1b}[2J\r\u{202e}x{}", "long ".repeat(4_000));
    let short = bench(&guests::rules(&finds("error", "owned")), "");
    let bench = bench(&guests::rules(&finds("error", &message)), "");
    for format in ["text", "json", "sarif", "github"] {
        let answer = bench.glovebox(&["check", "pipeline.dot", "--format", format]);
        let all = format!("{}{}", answer.stdout, answer.stderr);
        assert!(!all.contains(['\u{1b}', '\u{7}', '\r', '\u{202e}']), "{format}: {all:?}");
        let plain = short.glovebox(&["check", "pipeline.dot", "--format", format]);
        // A report for programs also contains the table of all rules.
        let more = all.len() - plain.stdout.len() - plain.stderr.len();
        assert!(more < 12_000, "{format}: {more} bytes more than a short message");
        answer.ends(3).says("owned");
    }
}

/// Returns the functions of a component that reports a finding with this rule name about this node, without escaping
/// either.
fn about(rule: &str, node: &str) -> String {
    let quoted = |text: &str| -> String { text.bytes().map(|byte| format!("\\{byte:02x}")).collect() };
    format!(
        "(data (i32.const 2048) \"{}\") (data (i32.const 4096) \"error\") (data (i32.const 4112) \"{}\")\n\
         (func $lint (param i32 i32)\n\
           (call $text (i32.const 0) (i32.const 2048) (i32.const {}))\n\
           (call $text (i32.const 8) (i32.const 4096) (i32.const 5))\n\
           (call $text (i32.const 16) (i32.const 4096) (i32.const 5))\n\
           (call $node (i32.const 4112) (i32.const {}))\n\
           (call $findings (i32.const 1)))\n\
         (func $transform)",
        quoted(rule),
        quoted(node),
        rule.len(),
        node.len()
    )
}

#[test]
fn names_that_are_none_are_told_and_places_that_are_not_there_are_the_graph() {
    for (rule, node, said) in [
        ("lost", "nowhere", "the graph has no node `nowhere`"),
        ("lost", "\u{1b}[2J", "the graph has no node `\\x1b[2J`"),
        ("a\nb", "build", "is not a valid rule name"),
        ("transform", "build", "`transform` is not a valid rule name"),
        (&"long".repeat(17), "build", "is not a valid rule name"),
        ("", "build", "`` is not a valid rule name"),
    ] {
        let bench = bench(&guests::rules(&about(rule, node)), "");
        let answer = bench.glovebox(&["check", "pipeline.dot"]);
        answer
            .ends(3)
            .says(said)
            .says("error[acme.house")
            .never_says("\u{1b}")
            .never_says("error[acme.house/transform]");
        answer.says(if node == "build" { "pipeline.dot:4:3" } else { "pipeline.dot:1:9" });
    }
}

#[test]
fn a_refusal_in_words_that_drive_terminals_is_escaped() {
    let fields = "(data (i32.const 2048) \"no\\1b[2J\\0d!\")\n(func $lint (param i32 i32))\n\
        (func $transform (i32.store8 (i32.const 32) (i32.const 1))\n\
        (i32.store (i32.const 36) (i32.const 2048)) (i32.store (i32.const 40) (i32.const 8)))";
    let bench = bench(&guests::rules(fields), "");
    let answer = bench.glovebox(&["check", "pipeline.dot"]);
    answer.ends(3).says("`acme.house` refuses the graph: no").never_says("\u{1b}").never_says("\r");
}

#[test]
fn rules_and_plugins_share_no_name_and_unknown_fields_are_told() {
    let bench = Workbench::with_pipeline(PIPELINE);
    let both = "[plugins.\"acme.house\"]\npath = \"a.wasm\"\n[rules.\"acme.house\"]\npath = \"b.wasm\"\ngrants = {}\n";
    bench.write("glovebox.toml", both);
    bench.glovebox(&["check", "pipeline.dot"]).ends(3).says("has the name of a plugin").says("grants");
}

/// Returns the graph of [`PIPELINE`] as a transform returns it, with these attributes of `build` and these additional
/// nodes and edges.
fn graph(build: &str, nodes: &str, edges: &str) -> String {
    format!(
        r#"{{"name":"g","attributes":{{"goal":"x"}},"nodes":[{{"id":"start","shape":"Mdiamond"}},
        {{"id":"build","shape":"box","prompt":"x"{build}}},{{"id":"done","shape":"Msquare"}}{nodes}],
        "edges":[{{"from":"start","to":"build"}},{{"from":"build","to":"done"}}{edges}]}}"#
    )
}

/// Returns the event `run.started` of a run.
fn beginning(bench: &Workbench, run: &str) -> serde_json::Value {
    let lines = bench.run_text(run, "progress.ndjson");
    let record: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(record["event"]["kind"], "run.started", "{record}");
    record["event"].clone()
}

const NARROW: &str = r#","allowed_write_paths":"src/a.rs","timeout":"5m""#;

#[test]
fn a_transform_is_what_runs_and_every_change_is_on_the_record() {
    let bench = bench(&guests::rules(&guests::answering(&graph(NARROW, "", ""))), "");
    let check = bench.glovebox(&["check", "pipeline.dot"]);
    check.ends(0).says("info[acme.house/transform]").says("pipeline.dot:4:3");
    check.says("~ node build: allowed_write_paths=\"src/\" -> \"src/a.rs\", + node build: timeout=\"5m\"");
    bench
        .glovebox(&["plan", "pipeline.dot"])
        .ends(0)
        .says("rules `acme.house` changed and checked the graph (blake3:")
        .says("  + node build: timeout=\"5m\"")
        .says("write    src/a.rs");
    let plan = bench.glovebox(&["plan", "pipeline.dot", "--json"]).ends(0).json();
    assert_eq!(plan["nodes"][0]["could"]["write"], serde_json::json!(["src/a.rs"]));
    assert_eq!(
        (plan["rules"][0]["name"].as_str(), plan["rules"][0]["changes_total"].as_u64()),
        (Some("acme.house"), Some(2))
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "one"]).ends(0).says("`acme.house` changed the graph");
    let started = beginning(&bench, "one");
    assert_eq!(started["rules"][0]["digest"], plan["rules"][0]["digest"]);
    assert_eq!(started["rules"][0]["changes"][1]["attribute"], "timeout");
    assert_eq!(started["transformed_digest"], plan["transformed"]);
    bench.glovebox(&["graph", "one", "--format", "dot"]).ends(0).says("\"src/a.rs\"");
    bench.glovebox(&["graph", "pipeline.dot", "--format", "dot"]).ends(0).never_says("a.rs");
}

#[test]
fn rules_and_stages_share_one_host() {
    let bench = bench(&guests::rules(&guests::answering(&graph(NARROW, "", ""))), "");
    for words in [&["run", "pipeline.dot"][..], &["plan", "pipeline.dot"], &["resume", "latest"]] {
        let answer = Answer::of(bench.command(words).env("GLOVEBOX_LOG", "debug"));
        assert_eq!(answer.ends(0).stderr.matches("starting the component host").count(), 1, "{words:?}");
    }
}

#[test]
fn a_transform_cannot_bypass_the_lint_nor_the_grants() {
    let late = r#",{"id":"late","shape":"parallelogram","tool_command":"true"}"#;
    let outside = r#",{"id":"late","shape":"parallelogram","tool_command":"rm -rf /"}"#;
    for (answer, said) in [
        (graph("", late, ""), "reachability"),
        (graph("", outside, ""), "tool_command_guard"),
        (graph("", "", r#",{"from":"build","to":"nowhere"}"#), "edge_target_exists"),
        (graph(r#","max_retries":"many""#, "", ""), "attribute_value"),
        (graph(r#","allowed_write_paths":"../out""#, "", ""), "allowed_write_paths"),
        (graph(r#","type":"no.such""#, "", ""), "no.such"),
    ] {
        let bench = bench(&guests::rules(&guests::answering(&answer)), "");
        bench.glovebox(&["run", "pipeline.dot"]).ends(3).says(said).says("acme.house");
        bench.glovebox(&["plan", "pipeline.dot"]).ends(3).says(said);
        assert!(!bench.has(".glovebox"), "a run that is refused does not exist");
    }
    let shell = r#",{"id":"late","shape":"parallelogram","tool_command":"date"}"#;
    let wide = graph("", shell, r#",{"from":"build","to":"late"},{"from":"late","to":"done"}"#);
    let bench = granted(&guests::rules(&guests::answering(&wide)), "", "\"widen\"");
    bench.glovebox(&["plan", "pipeline.dot", "--deny", "run=*"]).ends(6).says("node `late`").says("date");
    bench.write("plain/pipeline.dot", PIPELINE);
    bench.write("plain/glovebox.toml", "");
    let against = bench.glovebox(&["plan", "pipeline.dot", "--against", "plain/pipeline.dot"]);
    against.ends(0).says("late (new)").says("  + run date");
    bench.glovebox(&["plan", "plain/pipeline.dot", "--against", "pipeline.dot"]).ends(0).says("  - run date");
}

#[test]
fn an_answer_that_is_no_graph_is_an_error_that_names_who_gave_it() {
    let flood = "(drop (memory.grow (i32.const 1100)))\n\
        (i32.store8 (i32.const 36) (i32.const 1)) (i32.store (i32.const 44) (i32.const 70000000))";
    let transform = |body: &str| format!("(func $lint (param i32 i32))\n(func $transform {body})");
    let broken = guests::answering;
    for (fields, said) in [
        (transform("(loop br 0)"), "failed: limit `wall_ms` (300) reached"),
        (transform("unreachable"), "failed"),
        (transform(flood), "limit `hostcall_bytes`"),
        (transform("(loop (br_if 0 (i32.ne (memory.grow (i32.const 256)) (i32.const -1))))"), "limit `memory_bytes`"),
        (broken("not a graph"), "returned an invalid graph"),
        (broken("\u{1b}]0;owned\u{7}"), "returned an invalid graph"),
        (broken("{\"nodes\":[]}"), "missing field `name`"),
        (broken(&graph("", r#",{"id":"build","shape":"box"}"#, "")), "a node occurs twice"),
        (broken(&graph(r#","handler":"tool""#, "", "")), "its `type` and `shape` select the handler `codergen`"),
        (broken(&graph("", r#",{"id":"a]; b","shape":"box"}"#, "")), "in the graph that `acme.house` returned"),
        (broken(&graph("", r#",{"id":"\u001b[2J","shape":"box"}"#, "")), "in the graph that `acme.house` returned"),
        (
            broken(&graph("", "", "").replace("\"goal\":\"x\"", "\"goal\":\"x\",\"scenarios\":\"docs/\"")),
            "`scenarios` has changed",
        ),
    ] {
        let bench = bench(&guests::rules(&fields), "[limits]\nwall_ms = 300\n");
        for command in [&["check", "pipeline.dot"][..], &["run", "pipeline.dot"], &["plan", "pipeline.dot"]] {
            let answer = bench.glovebox(command);
            answer.ends(3).says(said).says("acme.house").never_says("\u{1b}");
        }
        assert!(!bench.has(".glovebox"));
    }
}

#[test]
fn transforms_and_rules_are_asked_in_the_order_of_the_file() {
    let bench = Workbench::with_pipeline(PIPELINE);
    let first = guests::rules(&guests::answering(&graph(r#","allowed_write_paths":"src/","timeout":"1m""#, "", "")));
    let second = guests::rules(&guests::answering(&graph(r#","allowed_write_paths":"src/","timeout":"2m""#, "", "")));
    std::fs::write(bench.project().join("first.wasm"), first).unwrap();
    std::fs::write(bench.project().join("second.wasm"), second).unwrap();
    let tables = [
        "[rules.\"z.first\"]\npath = \"first.wasm\"\ntransform = true\n",
        "[rules.\"a.second\"]\npath = \"second.wasm\"\ntransform = true\n",
    ];
    bench.write("glovebox.toml", &tables.concat());
    bench.glovebox(&["plugin", "lock"]).ends(0);
    let said = |bench: &Workbench| bench.glovebox(&["plan", "pipeline.dot"]).ends(0).stdout.clone();
    let plan = said(&bench);
    let change = "  ~ node build: timeout=\"1m\" -> \"2m\"";
    assert!(plan.contains(change) && plan.find("z.first") < plan.find("a.second"), "{plan}");
    bench.write("glovebox.toml", &[tables[1], tables[0]].concat());
    let plan = said(&bench);
    assert!(
        plan.contains("  ~ node build: timeout=\"2m\" -> \"1m\"") && plan.find("a.second") < plan.find("z.first"),
        "{plan}"
    );
}

#[test]
fn a_resume_goes_on_with_what_was_judged_and_with_no_other_rules() {
    let bench = bench(&guests::rules(&guests::answering(&graph(NARROW, "", ""))), "");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "one"]).ends(0);
    bench.glovebox(&["resume", "one"]).ends(0);
    bench.write("pipeline.dot", "digraph g { no longer }");
    bench.glovebox(&["resume", "one"]).ends(0);
    let old = std::fs::read(bench.project().join("house.wasm")).unwrap();
    std::fs::write(bench.project().join("house.wasm"), guests::rules(&finds("info", "y"))).unwrap();
    bench.glovebox(&["resume", "one"]).ends(7).says("has the digest");
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.glovebox(&["resume", "one"]).ends(11).says("used other rules");
    let config = bench.read("glovebox.toml");
    bench.write("glovebox.toml", "");
    bench.glovebox(&["resume", "one"]).ends(11).says("used other rules");
    bench.write("glovebox.toml", &config);
    std::fs::write(bench.project().join("house.wasm"), old).unwrap();
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.glovebox(&["resume", "one"]).ends(0);
}

#[test]
fn a_tampered_transformed_pipeline_is_not_gone_on_with() {
    let bench = bench(&guests::rules(&guests::answering(&graph(NARROW, "", ""))), "");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "one"]).ends(0);
    assert!(beginning(&bench, "one")["transformed_digest"].as_str().is_some());
    let journal = rusqlite::Connection::open(bench.run_folder("one").join("journal.sqlite")).unwrap();
    // The pipeline as the transforms changed it is the only blob that contains their scope and a start node.
    let widen = "UPDATE blob SET bytes = CAST(replace(CAST(bytes AS TEXT), 'src/a.rs', 'src/') AS BLOB)
                 WHERE instr(CAST(bytes AS TEXT), 'src/a.rs') AND instr(CAST(bytes AS TEXT), 'Mdiamond')";
    assert_eq!(journal.execute(widen, []).unwrap(), 1, "the changed pipeline is kept");
    drop(journal);
    let answer = bench.glovebox(&["resume", "one"]);
    assert_ne!(answer.code, 0);
    answer.says("digest");
}

#[test]
fn children_are_judged_by_the_rules_that_go_with_them() {
    let bench = bench(&guests::rules(&finds("error", "no building here")), "");
    bench.write(
        "other/parent.dot",
        &PIPELINE.replace("goal=\"x\"", "goal=\"x\", \"stack.child_dotfile\"=\"deep/child.dot\""),
    );
    bench.write("other/glovebox.toml", "");
    bench.write("other/deep/child.dot", PIPELINE);
    bench.glovebox(&["check", "--for", "lint", "other/parent.dot"]).ends(0).says("2 checked: 0 errors");
    std::fs::copy(bench.project().join("house.wasm"), bench.project().join("other/deep/house.wasm")).unwrap();
    bench.write("other/deep/glovebox.toml", &bench.read("glovebox.toml"));
    let unlocked = bench.glovebox(&["check", "--for", "lint", "other/parent.dot"]);
    unlocked.ends(7).says("is not in `glovebox.lock`").says("2 checked");
    bench.write("other/deep/glovebox.lock", &bench.read("glovebox.lock"));
    bench
        .glovebox(&["check", "--for", "lint", "other/parent.dot"])
        .ends(3)
        .says("other/deep/child.dot:4:3")
        .says("acme.house/no-build");
}

#[test]
fn what_is_certain_to_mend_the_file_is_never_taken_from_a_changed_graph() {
    let answer = graph(r#","allowed_write_paths":"","typo_max":"1""#, r#",{"id":"gone","shape":"box"}"#, "");
    let bench = bench(&guests::rules(&guests::answering(&answer)), "");
    bench.glovebox(&["check", "--fix", "pipeline.dot"]).ends(3);
    assert_eq!(bench.read("pipeline.dot"), PIPELINE);
}

#[test]
fn a_transform_needs_leave_and_the_lock_says_so() {
    let bench = granted(&guests::rules(&guests::answering(&graph(NARROW, "", ""))), "", "false");
    for command in [&["check", "pipeline.dot"][..], &["plan", "pipeline.dot"], &["run", "pipeline.dot"]] {
        let answer = bench.glovebox(command);
        answer.ends(3).says("error[acme.house]").says("changes the graph, but glovebox.toml does not allow it");
        answer
            .says("~ node build: allowed_write_paths")
            .says("`transform = true` under `[rules.\"acme.house\"]` (glovebox.toml:1)");
    }
    grant(&bench, "", "true");
    bench
        .glovebox(&["run", "pipeline.dot"])
        .ends(7)
        .says("is granted `transform`, but the lock does not have this grant");
    bench.glovebox(&["plugin", "lock"]).ends(0).says("changed grants").says("  granted  transform");
    assert!(bench.read("glovebox.lock").contains("grants = [\"transform\"]"), "{}", bench.read("glovebox.lock"));
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "one"]).ends(0);
    grant(&bench, "", "\"widen\"");
    bench.glovebox(&["run", "pipeline.dot"]).ends(7).says("is granted `widen`, but the lock does not have this grant");
    grant(&bench, "", "false");
    bench.glovebox(&["resume", "one"]).ends(11).says("in a way that glovebox.toml no longer allows");
    for value in ["\"yes\"", "1", "\"true\""] {
        grant(&bench, "", value);
        bench.glovebox(&["check", "pipeline.dot"]).ends(3).says("must be `true`, `false` or").says("glovebox.toml");
    }
}

#[test]
fn what_could_not_be_planned_before_is_wider_as_a_whole() {
    let bench = Workbench::with_pipeline(PIPELINE);
    bench.write("pipeline.dot", &PIPELINE.replace("prompt=\"x\"", "prompt=\"x\", type=\"no.such\""));
    let component = guests::rules(&guests::answering(&graph(NARROW, "", "")));
    std::fs::write(bench.project().join("house.wasm"), component).unwrap();
    grant(&bench, "", "true");
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.glovebox(&["plan", "pipeline.dot"]).ends(6).says("node `build`: write src/a.rs").says("node `build`: model");
}
