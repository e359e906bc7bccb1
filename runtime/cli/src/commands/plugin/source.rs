//! Where the bytes of a plugin come from: a file, an address, or a registry.

use super::read_bytes;
use super::registries::{self, newest};
use crate::exit::{Exit, Stop};
use crate::terminal::visible;
use glovebox_host::inspect::Inspection;
use glovebox_plan::prepare::admission::{read_provenance, read_signatures};
use glovebox_record::Digest;
use glovebox_registry::reference::{Reference, Tag};
use std::path::{Path, PathBuf};

/// The end of the name of a component's file.
const WASM: &str = ".wasm";

/// A place from which a plugin is added or updated.
#[derive(Debug, Clone)]
pub enum PluginSource {
    /// A file of this machine.
    File(PathBuf),
    /// An address, with its scheme.
    Address(String),
    /// A plugin in a registry.
    Registry(Box<Reference>),
}

/// A component that was read, and where it is.
pub struct ComponentFound {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Where they are.
    pub place: FoundPlace,
    /// The files of signatures that come with the component, or why they cannot be read. In a registry, everyone who may push can
    /// attach one.
    pub signatures: Result<Vec<Vec<u8>>, String>,
    /// The files of provenance that come with the component, or why they cannot be read. Nothing depends on them.
    pub provenance: Result<Vec<Vec<u8>>, String>,
}

/// Where a component was found.
pub enum FoundPlace {
    /// In a file.
    File(PathBuf),
    /// At an address.
    Address(String),
    /// In a registry, with the digest of its manifest.
    Registry(Box<Reference>),
}

impl ComponentFound {
    /// Returns the name of the place in messages.
    pub fn shown(&self) -> String {
        match &self.place {
            FoundPlace::File(file) => visible::line(&file.to_string_lossy()).into_owned(),
            FoundPlace::Address(address) => visible::line(address).into_owned(),
            FoundPlace::Registry(reference) => reference.to_string(),
        }
    }

    /// Returns the reference of a component of a registry: its version and the digest of its manifest. `None` for any other
    /// component.
    ///
    /// # Errors
    ///
    /// Exit 7 if the tag is not the version in the component's manifest, 2 if there is no version at all.
    pub fn reference(&self, inspection: &Inspection) -> Result<Option<Reference>, Stop> {
        let FoundPlace::Registry(found) = &self.place else { return Ok(None) };
        let written = inspection.manifest.as_ref().map(|manifest| manifest.version.as_str());
        let tag = match (&found.tag, written.map(registries::parse_version).transpose()?) {
            (Some(tag), Some(written)) if *tag != Tag::for_version(&written) => {
                let message = format!("`{found}` is version {written} by its manifest, and not {tag}");
                let help =
                    "a tag that holds another version may be an attempt to bring back an old one: ask its author";
                return Err(Stop::new(Exit::Plugin, message).with_help(help));
            }
            (Some(tag), _) => tag.clone(),
            (None, Some(written)) => Tag::for_version(&written),
            (None, None) => {
                let stop = Stop::new(Exit::Usage, format!("`{found}` has no manifest with a version"));
                return Err(stop.with_help("name its version: `HOST/PATH:1.0.0@sha256:…`"));
            }
        };
        Ok(Some(Reference { tag: Some(tag), ..(**found).clone() }))
    }
}

impl PluginSource {
    /// Reads what the user wrote: a reference if it begins with a host or `oci://`, an address if it has another scheme, otherwise a
    /// file. No file of the machine changes the meaning.
    ///
    /// # Errors
    ///
    /// Exit 2 for a malformed reference.
    pub fn parse(text: &str) -> Result<Self, Stop> {
        if Reference::is_meant(text) {
            return Ok(Self::Registry(Box::new(registries::parse_reference(text)?)));
        }
        Ok(match text.contains("://") {
            true => Self::Address(text.to_owned()),
            false => Self::File(PathBuf::from(text)),
        })
    }

