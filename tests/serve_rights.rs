//! `glovebox serve`: what each right shows, with the real binary: the plan of a run, what stages set aside, blobs that the
//! start of a run names, questions of all runs, and streams of tokens that were removed.

use crate::serve::client::{Reply, Served, events};
use crate::workbench::Workbench;
use glovebox_serve::right::Right;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A line of the hold-outs.
const SECRET: &str = "forty-two apples in a wicker basket";

/// Creates a project whose stages can wait for a file in the folder that is returned.
fn waiting(pipeline: &str) -> (Workbench, PathBuf) {
    let bench = Workbench::with_pipeline(pipeline);
    let flags = bench.outside().join("flags");
    std::fs::create_dir(&flags).unwrap();
    let shown = flags.to_str().unwrap();
    bench
        .write("glovebox.toml", &format!("[sandbox]\nread = [\"{shown}\"]\n[exec]\nenv = {{ FLAGS = \"{shown}\" }}\n"));
    (bench, flags)
}

const WAIT: &str = "for i in $(seq 1200); do [ -e $FLAGS/go ] && break; sleep 0.05; done";

fn tokens(bench: &Workbench, clients: &[(&str, &[Right])]) {
    let tokens: Vec<Value> = clients
        .iter()
        .map(|(name, rights)| json!({ "name": name, "rights": rights, "blake3": glovebox_serve::token::hash(name) }))
        .collect();
    let text = json!({ "schema_version": 1, "tokens": tokens }).to_string();
    // The server may read the file at any time, so it is replaced as a whole.
    let (new, file) = (bench.outside().join("new.json"), bench.outside().join("tokens.json"));
    std::fs::write(&new, text).unwrap();
    std::fs::set_permissions(&new, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::rename(new, file).unwrap();
}

#[test]
fn an_open_stream_ends_when_its_token_is_removed_or_has_other_rights() {
    let (bench, flags) = waiting(&format!(
        "digraph g {{ start; exit; work [shape=parallelogram, tool_command=\"{WAIT}\", allowed_write_paths=\"\"]\n start -> work -> exit }}\n"
    ));
    let view: &[Right] = &[Right::View];
    let served = Served::with(&bench, &[("anna", view), ("bob", view), ("carl", view)]);
    let run = served.post("/pipelines", &json!({ "file": "pipeline.dot" })).is(200).json();
    let run = run["id"].as_str().unwrap();
    let records = format!("GET /runs/{run}/events");
    let output = format!("GET /runs/{run}/stages/work/output");
    let lines = ["Accept: application/x-ndjson"];
    let follow = |token: &str, line: &str, more: &[&str]| -> (Reply, Instant) {
        let token = format!("Authorization: Bearer {token}");
        let reply = served.send(line, &[&[token.as_str()], more].concat(), "");
        (reply, Instant::now())
    };
    std::thread::scope(|scope| {
        let clients =
            [("anna", &records, &[][..]), ("anna", &output, &[]), ("anna", &records, &lines), ("carl", &records, &[])];
        let ended: Vec<_> =
            clients.iter().map(|(token, line, more)| scope.spawn(|| follow(token, line, more))).collect();
        let bobs: Vec<_> = [&records, &output].map(|line| scope.spawn(|| follow("bob", line, &[]))).into();
        std::thread::sleep(Duration::from_secs(2));
        assert!(ended.iter().chain(&bobs).all(|client| !client.is_finished()), "all of them follow the run");
        // Anna's token is removed, and Carl's bearer may see less. Bob's is as before.
        tokens(&bench, &[("bob", view), ("carl", &[Right::Builder])]);
        let changed = Instant::now();
        for (client, (token, line, more)) in ended.into_iter().zip(clients) {
            let (reply, at) = client.join().unwrap();
            assert!(at - changed < Duration::from_secs(5), "{token} {line}: {:?}", at - changed);
            if more.is_empty() {
                let last = events(&reply.body).pop().unwrap();
                assert_eq!(last.event, "end", "{token} {line}");
                assert!(last.data.contains("unknown-token"), "{token} {line}: {last:?}");
            }
        }
        assert!(bobs.iter().all(|client| !client.is_finished()), "a token that did not change goes on");
        let released = Instant::now();
        std::fs::write(flags.join("go"), "").unwrap();
        for client in bobs {
            let (reply, at) = client.join().unwrap();
            assert!(at > released && events(&reply.body).last().unwrap().data == "{}", "{reply:?}");
        }
    });
    served.as_client("anna", &records, None).is(401);
}

#[test]
fn the_plan_of_a_run_is_that_of_its_record() {
    let bench = Workbench::with_pipeline(
        "digraph g { start; exit; write [shape=parallelogram, tool_command=\"echo 1 > out.txt\", allowed_write_paths=\"out.txt\"]\n start -> write -> exit }\n",
    );
    let planned = bench.bare(&["plan", "pipeline.dot", "--json"]).output().unwrap();
    let planned: Value = serde_json::from_slice(&planned.stdout).unwrap();
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--max-steps", "7"]).ends(0);
    // What the project has now is not what the run had.
    bench.write("pipeline.dot", "digraph g { start; exit; start -> exit }\n");
    bench.write("glovebox.toml", "[exec]\nenv = { A = \"b\" }\n");
    let served = Served::with(&bench, &[("view", &[Right::View]), ("builder", &[Right::Builder])]);
    let shown = served.as_client("view", "GET /runs/r/plan", None);
    let plan = shown.is(200).json();
    assert_eq!(shown.body, bench.glovebox(&["plan", "--run", "r", "--json"]).ends(0).stdout);
    assert_eq!((&plan["steps_max"], &plan["record"], &plan["run_id"]), (&json!(7), &json!(1), &json!("r")));
    assert_eq!(plan["plan_digest"], served.get("/runs/r").json()["plan_digest"]);
    let node =
        |plan: &Value| plan["nodes"].as_array().unwrap().iter().find(|node| node["id"] == "write").unwrap().clone();
    assert_eq!(node(&plan)["could"], node(&planned)["could"], "{plan}");
    assert_eq!(plan["could"], planned["could"]);
    assert!(node(&plan)["capabilities"].as_array().unwrap().contains(&json!("write out.txt")), "{plan}");
    served.as_client("builder", "GET /runs/r/plan", None).is(403);
    served.get("/runs/none/plan").is(404);
    bench.glovebox(&["plan", "--run", "r"]).ends(0).says("plan of run r: g, at most 7 steps").says("write out.txt");
    for more in [&["pipeline.dot"][..], &["--max-steps", "3"], &["--against", "r"], &["--set", "a=b"]] {
        bench.glovebox(&[&["plan", "--run", "r"], more].concat()).ends(2).says("cannot be used with");
    }
}

#[test]
fn the_plan_of_a_run_is_the_last_one() {
    let bench = Workbench::with_pipeline(
        "digraph g { start; exit; work [shape=parallelogram, tool_command=\"test -n \\\"$A\\\"\", allowed_write_paths=\"\"]\n start -> work -> exit }\n",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1);
    let before = bench.glovebox(&["plan", "--run", "r", "--json"]).ends(0).json();
    bench.write("glovebox.toml", "[exec]\nenv = { A = \"b\" }\n");
    bench.glovebox(&["resume", "r", "--replan", "--yes"]).ends(0);
    let after = bench.glovebox(&["plan", "--run", "r", "--json"]).ends(0).json();
    assert!(after["record"].as_u64() > Some(1) && after["plan_digest"] != before["plan_digest"], "{after}");
    let has = |plan: &Value| plan["capabilities"].to_string().contains("use the environment variable A");
    assert!(has(&after) && !has(&before), "{after}");
}

/// A run whose stage wrote outside of its scope, and a server for it.
struct Aside {
    bench: Workbench,
    served: Served,
    /// The numbers of the changes that were set aside, by path.
    numbers: BTreeMap<String, String>,
}

impl Aside {
    fn new() -> Self {
        let bench = Workbench::with_pipeline(
            "digraph g { start; exit
  write [shape=parallelogram, tool_command=\"mkdir evil; echo '<script>' > evil/a.html; echo two > evil/b.txt; ln -s a.html evil/link\", allowed_write_paths=\"out/\"]
  start -> write -> exit }\n",
        );
        bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(6);
        let served = Served::with(&bench, &[("view", &[Right::View]), ("all", &[Right::Withheld])]);
        let listed = served.as_client("view", "GET /runs/r", None).json()["quarantined"].clone();
        let number = |one: &Value| (one["path"].as_str().unwrap().to_owned(), one["number"].to_string());
        let numbers = listed.as_array().unwrap().iter().map(number).collect();
        Self { bench, served, numbers }
    }

    fn get(&self, name: &str, number: &str) -> Reply {
        self.served.as_client(name, &format!("GET /runs/r/quarantine/{number}"), None)
    }
}

#[test]
fn what_was_set_aside_is_an_attachment_for_whoever_may_see_all() {
    let aside = Aside::new();
    for (path, text) in [("evil/a.html", "<script>\n"), ("evil/b.txt", "two\n")] {
        let reply = aside.get("all", &aside.numbers[path]);
        assert_eq!(reply.is(200).body, text);
        let head = reply.head.to_ascii_lowercase();
        for line in [
            "content-type: text/plain",
            "x-content-type-options: nosniff",
            "content-disposition: attachment",
            "sandbox",
        ] {
            assert!(head.contains(line), "{line}: {head}");
        }
    }
    let refused = aside.get("view", &aside.numbers["evil/b.txt"]);
    assert!(refused.is(403).json()["message"].as_str().unwrap().contains("`withheld`"), "{refused:?}");
    // A link has no content, and there are no such numbers.
    aside.get("all", &aside.numbers["evil/link"]).is(404);
    let beyond = (aside.numbers.len() + 1).to_string();
    let odd =
        ["0", "-1", "+1", "01x", "", "1%2f..", "..%2f..%2freport.json", "18446744073709551615", "18446744073709551616"];
    for wrong in odd.into_iter().chain([beyond.as_str()]) {
        aside.get("all", wrong).is(404);
    }
}

/// The folder of a run may come from elsewhere, with a report that names other files.
#[test]
fn what_was_set_aside_leads_to_no_other_file() {
    let aside = Aside::new();
    let outside = aside.bench.outside().join("outside.txt");
    std::fs::write(&outside, SECRET).unwrap();
    let quarantine = aside.bench.run_folder("r").join("quarantine");
    let folder = std::fs::read_dir(quarantine).unwrap().next().unwrap().unwrap().path();
    let report = std::fs::read_to_string(folder.join("report.json")).unwrap();
    let stored: Value = serde_json::from_str(&report).unwrap();
    let stored = stored["kept"].as_array().unwrap().iter().find(|kept| kept["path"] == "evil/b.txt").unwrap();
    let stored = stored["stored_as"].as_str().unwrap().to_owned();
    let number = &aside.numbers["evil/b.txt"];
    let others = [
        "../../../../../../outside.txt",
        outside.to_str().unwrap(),
        "../../journal.sqlite",
        "..",
        "report.json/",
        "none",
    ];
    for other in others {
        std::fs::write(folder.join("report.json"), report.replace(&stored, other)).unwrap();
        let reply = aside.get("all", number);
        assert!(reply.is(404).body.contains("unknown-change"), "{other}: {reply:?}");
    }
    std::fs::write(folder.join("report.json"), &report).unwrap();
    aside.get("all", number).is(200);
    std::fs::remove_file(folder.join(&stored)).unwrap();
    std::os::unix::fs::symlink(&outside, folder.join(&stored)).unwrap();
    aside.get("all", number).is(404);
}

#[test]
fn each_version_of_a_conflict_is_set_aside() {
    let bench = Workbench::with_pipeline(
        "digraph g { start; exit; fork [shape=component]; join [shape=tripleoctagon, merge=all]
  left [shape=parallelogram, tool_command=\"echo left > a.txt\", allowed_write_paths=\"./\"]
  right [shape=parallelogram, tool_command=\"echo right > a.txt; echo 1 > /tmp/x\", allowed_write_paths=\"./\"]
  start -> fork; fork -> left -> join; fork -> right -> join; join -> exit }\n",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1);
    let served = Served::start(&bench);
    let listed = served.get("/runs/r").json()["quarantined"].clone();
    let texts: Vec<String> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| served.get(&format!("/runs/r/quarantine/{}", one["number"])).is(200).body.clone())
        .collect();
    assert_eq!(texts, ["left\n", "right\n"]);
}

#[test]
fn what_the_start_of_a_run_names_is_for_whoever_may_see_a_judge() {
    let pipeline = |judge: &str| {
        format!(
            "digraph g {{ graph [goal=g] start; exit; write [prompt=\"write\", allowed_write_paths=\"\"]\n {judge}\n start -> write -> judge -> exit }}\n"
        )
    };
    let script = "[[node.write]]\ntext = \"done\"\n";
    let checked = |judge: &str, name: &str| {
        let bench = Workbench::with_pipeline(&pipeline(judge));
        bench.write("scripts/scenarios/a.sh", &format!("echo {SECRET}\n"));
        std::fs::write(bench.outside().join("script.toml"), format!("{script}# {SECRET}\n")).unwrap();
        bench.glovebox(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "r"]).ends(0);
        let served = Served::with(&bench, &[("view", &[Right::View]), ("all", &[Right::Withheld])]);
        let start = served.get("/runs/r/records?limit=1").json()["event"].clone();
        let digest = start["script_digest"].as_str().unwrap();
        let line = format!("GET /runs/r/blobs/{digest}");
        assert!(served.as_client("all", &line, None).is(200).body.contains(SECRET), "{name}");
        served.as_client("view", &line, None)
    };
    let beside = checked("judge [shape=octagon, command=\"sh scripts/scenarios/a.sh\", label=open]", "with a judge");
    assert!(
        beside.is(403).json()["message"].as_str().unwrap().contains("`withheld`") && !beside.body.contains("wicker"),
        "{beside:?}"
    );
    // Without a stage that can read hold-outs, nothing of a judge can be in it.
    let alone = checked("judge [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]", "without one");
    assert!(alone.is(200).body.contains("done"));
}
