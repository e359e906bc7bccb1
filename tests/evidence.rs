//! `glovebox evidence`: every command with its receipt, and every claim without a receipt.

use crate::workbench::Workbench;
use serde_json::{Value, json};

const PIPELINE: &str = r#"digraph ship {
  start [shape=Mdiamond]; done [shape=Msquare]
  build [prompt="build", allowed_write_paths="src/", allowed_commands="uname"]
  first [shape=parallelogram, tool_command="printf 'a\\033[2J%02000d\\n' 7", allowed_write_paths=""]
  write [shape=parallelogram, tool_command="echo made > out.txt", allowed_write_paths="out.txt"]
  again [shape=parallelogram, tool_command="cat out.txt >&2; exit 3", allowed_write_paths=""]
  start -> build -> first -> write -> again
  again -> done [condition="outcome=success"]
}
"#;

/// Creates a run `r` whose last stage has failed.
fn bench() -> Workbench {
    let bench = Workbench::with_pipeline(PIPELINE);
    let script = "[[node.build]]\ntool = [{ name = \"shell\", arguments = { command = \"uname\" } }]\n\
                  [[node.build]]\ntext = \"all tests pass\\nOUTCOME: SUCCESS\"\n";
    std::fs::write(bench.outside().join("model.toml"), script).unwrap();
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--script", "../model.toml"]).ends(1);
    bench
}

fn evidence(bench: &Workbench) -> Value {
    bench.glovebox(&["evidence", "r", "--json"]).ends(0).json()
}

#[test]
fn every_command_has_its_receipt_and_what_it_proves() {
    let bench = bench();
    let found = evidence(&bench);
    let commands = found["commands"].as_array().unwrap();
    let told: Vec<_> =
        commands.iter().map(|one| (one["node"].as_str().unwrap(), one["proof"].as_str().unwrap())).collect();
    assert_eq!(told, [("build", "ran"), ("first", "verified"), ("write", "verified"), ("again", "not_verified")]);
    let shell = &commands[1]["evidence"];
    assert_eq!(shell["program"]["digest"], blake3_of("/bin/sh"), "{shell}");
    assert_eq!(commands[1]["layers"][0], "namespaces");
    assert_eq!((&shell["code"], &shell["verified"], &shell["stdout_bytes"]), (&json!(0), &json!(true), &json!(2006)));
    // The tree is that of the start of the run until a stage changes it.
    let tree = |at: usize| &commands[at]["tree"];
    assert_eq!((tree(0), tree(1), tree(2)), (&found["base_digest"], &found["base_digest"], &found["base_digest"]));
    assert_ne!(tree(3), tree(2));
    // The stage stored the beginning and the end of the output.
    let (head, tail) =
        (commands[1]["stdout"]["head"].as_str().unwrap(), commands[1]["stdout"]["tail"].as_str().unwrap());
    assert!(head.starts_with("a\u{1b}[2J0") && head.len() == 512 && tail.ends_with("07\n") && tail.len() == 512);
    assert_eq!(commands[3]["stderr"], json!({ "head": "made\n" }));
    let unverified = json!([{ "node": "build", "handler": "codergen", "visit": 1, "status": "success" }]);
    assert_eq!(found["unverified"], unverified, "what a model says is no evidence");
    assert_eq!(found["journal"]["hash"], bench.glovebox(&["show", "r", "--json"]).ends(0).json()["journal"]["hash"]);
    let record = commands[1]["record"].as_u64().unwrap() as usize;
    let journal = bench.run_text("r", "progress.ndjson");
    assert!(journal.lines().nth(record - 1).unwrap().contains("\"node\":\"first\""), "the record with the receipt");
}

/// Returns the BLAKE3 digest of a file as records write it: the digest of the output of a command that prints the file.
fn blake3_of(file: &str) -> String {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
         t [shape=parallelogram, tool_command=\"cat copy\", allowed_write_paths=\"\"]\n start -> t -> done }",
    );
    std::fs::copy(file, bench.project().join("copy")).unwrap();
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "d", "-q"]).ends(0);
    let show = bench.glovebox(&["show", "d", "--json"]).ends(0).json();
    show["receipts"][0]["stdout_digest"].as_str().unwrap().to_owned()
}

