//! Properties that hold for every small pipeline, whatever the outcomes of its stages.

use super::super::*;
use crate::run_state::OpenTask;
use crate::simulation::{Simulation, finished, pipeline, receipt};
use glovebox_journal::event::{Record, StageCommands};
use glovebox_record::CommandEnding;
use proptest::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};

const STEPS_MAX: u64 = 25;

/// Generates a graph of up to five stages and two exits, with any edges between them.
fn graph() -> impl Strategy<Value = String> {
    let node = (0..4u8, 0..4u8, any::<bool>(), any::<bool>(), 0..8usize, 0..8usize, any::<bool>());
    let edge = (0..7usize, 0..8usize, 0..7u8, 0..3i32, any::<bool>(), 0..6u8);
    (prop::collection::vec(node, 1..6), prop::collection::vec(edge, 1..16), 0..3u8, 0..9usize, any::<bool>()).prop_map(
        |(nodes, edges, default_max_retries, graph_target, is_exit_verified)| {
            let name = |index: usize| match index {
                0 => "start".to_owned(),
                6 => "exit".to_owned(),
                7 => "other".to_owned(),
                inner => format!("n{}", (inner - 1) % nodes.len()),
            };
            let mut text =
                String::from("digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; other [shape=Msquare];\n");
            text += &format!("default_max_retries={default_max_retries};\n");
            if graph_target < 8 {
                text += &format!("retry_target={};\n", name(graph_target));
            }
            if is_exit_verified {
                text += "other [verify_command=x];\n";
            }
            for (index, (shape, retries, gate, partial, target, fallback, is_verified)) in nodes.iter().enumerate() {
                let shape = if *shape == 0 { "diamond" } else { "box" };
                text += &format!("n{index} [shape={shape}, goal_gate={gate}, allow_partial={partial}");
                if *retries > 0 {
                    text += &format!(", max_retries={}", retries - 1);
                }
                if *is_verified {
                    text += ", verify_command=x";
                }
                if *target < 4 {
                    text += &format!(", retry_target={}", name(*target));
                }
                if *fallback < 2 {
                    text += &format!(", fallback_retry_target={}", name(*fallback + 5));
                }
                text += "];\n";
            }
            text += &format!("start -> {};\n", name(1));
            for (from, to, condition, weight, default, restart) in edges {
                let condition = [
                    "",
                    "outcome=success",
                    "outcome=fail",
                    "outcome!=fail",
                    "context.k=1",
                    "preferred_label=x",
                    "outcome=retry",
                ][condition as usize];
                text += &format!(
                    "{} -> {} [weight={weight}, default={default}, label=\"{}\"",
                    name(from),
                    name(to),
                    ["x", "y", "z"][weight as usize]
                );
                if !condition.is_empty() {
                    text += &format!(", condition=\"{condition}\"");
                }
                if restart == 0 {
                    text += ", loop_restart=true";
                }
                text += "];\n";
            }
            text + "}"
        },
    )
}

/// Returns an outcome that depends only on the seed and the attempt.
fn answer(seed: u64, open: &OpenTask) -> StageFinished {
    let mut hasher = DefaultHasher::new();
    (seed, &open.task, open.ordinal).hash(&mut hasher);
    let chance = hasher.finish();
    let status =
        [Status::Success, Status::Success, Status::PartialSuccess, Status::Retry, Status::Fail, Status::Skipped]
            [(chance % 6) as usize];
    let mut outcome = Outcome::new(status);
    if matches!(status, Status::Fail | Status::Retry) && chance & 64 == 0 {
        let class =
            [FailureClass::Transient, FailureClass::Deterministic, FailureClass::Scope][(chance / 128 % 3) as usize];
        outcome.failure =
            Some(Failure::new(class, "test/failed", format!("attempt {} of {}", open.ordinal, open.task)));
    }
    outcome.preferred_label = [None, Some("x".to_owned()), Some("y".to_owned())][(chance / 512 % 3) as usize].clone();
    outcome.suggested_next_ids = vec![format!("n{}", chance / 4096 % 5)];
    outcome.context_updates.insert("k".into(), serde_json::json!(chance / 65536 % 2));
    outcome.context_updates.insert("outcome".into(), serde_json::json!("forged"));
    outcome.context_updates.insert("x".into(), serde_json::json!(chance as f64 / 7.0));
    let receipt =
        (open.task.work == Work::Verify).then(|| receipt(Some((chance >> 20 & 1) as i32), CommandEnding::Exited));
    let commands = StageCommands { receipts: receipt.into_iter().collect(), ..StageCommands::default() };
    StageFinished { commands, ..finished(open, outcome) }
}

