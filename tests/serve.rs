//! `glovebox serve` with the real binary: every route with each right, the same documents as the commands, streams that miss
//! nothing, runs that go on when the server is killed, and hostile clients.

pub(crate) mod client;

use crate::workbench::Workbench;
use client::{Reply, Served};
use glovebox_serve::right::Right;
use glovebox_serve::route::{Body, Endpoint, ROUTES, Route, Verb};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

const TWO_STAGES: &str = "digraph release {
  start [shape=Mdiamond]; done [shape=Msquare]
  write [shape=parallelogram, tool_command=\"echo written > out.txt; echo printed\", allowed_write_paths=\"out.txt\"]
  check [shape=parallelogram, tool_command=\"test -f out.txt\", allowed_write_paths=\"\"]
  start -> write -> check -> done
}
";

const GATE: &str = "digraph release {
  start; exit
  gate [shape=hexagon, label=\"Ship?\"]
  ship [shape=parallelogram, tool_command=\"echo shipped\", allowed_write_paths=\"\"]
  fix  [shape=parallelogram, tool_command=\"echo fixed\", allowed_write_paths=\"\"]
  start -> gate
  gate -> ship [label=\"[S] Ship it\"]
  gate -> fix  [label=\"[F] Fix first\"]
  ship -> exit
  fix  -> exit
}
";

fn ended(text: &str) -> Workbench {
    let bench = Workbench::with_pipeline(text);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    bench
}

/// Waits until a run of the server is in this state.
fn wait_for(served: &Served, run: &str, state: &str) -> Value {
    let began = Instant::now();
    loop {
        let reply = served.get(&format!("/runs/{run}"));
        if reply.status == 200 && reply.json()["status"] == state {
            return reply.json();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{reply:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns a request for a route, with a run, node and question that exist.
fn request(route: &Route) -> (String, Option<Value>) {
    let path = route.path.replace("{id}", "r").replace("{node}", "write").replace("{question}", "gate%231");
    let path = path.replace("{digest}", &format!("blake3:{}", "0".repeat(64))).replace("{file}", "none.js");
    let path = path.replace("{n}", "1");
    let path = if route.endpoint == Endpoint::Task { "/tasks/r.0.main.write.1".to_owned() } else { path };
    let body = match route.body {
        Body::None => None,
        Body::Json(fields) => {
            let of = |name: &str| match name {
                "paths" => json!([]),
                "head" => json!(format!("blake3:{}", "0".repeat(64))),
                _ => json!("x"),
            };
            Some(
                fields
                    .iter()
                    .map(|field| (field.name.to_owned(), of(field.name)))
                    .collect::<serde_json::Map<_, _>>()
                    .into(),
            )
        }
        Body::Pipeline(_) => Some(json!({ "dot": "digraph g {}" })),
    };
    (format!("{} {path}", route.verb.as_str()), body)
}

fn with_body(served: &Served, line: &str, more: &[&str], body: Option<&Value>) -> Reply {
    let text = body.map(Value::to_string).unwrap_or_default();
    let more = [more, if body.is_some() { &["Content-Type: application/json"] } else { &[] }].concat();
    served.send(line, &more, &text)
}

#[test]
fn every_route_needs_its_right() {
    let bench = ended(TWO_STAGES);
    let only: Vec<(String, Vec<Right>)> =
        Right::ALL.iter().map(|right| (format!("only {right}"), vec![*right])).collect();
    let clients: Vec<(&str, &[Right])> = only.iter().map(|(name, rights)| (name.as_str(), rights.as_slice())).collect();
    let served = Served::with(&bench, &clients);
    for route in ROUTES {
        let (line, body) = request(route);
        let path = route.path;
        let foreign = with_body(&served, &line, &["Host: evil.example"], body.as_ref());
        assert_eq!(foreign.status, 421, "{path}: {foreign:?}");
        let page = with_body(&served, &line, &["Origin: http://evil.example"], body.as_ref());
        assert_eq!(page.status, 403, "{path}: {page:?}");
        for reply in [&foreign, &page] {
            assert!(!reply.head.to_ascii_lowercase().contains("access-control"), "{reply:?}");
        }
        let Some(right) = route.right else { continue };
        assert_eq!(with_body(&served, &line, &[], body.as_ref()).status, 401, "{path}");
        assert_eq!(served.as_client("unknown", &line, body.as_ref()).status, 401, "{path}");
        for (name, rights) in &clients {
            let rights: glovebox_serve::right::Rights = rights.iter().copied().collect();
            let is_allowed = rights.has(right) || route.endpoint == Endpoint::Start && rights.has(Right::Start);
            // What a right allows is tested below; acts would change the run.
            if is_allowed && route.verb == Verb::Post {
                continue;
            }
            let reply = served.as_client(name, &line, body.as_ref());
            assert_eq!(reply.status != 403, is_allowed, "{path} with {name}: {reply:?}");
            if !is_allowed {
                assert!(reply.json()["message"].as_str().unwrap().contains(&format!("`{right}`")), "{reply:?}");
            }
            assert!(reply.status < 500, "{path} with {name}: {reply:?}");
        }
    }
}

#[test]
fn too_long_a_body_is_refused_by_every_route() {
    let bench = ended(TWO_STAGES);
    let served = Served::start(&bench);
    let long = json!({ "text": "x".repeat(glovebox_serve::server::BODY_BYTES_MAX) });
    for route in ROUTES.iter().filter(|route| route.verb == Verb::Post) {
        let (line, _) = request(route);
        let reply = served.as_client(&served.token, &line, Some(&long));
        assert_eq!(reply.status, 413, "{}: {reply:?}", route.path);
    }
}

#[test]
fn each_answer_is_the_document_of_a_command() {
    let bench = ended(TWO_STAGES);
    let served = Served::start(&bench);
    for (path, words) in [
        ("/runs", &["ls", "--json"][..]),
        ("/runs/r", &["show", "r", "--json"]),
        ("/pipelines/r", &["show", "r", "--json"]),
        ("/runs/r/why", &["why", "r", "--json"]),
        ("/runs/r/why?node=write", &["why", "r", "write", "--json"]),
        ("/runs/r/evidence", &["evidence", "r", "--json"]),
        ("/runs/r/gates", &["gates", "r", "--json"]),
        ("/gates", &["gates", "--json"]),
        ("/runs/r/diff", &["diff", "r", "--json"]),
        ("/runs/r/plan", &["plan", "--run", "r", "--json"]),
        ("/runs/r/stages/write", &["show", "r", "write", "--json"]),
        ("/runs/r/stages/write/logs", &["logs", "r", "write", "--json"]),
        ("/runs/r/records", &["attach", "r", "--json", "--all"]),
        ("/tasks?run=r", &["tasks", "r", "--json"]),
        ("/pipelines/r/graph", &["graph", "r", "--format", "svg"]),
        ("/pipelines/r/graph?format=json", &["graph", "r", "--format", "json"]),
    ] {
        let reply = served.get(path);
        reply.is(200);
        let printed = bench.bare(words).output().unwrap();
        let printed = String::from_utf8(printed.stdout).unwrap();
        if path == "/runs/r/records" {
            // The command prints the verdict after the last record.
            let records: Vec<&str> = reply.body.lines().collect();
            assert_eq!(printed.lines().take(records.len()).collect::<Vec<_>>(), records, "{path}");
            assert_eq!(printed.lines().count(), records.len() + 1);
        } else {
            assert_eq!(reply.body, printed, "{path}");
        }
    }
    let checkpoint = served.get("/pipelines/r/checkpoint").json();
    assert_eq!(checkpoint, bench.run_json("r", "checkpoint.json"));
    assert_eq!(served.get("/pipelines/r/context").json(), checkpoint["context"]);
}

#[test]
fn a_stream_has_every_record_also_after_a_cut_and_a_new_server() {
    let bench = ended(TWO_STAGES);
    let served = Served::start(&bench);
    let records = served.get("/runs/r/records").body.lines().count() as u64;
    let all = served.follow("/runs/r/events", None);
    let ids: Vec<u64> = all.iter().filter_map(|sent| sent.id).collect();
    assert_eq!(ids, (1..=records).collect::<Vec<_>>());
    assert_eq!(all.last().unwrap().event, "end");
    let state = all.iter().rfind(|sent| sent.event == "state").unwrap();
    assert_eq!(serde_json::from_str::<Value>(&state.data).unwrap()["status"], "success");
    served.kill();
    let served = Served::start(&bench);
    let rest = served.follow("/runs/r/events", Some(5));
    assert_eq!(rest.iter().filter_map(|sent| sent.id).collect::<Vec<_>>(), (6..=records).collect::<Vec<_>>());
    let beyond = served.send(
        "GET /runs/r/events",
        &[&format!("Authorization: Bearer {}", served.token), &format!("Last-Event-ID: {}", records + 1)],
        "",
    );
    beyond.is(409);
    // The events of the specification.
    let named = served.follow("/pipelines/r/events", None);
    let names: BTreeSet<&str> = named.iter().map(|sent| sent.event.as_str()).collect();
    for name in ["PipelineStarted", "StageStarted", "StageCompleted", "PipelineCompleted"] {
        assert!(names.contains(name), "{names:?}");
    }
    assert!(named.iter().filter_map(|sent| sent.id).is_sorted());
}

#[test]
fn sixteen_clients_follow_a_run_that_goes_on() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]
  a [shape=parallelogram, tool_command=\"sleep 1\", allowed_write_paths=\"\"]
  b [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]
  start -> a -> b -> done }",
    );
    let served = Served::start(&bench);
    let started = served.post("/pipelines", &json!({ "file": "pipeline.dot" }));
    let run = started.is(200).json()["id"].as_str().unwrap().to_owned();
    let path = format!("/runs/{run}/events");
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..16).map(|_| scope.spawn(|| served.follow(&path, None))).collect();
        let all: Vec<Vec<u64>> = clients
            .into_iter()
            .map(|client| client.join().unwrap().iter().filter_map(|sent| sent.id).collect())
            .collect();
        let records = served.get(&format!("/runs/{run}/records")).body.lines().count() as u64;
        all.iter().for_each(|ids| assert_eq!(*ids, (1..=records).collect::<Vec<_>>()));
    });
}

#[test]
fn a_run_goes_on_when_the_server_is_killed() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]
  a [shape=parallelogram, tool_command=\"sleep 2\", allowed_write_paths=\"\"]
  start -> a -> done }",
    );
    let served = Served::start(&bench);
    let started = served.post("/pipelines", &json!({ "file": "pipeline.dot" }));
    let run = started.is(200).json()["id"].as_str().unwrap().to_owned();
    served.kill();
    let served = Served::start(&bench);
    assert_eq!(served.get("/runs").json()["runs"][0]["id"], run);
    wait_for(&served, &run, "success");
}

