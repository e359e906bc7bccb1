//! Attempts that wait for a quota: what is in the journal, and what a resume makes of it.

use super::*;
use glovebox_journal::event::{AskedModel, RunPaused, StageHeld, StageStarted};
use jiff::SignedDuration;

const ONE: &str = "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; a; start -> a -> exit }";

fn in_an_hour() -> Timestamp {
    Timestamp::now().checked_add(SignedDuration::from_hours(1)).unwrap()
}

/// Returns the result of an attempt whose provider names this time.
fn refused(claim: &Assignment, resume_at: Option<Timestamp>) -> AttemptResult {
    let failure = Failure::new(FailureClass::Budget, "provider/quota-exceeded", "no requests left");
    let mut ended = finished(&open(claim), Outcome::failed(failure));
    let named = |text: &str| text.to_owned();
    ended.model.asked =
        Some(AskedModel { name: named("it"), provider: named("anthropic"), model: named("m"), answered_by: None });
    ended.model.resume_at = resume_at;
    ended.into()
}

/// A follower that stops the run when an attempt waits for a quota.
struct Stopper<'a>(&'a LocalSignals);

impl Follow for Stopper<'_> {
    fn record(&mut self, record: &Record, _: &Replay) {
        if matches!(record.event, Event::StageHeld(_)) {
            self.0.cancel("signal TERM");
        }
    }

    fn appended(&mut self, _: &[Record]) -> Result<(), Fault> {
        Ok(())
    }
}

/// Returns the time at which the attempt is ready after a resume.
async fn due_after_resume(log: &SqliteLog, pipeline: &Pipeline) -> Option<Timestamp> {
    let signals = LocalSignals::new();
    let (state, last) = replayed(log).await;
    let mut resumed = Driver { replay: Replay { state, ..Replay::default() }, ..driver(pipeline, log, &signals) };
    resumed.resume(last, RunResumed::default()).await.unwrap();
    let (state, _) = replayed(log).await;
    let open = state.main().open().expect("the attempt is executed again").clone();
    assert_eq!((open.ordinal, open.attempt_id, state.steps), (1, None, 2), "a wait costs no step");
    open.due_at
}

#[tokio::test]
async fn a_stopped_run_waits_for_the_same_time_and_a_paused_one_tries_at_once() {
    let (folder, pipeline, signals) = (tempfile::tempdir().unwrap(), pipeline(ONE), LocalSignals::new());
    let log = journal(folder.path());
    let follower = Stopper(&signals);
    let mut run = Driver::new(RUN.into(), &pipeline, &log, &signals, "test".into(), follower);
    run.start(first(&pipeline, None)).await.unwrap();
    let named = in_an_hour();
    run.drive(async |claim| Ok(refused(&claim, Some(named)))).await.unwrap();
    let records = log.read(&RUN.into(), 1, 1000).await.unwrap();
    let kinds: Vec<&str> = records.iter().map(|record| record.event.kind()).collect();
    let held = kinds.iter().position(|kind| *kind == "stage.held").unwrap();
    assert_eq!(kinds[held - 1..held + 3], ["stage.started", "stage.held", "stage.ready", "run.canceled"]);
    let (Event::StageHeld(held), Event::StageReady(ready)) = (&records[held].event, &records[held + 1].event) else {
        panic!("{kinds:?}")
    };
    assert_eq!((held.provider.as_str(), ready.due_at), ("anthropic", Some(held.resume_at)));
    assert!(held.resume_at.duration_since(named).abs() < SignedDuration::from_secs(2), "{}", held.resume_at);
    let due_at = Some(held.resume_at);
    assert_eq!(due_after_resume(&log, &pipeline).await, due_at);
    let (state, _) = replayed(&log).await;
    let mut paused = Driver { replay: Replay { state, ..Replay::default() }, ..driver(&pipeline, &log, &signals) };
    let pause = RunPaused { by: None, questions: Vec::new(), problem: None, held: None, resume_at: due_at };
    paused.note(vec![Event::RunPaused(Box::new(pause))]).await.unwrap();
    assert_eq!(due_after_resume(&log, &pipeline).await, None);
}

#[tokio::test]
async fn a_provider_that_always_names_a_time_is_waited_for_twenty_times() {
    let (folder, pipeline, signals) = (tempfile::tempdir().unwrap(), pipeline(ONE), LocalSignals::new());
    let log = journal(folder.path());
    let mut run = driver(&pipeline, &log, &signals);
    run.start(first(&pipeline, None)).await.unwrap();
    for wait in 0..20 {
        let attempt = run.replay.state.main().open().unwrap().attempt(&format!("a{wait}").as_str().into());
        let failure = Failure::new(FailureClass::Budget, "provider/quota-exceeded", "no requests left");
        let started = StageStarted { attempt: attempt.clone(), worker: "test".into(), machine: None, moved: None };
        let (provider, resume_at) = ("anthropic".to_owned(), Timestamp::UNIX_EPOCH);
        let held = StageHeld { attempt, failure, provider, resume_at };
        run.note(vec![Event::StageStarted(started), Event::StageHeld(Box::new(held))]).await.unwrap();
    }
    let attempts = Cell::new(0);
    let refuse = async |claim: Assignment| {
        attempts.set(attempts.get() + 1);
        Ok(refused(&claim, Some(in_an_hour())))
    };
    run.drive(refuse).await.unwrap();
    let records = log.read(&RUN.into(), 1, 1000).await.unwrap();
    let Event::RunPaused(paused) = &records.last().unwrap().event else { panic!("{:?}", records.last()) };
    let held = paused.held.as_ref().unwrap();
    assert_eq!((attempts.get(), held.waits, paused.resume_at.is_some()), (1, 20, true));
    assert_eq!(held.failure.reason, "no requests left");
}