fn live(graph: &Pipeline, seed: u64) -> Simulation<'_> {
    Simulation::run(graph, STEPS_MAX, &mut |open| answer(seed, open))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn any_pipeline_with_any_outcomes_ends_within_its_bounds(text in graph(), seed: u64) {
        let pipeline = pipeline(&text);
        let run = live(&pipeline, seed);
        prop_assert!(run.state.steps <= STEPS_MAX);
        prop_assert!(run.state.main().nodes.values().map(|node| u64::from(node.attempts)).sum::<u64>() <= STEPS_MAX);
        // Each step has at most six events: ready, started, finished, retrying, route and restart. The run has two
        // more: its start and its end.
        prop_assert!(run.records.len() as u64 <= 6 * STEPS_MAX + 2);
        let ended = run.state.verdict.clone().expect("it ended");
        if ended.status == Verdict::Success {
            let exit = ended.exit_node.clone().expect("a success names its exit");
            prop_assert!(exit == "exit" || exit == "other");
            for gate in pipeline.nodes.iter().filter(|node| node.checks.goal_gate) {
                let outcome = run.state.main().outcome(&gate.id);
                prop_assert!(outcome.is_some_and(|outcome| outcome.status.satisfies_gate()), "gate {} is unmet", gate.id);
            }
        } else {
            prop_assert!(ended.failure.as_ref().is_some_and(|failure| !failure.reason.is_empty()));
        }
        prop_assert_ne!(run.state.main().context.text("outcome"), "forged");
    }

    #[test]
    fn replay_of_the_journals_text_is_the_live_state(text in graph(), seed: u64) {
        let pipeline = pipeline(&text);
        let run = live(&pipeline, seed);
        let mut replayed = RunState::default();
        for record in &run.records {
            let line = serde_json::to_string(record).unwrap();
            let record: Record = serde_json::from_str(&line).unwrap();
            replayed.apply(&record);
        }
        prop_assert_eq!(replayed, run.state);
    }

    #[test]
    fn what_fails_is_known_at_every_record(text in graph(), seed: u64) {
        let pipeline = pipeline(&text);
        let (mut state, mut before, mut completed) = (RunState::default(), 0, Vec::new());
        for record in &live(&pipeline, seed).records {
            state.apply(record);
            let branch = state.main();
            if matches!(record.event, Event::LoopRestarted(_)) {
                (before, completed) = (branch.completed.total(), Vec::new());
            }
            let is_longer = branch.completed.total() > before + completed.len() as u64;
            completed.extend(branch.completed.last().filter(|_| is_longer).cloned());
            let has_failed = |id: &&NodeId| matches!(branch.status(id), Some(Status::Fail | Status::Retry));
            let mut failing: Vec<&NodeId> = Vec::new();
            for id in completed.iter().rev().filter(has_failed) {
                if !failing.contains(&id) {
                    failing.push(id);
                }
            }
            prop_assert_eq!(branch.failing().collect::<Vec<_>>(), failing);
        }
    }

    #[test]
    fn every_prefix_of_a_journal_goes_on_to_the_same_end(text in graph(), seed: u64) {
        let pipeline = pipeline(&text);
        let run = live(&pipeline, seed);
        for length in 1..=run.records.len() {
            let mut resumed = Simulation::from_prefix(&pipeline, &run.records[..length]);
            resumed.go_on(&mut |open| answer(seed, open));
            prop_assert_eq!(&resumed.state.verdict, &run.state.verdict, "after record {}", length);
            prop_assert_eq!(&resumed.state.main().completed, &run.state.main().completed);
            prop_assert_eq!(&resumed.state.main().context, &run.state.main().context);
            prop_assert_eq!(resumed.state.steps, run.state.steps);
        }
    }
}
