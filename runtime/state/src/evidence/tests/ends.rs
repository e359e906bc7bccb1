//! The end or current status of a run, the stage that caused a failure, and where a resume begins.

use super::*;
use crate::simulation::task;
use glovebox_journal::event::{
    AnsweredBy, FileChange, HeldStage, QuestionAsked, RecoveryAction, RecoveryDecided, RunCanceled, RunPaused, Verdict,
    WentBack,
};
use glovebox_record::path::ScopePath;
use glovebox_record::spend::Money;
use glovebox_record::{Failure, Network, NodeId, QuestionType, Refusal, SandboxRecord, Tier, Tokens, Traffic};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn a_summary_says_what_ran_and_how_it_ended() {
    let graph = graph("a; start -> a -> exit");
    let mut run = Simulation::new(&graph);
    run.attempt_ms = 40;
    let sandbox = SandboxRecord {
        tier: Tier::Full,
        require: Tier::Full,
        network: Network::Full,
        landlock_abi: 6,
        degradations: Vec::new(),
    };
    let mut begun = started(&graph, 30, None);
    begun.commands.sandbox = Some(sandbox);
    run.append(vec![Event::RunStarted(Box::new(begun))]);
    let begun = summary(&run);
    assert_eq!(
        (begun.status, begun.end.exit, begun.end.finished_at),
        (RunStatus::Unfinished, ExitClass::Transient, None)
    );
    run.go_on(&mut |open| attempt(open, ""));
    let ended = summary(&run);
    assert_eq!(
        (ended.run_id.as_str(), ended.pipeline.as_str(), ended.model.provider.as_str()),
        ("run", "g", "simulated")
    );
    assert_eq!((ended.status, ended.end.exit, ended.duration_ms), (RunStatus::Success, ExitClass::Ok, 40));
    assert_eq!(
        (ended.started_at, ended.end.finished_at),
        (Some(run.records[0].at), Some(run.records.last().unwrap().at))
    );
    assert_eq!(ended.head.records, run.records.len() as u64);
    assert!(ended.has_full_network() && !summary(&super::run(&graph, &[])).has_full_network());
    let words = [RunStatus::Running, RunStatus::Unfinished, RunStatus::Paused, RunStatus::Success, RunStatus::Fail];
    assert_eq!(words.map(RunStatus::as_str), ["running", "unfinished", "paused", "success", "fail"]);
    assert_eq!(RunStatus::from(Verdict::Fail), RunStatus::Fail);
}

#[test]
fn only_a_run_that_has_not_ended_is_running() {
    let graph = graph("a; start -> a -> exit");
    let run = run(&graph, &[]);
    let now = run.records[0].at + jiff::SignedDuration::from_secs(9);
    let mut begun = RunSummary::from_records(&run.records[..2]);
    begun.is_running(now);
    assert_eq!((begun.status, begun.duration_ms), (RunStatus::Running, 9_000));
    let mut ended = summary(&run);
    ended.is_running(now);
    assert_eq!((ended.status, ended.duration_ms), (RunStatus::Success, 1));
}

#[test]
fn the_failed_node_is_the_one_with_the_failure_of_the_run() {
    let failed = |text: &str, words: &[(&str, &[&str])]| {
        let summary = summary(&run(&graph(text), words));
        assert_eq!(summary.status, RunStatus::Fail);
        summary.end.failed_node.map(|node| node.to_string())
    };
    assert_eq!(failed("a; b; start -> a -> b -> exit", &[("b", &["fail"])]).as_deref(), Some("b"));
    let often = "a; b; start -> a; a -> b [condition=\"outcome=fail\"]; b -> b";
    assert_eq!(failed(often, &[("a", &["fail"])]), None, "a bound ended it, and no stage");
}

/// Returns the summary of a run that ended with this failure.
fn ended_with(class: FailureClass, code: FailureCode, by: Option<&str>) -> RunSummary {
    let graph = graph("a; start -> a -> exit");
    let mut run = Simulation::new(&graph);
    run.append(vec![Event::RunStarted(Box::new(started(&graph, 30, None)))]);
    let mut events: Vec<Event> =
        by.map(|by| Event::RunCanceled(RunCanceled { by: by.to_owned() })).into_iter().collect();
    events.push(crate::decide::failed(Failure::new(class, code, "it is over")));
    RunSummary::from_records(&followed_by(&run, events))
}

