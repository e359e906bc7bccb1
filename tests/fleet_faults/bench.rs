//! How long a fleet needs after a fault, how its stages per second grow with its machines, and what a stage costs.
//!
//! Not part of the tests, because the numbers depend on the machine: `cargo xtask fleet-faults --bench` prints them.

use super::check::{Recorded, records};
use super::faults::LEASE;
use super::machines::{Fleet, Part};
use super::table::row;
use crate::workbench::Answer;
use jiff::Timestamp;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// How long a run may take.
const RUN_MAX: Duration = Duration::from_secs(300);
/// What a fault may cost at most: the lease, and the time to notice and to begin again.
const REPLACED_MAX: Duration = Duration::from_secs(8);
/// Number of times that a machine is killed.
const KILLS: usize = 5;
/// Stages of the runs that count stages per second, and the number of runs.
const STAGES: usize = 8;
const RUNS: usize = 12;

/// Returns a pipeline with stages one after the other, each with the same command.
fn chain(stages: usize, command: &str) -> String {
    let nodes = (0..stages)
        .map(|at| format!("  s{at} [type=tool, tool_command=\"{command}\", allowed_write_paths=\"out/\"]\n"));
    let edges: String = (0..stages).map(|at| format!(" -> s{at}")).collect();
    let nodes: String = nodes.collect();
    format!("digraph chain {{ start [shape=Mdiamond]; exit [shape=Msquare]\n{nodes}  start{edges} -> exit }}\n")
}

fn print(text: &str) {
    std::io::stdout().write_all(text.as_bytes()).unwrap();
}

/// Waits until a run has ended, and returns its records.
fn ended(fleet: &Fleet, run: &str) -> Vec<Recorded> {
    let begun = Instant::now();
    loop {
        let pulled = Answer::of(&mut fleet.command("client", &["pull", run]));
        if pulled.code == 0 {
            return records(&fleet.bench, run);
        }
        assert!(pulled.code == 9 && begun.elapsed() < RUN_MAX, "{run}: {}\n{}", pulled.stderr, fleet.said());
        std::thread::sleep(Duration::from_millis(300));
    }
}

fn of_kind<'a>(records: &'a [Recorded], kind: &str) -> Vec<&'a Recorded> {
    records.iter().filter(|record| record.event["kind"] == kind).collect()
}

