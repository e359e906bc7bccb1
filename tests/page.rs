//! The page of `glovebox serve` in Chromium: runs that go on, gates, hostile projects, keys, narrow screens.
//!
//! The runs are real and the server is the real binary. Without a browser the tests print `not run:`.

mod browser;
mod changes;
mod many;
mod running;

use crate::serve::client::Served;
use crate::workbench::{Workbench, glovebox_in, root};
use browser::Browser;
use glovebox_serve::right::Right;
use serde_json::{Value, json};

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const ANNA: (&str, &[Right]) = ("anna", &[Right::View, Right::Start, Right::Operate]);

const SLOW: &str = "digraph slow { start [shape=Mdiamond]; done [shape=Msquare]
  first [shape=parallelogram, tool_command=\"sleep SECONDS\", allowed_write_paths=\"\"]
  second [shape=parallelogram, tool_command=\"echo written > out.txt\", allowed_write_paths=\"out.txt\"]
  start -> first -> second -> done }
";

const GATE: &str = "digraph release { start; exit
  make [shape=parallelogram, tool_command=\"echo one > src/new.txt\", allowed_write_paths=\"src/\"]
  gate [shape=hexagon, label=\"Ship this?\"]
  ship [shape=parallelogram, tool_command=\"echo shipped > out.txt\", allowed_write_paths=\"out.txt\"]
  fix  [shape=parallelogram, tool_command=\"echo fixed\", allowed_write_paths=\"\"]
  start -> make -> gate
  gate -> ship [label=\"[S] Ship it\"]
  gate -> fix  [label=\"[F] Fix first\"]
  ship -> exit
  fix  -> exit }
";

/// What each screen of a run is called in an address.
const PARTS: [&str; 7] = ["", "/stage", "/evidence", "/changes", "/gates", "/holdouts", "/records"];

fn slow(seconds: &str) -> Workbench {
    Workbench::with_pipeline(&SLOW.replace("SECONDS", seconds))
}

/// Opens the page with a token that the server accepts also after it was started again.
fn signed_in(browser: &Browser, served: &Served) {
    browser.open(&format!("http://{}/", served.host));
    browser.wait("document.getElementById('token')");
    browser.run("document.getElementById('token').value = 'anna'");
    browser.press("Use this token");
    browser.wait("document.querySelector('h1')?.innerText === 'Runs'");
}

fn proof(browser: &Browser) -> String {
    browser.run("return document.getElementById('proof').innerText").as_str().unwrap().to_owned()
}

/// Starts a run on the page with a plan that changes while a person reads it, and follows it.
#[test]
fn a_run_is_started_as_it_was_seen_and_followed_to_its_end() {
    let bench = slow("2");
    let served = Served::start(&bench);
    let Some(browser) = Browser::start("a run is followed on the page", 1280) else { return };
    browser.open(&served.link);
    browser.sees("No runs yet");
    assert!(!browser.run("return location.href").as_str().unwrap().contains("code"), "the code is not in the address");
    browser.go("#/new");
    browser.press("Check and plan");
    browser.wait("document.getElementById('start')?.disabled");
    bench.write("pipeline.dot", &SLOW.replace("SECONDS", "2").replace("\"out.txt\"", "\"out.txt,src/\""));
    browser.run("document.getElementById('seen').click()");
    browser.press("Start this plan");
    browser.wait("document.getElementById('difference')?.innerText.includes('src/')");
    assert_eq!(served.get("/runs").json()["runs"], json!([]), "nothing was started");
    browser.run("document.getElementById('seen').click()");
    browser.press("Start this plan");
    browser.wait("location.hash.startsWith('#/run/')");
    browser.wait("document.querySelector('#graph .running')");
    browser.run("window.isSame = true");
    browser.wait("document.querySelector('#main .state')?.innerText === '✓ ok'");
    browser.sees("not running");
    assert_eq!(browser.run("return window.isSame"), true, "the page was not loaded again");
    assert!(proof(&browser).contains("proved 2") && proof(&browser).contains("claimed 0"), "{}", proof(&browser));
    browser.is_quiet();
}

#[test]
fn a_gate_is_answered_by_keys_alone() {
    let bench = Workbench::with_pipeline(GATE);
    bench.write("src/old.txt", "old\n");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(10);
    let served = Served::with(&bench, &[ANNA]);
    let Some(browser) = Browser::start("a gate is answered by keys", 1280) else { return };
    signed_in(&browser, &served);
    browser.sees("Ship this?");
    browser.keys("a");
    browser.sees("[S] Ship it");
    // What an answer allows is on the screen before it is given.
    let shown = browser.text();
    for line in ["src/new.txt (new) +1 -0", "runs ship; then the run can end", "may write out.txt", "answering with"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    browser.keys("a");
    browser.keys(ENTER);
    assert_eq!(served.get("/runs/r/gates").json()["gates"].as_array().unwrap().len(), 1, "neither key answers");
    let focused = || browser.run("return document.activeElement.innerText").as_str().unwrap_or_default().to_owned();
    for _ in 0..20 {
        if focused().contains("Fix first") {
            break;
        }
        browser.keys(TAB);
    }
    assert_eq!(focused(), "[F] Fix first");
    browser.keys(ENTER);
    browser.wait("document.querySelector('#main .state')?.innerText === '✓ ok'");
    let answered = served.follow("/runs/r/events?kind=question.answered", None);
    let answered: Value = serde_json::from_str(&answered[0].data).unwrap();
    let of = |name: &str| answered["event"][name].as_str().unwrap().to_owned();
    assert_eq!((of("how"), of("by"), of("value")), ("http".into(), "anna".into(), "F".into()));
    browser.is_quiet();
}

#[test]
fn a_run_is_followed_while_the_tab_is_shown_and_canceled() {
    let bench = slow("60");
    let Some(browser) = Browser::start("a run is canceled on the page", 1280) else { return };
    let mut run = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
    let served = Served::with(&bench, &[ANNA]);
    signed_in(&browser, &served);
    browser.go("#/run/r");
    browser.sees("live #");
    // A stream that ended is in this list, one that is open is not.
    let ended = "performance.getEntriesByType('resource').filter((one) => one.name.endsWith('/runs/r/events')).length";
    assert_eq!(browser.run(&format!("return {ended}")), 0);
    browser.hide_and_show(|| std::thread::sleep(std::time::Duration::from_millis(300)));
    browser.wait(&format!("{ended} === 1"));
    browser.sees("live #");
    browser.press("Cancel");
    browser.press("Cancel for good");
    browser.wait("document.querySelector('#main .state')?.innerText === '✕ failed'");
    run.wait().unwrap();
    assert_eq!(served.get("/runs/r").json()["failure"]["class"], "canceled");
    browser.is_quiet();
}

/// The cause comes first, with what the command printed, and an attempt that a kill left stays in the picture.
#[test]
fn a_failure_has_its_output_and_a_left_attempt_its_bar() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]
  check [shape=parallelogram, tool_command=\"sleep 2; echo the cause is here >&2; exit 3\", allowed_write_paths=\"\"]
  start -> check; check -> done [condition=\"outcome=success\"] }",
    );
    let mut run = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
    let served = Served::with(&bench, &[ANNA]);
    while !served.get("/runs/r/records").body.contains("stage.started") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    let resumed = bench.glovebox(&["resume", "r"]);
    assert_ne!(resumed.code, 0, "{}", resumed.stdout);
    let Some(browser) = Browser::start("a failure on the page", 1280) else { return };
    signed_in(&browser, &served);
    browser.wait("document.querySelector('.list .item')");
    browser.keys(".");
    browser.keys(ENTER);
    browser.sees("the cause is here");
    let bars =
        "return [...document.querySelectorAll('a.bar')].map((bar) => bar.getAttribute('aria-label').split(', ')[2])";
    assert_eq!(browser.run(bars), json!(["left by a resume", "failed: tool_exit_code_3"]));
    browser.is_quiet();
}

/// The witness is a record: what the page shows at the end was written while the server was not there.
#[test]
fn the_page_goes_on_after_a_reload_and_with_a_new_server() {
    let bench = slow("6");
    let Some(browser) = Browser::start("the page survives its server", 1280) else { return };
    let mut run = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
    let served = Served::with(&bench, &[ANNA]);
    signed_in(&browser, &served);
    browser.go("#/run/r");
    browser.sees("live #");
    browser.reload();
    browser.sees("live #");
    assert_eq!(browser.run("return location.hash"), "#/run/r");
    browser.run("window.isSame = true");
    let host = served.host.clone();
    served.kill();
    browser.sees("behind");
    run.wait().unwrap();
    let served = Served::again(&bench, &host);
    browser.wait("document.querySelector('#main .state')?.innerText === '✓ ok'");
    assert_eq!(browser.run("return window.isSame"), true, "the page was not loaded again");
    let records = served.get("/runs/r").json()["journal"]["records"].clone();
    browser.sees(&format!("{records} records"));
}

/// Text of a pipeline, of files and of stages that would do something if the page took it for markup.
#[test]
fn a_hostile_project_is_only_text() {
    let hostile = "<img src=x onerror=alert(1)></script><script>alert(2)</script>";
    let label = format!("{hostile}\u{202e}txt.exe");
    let bench = Workbench::with_pipeline(&format!(
        "digraph \"a<b>\" {{ graph [goal=\"{hostile}\"]; start [shape=Mdiamond]; done [shape=Msquare]
  write [shape=parallelogram, label=\"{label}\", tool_command=\"sh write.sh\", allowed_write_paths=\"./\"]
  gate [shape=hexagon, label=\"{label}\"]
  start -> write -> gate
  gate -> done [label=\"[Y] {hostile}\"]
  gate -> write [label=\"[N] no\"] }}
"
    ));
    bench.write(
        "write.sh",
        &format!(
            "cat message.txt > '<img src=x onerror=alert(3)>.txt'
cat message.txt; printf '\\033]0;owned\\007\\033[2J\\342\\200\\256gnp.exe\\n'
head -c 1000000 /dev/zero | tr '\\0' x; echo; echo '{hostile}' >&2\n"
        ),
    );
    bench
        .write("message.txt", &format!("{hostile}\n\u{202e}right to left\u{202c}\n<style>*{{display:none}}</style>\n"));
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(10);
    let served = Served::with(&bench, &[ANNA]);
    let Some(browser) = Browser::start("a hostile project on the page", 1280) else { return };
    signed_in(&browser, &served);
    browser.sees(hostile);
    for part in PARTS {
        browser.go(&format!("#/run/r{part}"));
        browser.wait("!document.querySelector('#main').innerText.includes('loading')");
    }
    browser.go("#/run/r/gates");
    browser.sees(&format!("{hostile}\\u{{202e}}txt.exe"));
    browser.sees(&format!("[Y] {hostile}"));
    browser.press("show the changes");
    browser.press("show as text");
    browser.sees(&format!("{hostile}\n\\u{{202e}}right to left\\u{{202c}}\n<style>*{{display:none}}</style>"));
    browser.sees("<img src=x onerror=alert(3)>.txt");
    browser.go("#/run/r/stage/write/output");
    browser.sees("\\x1b]0;owned\\x07\\x1b[2J\\u{202e}gnp.exe");
    browser.press("show all of 976.7 KiB");
    browser.wait("[...document.querySelectorAll('pre')].some((one) => /x{1000000}/.test(one.textContent))");
    browser.go("#/run/r/records/6");
    browser.sees("Record #6");
    let made =
        browser.run("return document.querySelectorAll('#main img, #main script, #main style, #main iframe').length");
    assert_eq!(made, 0, "no element was made of text");
    browser.is_quiet();
    // The witness: this browser does refuse markup, and does report it.
    let set = "try { document.body.innerHTML = '<b>x</b>'; return 'set' } catch (error) { return error.name }";
    assert_eq!(browser.run(set), "TypeError");
    assert!(browser.log().iter().any(|line| line.contains("TrustedHTML")));
}

/// Each screen at 1280 and 360 pixels: nothing is wider than the screen, everything that can be used has a name, text has
/// enough contrast in both themes, and state is never colour alone.
#[test]
fn every_screen_can_be_used_narrow_dark_and_without_colours() {
    let bench = Workbench::with_pipeline(GATE);
    bench.write("src/old.txt", "old\n");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(10);
    let served = Served::with(&bench, &[ANNA]);
    let Some(browser) = Browser::start("every screen of the page", 1280) else { return };
    signed_in(&browser, &served);
    let places: Vec<String> = ["#/".to_owned(), "#/new".to_owned()]
        .into_iter()
        .chain(PARTS.iter().map(|part| format!("#/run/r{part}")))
        .chain(["", "/conversation", "/output", "/attempts"].map(|part| format!("#/run/r/stage/make{part}")))
        .collect();
    for place in &places {
        browser.go(place);
        browser.wait("document.querySelector('#main h1, #main h2') && !document.querySelector('#main').innerText.includes('loading')");
        is_usable(&browser, place);
    }
    browser.prefer(&[("forced-colors", "active")]);
    browser.go("#/run/r");
    browser.wait("document.querySelector('#proof')");
    browser.is_quiet();
}

/// Checks the screen in two themes, on a desk, on a phone, and at 400 %.
#[track_caller]
fn is_usable(browser: &Browser, place: &str) {
    for (width, scheme) in [(1280, "light"), (360, "dark"), (320, "light")] {
        browser.screen(width, 900);
        browser.prefer(&[("prefers-color-scheme", scheme)]);
        let audit = browser.run(include_str!("page/audit.js"));
        assert_eq!(audit, json!([]), "{place} at {width}, {scheme}");
    }
    browser.screen(1280, 900);
}

#[test]
fn keys_lead_to_every_part_of_a_run() {
    let bench = slow("0");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    let served = Served::with(&bench, &[ANNA]);
    let Some(browser) = Browser::start("keys of the page", 1280) else { return };
    signed_in(&browser, &served);
    browser.wait("document.querySelector('.list .item')");
    browser.keys("j");
    browser.keys(ENTER);
    browser.wait("location.hash === '#/run/r' && document.getElementById('graph')");
    for (key, part) in ["1", "2", "3", "4", "5", "6", "7"].into_iter().zip(PARTS) {
        browser.keys(key);
        browser.wait(&format!("location.hash === '#/run/r{part}'"));
        browser.wait("document.querySelectorAll('.tabs a[aria-current]').length > 0");
    }
    browser.keys("g");
    browser.wait("location.hash === '#/run/r' && document.getElementById('graph')");
    browser.keys("g");
    browser.keys("\u{e015}");
    browser.keys("\u{e015}");
    browser.wait("document.querySelector('#graph [aria-selected=true]')?.getAttribute('aria-label').startsWith('second: proved')");
    browser.keys(ENTER);
    browser.wait("location.hash === '#/run/r/stage/second'");
    browser.sees("out.txt");
    browser.keys("e");
    browser.wait("location.hash === '#/run/r/evidence'");
    browser.keys("?");
    browser.wait("document.getElementById('help').open");
    browser.keys(ENTER);
    browser.wait("!document.getElementById('help').open");
    // The first stop is the link that skips the head; then the head from left to right.
    browser.reload();
    browser.wait("document.getElementById('proof')");
    let mut stops = Vec::new();
    for _ in 0..4 {
        browser.keys(TAB);
        stops.push(browser.run("return document.activeElement.innerText").as_str().unwrap_or_default().to_owned());
    }
    assert_eq!(stops[..3], ["Skip to the content", "Runs", "New run"]);
    browser.is_quiet();
}

#[test]
fn what_is_not_there_and_what_is_not_allowed_is_said() {
    let bench = slow("0");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    let served = Served::with(&bench, &[("anna", &[Right::View])]);
    let Some(browser) = Browser::start("states of the page", 1280) else { return };
    browser.open(&format!("http://{}/#code=00", served.host));
    browser.sees("This page needs a session");
    browser.run("document.getElementById('token').value = 'wrong'");
    browser.press("Use this token");
    browser.sees("this token is not known");
    signed_in(&browser, &served);
    browser.go("#/run/gone");
    browser.sees("This run is not there");
    browser.go("#/run/r/changes");
    browser.press("Apply…");
    browser.press("Write 1 file to the project");
    browser.sees("does not have the right `apply`");
    assert!(!bench.has("out.txt"));
    browser.go("#/run/r/holdouts");
    browser.sees("No hold-outs were sealed");
    // A run that was made with another key, as one of another machine.
    let mut foreign = glovebox_in(&bench.project());
    foreign.env("GLOVEBOX_STATE_DIR", bench.outside().join("state"));
    assert!(foreign.args(["run", "pipeline.dot", "--run-id", "f"]).output().unwrap().status.success());
    browser.go("#/run/f");
    browser.sees("another user’s run");
    assert_eq!(browser.run("return [...document.querySelectorAll('#main button')].map((one) => one.innerText).filter((text) => text !== 'cmd')"), json!([]));
    browser.go("#/run/r/gates");
    browser.sees("glovebox gates r");
    for file in ["journal.sqlite", "journal.sqlite-wal"] {
        std::fs::write(bench.run_folder("r").join(file), "not a journal").unwrap();
    }
    browser.go("#/");
    browser.sees("unreadable");
}

#[test]
fn output_beside_holdouts_needs_its_right() {
    let secret = "forty-two apples in a basket";
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]
  judge [shape=parallelogram, tool_command=\"cat scripts/scenarios/a.sh\", allowed_write_paths=\"\", holdout_reader=true]
  start -> judge -> done }",
    );
    bench.write("scripts/scenarios/a.sh", &format!("#!/bin/sh\necho '{secret}'\n"));
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    let served = Served::with(&bench, &[ANNA]);
    let Some(browser) = Browser::start("output beside hold-outs on the page", 1280) else { return };
    signed_in(&browser, &served);
    browser.go("#/run/r/stage/judge/output");
    browser.sees("does not have the right `withheld`");
    browser.go("#/run/r/holdouts");
    browser.sees("1 verdict");
    for place in ["/evidence", "/records/6", "/stage/judge/conversation", "/stage/judge"] {
        browser.go(&format!("#/run/r{place}"));
        browser.wait("!document.querySelector('#main').innerText.includes('loading')");
        browser.run("document.querySelectorAll('details').forEach((one) => (one.open = true))");
        assert!(!browser.text().contains("forty-two"), "{place}");
    }
}

/// Each screen with the runs of a small project. With `GLOVEBOX_PAGE_PICTURES`, as `cargo xtask page pictures` sets it, pictures
/// of them are written to `docs/pictures/page`.
#[test]
fn each_screen_shows_what_it_is_for() {
    let bench = Workbench::copy_of("tests/page/shop");
    bench.glovebox(&["run", "fix.dot", "--script", "script.toml", "--run-id", "fix"]).ends(0);
    bench.glovebox(&["run", "broken.dot", "--run-id", "broken"]).ends(1);
    bench.glovebox(&["run", "release.dot", "--run-id", "release"]).ends(10);
    let served = Served::start(&bench);
    let Some(browser) = Browser::start("each screen of the page", 1280) else { return };
    browser.open(&served.link);
    browser.wait("document.getElementById('who')");
    for (name, place, press, shows) in [
        ("runs", "#/", "", "Ship this?"),
        ("run", "#/run/fix", "", "Last steps"),
        ("stage", "#/run/fix/stage/implement", "", "tests/run.sh"),
        ("failure", "#/run/broken", "", "all of its output"),
        ("evidence", "#/run/fix/evidence", "", "subject not isolated"),
        ("gate", "#/run/release/gates", "", "Ship it"),
        ("changes", "#/run/release/changes", "show the patch of all 2 files", "src/new.txt"),
        ("holdouts", "#/run/fix/holdouts", "", "2 verdicts"),
        ("records", "#/run/fix/records", "", "stage.finished"),
        ("new-run", "#/new", "Check and plan", "Pipeline"),
    ] {
        browser.go(place);
        browser.sees(shows);
        if name == "new-run" {
            browser.run("document.getElementById('file').value = 'release.dot'");
        }
        if !press.is_empty() {
            browser.press(press);
            browser.wait("document.querySelector('#main pre, #start')");
        }
        is_usable(&browser, place);
        if std::env::var_os("GLOVEBOX_PAGE_PICTURES").is_some() {
            pictures(&browser, name);
        }
    }
    browser.is_quiet();
}

/// Writes pictures of a screen in two themes and two widths.
fn pictures(browser: &Browser, name: &str) {
    let folder = root().join("docs/pictures/page");
    std::fs::create_dir_all(&folder).unwrap();
    for (scheme, width, height) in [("light", 1280, 800), ("dark", 1280, 800), ("light", 360, 740), ("dark", 360, 740)]
    {
        browser.screen(width, height);
        browser.prefer(&[("prefers-color-scheme", scheme)]);
        // The height of rows is chosen when the list is made. New elements and new sizes are drawn within this time.
        if name == "runs" {
            browser.reload();
        }
        std::thread::sleep(std::time::Duration::from_millis(700));
        std::fs::write(folder.join(format!("{name}-{scheme}-{width}.png")), browser.picture()).unwrap();
    }
    browser.screen(1280, 800);
}
