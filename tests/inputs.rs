//! Pipes, devices and sockets in the place of input files are refused at once, by every command and for every input.

use crate::workbench::{Answer, LINEAR, Workbench};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

fn pipe(at: &Path) {
    let _before = std::fs::remove_file(at);
    assert!(Command::new("mkfifo").arg(at).status().unwrap().success());
}

/// Commands, each with the input file that is replaced.
const INPUTS: [(&[&str], &str); 13] = [
    (&["check", "pipeline.dot"], "pipeline.dot"),
    (&["check", "--fix", "pipeline.dot"], "pipeline.dot"),
    (&["fmt", "pipeline.dot"], "pipeline.dot"),
    (&["graph", "pipeline.dot", "--format", "svg"], "pipeline.dot"),
    (&["plan", "pipeline.dot"], "pipeline.dot"),
    (&["run", "pipeline.dot"], "pipeline.dot"),
    (&["run", "pipeline.dot", "--script", "script.toml"], "script.toml"),
    (&["plan", "pipeline.dot", "--script", "script.toml"], "script.toml"),
    (&["check", "pipeline.dot"], "glovebox.toml"),
    (&["plan", "pipeline.dot"], "glovebox.toml"),
    (&["plan", "pipeline.dot"], "glovebox.lock"),
    (&["plugin", "lock"], "glovebox.toml"),
    (&["plugin", "lock"], "x.wasm"),
];

fn bench() -> Workbench {
    let bench = Workbench::with_pipeline(LINEAR);
    bench.write("glovebox.toml", "[plugins.\"acme.x\"]\npath = \"x.wasm\"\n");
    bench.write("glovebox.lock", "version = 1\n");
    bench.write("script.toml", "");
    bench.write("x.wasm", "");
    bench
}

#[test]
fn no_input_is_a_pipe_a_device_or_a_socket() {
    for (words, file) in INPUTS {
        let bench = bench();
        let at = bench.project().join(file);
        // No process writes to the pipe, so a command that reads it would never end.
        pipe(&at);
        let answer = bench.glovebox(words);
        assert!(matches!(answer.code, 2 | 7), "{words:?} {file}: {}", answer.code);
        answer.says(file).says("a pipe");
        std::fs::remove_file(&at).unwrap();
        symlink("/dev/zero", &at).unwrap();
        bench.glovebox(words).says(file).says("a device");
        std::fs::remove_file(&at).unwrap();
        let _listening = UnixListener::bind(&at).unwrap();
        let answer = bench.glovebox(words);
        assert!(matches!(answer.code, 2 | 7), "{words:?} {file}: {}", answer.code);
        answer.says(file).says("a socket");
    }
}

#[test]
fn a_pipe_is_refused_with_the_way_to_give_one() {
    let bench = bench();
    pipe(&bench.project().join("pipeline.dot"));
    bench
        .glovebox(&["check", "pipeline.dot"])
        .ends(2)
        .says("`pipeline.dot` is a pipe, not a file")
        .says("help: `-` reads standard input");
    let piped = |words: &str| {
        let mut command = Command::new("sh");
        command.current_dir(bench.project()).args(["-c", words]).env("GLOVEBOX", env!("CARGO_BIN_EXE_glovebox"));
        Answer::of(&mut command)
    };
    piped("echo 'digraph g { start -> exit start; exit }' | $GLOVEBOX check /dev/stdin").ends(2).says("is a pipe");
    piped("echo 'digraph g { start -> exit start; exit }' | $GLOVEBOX check -").ends(0);
}

#[test]
fn what_a_pipeline_names_is_no_pipe_either() {
    let bench = bench();
    bench.write("pipeline.dot", &LINEAR.replace("Do: $goal", "@prompt.md"));
    pipe(&bench.project().join("prompt.md"));
    bench.glovebox(&["check", "pipeline.dot"]).ends(3).says("prompt.md");
    std::fs::create_dir_all(bench.project().join("scripts/scenarios")).unwrap();
    bench.write("pipeline.dot", LINEAR);
    pipe(&bench.project().join("scripts/scenarios/one.sh"));
    bench.glovebox(&["check", "pipeline.dot"]).ends(0);
}
