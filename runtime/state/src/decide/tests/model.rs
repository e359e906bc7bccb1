//! Property test: any pipeline of stages, loops, gates and nested parallel nodes ends within its limits, in any order
//! of ends and killed at any record. A second, simpler implementation of the rules checks the result.
//!
//! A stage has the same outcome in each execution. A scheduler chooses which attempt starts, which ends, and when the
//! process dies. The last append may be truncated. The test judges only the records, never the engine's state.

mod graphs;
mod oracle;

use crate::decide::finalize_attempt;
use crate::run_state::{OpenTask, RunState};
use crate::simulation::{Simulation, finished, pipeline, started};
use glovebox_journal::event::{
    AnsweredBy, BranchId, ChangeOp, Event, FileChange, ProposedWrite, QuestionAnswered, QuestionAsked, Recoverable,
    RecoveryAction, RunCanceled, RunTakenOver, StageFinished, StageStarted, Work,
};
use glovebox_pipeline::ir::Pipeline;
use glovebox_record::path::ScopePath;
use glovebox_record::question::{Answer, Choice};
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome, Status};
use graphs::{chain, text};
use jiff::Timestamp;
use proptest::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};

const STEPS_MAX: u64 = 120;
/// Maximum number of attempts of a run at the same time.
const PARALLEL_MAX: usize = 3;
/// Maximum number of choices of the scheduler, far above what any run needs.
const CHOICES_MAX: usize = 5_000;

/// The environment of a run.
#[derive(Debug, Clone, Copy)]
struct World {
    answers: u64,
    order: u64,
    kills: usize,
    /// The number of the choice at which an operator cancels the run.
    cancel_at: Option<usize>,
}

fn chance(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

fn answer(seed: u64, open: &OpenTask) -> StageFinished {
    let chance = chance((seed, &open.task.branch, &open.task.node, open.task.visit, open.ordinal));
    let words =
        [Status::Success, Status::Success, Status::PartialSuccess, Status::Fail, Status::Retry, Status::Skipped];
    let status = words[(chance % 6) as usize];
    let failure =
        matches!(status, Status::Fail).then(|| Failure::new(FailureClass::Deterministic, "test/failed", "it broke"));
    let mut ended = finished(open, Outcome { failure, ..Outcome::new(status) });
    ended.outcome.context_updates.insert("score".into(), serde_json::json!(chance / 8 % 4));
    ended.outcome.context_updates.insert("parallel.results".into(), serde_json::json!("forged"));
    let path = ScopePath::parse(&format!("file{}", chance / 64 % 4)).unwrap();
    ended.files.changes = vec![FileChange { bytes: chance / 512 % 2, ..FileChange::bare(path, ChangeOp::Write) }];
    if open.task.work == Work::Handler && open.task.branch == BranchId::main() && (chance / 4096).is_multiple_of(2) {
        violate(&mut ended, chance / 8192 % 4);
    }
    ended
}

/// Adds writes outside of the scope to an attempt, so that a person decides about them.
pub(super) fn violate(ended: &mut StageFinished, number: u64) {
    let reason = "guardrail_violation: wrote disallowed files: lock";
    let violated = Outcome::failed(Failure::new(FailureClass::Scope, FailureCode::SCOPE_WRITE, reason));
    let change = FileChange::bare(ScopePath::parse(&format!("lock{number}")).unwrap(), ChangeOp::Write);
    ended.files.recoverable = Some(Box::new(Recoverable {
        outcome: std::mem::replace(&mut ended.outcome, violated),
        verifying: false,
        proposed: vec![ProposedWrite { change, why: "a test".into() }],
        signature: None,
        timeout_ms: None,
    }));
}

/// Simulates a run in this environment, from its first record to its end.
fn live(pipeline: &Pipeline, world: World) -> Simulation<'_> {
    let mut run = Simulation::new(pipeline);
    run.append(vec![Event::RunStarted(Box::new(started(pipeline, STEPS_MAX, None)))]);
    let mut kills = world.kills;
    for choice in 0..CHOICES_MAX {
        if run.state.verdict.is_some() {
            return run;
        }
        let appended = run.records.len();
        let order = chance((world.order, choice));
        if world.cancel_at == Some(choice) {
            run.append(vec![Event::RunCanceled(RunCanceled { by: "the operator".into() })]);
        } else {
            step(&mut run, world, order);
        }
        if kills > 0 && order / 1024 % 4 == 0 && run.state.verdict.is_none() {
            kills -= 1;
            // The process dies during its last append, of which any number of records may be on disk.
            let kept = appended + (order / 4096) as usize % (run.records.len() - appended + 1);
            let next = if order >> 40 & 1 == 0 { resumed } else { taken_over };
            run = next(pipeline, &run.records[..kept]);
        }
    }
    panic!("the run did not end: {:?}", run.records.last());
}

