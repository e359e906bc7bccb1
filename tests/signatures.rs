//! Signatures of plugins, with the real binary: keys, the three states, `[trust]`, the lock file, and a tool of others that
//! verifies the same bytes.

use crate::guests;
use crate::workbench::{Answer, Workbench, is_on_this_machine, not_run};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use glovebox_host::inspect::embed;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

const PIPELINE: &str = "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n  stage [type=\"acme.todo\"]\n  start -> stage -> done\n}\n";

fn component(version: &str, body: &str) -> Vec<u8> {
    let manifest =
        format!(r#"{{"name":"acme.todo","version":"{version}","description":"Looks for TODO.","wants":{{}}}}"#);
    embed(&guests::component(body), &manifest).expect("a manifest")
}

/// A project with a plugin at `plugins/todo.wasm`, and keys outside of it.
struct Signed {
    bench: Workbench,
}

impl Signed {
    fn new() -> Self {
        let bench = Workbench::with_pipeline(PIPELINE);
        let signed = Self { bench };
        signed.put("0.1.0", "(func $execute)");
        signed.config("");
        for key in ["old", "new"] {
            signed.bench.glovebox(&["plugin", "keygen", signed.key(key).to_str().unwrap()]).ends(0);
        }
        signed
    }

    fn key(&self, name: &str) -> PathBuf {
        self.bench.outside().join(name)
    }

    /// Returns the line of a public key in `glovebox.toml`.
    fn public(&self, name: &str) -> String {
        let pem = fs::read_to_string(self.key(name).with_extension("pub")).unwrap();
        let der = STANDARD.decode(pem.lines().nth(1).unwrap()).unwrap();
        format!("ed25519:{}", STANDARD.encode(&der[12..]))
    }

    fn put(&self, version: &str, body: &str) {
        self.bench.write("plugins/.keep", "");
        fs::write(self.bench.project().join("plugins/todo.wasm"), component(version, body)).unwrap();
    }

    fn config(&self, trust: &str) {
        let text = format!("[plugins.\"acme.todo\"]\npath = \"plugins/todo.wasm\"\n{trust}");
        self.bench.write("glovebox.toml", &text);
    }

    /// Returns a `[[trust.key]]` for all plugins of `acme`.
    fn trusted(&self, name: &str) -> String {
        format!("[[trust.key]]\nname = \"acme {name}\"\nkey = \"{}\"\nplugins = [\"acme.*\"]\n", self.public(name))
    }

    fn sign(&self, keys: &[&str]) -> Answer {
        let files: Vec<String> = keys.iter().map(|key| self.key(key).to_str().unwrap().to_owned()).collect();
        let mut words = vec!["plugin", "sign", "plugins/todo.wasm"];
        files.iter().for_each(|file| words.extend(["--key", file]));
        self.bench.glovebox(&words)
    }

    fn verify(&self, rest: &[&str]) -> Answer {
        self.bench.glovebox(&[&["plugin", "verify", "plugins/todo.wasm"], rest].concat())
    }

    fn lock(&self) {
        self.bench.glovebox(&["plugin", "lock"]).ends(0);
    }

    /// Expects that every command that would use the plugin refuses it.
    #[track_caller]
    fn is_refused(&self, says: &str) {
        for words in [
            &["run", "pipeline.dot"][..],
            &["plan", "pipeline.dot"],
            &["check", "pipeline.dot"],
            &["plugin", "lock"],
            &["plugin", "lock", "--locked"],
            &["run", "pipeline.dot", "--locked"],
        ] {
            self.bench.glovebox(words).ends(7).says(says);
        }
        self.bench.glovebox(&["plugin", "ls"]).ends(0).says("does not run").says(says);
        assert!(!self.bench.has(".glovebox/runs") || self.bench.glovebox(&["ls"]).stdout.lines().count() <= 1);
    }
}

#[test]
fn a_key_is_private_and_never_replaced() {
    let signed = Signed::new();
    let mode = |file: PathBuf| fs::metadata(file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(signed.key("old")), 0o600);
    let before = fs::read(signed.key("old")).unwrap();
    let words = ["plugin", "keygen", signed.key("old").to_str().unwrap()].map(str::to_owned);
    let again = || signed.bench.glovebox(&[&words[0], &words[1], &words[2]]);
    again().ends(2).says("old.pub").says("a key is never replaced");
    fs::remove_file(signed.key("old.pub")).unwrap();
    again().ends(2).says("a key is never replaced");
    assert_eq!(fs::read(signed.key("old")).unwrap(), before);
    assert!(!signed.key("old.pub").exists(), "half a key was left");
    let inside = ["plugin", "keygen", "key"];
    signed.bench.glovebox(&inside).ends(0).says("ed25519:");
    signed.bench.glovebox(&["plugin", "sign", "plugins/todo.wasm", "--key", "key"]).ends(6).says("lies in the project");
    fs::set_permissions(signed.key("new"), PermissionsExt::from_mode(0o644)).unwrap();
    signed.sign(&["new"]).ends(6).says("others can read or change the key");
    let public = signed.key("new.pub");
    fs::set_permissions(&public, PermissionsExt::from_mode(0o600)).unwrap();
    let words = ["plugin", "sign", "plugins/todo.wasm", "--key", public.to_str().unwrap()];
    signed.bench.glovebox(&words).ends(2).says("is not a private Ed25519 key");
}

#[test]
fn the_three_states_differ_in_text_json_and_exit_code() {
    let signed = Signed::new();
    let public = signed.key("old.pub");
    let key = ["--key", public.to_str().unwrap()];
    let json = |code: i32| signed.verify(&[&key[..], &["--json"]].concat()).ends(code).json();
    signed.verify(&[]).ends(2).says("has no `[trust]`").says("--key KEY.pub");
    signed.verify(&key).ends(4).says("not signed").says("todo.wasm.sig.json");
    assert_eq!((json(4)["state"].clone(), json(4)["signer"].clone()), ("not_signed".into(), Value::Null));
    signed.sign(&["old"]).ends(0).says("signed `acme.todo` 0.1.0").says("sha256:");
    signed.verify(&key).ends(0).says("verified: `acme.todo` 0.1.0 is signed by old.pub (sha256:");
    let verified = json(0);
    assert_eq!((verified["state"].as_str(), verified["reason"].clone()), (Some("verified"), Value::Null));
    assert!(verified["signer"].as_str().unwrap().starts_with("sha256:"), "{verified}");
    let other = signed.key("new.pub");
    signed.verify(&["--key", other.to_str().unwrap()]).ends(7).says("the signature failed").says("does not list");
    signed.put("0.2.0", "(func $execute)");
    signed.verify(&key).ends(7).says("another version: `0.1.0`, and not `0.2.0`");
    signed.put("0.1.0", "(func $execute nop)");
    signed.verify(&key).ends(7).says("another BLAKE3 digest");
    let failed = json(7);
    assert!(failed["state"] == "failed" && failed["reason"].as_str().unwrap().contains("BLAKE3"), "{failed}");
    signed.verify(&["--key", "none.pub"]).ends(2).says("none.pub");
    signed.verify(&[&key[..], &["--signature", "none"]].concat()).ends(2).says("read the signatures `none`");
}

#[test]
fn a_component_without_a_manifest_is_signed_under_a_name() {
    let signed = Signed::new();
    fs::write(signed.bench.project().join("plugins/todo.wasm"), guests::component("(func $execute)")).unwrap();
    signed.sign(&["old"]).ends(2).says("has no name to sign").says("--name acme.review");
    let key = signed.key("old");
    let words = ["plugin", "sign", "plugins/todo.wasm", "--key", key.to_str().unwrap(), "--name", "acme.todo"];
    signed.bench.glovebox(&words).ends(0);
    let public = signed.key("old.pub");
    let verify = |name: &str| signed.verify(&["--key", public.to_str().unwrap(), "--name", name]);
    verify("acme.todo").ends(0);
    verify("acme.other").ends(7).says("another plugin: `acme.todo`");
    verify("todo").ends(7).says("is not a name for a plugin");
}

/// Checks the file of signatures with OpenSSL, and with the DSSE library of in-toto where Python has it.
#[test]
fn tools_of_others_verify_the_same_bytes() {
    let signed = Signed::new();
    signed.sign(&["old", "new"]).ends(0);
    let text = signed.bench.read("plugins/todo.wasm.sig.json");
    let envelope: Value = serde_json::from_str(&text).unwrap();
    let payload = STANDARD.decode(envelope["payload"].as_str().unwrap()).unwrap();
    let statement: Value = serde_json::from_slice(&payload).unwrap();
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["predicateType"], "glovebox:attestation/plugin/v1");
    let subject = &statement["subject"][0];
    assert_eq!(subject["name"], "acme.todo");
    if is_on_this_machine("openssl") {
        let kind = envelope["payloadType"].as_str().unwrap();
        let mut bytes = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
        bytes.extend(&payload);
        let (message, signature) = (signed.key("message"), signed.key("signature"));
        fs::write(&message, &bytes).unwrap();
        for (at, key) in ["old.pub", "new.pub"].iter().enumerate() {
            fs::write(&signature, STANDARD.decode(envelope["signatures"][at]["sig"].as_str().unwrap()).unwrap())
                .unwrap();
            let mut openssl = Command::new("openssl");
            openssl.args(["pkeyutl", "-verify", "-rawin", "-pubin", "-inkey"]).arg(signed.key(key));
            let verified = openssl.arg("-in").arg(&message).arg("-sigfile").arg(&signature).output().unwrap();
            assert!(verified.status.success(), "{key}: {verified:?}");
        }
        let mut openssl = Command::new("openssl");
        openssl.args(["dgst", "-sha256", "-r", "plugins/todo.wasm"]).current_dir(signed.bench.project());
        let digest = openssl.output().unwrap();
        let digest = String::from_utf8(digest.stdout).unwrap();
        assert_eq!(digest.split(' ').next(), subject["digest"]["sha256"].as_str());
        // A private key of OpenSSL signs too.
        let own = signed.key("openssl.key");
        let made =
            Command::new("openssl").args(["genpkey", "-algorithm", "ed25519", "-out"]).arg(&own).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        fs::set_permissions(&own, PermissionsExt::from_mode(0o600)).unwrap();
        signed.bench.glovebox(&["plugin", "sign", "plugins/todo.wasm", "--key", own.to_str().unwrap()]).ends(0);
    } else {
        not_run("OpenSSL verifies a plugin", "openssl is not installed");
    }
    signed.bench.write("plugins/todo.wasm.sig.json", &text);
    let script = "import json, sys\n\
        from securesystemslib.dsse import Envelope\n\
        from securesystemslib.signer import SSlibKey\n\
        from cryptography.hazmat.primitives.serialization import load_pem_public_key\n\
        data = json.load(open(sys.argv[1]))\n\
        keys = [SSlibKey.from_crypto(load_pem_public_key(open(f, 'rb').read()), keyid=s['keyid'])\n\
                for f, s in zip(sys.argv[2:], data['signatures'])]\n\
        found = Envelope.from_dict({**data, 'signatures': data['signatures']}).verify(keys, len(keys))\n\
        print(len(found))\n";
    let python = |words: &[&str]| Command::new("python3").args(words).output();
    if !python(&["-c", "import securesystemslib.dsse, cryptography"]).is_ok_and(|found| found.status.success()) {
        return not_run("securesystemslib verifies a plugin", "the Python package securesystemslib is not installed");
    }
    let file = signed.bench.project().join("plugins/todo.wasm.sig.json");
    let keys = [signed.key("old.pub"), signed.key("new.pub")];
    let words = ["-c", script, file.to_str().unwrap(), keys[0].to_str().unwrap(), keys[1].to_str().unwrap()];
    let found = python(&words).unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout).trim(), "2", "{found:?}");
}

