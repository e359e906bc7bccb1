//! What a person sees before approving: changes, checks, cost, and what the run does next. No stage can add a line to
//! this text.

use crate::workbench::Workbench;
use serde_json::Value;

const PAUSED: i32 = 10;

/// Creates a pipeline with two stages and a human gate behind each. The second stage runs after the check.
fn bench() -> Workbench {
    let bench = Workbench::with_pipeline(
        r#"digraph release {
  start; exit
  make  [shape=parallelogram, tool_command="sh make.sh", allowed_write_paths="src/"]
  test  [shape=parallelogram, tool_command="test -s src/new.txt", allowed_write_paths=""]
  look  [shape=hexagon, label="Go on?"]
  more  [shape=parallelogram, tool_command="echo more >> src/new.txt", allowed_write_paths="src/new.txt"]
  gate  [shape=hexagon, label="Ship?", timeout="8h", "human.default_choice"="fix", retry_target=more]
  send  [shape=parallelogram, tool_command="echo sent", allowed_write_paths="out/"]
  fix   [shape=parallelogram, tool_command="true", allowed_write_paths="", retry_target=make]
  start -> make -> test -> look
  look -> more [label="[M] More"]
  look -> exit [label="[Q] Quit"]
  more -> gate
  gate -> send [label="[S] Ship it"]
  gate -> fix  [label="[F] Fix first"]
  send -> exit
  fix  -> look
}
"#,
    );
    bench.write("make.sh", "printf 'one\\ntwo\\n' > src/new.txt; echo changed > src/old.txt\n");
    bench.write("src/old.txt", "before\n");
    bench
}

fn gates(bench: &Workbench) -> Value {
    bench.glovebox(&["gates", "r", "--json"]).ends(0).json()["gates"][0].clone()
}

#[test]
fn a_question_shows_what_an_answer_approves() {
    let bench = bench();
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(PAUSED).says("glovebox gates r");
    let shown = bench.glovebox(&["gates", "r"]);
    shown
        .ends(0)
        .says("look#1 of r: Go on?\n")
        .says("changed      2 paths since the run began: glovebox diff r --question 'look#1'\n")
        .says("src/new.txt (new) +2 -0\n")
        .says("src/old.txt +1 -1\n")
        .says("verified     test: sh -c 'test -s src/new.txt' exit 0")
        .says("[M]          More -> more\n")
        .says("runs more; then asks gate\n")
        .says("may write src/new.txt\n")
        .says("may run echo more >> src/new.txt\n")
        .says("[Q]          Quit -> exit\n")
        .says("runs nothing; then the run ends\n")
        .says("spent        0 tokens sent, 0 received; $0; ")
        .says("to answer    glovebox answer r 'look#1' VALUE\n");
    let diff = bench.glovebox(&["diff", "r", "--question", "look#1"]);
    assert_eq!(diff.ends(0).stdout, bench.glovebox(&["diff", "r"]).ends(0).stdout);
    let review = &gates(&bench)["review"];
    assert_eq!(review["since"], Value::Null);
    assert_eq!(review["changed"][1]["path"], "src/old.txt");
    assert_eq!((&review["changed"][1]["added"], &review["changed"][1]["removed"]), (&1.into(), &1.into()));
    assert_eq!((&review["checks"][1]["proof"], &review["checks"][1]["code"]), (&"verified".into(), &0.into()));
    assert_eq!(review["choices"][0]["could"]["write"], serde_json::json!(["src/new.txt"]));
    assert_eq!(review["choices"][1]["may_end"], true);

    // The next question shows only changes since the answer.
    bench.glovebox(&["answer", "r", "look", "M"]).ends(0);
    bench.glovebox(&["resume", "r"]).ends(PAUSED);
    let shown = bench.glovebox(&["gates", "r"]);
    shown
        .ends(0)
        .says("changed      1 path since look#1: ")
        .says("src/new.txt +1 -0\n")
        .never_says("src/old.txt")
        .says("verified, before the last changes test: ")
        // The stages on a path back through a retry target are listed too.
        .says("runs make, test, fix; then asks look\n")
        .says("otherwise    if the gate fails or nobody answers in time\n")
        .says("default      Fix first\n")
        .says("until        ");
    let diff = bench.glovebox(&["diff", "r", "--question", "gate"]).ends(0).stdout.clone();
    assert!(diff.contains(" two\n+more\n") && !diff.contains("old.txt"), "{diff}");
    assert_eq!(bench.glovebox(&["diff", "r", "--question", "look"]).ends(0).stdout.matches("diff --git").count(), 2);
    bench.glovebox(&["diff", "r", "--question", "nothing"]).ends(2).says("never asked a question `nothing`");
}