    /// Returns the bytes, if they have the expected digest. A reference without a version is that of the newest version. A registry is
    /// asked for signatures only with `wants_signatures`.
    ///
    /// # Errors
    ///
    /// Exit 2 for something that does not exist, 7 for bytes that may not be used, 9 for a registry that cannot be reached.
    pub fn read(&self, bytes_max: u64, digest: Option<Digest>, wants_signatures: bool) -> Result<ComponentFound, Stop> {
        let found = match self {
            Self::File(file) => {
                refuse_missing(file)?;
                ComponentFound {
                    bytes: read_bytes(file, bytes_max)?,
                    place: FoundPlace::File(file.clone()),
                    signatures: read_signatures(file),
                    provenance: read_provenance(file),
                }
            }
            Self::Address(address) => {
                if digest.is_none() {
                    let message = format!("`{}` has no digest to compare with", visible::line(address));
                    let help = match registries::without_scheme(address).filter(|_| !address.ends_with(WASM)) {
                        Some(meant) => format!("a plugin of a registry is named without a scheme: `{meant}`"),
                        None => "ask the author for the digest of the component, and repeat with `--digest blake3:…`"
                            .to_owned(),
                    };
                    return Err(Stop::new(Exit::Usage, message).with_help(help));
                }
                let bytes = registries::client()?.download(address, bytes_max)?;
                let place = FoundPlace::Address(address.clone());
                ComponentFound { bytes, place, signatures: Ok(Vec::new()), provenance: Ok(Vec::new()) }
            }
            Self::Registry(reference) => read_reference(reference, bytes_max, wants_signatures)?,
        };
        let hash = Digest::hash(&found.bytes);
        match digest.filter(|expected| *expected != hash) {
            Some(expected) => {
                let message = format!("`{}` has the digest {hash}, expected {expected}", found.shown());
                Err(Stop::new(Exit::Plugin, message)
                    .with_help("ask the author which digest is right; nothing was written"))
            }
            None => Ok(found),
        }
    }
}

/// Refuses a file that does not exist, with what the user may have meant.
fn refuse_missing(file: &Path) -> Result<(), Stop> {
    let Err(error) = std::fs::metadata(file) else { return Ok(()) };
    let written = visible::line(&file.to_string_lossy()).into_owned();
    let stop = Stop::io(format!("read `{written}`"), &error);
    let is_path = file.is_absolute() || written.starts_with('.') || written.ends_with(WASM);
    Err(match is_path || error.kind() != std::io::ErrorKind::NotFound {
        true => stop,
        false if written.contains('/') => stop.with_help(format!(
            "a plugin of a registry is named with its host, such as `ghcr.io/{written}`; a file by its path, such as `dist/a{WASM}`"
        )),
        false => stop.with_help(format!(
            "name a file such as `dist/{written}-0.1.0{WASM}`, or a plugin of a registry such as `ghcr.io/acme/review`; \
             `glovebox plugin search TEXT --registry HOST` finds some"
        )),
    })
}

fn read_reference(reference: &Reference, bytes_max: u64, wants_signatures: bool) -> Result<ComponentFound, Stop> {
    let client = registries::client()?;
    let named = match (&reference.tag, reference.digest) {
        (None, None) => {
            let version = newest(&client, &reference.repository)?;
            reference.repository.at(Tag::for_version(&version))
        }
        (Some(tag), _) if tag.version().is_none() => {
            let message = format!("`{reference}` names no version: the tag `{tag}` can be another plugin tomorrow");
            let help = format!("leave out the tag for the newest version: `{}`", reference.repository);
            return Err(Stop::new(Exit::Usage, message).with_help(help));
        }
        _ => reference.clone(),
    };
    let pulled = client.pull(&named, bytes_max)?;
    let signatures = match wants_signatures {
        true => registries::signatures(&client, &pulled.reference)?,
        false => Vec::new(),
    };
    Ok(ComponentFound {
        provenance: Ok(registries::provenance(&client, &pulled.reference)?),
        bytes: pulled.bytes,
        place: FoundPlace::Registry(Box::new(pulled.reference)),
        signatures: Ok(signatures),
    })
}
