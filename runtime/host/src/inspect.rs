//! Inspects a component's bytes. Nothing is compiled and nothing is run.
//!
//! The imports of a component are its permission manifest (decision imports-are-permissions): it can do nothing that it does not import. This
//! module knows how names are encoded in a binary and which interfaces this version provides; it decides nothing about grants.

mod complexity;
mod instance_count;
pub mod refused_bytes;

use crate::grants::Wants;
use crate::interfaces::{self, ImportState};
use glovebox_record::Digest;
use glovebox_workspace::refusal::escaped;
use instance_count::InstanceCount;
use refused_bytes::Feature;
use serde::{Deserialize, Serialize};
use std::hash::Hash;
use wasmparser::{ComponentTypeRef, FromReader, Parser, Payload, SectionLimited, WasmFeatures};

/// Name of the custom section a plugin's own description is kept in.
pub const MANIFEST_SECTION: &str = "glovebox:manifest";

/// Maximum length of a section that is read as a description, in bytes.
const MANIFEST_BYTES_MAX: usize = 64 << 10;

/// Maximum length of a version and longest description, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 10;

/// A plugin's own description, written by the SDK into the custom section [`MANIFEST_SECTION`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ManifestText")]
pub struct Manifest {
    /// Its handler type, such as `acme.review`: 1 to 128 letters, digits, `.`, `_`, `-`.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// One line for people, without characters that could deceive them.
    pub description: String,
    /// Permissions that it asks for; they are intersected with the operator's grants.
    pub wants: Wants,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestText {
    name: String,
    version: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    wants: Wants,
}

impl TryFrom<ManifestText> for Manifest {
    type Error = String;

    fn try_from(written: ManifestText) -> Result<Self, String> {
        let ManifestText { name, version, description, wants } = written;
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if !(1..=128).contains(&name.len()) || !name.chars().all(allowed) {
            return Err(format!("`name` is `{}`, expected 1 to 128 of letters, digits, `.`, `_`, `-`", escaped(&name)));
        }
        // `plugin inspect` prints them for components that are not trusted yet.
        for (field, text) in [("version", &version), ("description", &description)] {
            if escaped(text) != *text {
                return Err(format!("`{field}` has characters that could deceive a reader"));
            }
            if text.len() > TEXT_BYTES_MAX {
                return Err(format!("`{field}` has {} bytes, expected at most {TEXT_BYTES_MAX}", text.len()));
            }
        }
        Ok(Manifest { name, version, description, wants })
    }
}

/// One import of a component and what this host says to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Import {
    /// As written, such as `wasi:cli/stdout@0.2.6`.
    pub name: String,
    /// Its availability in this host.
    #[serde(flatten)]
    pub state: ImportState,
}

/// Everything the bytes say about a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// BLAKE3 of the bytes.
    pub digest: Digest,
    /// Length of the bytes.
    pub bytes: u64,
    /// `handler`, `agent`, `verifier`, `tool-provider`, `rules`, or `unknown`; by its imports and exports.
    pub world: &'static str,
    /// In the order of the binary.
    pub imports: Vec<Import>,
    /// Names of its exports.
    pub exports: Vec<String>,
    /// Instances it makes when it is instantiated: core ones, and nested components.
    pub core_instances: u64,
    /// Its own description, when it carries one.
    pub manifest: Option<Manifest>,
}

/// Why bytes cannot be read as a component.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// No bytes.
    #[error("the file is empty, expected a WebAssembly component")]
    Empty,
    /// Something else.
    #[error("not WebAssembly; build for `wasm32-wasip2`")]
    NotWasm,
    /// A part of a file.
    #[error("the file is cut off or damaged: its last section is longer than the file")]
    CutOff,
    /// A version or kind of WebAssembly that is unknown here.
    #[error("WebAssembly of an unknown version, expected a component")]
    OtherEncoding,
    /// It needs what this host does not run.
    #[error("the component uses what this host does not run: {}", features_text(.0))]
    Features(Vec<Feature>),
    /// Not valid.
    #[error("not a valid WebAssembly component: {0}")]
    Invalid(#[from] wasmparser::BinaryReaderError),
    /// A core module.
    #[error("a core module, expected a component")]
    CoreModule,
    /// The number of its instances cannot be counted.
    #[error("the component instantiates an imported component, expected only components that it contains")]
    HandedComponent,
    /// One function is too long for the compiler, which needs more than its length in time and memory.
    #[error("the component has a function of {bytes} bytes, expected at most {limit}")]
    FunctionTooLong {
        /// Its length.
        bytes: u64,
        /// The bound.
        limit: u64,
    },
    /// One function has too many locals, values, branches and calls for the compiler, which multiplies them.
    #[error(
        "the component's function {function} is more complex than {limit}, the bound on branches × (locals + values on the stack) + \
         calls × the widest signature; build it with optimisation, or divide the function"
    )]
    FunctionTooComplex {
        /// Its index in its core module.
        function: u32,
        /// The bound.
        limit: u64,
    },
    /// The custom section does not parse.
    #[error("the section `{MANIFEST_SECTION}` is not a plugin manifest: {0}")]
    Manifest(#[from] serde_json::Error),
    /// The custom section is too long to be one.
    #[error("the section `{MANIFEST_SECTION}` has {0} bytes, expected at most {MANIFEST_BYTES_MAX}")]
    ManifestTooLong(usize),
    /// More than one description.
    #[error("several sections `{MANIFEST_SECTION}`, expected at most one")]
    TwoManifests,
}