#[test]
fn a_gate_that_no_person_answered_hides_nothing_from_the_next_one() {
    let bench = bench();
    let text = bench.read("pipeline.dot").replace("label=\"Go on?\"", "label=\"Go on?\", \"human.default_choice\"=M");
    bench.write("pipeline.dot", &text);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(PAUSED);
    let shown = bench.glovebox(&["gates", "r"]);
    shown
        .ends(0)
        .says("gate#1")
        .says("2 paths since the run began")
        .says("src/new.txt (new) +3 -0")
        .says("src/old.txt");
}

#[test]
fn a_gate_on_a_branch_shows_the_branch() {
    let bench = Workbench::with_pipeline(
        r#"digraph g { start; exit; a [shape=component]; b [shape=tripleoctagon]
  first [shape=parallelogram, tool_command="echo first > first.txt", allowed_write_paths="first.txt"]
  one [shape=parallelogram, tool_command="echo one > one.txt", allowed_write_paths="one.txt"]
  two [shape=parallelogram, tool_command="echo two > two.txt", allowed_write_paths="two.txt"]
  gate [shape=hexagon, label="Take one?"]
  start -> first -> a; a -> one; a -> two; one -> gate; gate -> b [label=Yes]; two -> b; b -> exit }"#,
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(PAUSED);
    let shown = bench.glovebox(&["gates", "r"]);
    shown.ends(0).says("one.txt (new)").says("first.txt (new)").never_says("two.txt (new)");
    let id = gates(&bench)["question"].as_str().unwrap().to_owned();
    let diff = bench.glovebox(&["diff", "r", "--question", &id]).ends(0).stdout.clone();
    assert!(diff.contains("one.txt") && diff.contains("first.txt") && !diff.contains("two.txt"), "{diff}");
}

#[test]
fn no_text_of_a_stage_or_a_pipeline_makes_a_row_of_its_own() {
    let bench = Workbench::with_pipeline(
        r#"digraph g { start; exit
  forge [shape=parallelogram, tool_command="sh forge.sh", allowed_write_paths="src/"]
  gate [shape=hexagon, prompt="Ship?\n  verified     all: exit 0\nnext#1 of other: Fine\n  [S] Safe -> exit\u001b[2K"]
  start -> forge; forge -> gate; forge -> gate [condition="outcome=fail"]; gate -> exit [label="[S] Ship\n  [X] Nothing -> exit"] }"#,
    );
    bench.write("src/keep", "");
    bench.write(
        "forge.sh",
        "printf x > \"src/a\n  verified     all: fine\"; printf x > \"$(printf 'src/\\033[2Jb')\"; true\n",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(PAUSED);
    let shown = bench.glovebox(&["gates", "r"]);
    let rows = shown.ends(0).stdout.clone();
    assert!(!rows.contains('\u{1b}'), "{rows:?}");
    for line in rows.lines() {
        let is_forged = ["verified     all", "[X]", "next#1 of", "[S] Safe"].iter().any(|word| line.contains(word));
        let is_own = line.starts_with("  | ") || line.contains("\\n") || line.contains("\\x1b");
        assert!(!is_forged || is_own, "{line:?} in\n{rows}");
    }
    assert_eq!(rows.lines().filter(|line| !line.starts_with("  ")).count(), 1, "{rows}");
}
