//! Signatures of plugins, right and wrong.

use super::*;
use serde_json::{Value, json};

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

fn plugin() -> PluginIdentity {
    PluginIdentity::new("acme.review", Some("0.1.0".to_owned()), b"component")
}

fn verify(file: &str, plugin: &PluginIdentity) -> Result<Vec<usize>, String> {
    let read = Signatures::read(file.as_bytes()).map_err(|fault| fault.to_string())?;
    read.verify(plugin, [&key(1).public(), &key(2).public()]).map_err(|fault| fault.to_string())
}

#[test]
fn a_plugin_is_signed_by_one_key_or_several() {
    let (one, two, other) = (key(1), key(2), key(3));
    assert_eq!(verify(&Signatures::sign(&plugin(), &[&one]), &plugin()), Ok(vec![0]));
    assert_eq!(verify(&Signatures::sign(&plugin(), &[&two, &one]), &plugin()), Ok(vec![0, 1]));
    assert_eq!(verify(&Signatures::sign(&plugin(), &[&other, &two]), &plugin()), Ok(vec![1]));
    assert_eq!(verify(&Signatures::sign(&plugin(), &[&other]), &plugin()), Ok(Vec::new()));
    let unnamed = PluginIdentity { version: None, ..plugin() };
    assert_eq!(verify(&Signatures::sign(&unnamed, &[&one]), &unnamed), Ok(vec![0]));
    // The same plugin and key give the same bytes: there is no time and no random number in them.
    assert_eq!(Signatures::sign(&plugin(), &[&one]), Signatures::sign(&plugin(), &[&one]));
}

#[test]
fn a_signature_is_about_one_name_one_version_and_one_digest() {
    let file = Signatures::sign(&plugin(), &[&key(1)]);
    let check = |found: PluginIdentity, expected: &str| {
        let refused = verify(&file, &found).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    };
    check(PluginIdentity { name: "acme.other".to_owned(), ..plugin() }, "another plugin: `acme.review`");
    check(
        PluginIdentity { version: Some("0.2.0".to_owned()), ..plugin() },
        "another version: `0.1.0`, and not `0.2.0`",
    );
    check(PluginIdentity { version: None, ..plugin() }, "and not `none`");
    check(PluginIdentity::new("acme.review", Some("0.1.0".to_owned()), b"other"), "another BLAKE3 digest");
    check(PluginIdentity { sha256: "0".repeat(64), ..plugin() }, "another SHA-256 digest");
}

/// Signs a statement that was changed, with a trusted key.
fn changed(change: impl Fn(&mut Value)) -> String {
    let file = Signatures::sign(&plugin(), &[&key(1)]);
    let read = Signatures::read(file.as_bytes()).unwrap();
    let public = key(1).public();
    let mut statement: Value = serde_json::from_slice(read.0.verify([&public]).unwrap().0).unwrap();
    change(&mut statement);
    Envelope::sign(PayloadType::IN_TOTO, &serde_json::to_vec(&statement).unwrap(), &[&key(1)]).to_line()
}

#[test]
fn a_signed_statement_of_another_form_proves_nothing() {
    assert_eq!(verify(&changed(|_| {}), &plugin()), Ok(vec![0]));
    let check = |change: &dyn Fn(&mut Value), expected: &str| {
        let refused = verify(&changed(change), &plugin()).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    };
    check(&|it| it["_type"] = json!("https://in-toto.io/Statement/v2"), "another type than an in-toto statement");
    check(&|it| it["predicateType"] = json!("glovebox:attestation/run/v1"), "its predicate is of another type");
    let double = |it: &mut Value| {
        let subject = it["subject"][0].clone();
        it["subject"].as_array_mut().unwrap().push(subject);
    };
    check(&double, "several subjects or none");
    check(&|it| it["subject"] = json!([]), "several subjects or none");
    check(&|it| it["subject"][0]["digest"]["sha512"] = json!("x"), "unknown field");
    check(&|it| it["predicate"]["not_after"] = json!("2027-01-01"), "unknown field");
    check(&|it| it["subject"][0]["name"] = json!("acme.other"), "another plugin");
    check(&|it| it["predicate"]["version"] = json!(1), "invalid type");
    check(&|it| drop(it["predicate"].as_object_mut().unwrap().remove("name")), "missing field `name`");
    let text = Envelope::sign(PayloadType::IN_TOTO, b"{\"_type\": NaN}", &[&key(1)]).to_line();
    assert!(verify(&text, &plugin()).unwrap_err().contains("not a statement about a plugin"));
}

#[test]
fn files_that_are_no_signatures_are_refused() {
    let file = Signatures::sign(&plugin(), &[&key(1)]);
    for cut in 0..file.trim_end().len() {
        assert!(Signatures::read(&file.as_bytes()[..cut]).is_err(), "cut at {cut}");
    }
    for wrong in ["", "[]", "null", "NaN", "{\"payloadType\": NaN}", "\u{feff}{}", &format!("{file}{file}")] {
        assert!(Signatures::read(wrong.as_bytes()).is_err(), "{wrong}");
    }
    let nested = "[".repeat(60_000);
    assert!(Signatures::read(nested.as_bytes()).is_err());
    let long = format!("{file}{}", " ".repeat(FILE_BYTES_MAX as usize));
    assert!(matches!(Signatures::read(long.as_bytes()), Err(SignatureFault::TooLong)));
    let keys: Vec<SigningKey> = (1..=17).map(key).collect();
    let keys: Vec<&SigningKey> = keys.iter().collect();
    assert!(Signatures::read(Signatures::sign(&plugin(), &keys).as_bytes()).is_err());
    assert!(Signatures::read(Signatures::sign(&plugin(), &keys[..16]).as_bytes()).is_ok());
    let other_type = Envelope::sign(PayloadType::REVOCATIONS, b"{}", &[&key(1)]).to_line();
    assert!(Signatures::read(other_type.as_bytes()).unwrap_err().to_string().contains("its payload is"));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(1000))]

    /// No change of the file makes it a signature of other content, whatever it does to the envelope.
    #[test]
    fn no_mutated_file_verifies_another_plugin(
        cuts in proptest::collection::vec((0_usize..2000, 0_usize..40, proptest::collection::vec(proptest::prelude::any::<u8>(), 0..20)), 1..4)
    ) {
        let file = Signatures::sign(&plugin(), &[&key(1), &key(3)]);
        let mut bytes = file.clone().into_bytes();
        for (at, length, put) in cuts {
            let at = at % bytes.len().max(1);
            let end = (at + length).min(bytes.len());
            drop(bytes.splice(at.min(end)..end, put));
        }
        let other = PluginIdentity::new("acme.review", Some("0.1.0".to_owned()), b"other");
        let public = key(1).public();
        if let Ok(read) = Signatures::read(&bytes) {
            proptest::prop_assert!(!read.verify(&other, [&public]).is_ok_and(|signed| !signed.is_empty()));
            if read.verify(&plugin(), [&public]).is_ok_and(|signed| !signed.is_empty()) {
                // What still verifies has the signed payload, byte for byte.
                let original = Signatures::read(file.as_bytes()).unwrap();
                proptest::prop_assert_eq!(read.0.verify([&public]).unwrap().0, original.0.verify([&public]).unwrap().0);
            }
        }
    }
}