#[test]
fn people_read_it_and_no_output_drives_a_terminal() {
    let bench = bench();
    let told = bench.glovebox(&["evidence", "r"]);
    told.ends(0)
        .says("verified")
        .says("behind       full: namespaces, own root")
        .says("codergen said `success`: no receipt");
    told.says("4 receipts, 2 verified; 1 unverified stage").says("a\\x1b[2J0");
    assert!(!told.stdout.contains('\u{1b}'));
    let one = bench.glovebox(&["evidence", "r", "write"]);
    one.ends(0).says("echo made").never_says("cat out.txt").never_says("codergen");
    bench.glovebox(&["evidence", "r", "nobody"]).ends(2).says("has no finished visit of a node `nobody`");
}

#[test]
fn what_a_resume_left_is_marked_and_a_repeated_tree_has_the_same_digest() {
    let bench = bench();
    bench.glovebox(&["resume", "r", "--from", "write@1"]).ends(1);
    let found = evidence(&bench);
    let commands = found["commands"].as_array().unwrap();
    let of = |node: &str| commands.iter().filter(|one| one["node"] == node).collect::<Vec<_>>();
    let (write, again) = (of("write"), of("again"));
    assert_eq!((write.len(), again.len()), (2, 2));
    assert_eq!((&write[0]["is_undone"], &write[1]["is_undone"]), (&json!(true), &Value::Null));
    assert_eq!((&write[0]["tree"], &again[0]["tree"]), (&write[1]["tree"], &again[1]["tree"]));
    assert_ne!(write[1]["tree"], again[1]["tree"]);
    bench.glovebox(&["evidence", "r", "write"]).ends(0).says("write visit 1, undone by `resume --from`");
}

/// A command in a branch whose changes were not taken is not evidence of the result.
#[test]
fn commands_of_a_branch_that_was_not_taken_prove_nothing() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; fork [shape=component]; join [shape=tripleoctagon]\n\
         a [shape=parallelogram, tool_command=\"echo a > out.txt\", allowed_write_paths=\"out.txt\"]\n\
         b [shape=parallelogram, tool_command=\"echo b > out.txt\", allowed_write_paths=\"out.txt\"]\n\
         start -> fork; fork -> a -> join; fork -> b -> join; join -> done }",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0).says("not taken");
    let found = evidence(&bench);
    let mut proofs: Vec<_> =
        found["commands"].as_array().unwrap().iter().map(|one| one["proof"].as_str().unwrap()).collect();
    proofs.sort_unstable();
    assert_eq!(proofs, ["not_taken", "verified"]);
    bench.glovebox(&["evidence", "r"]).ends(0).says("2 receipts, 1 verified");
}

/// This also holds if the parallel node is visited again and another branch is taken.
#[test]
fn an_earlier_visit_of_a_fork_keeps_what_was_not_taken() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; fork [shape=component]; join [shape=tripleoctagon]\n\
         a [shape=parallelogram, tool_command=\"echo a >> a.txt\", allowed_write_paths=\"a.txt\"]\n\
         b [shape=parallelogram, tool_command=\"echo b >> b.txt\", allowed_write_paths=\"b.txt\"]\n\
         twice [shape=parallelogram, tool_command=\"test -e once || { touch once; exit 1; }\", allowed_write_paths=\"once\"]\n\
         mark [shape=parallelogram, tool_command=\"touch once\", allowed_write_paths=\"once\"]\n\
         start -> fork; fork -> a -> join; fork -> b -> join; join -> twice\n\
         twice -> done [condition=\"outcome=success\"]; twice -> mark [condition=\"outcome=fail\"]; mark -> fork }",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    let found = evidence(&bench);
    let of = |proof: &str| {
        let commands = found["commands"].as_array().unwrap().iter();
        commands.filter(|one| one["proof"] == proof && (one["node"] == "a" || one["node"] == "b")).count()
    };
    assert_eq!((of("not_taken"), of("verified")), (2, 2), "{found:#}");
}
