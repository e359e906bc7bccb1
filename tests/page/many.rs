//! Many runs and many records: lists of which only the visible rows exist.

use super::browser::Browser;
use super::{ANNA, ENTER, signed_in};
use crate::serve::client::Served;
use crate::workbench::Workbench;
use serde_json::json;

const END: &str = "\u{e010}";
const RUNS: usize = 1_000;
/// Maximum number of rows of a list that exist at a time.
const ROWS_MAX: u64 = 100;

fn rows(browser: &Browser) -> u64 {
    browser.run("return document.querySelectorAll('.list .item').length").as_u64().unwrap()
}

/// Scrolls a list from its beginning to its end in steps of one frame. Returns the largest number of rows that existed, and
/// the longest time between two frames in milliseconds.
fn scrolled(browser: &Browser) -> (u64, f64) {
    let found = browser.run(
        "return new Promise((resume) => {
           const list = document.querySelector('.list');
           let [step, most, longest, before] = [0, 0, 0, performance.now()];
           const next = (now) => {
             most = Math.max(most, list.querySelectorAll('.item').length);
             longest = Math.max(longest, now - before);
             before = now;
             if (step > 120) return resume([most, longest]);
             list.scrollTop = (list.scrollHeight - list.clientHeight) * step / 120;
             step += 1;
             requestAnimationFrame(next);
           };
           requestAnimationFrame(next);
         })",
    );
    (found[0].as_u64().unwrap(), found[1].as_f64().unwrap())
}

/// Makes runs of the pipeline `many`, and three of `seldom` among the oldest.
fn many_runs(bench: &Workbench) {
    bench.write("glovebox.toml", &format!("[run]\nkeep_runs = {RUNS}\n"));
    for name in ["many", "seldom"] {
        bench.write(
            &format!("{name}.dot"),
            &format!("digraph {name} {{ start [shape=Mdiamond]; done [shape=Msquare]; start -> done }}"),
        );
    }
    let run = |number: usize| {
        let file = if (5..8).contains(&number) { "seldom.dot" } else { "many.dot" };
        bench.glovebox(&["run", file, "--run-id", &format!("r{number}"), "--quiet"]).ends(0);
    };
    // The first run makes the key and the folder, which the others then find.
    (0..10).for_each(run);
    std::thread::scope(|scope| {
        for part in 0..4 {
            scope.spawn(move || (10 + part..RUNS).step_by(4).for_each(run));
        }
    });
}

#[test]
fn a_thousand_runs_are_scrolled_and_filtered_by_keys() {
    let Some(browser) = Browser::start("a thousand runs on the page", 1280) else { return };
    let bench = Workbench::new();
    many_runs(&bench);
    let served = Served::with(&bench, &[ANNA]);
    signed_in(&browser, &served);
    browser.wait("document.querySelector('.list .item')");
    browser.keys("j");
    // Each page of 100 runs comes when the end of the one before is near.
    for page in 1..=RUNS / 100 {
        let rows = format!("[...document.querySelectorAll('.item')].some((one) => one.ariaSetSize >= {})", page * 100);
        browser.wait(&rows);
        browser.keys(END);
    }
    browser.wait("[...document.querySelectorAll('.run-id')].some((one) => one.innerText === 'r0')");
    assert!(rows(&browser) < ROWS_MAX, "{}", rows(&browser));
    assert_eq!(browser.run("return document.querySelector('.item').ariaSetSize"), RUNS.to_string());
    let (most, _) = scrolled(&browser);
    assert!(most < ROWS_MAX, "{most}");
    // The filter asks the server, so that old runs are found.
    browser.keys("/");
    browser.keys("seldom");
    browser.keys(ENTER);
    browser.wait("location.hash === '#/runs?q=seldom' && document.querySelectorAll('.list .item').length === 3");
    let found = browser.run("return [...document.querySelectorAll('.run-id')].map((one) => one.innerText).toSorted()");
    assert_eq!(found, json!(["r5", "r6", "r7"]));
    browser.run("document.activeElement.blur()");
    browser.keys("j");
    browser.keys("j");
    browser.keys(ENTER);
    browser.wait("location.hash === '#/run/r6' && document.getElementById('proof')");
    browser.is_quiet();
}

/// Only the rows that can be seen exist, and any record is reached at once.
#[test]
fn twenty_thousand_records_scroll() {
    let bench = Workbench::with_pipeline(
        "digraph g { graph [max_steps=10000]; start [shape=Mdiamond]; done [shape=Msquare]; a [shape=diamond]; b [shape=diamond]
  start -> a; a -> b [condition=\"outcome=success\"]; b -> a [condition=\"outcome=success\"]; a -> done [condition=\"outcome=fail\"] }",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(5);
    let served = Served::with(&bench, &[ANNA]);
    let Some(browser) = Browser::start("twenty thousand records on the page", 1280) else { return };
    signed_in(&browser, &served);
    browser.go("#/run/r/records");
    browser.sees("run.started");
    assert!(rows(&browser) < ROWS_MAX, "{}", rows(&browser));
    browser.run("document.querySelector('.list').focus()");
    browser.keys(END);
    browser.sees("run.finished");
    browser.sees("#20003");
    assert!(rows(&browser) < ROWS_MAX, "{}", rows(&browser));
    browser.go("#/run/r/records/12345");
    browser.sees("Record #12345");
    browser.sees("#12346");
    // The tab stays usable on a machine that is busy with other tests.
    let (most, longest) = scrolled(&browser);
    assert!(most < ROWS_MAX, "{most}");
    assert!(longest < 5000.0, "{longest} ms between two frames");
    browser.sees("run.finished");
    browser.go("#/run/r");
    browser.sees("20,003 records");
    browser.is_quiet();
}
