//! Inspects the bytes of a component without compiling or running anything.
//!
//! The imports of a component are its permission manifest (decision imports-are-permissions): it can do nothing that it does not
//! import. This module knows how names are encoded in a binary and which interfaces this version provides. It makes no decisions about
//! grants.

pub mod attribute_schema;
mod code_digest;
pub mod compatibility;
mod complexity;
mod embed;
mod instance_count;
mod manifest;
pub mod refused_bytes;
mod sections;
mod use_of_wants;

pub(crate) use code_digest::code_digest;
pub use embed::embed;
pub use manifest::{MANIFEST_SECTION, Manifest};
pub use sections::{CustomSections, Producer, StandardSections};
pub use use_of_wants::{UnusableWant, UnwantedImport};

use crate::interfaces::{self, ImportState};
use glovebox_names::visible;
use glovebox_record::Digest;
use instance_count::InstanceCount;
use manifest::MANIFEST_BYTES_MAX;
use refused_bytes::Feature;
use sections::SectionReader;
use serde::Serialize;
use std::hash::Hash;
use wasmparser::{
    BinaryReaderError, Chunk, ComponentTypeRef, FromReader, Parser, Payload, SectionLimited, WasmFeatures,
};

/// One import of a component, and whether this host provides it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Import {
    /// Name as written, such as `wasi:cli/stdout@0.2.6`.
    pub name: String,
    /// Availability of the import in this host.
    #[serde(flatten)]
    pub state: ImportState,
}

/// Everything that the bytes of a component declare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// BLAKE3 of the bytes.
    pub digest: Digest,
    /// Length of the bytes.
    pub bytes: u64,
    /// `handler`, `agent`, `verifier`, `tool-provider`, `rules`, `policy` or `unknown`, determined by imports and exports.
    pub world: &'static str,
    /// Imports in the order of the binary.
    pub imports: Vec<Import>,
    /// Names of the exports.
    pub exports: Vec<String>,
    /// Number of instances that instantiating the component creates: of core modules and of nested components.
    pub core_instances: u64,
    /// Manifest of the component, if it has one.
    pub manifest: Option<Manifest>,
    /// What the standard sections say about the component.
    pub standard: StandardSections,
    /// All other custom sections, by name.
    pub custom_sections: Vec<CustomSections>,
}