#[test]
fn a_name_that_a_key_covers_runs_only_with_its_signature() {
    let signed = Signed::new();
    signed.lock();
    signed.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    fs::remove_dir_all(signed.bench.project().join(".glovebox")).unwrap();
    signed.config(&signed.trusted("old"));
    signed.is_refused("is not signed, but plugins of this name must be signed by the key `acme old`");
    signed.sign(&["new"]).ends(0);
    signed.is_refused("which `[trust]` does not list");
    signed.sign(&["old"]).ends(0);
    // A signature where there was none needs no agreement, and is a difference from the lock.
    signed.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    signed.bench.glovebox(&["plugin", "lock", "--locked"]).ends(11).says("another `signer`");
    signed.bench.glovebox(&["plugin", "lock"]).ends(0).says("signed").says("by acme old (sha256:");
    assert!(signed.bench.read("glovebox.lock").contains("signer = \"sha256:"));
    signed.bench.glovebox(&["plugin", "ls"]).ends(0).says("locked, signed by acme old");
    signed.bench.glovebox(&["plugin", "lock", "--locked"]).ends(0);
    signed.verify(&[]).ends(0).says("is signed by acme old");
    signed.put("0.1.0", "(func $execute nop)");
    fs::remove_dir_all(signed.bench.project().join(".glovebox")).unwrap();
    signed.is_refused("another BLAKE3 digest");
}