#[test]
fn a_start_needs_the_plan_that_was_seen() {
    let bench = Workbench::with_pipeline(TWO_STAGES);
    let served = Served::with(&bench, &[("seen", &[Right::View, Right::Start])]);
    let file = json!({ "file": "pipeline.dot" });
    let plan = served.as_client("seen", "POST /plan", Some(&file)).is(200).json();
    let printed = bench.bare(&["plan", "pipeline.dot", "--json"]).output().unwrap();
    assert_eq!(plan, serde_json::from_slice::<Value>(&printed.stdout).unwrap());
    let digest = plan["digest"].as_str().unwrap().to_owned();
    let unseen = served.as_client("seen", "POST /pipelines", Some(&file));
    assert!(unseen.is(403).json()["message"].as_str().unwrap().contains("`start-unseen`"));
    let with = |digest: &str| json!({ "file": "pipeline.dot", "plan_digest": digest });
    // The pipeline writes more than the client has seen.
    bench.write("pipeline.dot", &TWO_STAGES.replace("allowed_write_paths=\"\"", "allowed_write_paths=\"src/\""));
    let changed = served.as_client("seen", "POST /pipelines", Some(&with(&digest)));
    let changed = changed.is(409).json();
    assert_eq!((&changed["code"], &changed["exit"]), (&json!("plan-changed"), &json!(11)));
    assert!(changed["about"]["difference"].as_str().unwrap().contains("src/"), "{changed}");
    assert!(!bench.has(".glovebox/runs") || served.get("/runs").json()["runs"].as_array().unwrap().is_empty());
    let now = changed["about"]["plan_digest"].as_str().unwrap();
    let started = served.as_client("seen", "POST /pipelines", Some(&with(now)));
    let started = started.is(200).json();
    assert_eq!(started["plan_digest"], now);
    wait_for(&served, started["id"].as_str().unwrap(), "success");
}

