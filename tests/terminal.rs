//! The output of glovebox for a person at a terminal: help, completions, man pages, colours, the pager, logs and the
//! live view.

use crate::guests;
use crate::workbench::{self, LINEAR, Workbench, root};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

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
    bench.glovebox(&["rnu"]).ends(2).says("a similar subcommand exists: 'run'");
    bench.glovebox(&["holdout", "stauts"]).ends(2).says("a similar subcommand exists: 'status'");
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

/// The names come from the project: its plugins, and the attributes that they declare.
#[test]
fn bash_completes_plugins_and_their_attributes() {
    let bench = Workbench::new();
    std::fs::write(bench.project().join("bare.wasm"), guests::component("(func $execute)")).unwrap();
    let attributes =
        r#"{"folder":{"type":"path","doc":"Where."},"format":{"type":"string"},"most":{"type":"integer"}}"#;
    bench.write("manifest.json", &format!(r#"{{"name":"acme.look","version":"0.1.0","attributes":{attributes}}}"#));
    bench.glovebox(&["plugin", "embed-manifest", "bare.wasm", "manifest.json", "-o", "look.wasm"]).ends(0);
    bench.write("glovebox.toml", "[plugins.\"acme.look\"]\npath = \"look.wasm\"\n");
    bench.write("completions.bash", &bench.glovebox(&["completions", "bash"]).stdout);
    let complete = |words: &[&str]| {
        let (last, words) = (words.len(), [&[env!("CARGO_BIN_EXE_glovebox")], words].concat());
        let text = format!(
            "source completions.bash; COMP_WORDS=({}); COMP_CWORD={last}; _glovebox_with_names \"${{COMP_WORDS[0]}}\" '{}' '{}'; \
             echo \"${{COMPREPLY[@]}}\"",
            words.iter().map(|word| format!("'{word}' ")).collect::<String>(),
            words[last],
            words[last - 1]
        );
        let answered = Command::new("bash").current_dir(bench.project()).args(["-c", &text]).output().unwrap();
        String::from_utf8_lossy(&answered.stdout).trim().to_owned()
    };
    assert_eq!(complete(&["explain", "acme"]), "acme.look");
    assert_eq!(complete(&["explain", "with-c"]), "with-caches");
    assert_eq!(complete(&["explain", "plugin_attribute_v"]), "plugin_attribute_value");
    assert_eq!(complete(&["explain", "acme.look", ""]), "folder format most");
    assert_eq!(complete(&["explain", "acme.look", "fo"]), "folder format");
    assert_eq!(complete(&["explain", "acme.none", ""]), "");
    assert_eq!(complete(&["hold"]), "holdout");
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

/// Opens a pseudo terminal of this size. Returns the controlling end, and the stdout and stderr for a program.
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

/// Returns what a command writes to a terminal of this size.
fn on_terminal(command: Command, rows: u16, columns: u16) -> String {
    with_user(command, rows, columns, |_, _| {})
}

/// Returns what a command writes to a terminal. `act` types on the keyboard and may signal the process.
fn with_user(mut command: Command, rows: u16, columns: u16, act: impl FnOnce(&mut File, u32)) -> String {
    let (mut main, stdout, stderr) = terminal(rows, columns);
    let mut child = command.env("TERM", "xterm").stdout(stdout).stderr(stderr).spawn().unwrap();
    drop(command);
    let mut keyboard = main.try_clone().unwrap();
    let reader = std::thread::spawn(move || {
        let (mut text, mut part) = (Vec::new(), [0; 4096]);
        // At the end of the output, reading from the terminal fails.
        while let Ok(count @ 1..) = main.read(&mut part) {
            text.extend_from_slice(&part[..count]);
        }
        String::from_utf8_lossy(&text).replace("\r\n", "\n")
    });
    act(&mut keyboard, child.id());
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
    bench.glovebox(&["logs", "r", "t", "--visit", "2"]).ends(2).says("`t` has only 1 visit");
    bench.glovebox(&["logs", "r", "nothing"]).ends(2).says("no finished visit of a node `nothing`");
    bench.glovebox(&["logs", "r", "start"]).ends(0).says("kept no output");
    let all = bench.glovebox(&["logs", "r", "--json"]).ends(0).json_lines();
    let of =
        |line: &serde_json::Value| format!("{} {} {}", line["node"], line["stream"], line["bytes"]).replace('"', "");
    assert_eq!(all.iter().map(of).collect::<Vec<_>>(), ["t stdout 292", "t stderr 6", "v output 38"]);
    assert_eq!((&all[0]["text"], &all[1]["text"]), (&numbers.clone().into(), &"a\u{1b}[2Jb".into()));
    let file = all[1]["file"].as_str().unwrap();
    assert_eq!(std::fs::read(file).unwrap(), b"a\x1b[2Jb");
    assert_eq!(bench.glovebox(&["logs", "r", "t", "--stderr", "--json"]).ends(0).json_lines(), all[1..2]);
    bench.glovebox(&["logs", "r", "--visit", "1"]).ends(2).says("<NODE>");
    bench.glovebox(&["logs", "r"]).ends(0).says("t visit 1").says("v visit 1").says("checked");
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
    let whole = bench.glovebox(&["logs", "r", "-f", "--json"]).ends(0).json_lines();
    let texts: Vec<_> = whole.iter().filter_map(|line| line["text"].as_str()).filter(|text| !text.is_empty()).collect();
    assert_eq!(texts, ["first\n", "second\n"]);
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

/// Returns the text without the sequences `ESC [ … m`.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or(part, |(_, rest)| rest))
}

/// Creates a workbench with a run `r` that changed a file.
fn with_change() -> Workbench {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
         t [shape=parallelogram, allowed_write_paths=\"new.txt\", tool_command=\"printf 'a\\\\033[2Jb\\\\n' > new.txt\"]\n\
         start -> t -> done }",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    bench
}

#[test]
fn colours_are_for_terminals_and_for_those_who_ask() {
    let bench = with_change();
    let commands =
        [&["show", "r"][..], &["show", "r", "t"], &["ls"], &["plan", "pipeline.dot"], &["diff", "r", "--stat"]];
    for words in commands {
        let plain = bench.glovebox(words).ends(0).stdout.clone();
        assert!(!plain.contains('\u{1b}'), "{words:?} into a pipe: {plain}");
        let asked = bench.glovebox(&[words, &["--color", "always"]].concat()).ends(0).stdout.clone();
        assert!(asked.contains("\u{1b}["), "{words:?}: {asked}");
        let same = |text: &str| text.split_whitespace().filter(|word| !word.ends_with("ago")).count();
        assert_eq!(same(&without_colours(&asked)), same(&plain), "{words:?}");
        let shown = on_terminal(bench.command(words), 50, 100);
        assert!(shown.contains("\u{1b}["), "{words:?} on a terminal: {shown}");
        let never = on_terminal(bench.command(&[words, &["--color", "never", "--no-pager"]].concat()), 50, 100);
        assert!(!never.contains('\u{1b}'), "{words:?}: {never}");
        let mut quiet = bench.command(&[words, &["--no-pager"]].concat());
        quiet.env("NO_COLOR", "1");
        assert!(!on_terminal(quiet, 50, 100).contains('\u{1b}'), "{words:?}");
    }
    bench.glovebox(&["ls", "--color", "sometimes"]).ends(2).says("always");
}

#[test]
fn a_patch_keeps_its_bytes_in_a_pipe_and_has_only_our_escapes_elsewhere() {
    let bench = with_change();
    let mut forced = bench.command(&["diff", "r"]);
    let bytes = workbench::Answer::of(forced.env("CLICOLOR_FORCE", "1")).ends(0).stdout.clone();
    assert!(bytes.contains("+a\u{1b}[2Jb\n") && !bytes.contains("\u{1b}[32m"), "{bytes:?}");
    for shown in [
        bench.glovebox(&["diff", "r", "--color", "always"]).ends(0).stdout.clone(),
        on_terminal(bench.command(&["diff", "r", "--no-pager"]), 24, 80),
    ] {
        assert!(shown.contains("\u{1b}[32m+a\\x1b[2Jb\u{1b}[m\n"), "{shown:?}");
        assert!(!shown.contains("\u{1b}[2J"), "{shown:?}");
    }
}

#[test]
fn a_pager_shows_results_on_a_terminal_only() {
    let bench = with_change();
    let paged = |pager: &str, words: &[&str]| {
        let mut command = bench.command(words);
        command.env("PAGER", "echo wrong").env("GLOVEBOX_PAGER", pager);
        on_terminal(command, 24, 80)
    };
    for words in [&["show", "r"][..], &["diff", "r"], &["plan", "pipeline.dot"], &["ls"]] {
        assert!(paged("echo began; cat; echo ended", words).contains("began"), "{words:?}");
        assert!(!paged("echo began", &[words, &["--no-pager"]].concat()).contains("began"), "{words:?}");
    }
    assert!(
        paged("no-such-pager-here", &["show", "r"]).contains("success"),
        "a missing pager falls back to plain text"
    );
    assert!(paged("", &["show", "r"]).contains("success"));
    assert!(paged("true", &["show", "r"]).is_empty(), "a reader may leave early");
    let shown = paged("cat", &["diff", "r"]);
    assert!(shown.contains("\\x1b[2J") && !shown.contains("\u{1b}[2J"), "{shown:?}");
    let mut piped = bench.command(&["show", "r"]);
    workbench::Answer::of(piped.env("GLOVEBOX_PAGER", "echo began").env("TERM", "xterm")).ends(0).never_says("began");
}

/// Returns the lines that an endless screen shows after this output. It handles text, line feeds and the cursor
/// movements of the live view.
fn seen(text: &str, columns: usize) -> Vec<String> {
    let mut screen: Vec<Vec<char>> = vec![Vec::new()];
    let (mut row, mut column) = (0usize, 0usize);
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            '\n' => (row, column) = (row + 1, 0),
            '\r' => column = 0,
            '\u{1b}' => {
                assert_eq!(rest.next(), Some('['));
                let mut number = String::new();
                let command = rest.by_ref().find(|next| {
                    if next.is_ascii_alphabetic() {
                        true
                    } else {
                        number.push(*next);
                        false
                    }
                });
                let count = number.parse().unwrap_or(1);
                match command {
                    Some('A') => row = row.saturating_sub(count),
                    Some('J') => {
                        screen.truncate(row + 1);
                        screen[row].truncate(column);
                    }
                    Some('m') => {}
                    other => panic!("unknown: {number}{other:?}"),
                }
            }
            character => {
                if column == columns {
                    (row, column) = (row + 1, 0);
                }
                screen.resize(screen.len().max(row + 1), Vec::new());
                let line = &mut screen[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = character;
                column += 1;
            }
        }
        screen.resize(screen.len().max(row + 1), Vec::new());
    }
    screen.into_iter().map(|line| line.into_iter().collect::<String>().trim_end().to_owned()).collect()
}

/// Returns a pipeline with this many stages. The last one runs `last`.
fn long_pipeline(stages: usize, last: &str) -> String {
    let stage = |index: usize| {
        let command = if index + 1 == stages { last } else { "true" };
        format!("n{index} [shape=parallelogram, tool_command=\"{command}\", allowed_write_paths=\"\"]\n")
    };
    let (nodes, chain): (String, String) =
        ((0..stages).map(stage).collect(), (0..stages).map(|index| format!(" -> n{index}")).collect());
    format!("digraph g {{ done [shape=Msquare]; start [shape=Mdiamond]\n{nodes} start{chain} -> done }}")
}

#[test]
fn a_live_view_folds_and_leaves_one_clean_view() {
    let bench = Workbench::with_pipeline(&long_pipeline(20, "true"));
    let written = on_terminal(bench.command(&["run", "pipeline.dot", "--run-id", "r", "--color", "never"]), 12, 80);
    let lines = seen(&written, 80);
    let heads = lines.iter().filter(|line| line.contains(" of 22 nodes")).count();
    assert_eq!(heads, 1, "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with(" … ") && line.ends_with(" done")), "{lines:#?}");
    assert!(lines.iter().filter(|line| line.contains('✓')).count() < 11, "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("✓ done") && line.contains("reached")), "{lines:#?}");
    assert!(!written.contains("n3 started"), "no log lines");
}

#[test]
fn ctrl_c_leaves_a_clean_view() {
    let bench = Workbench::with_pipeline(&long_pipeline(3, "sleep 30"));
    let command = bench.command(&["run", "pipeline.dot", "--run-id", "r", "--color", "never"]);
    let progress = bench.run_folder("r").join("progress.ndjson");
    let written = with_user(command, 24, 80, |keyboard, process| {
        let begun = || std::fs::read_to_string(&progress).unwrap_or_default();
        while !begun().lines().any(|line| line.contains("stage.started") && line.contains("n2")) {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        std::thread::sleep(std::time::Duration::from_millis(700));
        // The terminal only echoes `^C`, because it is not the controlling terminal of the process. So the signal is
        // sent here.
        keyboard.write_all(b"\x03").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        Command::new("kill").args(["-INT", &process.to_string()]).status().unwrap();
    });
    assert!(written.contains("^C"), "{written:?}");
    let lines = seen(&written, 80);
    assert_eq!(lines.iter().filter(|line| line.contains(" of 5 nodes")).count(), 1, "{lines:#?}");
    assert_eq!(lines.iter().filter(|line| line.contains("n0 ") && line.contains('✓')).count(), 1, "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("stopping the run")), "{lines:#?}");
    let (start, done) = (|name: &str| lines.iter().position(|line| line.contains(name)), "done");
    assert!(start("start") < start("n0") && start("n2") < start(&format!(" {done}")), "{lines:#?}");
}

#[test]
fn a_watched_list_is_shown_again_when_a_run_changes() {
    let bench = Workbench::with_pipeline(LINEAR);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "first"]).ends(0);
    let mut watching = bench.start(&["ls", "--watch"]);
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("ID"));
    assert!(lines.next().unwrap().starts_with("first"));
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "second"]).ends(0);
    assert!(lines.any(|line| line.starts_with("second") && line.contains("success")));
    Command::new("kill").args(["-INT", &watching.id().to_string()]).status().unwrap();
    assert_eq!(watching.wait().unwrap().code(), Some(130));
    bench.glovebox(&["ls", "--watch", "--json"]).ends(2);
}
