//! Executes the examples on documentation pages: files are written, commands are run, and their output must be what the
//! page shows.
//!
//! A fence `LANGUAGE PATH` is a file of the project. In a fence `console`, a line `$ …` is a command, and its output
//! must contain the lines below it in this order. In these lines, `…` matches any text. `# exit N` after a command is
//! its exit code, by default 0. A fence `console needs=PROGRAM,…` is skipped if a program is not installed. Each page
//! is one project. `cd` and `export` apply to all later commands of the page. For the models of a `glovebox.toml`, the
//! endpoint is replaced by that of a `glovebox fake-llm`, and the address `localhost:5000` by that of a registry of the tests.

use crate::registries::server::Registry;
use crate::workbench::{self, Workbench, root};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// One step of a page.
#[derive(Debug, PartialEq, Eq)]
enum Step<'a> {
    Write { path: &'a str, text: String },
    Run { line: &'a str, exit: i32, printed: Vec<&'a str> },
}

#[test]
fn docs_plugins() {
    transcript("docs/plugins.md");
}

#[test]
fn docs_plugins_rust() {
    transcript("docs/plugins-rust.md");
}

#[test]
fn docs_plugins_javascript() {
    transcript("docs/plugins-javascript.md");
}

#[test]
fn docs_plugins_python() {
    transcript("docs/plugins-python.md");
}

#[test]
fn docs_plugins_c() {
    transcript("docs/plugins-c.md");
}

#[test]
fn docs_received_plugins() {
    transcript("docs/received-plugins.md");
}

#[test]
fn docs_attestation() {
    transcript("docs/attestation.md");
}

#[test]
fn docs_first_run() {
    transcript("docs/first-run.md");
}

#[test]
fn docs_models() {
    transcript("docs/models.md");
}

#[test]
fn docs_operators() {
    transcript("docs/operators.md");
}

/// Executes all steps of a page.
fn transcript(page: &str) {
    let mut text = std::fs::read_to_string(root().join(page)).unwrap();
    if text.contains(REGISTRY) {
        text = text.replace(REGISTRY, &Registry::start().address.to_string());
    }
    let bench = Workbench::new();
    let mut folder = bench.project();
    let (mut count, mut provider, mut exported) = (0, None, Vec::new());
    for (number, step) in steps(&text, workbench::is_plugin_tool_here) {
        match step {
            Step::Write { path, text } => {
                let file = folder.join(path);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                let asks = text.contains("\nprovider");
                provider = if asks { Some(Provider::start(&bench)) } else { provider };
                let text = provider.as_ref().filter(|_| asks).map_or(text.clone(), |provider| provider.in_place(&text));
                std::fs::write(file, text).unwrap();
            }
            Step::Run { line, exit, printed } => {
                let place = format!("{page}:{number}: $ {line}");
                if let Some(path) = line.strip_prefix("cd ") {
                    folder = folder.join(path).canonicalize().unwrap_or_else(|error| panic!("{place}: {error}"));
                    continue;
                }
                if let Some((name, _)) = line.strip_prefix("export ").and_then(|pair| pair.split_once('=')) {
                    exported.push(name);
                    continue;
                }
                let (code, output) = run(&bench, (&folder, &exported), line);
                assert_eq!(code, exit, "{place}\n{output}");
                if let Err(missing) = compare(&printed, &output) {
                    panic!("{place}\nexpected the line: {missing}\nprinted:\n{output}");
                }
                count += 1;
            }
        }
    }
    assert!(count > 0, "{page} has no command");
}

/// The registry of the pages.
const REGISTRY: &str = "localhost:5000";

/// The API key that pages export.
const KEY: &str = "sk-7f3a9c51e2d84b06";

/// Answers for `glovebox models test` and for a stage that writes a greeting.
const ANSWERS: &str = r#"
[[answer]]
when = "Answer with the word ok"
text = "ok"

[[answer]]
when = "Write a greeting"
tool = [{ name = "write_file", arguments = { path = "src/hello.txt", content = "hello\n" } }]
usage = { input = 1200, output = 40 }

[[answer]]
when = "Write a greeting"
text = "OUTCOME: SUCCESS"
usage = { input = 1300, output = 20 }
"#;

/// A fake provider on this machine.
struct Provider {
    url: String,
    process: Child,
}