#[test]
fn dot_that_does_not_pass_has_the_diagnostics_of_check() {
    let bench = Workbench::new();
    let served = Served::start(&bench);
    let token = format!("Authorization: Bearer {}", served.token);
    let bad = "digraph g { a -> }";
    let refused = served.send("POST /pipelines", &[&token, "Content-Type: text/vnd.graphviz"], bad);
    let refused = refused.is(422).json();
    assert_eq!(refused["exit"], 3);
    let checked = served.send("POST /check", &[&token, "Content-Type: text/vnd.graphviz"], bad);
    assert_eq!(refused["about"], checked.is(200).json());
    assert!(refused["about"][0]["rule"].is_string(), "{refused}");
    let good = served.send("POST /pipelines", &[&token, "Content-Type: text/vnd.graphviz"], TWO_STAGES);
    wait_for(&served, good.is(200).json()["id"].as_str().unwrap(), "success");
}

#[test]
fn a_gate_is_answered_once() {
    let bench = Workbench::with_pipeline(GATE);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(10);
    let served =
        Served::with(&bench, &[("anna", &[Right::View, Right::Operate]), ("bob", &[Right::View, Right::Operate])]);
    let gates = served.get("/pipelines/r/questions").json();
    assert_eq!(gates["gates"][0]["question"], "gate#1");
    let answer = "POST /pipelines/r/questions/gate%231/answer";
    let wrong = served.as_client("anna", answer, Some(&json!({ "value": "maybe" })));
    wrong.is(400);
    let given = served.as_client("anna", answer, Some(&json!({ "value": "F", "text": "tests first" })));
    assert_eq!(given.is(200).json()["state"], "kept");
    let second = served.as_client("bob", answer, Some(&json!({ "value": "S" })));
    assert!(second.is(409).json()["message"].as_str().unwrap().contains("`F` (by anna"), "{second:?}");
    let resumed = served.as_client("anna", "POST /runs/r/resume", None);
    resumed.is(200);
    wait_for(&served, "r", "success");
    let answered = served.follow("/runs/r/events?kind=question.answered", None);
    let answered: Value = serde_json::from_str(&answered[0].data).unwrap();
    let answered = &answered["event"];
    assert_eq!((&answered["how"], &answered["by"]), (&json!("http"), &json!("anna")));
    let late = served.as_client("bob", answer, Some(&json!({ "value": "S" })));
    late.is(409);
}

