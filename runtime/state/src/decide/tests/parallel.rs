//! Parallel nodes: every join policy with every error policy, canceled branches, nested parallel nodes, and any graph
//! resumed from any prefix.

use crate::run_state::{OpenTask, RunState};
use crate::simulation::{Simulation, finished, pipeline, started};
use glovebox_journal::event::{BranchEnd, BranchId, Event, RunCanceled, StageFinished, StageStarted};
use glovebox_pipeline::ir::Pipeline;
use glovebox_record::{Failure, FailureClass, Outcome, Status};
use proptest::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Returns a parallel node with three branches of one stage each, in this order.
fn three(parallel: &str) -> String {
    format!(
        "digraph g {{ start [shape=Mdiamond]; exit [shape=Msquare]; f [shape=component, {parallel}]; j [shape=tripleoctagon];
         a; b; c; after; start -> f; f -> a -> j; f -> b -> j; f -> c -> j; j -> after -> exit }}"
    )
}

fn answer(open: &OpenTask, word: char) -> StageFinished {
    let status = match word {
        's' => Status::Success,
        'p' => Status::PartialSuccess,
        _ => Status::Fail,
    };
    let failure = (status == Status::Fail)
        .then(|| Failure::new(FailureClass::Deterministic, "test/failed", format!("{} broke", open.task.node)));
    finished(open, Outcome { failure, ..Outcome::new(status) })
}

fn opens(run: &Simulation<'_>) -> Vec<OpenTask> {
    run.state.branches.values().filter_map(|branch| branch.open()).cloned().collect()
}

/// Runs three branches that begin together and end in order, each with its letter: `s`, `p` or `f`. Checks how each
/// branch and the run ended.
fn check(setting: &str, ends: &str, expected: &str) {
    let pipeline = pipeline(&three(setting));
    let mut run = Simulation::new(&pipeline);
    run.append(vec![Event::RunStarted(Box::new(started(&pipeline, 50, None)))]);
    for open in opens(&run) {
        let attempt = finished(&open, Outcome::new(Status::Success)).attempt;
        run.append(vec![Event::StageStarted(StageStarted { attempt, worker: "w".into(), machine: None, moved: None })]);
    }
    for (node, word) in ["a", "b", "c"].into_iter().zip(ends.chars()) {
        let open = opens(&run).into_iter().find(|open| open.task.node == node);
        let Some(open) = open else { continue };
        let mut ended = answer(&open, word);
        crate::decide::finalize_attempt(&pipeline, None, &run.state, false, &mut ended);
        run.append(vec![Event::StageFinished(Box::new(ended))]);
    }
    run.go_on(&mut |open| finished(open, Outcome::new(Status::Success)));
    assert_eq!(told(&run), expected, "{setting} with {ends}");
}

fn told(run: &Simulation<'_>) -> String {
    let mut told = String::new();
    for record in &run.records {
        match &record.event {
            Event::BranchFinished(ended) => {
                told.push(match ended.outcome {
                    BranchEnd::Success => 's',
                    BranchEnd::PartialSuccess => 'p',
                    BranchEnd::Fail => 'f',
                    BranchEnd::Canceled => 'c',
                });
            }
            Event::ParallelJoined(joined) => told += &format!(" {}", joined.status.as_str()),
            Event::FanInFinished(finished) => {
                let best = finished.best.as_ref().map_or("none", BranchId::as_str);
                told += &format!(" {best}");
            }
            _ => {}
        }
    }
    format!("{told}, {}", run.verdict())
}

