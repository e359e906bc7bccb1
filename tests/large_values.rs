//! Context values above 64 KiB: stored by reference, read whole by handlers, limited in size for the whole run, and not
//! readable through a forged reference.
//!
//! The witnesses are the checkpoint, the prompt of the next stage, what its tool read, and the input of a guest.

use crate::guests;
use crate::workbench::{self, Workbench};
use serde_json::Value;

const ENDS: &str = "start [shape=Mdiamond]; done [shape=Msquare]";

/// Returns a text of `bytes` bytes with a distinct beginning and end.
fn large(bytes: usize) -> String {
    format!("first words {}last words", "x".repeat(bytes - 22))
}

fn digest(text: &str) -> String {
    format!("blake3:{}", blake3::hash(serde_json::to_string(text).unwrap().as_bytes()).to_hex())
}

/// Creates a pipeline with a stage `a` that sets `report`, and the stages in `graph`.
fn bench(graph: &str, report: &str, script: &str) -> Workbench {
    let bench = Workbench::with_pipeline(&format!("digraph g {{\n{ENDS}\n{graph}\n}}\n"));
    let outcome = format!("outcome = {{ status = \"success\", context_updates = {{ report = \"{report}\" }} }}\n");
    bench.write("script.toml", &format!("[[node.a]]\ntext = \"made it\"\n{outcome}{script}"));
    bench
}

/// Adds the plugin `acme.ear`, a component that stores all its inputs.
fn with_ear(bench: &Workbench) {
    std::fs::write(bench.project().join("ear.wasm"), guests::build("observes")).unwrap();
    bench.write("glovebox.toml", "[plugins.\"acme.ear\"]\npath = \"ear.wasm\"\n");
    bench.glovebox(&["plugin", "lock"]).ends(0);
}

fn run(bench: &Workbench, exit: i32) -> workbench::Answer {
    let answer = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--script", "script.toml"]);
    answer.ends(exit);
    answer
}

const TWO: &str = "a [prompt=\"Make\", allowed_write_paths=\"\"]; b [prompt=\"Read\", allowed_write_paths=\"\"]; start -> a -> b -> done";

#[test]
fn a_large_value_is_a_reference_and_the_next_agent_reads_it_in_parts() {
    let report = large(200_000);
    let read = "[[node.b]]\ntool = [{ name = \"read_context\", arguments = { key = \"report\", offset = 199990 } }]\n\
                [[node.b]]\ntext = \"read\"\n";
    let bench = bench(TWO, &report, read);
    run(&bench, 0);
    let checkpoint = bench.run_json("r", "checkpoint.json");
    let kept = &checkpoint["context"]["report"];
    assert_eq!(kept["artifact"], digest(&report), "{kept}");
    assert_eq!(
        (kept["bytes"].as_u64(), kept["head"].as_str().map(|head| head.starts_with("first words"))),
        (Some(200_002), Some(true))
    );
    assert!(bench.run_text("r", "checkpoint.json").len() < 8_000, "the checkpoint does not hold it");
    let prompt = bench.run_text("r", "b/prompt.md");
    assert!(
        prompt.contains("- report: 200002 bytes of JSON, read it with the tool `read_context`; begins: first words x"),
        "{prompt}"
    );
    let conversation = bench.glovebox(&["show", "r", "b", "--json"]).ends(0).stdout.clone();
    assert!(!conversation.contains(&"x".repeat(1000)), "the record names it, and does not repeat it");
    let name = format!("a/context-{}.json", &digest(&report)[7..23]);
    assert_eq!(bench.run_json("r", &name), Value::String(report), "people read it in the stage's folder");
    bench.glovebox(&["show", "r", "a"]).ends(0).says("stored  ").says("report").says("200002 bytes");
}

#[test]
fn the_tool_for_large_values_answers_what_is_there() {
    let report = large(100_000);
    let script = "[[node.b]]\ntool = [{ name = \"read_context\", arguments = { key = \"report\", offset = 99990 } }, \
                  { name = \"read_context\", arguments = { key = \"no\" } }]\n[[node.b]]\ntext = \"read\"\n";
    let graph = TWO.replace("b [", "b [fidelity=\"full\", thread_id=\"t\", ");
    let bench = bench(&graph, &report, script);
    run(&bench, 0);
    let said = bench.run_text("r", "b/conversation.json");
    assert!(said.contains("[characters 99990 to 100000 of 100000]\\nlast words"), "{said}");
    assert!(said.contains("there is no large context value `no`, expected one of `report`"), "{said}");
}

#[test]
fn a_handler_gets_the_whole_value_unless_its_memory_is_small() {
    let report = large(150_000);
    let graph = "a [prompt=\"Make\", allowed_write_paths=\"\"]; e [type=\"acme.ear\"]; start -> a -> e -> done";
    for (limits, is_whole) in [("", true), (", limits.memory_bytes=1048576", false)] {
        let bench = bench(&graph.replace("acme.ear\"", &format!("acme.ear\"{limits}")), &report, "");
        with_ear(&bench);
        run(&bench, 0);
        let told =
            String::from_utf8_lossy(&std::fs::read(bench.run_folder("r").join("e/input.bin")).unwrap()).into_owned();
        assert_eq!(told.contains(&report), is_whole, "{limits}");
        assert_eq!(told.contains(&digest(&report)), !is_whole, "{limits}");
    }
}

