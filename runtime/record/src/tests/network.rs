//! Tests of host rules: adding one to a list, overlaps, and texts that are not ports.

use crate::network::{Host, HostError, HostRule, HostRuleError, HostRules};

fn rule(text: &str) -> HostRule {
    text.parse().unwrap()
}

#[test]
fn a_list_is_written_with_one_host_more_as_in_the_operators_file() {
    let rules = HostRules::parse(["*.a.example"].into_iter()).unwrap();
    let host = Host::parse("b.example").unwrap();
    assert_eq!(rules.with(&host, 443), "[\"*.a.example\", \"b.example\"]");
    assert_eq!(rules.with(&host, 80), "[\"*.a.example\", \"b.example\"]");
    assert_eq!(rules.with(&host, 22), "[\"*.a.example\", \"b.example:22\"]");
    assert_eq!(String::from(rule("*.a.example:22")), "*.a.example:22");
}

#[test]
fn rules_overlap_where_one_host_is_of_both() {
    for (one, other, overlaps) in [
        ("a.example", "a.example:22", true),
        ("*.example.org", "b.example.org", true),
        ("b.example.org", "*.example.org", true),
        ("*.example.org", "*.b.example.org", true),
        ("a.example", "b.example", false),
        ("example.org", "*.example.org", false),
    ] {
        assert_eq!(rule(one).overlaps(&rule(other)), overlaps, "{one} {other}");
    }
}

#[test]
fn an_address_with_a_port_is_refused_as_an_address_and_a_port_has_five_digits_at_most() {
    let refused = "1::443".parse::<HostRule>().unwrap_err();
    assert!(matches!(refused, HostRuleError::Name { reason: HostError::Literal, .. }), "{refused}");
    assert!(matches!("a.example:000443".parse::<HostRule>(), Err(HostRuleError::Port(_))));
    assert!("a.example:00443".parse::<HostRule>().is_ok());
}