/// Executes one of the possible next steps.
fn step(run: &mut Simulation<'_>, world: World, order: u64) {
    let open: Vec<OpenTask> = run.state.branches.values().filter_map(|branch| branch.open()).cloned().collect();
    let (begun, waiting): (Vec<_>, Vec<_>) = open.into_iter().partition(|open| open.attempt_id.is_some());
    let asked: Vec<_> = run.state.questions().map(|open| open.asked.clone()).collect();
    let may_begin = run.state.canceled.is_none() && begun.len() < PARALLEL_MAX;
    let waiting = if may_begin { waiting } else { Vec::new() };
    let asked = if run.state.canceled.is_none() { asked } else { Vec::new() };
    let count = begun.len() + waiting.len() + asked.len();
    assert!(count > 0, "the run waits for nothing: {:?}", run.records.last());
    let chosen = (order % count as u64) as usize;
    if let Some(open) = begun.get(chosen) {
        let mut ended = answer(world.answers, open);
        finalize_attempt(run.pipeline, None, &run.state, run.state.canceled.is_some(), &mut ended);
        run.append(vec![Event::StageFinished(Box::new(ended))]);
    } else if let Some(open) = waiting.get(chosen - begun.len()) {
        let attempt = finished(open, Outcome::new(Status::Success)).attempt;
        run.append(vec![Event::StageStarted(StageStarted { attempt, worker: "w".into(), machine: None, moved: None })]);
    } else {
        let asked = &asked[chosen - begun.len() - waiting.len()];
        let pick = chance((world.answers, &asked.question, asked.visit)) as usize % asked.choices.len();
        let answered = answered(asked, asked.choices[pick].clone());
        run.append(vec![answered]);
    }
}

/// Returns the event of a person who answers a question with one of its choices.
pub(super) fn answered(asked: &QuestionAsked, choice: Choice) -> Event {
    Event::QuestionAnswered(Box::new(QuestionAnswered {
        generation: asked.generation,
        branch: asked.branch.clone(),
        node: asked.node.clone(),
        visit: asked.visit,
        question: asked.question.clone(),
        how: AnsweredBy::Command,
        by: "ada".into(),
        answered_at: Timestamp::UNIX_EPOCH,
        value: choice.label.clone(),
        answer: Some(Answer::Choice(choice)),
        text: String::new(),
        sheet: None,
        recovery: asked.recovery.is_some(),
    }))
}

/// Resumes the run in another process. Two processes that resume the same records must take the same next steps.
fn resumed<'p>(pipeline: &'p Pipeline, prefix: &[glovebox_journal::event::Record]) -> Simulation<'p> {
    let mut run = Simulation::from_prefix(pipeline, prefix);
    let other = Simulation::from_prefix(pipeline, prefix);
    assert_eq!(run.records, other.records, "the same journal, another next step");
    if run.state.verdict.is_none() {
        run.append(vec![Event::RunResumed(Box::default())]);
    }
    run
}

/// Takes the run over by another driver. Nothing changes but the head and the driver of the run: attempts stay in progress.
fn taken_over<'p>(pipeline: &'p Pipeline, prefix: &[glovebox_journal::event::Record]) -> Simulation<'p> {
    let mut run = Simulation::from_prefix(pipeline, prefix);
    if run.state.verdict.is_none() {
        let before = run.state.clone();
        let taken = RunTakenOver { machine: "m".into(), driver: "d".into(), previous: None };
        run.append(vec![Event::RunTakenOver(Box::new(taken))]);
        let (seq, head, driver) = (run.state.seq, run.state.head, run.state.driver.clone());
        assert_eq!(run.state, RunState { seq, head, driver, ..before });
    }
    run
}

