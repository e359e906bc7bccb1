//! Measures builds in the sandbox: the second run of an unchanged project beside the same command without Glovebox, the
//! size of the folder of a run, and a run with tool stages beside plain bubblewrap.
//!
//! `cargo bench --workspace --bench builds` prints a table. Each project is set up with `glovebox init`, as a user
//! would. The first run fills the caches and is not measured. If a toolchain is not installed, its row says so. No
//! result passes or fails.

#![allow(clippy::unwrap_used)] // A benchmark may panic.

#[path = "../../../benches/table.rs"]
mod table;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use table::{count, head, row};

const BUILT: &str = env!("CARGO_BIN_EXE_glovebox");
const SAMPLES: usize = 7;
/// Number of source files in each project.
const FILES: usize = 40;
/// Arguments of bubblewrap for a sandbox in which the command sees the machine read-only and has no network.
const BWRAP: &[&str] = &["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--unshare-all"];

/// A project of one language.
struct Kind {
    name: &'static str,
    /// The program that the machine must have.
    needs: &'static str,
    /// The command that tests the project, as a user types it.
    command: &'static [&'static str],
    write: fn(&Path),
}

const KINDS: [Kind; 4] = [
    Kind { name: "Rust", needs: "cargo", command: &["cargo", "test", "--quiet"], write: rust },
    Kind { name: "Go", needs: "go", command: &["go", "test", "./..."], write: go },
    Kind { name: "Node", needs: "node", command: &["node", "--test"], write: node },
    Kind { name: "C", needs: "make", command: &["make", "test"], write: c },
];

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("glovebox");
    fs::copy(BUILT, &program).unwrap();
    let bench = Bench { program, folder: folder.path() };
    head();
    for kind in &KINDS {
        match is_installed(kind.needs) {
            true => bench.second_run(kind),
            false => println!("{:<48} `{}` is not installed", format!("{}, second run", kind.name), kind.needs),
        }
    }
    match is_installed("bwrap") {
        true => bench.tool_stages(),
        false => println!("{:<48} `bwrap` is not installed", "run of one tool stage"),
    }
}

struct Bench<'f> {
    program: PathBuf,
    folder: &'f Path,
}

impl Bench<'_> {
    /// Measures a run of an unchanged project whose caches an earlier run filled, beside the plain command.
    fn second_run(&self, kind: &Kind) {
        let (ours, plain) = (self.project(kind, "ours"), self.project(kind, "plain"));
        self.glovebox(&ours, &["init"]);
        let pipeline = pipeline(&ours);
        let run = || self.glovebox(&ours, &["run", &pipeline, "--quiet"]);
        run();
        row(
            &format!("{}, second run of `{}`", kind.name, kind.command.join(" ")),
            SAMPLES,
            run,
            || timed(Command::new(kind.command[0]).args(&kind.command[1..]).current_dir(&plain)),
            "the same command in a built folder",
        );
        let runs = ours.join(".glovebox/runs");
        let last = fs::read_dir(&runs).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).max();
        count(&format!("{}, folder of the last run", kind.name), size(&last.unwrap()) as f64 / 1e6, "MB");
    }

    /// Measures runs with one and with five tool stages beside as many sandboxes of plain bubblewrap.
    fn tool_stages(&self) {
        for stages in [1, 5] {
            let project = self.folder.join(format!("tools{stages}"));
            fs::create_dir_all(&project).unwrap();
            fs::write(project.join("p.dot"), tools(stages)).unwrap();
            let bwrap = || {
                let once = || timed(Command::new("bwrap").args(BWRAP).args(["sh", "-c", "true"]));
                (0..stages).map(|_| once()).sum()
            };
            let run = || self.glovebox(&project, &["run", "p.dot", "--quiet"]);
            row(&format!("run of {stages} tool stages `true`"), 3 * SAMPLES, run, bwrap, "as many runs of `bwrap`");
        }
    }

    fn project(&self, kind: &Kind, name: &str) -> PathBuf {
        let folder = self.folder.join(format!("{}-{name}", kind.name));
        fs::create_dir_all(&folder).unwrap();
        (kind.write)(&folder);
        folder
    }

    fn glovebox(&self, project: &Path, arguments: &[&str]) -> Duration {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(project);
        command.env("GLOVEBOX_CACHE_DIR", self.folder.join("cache"));
        timed(command.env("GLOVEBOX_STATE_DIR", self.folder.join("state")))
    }
}

