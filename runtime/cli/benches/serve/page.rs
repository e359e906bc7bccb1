//! Measures the page in a headless Chromium: first paint, the screen of a run, a run of 20,000 records.
//!
//! Times are those of the browser's own clock, from the beginning of the navigation. The baseline of each row is its target.

use crate::browser::Browser;
use crate::{Served, command, table};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;

const SAMPLES: usize = 7;
/// Notes the time of the frame that shows the graph of a run, or the first record.
const NOTES: &str = r##"
    window.shownAt = null;
    const look = () => {
        if (document.querySelector("#graph [role=option], .list .item .kind")) requestAnimationFrame(() => (window.shownAt = performance.now()));
        else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);"##;
/// Scrolls a list through its whole length in two seconds. Returns frames per second, the largest number of rows, and frames.
const SCROLLS: &str = "
    return new Promise((resume) => {
        const list = document.querySelector('.list');
        const began = performance.now();
        let [frames, most] = [0, 0];
        const next = (now) => {
            frames += 1;
            most = Math.max(most, list.querySelectorAll('.item').length);
            const part = (now - began) / 2000;
            if (part >= 1) return resume([frames / ((now - began) / 1000), most, frames]);
            list.scrollTop = (list.scrollHeight - list.clientHeight) * part;
            requestAnimationFrame(next);
        };
        requestAnimationFrame(next);
    })";

/// Prints rows about a run with this id, and about a long run that this function makes.
pub(crate) fn measure(project: &Path, run: &str) {
    records(project);
    let served = Served::start(project);
    let Some(browser) = Browser::start("the page in a browser", 1280) else { return };
    browser.open("about:blank");
    let empty = tab_megabytes(browser.driver.id());
    browser.open(&format!("http://{}/", served.host));
    let session = json!({ "token": served.token, "name": "owner", "rights": null }).to_string();
    browser.run(&format!("sessionStorage.setItem('glovebox-token', {})", json!(session)));
    browser.reload();
    browser.sees("Runs");
    browser.wait("document.querySelector('.list .item')");
    let script = json!({ "source": NOTES });
    browser.own("goog/cdp/execute", json!({ "cmd": "Page.addScriptToEvaluateOnNewDocument", "params": script }));
    let (paints, usable) = opened(&browser, &format!("#/run/{run}"));
    let ms = Duration::from_millis;
    table::print("page: first contentful paint", table::median(paints), ms(300), "the target");
    table::print("page: screen of a run usable", table::median(usable), ms(800), "the target");
    let (_, shown) = opened(&browser, "#/run/loop/records");
    table::print("page: 20,000 records open", table::median(shown), ms(1500), "the target");
    let ticks = json!({ "cmd": "Performance.enable", "params": { "timeDomain": "threadTicks" } });
    browser.own("goog/cdp/execute", ticks);
    let before = metric(&browser, "TaskDuration");
    let scrolled: Vec<Value> = (0..SAMPLES).map(|_| browser.run(SCROLLS)).collect();
    let mut frames: Vec<f64> = scrolled.iter().filter_map(|one| one[0].as_f64()).collect();
    frames.sort_by(f64::total_cmp);
    table::against("page: frames while they scroll", frames[frames.len() / 2], 50.0, "frames per s, target: or more");
    let drawn: f64 = scrolled.iter().filter_map(|one| one[2].as_f64()).sum();
    let busy = (metric(&browser, "TaskDuration") - before) * 1000.0 / drawn;
    table::count("page: processor time of the tab for a frame", busy, "ms");
    let rows = scrolled.iter().filter_map(|one| one[1].as_f64()).fold(0.0, f64::max);
    table::count("page: most rows that existed", rows, "rows");
    table::against("page: memory of the tab", tab_megabytes(browser.driver.id()), 200.0, "MiB, target: or less");
    table::count("page: memory of an empty tab", empty, "MiB");
    let heap = metric(&browser, "JSHeapUsedSize") / f64::from(1 << 20);
    table::count("page: memory of its scripts", heap, "MiB of that");
}

/// Loads a place of the page several times. Returns the times of the first paint, and those at which something was shown.
fn opened(browser: &Browser, place: &str) -> (Vec<Duration>, Vec<Duration>) {
    browser.go(place);
    let since = |milliseconds: Value| Duration::from_secs_f64(milliseconds.as_f64().unwrap() / 1000.0);
    let sample = |_| {
        browser.reload();
        browser.wait("window.shownAt");
        let paint = "return performance.getEntriesByName('first-contentful-paint')[0].startTime";
        (since(browser.run(paint)), since(browser.run("return window.shownAt")))
    };
    (0..SAMPLES).map(sample).unzip()
}

/// Returns what the browser counts about the tab: seconds of its main thread, or bytes.
fn metric(browser: &Browser, name: &str) -> f64 {
    let found = browser.own("goog/cdp/execute", json!({ "cmd": "Performance.getMetrics", "params": {} }));
    let metrics = found["metrics"].as_array().unwrap();
    metrics.iter().find(|one| one["name"] == name).and_then(|one| one["value"].as_f64()).unwrap()
}

/// Makes a run of 20,003 records.
fn records(project: &Path) {
    let dot = "digraph g { graph [max_steps=10000]; start [shape=Mdiamond]; done [shape=Msquare]; a [shape=diamond]; b [shape=diamond]
        start -> a; a -> b [condition=\"outcome=success\"]; b -> a [condition=\"outcome=success\"]; a -> done [condition=\"outcome=fail\"] }";
    fs::write(project.join("loop.dot"), dot).unwrap();
    command(project).args(["run", "loop.dot", "--run-id", "loop", "--quiet"]).output().unwrap();
}

/// Returns the resident memory of the largest process below this one that draws pages.
fn tab_megabytes(driver: u32) -> f64 {
    let processes: Vec<(u32, u32, String)> = fs::read_dir("/proc").unwrap().flatten().filter_map(process).collect();
    let mut below = vec![driver];
    let mut largest: f64 = 0.0;
    while let Some(parent) = below.pop() {
        for (id, _, command) in processes.iter().filter(|(_, of, _)| *of == parent) {
            below.push(*id);
            if command.contains("--type=renderer") {
                largest = largest.max(crate::megabytes(*id));
            }
        }
    }
    largest
}

/// Returns the id of a process, the id of its parent, and its command line.
fn process(entry: fs::DirEntry) -> Option<(u32, u32, String)> {
    let id = entry.file_name().to_str()?.parse().ok()?;
    let status = fs::read_to_string(entry.path().join("status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
    Some((id, parent, fs::read_to_string(entry.path().join("cmdline")).ok()?))
}
