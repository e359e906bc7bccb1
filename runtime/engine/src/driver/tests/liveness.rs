//! Heartbeats, the stall watchdog and the clock of the loop, with intervals of milliseconds.

use super::*;
use crate::liveness::LivenessStream;
use crate::run_dir::LIVENESS_FILE;
use cap_std::fs::Dir;
use glovebox_journal::liveness::{LivenessEvent, LivenessLine, check, check_records};
use glovebox_record::liveness::StallSettings;
use glovebox_record::{LivenessTotals, WaitKind};
use jiff::SignedDuration;

const TWO: &str =
    "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; f [shape=component]; j [shape=tripleoctagon]; a; b;
    start -> f; f -> a -> j; f -> b -> j; j -> exit }";
const ONE: &str = "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; a; start -> a -> exit }";

/// Time between two acts of a stage.
const ACT: Duration = Duration::from_millis(20);
/// Time between two heartbeats.
const INTERVAL: Duration = Duration::from_millis(200);
/// A timeout of the watchdog that is shorter than the stages, in milliseconds.
const STALL_MS: u64 = 400;

/// Returns a stage that acts this often, until it is asked to stop.
fn acting(times: u64, act: impl Fn(&Assignment)) -> impl AsyncFn(Assignment) -> Result<AttemptResult, Failed> {
    async move |claim: Assignment| {
        for _ in 0..times {
            if claim.stop.load(Ordering::SeqCst) {
                let failure = Failure::new(FailureClass::Canceled, "run/canceled", "asked to");
                let cut = finished(&open(&claim), Outcome::failed(failure));
                return Ok(StageFinished { ending: Ending::Canceled, ..cut }.into());
            }
            act(&claim);
            tokio::time::sleep(ACT).await;
        }
        Ok(finished(&open(&claim), Outcome::new(Status::Success)).into())
    }
}

/// A run, its liveness stream and its records.
struct DrivenRun {
    reason: String,
    lines: Vec<LivenessLine>,
    records: Vec<Record>,
}

impl DrivenRun {
    fn events(&self, id: &str) -> Vec<LivenessEvent> {
        let of_node =
            |line: &&LivenessLine| line.attempt.as_ref().is_some_and(|attempt| attempt.attempt_node_id.as_str() == id);
        self.lines.iter().filter(of_node).map(|line| line.event).collect()
    }

    fn totals(&self, node: &str) -> Option<LivenessTotals> {
        let mut ended = self.records.iter().filter_map(|record| record.event.stage_finished());
        ended.find(|ended| ended.attempt.task.node.as_str() == node).unwrap().liveness.clone()
    }
}

/// A follower that writes the ends of branches to the stream, as that of a run does.
struct Noting<'a>(&'a LivenessStream<'a>);

impl Follow for Noting<'_> {
    fn record(&mut self, _record: &Record, _replay: &Replay) {}

    fn appended(&mut self, records: &[Record]) -> Result<(), Fault> {
        self.0.note(records);
        Ok(())
    }
}

async fn drive(
    graph: &str,
    stall_ms: u64,
    stage: impl AsyncFn(Assignment) -> Result<AttemptResult, Failed>,
) -> DrivenRun {
    let (folder, pipeline, signals) = (tempfile::tempdir().unwrap(), pipeline(graph), LocalSignals::new());
    let log = journal(folder.path());
    let dir = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
    let stream = LivenessStream::new(&dir, tokio::sync::mpsc::channel(1).0);
    let follower = Noting(&stream);
    let driver = Driver::new(RUN.into(), &pipeline, &log, &signals, "test".into(), follower);
    let mut driver = Driver { liveness: Some(&stream), heartbeat: INTERVAL, parallel_max: 4, ..driver };
    let mut started = started(&pipeline, 50, None);
    started.bounds.stall = StallSettings { timeout_ms: Some(stall_ms), ..StallSettings::default() };
    driver.start(Event::RunStarted(Box::new(started))).await.unwrap();
    driver.drive(stage).await.unwrap();
    let reason = reason(&driver.replay.state);
    let records = log.read(&RUN.into(), 1, 1000).await.unwrap();
    let text = dir.read_to_string(LIVENESS_FILE).unwrap_or_default();
    let lines: Vec<LivenessLine> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    check(&lines).unwrap();
    check_records(&records, &lines).unwrap();
    DrivenRun { reason, lines, records }
}

