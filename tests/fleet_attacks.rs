//! Attacks on a fleet: by users of the servers without admission, by machines that lie, and by people who begin hostile runs.

use crate::fleet_runs::{Fleet, TWO, of_kind};
use crate::workbench::Answer;
use crate::workbench::raw_nats::RawNats;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use glovebox_journal::event::chain;
use glovebox_record::Digest;
use glovebox_signing::envelope::{Envelope, PayloadType};
use glovebox_signing::key::SigningKey;
use serde_json::{Value, json};
use std::io::Read as _;
use std::process::Stdio;

/// A machine that an attacker controls: its key, and a connection to the servers.
struct Attacker {
    name: String,
    key: SigningKey,
    nats: RawNats,
    /// The id of the fleet.
    fleet: String,
}

impl Attacker {
    /// Uses the key of a machine that is admitted already, or of one that never is.
    fn new(fleet: &Fleet, name: &str, key: SigningKey) -> Self {
        let mut nats = RawNats::connect(&fleet.servers.addresses()[0]);
        let settings: Value = serde_json::from_slice(&nats.stored("gb", "gb.f")[0]).unwrap();
        let settings = STANDARD.decode(settings["payload"].as_str().unwrap()).unwrap();
        let settings: Value = serde_json::from_slice(&settings).unwrap();
        Self { name: name.to_owned(), key, nats, fleet: settings["id"].as_str().unwrap().to_owned() }
    }

    fn sign(&self, kind: PayloadType, payload: &Value) -> Vec<u8> {
        Envelope::sign(kind, payload.to_string().as_bytes(), &[&self.key]).to_line().into_bytes()
    }

    /// Asks the driver of a run.
    fn ask(&mut self, run: &str, ask: &Value) -> Value {
        let question = json!({ "protocol": 1, "fleet": self.fleet, "run": run, "machine": self.name, "ask": ask });
        let question = self.sign(PayloadType::FLEET_QUESTION, &question);
        let answer = self.nats.request(&format!("gb.c.{run}"), &question);
        let signed: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let signed = STANDARD.decode(signed["payload"].as_str().unwrap_or_default()).unwrap();
        let answer: Value = serde_json::from_slice(&signed).unwrap_or_default();
        answer["content"]["answer"].clone()
    }

    /// Returns the records of a run with their numbers.
    fn journal(&mut self, run: &str) -> Vec<(u64, Value)> {
        let frames = self.nats.stored("gb", &format!("gb.r.{run}"));
        let records = frames.iter().flat_map(|frame| {
            let text = std::str::from_utf8(frame).unwrap();
            let (header, lines) = text.split_once('\n').unwrap();
            let first = serde_json::from_str::<Value>(header).unwrap()["first"].as_u64().unwrap();
            let record = move |(at, line)| (first + at, serde_json::from_str(line).unwrap());
            (0..).zip(lines.split('\n')).map(record).collect::<Vec<(u64, Value)>>()
        });
        records.collect()
    }

    /// Waits for the first record of a kind.
    fn wait_for(&mut self, fleet: &Fleet, run: &str, kind: &str) -> (u64, Value) {
        let mut found = None;
        fleet.wait_until(kind, || {
            found = self.journal(run).into_iter().find(|(_, event)| event["kind"] == kind);
            found.is_some()
        });
        found.unwrap()
    }

    /// Asks for a task until the driver claims it for this machine. Returns the order.
    fn claim(&mut self, fleet: &Fleet, run: &str, ready_seq: u64, task: &Value) -> Value {
        let facts = json!({ "labels": [], "arch": "x86_64", "tier": "full" });
        let ask = json!({ "claim": { "task": task, "ready_seq": ready_seq, "facts": facts } });
        let mut order = Value::Null;
        fleet.wait_until("the attempt is claimed", || {
            order = self.ask(run, &ask)["order"].clone();
            order.is_object()
        });
        order
    }
}

