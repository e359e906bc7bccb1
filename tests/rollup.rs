//! What a running fork is doing, without a look at its branches: `show`, `ls` and `live.json` name each branch, what runs in it, and
//! what it waits for.

use crate::workbench::{Answer, Workbench};
use serde_json::Value;
use std::time::{Duration, Instant};

const FORK: &str = "digraph fork { start [shape=Mdiamond]; done [shape=Msquare]
  f [shape=component]; j [shape=tripleoctagon]
  a [shape=parallelogram, tool_command=\"echo a; sleep 25\"]
  b [shape=parallelogram, tool_command=\"test -f again || { touch again; false; }; sleep 12\", max_retries=1]
  q [shape=hexagon, label=\"Go?\"]; c [shape=parallelogram, tool_command=\"true\"]
  start -> f; f -> a -> j; f -> b -> j; f -> q; q -> c [label=\"[Y] Yes\"]; c -> j; j -> done }";

/// Asks again until the answer is as wanted.
fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn branch(document: &Value, branches: &str, name: &str) -> Option<Value> {
    document[branches].as_array()?.iter().find(|branch| branch["branch"] == name).cloned()
}

#[test]
fn every_view_of_a_running_fork_names_its_branches() {
    let bench = Workbench::with_pipeline(FORK);
    let child = bench.start(&["run", "--run-id", "r"]);
    let json = || serde_json::from_str::<Value>(&bench.glovebox(&["show", "r", "--json"]).stdout).ok();
    let show = until("the branches run", || {
        let found = bench.run_folder("r").join("journal.sqlite").is_file().then(json).flatten()?;
        let runs = |name: &str| branch(&found, "branches_now", name).is_some_and(|one| one["phase"] == "running");
        (runs("f-a") && runs("f-b") && branch(&found, "branches_now", "f-q").is_some()).then_some(found)
    });
    let a = branch(&show, "branches_now", "f-a").unwrap();
    assert_eq!((&a["node"], &a["attempt"], &a["parent"]), (&"a".into(), &1.into(), &"main".into()), "{a}");
    assert_eq!(branch(&show, "branches_now", "f-q").unwrap()["waits_for"], "answer");
    assert_eq!(branch(&show, "branches_now", "main").unwrap()["waits_for"], "branches");
    let text = bench.glovebox(&["show", "r"]);
    text.says("f-a at a").says("f-q at q waits for an answer").says("last sign of life");
    until("live.json has the branches", || {
        let live: Value =
            serde_json::from_str(&std::fs::read_to_string(bench.run_folder("r").join("live.json")).ok()?).ok()?;
        branch(&live, "branches", "f-b").filter(|one| one["node"] == "b")
    });
    bench.glovebox(&["ls"]).says("f-a at a, f-b at b").says("f-q at q waits for an answer");
    let listed = bench.glovebox(&["ls", "--json"]).json();
    assert!(branch(&listed["runs"][0], "branches", "f-a").is_some(), "{listed}");
    // A heartbeat is a later sign of life than the last record.
    until("a heartbeat", || {
        let found = branch(&json()?, "branches_now", "f-a")?;
        (found["last_sign"].as_str() > found["since"].as_str()).then_some(())
    });
    let question = show["open_questions"][0]["question"].as_str().unwrap();
    bench.glovebox(&["answer", "r", question, "Y"]).ends(0);
    Answer::from_child(child).ends(0);
    let ended = bench.glovebox(&["show", "r", "--json"]).json();
    assert_eq!(ended["branches_now"], Value::Null);
    assert_eq!(bench.run_json("r", "live.json")["branches"], Value::Null);
}