#[tokio::test]
async fn an_attempt_has_a_heartbeat_for_each_interval_in_which_something_moved() {
    use LivenessEvent::*;
    let driven = drive(ONE, 0, acting(35, |claim| claim.pulse.output(10))).await;
    assert_eq!(driven.reason, "success");
    let events = driven.events("a");
    let [StageAttemptStart, heartbeats @ .., StageAttemptEnd] = &events[..] else { panic!("{events:?}") };
    assert!(heartbeats.iter().all(|event| *event == StageHeartbeat), "{events:?}");
    let totals = driven.totals("a").unwrap();
    assert!(totals.heartbeats >= 2 && totals.heartbeats == heartbeats.len() as u64, "{totals:?}");
    assert_eq!((totals.output_bytes, totals.longest_silence_ms), (350, 0));
    let short = drive(ONE, 0, at_once).await;
    assert!(short.lines.is_empty() && short.totals("a").is_none(), "shorter than an interval");
    let silent = drive(ONE, 0, acting(35, |_| ())).await;
    assert!(silent.lines.is_empty(), "{:?}", silent.lines);
    let totals = silent.totals("a").unwrap();
    assert!(totals.longest_silence_ms >= 400, "{totals:?}");
    assert_eq!(totals, LivenessTotals { longest_silence_ms: totals.longest_silence_ms, ..LivenessTotals::default() });
}

#[tokio::test]
async fn calls_and_answers_are_counted_and_waits_are_named() {
    use LivenessEvent::*;
    let waits = RefCell::new(Vec::new());
    let stage = acting(25, |claim| {
        drop(claim.pulse.tool_call());
        claim.pulse.text_delta(100);
        if waits.borrow().is_empty() {
            waits.borrow_mut().push(claim.pulse.wait(WaitKind::Model));
        }
    });
    let driven = drive(ONE, 0, stage).await;
    let first = &driven.lines[1..5];
    let events: Vec<LivenessEvent> = first.iter().map(|line| line.event).collect();
    assert_eq!(events, [ApiToolCallStart, ApiToolCallEnd, ApiAssistantTextDelta, StageHeartbeat]);
    assert_eq!(first[3].waits_for, Some(WaitKind::Model));
    let sum = |event: LivenessEvent, of: fn(&LivenessLine) -> Option<u64>| {
        driven.lines.iter().filter(|line| line.event == event).filter_map(of).sum::<u64>()
    };
    assert_eq!([ApiToolCallStart, ApiToolCallEnd].map(|event| sum(event, |line| line.count)), [25, 25]);
    assert_eq!(sum(ApiAssistantTextDelta, |line| line.bytes), 2500);
    let totals = driven.totals("a").unwrap();
    assert_eq!((totals.tool_calls, totals.text_deltas, totals.text_bytes), (25, 25, 2500));
    assert_eq!(totals.waited_ms[&WaitKind::Model], totals.heartbeats * 200);
}

#[tokio::test]
async fn the_end_of_a_branch_with_heartbeats_is_written_once() {
    let driven = drive(TWO, 0, acting(25, |claim| claim.pulse.beat())).await;
    assert_eq!(driven.reason, "success");
    let ends = driven.lines.iter().filter(|line| line.event == LivenessEvent::BranchComplete);
    let ends: Vec<&str> = ends.map(|line| line.branch_id.as_str()).collect();
    assert_eq!(ends, ["f-a", "f-b"]);
}

#[tokio::test]
async fn silent_branches_end_a_run_and_a_resume_continues_it() {
    let driven = drive(TWO, STALL_MS, acting(90, |_| ())).await;
    let reason = "run/stall_watchdog_timeout: stall_watchdog_timeout: no branch made progress for 400 ms: \
                  f-a at a (0 s), f-b at b (0 s)";
    assert_eq!(driven.reason, reason);
    let kinds: Vec<&str> = driven.records.iter().map(|record| record.event.kind()).collect();
    let ends = ["run.stalled", "stage.finished", "stage.finished"];
    assert_eq!(kinds[kinds.len() - 7..kinds.len() - 4], ends);
    let exits = ["branch.exited", "branch.exited", "branch.exited", "run.finished"];
    assert_eq!(kinds[kinds.len() - 4..], exits, "each branch, and the main branch");
    let (folder, pipeline, signals) = (tempfile::tempdir().unwrap(), pipeline(TWO), LocalSignals::new());
    let log = journal(folder.path());
    for record in &driven.records {
        log.append(&RUN.into(), &[], record.at, std::slice::from_ref(&record.event)).await.unwrap();
    }
    let (state, last) = replayed(&log).await;
    assert!(!state.is_over() && state.can_be_resumed());
    let mut resumed = Driver { replay: Replay { state, ..Replay::default() }, ..driver(&pipeline, &log, &signals) };
    resumed.resume(last, RunResumed::default()).await.unwrap();
    assert!(resumed.replay.state.stalled.is_none() && resumed.replay.state.stopped.is_none());
    resumed.drive(acting(0, |_| ())).await.unwrap();
    assert_eq!(super::reason(&resumed.replay.state), "success");
    assert_eq!(replayed(&log).await.0, resumed.replay.state);
}