fn key_of(fleet: &Fleet, name: &str) -> SigningKey {
    SigningKey::from_pem(&std::fs::read(fleet.state(name).join("fleet/machine.key")).unwrap()).unwrap()
}

fn stranger() -> SigningKey {
    SigningKey::from_seed(&[9; 32]).unwrap()
}

/// Returns the parts of an event that say which attempt it is about.
fn attempt_of(started: &Value) -> serde_json::Map<String, Value> {
    let mut attempt = started.as_object().unwrap().clone();
    ["kind", "worker", "machine"].iter().for_each(|name| drop(attempt.remove(*name)));
    attempt
}

/// Returns the result of the first stage of a run on this machine, as one of another attempt.
fn result_of(fleet: &Fleet, started: &Value, notes: &str) -> Value {
    let mut finished = of_kind(&fleet.records("here"), "stage.finished")[0].clone();
    ["kind", "stdout", "stderr"].iter().for_each(|name| drop(finished.as_object_mut().unwrap().remove(*name)));
    finished["artifacts"] = json!([]);
    finished.as_object_mut().unwrap().extend(attempt_of(started));
    finished["outcome"]["notes"] = notes.into();
    finished
}

fn made(fleet: &str, machine: &str, token: u64, finished: &Value) -> Value {
    json!({ "made": { "protocol": 1, "fleet": fleet, "machine": machine, "token": token, "finished": finished } })
}

/// Stores bytes as a blob of the fleet, under a name that may be that of others.
fn store(fleet: &Fleet, name: &Digest, bytes: &[u8]) {
    let hex = name.hex();
    let folder = fleet.bench.outside().join("store/blobs").join(&hex[..2]);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(hex), bytes).unwrap();
}

fn deep() -> Vec<u8> {
    [vec![b'['; 400_000], vec![b']'; 400_000]].concat()
}

/// Whoever can store results, before and after the real one, changes nothing: neither without an admission, nor as a machine for
/// which the attempt was not claimed. Such a machine cannot end, keep or take the attempt of another one.
#[test]
fn a_result_of_another_machine_is_dropped_and_the_run_goes_on() {
    let Some(mut fleet) = Fleet::start(&TWO.replace("mkdir -p out", "sleep 5 && mkdir -p out")) else { return };
    fleet.bench.glovebox(&["run", "pipeline.dot", "--run-id", "here"]).ends(0);
    fleet.admit("evil", "build,verify");
    fleet.work_as("driver", "drive", &[]);
    fleet.work_as("maker", "build,verify", &["--seats", "1"]);
    let mut follower = fleet.command(&["run", "pipeline.dot", "--run-id", "r"]);
    let mut follower = follower.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut evil = Attacker::new(&fleet, "evil", key_of(&fleet, "evil"));
    let (token, started) = evil.wait_for(&fleet, "r", "stage.started");
    assert_eq!(started["machine"], "maker");
    let attempt = started["attempt_id"].as_str().unwrap();
    let subject = format!("gb.x.r.{attempt}");
    let finished = result_of(&fleet, &started, "forged");
    let unknown = Attacker::new(&fleet, "maker", stranger());
    for message in [
        b"garbage".to_vec(),
        deep(),
        vec![b'x'; 1_000_000],
        unknown.sign(PayloadType::FLEET_RESULT, &made(&evil.fleet, "maker", token, &finished)),
        evil.sign(PayloadType::FLEET_RESULT, &made(&evil.fleet, "evil", token, &finished)),
        evil.sign(PayloadType::FLEET_RESULT, &made(&evil.fleet, "maker", token, &finished)),
    ] {
        evil.nats.publish(&subject, &message);
    }
    for ask in [
        json!({ "made": { "attempt": attempt, "goes_on": true } }),
        json!({ "give-back": { "attempt": attempt, "reason": "x" } }),
        json!({ "reserve": { "attempt": attempt, "node": "a", "held": { "tokens": 9, "cost": 9 }, "wanted": { "tokens": 9, "cost": 9 } } }),
        json!({ "beat": { "attempt": attempt, "counts": { "beats": 1, "tool_calls_started": 0, "tool_calls_ended": 0,
            "text_deltas": 0, "text_bytes": 0, "output_bytes": 0 }, "waits_for": null, "steered": 0 } }),
    ] {
        let answer = evil.ask("r", &ask);
        assert!(!answer.is_null() && answer["order"].is_null() && answer != "granted", "{ask}: {answer}");
    }
    // Questions that no machine asks.
    let questions = [b"garbage".to_vec(), deep(), vec![b'x'; 1_000_000]];
    questions.iter().for_each(|question| evil.nats.publish("gb.c.r", question));
    evil.nats.publish("gb.n.r", b"a note\x1b[2J\x1b]0;title\x07\nand more");
    assert!(follower.wait().unwrap().success(), "{}", fleet.said());
    let mut told = String::new();
    follower.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(told.contains("a note") && !told.contains('\u{1b}') && !told.contains('\u{7}'), "{told:?}");
    let records = fleet.records("r");
    assert_eq!(of_kind(&records, "stage.started").len(), 2, "no attempt was lost: {records:?}");
    for finished in of_kind(&records, "stage.finished") {
        assert!(finished["machine"] == "maker" && finished["outcome"]["notes"] != "forged", "{finished}");
    }
    fleet.bench.glovebox(&["diff", "r"]).ends(0).says("by-a").says("by-b");
}

