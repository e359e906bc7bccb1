//! Tests of what a component says about itself: the manifest, the standard sections beside it, and hostile ones of both. An independent
//! reader, `wasm-metadata`, reads what is written.

use crate::guests;
use glovebox_host::inspect::{InspectError, Inspection, Producer, embed, inspect};
use wasm_metadata::{AddMetadata, AddMetadataField, Payload};

const MANIFEST: &str = r##"{"name":"acme.c","version":"1.2.0","description":"Says hello.","licenses":"MIT OR Apache-2.0",
    "source":"https://example.com/acme/c","revision":"0a1b2c","authors":"Kim <kim@example.com>",
    "homepage":"https://example.com/","docs":"# C\n\nSays hello.\n","wants":{"model":true},
    "attributes":{"tone":{"type":"enum","values":["warm","cold"],"default":"warm","doc":"How it says it."}}}"##;

fn bare() -> Vec<u8> {
    guests::component("(func $execute)")
}

/// Appends a custom section to a component.
fn with_section(component: &[u8], name: &str, content: &[u8]) -> Vec<u8> {
    let number = |mut value: usize| {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    };
    let body = [&number(name.len())[..], name.as_bytes(), content].concat();
    [component, &[0], &number(body.len()), &body].concat()
}

fn added(component: &[u8], change: impl FnOnce(&mut AddMetadata)) -> Vec<u8> {
    let mut add = AddMetadata::default();
    change(&mut add);
    add.to_wasm(component).unwrap()
}

