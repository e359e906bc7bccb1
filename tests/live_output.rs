//! The output of running commands in `logs --follow`, in `attach` and in the live view, and that hold-outs never appear there.

use crate::session::Session;
use crate::workbench::Workbench;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A command that prints, waits until the test says `go`, and prints again. The stage sees a folder outside of the project.
const WAITS: &str =
    "echo first; echo second >&2; for i in $(seq 600); do [ -e $FLAGS/go ] && break; sleep 0.05; done; echo last";

/// Creates a project whose stage `work` waits for a file in the folder that is returned.
fn waiting(extra: &str) -> (Workbench, std::path::PathBuf) {
    let bench = Workbench::new();
    let flags = bench.outside().join("flags");
    std::fs::create_dir(&flags).unwrap();
    let shown = flags.to_str().unwrap();
    bench.write(
        "glovebox.toml",
        &format!("[sandbox]\nread = [\"{shown}\"]\n[exec]\nenv = {{ FLAGS = \"{shown}\" }}\n{extra}"),
    );
    (bench, flags)
}

fn pipeline(attributes: &str) -> String {
    format!(
        "digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]\n\
         work [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"{WAITS}\"{attributes}]\n\
         start -> work -> done }}"
    )
}

fn started(bench: &Workbench, words: &[&str]) -> Child {
    bench.bare(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until the run has a file with output of a running command.
fn wait_for_output(bench: &Workbench, run: &str) {
    let folder = bench.run_folder(run).join("live");
    let since = Instant::now();
    while !folder.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        assert!(since.elapsed() < Duration::from_secs(60), "no output");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn logs_follow_a_running_command_and_print_its_output_once() {
    let (bench, flags) = waiting("");
    bench.write("pipeline.dot", &pipeline(""));
    let mut run = started(&bench, &["run", "--run-id", "r"]);
    wait_for_output(&bench, "r");
    let mut logs = started(&bench, &["logs", "r", "--follow"]);
    let mut reader = BufReader::new(logs.stdout.take().unwrap());
    let mut lines = [String::new(), String::new()];
    for line in &mut lines {
        reader.read_line(line).unwrap();
    }
    lines.sort();
    assert_eq!(lines, ["first\n", "second\n"], "output arrives while the command runs");
    assert!(run.try_wait().unwrap().is_none());
    std::fs::write(flags.join("go"), "").unwrap();
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "last\n", "nothing is printed twice");
    assert!(logs.wait().unwrap().success() && run.wait().unwrap().success());
    let mut said = String::new();
    logs.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("tool.stdout.txt") && said.contains("work visit 1: echo first"), "{said}");
    assert!(!bench.run_folder("r").join("live").exists());
    let whole = bench.glovebox(&["logs", "r", "--stdout"]).ends(0).stdout.clone();
    assert_eq!(whole, "first\nlast\n");
}

#[test]
fn attach_shows_the_output_of_a_running_command_on_a_terminal() {
    let (bench, flags) = waiting("");
    // The view also shows the command, so the command must not contain its output.
    bench.write("pipeline.dot", &pipeline("").replace("echo first; echo second >&2", "echo fi''rst"));
    let mut run = started(&bench, &["run", "--run-id", "r"]);
    wait_for_output(&bench, "r");
    let mut command = bench.bare(&["attach", "r"]);
    command.env("TERM", "xterm");
    let attached = Session::start(command);
    attached.waits_for("first", 1);
    assert!(run.try_wait().unwrap().is_none(), "output arrives while the command runs");
    std::fs::write(flags.join("go"), "").unwrap();
    attached.ends(0);
    assert!(run.wait().unwrap().success());
}

#[test]
fn the_output_of_a_stage_with_hold_outs_is_never_shown_while_it_runs() {
    let (bench, flags) = waiting("");
    bench.write("scripts/scenarios/s.sh", "echo a secret wicker basket\n");
    bench.write(
        "pipeline.dot",
        &pipeline(", holdouts=true, scenario_feedback=full").replace("echo first", "cat scripts/scenarios/s.sh"),
    );
    let mut run = started(&bench, &["run", "--run-id", "r"]);
    let since = Instant::now();
    while !bench.run_folder("r").join("progress.ndjson").exists()
        || !bench.run_text("r", "progress.ndjson").contains("stage.started")
    {
        assert!(since.elapsed() < Duration::from_secs(60));
        assert!(run.try_wait().unwrap().is_none(), "{:?}", run.wait_with_output());
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(700));
    assert!(run.try_wait().unwrap().is_none());
    assert!(!bench.run_folder("r").join("live").exists(), "nothing of the stage is passed on");
    std::fs::write(flags.join("go"), "").unwrap();
    run.wait().unwrap();
}

/// What a program writes to take over a terminal: the clipboard, the title, the cursor, the screen, a link, a mode, a device string,
/// hidden text, hidden text after an incomplete colour, and the same as C1 control characters.
const ATTACKS: [&str; 14] = [
    r"\033[38:5;8m",
    r"\033[58:2;8;8;8m",
    r"\033]52;c;cHduZWQ=\007",
    r"\033]0;pwned\007",
    r"\033]2;pwned\033\\",
    r"\033[2J",
    r"\033[H",
    r"\033[99A",
    r"\033[1G",
    r"\033]8;;http://evil.example\033\\",
    r"\033[?1049h",
    r"\033Pq\033\\",
    r"\033[8m",
    r"\302\2332J",
];

/// Checks that every escape of a screen that is not in `ours` is a colour.
#[track_caller]
fn has_only_colours(screen: &str, ours: &[&str]) {
    let rest = ours.iter().fold(screen.to_owned(), |rest, own| rest.replace(own, ""));
    for escape in rest.split('\u{1b}').skip(1) {
        let numbers = escape.strip_prefix('[').and_then(|rest| rest.split_once('m')).map(|(numbers, _)| numbers);
        let is_colour = numbers.is_some_and(|numbers| numbers.bytes().all(|one| one.is_ascii_digit() || one == b';'));
        let is_hidden = numbers.is_some_and(|numbers| numbers.split(';').any(|number| number == "8"));
        assert!(is_colour && !is_hidden, "{:?} in {screen:?}", escape.chars().take(20).collect::<String>());
    }
    assert!(!rest.contains('\u{9b}') && !rest.contains('\u{7}'), "{screen:?}");
}

/// The colours of a command arrive on a terminal in every view of a running command, and no other control sequence does.
#[test]
fn colours_arrive_on_a_terminal_and_no_other_sequence_does() {
    let (bench, flags) = waiting("");
    bench.write("pipeline.dot", &pipeline("").replace("echo first; echo second >&2", "sh print.sh"));
    // The colour ends before the attacks, and each attack is on the same line, which is the last one that the view shows.
    let attacks: String = ATTACKS.concat();
    bench.write("print.sh", &format!("printf '\\033[1;35mcoloured\\033[0m {attacks}end\\n'\n"));
    let mut watched = bench.bare(&["run", "--run-id", "r"]);
    watched.env("TERM", "xterm");
    let run = Session::start(watched);
    wait_for_output(&bench, "r");
    let session = |words: &[&str]| {
        let mut command = bench.bare(words);
        command.env("TERM", "xterm");
        Session::start(command)
    };
    let (attached, followed) = (session(&["attach", "r"]), session(&["logs", "r", "--follow"]));
    let coloured = "\u{1b}[1;35mcoloured";
    for view in [&run, &attached, &followed] {
        view.waits_for(coloured, 1);
    }
    std::fs::write(flags.join("go"), "").unwrap();
    // The sequences of the live view: it erases and redraws its own lines, and hides the cursor.
    let ours = own_sequences();
    let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
    has_only_colours(&followed.ends(0), &[]);
    has_only_colours(&attached.ends(0), &ours);
    has_only_colours(&run.ends(0), &ours);
    // A summary and the end of an output in a pipe have neither colours nor other sequences.
    let shown = bench.glovebox(&["show", "r", "work"]);
    shown.ends(0).says("coloured ").never_says("\u{1b}").never_says("[1;35m");
}

/// Returns the control sequences with which the live view moves over its own lines.
fn own_sequences() -> Vec<String> {
    let up = (1..40).map(|rows| format!("\u{1b}[{rows}A"));
    up.chain(["\u{1b}[J", "\u{1b}[K", "\u{1b}[?25l", "\u{1b}[?25h"].map(str::to_owned)).collect()
}