#[test]
fn a_run_is_canceled_and_applied_only_as_it_was_seen() {
    let bench = ended(TWO_STAGES);
    let served = Served::with(&bench, &[("viewer", &[Right::View, Right::Operate]), ("writer", &[Right::Apply])]);
    let head = served.get("/runs/r").json()["journal"]["hash"].clone();
    let apply = json!({ "head": head });
    served.as_client("viewer", "POST /runs/r/apply", Some(&apply)).is(403);
    let other = json!({ "head": format!("blake3:{}", "1".repeat(64)) });
    served.as_client("writer", "POST /runs/r/apply", Some(&other)).is(409);
    assert!(!bench.has("out.txt"));
    let applied = served.as_client("writer", "POST /runs/r/apply", Some(&apply));
    assert_eq!(applied.is(200).json()["writes"][0]["path"], "out.txt");
    assert_eq!(bench.read("out.txt"), "written\n");
    let canceled = served.as_client("viewer", "POST /pipelines/r/cancel", None);
    assert!(canceled.is(400).json()["message"].as_str().unwrap().contains("has ended"));
}

#[test]
fn a_client_sees_no_text_of_a_stage_with_holdouts() {
    let secret = "forty-two apples in a basket";
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]
  write [shape=parallelogram, tool_command=\"echo hello > answer.txt\", allowed_write_paths=\"answer.txt\"]
  judge [shape=parallelogram, tool_command=\"cat scripts/scenarios/a.sh; exit 1\", allowed_write_paths=\"\", holdout_reader=true]
  start -> write -> judge
  judge -> done [condition=\"outcome=success\"]
}",
    );
    bench.write("scripts/scenarios/a.sh", &format!("#!/bin/sh\necho '{secret}'\n"));
    let run = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    let served =
        Served::with(&bench, &[("view", &[Right::View]), ("builder", &[Right::Builder]), ("all", &[Right::Withheld])]);
    let seen = served.as_client("all", "GET /runs/r/stages/judge/logs", None);
    assert!(seen.is(200).body.contains(secret), "the output of the judge is kept: {seen:?}");
    for name in ["view", "builder"] {
        for route in ROUTES.iter().filter(|route| route.verb == Verb::Get) {
            let (line, _) = request(route);
            for line in [line.clone(), line.replace("write", "judge")] {
                let reply = served.as_client(name, &line, None);
                assert!(!reply.body.contains("forty-two apples"), "{name}: {line}: {}", reply.body);
            }
        }
    }
    served.as_client("view", "GET /runs/r/stages/judge/logs", None).is(403);
    served.as_client("view", "GET /runs/r/stages/write/logs", None).is(200);
    // The order and the times of records tell how often and how long a stage ran, so builders get none.
    served.as_client("builder", "GET /runs/r/records", None).is(403);
    served.as_client("builder", "GET /runs/r/events", None).is(403);
}

