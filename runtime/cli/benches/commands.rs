//! Measures `check` as a whole process, next to a baseline that is measured in the same run.
//!
//! `cargo bench --workspace --bench commands` prints a table: the median time of the measured program, the median time
//! of the baseline and their ratio, then the minimum time and the ratio of the minimum times. The two programs run
//! alternately (A B A B …), so that a change of the machine's speed affects both. No result passes or fails.

#![allow(clippy::unwrap_used)] // A benchmark may panic.

#[path = "../../../benches/table.rs"]
mod table;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use table::row;

const BUILT: &str = env!("CARGO_BIN_EXE_glovebox");
const SAMPLES: usize = 21;

/// Path of the installed copy of the program under measurement.
static INSTALLED: OnceLock<String> = OnceLock::new();

fn glovebox() -> &'static str {
    INSTALLED.get().unwrap()
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    install(folder.path());
    table::head();
    for (nodes, samples) in [(1_000, SAMPLES), (10_000, SAMPLES), (100_000, 5)] {
        check(folder.path(), "row", nodes, &chain(nodes), samples);
        check(folder.path(), "random", nodes, &random(nodes), samples);
    }
    own_rules(folder.path(), 10);
    check_in_project(folder.path(), 1_000);
}

/// Copies the program, as an installation does; the baselines were installed too. A linker writes the parts of a file
/// out of order, and the kernel maps such a file in smaller pieces. A program that runs from it starts up to a
/// millisecond later.
fn install(folder: &Path) {
    let installed = folder.join("glovebox");
    fs::copy(BUILT, &installed).unwrap();
    INSTALLED.set(installed.to_str().unwrap().to_owned()).unwrap();
}

/// Measures `check` as a whole process, next to a process that does nothing and, if Graphviz is installed, Graphviz on
/// the same file.
fn check(folder: &Path, shape: &str, nodes: usize, text: &str, samples: usize) {
    let path = folder.join(format!("{shape}{nodes}.dot"));
    fs::write(&path, text).unwrap();
    let file = path.to_str().unwrap();
    let name = format!("check, {nodes} nodes, {shape}, process");
    let baselines: [(&str, &[&str], &str); 3] = [
        ("true", &[], "spawn of `true`"),
        ("gc", &[file], "Graphviz `gc`, same file"),
        ("nop", &[file], "Graphviz `nop`, same file"),
    ];
    for (program, arguments, of) in baselines {
        if is_installed(program) {
            row(
                &name,
                samples,
                || spawn(glovebox(), &["check", file], folder),
                || spawn(program, arguments, folder),
                of,
            );
        } else {
            println!("{name:<48} {of}: not installed (Debian package `graphviz`)");
        }
    }
}

/// Measures `check` with a project's custom rules, already compiled, next to the same file and command without rules.
fn own_rules(folder: &Path, nodes: usize) {
    let (with, without) = (folder.join("with-rules"), folder.join("without-rules"));
    // Every stage names a reviewer and no scope, so that the rules have something to change and nothing to report.
    let text = chain(nodes).replace("allowed_write_paths=\"src/\"", "class=code, \"acme.reviewer\"=\"kim\"");
    for project in [&with, &without] {
        fs::create_dir_all(project).unwrap();
        fs::write(project.join("p.dot"), &text).unwrap();
    }
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/house-rules/rules");
    let component = example.join("target/wasm32-wasip2/release/acme_house.wasm");
    let name = format!("check, {nodes} nodes, own rules, process, warm");
    if fs::copy(&component, with.join("house.wasm")).is_err() {
        return println!("{name:<48} no {}: run `cargo xtask components`", component.display());
    }
    fs::write(with.join("glovebox.toml"), "[rules.\"acme.house\"]\npath = \"house.wasm\"\ntransform = true\n").unwrap();
    spawn(glovebox(), &["plugin", "lock"], &with);
    let check = |project: &Path| spawn(glovebox(), &["check", "p.dot"], project);
    row(&name, SAMPLES, || check(&with), || check(&without), "the same file without rules");
}

/// Measures what a project around a pipeline adds to `check`: a configuration to read, and prompts in separate files.
fn check_in_project(folder: &Path, nodes: usize) {
    let alone = pipeline_in(&folder.join("alone"), &chain(nodes));
    let configured = pipeline_in(&folder.join("configured"), &chain(nodes));
    fs::write(configured.join("glovebox.toml"), "").unwrap();
    let text = chain_of(nodes, |node| format!("@part{node}.md"));
    let referring = pipeline_in(&folder.join("referring"), &text);
    (0..nodes).for_each(|node| fs::write(referring.join(format!("part{node}.md")), "Do $goal").unwrap());
    for (what, project) in [("with glovebox.toml", &configured), ("every prompt from a file", &referring)] {
        let name = format!("check, {nodes} nodes, {what}");
        let alone = || spawn(glovebox(), &["check", "p.dot"], &alone);
        row(&name, SAMPLES, || spawn(glovebox(), &["check", "p.dot"], project), alone, "the same without");
    }
}

fn pipeline_in(project: &Path, text: &str) -> std::path::PathBuf {
    fs::create_dir_all(project).unwrap();
    fs::write(project.join("p.dot"), text).unwrap();
    project.to_owned()
}

/// Returns true if the program is found and starts. Its output is ignored.
fn is_installed(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("-V").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

/// Returns the time of a process from start to end.
fn spawn(program: &str, arguments: &[&str], folder: &Path) -> Duration {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    command.env("GLOVEBOX_CACHE_DIR", folder.join("cache")).env("GLOVEBOX_STATE_DIR", folder.join("state"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().unwrap();
    assert!(status.success(), "{program} {arguments:?} ended with {status}");
    start.elapsed()
}

/// Returns a pipeline of conditional nodes in a row, with attributes and conditions of ordinary size.
fn chain(nodes: usize) -> String {
    chain_of(nodes, |node| format!("Do part {node} of $goal"))
}

fn chain_of(nodes: usize, prompt: impl Fn(usize) -> String) -> String {
    let mut text =
        String::from("digraph big {\n  graph [goal=\"measure\"]\n  start [shape=Mdiamond]\n  done [shape=Msquare]\n");
    for node in 0..nodes {
        writeln!(
            text,
            "  n{node} [shape=box, label=\"Stage {node}\", prompt=\"{}\", allowed_write_paths=\"src/\"]",
            prompt(node)
        )
        .unwrap();
    }
    text.push_str("  start -> n0\n");
    for node in 1..nodes {
        writeln!(text, "  n{} -> n{node} [condition=\"outcome=success\"]", node - 1).unwrap();
        writeln!(text, "  n{} -> n0 [condition=\"outcome=fail\"]", node - 1).unwrap();
    }
    writeln!(text, "  n{} -> done\n}}", nodes - 1).unwrap();
    text
}

/// Returns a pipeline like that of [`chain`], with two more `fail` edges from each node to pseudo-random nodes.
fn random(nodes: usize) -> String {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % nodes
    };
    let mut text = chain(nodes);
    let end = text.rfind('}').unwrap();
    text.truncate(end);
    for node in 1..nodes {
        for label in ["a", "b"] {
            writeln!(text, "  n{node} -> n{} [condition=\"outcome=fail\", label={label}]", next()).unwrap();
        }
    }
    text.push_str("}\n");
    text
}
