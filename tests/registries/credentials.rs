//! Who a registry lets in: passwords, tokens and programs of the user's container tools, sent to nobody else.

use super::server::{Answer, Registry, Request};
use super::{Project, component};
use crate::workbench;
use std::os::unix::fs::PermissionsExt;

/// `ada:s3cret` in base64.
const ADA: &str = "YWRhOnMzY3JldA==";

impl Project {
    /// Writes the file of credentials of docker.
    pub(super) fn log_in(&self, text: &str) {
        let folder = self.bench.outside().join("docker");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.json"), text).unwrap();
    }

    fn add(&self, registry: &Registry) -> workbench::Answer {
        self.plugin(&["add", &registry.named("acme/todo:0.1.0"), "--accept"])
    }
}

/// Starts a registry with version 0.1.0 that lets in only requests with this header.
fn guarded(project: &Project, authorization: &'static str, challenge: &'static str) -> Registry {
    let registry = Registry::start();
    project.push(&registry, &component("0.1.0", r#""src/""#)).ends(0);
    registry.take_requests();
    let address = registry.address;
    registry.change(move |request: &Request, answer: Answer| {
        let sent = request.headers.get("authorization").map(String::as_str);
        match request.path.as_str() {
            "/token" => token(request),
            _ if sent == Some(authorization) => answer,
            _ => Answer::new(401, "").with("www-authenticate", challenge.replace("ADDRESS", &address.to_string())),
        }
    });
    registry
}

/// The token server of the registry.
fn token(request: &Request) -> Answer {
    let form = String::from_utf8_lossy(&request.body).into_owned();
    let is_ada = request.headers.get("authorization").is_some_and(|sent| *sent == format!("Basic {ADA}"));
    let has_identity = request.method == "POST" && form.contains("refresh_token=identity-1");
    let query = if request.method == "POST" { form } else { request.query.clone() };
    match (is_ada || has_identity) && query.contains("scope=repository%3Aacme%2Ftodo%3Apull") {
        true => Answer::new(200, "{\"token\":\"let-me-in\"}"),
        false => Answer::new(401, ""),
    }
}

fn auth(registry: &Registry, entry: &str) -> String {
    format!("{{\"auths\":{{\"{}\":{entry}}}}}", registry.address)
}

const BASIC: (&str, &str) = ("Basic YWRhOnMzY3JldA==", "Basic realm=\"here\"");
const BEARER: (&str, &str) = (
    "Bearer let-me-in",
    "Bearer realm=\"http://ADDRESS/token\",service=\"here\",scope=\"repository:acme/todo:pull,push,delete\"",
);

#[test]
fn a_password_opens_a_private_registry() {
    let project = Project::new();
    let registry = guarded(&project, BASIC.0, BASIC.1);
    let missing = project.add(&registry);
    missing.ends(2).says("is not there, or not for you").says("401").says("without credentials").says("docker login");
    project.log_in(&auth(&registry, "{\"auth\":\"YWRhOndyb25n\"}"));
    let refused = project.add(&registry);
    refused
        .ends(2)
        .says("is not there, or not for you")
        .says("docker/config.json")
        .never_says("wrong")
        .never_says("YWRh");
    project.is_untouched();
    project.log_in(&auth(&registry, &format!("{{\"auth\":\"{ADA}\"}}")));
    project.add(&registry).ends(0).never_says("s3cret");
    project.plugin(&["outdated"]).ends(0).says("up to date");
}

#[test]
fn a_token_has_the_smallest_scope() {
    let project = Project::new();
    let registry = guarded(&project, BEARER.0, BEARER.1);
    project.add(&registry).ends(2).says("is not there, or not for you");
    project.log_in(&auth(&registry, &format!("{{\"auth\":\"{ADA}\"}}")));
    project.add(&registry).ends(0);
    let asked = registry.take_requests();
    let tokens: Vec<&Request> = asked.iter().filter(|request| request.path == "/token").collect();
    assert!(!tokens.is_empty() && tokens.iter().all(|request| !request.query.contains("push")), "{tokens:?}");
    // The password goes to the token server only.
    let to_registry = asked.iter().filter(|request| request.path != "/token");
    assert!(
        to_registry.filter_map(|request| request.headers.get("authorization")).all(|sent| sent.starts_with("Bearer "))
    );
}

#[test]
fn tokens_of_the_file_are_used() {
    let project = Project::new();
    let registry = guarded(&project, BEARER.0, BEARER.1);
    project.log_in(&auth(&registry, "{\"identitytoken\":\"identity-1\"}"));
    project.add(&registry).ends(0);
    let other = Project::new();
    let registry = guarded(&other, BEARER.0, BEARER.1);
    other.log_in(&auth(&registry, "{\"registrytoken\":\"let-me-in\"}"));
    other.add(&registry).ends(0);
    assert!(!registry.take_requests().iter().any(|request| request.path == "/token"));
}

#[test]
fn a_program_has_the_password() {
    let project = Project::new();
    let registry = guarded(&project, BASIC.0, BASIC.1);
    let folder = project.bench.outside().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("docker-credential-test");
    let path = std::env::join_paths([folder.as_path()].into_iter().chain(
        std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect::<Vec<_>>().iter().map(|one| one.as_path()),
    ))
    .unwrap();
    let add = |script: &str| {
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = project.bench.command(&["plugin", "add", &registry.named("acme/todo:0.1.0"), "--accept"]);
        workbench::Answer::of(command.env("PATH", &path))
    };
    project.log_in(&format!("{{\"credHelpers\":{{\"{}\":\"test\"}}}}", registry.address));
    add("exit 4").ends(2).says("docker-credential-test").says("returned no credential");
    add("echo '{\"Username\":\"ada\"'").ends(2).says("its answer cannot be read").never_says("ada");
    add("echo credentials not found in native keychain; exit 1").ends(2).says("without credentials");
    project.is_untouched();
    // The name of the registry has no line end.
    let right = format!(
        "name=$(cat); [ \"$1 $name\" = 'get {}' ] && echo '{{\"Username\":\"ada\",\"Secret\":\"s3cret\"}}'",
        registry.address
    );
    add(&right).ends(0).never_says("s3cret");
    project.log_in("{\"credHelpers\":{\"x.example\":\"../../evil\"},\"credsStore\":\"none-such\"}");
    project.plugin(&["outdated"]).ends(2).says("docker-credential-none-such").says("cannot be started");
}

#[test]
fn a_public_registry_needs_no_file() {
    let registry = Registry::start();
    let project = Project::new();
    project.log_in("this is not JSON");
    project.push(&registry, &component("0.1.0", r#""src/""#)).ends(0);
    project.add(&registry).ends(0);
    assert!(registry.take_requests().iter().all(|request| !request.headers.contains_key("authorization")));
    let private = guarded(&Project::new(), BASIC.0, BASIC.1);
    project.plugin(&["add", &private.named("acme/todo:0.1.0")]).ends(2).says("it is no file of credentials");
}

#[test]
fn missing_and_forbidden_are_one_sentence() {
    let registry = Registry::start();
    let project = Project::new();
    let said = |status: u16| {
        registry.change(move |_, _| Answer::new(status, "").with("www-authenticate", "Basic realm=\"x\""));
        let answer = project.add(&registry);
        answer.ends(2).says("is not there, or not for you").says("to a request without credentials");
        answer.stderr.replace(&format!("answered {status}"), "answered STATUS")
    };
    assert_eq!((said(401), said(403)), (said(404), said(404)));
    project.is_untouched();
}