#[test]
fn what_a_resume_does_follows_from_how_the_run_ended() {
    use FailureClass::{Budget, Canceled, Deterministic};
    for (class, code, by, resumption) in [
        (Budget, FailureCode::RUN_DISK, None, Resumption::Continues),
        (Budget, FailureCode::RUN_STEPS, None, Resumption::NeedsSteps),
        (Budget, FailureCode::RUN_WALL_TIME, None, Resumption::NeedsTime),
        (Budget, FailureCode::RUN_TOKENS, None, Resumption::NeedsTokens),
        (Budget, FailureCode::RUN_COST, None, Resumption::NeedsMoney),
        (Budget, FailureCode::NODE_WALL_TIME, None, Resumption::Repeats),
        (Deterministic, FailureCode::STAGE_FAILED, None, Resumption::Repeats),
        (Canceled, FailureCode::RUN_CANCELED, Some("signal INT"), Resumption::Continues),
        (Canceled, FailureCode::RUN_CANCELED, Some("signal TERM"), Resumption::Continues),
        (Canceled, FailureCode::RUN_CANCELED, Some("ada"), Resumption::Shows),
    ] {
        let summary = ended_with(class, code.clone(), by);
        assert_eq!(summary.resumption(), resumption, "{code} {by:?}");
        let is_stopped = by.is_some_and(|by| by.starts_with("signal"));
        assert_eq!((summary.is_stopped(), summary.is_canceled()), (is_stopped, by == Some("ada")), "{by:?}");
    }
    let graph = graph("a; start -> a -> exit");
    let run = run(&graph, &[]);
    assert_eq!(summary(&run).resumption(), Resumption::Shows);
    assert_eq!(RunSummary::from_records(&run.records[..2]).resumption(), Resumption::Continues);
}

#[test]
fn a_resume_takes_back_the_end_and_not_what_was_spent() {
    let graph = graph("a; b; start -> a -> b -> exit");
    let mut turn = 0;
    let run = Simulation::run(&graph, 30, &mut |open| {
        turn += 1;
        let mut ended = attempt(open, if open.task.node == "b" { "+y fail" } else { "+x" });
        (ended.model.tokens, ended.model.cost) = (Tokens { input: 5, output: 0 }, Money(2));
        (ended.model.is_estimated, ended.commands.network) = (open.task.node == "b", Some(Traffic::default()));
        ended.refusals.listed = vec![Refusal::new("read", "z", "no grant", "")];
        ended
    });
    let before_b = run.records.iter().find(|one| one.event.stage_ready().is_some_and(|one| one.task.node == "b"));
    let seq = before_b.unwrap().seq - 1;
    let back = Some(WentBack { visit: 1, generation: 0, seq });
    let resumed = RunResumed { from: Some("b".into()), back, ..RunResumed::default() };
    let records = followed_by(&run, vec![Event::RunResumed(Box::new(resumed))]);
    let summary = RunSummary::from_records(&records);
    assert_eq!(
        (summary.status, summary.end.failure.is_none(), summary.end.failed_node.is_none()),
        (RunStatus::Unfinished, true, true)
    );
    assert_eq!((summary.end.exit, summary.end.finished_at), (ExitClass::default(), None));
    assert_eq!(
        summary.files.changed.keys().map(ScopePath::as_str).collect::<Vec<_>>(),
        ["x"],
        "files are as before `b`"
    );
    assert_eq!((summary.model.tokens.input, summary.model.cost, summary.model.is_estimated), (10, Money(4), true));
    assert_eq!((summary.access.refused.len(), summary.access.traffic.len()), (2, 2));
    let simulated = ["b".into()].into();
    let replanned = Replanned {
        plan_digest: glovebox_journal::event::Digest::ZERO,
        components: BTreeMap::new(),
        narrowed_scopes: BTreeMap::new(),
        capabilities_digest: glovebox_journal::event::Digest::ZERO,
        more: Vec::new(),
        less: Vec::new(),
        model: Some("live".into()),
        simulated,
    };
    let resumed = RunResumed { replanned: Some(replanned), ..RunResumed::default() };
    let records = followed_by(&run, vec![Event::RunResumed(Box::new(resumed))]);
    assert_eq!(RunSummary::from_records(&records).model.provider, "live");
}

fn question(node: &str) -> QuestionAsked {
    let task = task(node);
    QuestionAsked {
        question: QuestionAsked::id_of(&task),
        generation: 0,
        branch: task.branch,
        node: task.node,
        visit: 1,
        question_type: QuestionType::YesNo,
        text: "go on?".into(),
        choices: Vec::new(),
        default: None,
        due_at: None,
        recovery: None,
    }
}

