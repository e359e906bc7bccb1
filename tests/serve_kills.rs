//! `glovebox serve` is killed at each step of an answer and of `apply`, with SIGKILL. A new server shows that the answer
//! was recorded once or not at all, and that a project has everything or can be completed by the same request.
//!
//! The steps are those that the files of the run and of the project show: the test looks at them without a pause and kills
//! the server as soon as one is there.

use crate::serve::client::{Reply, Served};
use crate::workbench::Workbench;
use crate::workbench::processes::{Process, descendants};
use glovebox_serve::right::Right;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a step may take.
const WITHIN: Duration = Duration::from_secs(60);
const PEOPLE: &[(&str, &[Right])] =
    &[("anna", &[Right::View, Right::Operate]), ("bob", &[Right::View, Right::Operate])];

/// A step of a request, as the test sees it.
struct Step<'a> {
    name: &'a str,
    is_reached: Box<dyn Fn() -> bool + 'a>,
}

fn step<'a>(name: &'a str, is_reached: impl Fn() -> bool + 'a) -> Step<'a> {
    Step { name, is_reached: Box::new(is_reached) }
}

/// Sends a request, and kills the server when the step is reached. Returns the answer if it had arrived by then.
fn killed_at(served: Served, token: &str, line: &str, body: &Value, step: &Step<'_>) -> Option<u16> {
    let (host, text) = (served.host.clone(), body.to_string());
    let mut stream = TcpStream::connect(&host).unwrap();
    stream.set_read_timeout(Some(WITHIN)).unwrap();
    let head = format!(
        "{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        text.len()
    );
    stream.write_all((head + &text).as_bytes()).unwrap();
    let began = Instant::now();
    while !(step.is_reached)() {
        assert!(began.elapsed() < WITHIN, "{}: the step was not reached", step.name);
    }
    served.kill();
    let mut answer = Vec::new();
    let _reset = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).split(' ').nth(1).and_then(|status| status.parse().ok())
}

/// Returns a condition that is true after this time, for steps that no file shows.
fn timed(time: Duration) -> impl Fn() -> bool {
    let until = Instant::now() + time;
    move || Instant::now() >= until
}

