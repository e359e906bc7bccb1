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

/// A fleet whose stages ask a fake provider, which ends with the value.
struct Asking {
    fleet: Fleet,
    _provider: Provider,
    allowed: [String; 2],
}

impl Asking {
    fn start(pipeline: &str, turns: &[Turn]) -> Option<Self> {
        let mut fleet = Fleet::start(pipeline)?;
        let (provider, url) = start_provider(&fleet.bench, "openai", turns, "price = { input = 3, output = 15 }");
        fleet.variables.push(("FAKE_KEY", KEY));
        let url = url.trim_end_matches("/v1");
        let allowed = [format!("env FAKE_KEY to {url}"), format!("service {url} to fleet")];
        fleet.work("driver", &["--no-execute"]);
        Some(Self { fleet, _provider: Provider(provider), allowed })
    }

    fn work(&mut self, name: &str) {
        let [key, service] = &self.allowed;
        self.fleet.work(name, &["--seats", "1", "--no-drive", "--allow", key, "--allow", service]);
    }

    fn begin_run(&self) {
        // Without the script of the test's usual model.
        let words = ["run", "pipeline.dot", "--run-id", "r", "--detach", "--nats", &self.fleet.servers.addresses()[0]];
        let mut run = self.fleet.bench.bare(&words);
        Answer::of(run.env("GLOVEBOX_STATE_DIR", self.fleet.state("client")).env("FAKE_KEY", KEY)).ends(0);
    }
}

#[test]
fn answers_of_a_lost_machine_are_handed_on_and_paid_for_once() {
    let Some(mut asking) = Asking::start(ASKS, &answers()) else { return };
    asking.work("doomed");
    asking.begin_run();
    asking.fleet.wait_until("three answers are there", || requests_to(&asking.fleet.bench).len() >= 4);
    asking.fleet.kill("doomed");
    asking.work("other");
    let fleet = &asking.fleet;
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

/// A call costs 24 cents and reserves 25, so the run ends only if what was paid before the wait counts once.
#[test]
fn a_stage_that_waits_for_a_quota_is_made_again_and_its_answers_count_once() {
    let asks = ASKS.replacen('{', "{ graph [max_budget_usd=0.6]", 1);
    let write = Turn::tool("write_file", json!({ "path": "src/a.txt", "content": "a\n" }));
    let turns = [
        write.usage(0, 16_000),
        Turn::error("quota-exceeded").resuming_in(12),
        Turn::text("OUTCOME: SUCCESS").usage(0, 16_000),
    ];
    let Some(mut asking) = Asking::start(&asks, &turns) else { return };
    asking.work("first");
    asking.begin_run();
    asking
        .fleet
        .wait_until("the stage waits", || asking.fleet.with(&["show", "r"]).stdout.contains("waits for the quota"));
    // Another machine makes the stage again, with the answer that was paid for.
    asking.fleet.kill("first");
    asking.work("second");
    let fleet = &asking.fleet;
    fleet.pulled("r");
    let records = fleet.records("r");
    let held = of_kind(&records, "stage.held");
    assert_eq!((held.len(), &held[0]["provider"]), (1, &"openai".into()), "{records:?}");
    let finished = of_kind(&records, "stage.finished");
    let last = finished.last().unwrap();
    assert_eq!((&last["outcome"]["status"], &last["machine"]), (&"success".into(), &"second".into()), "{records:?}");
    assert_eq!(last["tokens"], json!({ "input": 0, "output": 32_000 }), "{records:?}");
    assert_eq!(requests_to(&fleet.bench).len(), 3, "the answer before the wait was not paid for again");
    fleet.here(&["show", "r"]).ends(0).says("success");
}