/// Returns results that are like one that counts, each with one part that is a lie.
fn lies_like(like: &Value, missing: &Digest, rotten: &Digest) -> [Value; 13] {
    let result = |change: &dyn Fn(&mut Value)| {
        let mut finished = like.clone();
        change(&mut finished);
        finished
    };
    let file = |change: &dyn Fn(&mut Value)| {
        result(&|finished: &mut Value| {
            let changes = finished["changes"].as_array_mut().unwrap();
            change(changes.iter_mut().find(|change| change["path"] == "out/a.txt").unwrap());
        })
    };
    [
        file(&|file| file["path"] = "src.txt".into()),
        file(&|file| file["path"] = "out/.git/config".into()),
        file(&|file| file["path"] = "../escaped".into()),
        file(&|file| file["digest"] = missing.to_string().into()),
        file(&|file| file["digest"] = rotten.to_string().into()),
        file(&|file| file["bytes"] = 5.into()),
        file(&|file| file["bytes"] = u64::MAX.into()),
        file(&|file| file["mode"] = 0o4755.into()),
        file(&|file| {
            *file = json!({ "path": "out/l", "op": "symlink", "target": "/etc/passwd" });
        }),
        result(&|finished| finished["handler"] = "verify".into()),
        result(&|finished| finished["ordinal"] = 7.into()),
        result(&|finished| finished["node"] = "b".into()),
        result(&|finished| finished["duration_ms"] = u64::MAX.into()),
    ]
}

