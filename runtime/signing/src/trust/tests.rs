//! Which signatures the operator's keys accept.

use super::*;
use crate::key::SigningKey;

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

fn is_name(name: &str) -> bool {
    name.contains('.')
        && name.split('.').all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase()))
}

fn trusted(seed: u8, name: &str, plugins: &[&str]) -> TrustedKey {
    TrustedKey {
        name: name.to_owned(),
        key: key(seed).public(),
        plugins: plugins.iter().map(|text| NamePattern::parse(text, is_name).unwrap()).collect(),
        not_after: None,
    }
}

fn trust(keys: Vec<TrustedKey>) -> Trust {
    Trust { require: Require::Any, keys, today: Some(jiff::civil::date(2026, 11, 30)) }
}

fn plugin(name: &str) -> PluginIdentity {
    PluginIdentity::new(name, None, b"component")
}

fn signed(name: &str, seeds: &[u8]) -> String {
    let keys: Vec<SigningKey> = seeds.iter().map(|seed| key(*seed)).collect();
    Signatures::sign(&plugin(name), &keys.iter().collect::<Vec<_>>())
}

/// Returns the name of the signer, `-` for none, or the fault.
fn found(trust: &Trust, name: &str, seeds: &[u8]) -> String {
    let signatures = (!seeds.is_empty()).then(|| signed(name, seeds));
    match trust.check(&plugin(name), signatures.as_deref().map(str::as_bytes)) {
        Ok(signer) => signer.map_or("-".to_owned(), |signer| signer.name),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn a_name_that_a_key_covers_must_be_signed_by_such_a_key() {
    let trust = trust(vec![trusted(1, "acme", &["acme.*"]), trusted(2, "zeta", &["zeta.lint", "acme.old"])]);
    assert_eq!(found(&trust, "acme.review", &[1]), "acme");
    assert_eq!(found(&trust, "acme.old", &[2]), "zeta");
    assert_eq!(found(&trust, "other.name", &[]), "-");
    assert!(found(&trust, "acme.review", &[]).contains("must be signed by the key `acme`"));
    assert!(found(&trust, "acme.old", &[]).contains("one of the keys `acme`, `zeta`"));
    assert!(found(&trust, "acme.review", &[2]).contains("`zeta`, which may not sign this name"));
    assert!(found(&trust, "other.name", &[1]).contains("may not sign this name"));
    assert!(
        found(&trust, "other.name", &[3])
            .contains(&format!("`{}`, which `[trust]` does not list", key(3).public().id()))
    );
    assert_eq!(found(&trust, "acme.review", &[3, 2, 1]), "acme");
    let all = Trust { require: Require::Signed, ..trust };
    assert!(found(&all, "other.name", &[]).contains("accepts signed plugins only"));
    assert_eq!(found(&all, "acme.review", &[1]), "acme");
}

#[test]
fn a_signature_that_is_not_valid_is_refused_where_none_is_needed() {
    let trust = trust(vec![trusted(1, "acme", &["acme.*"])]);
    let check = |file: &[u8]| trust.check(&plugin("other.name"), Some(file)).unwrap_err();
    for file in [&b""[..], b"{}", b"\xff\xfe", signed("other.name", &[1]).replace("sig\":\"", "sig\":\"A").as_bytes()] {
        assert!(!check(file).is_not_signed());
    }
    // The signature of another plugin is no signature of this one, even by the right key.
    assert!(check(signed("acme.review", &[1]).as_bytes()).to_string().contains("another plugin"));
}

#[test]
fn keys_are_rotated_and_removed() {
    let (old, new) = (trusted(1, "2025", &["acme.*"]), trusted(2, "2026", &["acme.*"]));
    let both = trust(vec![old.clone(), new.clone()]);
    for seeds in [&[1][..], &[2], &[1, 2]] {
        assert!(["2025", "2026"].contains(&found(&both, "acme.a", seeds).as_str()));
    }
    assert_eq!(found(&both, "acme.a", &[2, 1]), "2025", "the first key of the file");
    let after = trust(vec![new]);
    assert_eq!(found(&after, "acme.a", &[1, 2]), "2026");
    assert!(found(&after, "acme.a", &[1]).contains("does not list"));
}

#[test]
fn a_key_ends_with_its_last_day() {
    let last = TrustedKey { not_after: Some(jiff::civil::date(2026, 12, 31)), ..trusted(1, "acme", &["*"]) };
    let on = |today: Option<Date>| found(&Trust { today, ..trust(vec![last.clone()]) }, "acme.a", &[1]);
    assert_eq!(on(Some(jiff::civil::date(2026, 12, 31))), "acme");
    assert!(on(Some(jiff::civil::date(2027, 1, 1))).contains("only until 2026-12-31"));
    assert!(on(None).contains("only until"));
    let newer = Trust { today: Some(jiff::civil::date(2027, 1, 1)), ..trust(vec![last, trusted(2, "new", &["*"])]) };
    assert_eq!(found(&newer, "acme.a", &[1, 2]), "new");
    // An expired key still has to be right where it is named.
    let wrong = signed("acme.a", &[2, 1]);
    let end = wrong.rfind("\"sig\":\"").unwrap() + 7;
    let wrong = format!("{}AAAA{}", &wrong[..end], &wrong[end + 4..]);
    assert!(newer.check(&plugin("acme.a"), Some(wrong.as_bytes())).unwrap_err().to_string().contains("was changed"));
}

#[test]
fn patterns_are_names_and_words_before_a_star() {
    let covers = |pattern: &str, name: &str| NamePattern::parse(pattern, is_name).unwrap().covers(name);
    assert!(
        covers("*", "a.b") && covers("acme.*", "acme.x") && covers("acme.*", "acme.x.y") && covers("acme.x", "acme.x")
    );
    assert!(!covers("acme.*", "acmes.x") && !covers("acme.*", "acme.") && !covers("acme.x", "acme.x.y"));
    for wrong in ["", "acme", "acme*", "**", ".*", "*.x", "acme.*.x", "Acme.*", "acme..*", "acme.x*"] {
        assert_eq!(NamePattern::parse(wrong, is_name), None, "{wrong}");
    }
}

#[test]
fn a_signer_is_one_line_of_the_lock() {
    let signer = Signer { key: key(1).public().id(), name: "acme 2026".to_owned() };
    let text = serde_json::to_value(&signer).unwrap();
    assert_eq!(text, format!("{} acme 2026", signer.key));
    assert_eq!(serde_json::from_value::<Signer>(text).unwrap(), signer);
    for wrong in
        ["", "acme", &format!("{} ", signer.key), &format!("{}  x", signer.key), &format!("{} a\u{202e}b", signer.key)]
    {
        assert!(wrong.parse::<Signer>().is_err(), "{wrong:?}");
    }
}
