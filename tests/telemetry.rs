//! `glovebox export --otlp` with the real binary: the same trace again, to a file and to a collector, and nothing that a
//! stage wrote.

use crate::serve::client::Served;
use crate::workbench::Workbench;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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

/// A request to a collector.
#[derive(Debug)]
struct Got {
    path: String,
    /// The lines of the head after the first, in lower case.
    head: Vec<String>,
    body: String,
}

/// A collector on this machine that answers every request with `status`, and returns the requests.
fn collector(status: u16) -> (String, JoinHandle<Vec<Got>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let expected = if status == 200 { 2 } else { 1 };
    let served =
        std::thread::spawn(move || (0..expected).map(|_| answer(&listener.accept().unwrap().0, status)).collect());
    (address, served)
}

/// A collector that answers 200 to every request, and passes each on.
fn endless(address: &str) -> (String, Receiver<Got>) {
    refusing(address, 200)
}

/// A collector that answers the first request with `status` and every other with 200, and passes each on.
fn refusing(address: &str, status: u16) -> (String, Receiver<Got>) {
    let listener = TcpListener::bind(address).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (send, receive) = std::sync::mpsc::channel();
    let mut status = status;
    std::thread::spawn(move || {
        while send.send(answer(&listener.accept().unwrap().0, status)).is_ok() {
            status = 200;
        }
    });
    (address, receive)
}

fn answer(mut stream: &TcpStream, status: u16) -> Got {
    let mut reader = BufReader::new(stream);
    let (mut path, mut head, mut length) = (String::new(), Vec::new(), 0);
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
        head.push(line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    write!(stream, "HTTP/1.1 {status} x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
    Got { path, head, body: String::from_utf8(body).unwrap() }
}

#[test]
fn a_collector_gets_what_a_file_gets() {
    let bench = ended();
    let file = exported(&bench, "out.json");
    let (address, served) = collector(200);
    bench.glovebox(&["export", "r", "--otlp", &address]).ends(0).says("exported");
    let got = served.join().unwrap();
    let paths: Vec<&str> = got.iter().map(|got| got.path.as_str()).collect();
    assert_eq!(paths, ["/v1/traces", "/v1/metrics"]);
    let bodies: Vec<&str> = got.iter().map(|got| got.body.as_str()).collect();
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

const TOKEN: &str = "bearer of-a-collector";

#[test]
fn headers_are_sent_and_never_printed() {
    let bench = ended();
    let file = bench.outside().join("collector.token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let header = format!("Authorization={}", file.display());
    let (address, served) = collector(200);
    let mut command = bench.bare(&["export", "r", "--otlp", &address, "--otlp-header", &header]);
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=of%20the%20shop,authorization=replaced");
    let sent = command.output().unwrap();
    assert!(sent.status.success(), "{sent:?}");
    for got in served.join().unwrap() {
        let has = |line: &str| got.head.iter().any(|own| own == line);
        assert!(has(&format!("authorization: {TOKEN}")) && has("x-tenant: of the shop"), "{got:?}");
        assert!(
            has("content-type: application/json") && !got.head.iter().any(|line| line.contains("replaced")),
            "{got:?}"
        );
    }
    let mut said = format!("{sent:?}");
    // A collector that is not there, and values that are wrong.
    let failed = |address: &str, header: &str, variable: &str, code: i32| {
        let mut command = bench.bare(&["export", "r", "--otlp", address, "--otlp-header", header]);
        let output = command.env("OTEL_EXPORTER_OTLP_HEADERS", variable).env("GLOVEBOX_LOG", "trace").output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        format!("{output:?}")
    };
    said += &failed(&address, &header, "x-tenant=of-a-collector", 9);
    said += &failed(&address, &header, "of-a-collector", 2);
    said += &failed(&address, &header, "a=%zzof-a-collector", 2);
    said += &failed(&address, &format!("Host={}", file.display()), "", 2);
    said += &failed(&address, &format!("A={}-none", file.display()), "", 2);
    std::fs::write(&file, format!("{TOKEN}\nand\u{1}more")).unwrap();
    said += &failed(&address, &header, "", 2);
    assert!(!said.contains("of-a-collector"), "{said}");
    bench.glovebox(&["export", "r", "--otlp", "x.json", "--otlp-header", &header]).ends(2).says("names a file");
    bench.glovebox(&["serve", "--otlp-header", &header]).ends(2).says("needs `--otlp`");
    bench.glovebox(&["serve", "--otlp", "x.json"]).ends(2).says("not the address of a collector");
}

const SHORT: &str = "digraph g { start; exit; a [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]\n start -> a -> exit }\n";

/// Starts a run, and waits for its end.
fn run_to_end(served: &Served) -> String {
    let started = served.post("/pipelines", &json!({ "file": "pipeline.dot" })).is(200).json();
    let run = started["id"].as_str().unwrap().to_owned();
    let began = Instant::now();
    while served.get(&format!("/runs/{run}")).json()["status"] != "success" {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(50));
    }
    run
}

#[test]
fn a_server_sends_each_run_that_ends_once() {
    let bench = Workbench::with_pipeline(SHORT);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "before"]).ends(0);
    let file = bench.outside().join("collector.token");
    std::fs::write(&file, TOKEN).unwrap();
    let (address, received) = endless("127.0.0.1:0");
    let header = format!("Authorization={}", file.display());
    let served = Served::started(&bench, &["--otlp", &address, "--otlp-header", &header]);
    let next = || -> [Got; 2] {
        let got = [(); 2].map(|()| received.recv_timeout(Duration::from_secs(60)).unwrap());
        assert_eq!(got.each_ref().map(|got| got.path.as_str()), ["/v1/traces", "/v1/metrics"]);
        assert!(got.iter().all(|got| got.head.contains(&format!("authorization: {TOKEN}"))), "{got:?}");
        got
    };
    for _ in 0..2 {
        let run = run_to_end(&served);
        let bodies = next().map(|got| got.body);
        let file = format!("{run}.json");
        bench.glovebox(&["export", &run, "--otlp", &file]).ends(0);
        assert_eq!(bodies.to_vec(), bench.read(&file).lines().collect::<Vec<_>>(), "as the command sends it");
    }
    // A run of another command that goes on after its end is sent again, and is the same trace.
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "f", "--max-steps", "1"]).ends(5);
    let [first, _] = next();
    bench.glovebox(&["resume", "f", "--max-steps", "9"]).ends(0);
    let [again, _] = next();
    let trace = |got: &Got| -> Value {
        let traces: Value = serde_json::from_str(&got.body).unwrap();
        traces["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"].clone()
    };
    assert_eq!(trace(&again), trace(&first));
    assert_ne!(again.body, first.body);
    // Nothing is sent twice, and nothing that had ended before the server began.
    let more = received.recv_timeout(Duration::from_secs(4));
    assert!(more.is_err(), "{more:?}");
    assert_eq!(served.end().matches("warning").count(), 0);
}

