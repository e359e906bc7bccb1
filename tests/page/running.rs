//! A running stage on the page: its output while it runs, and messages to its agent.

use super::browser::Browser;
use super::{ANNA, ENTER, signed_in};
use crate::providers::{Bench, Turn};
use crate::serve::client::Served;
use crate::workbench::Workbench;
use serde_json::{Value, json};

const SECRET: &str = "a secret wicker basket";

/// Creates a project whose stage `work` prints, waits for the file `go` in the folder that is returned, and prints again.
fn waiting(attributes: &str) -> (Workbench, std::path::PathBuf) {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]
  work [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"sh work.sh\"{attributes}]
  after [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"sleep 600\"]
  start -> work -> after -> done }}"
    ));
    bench.write(
        "work.sh",
        "printf 'first \\033[2J<b>bold</b>\\n'; echo second >&2; [ -e scripts/scenarios ] && cat scripts/scenarios/*
while ! [ -e $FLAGS/go ]; do sleep 0.05; done; echo last\n",
    );
    let flags = bench.outside().join("flags");
    std::fs::create_dir(&flags).unwrap();
    let shown = flags.to_str().unwrap();
    let settings = format!("[sandbox]\nread = [\"{shown}\"]\n[exec]\nenv = {{ FLAGS = \"{shown}\" }}\n");
    bench.write("glovebox.toml", &settings);
    (bench, flags)
}

#[test]
fn the_output_of_a_stage_is_followed_until_it_ends() {
    let (bench, flags) = waiting("");
    let Some(browser) = Browser::start("the output of a running stage on the page", 1280) else { return };
    let mut run = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
    let served = Served::with(&bench, &[ANNA]);
    signed_in(&browser, &served);
    browser.go("#/run/r/stage/work/output");
    browser.wait("document.getElementById('live')?.textContent.includes('second')");
    let text = browser.run("return document.getElementById('live').textContent");
    assert!(text.as_str().unwrap().contains("first \\x1b[2J<b>bold</b>\n— standard error —\nsecond\n"), "{text}");
    // A stream that ended is in this list, one that is open is not.
    let ended =
        "performance.getEntriesByType('resource').filter((one) => one.name.endsWith('/stages/work/output')).length";
    assert_eq!(browser.run(&format!("return {ended}")), 0);
    // What was printed is there again after the tab was hidden, and only once.
    browser.hide_and_show(|| std::thread::sleep(std::time::Duration::from_millis(300)));
    browser.wait(&format!("{ended} === 1 && document.getElementById('live')?.textContent.includes('second')"));
    let firsts = "document.getElementById('live').textContent.split('first').length - 1";
    assert_eq!(browser.run(&format!("return {firsts}")), 1);
    browser.press("Cancel");
    std::fs::write(flags.join("go"), "").unwrap();
    // The run goes on, the stage does not.
    browser.wait("!document.getElementById('live')");
    browser.wait(&format!("{ended} === 2"));
    browser.wait(
        "[...document.querySelectorAll('#main pre')].some((one) => one.textContent.endsWith('bold</b>\\nlast\\n'))",
    );
    // The records since then did not take away what a person was asked.
    assert!(browser.text().contains("Cancel for good"), "{}", browser.text());
    browser.press("Cancel for good");
    run.wait().unwrap();
    browser.is_quiet();
}

#[test]
fn the_output_of_a_stage_with_hold_outs_is_not_followed() {
    let (bench, flags) = waiting(", holdouts=true, scenario_feedback=full");
    bench.write("scripts/scenarios/a.sh", &format!("echo {SECRET}\n"));
    let Some(browser) = Browser::start("a running stage with hold-outs on the page", 1280) else { return };
    let mut run = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
    let served = Served::with(&bench, &[ANNA]);
    signed_in(&browser, &served);
    browser.go("#/run/r/stage/work/output");
    browser.sees("nobody can follow it while it runs");
    std::thread::sleep(std::time::Duration::from_millis(700));
    assert!(!browser.text().contains(SECRET) && !browser.text().contains("second"), "{}", browser.text());
    std::fs::write(flags.join("go"), "").unwrap();
    browser.wait("!document.body.innerText.includes('nobody can follow it')");
    bench.glovebox(&["cancel", "r"]).ends(0);
    run.wait().unwrap();
}