impl Provider {
    fn start(bench: &Workbench) -> Self {
        std::fs::write(bench.outside().join("answers.toml"), ANSWERS).unwrap();
        let mut command = workbench::glovebox_in(bench.outside());
        let mut process = command.args(["fake-llm", "answers.toml"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { url: url.trim().to_owned(), process }
    }

    /// Returns a `glovebox.toml` in which the endpoint of every model is this provider.
    fn in_place(&self, text: &str) -> String {
        let lines = text.lines().filter(|line| !line.starts_with("endpoint"));
        let here = |line: &str| match line.starts_with("provider") {
            true => format!("{line}\nendpoint = \"{}\"\n", self.url),
            false => format!("{line}\n"),
        };
        lines.map(here).collect()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the steps of a page with their line numbers.
fn steps(page: &str, is_installed: impl Fn(&str) -> bool) -> Vec<(usize, Step<'_>)> {
    let mut steps = Vec::new();
    let mut lines = page.lines().zip(1..);
    while let Some((line, opened)) = lines.next() {
        let Some(words) = line.strip_prefix("```").filter(|words| !words.is_empty()) else { continue };
        let body: Vec<(&str, usize)> = lines.by_ref().take_while(|(line, _)| *line != "```").collect();
        match words.split_once(' ') {
            Some(("console", needs))
                if !needs.strip_prefix("needs=").is_some_and(|needs| needs.split(',').all(&is_installed)) =>
            {
                println!("line {opened}: left out, {needs} is not met");
            }
            _ if words.split(' ').next() == Some("console") => steps.extend(commands(&body)),
            Some((_, path)) => {
                let text = body.iter().map(|(line, _)| format!("{line}\n")).collect();
                steps.push((opened, Step::Write { path, text }));
            }
            None => {}
        }
    }
    steps
}

/// Returns the commands of a fence, each with the expected output below it.
fn commands<'a>(body: &[(&'a str, usize)]) -> Vec<(usize, Step<'a>)> {
    let mut steps: Vec<(usize, Step<'a>)> = Vec::new();
    for (text, number) in body {
        match (text.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => {
                let (line, exit) = command.split_once(" # exit ").unwrap_or((command, "0"));
                let exit = exit.trim().parse().unwrap_or_else(|_| panic!("line {number}: `{exit}` is no exit code"));
                steps.push((*number, Step::Run { line: line.trim(), exit, printed: Vec::new() }));
            }
            (None, Some((_, Step::Run { printed, .. }))) => printed.push(text),
            (None, _) => panic!("line {number}: output before the first command"),
        }
    }
    steps
}

/// Runs a line in a shell. Returns its exit code and its output on both streams.
fn run(bench: &Workbench, (folder, exported): (&Path, &[&str]), line: &str) -> (i32, String) {
    let binary = Path::new(env!("CARGO_BIN_EXE_glovebox")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), workbench::search_path().into_string().unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec 2>&1; {line}")]).current_dir(folder).stdin(Stdio::null());
    workbench::as_author(&mut shell).env("PATH", path).env("REPO", root());
    for (name, value) in bench.command(&[]).get_envs() {
        if let Some(value) = value.filter(|_| name != "PATH") {
            shell.env(name, value);
        }
    }
    shell.envs(exported.iter().map(|name| (name, KEY)));
    let output = shell.output().unwrap();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Searches the output for the expected lines in order. Returns the first line that is missing as an error.
fn compare<'a>(expected: &[&'a str], output: &str) -> Result<(), &'a str> {
    let mut printed = output.lines();
    for line in expected.iter().filter(|line| !matches!(line.trim(), "" | "…")) {
        if !printed.any(|printed| is_like(line.trim_end(), printed.trim_end())) {
            return Err(line);
        }
    }
    Ok(())
}

/// Returns true if `line` matches the pattern, in which each `…` matches any text.
fn is_like(pattern: &str, line: &str) -> bool {
    let parts: Vec<&str> = pattern.split('…').collect();
    let ([first, .., last], true) = (&parts[..], parts.len() > 1) else { return pattern == line };
    let Some(mut rest) = line.strip_prefix(first).and_then(|rest| rest.strip_suffix(last)) else { return false };
    parts[1..parts.len() - 1].iter().all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

#[test]
fn a_page_is_read_as_it_is_written() {
    let page = "text\n```toml a/b.toml\nx = 1\n```\n```rust\nignored\n```\n```console\n$ one  # exit 3\nfirst\n…\n$ two\n```\n\
                ```console needs=nowhere\n$ three\n```\n";
    let found: Vec<Step<'_>> = steps(page, |_| false).into_iter().map(|(_, step)| step).collect();
    assert_eq!(
        found,
        [
            Step::Write { path: "a/b.toml", text: "x = 1\n".to_owned() },
            Step::Run { line: "one", exit: 3, printed: vec!["first", "…"] },
            Step::Run { line: "two", exit: 0, printed: vec![] },
        ]
    );
    assert_eq!(steps(page, |program| program == "nowhere").len(), 4);
}

#[test]
fn lines_are_compared_in_order_and_with_gaps() {
    assert_eq!(compare(&["a", "", "c … e", "…"], "a\nb\nc d e\n"), Ok(()));
    assert_eq!(compare(&["b", "a"], "a\nb\n"), Err("a"));
    assert!(is_like("digest … of …", "digest 12 of x") && is_like("…", "anything") && is_like("a…b…c", "a-b-b-c"));
    assert!(!is_like("a … b", "a b c") && !is_like("x", "x y") && !is_like("a…a", "a"));
}