/// Three runs: for each, how its branches end (one letter per branch, as in `check`), and the expected result.
type Runs = [(&'static str, String); 3];

/// Tests every pair of join and error policy over runs whose branches end in this order.
#[test]
fn every_join_policy_with_every_error_policy() {
    let broke = |ends: &str| format!("{ends} fail none, fail test/failed: a broke");
    let done = |ends: &str, status: &str, best: &str| format!("{ends} {status} f-{best}, success exit");
    let few = |ends: &str, policy: &str, did: u32| {
        format!(
            "{ends} fail none, fail parallel/too-few: `join_policy={policy}` of `f` needs 2 branches to succeed, and {did} of 3 \
             did; branch `f-a` failed: a broke"
        )
    };
    let table: [(&str, Runs, Runs, Runs); 4] = [
        (
            "wait_all",
            [("sss", done("sss", "success", "a")), ("fsp", done("fsp", "partial_success", "b")), ("fff", broke("fff"))],
            [("sss", done("sss", "success", "a")), ("fss", broke("fcc")), ("fff", broke("fcc"))],
            [("sss", done("sss", "success", "a")), ("fps", done("fps", "success", "c")), ("fff", broke("fff"))],
        ),
        (
            "first_success",
            [("sss", done("scc", "success", "a")), ("fss", done("fsc", "success", "b")), ("fff", broke("fff"))],
            [("sss", done("scc", "success", "a")), ("fss", broke("fcc")), ("fff", broke("fcc"))],
            [("pss", done("pcc", "success", "a")), ("ffs", done("ffs", "success", "c")), ("fff", broke("fff"))],
        ),
        (
            "k_of_n, k=2",
            [
                ("sss", done("ssc", "success", "a")),
                ("fss", done("fss", "success", "b")),
                ("ffs", few("ffs", "k_of_n", 1)),
            ],
            [("sss", done("ssc", "success", "a")), ("fss", broke("fcc")), ("ffs", broke("fcc"))],
            [
                ("sps", done("spc", "success", "a")),
                ("fss", done("fss", "success", "b")),
                ("ffs", few("ffs", "k_of_n", 1)),
            ],
        ),
        (
            "quorum",
            [
                ("sss", done("ssc", "success", "a")),
                ("fss", done("fss", "success", "b")),
                ("ffs", few("ffs", "quorum", 1)),
            ],
            [("sss", done("ssc", "success", "a")), ("fss", broke("fcc")), ("ffs", broke("fcc"))],
            [("sss", done("ssc", "success", "a")), ("fss", done("fss", "success", "b")), ("fff", broke("fff"))],
        ),
    ];
    for (join, on_continue, on_fail_fast, on_ignore) in table {
        for (error, runs) in [("continue", on_continue), ("fail_fast", on_fail_fast), ("ignore", on_ignore)] {
            for (ends, expected) in runs {
                check(&format!("join_policy={join}, error_policy={error}"), ends, &expected);
            }
        }
    }
}

#[test]
fn a_loser_is_canceled_and_its_end_recorded_before_the_join_moves_on() {
    let pipeline = pipeline(&three("join_policy=first_success"));
    let mut run = Simulation::new(&pipeline);
    run.append(vec![Event::RunStarted(Box::new(started(&pipeline, 50, None)))]);
    let all = opens(&run);
    for open in &all[..2] {
        let attempt = finished(open, Outcome::new(Status::Success)).attempt;
        run.append(vec![Event::StageStarted(StageStarted { attempt, worker: "w".into(), machine: None, moved: None })]);
    }
    let claimed = opens(&run);
    run.append(vec![Event::StageFinished(Box::new(answer(&claimed[0], 's')))]);
    let kinds = |run: &Simulation<'_>| run.records.iter().map(|record| record.event.kind()).collect::<Vec<_>>();
    let canceled = kinds(&run).iter().filter(|kind| **kind == "branch.canceled").count();
    assert_eq!((canceled, kinds(&run).contains(&"parallel.joined")), (2, false), "`b` is under way, `c` is not");
    assert_eq!(run.state.branches.len(), 2, "only `b` is left beside the branch that split");
    run.append(vec![Event::StageFinished(Box::new(answer(&claimed[1], 's')))]);
    let kinds = kinds(&run);
    let place = |kind| kinds.iter().rposition(|one| *one == kind);
    assert!(place("branch.finished") < place("parallel.joined"), "{kinds:?}");
    assert_eq!(run.state.main().open().map(|open| open.task.node.clone()), Some("after".into()));
}

#[test]
fn a_cancel_of_the_run_beats_every_policy() {
    for policy in ["wait_all", "first_success", "k_of_n", "quorum"] {
        for error in ["continue", "fail_fast", "ignore"] {
            let pipeline = pipeline(&three(&format!("join_policy={policy}, error_policy={error}")));
            let mut run = Simulation::new(&pipeline);
            run.append(vec![Event::RunStarted(Box::new(started(&pipeline, 50, None)))]);
            for open in opens(&run) {
                let attempt = finished(&open, Outcome::new(Status::Success)).attempt;
                run.append(vec![Event::StageStarted(StageStarted {
                    attempt,
                    worker: "w".into(),
                    machine: None,
                    moved: None,
                })]);
            }
            run.append(vec![Event::RunCanceled(RunCanceled { by: "the operator".into() })]);
            let steps = run.state.steps;
            for open in opens(&run) {
                assert!(run.state.verdict.is_none(), "an attempt is under way");
                run.append(vec![Event::StageFinished(Box::new(answer(&open, 's')))]);
            }
            assert_eq!(run.verdict(), "fail run/canceled: canceled by the operator", "{policy} {error}");
            assert_eq!(run.state.steps, steps, "nothing began after it");
        }
    }
}

#[test]
fn no_more_branches_run_at_once_than_the_fork_allows() {
    let pipeline = pipeline(&three("max_parallel=2"));
    let mut run = Simulation::new(&pipeline);
    run.append(vec![Event::RunStarted(Box::new(started(&pipeline, 50, None)))]);
    assert_eq!(opens(&run).len(), 2);
    run.go_on(&mut |open| answer(open, 's'));
    assert_eq!(told(&run), "sss success f-a, success exit");
}

#[test]
fn a_branch_has_a_copy_of_the_context_and_gives_none_of_its_own_back() {
    let pipeline = pipeline(&three("join_policy=wait_all"));
    let run = Simulation::run(&pipeline, 50, &mut |open| {
        let mut ended = answer(open, 's');
        ended.outcome.context_updates.insert("who".into(), open.task.node.as_str().into());
        let score = ["a", "c", "b"].iter().position(|node| open.task.node == *node);
        ended.outcome.context_updates.insert("score".into(), score.into());
        ended
    });
    let context = &run.state.main().context;
    assert_eq!(context.text("who"), "after", "no branch wrote it");
    assert_eq!(context.text("parallel.fan_in.best_id"), "f-b", "it has the highest score");
    let ids: Vec<String> = (0..3)
        .map(|index| context.get("parallel.results").unwrap()[index]["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids, ["f-a", "f-b", "f-c"], "in the order of the edges");
}

#[test]
fn a_goal_gate_in_a_branch_counts_for_the_run() {
    let graph = |end: &str| {
        format!(
            "digraph g {{ start [shape=Mdiamond]; exit [shape=Msquare]; f [shape=component]; j [shape=tripleoctagon];
             a [goal_gate=true]; b; start -> f; f -> a -> j; a -> j [condition=\"outcome=fail\"]; f -> b -> j; j -> exit {end} }}"
        )
    };
    let pipeline = pipeline(&graph(""));
    let passed = Simulation::run(&pipeline, 50, &mut |open| answer(open, 's'));
    assert_eq!(passed.verdict(), "success exit");
    let mut a_fails = |open: &OpenTask| answer(open, if open.task.node == "a" { 'f' } else { 's' });
    let failed = Simulation::run(&pipeline, 50, &mut a_fails);
    assert!(failed.verdict().starts_with("fail GoalGateUnsatisfied"), "{}", failed.verdict());
}

#[test]
fn a_fork_in_a_branch_is_joined_there() {
    let graph = "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; f [shape=component]; j [shape=tripleoctagon];
        g [shape=component, join_policy=first_success]; h [shape=tripleoctagon]; a; b; c; start -> f; f -> g; g -> a -> h;
        g -> b -> h; h -> j; f -> c -> j; j -> exit }";
    let pipeline = pipeline(graph);
    let run = Simulation::run(&pipeline, 50, &mut |open| answer(open, 's'));
    let names: Vec<String> = run
        .records
        .iter()
        .filter(|record| matches!(record.event, Event::BranchStarted(_)))
        .filter_map(|record| record.event.branch().map(ToString::to_string))
        .collect();
    let names: std::collections::BTreeSet<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(names, ["f-c", "f-g", "f-g-g-a", "f-g-g-b"].into());
    assert_eq!(run.verdict(), "success exit");
    assert_eq!(run.state.branches.len(), 1, "nothing is left of branches that ended");
}

#[test]
fn a_limit_of_the_run_waits_for_the_attempts_of_other_branches() {
    let pipeline = pipeline(&three("error_policy=ignore"));
    let mut run = Simulation::new(&pipeline);
    // The 5 steps are start, f, a, b and c.
    run.append(vec![Event::RunStarted(Box::new(started(&pipeline, 5, None)))]);
    for open in opens(&run) {
        let attempt = finished(&open, Outcome::new(Status::Success)).attempt;
        run.append(vec![Event::StageStarted(StageStarted { attempt, worker: "w".into(), machine: None, moved: None })]);
    }
    for open in opens(&run) {
        assert!(run.state.verdict.is_none());
        run.append(vec![Event::StageFinished(Box::new(answer(&open, 's')))]);
    }
    assert!(run.verdict().starts_with("fail limit/max_steps"), "{}", run.verdict());
}

#[test]
fn the_judge_of_a_fan_in_chooses_the_branch_and_nothing_else_does() {
    let judged = three("join_policy=wait_all").replace("tripleoctagon", "tripleoctagon, prompt=x");
    let pipeline = pipeline(&judged);
    for (label, best) in [(Some("f-b"), "f-b"), (Some(" c "), "f-c"), (Some("f-x"), "none"), (None, "none")] {
        let run = Simulation::run(&pipeline, 50, &mut |open| {
            let mut ended = answer(open, 's');
            let is_judge = open.task.node == "j";
            ended.outcome.preferred_label = label.filter(|_| is_judge).map(str::to_owned);
            ended
        });
        assert!(told(&run).starts_with(&format!("sss success {best}, ")), "{label:?}: {}", told(&run));
        assert_eq!(run.verdict() == "success exit", best != "none", "{}", run.verdict());
    }
}

#[test]
fn the_target_of_a_fork_that_failed_judges_no_branch() {
    let pipeline = pipeline(&three("retry_target=after"));
    let run =
        Simulation::run(&pipeline, 50, &mut |open| answer(open, if open.task.node == "after" { 's' } else { 'f' }));
    assert_eq!((run.attempts().as_str(), run.verdict().as_str()), ("a b c after", "success exit"));
}

#[test]
fn a_judge_may_name_the_branch_in_its_answer_once_and_as_a_word() {
    let judged = three("join_policy=wait_all").replace("tripleoctagon", "tripleoctagon, prompt=x");
    let pipeline = pipeline(&judged);
    for (said, best) in [
        ("I take f-b, which is whole.", "f-b"),
        ("f-a", "f-a"),
        ("f-a is worse than f-b", "none"),
        ("f-abc and xf-b", "none"),
        ("`f-c`", "f-c"),
    ] {
        let run = Simulation::run(&pipeline, 50, &mut |open| {
            let mut ended = answer(open, 's');
            let said = Some(said).filter(|_| open.task.node == "j");
            ended.outcome.context_updates.extend(said.map(|said| ("last_response".to_owned(), said.into())));
            ended
        });
        assert!(told(&run).starts_with(&format!("sss success {best}, ")), "{said}: {}", told(&run));
    }
}

#[test]
fn a_fork_that_failed_fast_counts_how_each_of_its_branches_ended() {
    let pipeline = pipeline(&three("error_policy=fail_fast, max_parallel=1, join_policy=wait_all"));
    let counts = |words: &str| {
        let mut words = words.chars();
        let run = Simulation::run(&pipeline, 50, &mut |open| answer(open, words.next().unwrap()));
        let joined = run.records.iter().find_map(|record| match &record.event {
            Event::ParallelJoined(joined) => {
                Some((joined.succeeded, joined.failed, joined.canceled, joined.never_started))
            }
            _ => None,
        });
        joined.expect("it was joined")
    };
    assert_eq!((counts("f"), counts("sf")), ((0, 1, 0, 2), (1, 1, 0, 1)));
    let run = Simulation::run(&pipeline, 50, &mut |open| answer(open, 'f'));
    let merged = run.records.iter().find_map(|record| match &record.event {
        Event::FanInFinished(finished) => Some(finished.signature),
        _ => None,
    });
    assert!(merged.flatten().is_some(), "the same failure can end a loop");
}

#[test]
fn a_branch_that_is_canceled_joins_none_of_its_own() {
    let graph =
        "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; f [shape=component, join_policy=first_success];
        j [shape=tripleoctagon]; g [shape=component]; h [shape=tripleoctagon]; a; b; c; start -> f; f -> g; g -> a -> h;
        g -> b -> h; h -> j; f -> c -> j; j -> exit }";
    let pipeline = pipeline(graph);
    let mut run = Simulation::new(&pipeline);
    run.append(vec![Event::RunStarted(Box::new(started(&pipeline, 50, None)))]);
    for open in opens(&run) {
        let attempt = finished(&open, Outcome::new(Status::Success)).attempt;
        run.append(vec![Event::StageStarted(StageStarted { attempt, worker: "w".into(), machine: None, moved: None })]);
    }
    for node in ["c", "a", "b"] {
        let open = opens(&run).into_iter().find(|open| open.task.node == node).unwrap();
        run.append(vec![Event::StageFinished(Box::new(answer(&open, 's')))]);
    }
    assert_eq!(told(&run), "sccc success f-c, success exit");
}

#[test]
fn a_fork_without_a_fan_in_of_its_own_fails_before_a_branch_begins() {
    let fails = |edges: &str| {
        let pipeline = pipeline(&format!(
            "digraph g {{ start [shape=Mdiamond]; exit [shape=Msquare]; f [shape=component]; j [shape=tripleoctagon]; a; b;
             start -> f; {edges}; j -> exit }}"
        ));
        Simulation::run(&pipeline, 50, &mut |open| answer(open, 's')).verdict()
    };
    assert_eq!(
        fails("f -> a -> exit; f -> b -> j"),
        "fail parallel/join: a branch of the parallel node `f` leads to the exit `exit`"
    );
    assert_eq!(
        fails("f -> a -> f; f -> b -> j"),
        "fail parallel/join: a branch of the parallel node `f` leads back to the parallel node `f`"
    );
    let apart = fails("k [shape=tripleoctagon]; f -> a -> j; f -> b -> k; k -> exit");
    assert_eq!(apart, "fail parallel/join: the branches of the parallel node `f` do not meet in one fan-in");
}

/// Generates a chain of parallel nodes with up to three branches, some with a nested parallel node.
fn graph() -> impl Strategy<Value = String> {
    let split = (0..4usize, 0..3usize, 1..4u32, 1..4usize, any::<bool>(), any::<bool>());
    prop::collection::vec(split, 1..3).prop_map(|splits| {
        let mut text = String::from("digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; start -> f0;\n");
        let count = splits.len();
        for (index, (join, error, parallel, branches, is_nested, leads_back)) in splits.into_iter().enumerate() {
            let join = ["wait_all", "first_success", "k_of_n", "quorum"][join];
            let error = ["continue", "fail_fast", "ignore"][error];
            text += &format!(
                "f{index} [shape=component, join_policy={join}, error_policy={error}, max_parallel={parallel}];
                 j{index} [shape=tripleoctagon{}];\n",
                if leads_back { ", merge=all" } else { "" }
            );
            for branch in 0..branches {
                let name = format!("n{index}{branch}");
                if is_nested && branch == 0 {
                    text += &format!(
                        "i{index} [shape=component, join_policy=first_success, max_parallel=2]; m{index} [shape=tripleoctagon]; {name}; x{name};
                         f{index} -> i{index}; i{index} -> {name} -> m{index}; i{index} -> x{name} -> m{index};
                         m{index} -> j{index};\n"
                    );
                } else {
                    text += &format!(
                        "{name} [max_retries={}]; y{name}; f{index} -> {name} -> y{name} -> j{index};
                         {name} -> y{name} [condition=\"outcome=fail\"];\n",
                        branch % 2
                    );
                }
            }
            let next = if index + 1 == count { "exit".to_owned() } else { format!("f{}", index + 1) };
            text += &format!("j{index} -> {next};\n");
            if leads_back {
                text += &format!("j{index} -> f{index} [condition=\"outcome=fail\"];\n");
            }
        }
        text + "}"
    })
}

fn chance(seed: u64, open: &OpenTask) -> StageFinished {
    let mut hasher = DefaultHasher::new();
    (seed, &open.task.branch, &open.task.node, open.task.visit, open.ordinal).hash(&mut hasher);
    let chance = hasher.finish();
    let mut ended = answer(open, ['s', 's', 'p', 'f'][(chance % 4) as usize]);
    ended.outcome.context_updates.insert("score".into(), serde_json::json!(chance / 16 % 5));
    let path = format!("file{}", chance / 256 % 3);
    ended.files.changes = vec![glovebox_journal::event::FileChange {
        bytes: chance / 4096 % 2,
        ..glovebox_journal::event::FileChange::bare(
            glovebox_record::path::ScopePath::parse(&path).unwrap(),
            glovebox_journal::event::ChangeOp::Write,
        )
    }];
    ended
}

fn end(run: &Simulation<'_>) -> (String, String) {
    let context: std::collections::BTreeMap<_, _> = run.state.main().context.iter().collect();
    (run.verdict(), serde_json::to_string(&context).unwrap())
}

fn live(graph: &Pipeline, seed: u64) -> Simulation<'_> {
    Simulation::run(graph, 60, &mut |open| chance(seed, open))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_forks_end_within_their_bounds_and_read_back_the_same(text in graph(), seed: u64) {
        let pipeline = pipeline(&text);
        let run = live(&pipeline, seed);
        prop_assert!(run.state.steps <= 60);
        let mut began = std::collections::BTreeSet::new();
        for record in &run.records {
            if let Event::BranchStarted(started) = &record.event {
                prop_assert!(began.insert(started.branch.clone()), "{} began twice", started.branch);
            }
        }
        let ends = run.records.iter().filter(|record| matches!(record.event, Event::BranchFinished(_))).count();
        let is_cut = run.verdict().contains("limit/max_steps");
        prop_assert!(is_cut || ends == began.len(), "each branch that began has an end");
        let mut replayed = RunState::default();
        for record in &run.records {
            let line = serde_json::to_string(record).unwrap();
            replayed.apply(&serde_json::from_str(&line).unwrap());
        }
        prop_assert_eq!(replayed, run.state);
    }

    #[test]
    fn every_prefix_with_forks_goes_on_to_the_same_end(text in graph(), seed: u64) {
        // Only one branch runs at a time, so that the order of ends does not depend on where the run was cut.
        let text = text.replace("max_parallel=2", "max_parallel=1").replace("max_parallel=3", "max_parallel=1");
        let pipeline = pipeline(&text);
        let run = live(&pipeline, seed);
        for length in 1..=run.records.len() {
            let mut resumed = Simulation::from_prefix(&pipeline, &run.records[..length]);
            resumed.go_on(&mut |open| chance(seed, open));
            prop_assert_eq!(resumed.verdict(), run.verdict(), "after record {}", length);
            prop_assert_eq!(end(&resumed), end(&run));
            prop_assert_eq!(&resumed.state.main().changes, &run.state.main().changes);
            prop_assert_eq!(resumed.state.steps, run.state.steps);
        }
    }
}