#[test]
fn the_page_begins_with_a_code_that_works_once() {
    let bench = Workbench::new();
    let served = Served::start(&bench);
    let code = served.link.split_once("#code=").unwrap().1.to_owned();
    let session = |code: &str| with_body(&served, "POST /session", &[], Some(&json!({ "code": code })));
    let begun = session(&code);
    let begun = begun.is(200).json();
    let token = begun["token"].as_str().unwrap();
    served.as_client(token, "GET /runs", None).is(200);
    assert!(!begun["rights"].as_array().unwrap().contains(&json!("apply")), "{begun}");
    session(&code).is(401);
    session("x").is(401);
    let page = served.send("GET /", &[], "");
    let head = page.is(200).head.to_ascii_lowercase();
    for line in
        ["trusted-types 'none'", "default-src 'none'", "x-content-type-options: nosniff", "frame-ancestors 'none'"]
    {
        assert!(head.contains(line), "{line}: {head}");
    }
    assert!(!head.contains("set-cookie"), "{head}");
}

#[test]
fn odd_requests_open_nothing() {
    let bench = ended(TWO_STAGES);
    std::fs::write(bench.outside().join("secret.txt"), "outside of the project").unwrap();
    let served = Served::start(&bench);
    let token = format!("Authorization: Bearer {}", served.token);
    for path in [
        "/runs/..",
        "/runs/%2e%2e",
        "/runs/..%2f..%2fsecret.txt",
        "/page/..%2f..%2f..%2fsecret.txt",
        "/page/%2fetc%2fpasswd",
        "/runs/r/../../secret.txt",
        "//etc/passwd",
        "/runs/latest",
    ] {
        let reply = served.send(&format!("GET {path}"), &[&token], "");
        assert_eq!(reply.status, 404, "{path}: {reply:?}");
        assert!(!reply.body.contains("outside of"), "{path}");
    }
    let host = &served.host;
    // Shapes of request smuggling.
    for head in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Content-Length: +5\r\n",
        "Content-Length : 5\r\n",
    ] {
        let bytes = format!(
            "POST /session HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{head}\r\n0\r\n\r\nGET /runs HTTP/1.1\r\n\r\n"
        );
        let reply = served.raw(bytes.as_bytes());
        assert!(reply.status == 400 || reply.status == 415 || reply.status == 0, "{head:?}: {reply:?}");
        assert_eq!(reply.body.matches("HTTP/1.1").count(), 0, "{head:?}: {reply:?}");
    }
    for bytes in [
        format!("GET /runs HTTP/1.0\r\nHost: {host}\r\n{token}\r\n\r\n"),
        format!("GET http://evil.example/runs HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n{token}\r\n\r\n"),
    ] {
        assert_eq!(served.raw(bytes.as_bytes()).status, 421, "{bytes}");
    }
    let long = format!("X-Long: {}", "a".repeat(glovebox_serve::connection::HEAD_BYTES_MAX));
    let reply = served.send("GET /runs", &[&token, &long], "");
    assert_eq!(reply.status, 431, "{reply:?}");
    let many: Vec<String> =
        (0..=glovebox_serve::connection::HEAD_FIELDS_MAX).map(|field| format!("X-{field}: a")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(served.send("GET /runs", &many, "").status, 431);
    served.get("/runs").is(200);
}

