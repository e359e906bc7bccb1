//! `glovebox export --otlp` with the real binary: the same trace again, to a file and to a collector, and nothing that a
//! stage wrote.

use crate::workbench::Workbench;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

/// A line of the hold-outs.
const SECRET: &str = "forty-two apples in a wicker basket";
/// A text in a prompt, an answer of a model, an argument and an output.
const TOLD: &str = "marmalade";

/// Runs a pipeline with an agent, a command that fails and is tried again, and a judge with hold-outs.
fn ended() -> Workbench {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{ graph [goal=g, max_steps=20] start [shape=Mdiamond] done [shape=Msquare]
  write [shape=box, prompt=\"{TOLD}\", allowed_write_paths=\"a.txt\"]
  flaky [shape=parallelogram, tool_command=\"echo {TOLD}; exit 3\", allowed_write_paths=\"\", retry_policy=standard, max_retries=1]
  judge [shape=octagon, command=\"sh scripts/scenarios/check.sh\", label=open]
  start -> write -> flaky
  flaky -> judge [condition=\"outcome=fail\"]
  flaky -> done [condition=\"outcome=success\"]
  judge -> done }}\n"
    ));
    bench.write("scripts/scenarios/check.sh", &format!("echo {SECRET}\n"));
    let turns = format!(
        "[[node.write]]\ntool = [{{ name = \"write_file\", arguments = {{ path = \"a.txt\", content = \"{TOLD}\" }} }}]\n\
         [[node.write]]\ntext = \"{TOLD}\"\n"
    );
    std::fs::write(bench.outside().join("script.toml"), turns).unwrap();
    bench.glovebox(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "r"]).ends(0);
    bench
}

fn exported(bench: &Workbench, name: &str) -> String {
    bench.glovebox(&["export", "r", "--otlp", name]).ends(0).says("exported");
    bench.read(name)
}

/// Returns the attributes of a span or point by name.
fn attributes(of: &Value) -> BTreeMap<String, String> {
    let list = of["attributes"].as_array().unwrap();
    let value = |value: &Value| value.as_object().unwrap().values().next().unwrap().clone();
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    list.iter().map(|entry| (entry["key"].as_str().unwrap().to_owned(), text(value(&entry["value"])))).collect()
}

#[test]
fn a_second_export_is_the_same_trace() {
    let bench = ended();
    let first = exported(&bench, "first.json");
    assert_eq!(first, exported(&bench, "second.json"));
    let lines: Vec<Value> = first.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [traces, metrics] = &lines[..] else { panic!("{first}") };
    let spans = traces["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let ids: BTreeSet<&str> = spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), spans.len(), "each span has its own id");
    let traces: BTreeSet<&str> = spans.iter().map(|span| span["traceId"].as_str().unwrap()).collect();
    assert!(traces.len() == 1 && traces.iter().all(|id| id.len() == 32), "{traces:?}");
    for span in &spans[1..] {
        assert!(ids.contains(span["parentSpanId"].as_str().unwrap()), "{span}");
    }
    let named = |name: &str| spans.iter().filter(|span| span["name"] == name).collect::<Vec<_>>();
    let below =
        |parent: &Value| spans.iter().filter(|span| span["parentSpanId"] == parent["spanId"]).collect::<Vec<_>>();
    assert_eq!(named("run g").len(), 1);
    assert_eq!(attributes(named("run g")[0])["glovebox.run.status"], "success");
    let flaky = named("stage flaky")[0];
    assert_eq!((&*attributes(flaky)["glovebox.stage.attempts"], flaky["status"]["code"].as_u64()), ("2", Some(2)));
    let attempts = below(flaky);
    assert_eq!(attempts.len(), 2);
    let command = below(attempts[0])[0];
    let about = attributes(command);
    assert_eq!((&*about["process.executable.name"], &*about["process.exit.code"]), ("dash", "3"));
    assert_eq!(about["glovebox.receipt.proof"], "not_verified");
    let turns = below(below(named("stage write")[0])[0]);
    assert_eq!(turns.iter().filter(|span| attributes(span).contains_key("gen_ai.operation.name")).count(), 2);
    let metrics = metrics["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let points = |name: &str, kind: &str| {
        let metric = metrics.iter().find(|metric| metric["name"] == name).unwrap();
        metric[kind]["dataPoints"].as_array().unwrap().clone()
    };
    let of_flaky = |points: Vec<Value>| {
        points.into_iter().find(|point| attributes(point)["glovebox.stage.name"] == "flaky").unwrap()
    };
    assert_eq!(of_flaky(points("glovebox.stage.retries", "sum"))["asInt"], "1");
    assert_eq!(of_flaky(points("glovebox.stage.duration", "histogram"))["count"], "2");
    assert_eq!(of_flaky(points("glovebox.stage.refusals", "sum"))["asInt"], "0");
    assert_eq!(points("glovebox.stage.cost", "sum").len(), 2, "the judge is not counted");
}

#[test]
fn no_text_of_a_stage_and_nothing_beside_hold_outs_is_exported() {
    let bench = ended();
    let exported = exported(&bench, "out.json");
    let project = bench.project().display().to_string();
    for word in [TOLD, SECRET, "wicker", "check.sh", "tool_command", project.as_str(), "/usr/", "a.txt"] {
        assert!(!exported.contains(word), "{word}: {exported}");
    }
    let traces: Value = serde_json::from_str(exported.lines().next().unwrap()).unwrap();
    let spans = traces["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let judge = spans.iter().find(|span| span["name"] == "stage judge").unwrap();
    assert_eq!(judge["startTimeUnixNano"], judge["endTimeUnixNano"]);
    assert!(spans.iter().all(|span| span["parentSpanId"] != judge["spanId"]), "{exported}");
    let known: Vec<String> = attributes(judge).into_keys().collect();
    assert_eq!(
        known,
        [
            "glovebox.branch",
            "glovebox.generation",
            "glovebox.stage.is_beside_holdouts",
            "glovebox.stage.name",
            "glovebox.stage.status",
            "glovebox.stage.visit"
        ]
    );
}

/// A collector on this machine that answers every request with `status`, and returns the paths and bodies.
fn collector(status: u16) -> (String, JoinHandle<Vec<(String, String)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let expected = if status == 200 { 2 } else { 1 };
    let served =
        std::thread::spawn(move || (0..expected).map(|_| answer(&listener.accept().unwrap().0, status)).collect());
    (address, served)
}

fn answer(mut stream: &TcpStream, status: u16) -> (String, String) {
    let mut reader = BufReader::new(stream);
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        } else if line.starts_with("post ") {
            path = line.split(' ').nth(1).unwrap().to_owned();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    write!(stream, "HTTP/1.1 {status} x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
    (path, String::from_utf8(body).unwrap())
}

#[test]
fn a_collector_gets_what_a_file_gets() {
    let bench = ended();
    let file = exported(&bench, "out.json");
    let (address, served) = collector(200);
    bench.glovebox(&["export", "r", "--otlp", &address]).ends(0).says("exported");
    let got = served.join().unwrap();
    let paths: Vec<&str> = got.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["/v1/traces", "/v1/metrics"]);
    let bodies: Vec<&str> = got.iter().map(|(_, body)| body.as_str()).collect();
    assert_eq!(bodies, file.lines().collect::<Vec<_>>());
    // One that refuses, and one that is not there.
    let (address, served) = collector(503);
    bench.glovebox(&["export", "r", "--otlp", &address]).ends(9).says("it answered 503");
    served.join().unwrap();
    bench.glovebox(&["export", "r", "--otlp", &address]).ends(9).says("no connection");
    bench.glovebox(&["export", "r", "--otlp", "http://example.org:4318"]).ends(2).says("only for this machine");
    bench.glovebox(&["export", "none", "--otlp", "x.json"]).ends(2);
    assert!(!bench.has("x.json"));
    std::os::unix::fs::symlink(bench.outside().join("target"), bench.project().join("link.json")).unwrap();
    bench.glovebox(&["export", "r", "--otlp", "link.json"]).ends(2).says("a link");
    assert!(!bench.outside().join("target").exists());
}
