//! The stall watchdog with every join and error policy: which branches keep a run alive, and which do not.

use super::*;
use crate::stall::{ObservedAttempt, StallClock, watched};
use glovebox_journal::event::{AttemptId, BranchId, RunStalled, StageStarted};
use glovebox_record::WaitKind;
use glovebox_record::liveness::StallBounds;
use std::collections::BTreeMap;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const TIMEOUT: u32 = 20;
const JOINS: [&str; 4] = ["wait_all", "first_success", "k_of_n, k=2", "quorum"];
const ERRORS: [&str; 3] = ["fail_fast", "continue", "ignore"];

/// Returns three branches: `a` and `b` with one stage each, and `c` with a gate before its stage.
fn graph(join: &str, error: &str) -> String {
    format!(
        "digraph g {{ start [shape=Mdiamond]; exit [shape=Msquare];
         f [shape=component, join_policy={join}, error_policy={error}]; j [shape=tripleoctagon];
         a [max_retries=1]; b; c; after; q [shape=hexagon]; q -> c [label=\"[Y] Yes\"];
         start -> f; f -> a -> j; f -> b -> j; f -> q; c -> j; j -> after -> exit }}"
    )
}

/// What an attempt does while the watchdog looks at it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Life {
    Silent,
    Active,
    Waits(WaitKind),
}
use Life::*;

/// A run whose branches `a` and `b` execute their stages, while `c` waits for a person.
struct Watched<'a> {
    run: Simulation<'a>,
    clock: StallClock,
    lives: BTreeMap<&'static str, Life>,
    events: u64,
    looks: u64,
}

impl<'a> Watched<'a> {
    fn new(pipeline: &'a Pipeline, a: Life, b: Life) -> Self {
        let mut run = Simulation::new(pipeline);
        run.append(vec![Event::RunStarted(Box::new(started(pipeline, 50, None)))]);
        let clock = StallClock::new(StallBounds { timeout: TIMEOUT * SECOND, interval: SECOND });
        let mut watched = Self { run, clock, lives: BTreeMap::from([("a", a), ("b", b)]), events: 0, looks: 0 };
        watched.start("a");
        watched.start("b");
        watched
    }

    fn open(&self, node: &str) -> Option<OpenTask> {
        let mut open = self.run.state.branches.values().filter_map(|branch| branch.open());
        open.find(|open| open.task.node.as_str() == node).cloned()
    }

    fn start(&mut self, node: &str) {
        let open = self.open(node).expect("it is ready");
        let attempt = finished(&open, Outcome::new(Status::Success)).attempt;
        self.run.append(vec![Event::StageStarted(StageStarted {
            attempt,
            worker: "w".into(),
            machine: None,
            moved: None,
        })]);
        self.events += 1;
    }

    fn finish(&mut self, node: &str, word: &str) {
        let open = self.open(node).expect("it is running");
        let mut ended = finished(&open, outcome(word));
        finalize_attempt(self.run.pipeline, None, &self.run.state, false, &mut ended);
        self.run.append(vec![Event::StageFinished(Box::new(ended))]);
        self.events += 1;
    }

    /// Looks at the run once a second. Returns the second in which it is stalled, within a minute.
    fn stalls(&mut self) -> Option<u32> {
        (1..=60).find(|_| self.look(SECOND))
    }

    fn look(&mut self, elapsed: Duration) -> bool {
        self.looks += 1;
        let observed = |(_, open, id): (&BranchId, &OpenTask, &AttemptId)| {
            let life = self.lives.get(open.task.node.as_str()).copied().unwrap_or(Silent);
            let beats = if life == Active { self.looks } else { 0 };
            let waits_for = if let Waits(kind) = life { Some(kind) } else { None };
            ObservedAttempt { id: id.clone(), beats, waits_for }
        };
        let observed: Vec<ObservedAttempt> = watched(&self.run.state).map(observed).collect();
        self.clock.look(elapsed, self.events, &observed)
    }
}

/// A row of the matrix: its name, and how the run is watched. Returns the second in which the run is stalled.
type Row = (&'static str, fn(&mut Watched<'_>) -> Option<u32>);

fn set(run: &mut Watched<'_>, a: Life, b: Life) {
    run.lives = BTreeMap::from([("a", a), ("b", b)]);
}