/// Waits until a machine that makes stages has a command in progress. Returns its index.
fn busy(fleet: &mut Fleet) -> usize {
    let begun = Instant::now();
    loop {
        for index in 0..fleet.machines.len() {
            // A machine keeps a helper for its next sandbox.
            if fleet.machines[index].part == Part::Makes && fleet.sleeps(index) {
                return index;
            }
        }
        assert!(begun.elapsed() < RUN_MAX, "no stage begins: {}", fleet.said());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "takes minutes and measures: `cargo xtask fleet-faults --bench`"]
fn measure_the_time_after_a_fault() {
    let mut fleet = Fleet::start(3, 2, 2, LEASE);
    fleet.bench.write("pipeline.dot", &chain(1, "sleep 4"));
    let (mut after_maker, mut after_driver) = (Vec::new(), Vec::new());
    for round in 0..KILLS {
        let run = format!("maker-{round}");
        assert!(fleet.begin(&run).wait().unwrap().success());
        let index = busy(&mut fleet);
        let at = Timestamp::now();
        fleet.kill_machine(index);
        let found = ended(&fleet, &run);
        let started = of_kind(&found, "stage.started");
        let next = started.iter().find(|record| record.at > at).expect("the attempt is made again");
        after_maker.push(Duration::try_from(next.at.duration_since(at)).unwrap());
        fleet.start_machine(index);
    }
    for round in 0..KILLS {
        let run = format!("driver-{round}");
        assert!(fleet.begin(&run).wait().unwrap().success());
        busy(&mut fleet);
        let at = Timestamp::now();
        // One of them drives the run; the other one is started again before it is needed.
        let drivers: Vec<usize> =
            (0..fleet.machines.len()).filter(|index| fleet.machines[*index].part == Part::Drives).collect();
        drivers.iter().for_each(|index| fleet.kill_machine(*index));
        drivers.iter().for_each(|index| fleet.start_machine(*index));
        let found = ended(&fleet, &run);
        let next = found.iter().find(|record| record.at > at).unwrap();
        assert_eq!(next.event["kind"], "run.taken_over");
        after_driver.push(Duration::try_from(next.at.duration_since(at)).unwrap());
        assert_eq!(of_kind(&found, "stage.started").len(), 1, "the attempt goes on without a driver");
    }
    print(&format!("\nfleet, lease {LEASE}\n  median      p90      max  time in ms\n"));
    print(&row("from SIGKILL of a machine to the next claim of its task", &after_maker));
    print(&row("from SIGKILL of all drivers, which start again, to the next record", &after_driver));
    let most = after_maker.iter().chain(&after_driver).max().unwrap();
    assert!(*most <= REPLACED_MAX, "{most:?}");
    assert_eq!(fleet.drain(), Vec::<String>::new());
}

#[test]
#[ignore = "takes minutes and measures: `cargo xtask fleet-faults --bench`"]
fn measure_stages_per_second() {
    let mut text = "\nfleet, stages of 250 ms, machines with one seat\nmachines  stages/s  of the ideal\n".to_owned();
    for machines in [1, 2, 4, 8] {
        let mut fleet = Fleet::start(3, 1, machines, "30s");
        fleet.bench.write("pipeline.dot", &chain(STAGES, "sleep 0.25"));
        // Each machine prepares each run once, which is not measured: the first stage of a run waits for it.
        let mut clients: Vec<_> = (0..RUNS).map(|run| fleet.begin(&format!("r{run}"))).collect();
        assert!(clients.iter_mut().all(|client| client.wait().unwrap().success()), "{}", fleet.said());
        let all: Vec<Vec<Recorded>> = (0..RUNS).map(|run| ended(&fleet, &format!("r{run}"))).collect();
        let first = all.iter().flat_map(|records| of_kind(records, "stage.started")).map(|one| one.at).min().unwrap();
        let done = all.iter().flat_map(|records| of_kind(records, "stage.finished"));
        let (count, last) = done.fold((0, first), |(count, last), one| (count + 1, last.max(one.at)));
        assert_eq!(count, RUNS * STAGES);
        let rate = count as f64 / Duration::try_from(last.duration_since(first)).unwrap().as_secs_f64();
        text += &format!("{machines:>8}  {rate:>8.1}  {:>11.0} %\n", rate / (4.0 * machines as f64) * 100.0);
        assert_eq!(fleet.drain(), Vec::<String>::new());
    }
    print(&text);
}

#[test]
#[ignore = "takes minutes and measures: `cargo xtask fleet-faults --bench`"]
fn measure_the_cost_of_a_stage() {
    const LONG: usize = 40;
    let mut fleet = Fleet::start(3, 1, 1, "30s");
    fleet.bench.write("pipeline.dot", &chain(LONG, "true"));
    let per_stage = |records: &[Recorded]| -> Vec<Duration> {
        let ends: Vec<Timestamp> = of_kind(records, "stage.finished").iter().map(|record| record.at).collect();
        assert_eq!(ends.len(), LONG);
        ends.windows(2).map(|pair| Duration::try_from(pair[1].duration_since(pair[0])).unwrap()).collect()
    };
    print("\none stage after another, each `true`\n  median      p90      max  time in ms\n");
    fleet.bench.glovebox(&["run", "pipeline.dot", "--run-id", "here"]).ends(0);
    print(&row("embedded", &per_stage(&records(&fleet.bench, "here"))));
    assert!(fleet.begin("there").wait().unwrap().success());
    print(&row("fleet with three servers", &per_stage(&ended(&fleet, "there"))));
    assert_eq!(fleet.drain(), Vec::<String>::new());
}