fn answer(asked: &QuestionAsked, recovery: bool) -> QuestionAnswered {
    QuestionAnswered {
        generation: 0,
        branch: asked.branch.clone(),
        node: asked.node.clone(),
        visit: 1,
        question: asked.question.clone(),
        how: AnsweredBy::Command,
        by: "ada".into(),
        answered_at: Timestamp::UNIX_EPOCH,
        value: "no".into(),
        answer: Some(glovebox_record::question::Answer::No),
        text: String::new(),
        sheet: None,
        recovery,
    }
}

fn begun(pipeline: &Pipeline) -> Simulation<'_> {
    let mut run = Simulation::new(pipeline);
    run.append(vec![Event::RunStarted(Box::new(started(pipeline, 30, None)))]);
    run
}

#[test]
fn a_question_is_open_until_it_is_answered_or_the_run_has_ended_for_good() {
    let graph = graph("a; start -> a -> exit");
    let asked = || [question("p"), question("q")].map(|asked| Event::QuestionAsked(Box::new(asked)));
    let open = |then: Vec<Event>| {
        let summary = RunSummary::from_records(&followed_by(&begun(&graph), [asked().to_vec(), then].concat()));
        summary.open_questions.iter().map(|asked| asked.node.to_string()).collect::<Vec<_>>().join(" ")
    };
    let end = || crate::decide::failed(Failure::new(FailureClass::Deterministic, "test/failed", "it broke"));
    let cancel = |by: &str| Event::RunCanceled(RunCanceled { by: by.to_owned() });
    let answered = |recovery| Event::QuestionAnswered(Box::new(answer(&question("p"), recovery)));
    assert_eq!(open(vec![]), "p q");
    assert_eq!(open(vec![answered(false)]), "q");
    assert_eq!(open(vec![answered(true)]), "q");
    assert_eq!((open(vec![end()]), open(vec![cancel("ada"), end()])), (String::new(), String::new()));
    assert_eq!(open(vec![cancel("signal INT"), end()]), "p q", "it asks again when it is resumed");
    let resumed = |from: Option<&str>| {
        vec![Event::RunResumed(Box::new(RunResumed { from: from.map(NodeId::from), ..RunResumed::default() }))]
    };
    assert_eq!((open(resumed(None)), open(resumed(Some("a")))), ("p q".to_owned(), String::new()));
    let ended = glovebox_journal::event::BranchFinished {
        generation: 0,
        branch: BranchId::new("other"),
        parent: BranchId::main(),
        outcome: glovebox_journal::event::BranchEnd::Success,
        node: None,
        score: 0.0,
        notes: String::new(),
        failure: None,
    };
    assert_eq!(open(vec![Event::BranchFinished(Box::new(ended))]), "p q", "they are of another branch");
}

#[test]
fn a_gate_that_was_answered_is_a_finished_visit_and_a_decision_about_writes_is_none() {
    let graph = graph("a; start -> a -> exit");
    let visits = |branch: &BranchId, recovery: bool| {
        let mut answered = answer(&question("p"), recovery);
        answered.branch = branch.clone();
        let event = Event::QuestionAnswered(Box::new(answered));
        let summary = RunSummary::from_records(&followed_by(&begun(&graph), vec![event]));
        let row = |visit: &Visit| (visit.node.to_string(), visit.branch.clone(), visit.status);
        summary.visited.iter().map(row).collect::<Vec<_>>()
    };
    let other = BranchId::new("f-a");
    let status = answer(&question("p"), false).outcome().status.as_str();
    assert_eq!(visits(&BranchId::main(), false), [("p".to_owned(), None, status)]);
    assert_eq!(visits(&other, false), [("p".to_owned(), Some(other.clone()), status)]);
    assert_eq!(visits(&BranchId::main(), true), []);
}

#[test]
fn a_pause_names_the_stage_that_waits_for_a_person() {
    let graph = graph("a; start -> a -> exit");
    let failure = Failure::new(FailureClass::Transient, "provider/quota", "no credit is left");
    let held = Some(HeldStage { node: "a".into(), failure: failure.clone(), waits: 0 });
    let paused = RunPaused { by: None, questions: Vec::new(), problem: None, held, resume_at: None };
    let summary = RunSummary::from_records(&followed_by(&begun(&graph), vec![Event::RunPaused(Box::new(paused))]));
    assert_eq!((summary.status, summary.end.exit), (RunStatus::Paused, ExitClass::Paused));
    assert_eq!((summary.end.failed_node, summary.end.failure), (Some("a".into()), Some(failure)));
    assert_eq!(summary.visited.len(), 0);
}

