//! Tests of inspecting a component's bytes, and of the messages for a component that cannot be used, which report all problems together.

use crate::guests;
use crate::world::guest_names;
use glovebox_host::component::{LoadError, check_handler};
use glovebox_host::grants::FileTier;
use glovebox_host::host::{Host, HostConfig};
use glovebox_host::inspect::{InspectError, embed, inspect};
use glovebox_host::interfaces::ImportState;
use proptest::prelude::*;

const IDLE: &str = "(func $execute)";

fn with_section(text: &str) -> Vec<u8> {
    guests::component(&format!("(@custom \"glovebox:manifest\" \"{}\")\n{IDLE}", text.replace('"', "\\\"")))
}

#[test]
fn the_world_follows_from_imports_and_exports() {
    let check = |bytes: &[u8], world: &str| assert_eq!(inspect(bytes).unwrap().world, world);
    check(&guests::build("traps"), "handler");
    check(&guests::build("log-flood"), "handler");
    check(&guests::build("runs-command"), "verifier");
    check(&guests::build("asks-model"), "agent");
    check(&wat::parse_str("(component)").unwrap(), "unknown");
}

#[test]
fn imports_are_only_what_is_used() {
    let inspection = inspect(&guests::build("log-flood")).unwrap();
    let names: Vec<&str> = inspection.imports.iter().map(|import| import.name.as_str()).collect();
    assert_eq!(names, ["glovebox:plugin/types@0.1.0", "glovebox:plugin/control@0.1.0"]);
    assert!(inspection.imports.iter().all(|import| import.state == ImportState::Provided));
    assert_eq!(inspection.exports, ["glovebox:plugin/stage@0.1.0"]);
    assert_eq!(inspection.manifest, None);
}

#[test]
fn the_manifest_is_read_without_running_anything() {
    let bytes = with_section(
        r#"{"name":"acme.review","version":"0.1.0","description":"d","wants":{"filesystem":"posix","read":["src/"]}}"#,
    );
    let inspection = inspect(&bytes).unwrap();
    let manifest = inspection.manifest.unwrap();
    assert_eq!((manifest.name.as_str(), manifest.wants.filesystem), ("acme.review", FileTier::Posix));
    assert_eq!((inspection.bytes, inspection.digest), (bytes.len() as u64, glovebox_record::Digest::hash(&bytes)));
}

