//! What glovebox does for people at a terminal: help, completions, man pages.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

mod workbench;

use std::process::Command;
use workbench::{LINEAR, Workbench, root};

#[test]
fn help_has_topics_and_commands() {
    let bench = Workbench::new();
    let codes = bench.glovebox(&["help", "exit-codes"]);
    codes.ends(0);
    let page = std::fs::read_to_string(root().join("docs/exit-codes.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Code"));
    for row in rows {
        let (code, name) = row.trim_start_matches("| ").split_once(" | ").unwrap();
        let name = name.split_once(" | ").unwrap().0;
        let shown = codes.stdout.lines().any(|line| line.starts_with(code) && line.contains(name));
        assert!(shown, "{code} {name}: {}", codes.stdout);
    }
    assert!(!codes.stdout.contains("|"), "a table for a terminal has no bars: {}", codes.stdout);
    assert!(codes.stdout.lines().all(|line| line.chars().count() <= 100), "{}", codes.stdout);
    bench.glovebox(&["help", "environment"]).ends(0).says("GLOVEBOX_LOG");
    bench.glovebox(&["help", "plugin", "lock"]).ends(0).says("Usage: glovebox plugin lock");
    bench.glovebox(&["help"]).ends(0).says("Usage: glovebox").says("glovebox help exit-codes");
    bench.glovebox(&["help", "exit-code"]).ends(2).says("did you mean `glovebox help exit-codes`?");
    bench.glovebox(&["help", "plugin", "nothing"]).ends(2).says("no command or topic `plugin nothing`");
}

#[test]
fn completions_know_the_commands_and_flags_and_bash_reads_them() {
    let bench = Workbench::with_pipeline(LINEAR);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = bench.glovebox(&["completions", shell]);
        script.ends(0);
        assert!(script.stdout.contains("dangerously-no-sandbox"), "{shell}");
        assert!(!script.stdout.contains("compile-component"), "{shell} shows a hidden command");
    }
    bench.glovebox(&["completions", "cmd"]).ends(2).says("bash");
    let script = bench.glovebox(&["completions", "bash"]).stdout;
    bench.write("completions.bash", &script);
    let complete = "source completions.bash; COMP_WORDS=(glovebox hold); COMP_CWORD=1; \
                    _glovebox glovebox hold glovebox; echo \"${COMPREPLY[@]}\"";
    let answered = Command::new("bash").current_dir(bench.project()).args(["-c", complete]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&answered.stdout).trim(), "holdout", "{answered:?}");
}

#[test]
fn man_pages_cover_every_command() {
    let bench = Workbench::new();
    bench.glovebox(&["man", "pages"]).ends(0).says("man -l pages/glovebox.1");
    for page in ["glovebox.1", "glovebox-run.1", "glovebox-plugin-lock.1"] {
        assert!(bench.read(&format!("pages/{page}")).contains(".TH"), "{page}");
    }
    assert!(bench.read("pages/glovebox-run.1").contains("max\\-wall\\-time"));
    assert!(!bench.has("pages/glovebox-compile-component.1"), "a hidden command has no page");
    bench.write("file", "");
    bench.glovebox(&["man", "file/below"]).ends(2).says("write man pages to `file/below`");
}