/// Returns the pipeline that `init` wrote.
fn pipeline(project: &Path) -> String {
    let names = fs::read_dir(project).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.into_iter().find(|name| name.ends_with(".dot")).unwrap()
}

fn is_installed(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

/// Returns the time of a process from start to end. The process must succeed.
fn timed(command: &mut Command) -> Duration {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    start.elapsed()
}

/// Returns the number of bytes of the files in a folder.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| match entry.metadata().unwrap() {
            metadata if metadata.is_dir() => size(&entry.path()),
            metadata => metadata.len(),
        })
        .sum()
}

fn tools(stages: usize) -> String {
    let mut text = String::from("digraph g {\n  start [shape=Mdiamond]\n  done [shape=Msquare]\n");
    let mut row = String::from("  start");
    for stage in 0..stages {
        writeln!(text, "  n{stage} [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]").unwrap();
        write!(row, " -> n{stage}").unwrap();
    }
    format!("{text}{row} -> done\n}}\n")
}

fn rust(folder: &Path) {
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("Cargo.toml"), "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n")
        .unwrap();
    let lock = "# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\n\
                version = 4\n\n[[package]]\nname = \"demo\"\nversion = \"0.1.0\"\n";
    fs::write(folder.join("Cargo.lock"), lock).unwrap();
    fs::write(folder.join(".gitignore"), "target/\n").unwrap();
    let mut modules = String::new();
    for file in 0..FILES {
        writeln!(modules, "mod part{file};").unwrap();
        let text = format!(
            "#[derive(Debug, Clone, PartialEq, Default)]\npub struct Part {{ pub value: u64 }}\n\
             #[test]\nfn adds() {{ assert_eq!(Part::default().value + {file}, {file}); }}\n"
        );
        fs::write(folder.join(format!("src/part{file}.rs")), text).unwrap();
    }
    fs::write(folder.join("src/lib.rs"), format!("#![allow(dead_code)]\n{modules}")).unwrap();
}

fn go(folder: &Path) {
    fs::write(folder.join("go.mod"), "module example.com/demo\n\ngo 1.21\n").unwrap();
    for file in 0..FILES {
        let test = format!(
            "package demo\n\nimport \"testing\"\n\nfunc TestPart{file}(t *testing.T) {{\n\tif part{file}() != {file} {{\n\t\tt.Fail()\n\t}}\n}}\n"
        );
        fs::write(folder.join(format!("part{file}_test.go")), test).unwrap();
        let part = format!("package demo\n\nfunc part{file}() int {{ return {file} }}\n");
        fs::write(folder.join(format!("part{file}.go")), part).unwrap();
    }
}

fn node(folder: &Path) {
    fs::create_dir_all(folder.join("test")).unwrap();
    let package = "{\"name\": \"demo\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"node --test\"}}\n";
    fs::write(folder.join("package.json"), package).unwrap();
    for file in 0..FILES / 4 {
        let text =
            format!("require('node:test')('part {file}', () => require('node:assert').equal({file} - {file}, 0));\n");
        fs::write(folder.join(format!("test/part{file}.test.js")), text).unwrap();
    }
}

fn c(folder: &Path) {
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join(".gitignore"), "build/\n").unwrap();
    let makefile = "OBJECTS := $(patsubst src/%.c,build/%.o,$(wildcard src/*.c))\n\n\
                    test: build/demo\n\t./build/demo\n\n\
                    build/demo: $(OBJECTS)\n\tcc -o $@ $^\n\n\
                    build/%.o: src/%.c\n\t@mkdir -p build\n\tcc -O2 -c -o $@ $<\n\n.PHONY: test\n";
    fs::write(folder.join("Makefile"), makefile).unwrap();
    let mut main = String::from("#include <stdio.h>\n");
    let mut calls = String::new();
    for file in 0..FILES {
        writeln!(main, "int part{file}(void);").unwrap();
        write!(calls, " + part{file}()").unwrap();
        let text = format!("#include <stdio.h>\nint part{file}(void) {{ return {file} - {file}; }}\n");
        fs::write(folder.join(format!("src/part{file}.c")), text).unwrap();
    }
    writeln!(main, "int main(void) {{ int failed = 0{calls}; puts(\"1 test\"); return failed; }}").unwrap();
    fs::write(folder.join("src/main.c"), main).unwrap();
}