#[test]
fn a_manifest_that_asks_for_the_impossible_is_an_error() {
    let check = |section: &str, expected: &str| {
        let error = inspect(&with_section(section)).unwrap_err();
        assert!(matches!(error, InspectError::Manifest(_)), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(r#"{"name":"a","version":"1","wants":{"network":true}}"#, "the host cannot enforce `network`");
    check(r#"{"name":"a","version":"1","secrets":[]}"#, "unknown field `secrets`");
    check(r#"{"name":"a"}"#, "missing field `version`");
    check(r#"{"name":"a b","version":"1"}"#, "`name` is `a b`");
    check(r#"{"name":"a","version":"1","description":"x\\u001b[2J"}"#, "could deceive a reader");
    check("not JSON", "not a plugin manifest");
}

#[test]
fn a_manifest_is_embedded_once_and_only_a_good_one() {
    let bare = guests::component(IDLE);
    let long = "x".repeat(300);
    let good = format!(r#"{{"name":"acme.c","version":"1","description":"{long}","wants":{{"model":true}}}}"#);
    let embedded = embed(&bare, &format!("\n{good}\n")).unwrap();
    let found = inspect(&embedded).unwrap();
    assert!(found.manifest.is_some_and(|manifest| manifest.name == "acme.c" && manifest.wants.model));
    assert!(matches!(embed(&embedded, &good), Err(InspectError::TwoManifests)));
    assert!(matches!(embed(&bare, "{}"), Err(InspectError::Manifest(_))));
    assert!(matches!(embed(b"text", &good), Err(InspectError::NotWasm)));
    assert!(matches!(embed(&bare, &" x".repeat(70_000)), Err(InspectError::ManifestTooLong(_))));
}

#[test]
fn bytes_that_are_no_component_are_told_apart() {
    let core = wat::parse_str("(module)").unwrap();
    assert!(matches!(inspect(&core).unwrap_err(), InspectError::CoreModule));
    assert!(matches!(inspect(b"#!/bin/sh").unwrap_err(), InspectError::NotWasm));
    let mut cut = guests::build("traps");
    cut.truncate(cut.len() / 2);
    assert!(matches!(inspect(&cut).unwrap_err(), InspectError::CutOff));
    let memory64 = wat::parse_str("(component (core module (memory i64 1)))").unwrap();
    assert!(matches!(inspect(&memory64).unwrap_err(), InspectError::Features(_)));
}

proptest! {
    /// Damaged bytes of a component are either read or refused, and never cause a panic.
    #[test]
    fn damaged_components_are_read_or_refused(
        guest in 0..guest_names().len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        length in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = guests::build(&guest_names()[guest]);
        for (index, byte) in edits {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        if is_cut {
            bytes.truncate(length.index(bytes.len() + 1));
        }
        match inspect(&bytes) {
            Ok(inspection) => drop(check_handler(&inspection).map_err(|error| error.help())),
            // The validator's message may contain names from the file.
            Err(InspectError::Invalid(_)) => {}
            Err(error) => prop_assert!(error.to_string().lines().count() == 1, "{}", error),
        }
    }
}

#[test]
fn all_that_is_wrong_with_imports_is_told_at_once() {
    let host = Host::new(HostConfig::in_process(None, 1)).unwrap();
    let names = [
        "glovebox:plugin/control@0.0.9",
        "glovebox:plugin/human@0.1.0",
        "glovebox:plugin/control@0.1.0",
        "wasi:http/outgoing-handler@0.2.6",
        "acme:secret/store@1.0.0",
    ];
    let imports: String = names.iter().map(|name| format!("(import \"{name}\" (instance))")).collect();
    let error = host.load(&wat::parse_str(format!("(component {imports})")).unwrap()).err().unwrap();
    let LoadError::Imports(refused) = &error else { panic!("{error}") };
    assert_eq!(refused.len(), 4);
    let text = error.to_string();
    for line in [
        "`glovebox:plugin/control@0.0.9`: this host has version 0.1.0",
        "`glovebox:plugin/human@0.1.0`: questions to a person are not provided in this version",
        "`wasi:http/outgoing-handler@0.2.6`: components have no network",
        "`acme:secret/store@1.0.0`: unknown to this host",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn a_component_for_a_later_interface_is_told_which_version_it_needs() {
    let host = Host::new(HostConfig::in_process(None, 1)).unwrap();
    let check = |component: &str, needed: &str| {
        let error = host.load(&wat::parse_str(component).unwrap()).err().unwrap();
        assert_eq!(
            error.to_string(),
            format!("the component needs `glovebox:plugin` {needed}, and this host has 0.1.0")
        );
        let help = error.help().unwrap();
        assert!(help.contains(&format!("install a Glovebox with `glovebox:plugin` {needed}")), "{help}");
    };
    let import = |name: &str| format!("(import \"glovebox:plugin/{name}\" (instance))");
    let export = |name: &str| format!("(instance $i) (export \"glovebox:plugin/{name}\" (instance $i))");
    check(&format!("(component {})", import("files@0.2.0")), "0.2.0");
    check(&format!("(component {}{})", import("later@0.1.3"), import("wasi@0.1.1")), "0.1.3");
    check(&format!("(component {}{})", import("files@0.1.0"), export("stage@1.0.0")), "1.0.0");
    let older = format!("(component {})", export("stage@0.0.9"));
    let error = host.load(&wat::parse_str(older).unwrap()).err().unwrap();
    assert!(matches!(error, LoadError::NoStage(_)), "{error}");
}

#[test]
fn a_manifest_cannot_flood_or_deceive_whoever_looks_at_it() {
    let described = |text: &str| with_section(&format!(r#"{{"name":"a.b","version":"1","description":"{text}"}}"#));
    assert!(inspect(&described(&"x".repeat(1 << 10))).is_ok());
    let check = |bytes: &[u8], expected: &str| {
        let error = inspect(bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(&described(&"x".repeat((1 << 10) + 1)), "`description` has 1025 bytes");
    check(&described(r"safe\\u202elive"), "could deceive a reader");
    check(&with_section(&" ".repeat(70_000)), "has 70000 bytes, expected at most 65536");
}

#[test]
fn a_component_without_a_stage_or_with_another_shape_is_told_why() {
    let host = Host::new(HostConfig::in_process(None, 1)).unwrap();
    let load = |text: &str| host.load(&wat::parse_str(text).unwrap()).err().unwrap();
    assert!(load("(component)").to_string().contains("exports no `glovebox:plugin/stage@0.1.0`"));
    let empty_stage = "(component (instance $i) (export \"glovebox:plugin/stage@0.1.0\" (instance $i)))";
    assert!(matches!(load(empty_stage), LoadError::Link(_)));
    let other_shape = "(component (import \"glovebox:plugin/control@0.1.0\" (instance (export \"canceled\" (func))))
        (instance $i) (export \"glovebox:plugin/stage@0.1.0\" (instance $i)))";
    assert!(matches!(load(other_shape), LoadError::Link(_)));
}

#[test]
fn a_component_is_loaded_once() {
    let host = Host::new(HostConfig::in_process(None, 1)).unwrap();
    let bytes = guests::build("traps");
    let (first, second) = (host.load(&bytes).unwrap(), host.load(&bytes).unwrap());
    assert!(std::sync::Arc::ptr_eq(&first, &second));
}