fn replayed(run: &Simulation<'_>) -> RunState {
    let mut state = RunState::default();
    for record in &run.records {
        let line = serde_json::to_string(record).unwrap();
        state.apply(&serde_json::from_str(&line).unwrap());
    }
    state
}

/// Returns the parts of a run that must not depend on the speed of branches or on where the run was killed. The failure
/// of a parallel node does depend on the speed: it is the failure of the branch that failed first.
fn end(run: &Simulation<'_>) -> impl PartialEq + std::fmt::Debug + use<> {
    let verdict = run.state.verdict.clone().unwrap();
    let main = run.state.main();
    let visits: Vec<_> =
        main.nodes.iter().map(|(node, history)| (node.clone(), history.visits, history.retries)).collect();
    let mut results = main.context.get("parallel.results").cloned();
    for result in results.iter_mut().filter_map(serde_json::Value::as_array_mut).flatten() {
        result["failure_reason"] = serde_json::Value::Null;
    }
    let grants = run.state.grants.clone();
    (verdict.status, verdict.exit_node.clone(), main.changes.clone(), visits, results, (run.state.steps, grants))
}

fn world() -> impl Strategy<Value = World> {
    (any::<u64>(), any::<u64>(), 0..5usize).prop_map(|(answers, order, kills)| World {
        answers,
        order,
        kills,
        cancel_at: None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn any_run_ends_within_its_bounds_as_the_rules_say(parts in chain(), world in world()) {
        let text = text(&parts, false);
        let pipeline = pipeline(&text);
        let run = live(&pipeline, world);
        oracle::check(&pipeline, &run.records);
        prop_assert!(run.state.steps <= STEPS_MAX);
        prop_assert_eq!(replayed(&run), run.state, "replay is not the live state");
    }

    #[test]
    fn a_path_is_granted_only_where_a_person_allowed_it(parts in chain(), world in world()) {
        let text = text(&parts, false);
        let pipeline = pipeline(&text);
        let run = live(&pipeline, world);
        let mut allowed = std::collections::BTreeSet::new();
        let mut answered = None;
        for record in &run.records {
            match &record.event {
                Event::QuestionAnswered(answer) if answer.recovery => answered = Some(answer.action()),
                Event::RecoveryDecided(decided) => {
                    prop_assert_eq!(Some(decided.action), answered.take(), "decided without an answer");
                    prop_assert_eq!(decided.changes.is_empty(), decided.action != RecoveryAction::Allow);
                    allowed.extend(decided.granted().map(|path| (decided.node().clone(), path.clone())));
                }
                _ => {}
            }
        }
        let granted = run.state.grants.iter().flat_map(|(node, paths)| paths.iter().map(|path| (node.clone(), path.clone())));
        prop_assert_eq!(granted.collect::<std::collections::BTreeSet<_>>(), allowed);
    }

    #[test]
    fn neither_speed_nor_kills_change_how_a_run_ends(parts in chain(), world in world(), order: u64) {
        let text = text(&parts, true);
        let pipeline = pipeline(&text);
        let calm = live(&pipeline, World { kills: 0, ..world });
        let rough = live(&pipeline, World { order, kills: 8, ..world });
        // A run that reaches its limit on steps does depend on the speed of branches.
        let is_cut = |run: &Simulation<'_>| run.verdict().contains("limit/max_steps");
        if !is_cut(&calm) && !is_cut(&rough) {
            prop_assert_eq!(end(&calm), end(&rough), "{}", text);
        }
    }

    #[test]
    fn a_cancel_of_the_run_beats_every_policy(parts in chain(), world in world(), at in 0..40usize) {
        let text = text(&parts, false);
        let pipeline = pipeline(&text);
        let run = live(&pipeline, World { cancel_at: Some(at), ..world });
        let Some(canceled) = run.records.iter().position(|record| matches!(record.event, Event::RunCanceled(_))) else {
            return Ok(());
        };
        prop_assert_eq!(run.verdict(), "fail run/canceled: canceled by the operator");
        let kinds: Vec<&str> = run.records[canceled + 1..].iter().map(|record| record.event.kind()).collect();
        let is_end = |kind: &&str| {
            matches!(*kind, "stage.finished" | "branch.exited" | "branch.finished" | "run.finished")
                || matches!(*kind, "run.resumed" | "run.taken_over")
        };
        prop_assert!(kinds.iter().all(is_end), "{kinds:?}");
    }
}
