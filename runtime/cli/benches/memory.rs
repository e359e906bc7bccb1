//! Measures the peak memory of the host for inputs that Glovebox does not choose: a project, the requests of an agent
//! program, the messages of a tool server.
//!
//! `cargo bench --workspace --bench memory` prints a table. Each row has the peak resident memory of a `glovebox` child
//! process, as the kernel counts it, and the peak for a small input of the same kind, measured right afterwards. A
//! program that exceeds the memory or time bound is killed, and the row says so. No result passes or fails.

#![allow(clippy::unwrap_used)] // A benchmark may panic.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const GLOVEBOX: &str = env!("CARGO_BIN_EXE_glovebox");
/// Bounds at which a measurement is stopped: peak memory in bytes, and time.
const PEAK_BYTES_MAX: u64 = 3 << 30;
const TIME_MAX: Duration = Duration::from_secs(120);
const EVERY: Duration = Duration::from_millis(2);

/// One input in two sizes: its name, the function that writes the project, the two sizes, and the arguments of
/// `glovebox`.
type Case = (&'static str, fn(&Path, usize), [usize; 2], &'static [&'static str]);

const SIMULATE: &[&str] = &["run", "p.dot", "--simulate", "--no-input"];
const CASES: [Case; 7] = [
    (
        "gateway, 4 bodies of 32 MiB; 4 of 1 KiB",
        |at, size| gateway(at, 4, size),
        [32 << 20, 1 << 10],
        &["run", "p.dot"],
    ),
    (
        "gateway, 16 bodies of 32 MiB; 16 of 1 KiB",
        |at, size| gateway(at, 16, size),
        [32 << 20, 1 << 10],
        &["run", "p.dot"],
    ),
    (
        "MCP message of 1,000,000 bytes; of 100",
        tool_server,
        [1_000_000, 100],
        &["run", "p.dot", "--script", "model.toml"],
    ),
    ("example of a schema, 1,000 items in 4 levels; 1", schema, [1_000, 1], SIMULATE),
    ("1,500 ignore patterns of 500 bytes; 15", ignore, [1_500, 15], SIMULATE),
    ("condition of 60,000 clauses; 6", condition, [60_000, 6], SIMULATE),
    ("15 files of 20 children each; of one each", children, [20, 1], &["check", "0.dot"]),
];

fn main() {
    println!("{:<52} {:>9} {:>9} {:>7}  ended by", "measured; baseline", "peak MiB", "baseline", "ratio");
    for (name, make, sizes, words) in CASES {
        row(name, sizes.map(|size| measured(words, |at| make(at, size))));
    }
    let zero = measured(&["plan", "p.dot"], |at| package(at, true));
    row("`package.json` leads to `/dev/zero`; a file", [zero, measured(&["plan", "p.dot"], |at| package(at, false))]);
}

fn row(name: &str, [ours, theirs]: [(u64, String); 2]) {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let ratio = ours.0 as f64 / theirs.0.max(1) as f64;
    println!("{name:<52} {:>9.0} {:>9.0} {ratio:>7.2}  {}; {}", mib(ours.0), mib(theirs.0), ours.1, theirs.1);
}

/// Returns the peak memory of a command in a project of its own, and how the command ended.
fn measured(words: &[&str], make: impl FnOnce(&Path)) -> (u64, String) {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    fs::create_dir(&project).unwrap();
    make(&project);
    let mut provider = project.join("../answers.toml").exists().then(|| provider(&project));
    let mut child = command(&project).args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let found = watched(&mut child);
    if let Some(provider) = &mut provider {
        provider.kill().unwrap();
        provider.wait().unwrap();
    }
    found
}

fn command(project: &Path) -> Command {
    let mut command = Command::new(GLOVEBOX);
    command.current_dir(project).stdin(Stdio::null()).env("GLOVEBOX_STATE_DIR", project.join("../state"));
    // The fake provider accepts any key.
    command.env("ANTHROPIC_API_KEY", "none");
    command
}

/// Polls the peak while the process is alive. The last value is enough, because the kernel never lowers the peak.
fn watched(child: &mut Child) -> (u64, String) {
    let (mut peak, begin) = (0, Instant::now());
    loop {
        peak = peak.max(peak_bytes(child.id()));
        if let Some(status) = child.try_wait().unwrap() {
            return (peak, status.to_string());
        }
        let too_much = if peak > PEAK_BYTES_MAX { Some("this benchmark: memory") } else { None };
        let too_long = if begin.elapsed() > TIME_MAX { Some("this benchmark: time") } else { None };
        if let Some(why) = too_much.or(too_long) {
            child.kill().unwrap();
            child.wait().unwrap();
            return (peak, why.to_owned());
        }
        std::thread::sleep(EVERY);
    }
}

fn peak_bytes(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap_or_default() << 10
}

fn write(project: &Path, name: &str, text: &str) {
    let file: PathBuf = project.join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// Writes a pipeline of one stage.
fn stage(project: &Path, attributes: &str) {
    let nodes = "start [shape=Mdiamond]; done [shape=Msquare]";
    let stage = format!("work [prompt=\"x\", allowed_write_paths=\"\"{attributes}]");
    write(project, "p.dot", &format!("digraph g {{\n  {nodes}\n  {stage}\n  start -> work -> done\n}}\n"));
}

/// Starts a fake provider and writes its address into the project.
fn provider(project: &Path) -> Child {
    let mut provider = command(&project.join(".."));
    let mut provider = provider.args(["fake-llm", "answers.toml"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(provider.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let model = "[models.m]\nprovider = \"anthropic\"\nmodel = \"exact-model\"";
    write(project, "glovebox.toml", &format!("{model}\nendpoint = \"{}\"\n", url.trim()));
    provider
}

/// Writes a project with an agent program that sends `bodies` requests at once, each with about `bytes` bytes of JSON
/// numbers.
fn gateway(project: &Path, bodies: usize, bytes: usize) {
    stage(project, ", agent.backend=\"exec\", agent.command=\"python3 agent.py\"");
    write(project, "../answers.toml", "[[answer]]\ntext = \"fine\"\nrepeat = true\n");
    write(
        project,
        "agent.py",
        &format!(
            r#"
import http.client, os, threading, urllib.parse
URL, TOKEN, MODEL = (os.environ["MODEL_" + name] for name in ("GATEWAY_URL", "GATEWAY_TOKEN", "NAME"))
place = urllib.parse.urlsplit(URL)
def send():
    body = b'{{"model":"%s","max_tokens":9,"metadata":{{"a":[' % MODEL.encode() + b"0," * ({bytes} // 2 - 512) + b'0]}},"messages":[]}}'
    try:
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
        connection.request("POST", "/v1/messages", body, {{"x-api-key": TOKEN}})
        connection.getresponse().read()
    except OSError:
        pass
threads = [threading.Thread(target=send) for _ in range({bodies})]
[one.start() for one in threads]
[one.join() for one in threads]
print("OUTCOME: SUCCESS")
"#,
            bytes = bytes.max(1_026)
        ),
    );
}

/// Writes a project with a tool server that adds a list of numbers to its answer to the handshake.
fn tool_server(project: &Path, bytes: usize) {
    stage(project, ", mcp=\"t\"");
    let call = "[[node.work]]\ntool = [{ name = \"echo\", arguments = {} }]\n";
    write(project, "model.toml", &format!("{call}[[node.work]]\ntext = \"OUTCOME: SUCCESS\"\n"));
    write(project, "glovebox.toml", "[mcp.t]\ncommand = [\"python3\", \"s.py\"]\ntools = \"*\"\nread = [\"s.py\"]\n");
    let server = r#"
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}, "x": [0] * (BYTES // 3)}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"#;
    write(project, "s.py", &server.replace("BYTES", &bytes.saturating_sub(300).to_string()));
}

fn schema(project: &Path, items: usize) {
    let list = |inner: String| format!(r#"{{"type":"array","minItems":{items},"items":{inner}}}"#);
    let nested = (0..4).fold(r#"{"type":"null"}"#.to_owned(), |inner, _| list(inner));
    write(project, "s.json", &format!(r#"{{"type":"object","required":["a"],"properties":{{"a":{nested}}}}}"#));
    stage(project, ", output_schema=\"@s.json\"");
}

fn ignore(project: &Path, patterns: usize) {
    stage(project, "");
    fs::create_dir(project.join(".git")).unwrap();
    let lines: String = (0..patterns).map(|index| format!("{}*{index}/**/[a-z]*\n", "long-".repeat(96))).collect();
    write(project, ".gitignore", &lines);
}

fn condition(project: &Path, clauses: usize) {
    let nodes = "start [shape=Mdiamond]; done [shape=Msquare]\n  work [prompt=\"x\", allowed_write_paths=\"\"]";
    let clauses = vec!["context.a!=b"; clauses].join(" && ");
    let edges = format!("start -> work -> done\n  work -> done [condition=\"{clauses}\"]");
    write(project, "p.dot", &format!("digraph g {{\n  {nodes}\n  {edges}\n}}\n"));
}

/// Writes 15 pipelines. Each has `nodes` nodes, and each node runs the next pipeline.
fn children(project: &Path, nodes: usize) {
    for file in 0..15 {
        let mut text = "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n".to_owned();
        for node in 0..nodes {
            let child =
                format!("[type=subpipeline, \"stack.child_dotfile\"=\"{}.dot\", allowed_write_paths=\"\"]", file + 1);
            writeln!(text, "  n{node} {child}\n  start -> n{node} -> done").unwrap();
        }
        write(project, &format!("{file}.dot"), &(text + "}\n"));
    }
    stage(project, "");
    fs::rename(project.join("p.dot"), project.join("15.dot")).unwrap();
}

fn package(project: &Path, is_device: bool) {
    stage(project, "");
    let file = project.join("package.json");
    if is_device {
        std::os::unix::fs::symlink("/dev/zero", file).unwrap();
    } else {
        fs::write(file, "{}").unwrap();
    }
}
