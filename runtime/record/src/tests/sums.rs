//! Tests that sums of what a run uses lose nothing and are never lower than the real use.

use crate::session::{Conversation, Message, MessagePart};
use crate::spend::{Money, Spend, SpendBounds, SpendTotals};
use crate::*;

fn receipt(how: CommandEnding, code: Option<i32>, no_proof: Option<NoProof>) -> Receipt {
    let receipt = serde_json::json!({
        "id": "r", "argv": ["sh"], "cwd": "", "env_names": [], "tier": "full", "how": how, "code": code,
        "no_proof": no_proof, "duration_ms": 1, "stdout_digest": Digest::ZERO, "stdout_bytes": 0,
        "stderr_digest": Digest::ZERO, "stderr_bytes": 0,
    });
    serde_json::from_value(receipt).unwrap()
}

#[test]
fn a_receipt_proves_something_only_if_its_command_ended_by_itself_with_zero() {
    use CommandEnding::{Canceled, Exited, Signaled, TimedOut};
    for (how, code, no_proof, passed, proves) in [
        (Exited, Some(0), None, true, true),
        (Exited, Some(1), None, false, false),
        (Exited, None, None, false, false),
        (Signaled, Some(0), None, false, false),
        (TimedOut, Some(0), None, false, false),
        (Canceled, Some(0), None, false, false),
        (Exited, Some(0), Some(NoProof::NoTests), true, false),
        (Exited, Some(1), Some(NoProof::NoTests), false, false),
    ] {
        let receipt = receipt(how, code, no_proof);
        assert_eq!((receipt.passed(), receipt.proves()), (passed, proves), "{receipt:?}");
    }
}

#[test]
fn traffic_adds_up_by_host() {
    let host = |requests, refused| HostTraffic { requests, refused, bytes_sent: 2, bytes_received: 3 };
    let traffic = |name: &str| Traffic { hosts: [(name.to_owned(), host(1, 5))].into(), others: host(0, 7) };
    let mut sum = traffic("a.example");
    sum.add(&traffic("a.example"));
    sum.add(&traffic("b.example"));
    let twice = HostTraffic { requests: 2, refused: 10, bytes_sent: 4, bytes_received: 6 };
    assert_eq!((sum.hosts["a.example"], sum.hosts["b.example"]), (twice, host(1, 5)));
    assert_eq!((sum.others.refused, sum.refused()), (21, 36));
}

#[test]
fn tokens_and_money_add_up_and_say_when_there_are_none() {
    let mut tokens = Tokens::default();
    assert!(tokens.is_zero());
    tokens.add(Tokens { input: 1, output: 2 });
    tokens.add(Tokens { input: 3, output: 4 });
    assert_eq!((tokens, tokens.is_zero()), (Tokens { input: 4, output: 6 }, false));
    assert!(Money(0).is_zero() && !Money(1).is_zero());
    let (one, other) = (Spend { tokens: 5, cost: Money(7) }, Spend { tokens: 2, cost: Money(3) });
    assert_eq!(one.plus(other), Spend { tokens: 7, cost: Money(10) });
    assert_eq!((one.minus(other), other.minus(one)), (Spend { tokens: 3, cost: Money(4) }, Spend::default()));
    let mut totals = SpendTotals::default();
    totals.add(SpendTotals { tokens, cost: Money(1), is_estimated: true });
    totals.add(SpendTotals { tokens, cost: Money(2), is_estimated: false });
    let expected = SpendTotals { tokens: Tokens { input: 8, output: 12 }, cost: Money(3), is_estimated: true };
    assert_eq!(totals, expected);
}

#[test]
fn of_two_bounds_the_lower_acts_and_a_missing_one_is_no_bound() {
    let bounds = |tokens_max, cost_max: Option<u64>| SpendBounds { tokens_max, cost_max: cost_max.map(Money) };
    let (one, other) = (bounds(Some(5), None), bounds(Some(3), Some(9)));
    assert_eq!((one.least(other), other.least(one)), (bounds(Some(3), Some(9)), bounds(Some(3), Some(9))));
    assert_eq!((one.or(other), other.or(one)), (bounds(Some(5), Some(9)), bounds(Some(3), Some(9))));
    assert!(bounds(None, None).is_unlimited() && !one.is_unlimited());
}

/// A message of about 89 bytes of JSON.
fn message(role: &str) -> Message {
    let parts = vec![MessagePart { kind: "text".into(), text: "a".into(), fields: Vec::new() }];
    Message { role: role.into(), parts }
}

#[test]
fn a_conversation_has_as_many_of_the_last_stages_as_its_bound_has_room_for() {
    let stages = vec![message("user"); 3];
    let left_out = |bytes_max: usize| Conversation::bounded(stages.clone(), bytes_max).map(|bounded| bounded.left_out);
    assert_eq!([267, 266, 178, 177, 89].map(left_out), [Some(0), Some(1), Some(1), Some(2), Some(2)]);
    assert_eq!(left_out(88), None);
    let mut named = message("user");
    named.parts[0].fields = vec![("name".into(), "value".into())];
    let fits = |bytes_max: usize| Conversation::bounded(vec![named.clone()], bytes_max).is_some();
    assert_eq!((fits(106), fits(105)), (true, false));
}