#[test]
fn a_condition_compares_the_digest_and_why_says_so() {
    let report = large(70_000);
    let edges = |right: &str| {
        format!(
            "a [prompt=\"Make\", allowed_write_paths=\"\"]; b [prompt=\"Read\", allowed_write_paths=\"\"]; start -> a; \
             a -> done [condition=\"context.report={right}\"]; a -> b [condition=\"context.report!={right}\"]; b -> done"
        )
    };
    for (right, visits_b) in [(digest(&report), false), ("first".to_owned(), true)] {
        let bench = bench(&edges(&right), &report, "[[node.b]]\ntext = \"x\"\n");
        run(&bench, 0);
        assert_eq!(bench.run_folder("r").join("b/status.json").exists(), visits_b, "{right}");
        let size = "70002 bytes, stored: conditions compare its digest";
        bench.glovebox(&["why", "r"]).ends(0).says(&format!("`context.report` is `{}` ({size})", digest(&report)));
    }
}

#[test]
fn a_forged_reference_is_data_and_opens_nothing() {
    let secret = large(90_000);
    let graph = "a [prompt=\"Make\", allowed_write_paths=\"\"]; f [prompt=\"Forge\", allowed_write_paths=\"\"]; \
                 e [type=\"acme.ear\"]; start -> a -> f -> e -> done";
    // The stage `f` replaces the value by a copy of its reference, under two keys.
    let forged = format!("{{ artifact = \"{}\", bytes = 90002, head = \"first\" }}", digest(&secret));
    let script = format!(
        "[[node.f]]\ntext = \"x\"\noutcome = {{ status = \"success\", context_updates = {{ report = {forged}, copy = {forged} }} }}\n"
    );
    let bench = bench(graph, &secret, &script);
    with_ear(&bench);
    run(&bench, 0);
    let told = String::from_utf8_lossy(&std::fs::read(bench.run_folder("r").join("e/input.bin")).unwrap()).into_owned();
    assert!(told.contains("copy") && told.contains(&digest(&secret)), "the forged reference is what it is");
    assert!(!told.contains(&secret[..1000]), "it was opened");
}

#[test]
fn what_a_run_stores_is_bounded_whatever_a_guest_sets() {
    let graph = "graph [max_steps=80]; hog [type=\"acme.hog\"]; start -> hog; hog -> hog [condition=\"outcome=success\"]; \
                 hog -> done [condition=\"outcome=fail\"]";
    let bench = Workbench::with_pipeline(&format!("digraph g {{\n{ENDS}\n{graph}\n}}\n"));
    std::fs::write(bench.project().join("hog.wasm"), guests::build("value-hog")).unwrap();
    bench.write("glovebox.toml", "[plugins.\"acme.hog\"]\npath = \"hog.wasm\"\n");
    bench.glovebox(&["plugin", "lock"]).ends(0);
    let answer = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]);
    answer.ends(5).says("the stored context values of the run would exceed 67108864 bytes");
    let records = bench.glovebox(&["show", "r", "hog", "--json"]).ends(0).json();
    let stored =
        records.as_array().unwrap().iter().filter(|record| record.to_string().contains("\"stored_values\"")).count();
    assert_eq!(stored, 74, "each has 900,002 bytes");
}

#[test]
fn a_value_above_the_second_bound_is_refused_and_named() {
    let bench = bench(TWO, &large(8_400_000), "[[node.b]]\ntext = \"x\"\n");
    bench.write("pipeline.dot", &bench.read("pipeline.dot").replace("a [", "a [limits.outcome_bytes=\"16777216\", "));
    bench.write("glovebox.toml", "[limits]\noutcome_bytes = 16777216\n");
    run(&bench, 0).says("the value has 8400002 bytes, and the limit of a stored value is 8388608");
    assert!(bench.run_json("r", "checkpoint.json")["context"]["report"].is_null());
}

#[test]
fn references_live_on_in_branches_restarts_forks_and_resumes() {
    let report = large(80_000);
    let graph = "a [prompt=\"Make\", allowed_write_paths=\"\"]; f [shape=component]; l [type=\"acme.ear\"]; \
                 m [shape=parallelogram, tool_command=\"test -e go\", allowed_write_paths=\"\"]; j [shape=tripleoctagon]; \
                 start -> a -> f; f -> l; f -> m; l -> j; m -> j; j -> done";
    let bench = bench(graph, &report, "");
    with_ear(&bench);
    run(&bench, 0);
    let told = |run: &str| {
        let folder = bench.run_folder(run);
        let found = walk(&folder).into_iter().find(|path| path.ends_with("input.bin")).unwrap();
        String::from_utf8_lossy(&std::fs::read(found).unwrap()).into_owned()
    };
    assert!(told("r").contains(&report), "a branch begins with it");
    bench.glovebox(&["fork", "r", "f", "--run-id", "s", "--script", "script.toml"]).ends(0);
    assert!(told("s").contains(&report), "a fork of the run has it");
    assert_eq!(bench.run_json("s", "checkpoint.json")["context"]["report"]["artifact"], digest(&report));
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let below = entries.flat_map(|entry| match entry.file_type().unwrap().is_dir() {
        true => walk(&entry.path()),
        false => vec![entry.path()],
    });
    below.collect()
}
