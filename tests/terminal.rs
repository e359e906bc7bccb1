//! What glovebox does for people at a terminal: help, completions, man pages.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

mod workbench;

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::process::{Command, Stdio};
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

/// A pseudo terminal of this size, and the end that a program gets.
fn terminal(rows: u16, columns: u16) -> (File, Stdio, Stdio) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&main).unwrap();
    unlockpt(&main).unwrap();
    let size = rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&main, size).unwrap();
    let name = ptsname(&main, Vec::new()).unwrap();
    let program = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (File::from(main), Stdio::from(program.try_clone().unwrap()), Stdio::from(program))
}

/// What a command writes to a terminal of this size.
fn on_terminal(mut command: Command, rows: u16, columns: u16) -> String {
    let (mut main, stdout, stderr) = terminal(rows, columns);
    let mut child = command.env("TERM", "xterm").stdout(stdout).stderr(stderr).spawn().unwrap();
    drop(command);
    let reader = std::thread::spawn(move || {
        let (mut text, mut part) = (Vec::new(), [0; 4096]);
        // The end of a terminal is an error.
        while let Ok(count @ 1..) = main.read(&mut part) {
            text.extend_from_slice(&part[..count]);
        }
        String::from_utf8_lossy(&text).replace("\r\n", "\n")
    });
    child.wait().unwrap();
    reader.join().unwrap()
}

#[test]
fn logs_print_every_byte_into_a_pipe_and_escape_on_a_terminal() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
         t [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"seq 100; printf 'a\\\\033[2Jb' >&2\"]\n\
         v [shape=octagon, allowed_write_paths=\"\", command=\"echo checked\"]\n start -> t -> v -> done }",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    bench.glovebox(&["show", "r", "t"]).ends(0).says("glovebox logs latest t --visit 1").never_says("| 80\n");
    let numbers: String = (1..=100).map(|number| format!("{number}\n")).collect();
    let answer = bench.glovebox(&["logs", "r", "t", "--stdout"]);
    assert_eq!(answer.ends(0).stdout, numbers);
    let file = answer.stderr.rsplit(": ").next().unwrap().trim();
    assert_eq!(std::fs::read_to_string(file).unwrap(), numbers, "the line names the file");
    assert_eq!(bench.glovebox(&["logs", "r", "t", "--stderr", "--visit", "1"]).ends(0).stdout, "a\u{1b}[2Jb");
    assert_eq!(bench.glovebox(&["logs", "r", "t"]).ends(0).stdout.len(), numbers.len() + 6);
    bench.glovebox(&["logs", "r", "v", "--follow"]).ends(0).says("checked");
    bench.glovebox(&["logs", "r", "t", "--visit", "2"]).ends(2).says("`t` has 1 visit");
    bench.glovebox(&["logs", "r", "nothing"]).ends(2).says("no finished visit of a node `nothing`");
    bench.glovebox(&["logs", "r", "start"]).ends(0).says("kept no output");
    let shown = on_terminal(bench.command(&["logs", "r", "t", "--stderr"]), 24, 80);
    assert!(shown.contains("a\\x1b[2Jb\n") && !shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn logs_follow_a_run_to_its_end() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
         one [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"echo first\"]\n\
         two [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"sleep 2; echo second\"]\n\
         start -> one -> two -> done }",
    );
    let run = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
    let journal = bench.run_folder("r").join("progress.ndjson");
    while !std::fs::read_to_string(&journal).unwrap_or_default().contains("stage.started") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let followed = bench.glovebox(&["logs", "r", "two", "--follow"]);
    assert_eq!(followed.ends(0).stdout, "second\n");
    bench.glovebox(&["show", "r"]).ends(0).says("success");
    workbench::Answer::from_child(run).ends(0);
}

#[test]
fn check_fits_the_terminal() {
    let bench = Workbench::with_pipeline(
        &LINEAR.replace("[shape=box,", &format!("[label=\"{}\", shape=blob,", "x".repeat(150))),
    );
    let shown = on_terminal(bench.command(&["check", "pipeline.dot"]), 24, 60);
    let plain = without_colours(&shown);
    let lines: Vec<&str> = plain.lines().collect();
    let marks = lines.iter().position(|line| line.contains("^^^^")).unwrap();
    assert!(lines[marks - 1].chars().count() <= 60 && lines[marks - 1].contains("blob"), "{plain}");
    assert_eq!(lines[marks].find("^^^^"), lines[marks - 1].find("blob"), "{plain}");
}

/// The text without `ESC [ … m`.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or(part, |(_, rest)| rest))
}