/// Why bytes cannot be read as a component.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// There are no bytes.
    #[error("the file is empty, expected a WebAssembly component")]
    Empty,
    /// The bytes are not WebAssembly.
    #[error("not WebAssembly; build for `wasm32-wasip2`")]
    NotWasm,
    /// The bytes are truncated.
    #[error("the file is cut off or damaged: its last section is longer than the file")]
    CutOff,
    /// The version or kind of WebAssembly is not supported.
    #[error("WebAssembly of an unknown version, expected a component")]
    OtherEncoding,
    /// The component needs features that this host does not support.
    #[error("the component uses features that this host does not support: {}", features_text(.0))]
    Features(Vec<Feature>),
    /// The bytes are not valid.
    #[error("not a valid WebAssembly component: {0}")]
    Invalid(#[from] BinaryReaderError),
    /// The bytes are a core module.
    #[error("a core module, expected a component")]
    CoreModule,
    /// The component instantiates a component that it gets at run time, so its instances cannot be counted.
    #[error("the component instantiates an imported component, expected only components that it contains")]
    HandedComponent,
    /// A function is too long. The compiler's time and memory grow faster than its length.
    #[error("the component has a function of {bytes} bytes, expected at most {limit}")]
    FunctionTooLong {
        /// Length of the function.
        bytes: u64,
        /// Maximum length.
        limit: u64,
    },
    /// A function has too many locals, values, branches and calls. The compiler's effort grows with their product.
    #[error(
        "the component's function {function} is more complex than {limit}, where complexity is branches × (locals + values on the \
         stack) + calls × the widest signature; build it with optimisation, or split the function"
    )]
    FunctionTooComplex {
        /// Index of the function in its core module.
        function: u32,
        /// Maximum complexity.
        limit: u64,
    },
    /// The manifest cannot be parsed.
    #[error("the section `{MANIFEST_SECTION}` is not a plugin manifest: {0}")]
    Manifest(#[from] serde_json::Error),
    /// The manifest is too long; its length in bytes.
    #[error("the section `{MANIFEST_SECTION}` has {0} bytes, expected at most {MANIFEST_BYTES_MAX}")]
    ManifestTooLong(usize),
    /// The component has more than one manifest.
    #[error("several sections `{MANIFEST_SECTION}`, expected at most one")]
    TwoManifests,
    /// The component has a standard section more than once.
    #[error("several sections `{name}`, expected at most one")]
    TwoSections {
        /// Name of the section.
        name: &'static str,
    },
    /// A standard section cannot be read.
    #[error("the section `{name}` cannot be read, expected texts of at most {limit} bytes in UTF-8")]
    SectionText {
        /// Name of the section.
        name: &'static str,
        /// Maximum length of a text.
        limit: usize,
    },
    /// The manifest and a standard section say different things.
    #[error(
        "the manifest has the {field} `{}`, but the standard section has `{}`: programs that read only one of them would see \
         another plugin",
        visible::line(manifest),
        visible::line(section)
    )]
    Disagreement {
        /// Name of the field.
        field: &'static str,
        /// Text in the manifest.
        manifest: String,
        /// Text in the standard section.
        section: String,
    },
    /// The name of a custom section is too long.
    #[error("the name of a custom section has {bytes} bytes, expected at most {limit}")]
    SectionName {
        /// Length of the name.
        bytes: usize,
        /// Maximum length.
        limit: usize,
    },
    /// The custom sections of the component have too many names.
    #[error("the custom sections have more than {limit} different names")]
    TooManySections {
        /// Maximum number.
        limit: usize,
    },
    /// The custom sections of the component itself are too long.
    #[error("the custom sections of the component have more than {limit} bytes")]
    SectionsTooLong {
        /// Maximum length.
        limit: usize,
    },
}

impl InspectError {
    /// Returns help for building a readable component, unless the message already contains it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Empty | Self::CutOff => Some("build the component or copy the file again".to_owned()),
            Self::OtherEncoding => Some("build for `wasm32-wasip2` with released tools".to_owned()),
            Self::CoreModule => Some(
                "build for `wasm32-wasip2`, or make a component of it: \
                 `wasm-tools component new MODULE.wasm -o COMPONENT.wasm`"
                    .to_owned(),
            ),
            Self::Features(needed) => Some(needed.iter().map(|feature| feature.help()).collect::<Vec<_>>().join("\n")),
            Self::SectionsTooLong { .. } | Self::TooManySections { .. } | Self::SectionName { .. } => {
                Some("remove the sections: `wasm-tools strip COMPONENT.wasm -o SMALLER.wasm`".to_owned())
            }
            _ => None,
        }
    }
}

fn features_text(needed: &[Feature]) -> String {
    needed.iter().map(|feature| feature.name()).collect::<Vec<_>>().join(", ")
}

/// Inspects the bytes of a component: validates them and reads what they declare.
pub fn inspect(bytes: &[u8]) -> Result<Inspection, InspectError> {
    if Parser::is_core_wasm(bytes) {
        return Err(InspectError::CoreModule);
    }
    complexity::validate(bytes, features()).map_err(|refused| match refused {
        InspectError::Invalid(error) => refused_bytes::explain(bytes, error),
        other => other,
    })?;
    read_validated(Digest::hash(bytes), bytes)
}

/// Returns a value that identifies the rules of [`inspect`]. Bytes that passed under an equal value are not validated again.
pub(crate) fn rules() -> impl Hash {
    (env!("CARGO_PKG_VERSION"), features(), complexity::FUNCTION_BYTES_MAX, complexity::COMPLEXITY_MAX)
}

