//! An attested run and its keys, for the suites about attestations.

use crate::workbench::{Answer, Workbench};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::signature::Ed25519KeyPair;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub(crate) const KEYS: [[&str; 2]; 2] = [
    [
        "MC4CAQAwBQYDK2VwBCIEILYWTS/jDw2BSLRXIwAS5/gWeRgLAb7DQyJUWbVCXM2i",
        "MCowBQYDK2VwAyEAPvXABKNddNDkOwpJwU25iF8YdM33KdFh0Y5qXSX/WZk=",
    ],
    [
        "MC4CAQAwBQYDK2VwBCIEIG7fxlRDtNaQizz2hb6weS485su7HjbLjI/j6EIBUgh7",
        "MCowBQYDK2VwAyEApV9qbOKvXlICPTu+xIa24zAYw+QpMgvg+woHlvdgPQc=",
    ],
];
const PIPELINE: &str = r#"digraph ship {
  graph [scenarios="scenarios/"]
  start [shape=Mdiamond]; done [shape=Msquare]
  make [shape=parallelogram, tool_command="mkdir out; echo made > out/text; ln -s text out/link; rm old", allowed_write_paths="out/, old"]
  judge [shape=parallelogram, tool_command="cat scenarios/one; grep made out/text", holdouts="scenarios/", allowed_write_paths=""]
  start -> make -> judge -> done
}
"#;

/// A run `r` that has ended, the keys `key`, `key.pub`, `other` and `other.pub` outside of its project, and its
/// attestation.
pub(crate) struct Attested {
    pub(crate) bench: Workbench,
}

impl Attested {
    pub(crate) fn new() -> Self {
        let attested = Self { bench: Workbench::with_pipeline(PIPELINE) };
        let bench = &attested.bench;
        bench.write("kept", "kept\n");
        bench.write("old", "old\n");
        bench.write("scenarios/one", "a scenario that no builder sees\n");
        for (name, [private, public]) in ["key", "other"].into_iter().zip(KEYS) {
            let pem =
                |kind: &str, body: &str| format!("-----BEGIN {kind} KEY-----\n{body}\n-----END {kind} KEY-----\n");
            fs::write(attested.key(name), pem("PRIVATE", private)).unwrap();
            fs::set_permissions(attested.key(name), PermissionsExt::from_mode(0o600)).unwrap();
            fs::write(attested.key(&format!("{name}.pub")), pem("PUBLIC", public)).unwrap();
        }
        bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
        attested.attest(&["--output", attested.file().to_str().unwrap()]).ends(0).says("attested run `r`");
        attested
    }

    pub(crate) fn key(&self, name: &str) -> PathBuf {
        self.bench.outside().join(name)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.bench.outside().join("r.intoto.json")
    }

    pub(crate) fn attest(&self, more: &[&str]) -> Answer {
        let key = self.key("key");
        self.bench.glovebox(&[&["attest", "r", "--key", key.to_str().unwrap()], more].concat())
    }

    /// Verifies the attestation as a user of another machine does, who has only the author's public key.
    pub(crate) fn verify(&self, more: &[&str]) -> Answer {
        let (file, key) = (self.file(), self.key("key.pub"));
        let words = [&["verify-run", file.to_str().unwrap(), "--key", key.to_str().unwrap()], more].concat();
        Answer::of(self.bench.bare(&words).env("GLOVEBOX_STATE_DIR", self.key("nobody")))
    }

    pub(crate) fn in_run(&self, path: &str) -> PathBuf {
        self.bench.run_folder("r").join(path)
    }

    pub(crate) fn statement(&self) -> Value {
        let envelope: Value = serde_json::from_str(&fs::read_to_string(self.file()).unwrap()).unwrap();
        assert_eq!(envelope["payloadType"], "application/vnd.in-toto+json");
        serde_json::from_slice(&STANDARD.decode(envelope["payload"].as_str().unwrap()).unwrap()).unwrap()
    }
}

/// Signs a statement with the author's key, without Glovebox.
pub(crate) fn sign(statement: &Value, file: &Path) {
    const TYPE: &str = "application/vnd.in-toto+json";
    let payload = statement.to_string();
    let mut envelope: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&STANDARD.decode(KEYS[0][0]).unwrap()).unwrap();
    let signed = key.sign(format!("DSSEv1 {} {TYPE} {} {payload}", TYPE.len(), payload.len()).as_bytes());
    envelope["payload"] = STANDARD.encode(&payload).into();
    envelope["signatures"][0]["sig"] = STANDARD.encode(signed).into();
    fs::write(file, envelope.to_string()).unwrap();
}
