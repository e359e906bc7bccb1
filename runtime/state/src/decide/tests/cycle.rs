//! The cycle breaker: which failures are treated as the same, and when they end a loop.

use super::pipeline;
use crate::run_state::OpenTask;
use crate::simulation::{Simulation, finished};
use glovebox_journal::event::{Digest, FollowUp, StageFinished};
use glovebox_record::{Failure, FailureClass, Outcome, Status};

const LOOP: &str = "digraph g { graph [max_steps=100LIMIT] start [shape=Mdiamond] exit [shape=Msquare] check fix \
                    start -> check  check -> exit [condition=\"outcome=success\"]  check -> fix [condition=\"outcome=fail\"]  \
                    fix -> check }";

/// Lets `check` fail with these failure signatures in order, or succeed for `-`. Returns the number of visits and the
/// verdict.
fn check(limit: &str, signatures: &str) -> (usize, String) {
    let pipeline = pipeline(&LOOP.replace("LIMIT", limit));
    let mut words = signatures.split_whitespace();
    let mut visits = 0;
    let run = Simulation::run(&pipeline, 100, &mut |open: &OpenTask| {
        if open.task.node.as_str() == "fix" {
            return finished(open, Outcome::new(Status::Success));
        }
        visits += 1;
        match words.next() {
            None | Some("-") => finished(open, Outcome::new(Status::Success)),
            Some(word) => {
                let failure = Failure::new(FailureClass::Deterministic, "tool/exit-code", format!("it said {word}"));
                let signature = (word != "none").then(|| Digest::hash(word.as_bytes()));
                let follow_up = FollowUp { signature, ..FollowUp::default() };
                StageFinished { follow_up, ..finished(open, Outcome::failed(failure)) }
            }
        }
    });
    let ended = run.state.verdict.as_ref().and_then(|ended| ended.failure.as_ref());
    (visits, ended.map_or_else(|| "success".to_owned(), |failure| format!("{}: {}", failure.code, failure.reason)))
}

#[test]
fn the_same_failure_ends_a_loop_at_the_limit() {
    let broken = |times: u32, limit: u32| {
        format!(
            "loop/signature_limit: node `check` failed {times} times in the same way, `loop_restart_signature_limit` is {limit}: it said x"
        )
    };
    assert_eq!(check("", "x x x x x"), (3, broken(3, 3)));
    assert_eq!(check(", loop_restart_signature_limit=2", "x x x"), (2, broken(2, 2)));
    // Another failure in between does not reset the count: two alternating failures are a loop too.
    assert_eq!(check("", "x y x y x y"), (5, broken(3, 3)));
    assert_eq!(check("", "a b c d e f g"), (8, "success".to_owned()));
    // Failures without a failure signature are not counted.
    assert_eq!(check("", "none none none none"), (5, "success".to_owned()));
}