#[test]
fn without_trust_no_signature_is_read() {
    let signed = Signed::new();
    signed.bench.write("plugins/todo.wasm.sig.json", "damaged");
    signed.lock();
    signed.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    assert!(!signed.bench.read("glovebox.lock").contains("signer"));
    signed.config(&signed.trusted("old").replace("acme.*", "zeta.*"));
    // No key covers the name, but a signature that is there must be right.
    signed.bench.glovebox(&["run", "pipeline.dot"]).ends(7).says("its signature is not valid");
    fs::remove_file(signed.bench.project().join("plugins/todo.wasm.sig.json")).unwrap();
    signed.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    signed.config(&format!("[trust]\nrequire = \"signed\"\n{}", signed.trusted("old").replace("acme.*", "zeta.*")));
    signed.bench.glovebox(&["run", "pipeline.dot"]).ends(7).says("accepts signed plugins only");
}

#[test]
fn keys_are_rotated() {
    let signed = Signed::new();
    let (old, new) = (signed.trusted("old"), signed.trusted("new"));
    signed.config(&old);
    signed.sign(&["old"]).ends(0);
    signed.lock();
    signed.config(&format!("{old}{new}"));
    let run = || signed.bench.glovebox(&["run", "pipeline.dot"]);
    run().ends(0);
    signed.sign(&["new", "old"]).ends(0);
    run().ends(0);
    signed.config(&new);
    run().ends(7).says("is signed by acme new (sha256:").says("but the lock has the signer acme old");
    signed.bench.glovebox(&["plugin", "update", "acme.todo"]).ends(6).says("and not acme old").says("--accept");
    signed.bench.glovebox(&["plugin", "update", "acme.todo", "--accept"]).ends(0);
    run().ends(0);
    signed.sign(&["old"]).ends(0);
    run().ends(7).says("which `[trust]` does not list");
    // Without `[trust]` nobody vouches for the plugin any more.
    signed.sign(&["new"]).ends(0);
    signed.config("");
    run().ends(7).says("is not signed by a trusted key any more");
    let last = signed.trusted("new") + "not_after = 2020-01-01\n";
    signed.config(&last);
    run().ends(7).says("is trusted only until 2020-01-01");
}