#[test]
fn slow_heads_end() {
    let served = Served::start(&Workbench::new());
    let mut stream = TcpStream::connect(&served.host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(b"GET /runs HTTP/1.1\r\nHost: ").unwrap();
    let began = Instant::now();
    // This one sends nothing at all.
    let mut idle = TcpStream::connect(&served.host).unwrap();
    idle.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    for stream in [&mut stream, &mut idle] {
        let mut answer = Vec::new();
        let _reset = stream.read_to_end(&mut answer);
        assert!(began.elapsed() < Duration::from_secs(20), "the connection stayed open");
    }
}

#[test]
fn an_open_address_needs_a_certificate_and_tokens() {
    let bench = Workbench::new();
    bench.glovebox(&["serve", "--listen", "0.0.0.0:0"]).ends(2).says("which needs `--tls-cert` and `--tokens`");
    let open = bench.outside().join("tokens.json");
    std::fs::write(&open, r#"{"schema_version":1,"tokens":[]}"#).unwrap();
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o644)).unwrap();
    bench.glovebox(&["serve", "--tokens", "../tokens.json"]).ends(2).says("only you can read").says("chmod 600");
    bench.glovebox(&["serve", "--socket", "s"]).ends(2).says("would be in the project");
}

#[test]
fn a_fork_begins_with_what_a_run_had() {
    let bench = ended(TWO_STAGES);
    let served = Served::start(&bench);
    let forked = served.post("/runs/r/fork", &json!({ "node": "check" }));
    let id = forked.is(200).json()["id"].as_str().unwrap().to_owned();
    wait_for(&served, &id, "success");
    let listed = served.get("/runs").json();
    assert_eq!(listed["runs"][0]["forked_from"], "r", "{listed}");
    let patch = served.get(&format!("/runs/{id}/patch"));
    assert_eq!(patch.is(200).body, bench.glovebox(&["diff", "r"]).ends(0).stdout);
    assert!(patch.head.contains("content-disposition: attachment"), "{}", patch.head);
    served.post("/runs/r/fork", &json!({ "node": "--dangerously-no-sandbox" })).is(400);
}