/// Of a machine that makes a stage, only a result counts that is of this claim, keeps to the scope of the stage, and names blobs
/// that are stored and whole. The first one counts.
#[test]
fn a_machine_that_lies_about_its_own_stage_is_not_believed() {
    let Some(mut fleet) = Fleet::start(TWO) else { return };
    fleet.bench.glovebox(&["run", "pipeline.dot", "--run-id", "here"]).ends(0);
    fleet.admit("evil", "build,verify");
    fleet.work_as("driver", "drive", &[]);
    fleet.with(&["run", "pipeline.dot", "--run-id", "r", "--detach"]).ends(0);
    let mut evil = Attacker::new(&fleet, "evil", key_of(&fleet, "evil"));
    let (ready_seq, mut task) = evil.wait_for(&fleet, "r", "stage.ready");
    ["kind", "ordinal", "due_at"].iter().for_each(|name| drop(task.as_object_mut().unwrap().remove(*name)));
    let order = evil.claim(&fleet, "r", ready_seq, &task);
    let (token, started) = evil.wait_for(&fleet, "r", "stage.started");
    assert_eq!((&started["machine"], &order["task"]["token"]), (&json!("evil"), &json!(token)));
    let attempt = started["attempt_id"].as_str().unwrap().to_owned();
    let subject = format!("gb.x.r.{attempt}");
    let bytes = b"evil, and in the scope\n";
    let (whole, missing, rotten) = (Digest::hash(bytes), Digest::hash(b"missing"), Digest::hash(b"rotten"));
    store(&fleet, &whole, bytes);
    store(&fleet, &rotten, bytes);
    let result = |notes: &str, change: &dyn Fn(&mut Value)| {
        let mut finished = result_of(&fleet, &started, notes);
        let changes = finished["changes"].as_array_mut().unwrap();
        let file = changes.iter_mut().find(|change| change["path"] == "out/a.txt").unwrap();
        (file["digest"], file["bytes"]) = (whole.to_string().into(), bytes.len().into());
        change(&mut finished);
        finished
    };
    for lie in &lies_like(&result("a lie", &|_| {}), &missing, &rotten) {
        evil.nats.publish(&subject, &evil.sign(PayloadType::FLEET_RESULT, &made(&evil.fleet, "evil", token, lie)));
    }
    let lie = result("a lie", &|_| {});
    let elsewhere = made("01ARZ3NDEKTSV4RRFFQ69G5FAV", "evil", token, &lie);
    for message in
        [elsewhere, made(&evil.fleet, "evil", token + 1, &lie), json!({ "blob": missing }), json!({ "blob": rotten })]
    {
        evil.nats.publish(&subject, &evil.sign(PayloadType::FLEET_RESULT, &message));
    }
    let question = evil.sign(PayloadType::FLEET_QUESTION, &made(&evil.fleet, "evil", token, &lie));
    evil.nats.publish(&subject, &question);
    // The same forms with a result that is not a lie: it counts, and nothing after it does.
    for notes in ["the first", "the second"] {
        let good = result(notes, &|_| {});
        evil.nats.publish(&subject, &evil.sign(PayloadType::FLEET_RESULT, &made(&evil.fleet, "evil", token, &good)));
    }
    let answer = evil.ask("r", &json!({ "made": { "attempt": attempt, "goes_on": true } }));
    let next = answer["order"]["task"]["attempt"].as_str().unwrap_or_else(|| panic!("{answer}: {}", fleet.said()));
    evil.ask("r", &json!({ "give-back": { "attempt": next, "reason": "\u{1b}[2Jno" } }));
    assert!(!fleet.said().contains('\u{1b}'), "{:?}", fleet.said());
    fleet.work_as("maker", "build,verify", &["--seats", "1"]);
    fleet.pulled("r");
    let records = fleet.records("r");
    let finished = of_kind(&records, "stage.finished");
    assert_eq!(finished.len(), 2, "{finished:?}");
    assert_eq!((&finished[0]["machine"], &finished[0]["outcome"]["notes"]), (&json!("evil"), &json!("the first")));
    assert_eq!(finished[1]["machine"], "maker");
    fleet.bench.glovebox(&["diff", "r"]).ends(0).says("evil, and in the scope").never_says("src.txt");
}

