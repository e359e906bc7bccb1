//! Failures of the machine that a verifier found (decision infra-failures-are-not-fixed).

use super::FRAME;
use crate::simulation::{Simulation, finished, pipeline};
use glovebox_journal::event::Work;
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome, Status};

/// Runs a pipeline in which `check`, or the verification of `a`, ends with these words: `infra`, `product` or `ok`.
/// Returns the attempts and the verdict.
fn run(graph: &str, words: &str) -> (String, String) {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} check; {graph} }}"));
    let mut words = words.split_whitespace();
    let mut attempts = Vec::new();
    let run = Simulation::run(&pipeline, 30, &mut |open| {
        let judges = open.task.node == "check" || open.task.work == Work::Verify;
        attempts.push(format!("{}{}", open.task.node, if open.task.work == Work::Verify { "?" } else { "" }));
        let mut ended = finished(open, Outcome::new(Status::Success));
        if judges {
            let failure = match words.next().expect("one more verdict") {
                "infra" => Some(Failure::new(FailureClass::Transient, FailureCode::VERIFY_INFRA, "port taken")),
                "product" => Some(Failure::new(FailureClass::Deterministic, "verify/exit-code", "1 != 2")),
                _ => None,
            };
            ended.outcome = failure.map_or_else(|| Outcome::new(Status::Success), Outcome::failed);
            ended.handler = "verify".into();
            let code = i32::from(ended.outcome.failure.is_some());
            ended.commands.receipts =
                vec![crate::simulation::receipt(Some(code), glovebox_record::CommandEnding::Exited)];
        }
        ended
    });
    (attempts.join(" "), run.verdict())
}

const LOOP: &str = "start -> a -> check; check -> exit [condition=\"outcome=success\"]; \
                    check -> b [condition=\"outcome=fail\"]; b -> check";
const STOP: &str = "fail verify/infra: port taken";

#[test]
fn a_failure_of_the_machine_is_repeated_and_never_fixed() {
    assert_eq!(run(LOOP, "infra ok"), ("a check check".into(), "success exit".into()));
    assert_eq!(run(LOOP, "infra infra infra"), ("a check check check".into(), STOP.into()));
    assert_eq!(run(LOOP, "product ok"), ("a check b check".into(), "success exit".into()));
    let never = format!("check [max_retries=0]; {LOOP}");
    assert_eq!(run(&never, "infra"), ("a check".into(), STOP.into()));
}

#[test]
fn only_an_edge_that_names_the_class_leads_on() {
    let target = "start -> a -> check; check -> exit; check [max_retries=0, retry_target=b]; b -> check";
    assert_eq!(run(target, "infra"), ("a check".into(), STOP.into()));
    let diamond = "d [shape=diamond]; check [max_retries=0]; start -> a -> check -> d; d -> b [condition=\"outcome=fail\"]; \
                   d -> exit [condition=\"outcome=success\"]; b -> check";
    assert_eq!(run(diamond, "infra"), ("a check".into(), STOP.into()));
    let named = "check [max_retries=0]; start -> a -> check; check -> exit [condition=\"outcome=success\"]; \
                 check -> b [condition=\"outcome=fail && context.failure_class=transient\"]; \
                 check -> c [condition=\"outcome=fail && context.failure_class!=transient\"]; b -> check; c -> check";
    assert_eq!(run(named, "infra ok"), ("a check b check".into(), "success exit".into()));
    assert_eq!(run(named, "product ok"), ("a check c check".into(), "success exit".into()));
}

#[test]
fn a_verification_alone_is_repeated_and_not_the_work() {
    let graph = "a [verify_command=x]; start -> a -> exit";
    assert_eq!(run(graph, "infra ok"), ("a a? a?".into(), "success exit".into()));
    assert_eq!(run(graph, "infra infra infra"), ("a a? a? a?".into(), STOP.into()));
    let retried = "a [verify_command=x, max_retries=1]; start -> a -> exit";
    assert_eq!(run(retried, "product ok"), ("a a? a a?".into(), "success exit".into()));
    assert_eq!(run(retried, "infra ok"), ("a a? a?".into(), "success exit".into()));
}