#[test]
fn a_start_that_is_cut_off_is_whole_or_absent() {
    let bench = Workbench::with_pipeline(TWO_STAGES);
    let body = json!({ "file": "pipeline.dot" }).to_string();
    for wait in [0, 3, 10, 30, 60, 120] {
        let served = Served::start(&bench);
        let mut stream = TcpStream::connect(&served.host).unwrap();
        let head = format!(
            "POST /pipelines HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            served.host,
            served.token,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        served.kill();
    }
    let served = Served::start(&bench);
    for run in served.get("/runs").json()["runs"].as_array().unwrap() {
        wait_for(&served, run["id"].as_str().unwrap(), "success");
    }
}

#[test]
fn no_stage_reaches_the_server() {
    let bench = Workbench::new();
    let served = Served::start(&bench);
    if bench.glovebox(&["doctor", "--json"]).json()["tier"].is_null() {
        return crate::workbench::not_run("a stage that looks for the server", "this machine can confine no command");
    }
    let (host, port) = served.host.split_once(':').unwrap();
    let file = crate::workbench::state_dir().join("serve/owner.token");
    let command = format!("(exec 3<>/dev/tcp/{host}/{port}) && echo reached; cat {}; true", file.display());
    bench.write("look.sh", &command);
    bench.write(
        "look.dot",
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]
  look [shape=parallelogram, tool_command=\"bash look.sh\", allowed_write_paths=\"\"]
  start -> look -> done }",
    );
    bench.glovebox(&["run", "look.dot", "--run-id", "l"]).ends(0);
    let printed = bench.glovebox(&["logs", "l", "look"]);
    printed.never_says("reached").never_says(&served.token);
}

#[test]
fn the_output_of_a_running_stage_is_followed_but_never_beside_hold_outs() {
    let bench = Workbench::with_pipeline(
        "digraph g { graph [goal=g, max_steps=9] start [shape=Mdiamond]; done [shape=Msquare]
  a [shape=parallelogram, tool_command=\"seq 20000; echo first; sleep 3; echo second >&2; sleep 1\", allowed_write_paths=\"\"]
  judge [shape=octagon, command=\"cat scripts/scenarios/secret.txt\", label=open]
  start -> a -> judge -> done }",
    );
    bench.write("scripts/scenarios/secret.txt", "apples in a wicker basket\n");
    let served = Served::start(&bench);
    let started = served.post("/pipelines", &json!({ "file": "pipeline.dot" }));
    let run = started.is(200).json()["id"].as_str().unwrap().to_owned();
    let refused = served.get(&format!("/runs/{run}/stages/judge/output"));
    assert_eq!(refused.is(403).json()["code"], "beside-holdouts");
    std::thread::sleep(Duration::from_secs(2));
    let sent = served.follow(&format!("/runs/{run}/stages/a/output"), None);
    let data: Vec<Value> = sent.iter().map(|sent| serde_json::from_str(&sent.data).unwrap()).collect();
    let names: Vec<&str> = sent.iter().map(|sent| sent.event.as_str()).collect();
    assert_eq!(names.last(), Some(&"end"), "{names:?}");
    // The output began with more than 64 KiB, of which the end was sent.
    let missed = data[names.iter().position(|name| *name == "missed").expect("a part was left out")]["bytes"].as_u64();
    assert!(missed.unwrap() > 10_000, "{missed:?}");
    let of = |stream: &str| -> String {
        data.iter().filter(|data| data["stream"] == stream).map(|data| data["text"].as_str().unwrap()).collect()
    };
    assert!(of("stdout").len() <= 64 << 10 && of("stdout").ends_with("20000\nfirst\n"), "{}", of("stdout").len());
    assert_eq!(of("stderr"), "second\n");
    assert!(sent.iter().all(|sent| !sent.data.contains("wicker")));
    wait_for(&served, &run, "success");
    served.get("/runs/none/stages/a/output").is(404);
}

#[test]
fn a_removed_token_is_not_accepted_any_more() {
    let bench = Workbench::new();
    let served = Served::with(&bench, &[("anna", &[Right::View])]);
    served.as_client("anna", "GET /runs", None).is(200);
    std::fs::write(bench.outside().join("tokens.json"), r#"{"schema_version":1,"tokens":[]}"#).unwrap();
    let began = Instant::now();
    while served.as_client("anna", "GET /runs", None).status != 401 {
        assert!(began.elapsed() < Duration::from_secs(30), "the token is still accepted");
        std::thread::sleep(Duration::from_millis(50));
    }
    served.get("/runs").is(200);
    // A file that cannot be read gives no token either.
    std::fs::write(bench.outside().join("tokens.json"), "{").unwrap();
    served.get("/runs").is(200);
}