#[tokio::test]
async fn one_branch_that_moves_or_waits_keeps_a_run_alive() {
    let moves = |claim: &Assignment| {
        if claim.attempt.task.node.as_str() == "a" {
            claim.pulse.beat();
        }
    };
    assert_eq!(drive(TWO, STALL_MS, acting(90, moves)).await.reason, "success");
    let waits = RefCell::new(Vec::new());
    let waits_for_model = |claim: &Assignment| {
        if claim.attempt.task.node.as_str() == "b" && waits.borrow().is_empty() {
            waits.borrow_mut().push(claim.pulse.wait(WaitKind::Model));
        }
    };
    assert_eq!(drive(TWO, STALL_MS, acting(90, waits_for_model)).await.reason, "success");
    assert_eq!(drive(TWO, 0, acting(90, |_| ())).await.reason, "success", "it is off");
}

#[tokio::test]
async fn a_signal_wins_over_a_stall() {
    let (folder, pipeline, signals) = (tempfile::tempdir().unwrap(), pipeline(TWO), LocalSignals::new());
    let log = journal(folder.path());
    let mut driver = driver(&pipeline, &log, &signals);
    let mut started = started(&pipeline, 50, None);
    started.bounds.stall = StallSettings { timeout_ms: Some(STALL_MS), ..StallSettings::default() };
    driver.start(Event::RunStarted(Box::new(started))).await.unwrap();
    // The attempts need some time to stop, and the signal comes in it.
    let slow_to_stop = async |claim: Assignment| {
        while !claim.stop.load(Ordering::SeqCst) {
            tokio::time::sleep(ACT).await;
        }
        signals.cancel("signal INT");
        tokio::time::sleep(ACT).await;
        let failure = Failure::new(FailureClass::Canceled, "run/canceled", "asked to");
        Ok(StageFinished { ending: Ending::Canceled, ..finished(&open(&claim), Outcome::failed(failure)) }.into())
    };
    driver.drive(slow_to_stop).await.unwrap();
    assert_eq!(reason(&driver.replay.state), "run/canceled: canceled by signal INT");
    let (state, last) = replayed(&log).await;
    let signals = LocalSignals::new();
    let mut resumed =
        Driver { replay: Replay { state, ..Replay::default() }, ..super::driver(&pipeline, &log, &signals) };
    resumed.resume(last, RunResumed::default()).await.unwrap();
    resumed.drive(acting(0, |_| ())).await.unwrap();
    assert_eq!(reason(&resumed.replay.state), "success");
}

/// A graph with a retry after a pause, and a parallel node with a timeout.
const TIMED: &str = "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; f [shape=component, timeout=\"1h\"]; j [shape=tripleoctagon];
    a [max_retries=1, retry_policy=linear]; b; start -> f; f -> a -> j; f -> b -> j; j -> exit }";

#[tokio::test]
async fn a_step_of_the_machines_clock_changes_neither_a_limit_nor_a_wait() {
    let day = SignedDuration::from_hours(24);
    for step in [day, -day] {
        let (folder, pipeline, signals) = (tempfile::tempdir().unwrap(), pipeline(TIMED), LocalSignals::new());
        let log = journal(folder.path());
        // The clock of the machine was stepped right after the clock of the run had started.
        let clock = RunClock::start_at(Timestamp::now().checked_sub(step).unwrap());
        let mut driver = Driver { clock, ..driver(&pipeline, &log, &signals) };
        driver.start(first(&pipeline, Some(3_600_000))).await.unwrap();
        let began = std::time::Instant::now();
        driver.drive(at_once).await.unwrap();
        assert_eq!(reason(&driver.replay.state), "success", "{step}");
        assert!(began.elapsed() < Duration::from_secs(60), "{step}");
        assert!(driver.replay.state.driven_ms < 60_000, "{step}");
        let records = log.read(&RUN.into(), 1, 1000).await.unwrap();
        assert!(records.windows(2).all(|pair| pair[0].at <= pair[1].at), "{step}");
    }
}

#[tokio::test]
async fn a_clock_that_was_set_back_before_a_resume_does_not_stop_the_time_of_the_run() {
    let (folder, pipeline, signals) = (tempfile::tempdir().unwrap(), pipeline(TIMED), LocalSignals::new());
    let log = journal(folder.path());
    let ahead = Timestamp::now().checked_add(SignedDuration::from_hours(24)).unwrap();
    let mut driver = Driver { clock: RunClock::start_at(ahead), ..driver(&pipeline, &log, &signals) };
    driver.start(first(&pipeline, Some(3_600_000))).await.unwrap();
    drop(driver);
    let (state, last) = replayed(&log).await;
    let mut resumed =
        Driver { replay: Replay { state, ..Replay::default() }, ..super::driver(&pipeline, &log, &signals) };
    resumed.resume(last, RunResumed::default()).await.unwrap();
    resumed.drive(at_once).await.unwrap();
    assert_eq!(reason(&resumed.replay.state), "success");
    let records = log.read(&RUN.into(), 1, 1000).await.unwrap();
    assert!(records.windows(2).all(|pair| pair[0].at <= pair[1].at));
    assert!(records.last().unwrap().at > records[0].at, "time passes");
}