const ROWS: [Row; 13] = [
    ("a silent, b silent, c waits for a person", |run| run.stalls()),
    ("a active, b silent", |run| {
        set(run, Active, Silent);
        run.stalls()
    }),
    ("a silent, b active", |run| {
        set(run, Silent, Active);
        run.stalls()
    }),
    ("a waits for the model, b silent", |run| {
        set(run, Waits(WaitKind::Model), Silent);
        run.stalls()
    }),
    ("a waits for the next try of a model, b silent", |run| {
        set(run, Waits(WaitKind::ModelRetry), Silent);
        run.stalls()
    }),
    ("a waits for its sandbox, b silent", |run| {
        set(run, Waits(WaitKind::Sandbox), Silent);
        run.stalls()
    }),
    ("a waits for its retry, b silent", |run| {
        run.finish("a", "retry");
        run.stalls()
    }),
    ("a waits for its retry, b active", |run| {
        set(run, Silent, Active);
        run.finish("a", "retry");
        run.stalls()
    }),
    ("a silent, b failed", |run| {
        run.finish("b", "fail");
        run.stalls()
    }),
    ("a succeeded, b silent", |run| {
        run.finish("a", "success");
        run.stalls()
    }),
    ("a succeeded, b active", |run| {
        set(run, Silent, Active);
        run.finish("a", "success");
        run.stalls()
    }),
    ("the machine was suspended after each look, a silent, b silent", |run| {
        (1..=TIMEOUT / 2).find(|_| run.look(3600 * SECOND))
    }),
    ("the run was canceled, a silent, b silent", |run| {
        run.run.append(vec![Event::RunCanceled(RunCanceled { by: "signal INT".into() })]);
        run.stalls()
    }),
];

/// Returns true if the row's run must be stalled.
fn must_stall(row: &str, join: &str, error: &str) -> bool {
    match row {
        "a silent, b silent, c waits for a person" | "a waits for its retry, b silent" => true,
        // The failure cancels `a`, so nothing is left to watch until the node is joined.
        "a silent, b failed" => error != "fail_fast",
        // One success is enough, and cancels `b`.
        "a succeeded, b silent" => join != "first_success",
        _ => false,
    }
}

#[test]
fn the_matrix_of_join_and_error_policies() {
    println!("{:<62} {:<14} {:<10} stalled", "branches", "join", "error");
    let mut faults = Vec::new();
    for ((row, watch), join) in ROWS.iter().flat_map(|row| JOINS.map(|join| (row, join))) {
        for error in ERRORS {
            let pipeline = pipeline(&graph(join, error));
            let mut run = Watched::new(&pipeline, Silent, Silent);
            let stalled = watch(&mut run);
            let shown = stalled.map_or_else(|| "no".to_owned(), |second| format!("after {second} s"));
            println!("{row:<62} {join:<14} {error:<10} {shown}");
            // The timeout, one interval, and at most one look more.
            let is_right = match must_stall(row, join, error) {
                true => stalled.is_some_and(|second| (TIMEOUT + 1..=TIMEOUT + 2).contains(&second)),
                false => stalled.is_none(),
            };
            faults.extend((!is_right).then(|| format!("{row}, {join}, {error}: {shown}")));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn signs_of_life_of_a_canceled_branch_do_not_count_and_its_silence_neither() {
    for error in ERRORS {
        let pipeline = pipeline(&graph("first_success", error));
        for life in [Silent, Active] {
            let mut run = Watched::new(&pipeline, Silent, life);
            run.finish("a", "success");
            assert!(run.run.state.branches.values().any(|branch| branch.canceled.is_some()), "{error}");
            assert_eq!(run.stalls(), None, "nothing but the canceled branch runs: {error} {life:?}");
            run.finish("b", "success");
            run.start("after");
            let stalled = run.stalls();
            assert!(stalled.is_some_and(|second| second <= TIMEOUT + 2), "{error} {life:?} {stalled:?}");
        }
    }
}

#[test]
fn a_stalled_run_starts_nothing_and_ends_when_its_attempts_have_ended() {
    let pipeline = pipeline(&graph("wait_all", "continue"));
    let mut run = Watched::new(&pipeline, Silent, Silent);
    let stalled = RunStalled { timeout_ms: 20_000, idle_ms: 21_000, silent: Vec::new() };
    run.run.append(vec![Event::RunStalled(Box::new(stalled))]);
    assert!(run.run.state.verdict.is_none());
    for node in ["a", "b"] {
        let mut cut = finished(&run.open(node).unwrap(), outcome("fail:canceled:run/canceled"));
        cut.ending = Ending::Canceled;
        run.run.append(vec![Event::StageFinished(Box::new(cut))]);
    }
    assert!(run.run.verdict().starts_with("fail run/stall_watchdog_timeout: stall_watchdog_timeout"));
    let kinds: Vec<&str> = run.run.records.iter().map(|record| record.event.kind()).collect();
    let stalled = kinds.iter().position(|kind| *kind == "run.stalled").unwrap();
    assert_eq!(kinds[stalled + 1..stalled + 3], ["stage.finished", "stage.finished"]);
    assert_eq!(
        run.run.ending(),
        ["f-a a InStage", "f-b b InStage", "f-q q AtQuestion", "main f AtJoin", "run.finished"]
    );
    assert!(!run.run.state.is_over() && run.run.state.can_be_resumed());
    let open = run.run.state.stopped.as_ref().unwrap().branches.values().filter_map(|branch| branch.open());
    assert_eq!(open.count(), 2, "a resume executes both attempts again");
}
