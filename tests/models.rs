//! Model calls with the real binary: `glovebox run` asks `glovebox fake-llm` in every wire format, with and without
//! errors.
//!
//! The witness is the log of the fake provider: which requests it got, and how many. The API key is searched for in
//! every byte of a run.

use crate::providers::{Bench, FAMILIES, KEY, Turn};
use serde_json::{Value, json};

const STAGE: &str = "digraph ship {
  graph [goal=\"say hello\"]
  start [shape=Mdiamond]
  build [prompt=\"Do: $goal\", allowed_write_paths=\"src/\"]
  exit [shape=Msquare]
  start -> build -> exit
}
";

/// Returns a turn that writes a file and a turn that ends the stage.
fn write_and_end() -> [Turn; 2] {
    let write = Turn::tool("write_file", json!({ "path": "src/a.txt", "content": "hello\n" }));
    [write.usage(1200, 40), Turn::text("OUTCOME: SUCCESS").usage(1300, 20)]
}

#[test]
fn a_stage_asks_its_model_in_every_wire_format() {
    for family in FAMILIES {
        let bench = Bench::new(STAGE, family, &write_and_end());
        bench.run().ends(0).says("$0.0084").never_says("simulated");
        assert_eq!(bench.read_in_run("workspace/src/a.txt"), "hello\n", "{family}");
        let shown = bench.show();
        assert_eq!((&shown["model"], &shown["tokens"]), (&json!("live"), &json!({ "input": 2500, "output": 60 })));
        assert_eq!((&shown["cost"], shown.get("is_estimated")), (&json!(8400), None), "{family}");
        let ended = bench.run_json("final.json");
        assert_eq!((&ended["cost"], &ended["tokens"]["input"]), (&json!("$0.0084"), &json!(2500)), "{family}");
        let asked = bench.requests();
        assert_eq!(asked.len(), 2, "{family}");
        assert!(asked[0].contains("Do: say hello") && asked[0].contains("write_file"), "{family}: {}", asked[0]);
        assert!(asked[1].contains("wrote 6 bytes"), "{family}: the tool's result goes back: {}", asked[1]);
        bench.glovebox(&["show", "r", "build"]).ends(0).says("tokens").says(&format!("it: {family} exact-model"));
        bench.has_no_key();
    }
}

/// The name of the model must be the same in the request, in the answer and in the record.
#[test]
fn an_answer_of_another_model_counts_for_nothing() {
    for family in FAMILIES {
        let bench = Bench::new(STAGE, family, &[Turn::text("OUTCOME: SUCCESS").of("another-model")]);
        bench.run().ends(6).says("provider/pin-violation").says("another-model").says("answers_as");
        assert_eq!(bench.show()["failure"]["class"], "scope", "{family}");
        assert_eq!(bench.requests().len(), 1, "{family}: it is not asked again");
    }
    // Changes that the stage made before are not committed either.
    let [write, end] = write_and_end();
    let bench = Bench::new(STAGE, "anthropic", &[write, end.of("another-model")]);
    bench.run().ends(6).says("provider/pin-violation").never_says("changed  ");
    assert!(!bench.run_folder().join("workspace/src/a.txt").exists());
    let dated = Turn::text("OUTCOME: SUCCESS").of("exact-model-2026-01-31");
    let bench = Bench::new(STAGE, "openai", &[dated]);
    bench.run().ends(0);
    bench.glovebox(&["show", "r", "build"]).says("answered as exact-model-2026-01-31");
}

/// An empty answer does not end a stage: the model is told so, and the second empty answer in a row fails the stage.
#[test]
fn an_empty_answer_is_no_success() {
    for family in FAMILIES {
        let silent = Turn::text("");
        let [write, end] = write_and_end();
        let bench = Bench::new(STAGE, family, &[silent.clone(), write, silent.clone(), end]);
        bench.run().ends(0);
        let asked = bench.requests();
        assert!(asked.len() == 4 && asked[1].contains("Your answer was empty"), "{family}: {}", asked[1]);
        let bench = Bench::new(STAGE, family, &[silent.repeat()]);
        bench.run().ends(9).says("agent/empty-answer");
        assert_eq!(bench.requests().len(), 2, "{family}");
    }
}

/// Columns: error, number of requests, failure class, exit code.
#[test]
fn each_error_has_its_class_its_retries_and_its_exit() {
    let table = [
        ("authentication", 1, "deterministic", 8),
        ("access-denied", 1, "deterministic", 8),
        ("not-found", 1, "deterministic", 8),
        ("invalid-request", 1, "deterministic", 8),
        ("rate-limit", 3, "transient", 9),
        ("server", 3, "transient", 9),
        ("content-filter", 1, "deterministic", 8),
        ("context-length", 1, "budget", 5),
        ("request-timeout", 1, "transient", 9),
    ];
    for (at, (error, tries, class, exit)) in table.into_iter().enumerate() {
        let family = FAMILIES[at % FAMILIES.len()];
        let bench = Bench::new(STAGE, family, &[Turn::error(error).at_once().repeat()]);
        bench.run().ends(exit).says(&format!("provider/{error}")).says("help  ").never_says(KEY);
        let failure = &bench.show()["failure"];
        assert_eq!((&failure["class"], &failure["code"]), (&json!(class), &json!(format!("provider/{error}"))));
        assert_eq!(bench.requests().len(), tries, "{error} of {family}");
        bench.has_no_key();
    }
}

/// Errors that are no error responses: the host finds them in an answer or a connection. Columns: error, attribute of the stage,
/// number of requests, failure class, code, exit code.
#[test]
fn each_misbehavior_of_a_provider_has_its_class_and_its_exit() {
    let schema = "output_schema=\"{\\\"type\\\":\\\"object\\\",\\\"required\\\":[\\\"verdict\\\"]}\", ";
    let table = [
        ("network", "", 3, "transient", "provider/network", 9),
        ("stream", "", 3, "transient", "provider/stream", 9),
        ("pin-violation", "", 1, "scope", "provider/pin-violation", 6),
        ("answer-too-large", "", 1, "contract", "provider/answer-too-large", 8),
        ("configuration", "", 1, "deterministic", "provider/configuration", 8),
        ("invalid-tool-call", "", 3, "deterministic", "provider/invalid-tool-call", 8),
        ("loop", "", 12, "deterministic", "agent/loop", 1),
        ("no-object-generated", schema, 3, "deterministic", "provider/no-object-generated", 8),
    ];
    // Only the arguments of a call have a form of their own in each family.
    let cases = table.into_iter().enumerate().flat_map(|(at, row)| match row.0 {
        "invalid-tool-call" => FAMILIES.map(|family| (row, family)).to_vec(),
        _ => vec![(row, FAMILIES[at % FAMILIES.len()])],
    });
    for ((error, attribute, tries, class, code, exit), family) in cases {
        let pipeline = STAGE.replace("allowed_write_paths", &format!("{attribute}allowed_write_paths"));
        let bench = Bench::new(&pipeline, family, &[Turn::error(error).at_once().repeat()]);
        let answer = bench.run();
        let failure = &bench.show()["failure"];
        let found = (failure["class"].as_str(), failure["code"].as_str(), bench.requests().len(), answer.code);
        assert_eq!(found, (Some(class), Some(code), tries, exit), "{error} of {family}: {failure}");
        bench.has_no_key();
    }
}

/// The retries of a node repeat failures that may be temporary, and not a refusal that is permanent.
#[test]
fn retries_of_a_node_repeat_only_what_may_pass() {
    let pipeline = STAGE.replace("allowed_write_paths", "max_retries=1, retry_policy=none, allowed_write_paths");
    let bench = Bench::new(&pipeline, "anthropic", &[Turn::error("server").at_once().repeat()]);
    bench.run().ends(9);
    assert_eq!(bench.requests().len(), 6);
    let bench = Bench::new(&pipeline, "anthropic", &[Turn::error("authentication").repeat()]);
    bench.run().ends(8);
    assert_eq!(bench.requests().len(), 1);
}

#[test]
fn a_stream_that_is_cut_off_is_asked_again_and_what_it_cost_is_estimated() {
    for family in FAMILIES {
        for cut in ["body", "connection"] {
            let turns = [Turn::text("OUTCOME: SUCCESS").cut(cut), Turn::text("OUTCOME: SUCCESS").usage(100, 10)];
            let bench = Bench::new(STAGE, family, &turns);
            bench.run().ends(0).says("~");
            assert_eq!(bench.requests().len(), 2, "{family} {cut}");
            let shown = bench.show();
            assert_eq!(shown["is_estimated"], true, "{family} {cut}");
            assert!(shown["tokens"]["input"].as_u64().unwrap() > 100, "{family} {cut}: {}", shown["tokens"]);
            assert!(bench.run_json("final.json")["cost"].as_str().unwrap().starts_with("~$"), "{family} {cut}");
        }
    }
}

#[test]
fn a_run_without_credit_pauses_and_goes_on_where_it_was() {
    let [write, end] = write_and_end();
    let turns = [write, Turn::error("quota-exceeded"), end];
    // Ollama charges no money, so it is left out.
    for family in &FAMILIES[..4] {
        let bench = Bench::new(STAGE, family, &turns);
        bench.run().ends(10).says("paused").says("provider/quota-exceeded").says("add credit").says("resume r");
        let shown = bench.show();
        assert_eq!((&shown["status"], &shown["failure"]["class"]), (&json!("paused"), &json!("budget")), "{family}");
        let before = bench.requests().len();
        assert_eq!(before, 2, "{family}: a refusal for want of credit is not asked again");
        bench.resume().ends(0);
        assert_eq!(bench.show()["failure"], json!(null));
        assert_eq!(bench.requests().len(), 3, "{family}: the turn before the refusal is not paid for again");
        assert_eq!(bench.show()["tokens"], json!({ "input": 2500, "output": 60 }), "{family}: and counts once");
        bench.has_no_key();
    }
}

/// The run is killed while it waits for the answer of each turn. No answer that arrived before is requested or paid for
/// again.
#[test]
fn a_run_that_is_killed_asks_nothing_twice() {
    let pipeline = STAGE.replace("allowed_write_paths", "allowed_commands=\"*\", allowed_write_paths");
    let turn = |at: usize| match at % 3 {
        0 => Turn::tool("write_file", json!({ "path": format!("src/{at}.txt"), "content": "x" })),
        1 => Turn::tool("shell", json!({ "command": format!("date +%H:%M:%S; cat src/*.txt | wc -c; echo {at}") })),
        _ => Turn::tool("read_file", json!({ "path": format!("src/{}.txt", at - 2) })),
    };
    const TURNS: usize = 6;
    for killed_at in 0..=TURNS {
        let mut turns: Vec<Turn> = (0..TURNS).map(|at| turn(at).usage(100, 10)).collect();
        turns.push(Turn::text("OUTCOME: SUCCESS").usage(100, 10));
        turns.insert(killed_at, Turn::text("never").stall());
        let bench = Bench::new(&pipeline, FAMILIES[killed_at % FAMILIES.len()], &turns);
        bench.kill_run_after(killed_at + 1);
        bench.resume().ends(0);
        assert_eq!(
            bench.requests().len(),
            TURNS + 2,
            "killed at {killed_at}: only the unanswered question comes twice"
        );
        let tokens = &bench.show()["tokens"];
        assert_eq!(tokens, &json!({ "input": 700, "output": 70 }), "killed at {killed_at}");
        let lines = bench.read_in_run("build/transcript.ndjson");
        let sent: Vec<usize> = lines.lines().map(|line| line.matches("\"role\"").count()).collect();
        assert_eq!(sent.len(), TURNS + 1, "killed at {killed_at}: {sent:?}");
        assert!(!bench.run_folder().join("exchanges").exists());
    }
}

#[test]
fn live_asks_again_and_counts_what_was_paid_before() {
    let turns = [
        write_and_end()[0].clone().usage(100, 10),
        Turn::text("never").stall(),
        write_and_end()[0].clone().usage(100, 10),
        Turn::text("OUTCOME: SUCCESS").usage(100, 10),
    ];
    let bench = Bench::new(STAGE, "anthropic", &turns);
    bench.kill_run_after(2);
    bench.with_key(&["resume", "r", "--live"]).ends(0);
    assert_eq!(bench.requests().len(), 4);
    assert_eq!(bench.show()["tokens"], json!({ "input": 300, "output": 30 }), "the first answer was paid for too");
}

#[test]
fn an_interrupted_run_goes_on_with_its_answers_and_counts_them_once() {
    let turns = [
        write_and_end()[0].clone().usage(100, 10),
        Turn::text("never").stall(),
        Turn::text("OUTCOME: SUCCESS").usage(100, 10),
    ];
    let bench = Bench::new(STAGE, "openai", &turns);
    bench.interrupt_run_after(2);
    let before = bench.show();
    assert_eq!(before["is_estimated"], true, "the answer that broke off may cost something");
    bench.resume().ends(0);
    assert_eq!(bench.requests().len(), 3);
    let output = |shown: &Value| shown["tokens"]["output"].as_u64().unwrap();
    assert_eq!(output(&bench.show()), output(&before) + 10, "only the last answer is new");
}

/// An agent gets the edit tool of its model's maker, and the project's notes, including notes that stages of the run
/// have written.
#[test]
fn an_agent_gets_the_notes_of_the_project_and_the_patches_its_model_knows() {
    let patch =
        "*** Begin Patch\n*** Update File: src/a.txt\n@@\n-one\n+two\n*** Add File: src/b.txt\n+new\n*** End Patch";
    for family in FAMILIES {
        let turns = [Turn::tool("apply_patch", json!({ "patch": patch })), Turn::text("OUTCOME: SUCCESS")];
        let bench = Bench::new(STAGE, family, &turns);
        bench.write("src/a.txt", "one\n");
        bench.write("AGENTS.md", "Use tabs in this project.\n");
        bench.write("CLAUDE.md", "Only for one maker.\n");
        bench.run().ends(0);
        let asked = bench.requests();
        assert!(asked[0].contains("Use tabs in this project.") && asked[0].contains("They are files of the project"));
        assert_eq!(asked[0].contains("Only for one maker."), family == "anthropic", "{family}");
        let knows_patches = family.starts_with("openai");
        assert_eq!(asked[0].contains("*** Begin Patch"), knows_patches, "{family}");
        let changed = bench.read_in_run("workspace/src/a.txt");
        assert_eq!(changed, if knows_patches { "two\n" } else { "one\n" }, "{family}: {}", asked[1]);
    }
}

/// Files that a stage may not read do not exist for it, and the search for notes records no refusal.
#[test]
fn notes_outside_of_the_read_scope_stay_there() {
    for bound in ["read_paths=\"src/\"", "codex.strict_read_scope=true", "codex.block_read_paths=\"AGENTS.md\""] {
        let pipeline = STAGE.replace("allowed_write_paths", &format!("{bound}, allowed_write_paths"));
        let bench = Bench::new(&pipeline, "openai", &[Turn::text("OUTCOME: SUCCESS")]);
        bench.write("AGENTS.md", "Use tabs in this project.\n");
        bench.run().ends(0).never_says("refused");
        assert!(!bench.requests()[0].contains("Use tabs"), "{bound}");
    }
}

/// A model that repeats the same call, or a cycle of three calls, is stopped long before the limit on turns.
#[test]
fn a_model_in_a_circle_is_told_and_then_stopped() {
    let read = |path: &str| Turn::tool("read_file", json!({ "path": path }));
    let bench = Bench::new(STAGE, "anthropic", &[read("pipeline.dot").repeat()]);
    bench.run().ends(1).says("agent/loop").says("the same tool calls again and again");
    let asked = bench.requests();
    assert_eq!(asked.len(), 12);
    assert!(!asked[9].contains("repeat themselves") && asked[10].contains("the last calls repeat themselves"));
    let cycle = ["a", "b", "c"].iter().cycle().take(30).map(|path| read(path)).collect::<Vec<_>>();
    let bench = Bench::new(STAGE, "gemini", &cycle);
    bench.run().ends(1).says("agent/loop");
    assert_eq!(bench.requests().len(), 12);
    let work = (0..20).map(|at| read(&format!("{at}"))).chain([Turn::text("OUTCOME: SUCCESS")]).collect::<Vec<_>>();
    Bench::new(STAGE, "openai", &work).run().ends(0);
}

#[test]
fn a_long_output_is_kept_whole() {
    let pipeline = STAGE.replace("allowed_write_paths", "allowed_commands=\"*\", allowed_write_paths");
    let turns = [Turn::tool("shell", json!({ "command": "seq 1 20000" })), Turn::text("OUTCOME: SUCCESS")];
    let bench = Bench::new(&pipeline, "ollama", &turns);
    bench.run().ends(0);
    assert!(bench.requests()[1].contains("left out") && !bench.requests()[1].contains("\\n9999\\n"));
    assert!(bench.read_in_run("build/tool-1.txt").contains("\n9999\n"));
}

/// Invalid arguments, unknown tools and a tool name of 10 MB have no effect.
#[test]
fn a_hostile_model_gets_nowhere() {
    let broken = || Turn::raw("write_file", "{\"path\": ");
    let bench = Bench::new(STAGE, "openai", &[broken().repeat()]);
    bench.run().ends(8).says("invalid-tool-call").says("in 3 answers in a row");
    assert_eq!(bench.requests().len(), 3);
    let outside = |path: &str| Turn::tool("write_file", json!({ "path": path, "content": "x" }));
    let turns = [
        outside("../../escape.txt"),
        outside("/etc/escape.txt"),
        outside(".git/hooks/post-commit"),
        outside("glovebox.toml"),
        Turn::tool("rm_rf", json!({ "path": "/" })),
        broken(),
        Turn::tool("read_file", json!({ "path": "x".repeat(1 << 20) })),
        Turn::text("OUTCOME: SUCCESS"),
    ];
    let bench = Bench::new(STAGE, "anthropic", &turns);
    bench.run().ends(0);
    assert_eq!(bench.requests().len(), 8);
    let shown = bench.show();
    assert_eq!(shown["changed"], json!([]), "{}", shown["changed"]);
    let huge = [Turn::text("x").fill(10 << 20)];
    let bench = Bench::new(STAGE, "gemini", &huge);
    bench.run().ends(8).says("answer-too-large");
    let bench = Bench::new(STAGE, "ollama", &[Turn::text("x").endless()]);
    bench.run().ends(8).says("answer-too-large");
}

/// The attributes `test.*` answer only if there is no model, so a pipeline that `init` writes works with a model and
/// without one.
#[test]
fn test_attributes_answer_only_where_there_is_no_model() {
    let pipeline = STAGE.replace("allowed_write_paths", "test.outcome=fail, allowed_write_paths");
    let bench = Bench::new(&pipeline, "openai", &[Turn::text("OUTCOME: SUCCESS")]);
    bench.with_key(&["run", "pipeline.dot", "--run-id", "s", "--simulate"]).ends(1);
    assert_eq!(bench.requests().len(), 0);
    bench.run().ends(0);
    assert_eq!(bench.requests().len(), 1);
    let other = pipeline.replace("test.outcome", "llm_model=unknown, test.outcome");
    let bench = Bench::new(&other, "openai", &[Turn::text("OUTCOME: SUCCESS")]);
    bench.run().ends(1);
    assert_eq!(bench.requests().len(), 0);
}

/// Parallel attempts never exceed a budget together, because the maximum cost of each call is reserved first.
#[test]
fn a_budget_holds_over_branches() {
    let pipeline = "digraph fan {
  graph [max_budget_usd=0.6]
  start [shape=Mdiamond]; fork [shape=component]; join [shape=tripleoctagon]; done [shape=Msquare]
  a [prompt=a, allowed_write_paths=\"\"]; b [prompt=b, allowed_write_paths=\"\"]; c [prompt=c, allowed_write_paths=\"\"]
  start -> fork; fork -> a -> join; fork -> b -> join; fork -> c -> join; join -> done
}
";
    let slow = Turn::text("OUTCOME: SUCCESS").usage(100, 16_000).repeat().after(300);
    let bench = Bench::new(pipeline, "anthropic", &[slow]);
    let answer = bench.run();
    assert_ne!(answer.code, 0);
    // A call costs 24 cents and reserves 25, so two calls fit, of whichever branches.
    assert_eq!(bench.requests().len(), 2, "{}", answer.stderr);
    assert!(bench.show()["cost"].as_u64().unwrap() <= 600_000);
}

/// The run ends before the first stage, and no simulated answer replaces the model.
#[test]
fn a_model_that_cannot_be_asked_ends_the_run_before_it_begins() {
    let turns = [Turn::text("OUTCOME: SUCCESS").repeat()];
    let with = |attributes: &str| STAGE.replace("allowed_write_paths", &format!("{attributes}, allowed_write_paths"));
    let check = |attributes: &str, exit: i32, words: &str| {
        let bench = Bench::new(&with(attributes), "anthropic", &turns);
        bench.run().ends(exit).says(words).says("help");
        assert!(!bench.has_run() && bench.requests().is_empty(), "{attributes}");
    };
    check("llm_model=exact-modle", 3, "did you mean `exact-model`?");
    check("llm_model=gpt-5", 3, "names the model `gpt-5`, which `[models]` in glovebox.toml does not have");
    check("llm_provider=openai", 3, "names the provider `openai`, of which glovebox.toml has no model");
    check("llm_model=it, llm_provider=gemini", 3, "but the model `it` is of `anthropic`");
    check("reasoning_effort=extreme", 3, "expected `low`, `medium` or `high`");
    let bench = Bench::new(STAGE, "anthropic", &turns);
    bench.without_key().ends(8).says("the environment variable `FAKE_KEY` is not set");
    assert!(!bench.has_run() && bench.requests().is_empty());
    // The model can be chosen by table or by name, with provider and effort, in a node, a style sheet or the graph.
    for attributes in ["llm_model=it", "llm_model=exact-model", "llm_provider=anthropic", "reasoning_effort=high"] {
        let bench = Bench::new(&with(attributes), "anthropic", &turns);
        bench.run().ends(0);
        assert_eq!(bench.requests().len(), 1, "{attributes}");
    }
}

#[test]
fn a_budget_is_held_before_a_provider_is_asked() {
    let tokens = STAGE.replace("goal=", "max_tokens=1000, goal=");
    let bench = Bench::new(&tokens, "openai", &write_and_end());
    bench.run().ends(5).says("maximum tokens (1000)");
    assert_eq!(bench.requests().len(), 0);
    let money = STAGE.replace("goal=", "max_budget_usd=0.01, goal=");
    let bench = Bench::new(&money, "openai", &write_and_end());
    bench.run().ends(5).says("$0.01");
    assert_eq!(bench.requests().len(), 0);
    let node = STAGE.replace("allowed_write_paths", "max_budget_usd=0.5, allowed_write_paths");
    let many = vec![write_and_end()[0].clone().usage(100_000, 100).repeat()];
    let bench = Bench::new(&node, "openai", &many);
    bench.run().ends(5).says("node_max_budget_usd");
    assert_eq!(bench.requests().len(), 1, "one of these fits into the bound with what it may cost at most");
    let bench = Bench::unpriced(&money, "openai", &write_and_end());
    bench.run().ends(3).says("the price of the model `it` is not known");
}

/// No request contains hold-outs, however their text got into it. Here a command decodes it.
#[test]
fn no_request_contains_a_holdout() {
    const SECRET: &str = "grep -q 'forty-two apples in a wicker basket' answer.txt";
    let pipeline = STAGE.replace("allowed_write_paths", "allowed_commands=\"*\", allowed_write_paths");
    for (command, exit) in [
        ("printf 'grep -q %sforty-two apples in a %scker basket' \"'\" wi", 6),
        ("echo Z3JlcCAtcSAnZm9ydHktdHdvIGFwcGxlcyBpbiBhIHdpY2tlciBiYXNrZXQnIGFuc3dlci50eHQ= | base64 -d", 6),
        ("echo forty-two", 0),
    ] {
        let turns = [Turn::tool("shell", json!({ "command": command })), Turn::text("OUTCOME: SUCCESS").repeat()];
        let bench = Bench::new(&pipeline, "openai", &turns);
        bench.write("scripts/scenarios/answer.sh", &format!("#!/bin/sh\n{SECRET}\n"));
        let answer = bench.run();
        answer.ends(exit).never_says("wicker basket");
        assert_eq!(bench.requests().len(), if exit == 0 { 2 } else { 1 }, "{command}");
        assert!(bench.requests().iter().all(|request| !request.contains("apples in a wicker")));
    }
    let bench = Bench::new(STAGE, "openai", &[Turn::text(&format!("I think it says: {SECRET}"))]);
    bench.write("scripts/scenarios/answer.sh", &format!("#!/bin/sh\n{SECRET}\n"));
    bench.run().ends(6).says("holdout_leak: the response contains").never_says("basket");
    assert!(!bench.run_folder().join("build/transcript.ndjson").exists());
}

/// The model searches for the key in every way that a stage has.
#[test]
fn no_stage_finds_the_key() {
    let pipeline = STAGE.replace("allowed_write_paths", "allowed_commands=\"*\", allowed_write_paths");
    let shell = |command: &str| Turn::tool("shell", json!({ "command": command }));
    let turns = [
        shell(
            "env; cat /proc/self/environ /proc/1/environ /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n'; echo looked",
        ),
        shell("cat ../glovebox.toml ../../glovebox.toml glovebox.toml 2>/dev/null; echo looked"),
        Turn::tool("read_file", json!({ "path": "/proc/self/environ" })),
        Turn::text("OUTCOME: SUCCESS"),
    ];
    let bench = Bench::new(&pipeline, "anthropic", &turns);
    bench.run().ends(0);
    let asked = bench.requests();
    assert!(asked[1].contains("looked") && !asked[3].contains(KEY));
    bench.has_no_key();
}

/// If a provider returns the key in an answer, no file and no message contains it.
#[test]
fn a_key_that_comes_back_is_kept_nowhere() {
    for family in FAMILIES {
        let turns = [
            Turn::tool("write_file", json!({ "path": "src/key.txt", "content": KEY })),
            Turn::text(&format!("I know {KEY}")),
        ];
        let bench = Bench::new(STAGE, family, &turns);
        bench.run().ends(0);
        assert_eq!(bench.read_in_run("workspace/src/key.txt"), "[key]");
        bench.has_no_key();
        let refused = Turn::error("invalid-request").saying(&format!("bad key {KEY}"));
        let bench = Bench::new(STAGE, family, &[refused]);
        bench.run().ends(8).says("bad key [key]");
        bench.has_no_key();
    }
}

/// If a conversation nears the limit of the model's context, this is logged once, and the stage continues.
#[test]
fn a_conversation_that_fills_its_context_says_so_once() {
    let write = |tokens| Turn::tool("write_file", json!({ "path": "src/a.txt", "content": "x" })).usage(tokens, 10);
    let turns = [write(50_000), write(110_000), write(120_000), Turn::text("OUTCOME: SUCCESS").usage(10, 10)];
    let bench = Bench::new(STAGE, "openai", &turns);
    bench.run().ends(0);
    let log = bench.read_in_run("build/log.ndjson");
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("fills 80 % of the model's context")).collect();
    assert_eq!(warnings.len(), 1, "{log}");
    assert!(warnings[0].contains("110010") && warnings[0].contains("131072"), "{}", warnings[0]);
}