/// Returns the summary of a run whose stage `a` wrote outside of its scope, after a decision about these writes.
fn decided(action: RecoveryAction, change: &dyn Fn(&mut RecoveryDecided)) -> RunSummary {
    let graph = graph("t; a; b; start -> t -> b -> a -> exit");
    let run = Simulation::run(&graph, 30, &mut |open| {
        let mut ended = attempt(open, if open.task.node == "t" { "passed" } else { "" });
        let refused = |path: &str| glovebox_journal::event::RefusedChange { path: path.into(), reason: "no".into() };
        ended.files.quarantined = vec![refused("lock"), refused("out")];
        if open.task.node == "a" {
            ended.outcome = Outcome::failed(Failure::new(FailureClass::Scope, FailureCode::SCOPE_WRITE, "it wrote"));
        }
        ended
    });
    let last = run.records.iter().rev().find_map(|record| record.event.stage_finished()).unwrap();
    let changes = if action == RecoveryAction::Allow { vec![change_of("lock")] } else { Vec::new() };
    let mut decided = RecoveryDecided {
        attempt: last.attempt.clone(),
        handler: "codergen".into(),
        question: QuestionAsked::id_of_recovery(&last.attempt.task),
        action,
        reason: None,
        how: AnsweredBy::Command,
        by: "ada".into(),
        changes,
        outcome: Outcome::new(Status::Success),
        verifying: false,
        stored_values: BTreeSet::new(),
        signature: None,
    };
    change(&mut decided);
    RunSummary::from_records(&followed_by(&run, vec![Event::RecoveryDecided(Box::new(decided))]))
}

fn change_of(path: &str) -> FileChange {
    change(path, ChangeOp::Write)
}

fn set_aside(summary: &RunSummary) -> Vec<String> {
    summary.files.quarantined.iter().map(|file| format!("{} {}", file.node, file.path)).collect()
}

#[test]
fn what_a_person_allowed_is_a_change_of_the_run_and_set_aside_no_more() {
    let allowed = decided(RecoveryAction::Allow, &|_| ());
    let rest = ["t lock", "t out", "b lock", "b out", "a out"];
    assert_eq!(set_aside(&allowed), rest);
    let numbers: Vec<u64> = allowed.files.quarantined.iter().map(|file| file.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 6], "the number of a change stays when another one is committed");
    assert_eq!(allowed.files.changed.keys().map(ScopePath::as_str).collect::<Vec<_>>(), ["lock"]);
    assert_eq!(allowed.files.recovery[0].granted.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["lock"]);
    assert_eq!(
        (allowed.files.recovery[0].action, allowed.files.recovery[0].by.as_str()),
        (RecoveryAction::Allow, "ada")
    );
    assert_eq!(outdated(&allowed), Some((vec!["t".into()], "a".into())), "`t` passed before it was committed");
    let statuses: Vec<(&str, &str)> = allowed.visited.iter().map(|one| (one.node.as_str(), one.status)).collect();
    assert_eq!(statuses, [("t", "success"), ("b", "success"), ("a", "success")]);
    assert_eq!(unverified(&allowed), ["b", "a"]);
    let denied = decided(RecoveryAction::Deny, &|decided| {
        decided.outcome = Outcome::failed(Failure::new(FailureClass::Scope, FailureCode::SCOPE_WRITE, "it wrote"));
    });
    assert_eq!((denied.files.quarantined.len(), denied.files.changed.len(), outdated(&denied)), (6, 0, None));
    assert_eq!((unverified(&denied), denied.visited[2].status), (vec!["b"], "fail"));
    assert_eq!(unverified(&decided(RecoveryAction::Allow, &|decided| decided.verifying = true)), ["b"]);
}

#[test]
fn a_decision_is_about_the_visit_of_its_own_stage() {
    let denied = decided(RecoveryAction::Deny, &|decided| {
        decided.attempt.task.node = "t".into();
        decided.outcome = Outcome::failed(Failure::new(FailureClass::Scope, FailureCode::SCOPE_WRITE, "it wrote"));
    });
    let statuses: Vec<(&str, &str)> = denied.visited.iter().map(|one| (one.node.as_str(), one.status)).collect();
    assert_eq!(statuses, [("t", "fail"), ("b", "success"), ("a", "fail")]);
    let later = decided(RecoveryAction::Allow, &|decided| decided.attempt.task.visit = 2);
    assert_eq!(later.visited[2].status, "fail", "of another visit");
}

#[test]
fn what_a_person_allowed_in_a_branch_is_no_change_of_the_run_yet() {
    let allowed = decided(RecoveryAction::Allow, &|decided| decided.attempt.task.branch = BranchId::new("f-a"));
    assert_eq!((allowed.files.changed.len(), outdated(&allowed)), (0, None));
}