#[test]
fn a_key_may_be_in_a_file() {
    let signed = Signed::new();
    signed.sign(&["old"]).ends(0);
    signed.lock();
    let config = |path: &str| {
        signed.config(&format!("[[trust.key]]\nname = \"acme\"\npath = \"{path}\"\nplugins = [\"acme.*\"]\n"));
    };
    fs::copy(signed.key("old.pub"), signed.bench.project().join("acme.pub")).unwrap();
    config("acme.pub");
    signed.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    let check = |says: &str| {
        signed.bench.glovebox(&["run", "pipeline.dot"]).ends(3).says(says).says("glovebox.toml:5");
    };
    config("none.pub");
    check("the key `none.pub` cannot be read");
    signed.bench.write("acme.pub", "text");
    config("acme.pub");
    check("is not a public Ed25519 key");
    fs::copy(signed.key("old"), signed.bench.project().join("acme.pub")).unwrap();
    check("is not a public Ed25519 key");
}

#[test]
fn the_wrong_half_of_a_key_is_named() {
    let signed = Signed::new();
    signed.sign(&["old"]).ends(0);
    let key = |name: &str| signed.key(name).to_str().unwrap().to_owned();
    let verify = |key: &str| signed.bench.glovebox(&["plugin", "verify", "plugins/todo.wasm", "--key", key]);
    let text = signed.bench.glovebox(&["plugin", "keygen", &key("third")]).ends(0).stdout.trim().to_owned();
    // The text that `keygen` prints is a key, in a file and as an argument.
    signed.bench.write("key.txt", &format!("{text}\n"));
    for other in [&text, "key.txt"] {
        verify(other).ends(7).says("signature failed").never_says("is not a public Ed25519 key");
    }
    verify("ed25519:text").ends(2).says("is not a public Ed25519 key").says("openssl pkey");
    verify(&key("old")).ends(2).says("it is a private key").says(&format!("such as `{}.pub`", key("old")));
    signed.bench.write("ssh.pub", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ kim@example\n");
    verify("ssh.pub").ends(2).says("it is a key of OpenSSH");
    let public = key("old.pub");
    fs::set_permissions(&public, PermissionsExt::from_mode(0o600)).unwrap();
    let sign = signed.bench.glovebox(&["plugin", "sign", "plugins/todo.wasm", "--key", &public]);
    sign.ends(2).says("it is a public key").says(&format!("name the private half, such as `{}`", key("old")));
}

#[test]
fn an_edited_lock_does_not_change_who_signed() {
    let signed = Signed::new();
    signed.config(&signed.trusted("old"));
    signed.sign(&["old"]).ends(0);
    signed.lock();
    let lock = signed.bench.read("glovebox.lock");
    let line = lock.lines().find(|line| line.starts_with("signer = ")).unwrap();
    let with = |line_after: &str| signed.bench.write("glovebox.lock", &lock.replace(line, line_after));
    let run = || signed.bench.glovebox(&["run", "pipeline.dot"]);
    with(&format!("signer = \"sha256:{} acme old\"", "0".repeat(64)));
    run().ends(7).says("but the lock has the signer acme old");
    for wrong in ["signer = 1", "signer = \"\"", "signer = \"acme\"", "signer = \"sha256:00 acme\"", "signer = [\"x\"]"]
    {
        with(wrong);
        run().ends(7).says("is not a valid lock file");
    }
    // The name is for people: the key decides.
    with(&line.replace("acme old", "another name"));
    run().ends(0);
    signed.bench.glovebox(&["plugin", "lock", "--locked"]).ends(11).says("another `signer`");
}

#[test]
fn a_plugin_is_added_and_updated_with_its_signatures() {
    let signed = Signed::new();
    let bench = &signed.bench;
    let source = bench.outside().join("new.wasm");
    bench.write("glovebox.toml", &signed.trusted("old"));
    fs::write(&source, component("0.1.0", "(func $execute)")).unwrap();
    let from = source.to_str().unwrap();
    let add = || bench.glovebox(&["plugin", "add", from, "--accept"]);
    add().ends(7).says("is not signed");
    let sign = |key: &str| {
        bench.glovebox(&["plugin", "sign", from, "--key", signed.key(key).to_str().unwrap()]).ends(0);
    };
    sign("new");
    add().ends(7).says("does not list");
    assert!(!bench.has("plugins/acme.todo.wasm") && !bench.has("glovebox.lock"));
    sign("old");
    add().ends(0).says("by acme old");
    assert!(bench.has("plugins/acme.todo.wasm.sig.json"));
    bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    fs::write(&source, component("0.2.0", "(func $execute)")).unwrap();
    let update = |rest: &[&str]| bench.glovebox(&[&["plugin", "update", "acme.todo", "--from", from], rest].concat());
    update(&["--accept"]).ends(7).says("another version: `0.1.0`, and not `0.2.0`");
    bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    sign("old");
    update(&[]).ends(0).says("0.1.0, now 0.2.0");
    bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    // A second signature of the same bytes is installed too.
    let both = [
        "plugin",
        "sign",
        from,
        "--key",
        signed.key("old").to_str().unwrap(),
        "--key",
        signed.key("new").to_str().unwrap(),
    ]
    .map(str::to_owned);
    bench.glovebox(&both.iter().map(String::as_str).collect::<Vec<_>>()).ends(0);
    update(&[]).ends(0).says("nothing changed");
    assert_eq!(bench.read("plugins/acme.todo.wasm.sig.json").matches("keyid").count(), 2);
    // An update to unsigned bytes, where no key covers the name, is growth.
    bench.write("glovebox.toml", &bench.read("glovebox.toml").replace("acme.*", "acme.other"));
    fs::write(&source, component("0.3.0", "(func $execute)")).unwrap();
    fs::remove_file(format!("{from}.sig.json")).unwrap();
    update(&[]).ends(6).says("no trusted key, but acme old").says("nothing was written");
    update(&["--accept"]).ends(0);
    assert!(!bench.has("plugins/acme.todo.wasm.sig.json"), "the signatures of other bytes");
    bench.glovebox(&["run", "pipeline.dot"]).ends(0);
}

#[test]
fn no_changed_byte_of_the_signatures_is_believed() {
    let signed = Signed::new();
    signed.config(&signed.trusted("old"));
    signed.sign(&["old"]).ends(0);
    signed.lock();
    let file = signed.bench.project().join("plugins/todo.wasm.sig.json");
    let bytes = fs::read(&file).unwrap();
    for at in (0..bytes.len() - 1).step_by(bytes.len() / 40) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        fs::write(&file, changed).unwrap();
        assert_eq!(signed.verify(&["--json"]).ends(7).json()["state"], "failed", "byte {at}");
    }
    let mut hostile: Vec<Vec<u8>> = vec![Vec::new(), vec![b'['; 60_000], vec![b' '; 70_000], b"\xff\xfe".to_vec()];
    hostile.push(br#"{"payloadType":"\u202e","payload":"","signatures":[]}"#.to_vec());
    for bytes in hostile {
        fs::write(&file, bytes).unwrap();
        let answer = signed.bench.glovebox(&["run", "pipeline.dot"]);
        answer.ends(7).never_says("\u{202e}");
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    signed.bench.glovebox(&["run", "pipeline.dot"]).ends(7).says("the signatures of `acme.todo` cannot be read");
    signed.bench.glovebox(&["plugin", "inspect", "plugins/todo.wasm"]).ends(7).says("cannot be read");
}

#[test]
fn inspect_shows_who_signed() {
    let signed = Signed::new();
    let inspect = |rest: &[&str]| signed.bench.glovebox(&[&["plugin", "inspect", "plugins/todo.wasm"], rest].concat());
    let state = || inspect(&["--json"]).ends(0).json()["signature"]["state"].clone();
    inspect(&[]).ends(0).says("signed    not signed");
    assert_eq!(state(), "not_signed");
    signed.sign(&["old"]).ends(0);
    inspect(&[]).ends(0).says("not checked, since no key is trusted here; it names sha256:");
    assert_eq!(state(), "not_checked");
    signed.config(&signed.trusted("old"));
    inspect(&[]).ends(0).says("signed    verified: by acme old (sha256:");
    assert_eq!(state(), "verified");
    signed.config(&signed.trusted("new"));
    inspect(&[]).ends(0).says("signed    failed: ").says("does not list");
    assert_eq!(state(), "failed");
}

#[test]
fn rule_plugins_are_signed_too() {
    let signed = Signed::new();
    let rules = guests::rules("(func $lint (param i32 i32))\n(func $transform)");
    signed.bench.write("glovebox.toml", "[rules.\"acme.house\"]\npath = \"rules.wasm\"\n");
    fs::write(signed.bench.project().join("rules.wasm"), rules).unwrap();
    signed.bench.write("pipeline.dot", "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; start -> done }");
    signed.bench.glovebox(&["plugin", "lock"]).ends(0);
    signed.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    let table = signed.bench.read("glovebox.toml");
    signed.bench.write("glovebox.toml", &format!("{table}{}", signed.trusted("old")));
    for command in ["run", "check", "plan"] {
        signed.bench.glovebox(&[command, "pipeline.dot"]).ends(7).says("`acme.house` is not signed");
    }
    let key = signed.key("old");
    let sign = ["plugin", "sign", "rules.wasm", "--name", "acme.house", "--key", key.to_str().unwrap()];
    signed.bench.glovebox(&sign).ends(0);
    signed.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    signed.bench.glovebox(&["plugin", "lock"]).ends(0).says("by acme old");
}