/// Appends a first frame like another one, as an admitted client with a program of its own.
fn begin_like(fleet: &Fleet, nats: &mut RawNats, run: &str, change: impl Fn(&mut Value)) {
    let frame = nats.stored("gb", "gb.r.honest").remove(0);
    let text = String::from_utf8(frame).unwrap();
    let (header, lines) = text.split_once('\n').unwrap();
    let fields: Value = serde_json::from_str(header).unwrap();
    let at = jiff::Timestamp::from_millisecond(fields["at"].as_i64().unwrap()).unwrap();
    let mut hash = Digest::ZERO;
    let lines: Vec<String> = (1..)
        .zip(lines.split('\n'))
        .map(|(seq, line)| {
            let mut event: Value = serde_json::from_str(line).unwrap();
            if seq == 1 {
                event["run_id"] = run.into();
                change(&mut event);
            }
            let line = event.to_string();
            hash = chain(&hash, seq, at, &line);
            line
        })
        .collect();
    let unsigned = header.split_once(",\"signature\":").unwrap().0.to_owned() + "}";
    let unsigned = unsigned
        .replace("\"run\":\"honest\"", &format!("\"run\":{}", json!(run)))
        .replace(fields["hash"].as_str().unwrap(), &hash.to_string());
    let signature = PayloadType::FLEET_FRAME.sign(unsigned.as_bytes(), &key_of(fleet, "client"));
    let header = unsigned.strip_suffix('}').unwrap().to_owned() + &format!(",\"signature\":\"{signature}\"}}");
    let is_plain = run.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let token = if is_plain { run.to_owned() } else { format!("={}", Digest::hash(run.as_bytes()).hex()) };
    nats.publish(&format!("gb.r.{token}"), format!("{header}\n{}", lines.join("\n")).as_bytes());
    nats.publish(&format!("gb.q.drive.{token}"), json!({ "run": run, "seq": 1 }).to_string().as_bytes());
}

/// A run that an admitted person makes up is refused by every machine, leaves nothing there, and stops no other run.
#[test]
fn a_hostile_run_is_refused_and_leaves_nothing() {
    let Some(mut fleet) = Fleet::start(TWO) else { return };
    fleet.with(&["run", "pipeline.dot", "--run-id", "honest", "--detach"]).ends(0);
    let mut nats = RawNats::connect(&fleet.servers.addresses()[0]);
    let blob = |text: &str| {
        let digest = Digest::hash(text.as_bytes());
        store(&fleet, &digest, text.as_bytes());
        digest.to_string()
    };
    let base = |files: Value, links: Value| {
        blob(&json!({ "files": files, "symlinks": links, "directories": [], "skipped": [] }).to_string())
    };
    let of = |digest: Digest, bytes: u64| json!({ "digest": digest.to_string(), "bytes": bytes, "executable": false });
    let huge = base(json!({ "src.txt": of(Digest::hash(b"x"), 1 << 40) }), json!({}));
    let link = base(json!({}), json!({ "src.txt": "/etc/passwd" }));
    let (up, config) = ("../../../../escaped", blob("x"));
    let bomb = blob(&json!({ "version": 1, "packs": [{ "digest": config, "files": [config] }] }).to_string());
    begin_like(&fleet, &mut nats, "huge", |event| event["base_digest"] = huge.clone().into());
    begin_like(&fleet, &mut nats, "link", |event| event["base_digest"] = link.clone().into());
    begin_like(&fleet, &mut nats, "bomb", |event| event["packs_digest"] = bomb.clone().into());
    begin_like(&fleet, &mut nats, "other", |event| event["run_id"] = "honest".into());
    begin_like(&fleet, &mut nats, "up", |event| event["settings"]["setting_files"] = json!({ up: config }));
    begin_like(&fleet, &mut nats, "named\u{1b}[2J\n/../../x", |event| event["base_digest"] = huge.clone().into());
    begin_like(&fleet, &mut nats, "moved", |event| event["source_dir"] = "../../usr/bin".into());
    nats.publish("gb.q.drive.none", json!({ "run": "none", "seq": 1 }).to_string().as_bytes());
    nats.publish("gb.q.drive.deep", &deep());
    fleet.work("one", &["--seats", "1"]);
    fleet.pulled("honest");
    // Only the path that commands see depends on the folder that the first record names.
    fleet.pulled("moved");
    for expected in [
        "run huge: run `huge` cannot be made here: the list of its files: its files have more than",
        "run link: run `link` cannot be made here: the list of its files: the link `src.txt`: its target is absolute",
        "a file that the run does not have",
        "run other: run `other` cannot be made here: its first record is that of another run",
        "the path of a setting",
        "run named",
    ] {
        fleet.wait_until(expected, || fleet.said().contains(expected));
    }
    assert!(!fleet.said().contains('\u{1b}'), "{:?}", fleet.said());
    let machine = fleet.bench.outside().join("machines/one");
    let left: Vec<String> = ["honest", "moved"].map(|run| Digest::hash(run.as_bytes()).hex()).into();
    fleet.wait_until("nothing is left", || {
        let names = std::fs::read_dir(&machine).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        // Contents of files that runs share have a folder of their own.
        names.filter(|name| name != "lock" && !name.starts_with("contents-")).all(|name| left.contains(&name))
    });
    for folder in [&machine, &machine.join(&left[0])] {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700, "{}", folder.display());
    }
    assert!(!machine.join(up).exists() && !fleet.bench.outside().join("escaped").exists());
}