fn wait_for(served: &Served, run: &str, state: &str) {
    let began = Instant::now();
    loop {
        let now = served.get(&format!("/runs/{run}")).json();
        if now["status"] == state {
            return;
        }
        assert!(began.elapsed() < WITHIN, "run {run} is not in state {state}: {now}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the recorded answers of a run.
fn answers(served: &Served, run: &str) -> Vec<Value> {
    let records = served.get(&format!("/runs/{run}/records"));
    let records = records.is(200).body.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.map(|record| record["event"].clone()).filter(|event| event["kind"] == "question.answered").collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

const GATE: &str = "gate [shape=hexagon, label=\"Ship?\"]
  ship [shape=parallelogram, tool_command=\"echo shipped\", allowed_write_paths=\"\"]
  fix  [shape=parallelogram, tool_command=\"echo fixed\", allowed_write_paths=\"\"]
  gate -> ship [label=\"[S] Ship it\"]
  gate -> fix  [label=\"[F] Fix first\"]";

/// Gives the answer `F` as anna and kills the server at a step. Then bob answers `S`: he is told anna's answer, or his is
/// the first. Returns whose answer must be recorded.
fn answered_twice(
    bench: &Workbench,
    served: Served,
    run: &str,
    question: &str,
    step: &Step<'_>,
) -> (Served, &'static str) {
    let line = format!("POST /pipelines/{run}/questions/{}/answer", question.replace('#', "%23").replace('/', "%2F"));
    let answered = killed_at(served, "anna", &line, &json!({ "value": "F", "text": "tests first" }), step);
    let served = Served::again(bench, "127.0.0.1:0");
    let second = served.as_client("bob", &line, Some(&json!({ "value": "S" })));
    let whose = match second.status {
        200 => "bob",
        409 => "anna",
        _ => panic!("{}: {second:?}", step.name),
    };
    if whose == "anna" {
        let message = second.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("`F`") || message.contains("Fix first"), "{}: {message}", step.name);
        assert!(message.contains("by anna"), "{}: {message}", step.name);
    }
    assert!(answered != Some(200) || whose == "anna", "{}: an answer that was accepted is lost", step.name);
    println!("{}: anna got {answered:?}, {whose} answered", step.name);
    (served, whose)
}

#[test]
fn an_answer_is_kept_once_or_not_at_all_wherever_the_server_is_killed() {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{ start; exit\n {GATE}\n start -> gate; ship -> exit; fix -> exit }}\n"
    ));
    let mut served = Served::with(&bench, PEOPLE);
    let mut answered = Vec::new();
    for number in 0..9 {
        let run = format!("r{number}");
        bench.glovebox(&["run", "pipeline.dot", "--run-id", &run]).ends(10);
        let inbox = bench.run_folder(&run).join("inbox");
        let is_whole = |name: &String| name.starts_with("answer-");
        let step = match number {
            0 => step("before it is read", || true),
            1 => step("the folder is there", || inbox.is_dir()),
            2 => step("a part is written", || !names(&inbox).is_empty()),
            3 => step("the answer is kept", || names(&inbox).iter().any(is_whole)),
            4 => step("only the answer is there", || matches!(&names(&inbox)[..], [one] if is_whole(one))),
            _ => step("after some time", timed(Duration::from_millis([0, 2, 5, 10, 400][number - 4]))),
        };
        let whose;
        (served, whose) = answered_twice(&bench, served, &run, "gate#1", &step);
        served.as_client("bob", &format!("POST /runs/{run}/resume"), None).is(200);
        wait_for(&served, &run, "success");
        let recorded = answers(&served, &run);
        assert_eq!(recorded.len(), 1, "{}: {recorded:?}", step.name);
        assert_eq!((&recorded[0]["by"], &recorded[0]["how"]), (&json!(whose), &json!("http")), "{}", step.name);
        let node = if whose == "anna" { "fix" } else { "ship" };
        assert!(served.get(&format!("/runs/{run}")).body.contains(node), "{}", step.name);
        answered.push(whose);
    }
    // The first step is before the answer, and the fourth after it.
    assert!(answered.contains(&"bob") && answered.contains(&"anna"), "{answered:?}");
}

#[test]
fn a_run_that_goes_on_records_an_answer_once_wherever_the_server_is_killed() {
    let bench = Workbench::new();
    let flags = bench.outside().join("flags");
    std::fs::create_dir(&flags).unwrap();
    let shown = flags.to_str().unwrap();
    bench
        .write("glovebox.toml", &format!("[sandbox]\nread = [\"{shown}\"]\n[exec]\nenv = {{ FLAGS = \"{shown}\" }}\n"));
    bench.write(
        "pipeline.dot",
        &format!(
            "digraph g {{ start; exit; fork [shape=component]; join [shape=tripleoctagon]\n {GATE}
  work [shape=parallelogram, tool_command=\"for i in $(seq 1200); do [ -e $FLAGS/go ] && break; sleep 0.05; done\", allowed_write_paths=\"\"]
  start -> fork; fork -> gate; fork -> work -> join; ship -> join; fix -> join; join -> exit }}\n"
        ),
    );
    let mut served = Served::with(&bench, PEOPLE);
    for number in 0..4 {
        let started = served.post("/pipelines", &json!({ "file": "pipeline.dot" }));
        let run = started.is(200).json()["id"].as_str().unwrap().to_owned();
        let began = Instant::now();
        let question = loop {
            let gates = served.get(&format!("/runs/{run}/gates")).json();
            if let Some(question) = gates["gates"][0]["question"].as_str() {
                break question.to_owned();
            }
            assert!(began.elapsed() < WITHIN, "{gates}");
            std::thread::sleep(Duration::from_millis(50));
        };
        let inbox = bench.run_folder(&run).join("inbox");
        let is_recorded = || {
            let text = std::fs::read_to_string(bench.run_folder(&run).join("progress.ndjson"));
            text.is_ok_and(|text| text.contains("question.answered"))
        };
        let step = match number {
            0 => step("before it is read", || true),
            1 => step("a part is written", || !names(&inbox).is_empty()),
            2 => step("the answer is kept", || {
                is_recorded() || names(&inbox).iter().any(|name| name.starts_with("answer-"))
            }),
            _ => step("the answer is recorded", is_recorded),
        };
        let whose;
        (served, whose) = answered_twice(&bench, served, &run, &question, &step);
        std::fs::write(flags.join("go"), "").unwrap();
        // An answer that comes just before the run pauses is kept for the resume.
        let began = Instant::now();
        while served.get(&format!("/runs/{run}")).json()["status"] == "running" {
            assert!(began.elapsed() < WITHIN);
            std::thread::sleep(Duration::from_millis(50));
        }
        if served.get(&format!("/runs/{run}")).json()["status"] == "paused" {
            served.as_client("bob", &format!("POST /runs/{run}/resume"), None).is(200);
        }
        wait_for(&served, &run, "success");
        let recorded = answers(&served, &run);
        assert_eq!(recorded.len(), 1, "{}: {recorded:?}", step.name);
        assert_eq!((&recorded[0]["by"], &recorded[0]["how"]), (&json!(whose), &json!("http")), "{}", step.name);
        std::fs::remove_file(flags.join("go")).unwrap();
    }
}

/// Number of files that the run of the test writes.
const FILES: usize = 150;

fn new_text(number: usize) -> String {
    format!("new {number} {}\n", "x".repeat(4_000))
}

/// Returns every file of the folder that the run changes.
fn project(bench: &Workbench) -> BTreeMap<String, String> {
    let files = bench.snapshot().into_iter();
    let files = files.filter(|(name, _)| name.starts_with("out/"));
    files.map(|(name, text)| (name, String::from_utf8(text).unwrap())).collect()
}

/// Returns what the project has before and after `apply`.
fn before_and_after() -> [BTreeMap<String, String>; 2] {
    let mut before = BTreeMap::new();
    let mut after = BTreeMap::new();
    for number in 0..FILES {
        let path = format!("out/{:02}/{number:03}.txt", number / 10);
        if number % 3 == 0 {
            before.insert(path.clone(), format!("old {number}\n"));
        }
        after.insert(path, new_text(number));
    }
    (0..20).for_each(|number| drop(before.insert(format!("out/gone/{number:02}.txt"), "gone\n".to_owned())));
    [before, after]
}

#[test]
fn apply_is_completed_by_the_same_request_wherever_the_server_is_killed() {
    let bench = Workbench::with_pipeline(
        "digraph g { start; exit
  write [shape=parallelogram, tool_command=\"sh make.sh\", allowed_write_paths=\"out/\"]
  start -> write -> exit }
",
    );
    let make = format!(
        "rm -r out/gone\nlong=$(head -c 4000 /dev/zero | tr '\\0' x)\nfor i in $(seq 0 {}); do n=$(printf %03d $i); mkdir -p out/${{n%?}}; echo \"new $i $long\" > out/${{n%?}}/$n.txt; done\n",
        FILES - 1
    );
    bench.write("make.sh", &make);
    let [before, after] = before_and_after();
    let restore = || {
        let _not_there = std::fs::remove_dir_all(bench.project().join("out"));
        before.iter().for_each(|(path, text)| bench.write(path, text));
    };
    restore();
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    let mut served = Served::with(&bench, &[("writer", &[Right::View, Right::Apply])]);
    let apply = json!({ "head": served.get("/runs/r").json()["journal"]["hash"] });
    let path = |number: usize| -> PathBuf { bench.project().join(format!("out/{:02}/{number:03}.txt", number / 10)) };
    let mut partial = 0;
    for number in 0..10 {
        let is_new = |number: usize| std::fs::metadata(path(number)).is_ok_and(|found| found.len() > 4_000);
        let step = match number {
            0 => step("before it is read", || true),
            1 => step("the first file is removed", || names(&bench.project().join("out/gone")).len() < 20),
            2 => step("all files are removed", || !bench.project().join("out/gone").exists()),
            3 => step("the first file is written", || is_new(0)),
            4 => step("a part is written", || {
                names(&bench.project().join("out/05")).iter().any(|name| name.starts_with(".glovebox-part-"))
                    || is_new(59)
            }),
            5 => step("half of the files are written", || is_new(FILES / 2)),
            6 => step("the last file is written", || is_new(FILES - 1)),
            _ => step("after some time", timed(Duration::from_millis([1, 5, 2_000][number - 7]))),
        };
        let answered = killed_at(served, "writer", "POST /runs/r/apply", &apply, &step);
        // Each path has its old or its new content. A part that was not renamed is a file with a name of its own.
        let left = project(&bench);
        for (path, text) in left.iter().filter(|(path, _)| !path.contains("/.glovebox-part-")) {
            assert!(before.get(path) == Some(text) || after.get(path) == Some(text), "{}: {path}", step.name);
        }
        let (old, new) = (before.len(), after.len());
        assert!(answered != Some(200) || left == after, "{}: accepted and not written", step.name);
        let is_partial = left != before && left != after;
        println!("{}: answered {answered:?}, {} files of {old} before and {new} after", step.name, left.len());
        partial += usize::from(is_partial);
        served = Served::again(&bench, "127.0.0.1:0");
        // The same request writes the rest.
        let again = served.as_client("writer", "POST /runs/r/apply", Some(&apply));
        let again = again.is(200).json();
        assert_eq!(project(&bench), after, "{}", step.name);
        assert_eq!(again["writes"].as_array().unwrap().is_empty(), left == after, "{}: {again}", step.name);
        // And a third one finds nothing to write.
        let third = served.as_client("writer", "POST /runs/r/apply", Some(&apply)).is(200).json();
        assert_eq!((&third["writes"], &third["deletes"]), (&json!([]), &json!([])), "{}", step.name);
        restore();
    }
    assert!(partial >= 3, "the server was killed within `apply` only {partial} times");
    // A project that somebody changed meanwhile is not touched.
    bench.write("out/00/000.txt", "changed by somebody\n");
    let changed = project(&bench);
    let refused = served.as_client("writer", "POST /runs/r/apply", Some(&apply));
    assert!(refused.is(403).json()["message"].as_str().unwrap().contains("nothing was written"), "{refused:?}");
    assert_eq!(project(&bench), changed);
}

#[test]
fn requests_at_the_same_time_apply_once_and_answer_once() {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{ start; exit; make [shape=parallelogram, tool_command=\"sh make.sh\", allowed_write_paths=\"out/\"]\n {GATE}\n start -> make -> gate; ship -> exit; fix -> exit }}\n"
    ));
    bench.write("make.sh", "mkdir out; for i in $(seq 200); do seq $i 400 > out/$i.txt; done\n");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(10);
    let served = Served::with(&bench, PEOPLE);
    let at_once = |line: &str, bodies: &[Value]| -> Vec<Reply> {
        std::thread::scope(|scope| {
            let send = |body| served.as_client(&served.token, line, Some(body));
            let clients: Vec<_> = bodies.iter().map(|body| scope.spawn(move || send(body))).collect();
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        })
    };
    let values: Vec<Value> = (0..8)
        .map(|number| json!({ "value": if number % 2 == 0 { "S" } else { "F" }, "text": number.to_string() }))
        .collect();
    let replies = at_once("POST /pipelines/r/questions/gate%231/answer", &values);
    let accepted: Vec<usize> = (0..8).filter(|number| replies[*number].status == 200).collect();
    assert!(accepted.len() == 1 && replies.iter().all(|reply| matches!(reply.status, 200 | 409)), "{replies:?}");
    served.post("/runs/r/resume", &json!({})).is(400);
    served.as_client(&served.token, "POST /runs/r/resume", None).is(200);
    wait_for(&served, "r", "success");
    let recorded = answers(&served, "r");
    assert_eq!((recorded.len(), &recorded[0]["text"]), (1, &json!(accepted[0].to_string())));
    let apply = json!({ "head": served.get("/runs/r").json()["journal"]["hash"] });
    let replies = at_once("POST /runs/r/apply", &vec![apply; 6]);
    let written = replies.iter().filter(|reply| !reply.is(200).json()["writes"].as_array().unwrap().is_empty());
    assert_eq!(written.count(), 1, "{replies:?}");
    for number in 1..=200 {
        let expected: String = (number..=400).map(|line| format!("{line}\n")).collect();
        assert_eq!(bench.read(&format!("out/{number}.txt")), expected);
    }
    assert_eq!(names(&bench.project().join("out")).len(), 200);
}

/// A terminal that closes ends the processes of its session: a run must have one of its own.
#[test]
fn a_start_and_a_fork_leave_the_session_of_the_server() {
    let bench = Workbench::with_pipeline(
        "digraph g { start; exit; a [shape=parallelogram, tool_command=\"sh wait.sh\", allowed_write_paths=\"\"]\n start -> a -> exit }\n",
    );
    bench.write("wait.sh", "sleep 3\n");
    let served = Served::start(&bench);
    let session = |process: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit_once(')').and_then(|(_, fields)| fields.split_whitespace().nth(3)?.parse::<i32>().ok())
    };
    let own = session(served.process()).unwrap();
    // Returns the session of the program that the server started with this command.
    let of_command = |command: &str| {
        let is_it = |process: &Process| {
            let line = std::fs::read_to_string(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
            line.split('\0').nth(1) == Some(command)
        };
        let process =
            descendants(served.process()).into_iter().find(is_it).unwrap_or_else(|| panic!("no `{command}` runs"));
        (process.pid, session(process.pid).unwrap())
    };
    let started = served.post("/pipelines", &json!({ "file": "pipeline.dot" })).is(200).json();
    let (process, of_run) = of_command("run");
    assert!(of_run == process && of_run != own, "{process} is in session {of_run}, the server in {own}");
    let run = started["id"].as_str().unwrap();
    wait_for(&served, run, "success");
    let forked = served.post(&format!("/runs/{run}/fork"), &json!({ "node": "a" })).is(200).json();
    let (process, of_fork) = of_command("fork");
    assert!(of_fork == process && of_fork != own, "{process} is in session {of_fork}, the server in {own}");
    wait_for(&served, forked["id"].as_str().unwrap(), "success");
}