impl InspectError {
    /// Help for building a readable component, if the message does not contain it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Empty | Self::CutOff => Some("build or copy it again".to_owned()),
            Self::OtherEncoding => Some("build for `wasm32-wasip2` with released tools".to_owned()),
            Self::CoreModule => Some(
                "build for `wasm32-wasip2`, or make a component of it: \
                 `wasm-tools component new MODULE.wasm -o COMPONENT.wasm`"
                    .to_owned(),
            ),
            Self::Features(needed) => Some(needed.iter().map(|feature| feature.help()).collect::<Vec<_>>().join("\n")),
            _ => None,
        }
    }
}

fn features_text(needed: &[Feature]) -> String {
    needed.iter().map(|feature| feature.name()).collect::<Vec<_>>().join(", ")
}

/// Inspects the bytes of a component.
pub fn inspect(bytes: &[u8]) -> Result<Inspection, InspectError> {
    if Parser::is_core_wasm(bytes) {
        return Err(InspectError::CoreModule);
    }
    complexity::validate(bytes, features()).map_err(|refused| match refused {
        InspectError::Invalid(error) => refused_bytes::explain(bytes, error),
        other => other,
    })?;
    read_validated(bytes)
}

/// Returns the rules of [`inspect`]. Bytes that passed them under an equal value are not validated again.
pub(crate) fn rules() -> impl Hash {
    (env!("CARGO_PKG_VERSION"), features(), complexity::FUNCTION_BYTES_MAX, complexity::COMPLEXITY_MAX)
}

/// Reads what bytes that were validated before say about a component. They are not validated again, which takes ten times as long.
pub fn read_validated(bytes: &[u8]) -> Result<Inspection, InspectError> {
    read_as(Digest::hash(bytes), bytes)
}

/// Returns the same of bytes with this digest.
pub(crate) fn read_as(digest: Digest, bytes: &[u8]) -> Result<Inspection, InspectError> {
    let (mut found, mut instances) = (ComponentNames::default(), InstanceCount::default());
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload?;
        instances.add(&payload)?;
        match payload {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            _ => found.add(&payload, depth)?,
        }
    }
    Ok(Inspection {
        digest,
        bytes: bytes.len() as u64,
        world: world(&found.imports, &found.exports),
        imports: found.imports.into_iter().map(|name| Import { state: interfaces::state_of(&name), name }).collect(),
        exports: found.exports,
        core_instances: instances.total(),
        manifest: found.manifest,
    })
}

/// Adds a manifest to a component that has none, in the custom section where the SDK writes it. The returned bytes were inspected.
pub fn embed(component: &[u8], manifest: &str) -> Result<Vec<u8>, InspectError> {
    inspect(component)?;
    let mut section = Vec::new();
    add_length(&mut section, MANIFEST_SECTION.len());
    section.extend_from_slice(MANIFEST_SECTION.as_bytes());
    section.extend_from_slice(manifest.trim().as_bytes());
    let mut embedded = component.to_vec();
    // A custom section has the id 0.
    embedded.push(0);
    add_length(&mut embedded, section.len());
    embedded.append(&mut section);
    inspect(&embedded)?;
    Ok(embedded)
}

/// Adds a length in LEB128, as binaries have it.
fn add_length(bytes: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
}

/// Returns the WebAssembly features that a component may use. The engine disables the others too, except several memories in one module, which
/// it needs itself where one nested component calls another.
pub(crate) fn features() -> WasmFeatures {
    WasmFeatures::WASM2 | WasmFeatures::TAIL_CALL | WasmFeatures::EXTENDED_CONST | WasmFeatures::COMPONENT_MODEL
}

/// Returns the items of a section, from its beginning.
pub(crate) fn items<'a, T: FromReader<'a>>(
    section: &SectionLimited<'a, T>,
) -> impl Iterator<Item = wasmparser::Result<T>> + use<'a, T> {
    section.clone().into_iter()
}

#[derive(Default)]
struct ComponentNames {
    imports: Vec<String>,
    exports: Vec<String>,
    manifest: Option<Manifest>,
}

impl ComponentNames {
    fn add(&mut self, payload: &Payload<'_>, depth: u32) -> Result<(), InspectError> {
        match payload {
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in items(section) {
                    let import = import?;
                    // A type import names a shape and carries no function.
                    if !matches!(import.ty, ComponentTypeRef::Type(_)) {
                        self.imports.push(import.name.name.to_owned());
                    }
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in items(section) {
                    self.exports.push(export?.name.name.to_owned());
                }
            }
            Payload::CustomSection(section) if section.name() == MANIFEST_SECTION => {
                if section.data().len() > MANIFEST_BYTES_MAX {
                    return Err(InspectError::ManifestTooLong(section.data().len()));
                }
                let manifest = serde_json::from_slice(section.data())?;
                if self.manifest.replace(manifest).is_some() {
                    return Err(InspectError::TwoManifests);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn world(imports: &[String], exports: &[String]) -> &'static str {
    let names = |list: &[String], interface: &str| {
        let prefix = format!("glovebox:plugin/{interface}@");
        list.iter().any(|name| name.starts_with(&prefix))
    };
    if names(exports, "stage") {
        let agent = ["llm", "tools", "agents", "human"].iter().any(|interface| names(imports, interface));
        match (agent, names(imports, "exec"), names(imports, "files")) {
            (true, ..) | (_, true, true) => "agent",
            (_, true, false) => "verifier",
            _ => "handler",
        }
    } else if names(exports, "tool") {
        "tool-provider"
    } else if names(exports, "graph-rules") {
        "rules"
    } else {
        "unknown"
    }
}
