//! Conversations that become too long: old turns are replaced by a list of their calls, before the limit is reached and
//! after a provider has rejected a request as too long.
//!
//! The witness is the log of the fake provider. It shows which turns each request still contains, and that no request has the
//! result of a tool call without the call.

use crate::providers::{Bench, FAMILIES, Turn};
use serde_json::json;

const PIPELINE: &str = "digraph ship {
  start [shape=Mdiamond]
  build [prompt=\"Do the task\", allowed_write_paths=\"src/\", max_turns=40]
  exit [shape=Msquare]
  start -> build -> exit
}
";

/// Returns a turn that reads file `number`, in a conversation of `tokens` tokens.
fn read(number: usize, tokens: u64) -> Turn {
    Turn::tool("read_file", json!({ "path": format!("f{number}.txt") })).usage(tokens, 10)
}

/// Creates a project whose files have long, recognisable lines, and a model with a context of 10,000 tokens.
fn bench(family: &str, turns: &[Turn]) -> Bench {
    let bench = Bench::new(PIPELINE, family, turns);
    let table = bench.project_text("glovebox.toml");
    bench.write("glovebox.toml", &format!("{table}context_tokens = 10000\n"));
    for number in 1..=12 {
        bench.write(&format!("f{number}.txt"), &format!("content-{number}-{}\n", "x".repeat(6000)));
    }
    bench
}

fn has(request: &str, number: usize) -> bool {
    request.contains(&format!("content-{number}-"))
}

#[test]
fn a_full_conversation_keeps_its_last_turns_and_a_list_of_the_others() {
    for family in FAMILIES {
        let turns = [read(1, 3000), read(2, 5000), read(3, 8500), Turn::text("OUTCOME: SUCCESS").usage(5000, 10)];
        let bench = bench(family, &turns);
        bench.run().ends(0).never_says("OUTCOME");
        let asked = bench.requests();
        assert_eq!(asked.len(), 4, "{family}: making it shorter asks nobody");
        assert!(has(&asked[2], 1) && has(&asked[2], 2), "{family}");
        assert!(!has(&asked[3], 1) && !has(&asked[3], 2) && has(&asked[3], 3), "{family}: {}", asked[3]);
        assert!(asked[3].contains("Do the task") && asked[3].contains("- called read_file"), "{family}");
        assert!(asked[3].contains("f1.txt") && asked[3].contains("f2.txt"), "{family}: the calls are in the list");
        let removed = bench.read_in_run("build/compacted-1.md");
        assert!(has(&removed, 1) && has(&removed, 2) && !has(&removed, 3), "{family}: what goes is kept whole");
        // A provider refuses a result without its call, so calls and results must be equally many.
        let calls = |text: &str| (asked[3].matches(text).count()) as u64;
        match family {
            "openai" => assert_eq!((calls("\"function_call\""), calls("\"function_call_output\"")), (1, 1)),
            "anthropic" => assert_eq!((calls("\"tool_use\""), calls("\"tool_result\"")), (1, 1)),
            "gemini" => assert_eq!((calls("\"functionCall\""), calls("\"functionResponse\"")), (1, 1)),
            _ => assert_eq!((calls("\"tool_calls\""), calls("\"role\":\"tool\"")), (1, 1)),
        }
    }
}

/// After the error `context-length` there is one try with a shorter conversation. If it fails too, the stage fails.
#[test]
fn a_conversation_that_is_too_long_is_made_shorter_once() {
    for family in FAMILIES {
        let turns = [read(1, 100), read(2, 200), Turn::error("context-length"), Turn::text("OUTCOME: SUCCESS")];
        let good = bench(family, &turns);
        good.run().ends(0);
        let asked = good.requests();
        assert_eq!(asked.len(), 4, "{family}");
        assert!(has(&asked[2], 1) && !has(&asked[3], 1) && has(&asked[3], 2), "{family}");
        let turns = [read(1, 100), read(2, 200), Turn::error("context-length").repeat()];
        let bad = bench(family, &turns);
        bad.run().ends(5).says("provider/context-length");
        assert_eq!(bad.requests().len(), 4, "{family}: it is tried once");
    }
    let first = bench("openai", &[Turn::error("context-length").repeat()]);
    first.run().ends(5);
    assert_eq!(first.requests().len(), 1, "a first question has nothing to spare");
}

/// A repeated attempt shortens its conversation at the same places, including the place where a provider refused it.
#[test]
fn a_killed_attempt_asks_nothing_twice() {
    let mut turns = vec![read(1, 3000), read(2, 8500), read(3, 4000), Turn::error("context-length"), read(4, 8500)];
    turns.extend([read(5, 3000).after(3000), Turn::text("OUTCOME: SUCCESS")]);
    let bench = bench("anthropic", &turns);
    bench.kill_run_after(6);
    bench.resume().ends(0);
    // The sixth request had no answer when the run was killed, so it is sent again. The fake provider has the next
    // answer for it.
    assert_eq!(bench.requests().len(), 7);
    let asked = bench.requests();
    assert_eq!(asked[5], asked[6], "the same question as before the kill");
}

/// A model that reports a full context in every turn causes a bounded number of compactions.
#[test]
fn a_conversation_is_made_shorter_a_bounded_number_of_times() {
    let mut turns: Vec<Turn> = (1..=12).map(|number| read(number, 9_999)).collect();
    turns.push(Turn::text("OUTCOME: SUCCESS"));
    let bench = bench("gemini", &turns);
    bench.run().ends(0);
    let asked = bench.requests();
    assert_eq!(asked.len(), 13);
    let last = asked.last().unwrap();
    let kept: Vec<usize> = (1..=12).filter(|number| has(last, *number)).collect();
    assert_eq!(kept, [9, 10, 11, 12], "eight times, and then no more");
    assert!(bench.run_folder().join("build/compacted-8.md").exists());
    assert!(!bench.run_folder().join("build/compacted-9.md").exists());
}
