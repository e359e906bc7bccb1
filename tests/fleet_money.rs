//! What models answered to an attempt of a fleet is paid for once, also if the machine that asked is lost.

use crate::fleet_runs::{Fleet, of_kind};
use crate::providers::{KEY, Turn, requests_to, start_provider};
use crate::workbench::Answer;
use serde_json::json;
use std::collections::BTreeSet;
use std::process::Child;

const TURNS: usize = 6;
const ASKS: &str = "digraph asks { start [shape=Mdiamond]; exit [shape=Msquare]
  build [prompt=\"Build it\", allowed_write_paths=\"src/\"]
  start -> build -> exit }
";

/// A provider that ends with the value.
struct Provider(Child);

impl Drop for Provider {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}

/// Returns the answers: each turn but the last writes a file that the request of the next one names.
fn answers() -> Vec<Turn> {
    let answer = |turn: usize| {
        let path = format!("src/{turn}.txt");
        let write = Turn::tool("write_file", json!({ "path": path, "content": format!("{turn}\n") }));
        let answer = if turn + 1 == TURNS { Turn::text("OUTCOME: SUCCESS") } else { write };
        let mark = turn.checked_sub(1).map_or("Build it".to_owned(), |before| format!("src/{before}.txt"));
        answer.usage(100, 10).when(&mark).repeat().after(600)
    };
    (0..TURNS).rev().map(answer).collect()
}

#[test]
fn answers_of_a_lost_machine_are_handed_on_and_paid_for_once() {
    let Some(mut fleet) = Fleet::start(ASKS) else { return };
    let (provider, url) = start_provider(&fleet.bench, "openai", &answers(), "price = { input = 3, output = 15 }");
    let _provider = Provider(provider);
    fleet.variables.push(("FAKE_KEY", KEY));
    let url = url.trim_end_matches("/v1");
    let [key, service] = [format!("env FAKE_KEY to {url}"), format!("service {url} to fleet")];
    let flags = ["--seats", "1", "--no-drive", "--allow", &key, "--allow", &service];
    fleet.work("driver", &["--no-execute"]);
    fleet.work("doomed", &flags);
    // Without the script of the test's usual model.
    let words = ["run", "pipeline.dot", "--run-id", "r", "--detach", "--nats", &fleet.servers.addresses()[0]];
    let mut run = fleet.bench.bare(&words);
    Answer::of(run.env("GLOVEBOX_STATE_DIR", fleet.state("client")).env("FAKE_KEY", KEY)).ends(0);
    fleet.wait_until("three answers are there", || requests_to(&fleet.bench).len() >= 4);
    fleet.kill("doomed");
    fleet.work("other", &flags);
    fleet.pulled("r");
    let records = fleet.records("r");
    let finished = of_kind(&records, "stage.finished");
    assert_eq!((finished.len(), &finished[0]["machine"]), (1, &"other".into()), "{records:?}");
    let requests = requests_to(&fleet.bench);
    let different: BTreeSet<&String> = requests.iter().collect();
    assert_eq!(different.len(), TURNS, "each question was asked");
    assert!(
        requests.len() <= TURNS + 1,
        "{} requests: only one whose answer had not arrived is repeated",
        requests.len()
    );
    assert_eq!(finished[0]["tokens"], json!({ "input": 100 * TURNS, "output": 10 * TURNS }), "{}", finished[0]);
    fleet.here(&["diff", "r"]).ends(0).says("src/4.txt");
}
