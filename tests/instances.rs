//! Stages with the same component share no instance and no memory: in a row, in a loop, in parallel branches, and in a run after another.

use crate::guests;
use crate::workbench::Workbench;

/// Grows its memory, notes whether a byte of it was already written, and writes all of it. A second attempt would find the bytes of the first one.
const WRITES_ALL: &str = r#"
  (data (i32.const 1024) "cleandirty")
  (func $execute (local $at i32) (local $end i32)
    (local.set $at (i32.mul (memory.grow (i32.const 64)) (i32.const 65536)))
    (local.set $end (i32.mul (memory.size) (i32.const 65536)))
    (call $notes (i32.const 1024) (i32.const 5))
    (loop $again
      (if (i32.load8_u (local.get $at)) (then (call $notes (i32.const 1029) (i32.const 5))))
      (i32.store8 (local.get $at) (i32.const 170))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $at) (local.get $end)))))"#;

const GRAPH: &str = "digraph g {
  start [shape=Mdiamond]; done [shape=Msquare]
  one [type=\"evil.guest\"]; two [type=\"evil.guest\"]; same [type=\"evil.twin\"]
  f [shape=component]; j [shape=tripleoctagon]
  left [type=\"evil.guest\"]; right [type=\"evil.guest\"]; third [type=\"evil.twin\"]
  start -> one -> two -> same -> f
  f -> left -> j; f -> right -> j; f -> third -> j
  j -> done
}
";

/// Runs a pipeline whose stages are all the same bytes, under two names, and checks the notes of each.
fn check(component: &[u8], expected: &str) {
    let bench = Workbench::with_pipeline(GRAPH);
    std::fs::write(bench.project().join("guest.wasm"), component).unwrap();
    let plugin = |name: &str| format!("[plugins.\"{name}\"]\npath = \"guest.wasm\"\n");
    bench.write("glovebox.toml", &(plugin("evil.guest") + &plugin("evil.twin")));
    bench.glovebox(&["plugin", "lock"]).ends(0);
    for run in ["first", "second"] {
        bench.glovebox(&["run", "pipeline.dot", "--run-id", run]).ends(0);
        let in_branches = ["left", "right", "third"].map(|node| format!("branches/f-{node}/{node}"));
        let stages = ["one", "two", "same"].map(str::to_owned).into_iter().chain(in_branches);
        for stage in stages {
            let status = bench.run_json(run, &format!("{stage}/status.json"));
            assert_eq!(status["notes"], expected, "{run}: {stage}: {status:#}");
        }
    }
}

#[test]
fn stages_with_the_same_digest_share_no_instance() {
    check(&guests::build("remembers"), "11");
}

#[test]
fn a_new_instance_has_no_bytes_of_an_earlier_one() {
    check(&guests::component(WRITES_ALL), "clean");
}
