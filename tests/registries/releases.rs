//! `plugin push` compares a version with the last release: what would break the pipelines of its users is published only as a version
//! that may change anything.

use super::server::{Answer, Body, Registry};
use super::{Project, guests};
use crate::workbench;
use glovebox_host::inspect::embed;

/// Returns a component with these declared attributes.
fn with_attributes(body: &str, version: &str, attributes: &str) -> Vec<u8> {
    let manifest = format!(r#"{{"name":"acme.todo","version":"{version}","attributes":{{{attributes}}}}}"#);
    embed(&guests::component(body), &manifest).expect("a manifest")
}

const FOLDER: &str = r#""folder":{"type":"path","default":"src"}"#;
const NOTHING: &str = "(func $execute)";

/// A project that published 1.0.0 with an attribute.
fn released(registry: &Registry) -> Project {
    let project = Project::new();
    project.push(registry, &with_attributes(NOTHING, "1.0.0", FOLDER)).ends(0);
    project
}

fn refused(push: &workbench::Answer, reason: &str) {
    push.ends(7).says(reason).says("is not compatible with the last release, 1.0.0: nothing was published");
    push.says("help: restore what is named above, or publish it as 2.0.0 or later");
}

#[test]
fn what_would_break_pipelines_needs_a_new_major_version() {
    let registry = Registry::start();
    let project = released(&registry);
    let push =
        |version: &str, attributes: &str| project.push(&registry, &with_attributes(NOTHING, version, attributes));
    refused(&push("1.1.0", ""), "  it no longer has the attribute `folder`");
    refused(
        &push("1.0.1", r#""folder":{"type":"integer"}"#),
        "  its attribute `folder` was a path relative to the workspace, such as `src/` or `src/a.rs`, and now must be a whole number",
    );
    refused(
        &push("1.9.0-rc.1", &format!(r#"{FOLDER},"mode":{{"type":"string","required":true}}"#)),
        "  its attribute `mode` is now required",
    );
    let asks = std::fs::read_to_string(guests::folder().join("asks-model/guest.wat")).unwrap();
    refused(
        &project.push(&registry, &with_attributes(&asks, "1.1.0", FOLDER)),
        "  its world was `handler`, and now is `agent`",
    );
    assert_eq!(
        project.plugin(&["search", "todo", "--registry", &registry.address.to_string()]).stdout.matches("1.").count(),
        1
    );
    // What grows may be published, and so may anything as a new major version.
    push("1.1.0", &format!(r#"{FOLDER},"most":{{"type":"integer"}}"#)).ends(0);
    push("2.0.0", "").ends(0);
    // A later 1.x is compared with the last 1.x, although there is 2.0.0.
    push("1.2.0", FOLDER).ends(7).says("it no longer has the attribute `most`").says("the last release, 1.1.0");
    // To publish the same bytes again is no new release.
    push("1.1.0", &format!(r#"{FOLDER},"most":{{"type":"integer"}}"#)).ends(0).says("was published already");
}

#[test]
fn before_1_0_a_new_minor_version_may_change_anything() {
    let registry = Registry::start();
    let project = Project::new();
    let push =
        |version: &str, attributes: &str| project.push(&registry, &with_attributes(NOTHING, version, attributes));
    push("0.1.0", FOLDER).ends(0);
    push("0.1.1", "")
        .ends(7)
        .says("is not compatible with the last release, 0.1.0")
        .says("publish it as 0.2.0 or later");
    push("0.2.0-rc.1", "").ends(0);
    push("0.2.0", "").ends(0);
}

#[test]
fn a_last_release_that_cannot_be_read_is_not_passed_over() {
    let registry = Registry::start();
    let project = released(&registry);
    registry.change(|request, answer| match request.method == "GET" && request.path.contains("/blobs/") {
        true => Answer { body: Body::Whole(vec![0; answer.bytes().len()]), ..answer },
        false => answer,
    });
    let push = |version: &str| project.push(&registry, &with_attributes(NOTHING, version, FOLDER));
    push("1.1.0").ends(7).says("cannot be compared with the last release, 1.0.0").says("help: ").says("2.0.0 or later");
    registry.change(|request, answer| match request.path.ends_with("/tags/list") {
        true => Answer::new(503, ""),
        false => answer,
    });
    push("1.1.0").ends(9).says("answered 503");
    registry.behave();
    let before = project.plugin(&["add", &registry.named("acme/todo:1.1.0"), "--accept"]);
    before.ends(2).says("is not there");
    push("1.1.0").ends(0);
}
