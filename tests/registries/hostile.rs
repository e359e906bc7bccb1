//! A registry that lies, stalls or leads elsewhere: a clear sentence, the documented exit code, and nothing installed.

use super::server::{Answer, Body, Registry, Request, Witness, sha256};
use super::{Project, component, large_component};
use crate::workbench;
use serde_json::Value;
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Adds version 0.1.0 from a registry that changes its answers, and checks that nothing of it is left.
fn check(change: impl Fn(&Request, Answer) -> Answer + Send + Sync + 'static, code: i32, expected: &str) {
    let registry = Registry::start();
    let project = Project::new();
    project.push(&registry, &component("0.1.0", r#""src/""#)).ends(0);
    registry.change(change);
    let begin = Instant::now();
    let answer = project.plugin(&["add", &registry.named("acme/todo:0.1.0"), "--accept"]);
    answer.ends(code).says(expected);
    assert!(answer.stderr.contains("help: "), "{}", answer.stderr);
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    project.is_untouched();
    // The project is not locked, and the next command works.
    registry.behave();
    project.plugin(&["add", &registry.named("acme/todo:0.1.0"), "--accept"]).ends(0);
}

fn is_manifest(request: &Request) -> bool {
    request.path.contains("/manifests/")
}

fn is_blob(request: &Request) -> bool {
    request.path.contains("/blobs/")
}

/// Changes the manifest, and states the digest of the changed one.
fn with_manifest(
    change: impl Fn(&mut Value) + Send + Sync + 'static,
) -> impl Fn(&Request, Answer) -> Answer + Send + Sync {
    move |request, answer| {
        if !is_manifest(request) {
            return answer;
        }
        let mut manifest: Value = serde_json::from_slice(&answer.bytes()).unwrap();
        change(&mut manifest);
        let bytes = manifest.to_string().into_bytes();
        let digest = sha256(&bytes);
        Answer { body: Body::Whole(bytes), ..answer }.with("docker-content-digest", digest)
    }
}

#[test]
fn other_bytes_are_refused() {
    let swapped = |request: &Request, answer: Answer| {
        let bytes = if is_blob(request) { component("0.1.0", r#""evil/""#) } else { answer.bytes() };
        let bytes = if is_blob(request) {
            bytes[..].iter().copied().chain([0; 4096]).take(answer.bytes().len()).collect()
        } else {
            bytes
        };
        Answer { body: Body::Whole(bytes), ..answer }
    };
    check(swapped, 7, "sent other bytes for the component");
    let flipped = |request: &Request, answer: Answer| {
        let mut bytes = answer.bytes();
        if is_manifest(request) {
            bytes.push(b' ');
        }
        Answer { body: Body::Whole(bytes), ..answer }
    };
    check(flipped, 7, "states a digest that a manifest does not have");
    check(with_manifest(|manifest| manifest["layers"][0]["size"] = 12.into()), 7, "for the component");
    check(
        with_manifest(|manifest| manifest["layers"][0]["size"] = 999_999_999_999_u64.into()),
        7,
        "limit `component_bytes`",
    );
    check(
        with_manifest(|manifest| manifest["layers"][0]["digest"] = "sha256:zz".into()),
        7,
        "a manifest that cannot be read",
    );
}

#[test]
fn more_or_other_things_than_one_component_are_refused() {
    let extra = |manifest: &mut Value| {
        let layer = manifest["layers"][0].clone();
        manifest["layers"].as_array_mut().unwrap().push(layer);
    };
    check(with_manifest(extra), 7, "it has 2 layers");
    check(with_manifest(|manifest| manifest["layers"][0]["mediaType"] = "application/x-sh".into()), 7, "its layer is");
    check(
        with_manifest(|manifest| *manifest = serde_json::json!({"schemaVersion": 2, "manifests": []})),
        7,
        "cannot be read",
    );
    let index = |request: &Request, answer: Answer| match is_manifest(request) {
        true => answer.with("content-type", "application/vnd.oci.image.index.v1+json"),
        false => answer,
    };
    check(index, 7, "has something else than a plugin there");
    let html = |_: &Request, answer: Answer| Answer { body: Body::Whole(b"<html>\x1b[31m".to_vec()), ..answer };
    check(html, 7, "states a digest");
}

#[test]
fn bodies_that_end_too_early_or_never_are_refused() {
    let cut = |request: &Request, answer: Answer| match is_blob(request) {
        true => Answer { body: Body::Claimed(answer.bytes().len(), answer.bytes()[..100].to_vec()), ..answer },
        false => answer,
    };
    check(cut, 9, "closed the connection before its answer was complete");
    let short = |request: &Request, answer: Answer| match is_blob(request) {
        true => Answer { body: Body::Whole(answer.bytes()[..100].to_vec()), ..answer },
        false => answer,
    };
    check(short, 7, "sent 100 bytes for the component");
    let endless = |wanted: fn(&Request) -> bool| {
        move |request: &Request, answer: Answer| {
            if wanted(request) { Answer { body: Body::Endless, ..answer } } else { answer }
        }
    };
    check(endless(is_blob), 7, "for the component");
    check(endless(is_manifest), 7, "sends more than 1048576 bytes for a manifest");
    let gigabyte = |request: &Request, answer: Answer| match is_manifest(request) {
        true => Answer { body: Body::Claimed(1 << 30, vec![b' '; 4096]), ..answer },
        false => answer,
    };
    check(gigabyte, 7, "sends more than 1048576 bytes for a manifest");
    let gone = |request: &Request, answer: Answer| match is_blob(request) {
        true => Answer { body: Body::Claimed(answer.bytes().len(), Vec::new()), ..answer },
        false => answer,
    };
    check(gone, 9, "closed the connection");
}

#[test]
fn a_registry_that_drips_is_given_up() {
    let drip = |request: &Request, answer: Answer| match is_blob(request) {
        true => Answer { body: Body::Drip(answer.bytes()), ..answer },
        false => answer,
    };
    check(drip, 9, "answers too slowly");
}

#[test]
fn a_registry_that_stalls_is_given_up() {
    let stall = |request: &Request, answer: Answer| match is_manifest(request) {
        true => Answer { body: Body::Stalled(answer.bytes()), ..answer },
        false => answer,
    };
    check(stall, 9, "answers too slowly");
}

/// Each answer of this registry is fast enough, but there is no end of them.
#[test]
fn a_command_has_a_time_for_all_its_requests() {
    let registry = Registry::start();
    let project = Project::with_plugin(&registry);
    registry.change(|request, answer| match request.path.ends_with("/tags/list") {
        true => {
            std::thread::sleep(Duration::from_millis(100));
            Answer::new(200, "{\"tags\":[\"0.1.0\"]}").with("link", "</v2/acme/todo/tags/list?n=1>; rel=\"next\"")
        }
        false => answer,
    });
    let within = |time: &str| {
        let mut command = project.bench.command(&["plugin", "outdated"]);
        workbench::Answer::of(command.env("GLOVEBOX_REGISTRY_TIMEOUT", time))
    };
    let begin = Instant::now();
    within("600ms")
        .ends(9)
        .says("answers too slowly: the command may use registries for 0.6 s")
        .says("repeat the command");
    assert!(begin.elapsed() < Duration::from_secs(8), "100 pages take 10 s: {:?}", begin.elapsed());
    within("plenty").ends(2).says("`GLOVEBOX_REGISTRY_TIMEOUT` is `plenty`");
    registry.behave();
    within("60s").ends(0);
}

#[test]
fn a_registry_that_is_overloaded_or_gone_can_be_tried_again() {
    check(|_, _| Answer::new(503, "\u{202e}busy"), 9, "answered 503: try again later");
    check(|_, _| Answer::new(429, ""), 9, "answered 429");
    check(|_, _| Answer::new(418, ""), 7, "answered 418 to a request for a manifest");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let project = Project::new();
    let begin = Instant::now();
    project.plugin(&["add", &format!("{free}/acme/todo:1.0.0")]).ends(9).says("cannot be reached");
    assert!(begin.elapsed() < Duration::from_secs(30));
    project.is_untouched();
}

#[test]
fn a_tag_that_moves_between_two_calls_changes_nothing() {
    let registry = Registry::start();
    let project = Project::new();
    project.push(&registry, &component("0.1.0", r#""src/""#)).ends(0);
    let shown = project.plugin(&["add", &registry.named("acme/todo:0.1.0")]);
    let agreed = shown.ends(6).stderr.split("--digest ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    registry.clear();
    project.push(&registry, &component("0.1.0", r#""src/","evil/""#)).ends(0);
    let again = project.plugin(&["add", &registry.named("acme/todo:0.1.0"), "--digest", &agreed, "--accept"]);
    again.ends(7).says(&format!("expected {agreed}"));
    project.is_untouched();
    // Between the manifest and the blob of one call.
    let calls = AtomicUsize::new(0);
    registry.change(move |request, answer| {
        let moved = is_blob(request) && calls.fetch_add(1, Ordering::Relaxed) == 0;
        if moved { Answer::new(200, component("0.1.0", r#""evil/""#)) } else { answer }
    });
    project.plugin(&["add", &registry.named("acme/todo:0.1.0"), "--accept"]).ends(7).says("for the component");
    project.is_untouched();
}

#[test]
fn redirects_lead_to_no_other_place_without_tls() {
    let witness = Witness::start();
    let to = format!("http://{}/x", witness.address);
    let redirect = |wanted: fn(&Request) -> bool, to: &str| {
        let to = to.to_owned();
        move |request: &Request, answer: Answer| match wanted(request) && !request.path.ends_with("/moved") {
            true => Answer::new(307, "").with("location", to.clone()),
            false => answer,
        }
    };
    check(redirect(is_blob, &to), 7, "only an address with `https` is followed");
    check(redirect(is_manifest, &to), 7, "only content that has a digest may come from another address");
    check(redirect(is_manifest, "/v2/elsewhere"), 7, "only content that has a digest");
    check(redirect(is_blob, "file:///etc/passwd"), 7, "location");
    assert_eq!(witness.connections(), 0);
    // A loop at the registry itself ends.
    check(redirect(is_blob, "/v2/acme/todo/blobs/x"), 7, "redirects");
}

#[test]
fn content_may_come_from_another_address_of_the_registry_itself() {
    let registry = Registry::start();
    let project = Project::new();
    let bytes = component("0.1.0", r#""src/""#);
    project.push(&registry, &bytes).ends(0);
    registry.change(move |request, answer| match (is_blob(request), request.path.as_str()) {
        (true, _) => Answer::new(307, "").with("location", "/storage/moved"),
        (_, "/storage/moved") => Answer::new(200, bytes.clone()),
        _ => answer,
    });
    project.plugin(&["add", &registry.named("acme/todo:0.1.0"), "--accept"]).ends(0);
}

/// Returns an address of this machine that is not loopback, if it has one. Nothing is sent.
fn other_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("198.51.100.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

#[test]
fn a_token_server_on_another_host_is_not_asked() {
    let listener = other_address().and_then(|address| TcpListener::bind((address, 0)).ok());
    let other = listener.as_ref().map_or("198.51.100.1:80".to_owned(), |one| one.local_addr().unwrap().to_string());
    for realm in
        [format!("http://{other}/token"), format!("https://{other}/token"), "https://auth.example/token".to_owned()]
    {
        let challenge = format!("Bearer realm=\"{realm}\",service=\"x\"");
        let ask = move |_: &Request, _: Answer| Answer::new(401, "").with("www-authenticate", challenge.clone());
        check(ask, 7, "and nothing was sent there");
    }
    let Some(listener) = listener else { return };
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "the token server was asked");
}

#[test]
fn an_upload_stays_at_the_registry() {
    let (registry, witness) = (Registry::start(), Witness::start());
    let to = format!("http://{}/upload", witness.address);
    registry.change(move |request, answer| match request.path.ends_with("/uploads/") {
        true => answer.with("location", to.clone()),
        false => answer,
    });
    let project = Project::new();
    project.push(&registry, &component("0.1.0", "")).ends(7).says("an upload stays at the registry");
    assert_eq!(witness.connections(), 0);
}

#[test]
fn lists_are_limited() {
    let registry = Registry::start();
    let project = Project::with_plugin(&registry);
    let page = |tags: Vec<String>| serde_json::json!({ "tags": tags }).to_string();
    let many = page((0..20_000).map(|number| format!("1.0.{number}")).collect());
    registry.change(move |request, answer| match request.path.ends_with("/tags/list") {
        true => Answer::new(200, many.clone()),
        false => answer,
    });
    project.plugin(&["outdated"]).ends(7).says("lists more than 10000 tags");
    let endless = page(vec!["1.0.0".to_owned()]);
    registry.change(move |request, answer| match request.path.ends_with("/tags/list") {
        true => Answer::new(200, endless.clone()).with("link", "</v2/acme/todo/tags/list?n=1&last=x>; rel=\"next\""),
        false => answer,
    });
    project.plugin(&["outdated"]).ends(7).says("lists more than 10000 tags");
    registry.change(|request, answer| match request.path.ends_with("/tags/list") {
        true => Answer::new(200, "{\"tags\":[\"\\u202e1.0.0\",\"9.9.9-\\u001b[31m\",\"0.1.0\"]}"),
        false => answer,
    });
    project.plugin(&["outdated"]).ends(0).says("up to date");
    let witness = Witness::start();
    let link = format!("<http://{}/x>; rel=\"next\"", witness.address);
    registry.change(move |request, answer| match request.path.ends_with("/tags/list") {
        true => answer.with("link", link.clone()),
        false => answer,
    });
    project.plugin(&["outdated"]).ends(7).says("the next page must be at the registry");
    assert_eq!(witness.connections(), 0);
}

#[test]
fn a_component_over_the_limit_is_not_fetched() {
    let registry = Registry::start();
    let project = Project::new();
    project.push(&registry, &large_component("0.1.0", 200_000)).ends(0);
    project.bench.write("glovebox.toml", "[limits]\ncomponent_bytes = 100000\n");
    registry.take_requests();
    let answer = project.plugin(&["add", &registry.named("acme/todo:0.1.0"), "--accept"]);
    answer.ends(7).says("limit `component_bytes`").says("higher `component_bytes`");
    assert!(!registry.take_requests().iter().any(is_blob));
}
