//! `glovebox steer`: messages of a person to an agent at work, in the requests to its provider and in the record.

use crate::providers::{Bench, Turn};
use glovebox_record::Digest;
use serde_json::{Value, json};
use std::process::Child;

const STAGE: &str = "digraph ship {
  graph [goal=\"say hello\"]
  start [shape=Mdiamond]
  build [prompt=\"Do: $goal\", allowed_write_paths=\"src/\"]
  check [shape=parallelogram, tool_command=\"true\"]
  exit [shape=Msquare]
  start -> build -> check -> exit
}
";

fn write(name: &str) -> Turn {
    Turn::tool("write_file", json!({ "path": format!("src/{name}.txt"), "content": format!("{name}-content") }))
}

fn end() -> Turn {
    Turn::text("OUTCOME: SUCCESS")
}

fn ended(mut run: Child) -> Option<i32> {
    run.wait().unwrap().code()
}

fn steered(bench: &Bench) -> Vec<Value> {
    let lines = bench.read_in_run("progress.ndjson");
    let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone());
    events.filter(|event| event["kind"] == "stage.steered").collect()
}

/// Returns the position of each word in a text. Each word must occur exactly once.
fn places(text: &str, words: &[&str]) -> Vec<usize> {
    let place = |word: &&str| {
        assert_eq!(text.matches(*word).count(), 1, "{word} in {text}");
        text.find(*word).unwrap()
    };
    words.iter().map(place).collect()
}

#[test]
fn an_agent_hears_what_a_person_says_with_its_next_question() {
    for family in ["anthropic", "openai", "gemini", "openai-compatible", "ollama"] {
        let bench = Bench::new(STAGE, family, &[write("one").after(4000), write("two"), end()]);
        let run = bench.start_run(1);
        bench
            .glovebox(&["steer", "r", "build", "ZEBRA first", "--as", "ann"])
            .ends(0)
            .says("sent the message to build");
        let told = bench.glovebox(&["steer", "r", "build", "GIRAFFE then", "--as", "bob", "--json"]).ends(0).json();
        assert_eq!(
            (&told["run_id"], &told["node"], &told["state"]),
            (&json!("r"), &json!("build"), &json!("recorded"))
        );
        assert_eq!(ended(run), Some(0), "{family}");
        let asked = bench.requests();
        assert_eq!(asked.len(), 3, "{family}");
        assert!(!asked[0].contains("ZEBRA") && !asked[0].contains("GIRAFFE"), "{family}");
        let in_order = places(&asked[2], &["one-content", "ZEBRA first", "GIRAFFE then", "two-content"]);
        assert!(in_order.is_sorted(), "{family}: {}", asked[2]);
        assert!(places(&asked[1], &["ZEBRA first", "GIRAFFE then"]).is_sorted(), "{family}");
        let said = steered(&bench);
        let words = |name: &str| said.iter().map(|event| event[name].as_str().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(
            (words("by"), words("text")),
            (vec!["ann".into(), "bob".into()], vec!["ZEBRA first".into(), "GIRAFFE then".into()])
        );
        assert_eq!(said[1]["message"], told["message"]);
        let shown = bench.glovebox(&["show", "r", "build"]);
        shown
            .ends(0)
            .says("by ann, delivered in turn 2: ZEBRA first")
            .says("by bob, delivered in turn 2: GIRAFFE then");
        bench.glovebox(&["transcript", "r", "build"]).ends(0).says("ZEBRA first");
        bench.glovebox(&["verify", "r"]).ends(0);
    }
}

/// In a repeated attempt, a message has the same position in the conversation, so no answer is paid for twice.
#[test]
fn an_attempt_that_is_made_again_hears_the_same_at_the_same_place() {
    for how in ["kill", "interrupt"] {
        let turns = [write("one").after(2500), write("two"), Turn::text("never").stall(), end()];
        let bench = Bench::new(STAGE, "anthropic", &turns);
        let mut run = bench.start_run(1);
        bench.glovebox(&["steer", "r", "build", "ZEBRA first"]).ends(0);
        bench.asked(3);
        match how {
            "kill" => {
                run.kill().unwrap();
                run.wait().unwrap();
            }
            _ => bench.interrupt(run),
        }
        bench.glovebox(&["steer", "r", "build", "too late"]).ends(2).says(if how == "kill" {
            "no process drives"
        } else {
            "r"
        });
        bench.resume().ends(0);
        let asked = bench.requests();
        assert_eq!(asked.len(), 4, "{how}: what was answered is not asked again");
        assert_eq!(asked[3], asked[2], "{how}");
        places(&asked[3], &["ZEBRA first"]);
        assert!(!asked[3].contains("too late"), "{how}");
        assert_eq!(steered(&bench).len(), 1, "{how}");
        bench.glovebox(&["show", "r", "build"]).ends(0).says("delivered in turn 2: ZEBRA first");
    }
}

#[test]
fn what_no_question_came_after_is_shown_as_never_heard() {
    let bench = Bench::new(STAGE, "openai", &[end().after(2500)]);
    let run = bench.start_run(1);
    bench.glovebox(&["steer", "r", "build", "wait for me"]).ends(0);
    assert_eq!(ended(run), Some(0));
    assert_eq!(bench.requests().len(), 1);
    bench
        .glovebox(&["show", "r", "build"])
        .ends(0)
        .says("not delivered, because the model was not asked again: wait for me");
}

#[test]
fn what_no_agent_would_hear_is_refused() {
    let bench = Bench::new(STAGE, "openai", &[end().after(6000)]);
    let run = bench.start_run(1);
    let steer = |node: &str, text: &str| bench.glovebox(&["steer", "r", node, text]);
    steer("check", "hi").ends(2).says("`check` is a `tool` node, which asks no model");
    steer("biuld", "hi").ends(2).says("no node `biuld`").says("did you mean `build`");
    steer("build", "  ").ends(2).says("0 bytes, expected 1 to 16384");
    steer("build", &"x".repeat(16385)).ends(2).says("16385 bytes");
    steer("build", &"x".repeat(16384)).ends(0);
    assert_eq!(ended(run), Some(0));
    steer("build", "hi").ends(2).says("run `r` has ended (success), so no agent can get the message");
    assert_eq!(steered(&bench).len(), 1);
}

/// A message in the inbox that is not signed, or that was signed for another run, is ignored.
#[test]
fn a_forged_message_is_not_heard() {
    let bench = Bench::new(STAGE, "openai", &[write("one").after(3000), end()]);
    let run = bench.start_run(1);
    let inbox = bench.run_folder().join("inbox");
    std::fs::create_dir_all(&inbox).unwrap();
    let text = json!({ "kind": "steer", "message": "m", "node": "build", "text": "FORGED", "by": "x",
        "at": "2026-01-01T00:00:00Z" });
    let name = format!("steer-{}.json", Digest::hash(b"m").hex());
    std::fs::write(inbox.join(name), format!("{}\n{text}\n", "0".repeat(64))).unwrap();
    assert_eq!(ended(run), Some(0));
    assert!(bench.requests().iter().all(|asked| !asked.contains("FORGED")));
    assert!(steered(&bench).is_empty());
}

#[test]
fn the_agent_at_work_in_a_child_hears_its_supervisor() {
    let boss = "digraph ship {
  graph [goal=\"say hello\"]
  start [shape=Mdiamond]
  boss [shape=house, \"stack.child_dotfile\"=\"child.dot\", \"manager.poll_interval\"=\"300ms\",
        \"manager.actions\"=\"observe,steer,wait\", prompt=\"ZEBRA $goal\", allowed_write_paths=\"src/\"]
  exit [shape=Msquare]
  start -> boss -> exit
}
";
    let bench = Bench::new(boss, "anthropic", &[write("one").after(1500), end()]);
    bench.write("child.dot", &STAGE.replace("digraph ship", "digraph child"));
    bench.run().ends(0);
    let asked = bench.requests();
    assert_eq!(asked.len(), 2);
    assert!(!asked[0].contains("ZEBRA") && asked[1].contains("ZEBRA say hello"), "{}", asked[1]);
    let steered = steered(&bench);
    assert_eq!((steered.len(), &steered[0]["node"], &steered[0]["by"]), (1, &json!("boss__build"), &json!("boss")));
}