#[test]
fn a_collector_that_is_away_stops_nothing_and_gets_everything_later() {
    let bench = Workbench::with_pipeline(SHORT);
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let served = Served::started(&bench, &["--otlp", &format!("http://{address}")]);
    let mut runs = vec![run_to_end(&served), run_to_end(&served)];
    // The collector is asked several times meanwhile.
    std::thread::sleep(Duration::from_secs(5));
    served.get("/runs").is(200);
    let (_, received) = endless(&address);
    let got: Vec<Got> = (0..4).map(|_| received.recv_timeout(Duration::from_secs(60)).unwrap()).collect();
    runs.retain(|run| !got.iter().any(|got| got.path == "/v1/traces" && got.body.contains(run)));
    assert!(runs.is_empty(), "{runs:?} were not sent: {got:?}");
    let said = served.end();
    assert_eq!(said.matches("got no telemetry").count(), 1, "{said}");
}

#[test]
fn a_run_that_the_collector_refuses_holds_up_no_other() {
    let bench = Workbench::with_pipeline(SHORT);
    let (address, received) = refusing("127.0.0.1:0", 413);
    let served = Served::started(&bench, &["--otlp", &address]);
    let next = || received.recv_timeout(Duration::from_secs(60)).unwrap();
    let refused = run_to_end(&served);
    assert!(next().body.contains(&refused));
    let run = run_to_end(&served);
    assert!([next(), next()].iter().any(|got| got.path == "/v1/traces" && got.body.contains(&run)));
    let more = received.recv_timeout(Duration::from_secs(4));
    assert!(more.is_err(), "{more:?}");
    let said = served.end();
    assert_eq!(said.matches(&format!("run {refused} is not sent again")).count(), 1, "{said}");
}

/// A collector that takes a connection and never answers holds up no request, and not the end of the server.
#[test]
fn nothing_waits_for_a_collector_that_does_not_answer() {
    let bench = Workbench::with_pipeline(SHORT);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let served = Served::started(&bench, &["--otlp", &format!("http://{}", silent.local_addr().unwrap())]);
    run_to_end(&served);
    let (_connection, _) = silent.accept().unwrap();
    let began = Instant::now();
    run_to_end(&served);
    for _ in 0..20 {
        served.get("/runs").is(200);
    }
    served.end();
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
}