/// A stage without any network gives what it reads to the fleet. So the user of the machine must allow each folder and each
/// variable that the settings of a run name.
#[test]
fn a_machine_shows_nothing_of_its_own_that_its_user_did_not_allow() {
    let Some(mut fleet) = Fleet::start(TWO) else { return };
    let secrets = fleet.bench.outside().join("secrets");
    std::fs::create_dir(&secrets).unwrap();
    std::fs::write(secrets.join("key"), "the secret of the machine\n").unwrap();
    let folder = secrets.display().to_string();
    fleet.bench.write("glovebox.toml", &format!("[sandbox]\nread = [{folder:?}]\n"));
    fleet.bench.write("pipeline.dot", &TWO.replace("cp src.txt", &format!("cp {folder}/key")));
    fleet.work("one", &["--seats", "1"]);
    fleet.with(&["run", "pipeline.dot", "--run-id", "r", "--detach"]).ends(0);
    let refusal = format!("this machine does not allow that `folder {folder}` goes to `fleet`");
    fleet.wait_until("the stage is refused", || fleet.said().contains(&refusal));
    assert!(fleet.said().contains(&format!("glovebox work --allow 'folder {folder} to fleet'")), "{}", fleet.said());
    let allowed = format!("folder {folder} to fleet");
    fleet.work("two", &["--seats", "1", "--no-drive", "--allow", &allowed]);
    fleet.pulled("r");
    let records = fleet.records("r");
    let finished = of_kind(&records, "stage.finished");
    assert!(finished.len() == 2 && finished.iter().all(|record| record["machine"] == "two"), "{finished:?}");
    fleet.bench.glovebox(&["diff", "r"]).ends(0).says("the secret of the machine");
}

/// The person who begins a run chooses its models. So a machine asks none that its user did not allow: not even a provider with
/// the usual key, and no service of the machine.
#[test]
fn a_machine_asks_no_model_that_its_user_did_not_allow() {
    let asks =
        "digraph asks { start [shape=Mdiamond]; exit [shape=Msquare]; greet [prompt=hello]; start -> greet -> exit }";
    let Some(mut fleet) = Fleet::start(asks) else { return };
    fleet.work("one", &["--seats", "1"]);
    let models = [
        ("usual", "provider = \"anthropic\"", "`env ANTHROPIC_API_KEY` goes to `https://api.anthropic.com`"),
        (
            "local",
            "provider = \"openai-compatible\"\nendpoint = \"http://127.0.0.1:9/v1\"",
            "`service http://127.0.0.1:9` goes to `fleet`",
        ),
        (
            "near",
            "provider = \"openai-compatible\"\nendpoint = \"http://10.0.0.5:9/v1\"",
            "`service http://10.0.0.5:9` goes to `",
        ),
    ];
    for (run, table, expected) in models {
        fleet.bench.write("glovebox.toml", &format!("[models.m]\n{table}\n"));
        let state = fleet.bench.outside().join("state");
        let words = ["run", "pipeline.dot", "--run-id", run, "--detach", "--nats", &fleet.servers.addresses()[0]];
        let begun = Answer::of(fleet.bench.bare(&words).env("GLOVEBOX_STATE_DIR", state));
        begun.ends(0);
        let expected = format!("this machine does not allow that {expected}");
        fleet.wait_until(&expected, || fleet.said().contains(&expected));
    }
}
