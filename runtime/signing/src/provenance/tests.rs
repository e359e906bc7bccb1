//! Provenance that is right, wrong, of another component, and changed.

use super::*;
use serde_json::{Value, json};

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

fn plugin() -> PluginIdentity {
    PluginIdentity::new("acme.review", Some("0.1.0".to_owned()), b"component")
}

fn provenance() -> Provenance {
    Provenance {
        command: vec!["cargo".to_owned(), "build".to_owned()],
        output: "target/review.wasm".to_owned(),
        source: Some(SourceRevision {
            commit: "0a".repeat(20),
            repository: Some("git+https://git.example/acme/review".to_owned()),
            folder: String::new(),
            is_clean: true,
        }),
        builder: LOCAL_BUILDER.to_owned(),
        tools: [("cargo".to_owned(), "cargo 1.90.0".to_owned())].into(),
    }
}

/// Changes the statement, and reads it.
fn changed(change: impl Fn(&mut Value)) -> Result<Provenance, String> {
    let mut statement: Value = serde_json::from_str(&provenance().to_json(&plugin())).unwrap();
    change(&mut statement);
    let read = ProvenanceFile::read(statement.to_string().as_bytes());
    read.and_then(|read| read.provenance()).map_err(|fault| fault.to_string())
}

#[test]
fn a_statement_is_read_again_signed_or_not() {
    for source in [None, provenance().source] {
        let written = Provenance { source, ..provenance() };
        let unsigned = ProvenanceFile::read(written.to_json(&plugin()).as_bytes()).unwrap();
        assert_eq!(unsigned.provenance().unwrap(), written);
        assert!(!unsigned.is_signed() && unsigned.named_keys().next().is_none());
        assert_eq!(unsigned.verify(&plugin(), [&key(1).public()]).unwrap(), [0_usize; 0]);
        let signed = ProvenanceFile::read(unsigned.sign(&[&key(2), &key(1)]).unwrap().as_bytes()).unwrap();
        assert_eq!(signed.provenance().unwrap(), written);
        assert!(signed.is_signed() && signed.is_same_statement(&unsigned));
        assert_eq!(signed.verify(&plugin(), [&key(1).public(), &key(3).public()]).unwrap(), [0]);
    }
}

#[test]
fn the_shape_is_that_of_slsa_provenance_v1() {
    let statement: Value = serde_json::from_str(&provenance().to_json(&plugin())).unwrap();
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
    let definition = &statement["predicate"]["buildDefinition"];
    assert_eq!(definition["resolvedDependencies"][0]["digest"]["gitCommit"], "0a".repeat(20));
    assert_eq!(definition["externalParameters"]["command"][0], "cargo");
    assert_eq!(statement["predicate"]["runDetails"]["builder"]["id"], LOCAL_BUILDER);
    assert!(statement["subject"][0]["digest"]["sha256"].is_string());
}

#[test]
fn a_statement_is_about_one_component() {
    let read = ProvenanceFile::read(provenance().to_json(&plugin()).as_bytes()).unwrap();
    let refused = |other: PluginIdentity| read.require_about(&other).unwrap_err().to_string();
    assert!(refused(PluginIdentity::new("acme.review", None, b"other")).contains("another BLAKE3 digest"));
    assert!(refused(PluginIdentity::new("acme.other", None, b"component")).contains("another plugin"));
    read.require_about(&plugin()).unwrap();
}

#[test]
fn a_changed_byte_of_a_signed_statement_is_never_believed() {
    let public = key(1).public();
    let unsigned = ProvenanceFile::read(provenance().to_json(&plugin()).as_bytes()).unwrap();
    let text = unsigned.sign(&[&key(1)]).unwrap().into_bytes();
    for at in (0..text.len() - 1).step_by(7) {
        let mut changed = text.clone();
        changed[at] ^= 1;
        let verified = ProvenanceFile::read(&changed).and_then(|read| read.verify(&plugin(), [&public]));
        assert!(verified.is_err() || verified.is_ok_and(|signed| signed.is_empty()), "byte {at}");
    }
}

#[test]
fn what_strangers_write_is_limited() {
    let check = |change: &dyn Fn(&mut Value), expected: &str| {
        let refused = changed(change).expect_err(expected);
        assert!(refused.contains(expected), "{refused}");
    };
    assert_eq!(changed(|_| {}), Ok(provenance()));
    let definition = |statement: &mut Value, field: &str, value: Value| {
        statement["predicate"]["buildDefinition"][field] = value;
    };
    check(&|statement| statement["_type"] = "x".into(), "another type than an in-toto statement");
    check(&|statement| statement["predicateType"] = "x".into(), "not SLSA provenance v1");
    check(&|statement| statement["extra"] = 1.into(), "unknown field");
    check(&|statement| statement["subject"] = json!([]), "several subjects or none");
    check(&|statement| definition(statement, "buildType", "x".into()), "another type of build");
    check(&|statement| definition(statement, "resolvedDependencies", json!([])), "contradicts itself");
    check(&|statement| definition(statement, "internalParameters", json!({ "source": "unknown" })), "contradicts");
    let parameters = |statement: &mut Value, field: &str, value: Value| {
        statement["predicate"]["buildDefinition"]["externalParameters"][field] = value;
    };
    check(&|statement| parameters(statement, "command", json!([])), "1 to 256 words");
    check(&|statement| parameters(statement, "command", json!(vec!["x"; 257])), "1 to 256 words");
    check(&|statement| parameters(statement, "command", json!(["x".repeat(4097)])), "more than 4096 bytes");
    for path in ["../x", "/etc/passwd", "a//b", "", "a/./b"] {
        check(&|statement| parameters(statement, "output", path.into()), "its output is not a path");
    }
    check(&|statement| parameters(statement, "folder", "a/../..".into()), "its folder is not a path");
    for commit in ["HEAD", &"A0".repeat(20), &"0".repeat(39), "--upload-pack=evil"] {
        let dependency = json!([{ "name": "source", "digest": { "gitCommit": commit } }]);
        check(&|statement| definition(statement, "resolvedDependencies", dependency.clone()), "its commit is not");
    }
    let tools: BTreeMap<String, String> = (0..17).map(|at| (at.to_string(), String::new())).collect();
    check(&|statement| statement["predicate"]["runDetails"]["builder"]["version"] = json!(tools), "more than 16 tools");
    let long = " ".repeat(FILE_BYTES_MAX as usize + 1);
    assert!(ProvenanceFile::read(long.as_bytes()).unwrap_err().to_string().contains("more than 65536 bytes"));
    assert!(ProvenanceFile::read(b"[[[").is_err());
}