/// Reads what the bytes of a component declare. The bytes must have been validated before: validation takes ten times as
/// long. `digest` must be the digest of the bytes.
pub fn read_validated(digest: Digest, bytes: &[u8]) -> Result<Inspection, InspectError> {
    let (mut found, mut instances) = (Declarations::default(), InstanceCount::default());
    let mut depth = 0_u32;
    for payload in without_code(bytes) {
        let payload = payload?;
        instances.add(&payload)?;
        match payload {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            _ => found.add(&payload, depth)?,
        }
    }
    let (standard, custom_sections) = found.sections.finish(found.manifest.as_ref())?;
    Ok(Inspection {
        digest,
        bytes: bytes.len() as u64,
        world: world(&found.imports, &found.exports),
        imports: found.imports.into_iter().map(|name| Import { state: interfaces::state_of(&name), name }).collect(),
        exports: found.exports,
        core_instances: instances.total(),
        manifest: found.manifest,
        standard,
        custom_sections,
    })
}

/// Parses the bytes of a component, and skips the bodies of functions, which are most of the bytes.
fn without_code(mut bytes: &[u8]) -> impl Iterator<Item = Result<Payload<'_>, BinaryReaderError>> {
    let mut parser = Some(Parser::new(0));
    let mut parents = Vec::new();
    std::iter::from_fn(move || {
        let current = parser.as_mut()?;
        let payload = match current.parse(bytes, true) {
            Ok(Chunk::Parsed { consumed, payload }) => {
                bytes = &bytes[consumed..];
                payload
            }
            Ok(Chunk::NeedMoreData(_)) => unreachable!("the parser has all bytes"),
            Err(error) => {
                parser = None;
                return Some(Err(error));
            }
        };
        match &payload {
            Payload::CodeSectionStart { size, .. } => {
                current.skip_section();
                bytes = bytes.get(*size as usize..).unwrap_or_default();
            }
            Payload::ModuleSection { parser: inner, .. } | Payload::ComponentSection { parser: inner, .. } => {
                parents.push(std::mem::replace(current, inner.clone()));
            }
            Payload::End(_) => parser = parents.pop(),
            _ => {}
        }
        Some(Ok(payload))
    })
}

/// Parses the content of a section [`MANIFEST_SECTION`].
fn parse_manifest(text: &[u8]) -> Result<Manifest, InspectError> {
    match text.len() > MANIFEST_BYTES_MAX {
        true => Err(InspectError::ManifestTooLong(text.len())),
        false => Ok(serde_json::from_slice(text)?),
    }
}

/// Returns the WebAssembly features that a component may use. The engine disables all others except multiple memories, which
/// wasmtime's own code needs for calls between nested components.
pub(crate) fn features() -> WasmFeatures {
    WasmFeatures::WASM2 | WasmFeatures::TAIL_CALL | WasmFeatures::EXTENDED_CONST | WasmFeatures::COMPONENT_MODEL
}

/// Returns the items of a section from the beginning.
pub(crate) fn items<'a, T: FromReader<'a>>(
    section: &SectionLimited<'a, T>,
) -> impl Iterator<Item = wasmparser::Result<T>> + use<'a, T> {
    section.clone().into_iter()
}

#[derive(Default)]
struct Declarations {
    imports: Vec<String>,
    exports: Vec<String>,
    manifest: Option<Manifest>,
    sections: SectionReader,
}

impl Declarations {
    fn add(&mut self, payload: &Payload<'_>, depth: u32) -> Result<(), InspectError> {
        match payload {
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in items(section) {
                    let import = import?;
                    // An import of a type only names a type and gives no access to a function.
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
            Payload::CustomSection(section) => {
                if section.name() == MANIFEST_SECTION
                    && self.manifest.replace(parse_manifest(section.data())?).is_some()
                {
                    return Err(InspectError::TwoManifests);
                }
                self.sections.add(section, depth == 1)?;
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
    } else if names(exports, "policy-rules") {
        "policy"
    } else {
        "unknown"
    }
}