#[test]
fn an_unfinished_answer_is_shown_until_it_is_finished() {
    let pieces = ["I <b>begin</b>\n", "\u{1b}[2J", " and go on", "\nOUTCOME: SUCCESS"];
    let bench = Bench::new(
        "digraph g { start; exit
  look [prompt=\"look\", allowed_write_paths=\"\"]
  after [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"sleep 600\"]
  start -> look -> after -> exit }",
        "anthropic",
        &[Turn::slow(&pieces, 2500), Turn::text("OUTCOME: SUCCESS")],
    );
    let served = Served::with(bench.workbench(), &[ANNA]);
    let Some(browser) = Browser::start("an unfinished answer on the page", 1280) else { return };
    signed_in(&browser, &served);
    let mut run = bench.start_run(1);
    browser.go("#/run/r/stage/look/output");
    browser.wait("document.querySelector('#drafts pre')?.textContent === 'I <b>begin</b>\\n\\\\x1b[2J and go on'");
    assert_eq!(browser.run("return document.querySelector('#drafts b')"), Value::Null);
    assert!(!bench.read_in_run("progress.ndjson").contains("stage.finished"), "the model writes");
    // The stage has ended, and its live output with it.
    browser.wait("!document.querySelector('#drafts pre')");
    bench.glovebox(&["cancel", "r"]).ends(0);
    run.wait().unwrap();
    browser.is_quiet();
}

/// The project has changed since the run began: the page shows what the run was allowed, not what a new run would be.
#[test]
fn the_grants_of_a_stage_are_those_of_its_run() {
    let pipeline = "digraph g { start [shape=Mdiamond]; done [shape=Msquare]
  work [shape=parallelogram, tool_command=\"echo one > kept.txt\", allowed_write_paths=\"kept.txt\"]
  start -> work -> done }";
    let bench = Workbench::with_pipeline(pipeline);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    bench.write("pipeline.dot", &pipeline.replace("\"kept.txt\"", "\"kept.txt,wider/\""));
    let served = Served::with(&bench, &[ANNA]);
    let Some(browser) = Browser::start("the grants of a run on the page", 1280) else { return };
    signed_in(&browser, &served);
    browser.go("#/run/r/stage/work");
    browser.sees("could (grants)");
    let could =
        browser.run("return [...document.querySelectorAll('#main table tr')].map((row) => row.children[1].innerText)");
    let could = could.as_array().unwrap().iter().map(|cell| cell.as_str().unwrap()).collect::<Vec<_>>();
    assert!(could.contains(&"kept.txt"), "{could:?}");
    assert!(could.iter().any(|cell| cell.contains("echo one > kept.txt")), "{could:?}");
    assert!(!browser.text().contains("wider/") && !browser.text().contains("another plan"), "{}", browser.text());
    // The file of the pipeline is not needed for it.
    std::fs::remove_file(bench.project().join("pipeline.dot")).unwrap();
    browser.go("#/run/r/stage/work/attempts");
    browser.go("#/run/r/stage/work");
    browser.sees("echo one > kept.txt");
    browser.is_quiet();
}

/// The witness is what the provider was asked, and the record.
#[test]
fn an_agent_at_work_is_told_something() {
    let write = Turn::tool("write_file", json!({ "path": "src/one.txt", "content": "one" }));
    let turns = [write.clone(), write.after(8000), Turn::text("OUTCOME: SUCCESS")];
    let bench = Bench::new(
        "digraph ship { start [shape=Mdiamond]; exit [shape=Msquare]
  build [prompt=\"Say hello\", allowed_write_paths=\"src/\"]
  start -> build -> exit }",
        "anthropic",
        &turns,
    );
    let served = Served::with(bench.workbench(), &[ANNA]);
    let Some(browser) = Browser::start("an agent is steered on the page", 1280) else { return };
    signed_in(&browser, &served);
    let mut run = bench.start_run(2);
    browser.go("#/run/r/stage/build/output");
    browser.wait("document.getElementById('live')?.textContent.includes('— turn 1: ')");
    browser.go("#/run/r");
    browser.wait("document.getElementById('steer')");
    browser.run("document.getElementById('steer').focus()");
    browser.keys("Zebras say hello");
    browser.keys(ENTER);
    browser.sees("sent to build");
    assert_eq!(browser.run("return document.getElementById('steer').value"), "");
    assert!(run.wait().unwrap().success());
    let asked = bench.requests();
    let told: Vec<bool> = asked.iter().map(|request| request.contains("Zebras say hello")).collect();
    assert_eq!(told, [false, false, true]);
    let steered = served.follow("/runs/r/events?kind=stage.steered", None);
    let steered: Value = serde_json::from_str(&steered[0].data).unwrap();
    assert_eq!((&steered["event"]["by"], &steered["event"]["text"]), (&json!("anna"), &json!("Zebras say hello")));
    browser.is_quiet();
}