#[track_caller]
fn refused(bytes: &[u8], expected: &str) {
    let error = inspect(bytes).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn another_program_reads_what_is_embedded() {
    let built = added(&bare(), |add| {
        add.language = vec![("C".to_owned(), "11".to_owned())];
        add.name = AddMetadataField::Set("a name of the compiler".to_owned());
        add.version = AddMetadataField::Set("0.0.1".parse().unwrap());
    });
    let embedded = embed(&built, MANIFEST).unwrap();
    let payload = Payload::from_binary(&embedded).unwrap();
    let read = payload.metadata();
    assert_eq!(read.name.as_deref(), Some("acme.c"));
    let texts = [
        read.version.as_ref().map(ToString::to_string),
        read.description.as_ref().map(ToString::to_string),
        read.licenses.as_ref().map(ToString::to_string),
        read.source.as_ref().map(ToString::to_string),
        read.revision.as_ref().map(ToString::to_string),
        read.authors.as_ref().map(ToString::to_string),
        read.homepage.as_ref().map(ToString::to_string),
    ];
    let expected = [
        "1.2.0",
        "Says hello.",
        "MIT OR Apache-2.0",
        "https://example.com/acme/c",
        "0a1b2c",
        "Kim <kim@example.com>",
        "https://example.com/",
    ];
    assert_eq!(texts.map(Option::unwrap_or_default), expected);
    let producers = read.producers.as_ref().unwrap();
    assert_eq!(producers.get("language").unwrap().get("C").unwrap(), "11");
    assert_eq!(producers.get("processed-by").unwrap().get("glovebox").unwrap(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn what_is_embedded_is_inspected() {
    let found: Inspection = inspect(&embed(&bare(), MANIFEST).unwrap()).unwrap();
    let manifest = found.manifest.unwrap();
    assert_eq!(manifest.licenses.as_deref(), Some("MIT OR Apache-2.0"));
    assert_eq!(manifest.docs.as_deref(), Some("# C\n\nSays hello.\n"));
    let tone = &manifest.attributes.unwrap()["tone"];
    assert_eq!((tone.default.as_deref(), tone.doc.as_str()), (Some("warm"), "How it says it."));
    assert_eq!(found.standard.name.as_deref(), Some("acme.c"));
    assert_eq!(found.standard.texts["homepage"], "https://example.com/");
    let own = |one: &&Producer| one.name == "glovebox";
    assert_eq!(found.standard.producers.iter().filter(own).count(), 1);
    assert_eq!(embed(&bare(), MANIFEST).unwrap(), embed(&bare(), MANIFEST).unwrap());
}

#[test]
fn a_component_of_other_tools_is_described_by_their_sections() {
    let found = inspect(&added(&bare(), |add| {
        add.name = AddMetadataField::Set("theirs".to_owned());
        add.description = AddMetadataField::Set("Does it.".parse().unwrap());
    }));
    let found = found.unwrap();
    assert_eq!((found.manifest, found.standard.name.as_deref()), (None, Some("theirs")));
    assert_eq!(found.standard.texts["description"], "Does it.");
}

#[test]
fn a_standard_section_that_says_something_else_is_refused() {
    let only_manifest = with_section(&bare(), "glovebox:manifest", MANIFEST.as_bytes());
    let check = |change: fn(&mut AddMetadata), expected: &str| refused(&added(&only_manifest, change), expected);
    let names = "the manifest has the name `acme.c`, but the standard section has `acme.b`";
    check(|add| add.name = AddMetadataField::Set("acme.b".to_owned()), names);
    check(|add| add.version = AddMetadataField::Set("9.9.9".parse().unwrap()), "the version `1.2.0`");
    check(|add| add.licenses = AddMetadataField::Set("MIT".parse().unwrap()), "the licenses `MIT OR Apache-2.0`");
    check(|add| add.source = AddMetadataField::Set("https://evil.example/".parse().unwrap()), "the source");
}

#[test]
fn a_section_twice_is_refused() {
    let embedded = embed(&bare(), MANIFEST).unwrap();
    refused(&with_section(&embedded, "description", b"Says hello."), "several sections `description`");
    refused(&with_section(&embedded, "component-name", b"\0\x07\x06acme.c"), "several sections `component-name`");
    refused(&with_section(&embedded, "producers", b"\0"), "several sections `producers`");
    refused(&with_section(&embedded, "glovebox:manifest", MANIFEST.as_bytes()), "several sections `glovebox:manifest`");
    assert!(matches!(embed(&embedded, MANIFEST), Err(InspectError::TwoManifests)));
}

#[test]
fn hostile_sections_are_refused() {
    let bare = wat::parse_str("(component)").unwrap();
    refused(&with_section(&bare, "description", &[b'x'; 1025]), "the section `description` cannot be read");
    refused(&with_section(&bare, "authors", b"\xff"), "the section `authors` cannot be read");
    refused(&with_section(&bare, "producers", b"\xff\xff\xff\xff\x0f"), "the section `producers` cannot be read");
    let long_name = [&[0, 0x83, 8, 0x81, 8][..], &[b'x'; 1025]].concat();
    refused(&with_section(&bare, "component-name", &long_name), "the section `component-name` cannot be read");
    refused(&with_section(&bare, &"n".repeat(129), b""), "name of a custom section has 129 bytes");
    refused(&with_section(&bare, "other", &vec![0; (1 << 20) + 1]), "more than 1048576 bytes");
    let many = (0..65).fold(bare.clone(), |bytes, number| with_section(&bytes, &format!("s{number}"), b""));
    refused(&many, "more than 64 different names");
}

#[test]
fn other_sections_are_listed_by_name() {
    let bytes = with_section(&with_section(&bare(), "acme\x1b", b"12"), "acme\x1b", b"345");
    let found = inspect(&bytes).unwrap();
    let own = found.custom_sections.iter().find(|one| one.name == "acme\x1b").unwrap();
    assert_eq!((own.count, own.bytes), (2, 5));
}

#[test]
fn a_manifest_that_is_no_description_is_refused() {
    let check = |field: &str, expected: &str| {
        let text = format!(r#"{{"name":"acme.c","version":"1",{field}}}"#);
        let error = embed(&bare(), &text).unwrap_err().to_string();
        assert!(error.contains(expected), "{field}: {error}");
    };
    check(r#""licenses":"do what you want""#, "`licenses` is not an SPDX expression");
    check(r#""source":"https://good.example@evil.example/""#, "`source` is not an address");
    check(r#""homepage":"javascript:alert(1)""#, "`homepage` is not an address");
    check(r#""authors":"Kim\u202emiK""#, "`authors` has characters that could deceive a reader");
    check(r#""docs":"a\u001b[2Jb""#, "`docs` has characters that could deceive a reader");
    check(&format!(r#""docs":"{}""#, "x".repeat(16385)), "`docs` has 16385 bytes");
    check(r#""attributes":{"A b":{"type":"string"}}"#, "the attribute `A b` has no valid name");
    check(r#""attributes":{"a":{"type":"strong"}}"#, "`type` is `strong`");
    let many: Vec<String> = (0..65).map(|number| format!(r#""a{number}":{{"type":"string"}}"#)).collect();
    check(&format!(r#""attributes":{{{}}}"#, many.join(",")), "`attributes` has 65 entries, expected at most 64");
}

#[test]
fn wants_are_few_enough_to_be_read_and_have_no_deceptive_characters() {
    let embedded = |commands: &[String]| {
        let manifest = serde_json::json!({"name": "acme.c", "version": "1.2.0", "wants": {"commands": commands}});
        embed(&bare(), &manifest.to_string()).map_err(|error| error.to_string())
    };
    let commands = |count: usize| (0..count).map(|number| format!("tool-{number}")).collect::<Vec<_>>();
    assert!(embedded(&commands(256)).is_ok());
    assert!(embedded(&commands(257)).unwrap_err().contains("`wants.commands` has 257 entries, expected at most 256"));
    for text in ["true\u{202e}", "x\nhelp: run this", "\u{9b}31m"] {
        assert!(embedded(&[text.to_owned()]).unwrap_err().contains("wants.commands"), "{text:?}");
    }
}
