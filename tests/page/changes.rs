//! The patch of a run on the screen of its changes: hunks as text, and no more than a browser can show.

use super::browser::Browser;
use super::{ANNA, signed_in};
use crate::serve::client::Served;
use crate::workbench::Workbench;
use serde_json::{Value, json};

const HOSTILE: &str = "<img src=x onerror=alert(1)></script>";

/// Presses the button with this name for programs that read the page aloud.
fn press(browser: &Browser, label: &str) {
    let found = format!("[...document.querySelectorAll('button')].find((one) => one.ariaLabel === {})", json!(label));
    browser.wait(&found);
    browser.run(&format!("{found}.click()"));
}

/// Returns the lines of the patch that is shown below a file.
fn shown(browser: &Browser) -> Value {
    browser.wait("document.querySelector('.shown pre.diff')");
    browser.run("return [...document.querySelectorAll('.shown pre.diff span')].map((one) => one.textContent)")
}

#[test]
fn the_patch_is_text_and_bounded() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]
  write [shape=parallelogram, tool_command=\"sh write.sh\", allowed_write_paths=\"src/\"]
  start -> write -> done }",
    );
    bench.write("src/old.txt", "one\ntwo\nthree\n");
    bench.write("line.txt", &format!("{HOSTILE}\u{1b}[2J\u{202e}\n"));
    bench.write(
        "write.sh",
        "(echo one; cat line.txt; echo three) > src/old.txt
seq 3000 > src/long.txt
printf '\\000\\001\\002' > src/bits
echo x > 'src/say \"hi\" \\ ü.txt'
head -c 100000 /dev/zero | tr '\\0' y > src/wide.txt\n",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    let served = Served::with(&bench, &[ANNA]);
    let Some(browser) = Browser::start("the patch on the page", 1280) else { return };
    signed_in(&browser, &served);
    browser.go("#/run/r/changes");
    press(&browser, "show the patch: src/old.txt");
    let hostile = format!("+{HOSTILE}\\x1b[2J\\u{{202e}}");
    assert_eq!(shown(&browser), json!(["@@ -1,3 +1,3 @@", " one", "-two", hostile, " three"]));
    // Green belongs to receipts.
    let colour = "getComputedStyle(document.querySelector('.diff .added')).backgroundColor";
    let green = "getComputedStyle(document.querySelector('#proof .proved')).backgroundColor";
    assert_eq!(browser.run(&format!("return {colour} !== {green}")), true);
    press(&browser, "show the patch: src/old.txt");
    browser.wait("!document.querySelector('.shown')");
    press(&browser, "show the patch: src/bits");
    browser.sees("A binary file, absent before the run, 3 bytes now");
    press(&browser, "show the patch: src/bits");
    press(&browser, "show the patch: src/say \"hi\" \\ ü.txt");
    assert_eq!(shown(&browser), json!(["new file mode 100644", "@@ -0,0 +1 @@", "+x"]));
    press(&browser, "show the patch: src/say \"hi\" \\ ü.txt");
    press(&browser, "show the patch: src/wide.txt");
    browser.sees("98,001 more characters");
    press(&browser, "show the patch: src/wide.txt");
    press(&browser, "show the patch: src/long.txt");
    assert_eq!(shown(&browser).as_array().unwrap().len(), 2_000);
    browser.sees("Only the beginning is shown, 2,000 lines");
    browser.sees("glovebox diff r -- src/long.txt");
    let whole = bench.glovebox(&["diff", "r", "--", "src/long.txt"]).ends(0).stdout.clone();
    assert!(whole.contains("\n+3000\n"), "the command prints the rest");
    press(&browser, "show the patch: src/long.txt");
    browser.press("show the patch of all 5 files");
    browser.wait("document.querySelector('#main pre.diff')");
    let lines = browser.run("return document.querySelectorAll('#main pre.diff span').length").as_u64().unwrap();
    assert_eq!(lines, 2_000);
    browser.sees("Only the beginning is shown, 2,000 lines");
    assert_eq!(browser.run("return document.querySelectorAll('#main img').length"), 0);
    browser.is_quiet();
}

#[test]
fn what_a_question_asks_about_is_compared_alone() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]
  make [shape=parallelogram, tool_command=\"echo one > src/first.txt\", allowed_write_paths=\"src/\"]
  gate [shape=hexagon, label=\"Ship this?\"]
  fix  [shape=parallelogram, tool_command=\"echo two > src/second.txt\", allowed_write_paths=\"src/\"]
  start -> make -> gate
  gate -> done [label=\"[S] Ship it\"]
  gate -> fix [label=\"[F] Fix first\"]
  fix -> gate }",
    );
    bench.write("src/old.txt", "old\n");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(10);
    let served = Served::with(&bench, &[ANNA]);
    let question =
        |served: &Served| served.get("/runs/r/gates").json()["gates"][0]["question"].as_str().unwrap().to_owned();
    bench.glovebox(&["answer", "r", &question(&served), "F"]).ends(0);
    bench.glovebox(&["resume", "r"]).ends(10);
    let Some(browser) = Browser::start("what a question asks about on the page", 1280) else { return };
    signed_in(&browser, &served);
    browser.go("#/run/r/changes");
    browser.sees("2 changed");
    browser.press(&format!("what {} asks about", question(&served)));
    browser.sees("1 changed");
    press(&browser, "show the patch: src/second.txt");
    assert_eq!(shown(&browser), json!(["new file mode 100644", "@@ -0,0 +1 @@", "+two"]));
    browser.press("since the start");
    browser.sees("2 changed");
    browser.is_quiet();
}
