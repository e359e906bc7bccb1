//! The registry of Debian (`docker-registry`, the CNCF distribution), with and without a password, with TLS, and with a token server.

use super::program::DebianRegistry;
use super::server::{Answer, Proxy, Registry};
use super::{Project, component, large_component};
use crate::workbench::{self, not_run};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use glovebox_registry::client::Client;
use glovebox_registry::credential::CredentialPlaces;
use glovebox_registry::reference::Repository;
use glovebox_registry::referrers::Attachment;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// Starts the registry. Without the program, reports that the test did not run.
pub(super) fn start(what: &str, auth: &str) -> Option<DebianRegistry> {
    let registry = DebianRegistry::start(auth);
    if registry.is_none() {
        not_run(what, "no docker-registry: run `cargo xtask registry`");
    }
    registry
}

#[test]
fn a_plugin_goes_through_a_real_registry() {
    let Some(registry) = start("a registry without a password", "") else { return };
    let project = Project::new();
    let named = |path: &str| format!("{}/{path}", registry.address);
    let push = |bytes: &[u8]| {
        let file = project.file("pushed.wasm", bytes);
        project.plugin(&["push", &file, &named("acme/todo")])
    };
    push(&component("0.1.0", r#""src/""#)).ends(0);
    push(&component("0.1.0", r#""src/""#)).ends(0).says("was published already");
    push(&component("0.1.0", "")).ends(7).says("is published already, with other bytes");
    push(&large_component("0.2.0", 3 << 20)).ends(0);
    project.plugin(&["add", &named("acme/none"), "--accept"]).ends(2).says("is not there, or not for you");
    project.plugin(&["add", &named("acme/todo:0.1.0"), "--accept"]).ends(0);
    project.plugin(&["search", "acme"]).ends(0).says("acme/todo").says("0.2.0");
    project.plugin(&["outdated"]).ends(0).says("newest 0.2.0");
    project.plugin(&["update", "acme.todo"]).ends(0).says("nothing grew");
    project.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    std::fs::remove_dir_all(project.store()).unwrap();
    project.plugin(&["pull"]).ends(0).says("1 of them new");
    drop(registry);
    project.bench.glovebox(&["run", "--locked", "pipeline.dot"]).ends(0);
    project.plugin(&["outdated"]).ends(9).says("cannot be reached");
}

#[test]
fn a_real_registry_asks_for_a_password() {
    let auth = "auth:\n  htpasswd:\n    realm: here\n    path: FOLDER/htpasswd\n";
    let Some(registry) = start("a registry with a password", auth) else { return };
    let project = Project::new();
    let file = project.file("pushed.wasm", &component("0.1.0", r#""src/""#));
    let named = format!("{}/acme/todo", registry.address);
    project.plugin(&["push", &file, &named]).ends(2).says("not for you").says("without credentials");
    let log_in = |auth: &str| {
        project.log_in(&format!("{{\"auths\":{{\"{}\":{{\"auth\":\"{auth}\"}}}}}}", registry.address));
    };
    log_in("YWRhOndyb25n");
    project.plugin(&["push", &file, &named]).ends(2).says("not for you").says("docker/config.json");
    log_in("YWRhOnMzY3JldC1vZi1hZGE=");
    project.plugin(&["push", &file, &named]).ends(0);
    project.plugin(&["add", &named, "--accept"]).ends(0);
    project.plugin(&["search", "todo"]).ends(0).says("0.1.0");
    project.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
}

/// Everyone who may push can attach signatures, so one that counts is enough, and others do no harm.
#[test]
fn signatures_come_with_a_component_of_a_registry() {
    let Some(registry) = start("signatures of a component in a registry", "") else { return };
    let project = Project::new();
    let named = format!("{}/acme/todo", registry.address);
    let key = |name: &str| project.bench.outside().join(name).to_str().unwrap().to_owned();
    let file = project.file("pushed.wasm", &component("0.1.0", r#""src/""#));
    for name in ["stranger", "acme", "none"] {
        project.plugin(&["keygen", &key(name)]).ends(0);
    }
    for name in ["stranger", "acme"] {
        project.plugin(&["sign", &file, "--key", &key(name)]).ends(0);
        project.plugin(&["push", &file, &named]).ends(0).says("with its signatures");
    }
    let trusts = |name: &str| {
        let path = key(&format!("{name}.pub"));
        let table = format!("[[trust.key]]\nname = \"{name}\"\npath = \"{path}\"\nplugins = [\"acme.*\"]\n");
        project.bench.write("glovebox.toml", &table);
    };
    trusts("none");
    project.plugin(&["add", &named, "--accept"]).ends(7);
    assert!(project.stored().is_empty(), "a component that is not trusted is not stored");
    trusts("acme");
    project.plugin(&["add", &named, "--accept"]).ends(0);
    let lock = project.bench.read("glovebox.lock");
    assert!(lock.contains("acme") && lock.contains("signer"), "{lock}");
    project.bench.glovebox(&["run", "--locked", "pipeline.dot"]).ends(0);
    let of_signatures = |file: &PathBuf| file.to_string_lossy().ends_with(".sig.json");
    let stored: Vec<PathBuf> = project.stored().into_iter().filter(of_signatures).collect();
    assert_eq!(stored.len(), 1);
    std::fs::remove_file(&stored[0]).unwrap();
    project.bench.glovebox(&["run", "pipeline.dot"]).ends(7).says("not signed");
    project.plugin(&["pull"]).ends(0);
    project.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
}

#[test]
fn artifacts_are_attached_to_a_plugin() {
    let Some(registry) = start("artifacts that are attached to a plugin", "") else { return };
    let project = Project::new();
    let file = project.file("pushed.wasm", &component("0.1.0", ""));
    let pushed = project.plugin(&["push", &file, &format!("{}/acme/todo", registry.address)]);
    let subject = pushed.ends(0).stdout.trim().rsplit_once('@').unwrap().1.parse().unwrap();
    let repository: Repository = format!("{}/acme/todo", registry.address).parse().unwrap();
    let client = Client::new(CredentialPlaces::default()).unwrap();
    let signature = "application/vnd.example.signature";
    let attach = |bytes: &[u8], artifact_type: &str| {
        let annotations = [("org.example.key".to_owned(), "1".to_owned())].into();
        client.attach(&repository, subject, Attachment { artifact_type, bytes, annotations }).unwrap()
    };
    assert!(client.referrers(&repository, subject, signature).unwrap().is_empty());
    let first = attach(b"first", signature);
    let second = attach(b"second", signature);
    attach(b"other", "application/vnd.example.other");
    assert_eq!(attach(b"first", signature), first);
    let mut found = client.referrers(&repository, subject, signature).unwrap();
    found.sort_by(|one, other| one.bytes.cmp(&other.bytes));
    assert_eq!(
        found.iter().map(|one| (one.digest, &*one.bytes)).collect::<Vec<_>>(),
        [(first, &b"first"[..]), (second, &b"second"[..])]
    );
    assert_eq!(found[0].annotations["org.example.key"], "1");
}

/// Makes a key and a certificate for a host with openssl. `None` if it is not on this machine.
fn certificate(what: &str, folder: &Path, host: &str) -> Option<()> {
    let config = format!(
        "[req]\ndistinguished_name = dn\nx509_extensions = v3\nprompt = no\n[dn]\nCN = glovebox test\n\
         [v3]\nsubjectAltName = DNS:{host}\nbasicConstraints = critical, CA:FALSE\n"
    );
    std::fs::write(folder.join("openssl.cnf"), config).unwrap();
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
    openssl.args(["-config", "openssl.cnf", "-keyout", "key.pem", "-out", "cert.pem"]);
    openssl.current_dir(folder).stderr(Stdio::null());
    match openssl.status().is_ok_and(|status| status.success()) {
        true => Some(()),
        false => {
            not_run(what, "no openssl that makes certificates");
            None
        }
    }
}

#[test]
fn a_registry_of_another_machine_needs_a_certificate() {
    let what = "a registry with TLS";
    let certificates = tempfile::tempdir().unwrap();
    if certificate(what, certificates.path(), "registry.example").is_none() {
        return;
    }
    let file = |name: &str| certificates.path().join(name).display().to_string();
    let tls = format!("  tls:\n    certificate: {}\n    key: {}\n", file("cert.pem"), file("key.pem"));
    let Some(registry) = start(what, &tls) else { return };
    let proxy = Proxy::start(registry.address.clone());
    let project = Project::new();
    let plugin = |words: &[&str], roots: &str| {
        let mut command = project.bench.command(&[&["plugin"], words].concat());
        command.env("HTTPS_PROXY", format!("http://{}", proxy.address)).env("SSL_CERT_FILE", roots);
        workbench::Answer::of(&mut command)
    };
    let component = project.file("pushed.wasm", &component("0.1.0", r#""src/""#));
    let push = ["push", &component, "registry.example/acme/todo"];
    plugin(&push, "/dev/null").ends(9).says("cannot be reached").says("certificate");
    plugin(&["push", &component, "other.example/acme/todo"], &file("cert.pem")).ends(9).says("certificate");
    plugin(&push, &file("cert.pem")).ends(0).says("registry.example/acme/todo:0.1.0@sha256:");
    plugin(&["add", "registry.example/acme/todo", "--accept"], &file("cert.pem")).ends(0);
    project.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    assert!(proxy.hosts().iter().all(|host| host.ends_with(".example:443")), "{:?}", proxy.hosts());
}

#[test]
fn a_real_registry_accepts_a_token() {
    let what = "a registry with a token server";
    let certificates = tempfile::tempdir().unwrap();
    if certificate(what, certificates.path(), "auth.example").is_none() {
        return;
    }
    let tokens = Registry::start();
    let signer = Signer::read(certificates.path());
    tokens.change(move |request, _| {
        let ada = request.headers.get("authorization").is_some_and(|sent| sent == "Basic YWRhOnMzY3JldA==");
        let scope = request.query.split('&').find_map(|part| part.strip_prefix("scope=repository%3Aacme%2Ftodo%3A"));
        match (ada, scope) {
            (true, Some(actions)) => {
                let actions: Vec<&str> = actions.split("%2C").collect();
                Answer::new(200, format!("{{\"token\":\"{}\"}}", signer.token("acme/todo", &actions)))
            }
            _ => Answer::new(401, ""),
        }
    });
    let auth = format!(
        "auth:\n  token:\n    realm: http://{}/token\n    service: here\n    issuer: test\n    rootcertbundle: {}\n",
        tokens.address,
        certificates.path().join("cert.pem").display()
    );
    let Some(registry) = start(what, &auth) else { return };
    let project = Project::new();
    let named = format!("{}/acme/todo", registry.address);
    let file = project.file("pushed.wasm", &component("0.1.0", r#""src/""#));
    project.plugin(&["push", &file, &named]).ends(2).says("not for you");
    project.log_in(&format!("{{\"auths\":{{\"{}\":{{\"auth\":\"YWRhOnMzY3JldA==\"}}}}}}", registry.address));
    project.plugin(&["push", &file, &named]).ends(0);
    tokens.take_requests();
    project.plugin(&["add", &named, "--accept"]).ends(0);
    assert!(tokens.take_requests().iter().all(|request| !request.query.contains("push")));
    project.plugin(&["push", &file, &format!("{}/acme/other", registry.address)]).ends(2).says("not for you");
    project.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
}

/// Signs tokens as a token server of docker does.
struct Signer {
    key: EcdsaKeyPair,
    certificate: String,
}

impl Signer {
    fn read(folder: &Path) -> Self {
        let base64_of = |name: &str| {
            let text = std::fs::read_to_string(folder.join(name)).unwrap();
            text.lines().filter(|line| !line.starts_with("-----")).collect::<String>()
        };
        let key = STANDARD.decode(base64_of("key.pem")).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key, &SystemRandom::new()).unwrap();
        Self { key, certificate: base64_of("cert.pem") }
    }

    fn token(&self, repository: &str, actions: &[&str]) -> String {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let header = json!({ "typ": "JWT", "alg": "ES256", "x5c": [self.certificate] });
        let claims = json!({
            "iss": "test", "sub": "ada", "aud": "here", "exp": now + 300, "nbf": now - 60, "iat": now, "jti": "1",
            "access": [{ "type": "repository", "name": repository, "actions": actions }],
        });
        let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}
