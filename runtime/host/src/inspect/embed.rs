//! Writes a manifest into a component: the section of Glovebox, and the standard sections that other programs read.
//!
//! Standard sections that the component has already are replaced, so that none is there twice. The tools in its section
//! `producers` are kept.

use super::manifest::MANIFEST_SECTION;
use super::sections::{NAME_SECTION, PRODUCERS_SECTION, Producer};
use super::{InspectError, Inspection, inspect};
use wasmparser::BinaryReader;

/// Name under which this program is listed in the section `producers`.
const OWN_NAME: &str = "glovebox";
/// Length of the magic number and the version at the beginning of a component.
const HEADER_BYTES: usize = 8;
/// Id of a custom section.
const CUSTOM: u8 = 0;

/// Adds a manifest to a component that has none. `manifest` is JSON, and is embedded as it is written. The returned bytes are inspected too.
pub fn embed(component: &[u8], manifest: &str) -> Result<Vec<u8>, InspectError> {
    let found = inspect(component)?;
    let text = manifest.trim();
    if found.manifest.is_some() {
        return Err(InspectError::TwoManifests);
    }
    let manifest = super::parse_manifest(text.as_bytes())?;
    let replaced: Vec<&str> = manifest.standard_texts().map(|(name, _)| name).collect();
    let is_replaced = |name: &str| replaced.contains(&name) || name == NAME_SECTION || name == PRODUCERS_SECTION;
    let mut embedded = without_sections(component, is_replaced)?;
    add_section(&mut embedded, MANIFEST_SECTION, text.as_bytes());
    add_section(&mut embedded, NAME_SECTION, &name_content(&manifest.name));
    for (name, text) in manifest.standard_texts() {
        add_section(&mut embedded, name, text.as_bytes());
    }
    add_section(&mut embedded, PRODUCERS_SECTION, &producers_content(&found));
    inspect(&embedded)?;
    Ok(embedded)
}

/// Copies a component without those of its own custom sections whose name fulfils `is_removed`.
fn without_sections(component: &[u8], is_removed: impl Fn(&str) -> bool) -> Result<Vec<u8>, InspectError> {
    let (header, sections) = component.split_at_checked(HEADER_BYTES).ok_or(InspectError::CutOff)?;
    let (mut kept, mut reader) = (header.to_vec(), BinaryReader::new(sections, HEADER_BYTES as u64));
    while !reader.eof() {
        let begin = sections.len() - reader.bytes_remaining();
        let id = reader.read_u8()?;
        let length = reader.read_var_u32()?;
        let content = reader.read_bytes(length as usize)?;
        let name = (id == CUSTOM).then(|| BinaryReader::new(content, 0).read_string().ok()).flatten();
        if !name.is_some_and(&is_removed) {
            kept.extend_from_slice(&sections[begin..sections.len() - reader.bytes_remaining()]);
        }
    }
    Ok(kept)
}

/// Appends a custom section.
fn add_section(bytes: &mut Vec<u8>, name: &str, content: &[u8]) {
    let mut section = Vec::with_capacity(name.len() + content.len() + 8);
    add_text(&mut section, name);
    section.extend_from_slice(content);
    bytes.push(CUSTOM);
    add_length(bytes, section.len());
    bytes.append(&mut section);
}

/// Returns the content of a section with a component's name: subsection 0.
fn name_content(name: &str) -> Vec<u8> {
    let (mut content, mut text) = (vec![0], Vec::new());
    add_text(&mut text, name);
    add_length(&mut content, text.len());
    content.append(&mut text);
    content
}

/// Returns the content of a section with the component's tools and this program.
fn producers_content(found: &Inspection) -> Vec<u8> {
    let own = Producer {
        field: "processed-by".to_owned(),
        name: OWN_NAME.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let others = found.standard.producers.iter().filter(|one| (&one.field, &one.name) != (&own.field, &own.name));
    let all: Vec<&Producer> = others.chain([&own]).collect();
    let mut fields: Vec<&str> = Vec::new();
    for producer in &all {
        if !fields.contains(&producer.field.as_str()) {
            fields.push(&producer.field);
        }
    }
    let mut content = Vec::new();
    add_length(&mut content, fields.len());
    for field in fields {
        let values: Vec<_> = all.iter().filter(|producer| producer.field == field).collect();
        add_text(&mut content, field);
        add_length(&mut content, values.len());
        for value in values {
            add_text(&mut content, &value.name);
            add_text(&mut content, &value.version);
        }
    }
    content
}

fn add_text(bytes: &mut Vec<u8>, text: &str) {
    add_length(bytes, text.len());
    bytes.extend_from_slice(text.as_bytes());
}

/// Appends a length in LEB128, the encoding of numbers in WebAssembly.
fn add_length(bytes: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
}
