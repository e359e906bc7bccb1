//! `glovebox plugin push`: publishes a component in a registry, in the format that `wkg` reads.

use super::registries::{self, parse_reference, parse_version};
use super::signature::{self, read_beside};
use super::{compatibility, inspect_bytes, provenance, read_bytes, shown};
use crate::arguments::PushArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::terminal::{self, visible};
use glovebox_host::inspect::{Inspection, Manifest};
use glovebox_plan::config::{Config, is_plugin_name};
use glovebox_registry::reference::{Reference, Tag};
use glovebox_registry::referrers::Attachment;
use glovebox_registry::{Annotations, ComponentInterface};
use glovebox_signing::plugin::{MEDIA_TYPE, PluginIdentity, SignatureFault, Signatures};
use glovebox_signing::provenance::MEDIA_TYPE as PROVENANCE_TYPE;

/// Pushes a component as the version of its manifest.
pub fn push(arguments: &PushArguments) -> CommandResult {
    refuse_swapped(arguments)?;
    let bytes = read_bytes(&arguments.file, Config::default().component_bytes(""))?;
    let file = shown(&arguments.file);
    let inspection = inspect_bytes(&file, &bytes)?;
    signature::refuse_revoked_here(&inspection)?;
    let reference = parse_reference(&arguments.reference)?;
    refuse_name(&file, &inspection)?;
    let tag = tag(&file, &inspection, &reference)?;
    let imports: Vec<String> = inspection.imports.iter().map(|import| import.name.clone()).collect();
    let component = ComponentInterface { exports: &inspection.exports, imports: &imports, target: None };
    let annotations = inspection.manifest.as_ref().map(annotations).unwrap_or_default();
    let signatures = read_beside(&arguments.file)?.pop();
    let name = inspection.manifest.as_ref().map_or("", |manifest| manifest.name.as_str());
    let provenance = provenance::to_publish(&arguments.file, &provenance::identity(name, &inspection, &bytes))?;
    if let Some(signatures) = &signatures {
        refuse_other_signatures(signatures, &bytes, &inspection).map_err(|fault| {
            Stop::new(
                Exit::Plugin,
                format!(
                    "the signatures beside `{file}` are not those of this component: {}",
                    visible::line(&fault.to_string())
                ),
            )
            .with_help("sign the component again: `glovebox plugin sign FILE --key KEY`")
        })?;
    }
    let client = registries::client()?;
    compatibility::require(&client, &reference.repository, &tag, &inspection)?;
    let pushed = client.push(&reference.repository, &tag, &bytes, component, annotations)?;
    for (artifact_type, bytes) in [(MEDIA_TYPE, &signatures), (PROVENANCE_TYPE, &provenance)] {
        let Some(bytes) = bytes else { continue };
        let attachment = Attachment { artifact_type, bytes, annotations: Annotations::default() };
        client.attach(&reference.repository, pushed.digest, attachment)?;
    }
    let published = Reference { digest: Some(pushed.digest), ..reference.repository.at(tag) };
    terminal::print(format!("{published}\n"));
    let done = if pushed.was_there { "was published already" } else { "published" };
    let signed = if signatures.is_some() { ", with its signatures" } else { "" };
    let built = if provenance.is_some() { ", with its provenance" } else { ", without provenance" };
    terminal::say(format_args!("{done}{signed}{built}; the component is {}\n", inspection.digest));
    Ok(Exit::Ok)
}

/// Refuses a reference in the place of the file and a file in the place of the reference.
fn refuse_swapped(arguments: &PushArguments) -> Result<(), Stop> {
    let (first, second) = (arguments.file.to_string_lossy(), &arguments.reference);
    let is_swapped = !arguments.file.exists() && Reference::is_meant(&first) && !Reference::is_meant(second);
    if !is_swapped {
        return Ok(());
    }
    let (first, second) = (visible::line(&first), visible::line(second));
    let stop = Stop::new(Exit::Usage, format!("`{first}` is a reference, and the file of the component comes first"));
    Err(stop.with_help(format!("glovebox plugin push '{second}' '{first}'")))
}

/// Refuses a plugin whose name no project could use.
fn refuse_name(file: &str, inspection: &Inspection) -> Result<(), Stop> {
    let name = inspection.manifest.as_ref().map(|manifest| manifest.name.as_str());
    let Some(name) = name.filter(|name| !is_plugin_name(name)) else { return Ok(()) };
    let message = format!("the manifest of `{file}` has the name `{}`, which no project can use", visible::line(name));
    let help = "two or more words of a-z, 0-9 and `-`, joined by `.`, are expected, such as `acme.review`";
    Err(Stop::new(Exit::Plugin, message).with_help(help))
}

/// Refuses signatures of other bytes. Operators who require signatures could not use the published version, and its author could not
/// replace it.
fn refuse_other_signatures(signatures: &[u8], component: &[u8], inspection: &Inspection) -> Result<(), SignatureFault> {
    let read = Signatures::read(signatures)?;
    let Some(manifest) = &inspection.manifest else { return Ok(()) };
    read.require_about(&PluginIdentity::new(&manifest.name, Some(manifest.version.clone()), component))
}

/// Returns the tag of the new version. A tag that is not the version in the manifest would be refused by everyone who adds it.
fn tag(file: &str, inspection: &Inspection, reference: &Reference) -> Result<Tag, Stop> {
    if reference.digest.is_some() {
        let stop = Stop::new(Exit::Usage, format!("`{reference}` has a digest, which a push cannot choose"));
        return Err(stop.with_help(format!("write `{}`", reference.repository)));
    }
    let written = inspection.manifest.as_ref().map(|manifest| parse_version(&manifest.version)).transpose()?;
    match (written.map(|version| Tag::for_version(&version)), &reference.tag) {
        (Some(written), Some(tag)) if written != *tag => {
            let message = format!("the manifest of `{file}` has the version {written}, and not {tag}");
            Err(Stop::new(Exit::Usage, message).with_help(format!("write `{}:{written}`", reference.repository)))
        }
        (Some(written), _) => Ok(written),
        (None, Some(tag)) if tag.version().is_some() => Ok(tag.clone()),
        (None, _) => {
            let message = format!("`{file}` has no manifest: its version is not known");
            let help = format!(
                "name it: `{}:1.0.0`, or write a manifest with `glovebox plugin embed-manifest`",
                reference.repository
            );
            Err(Stop::new(Exit::Usage, message).with_help(help))
        }
    }
}

/// Returns what the manifest says about the component, in the names of the OCI image specification.
fn annotations(manifest: &Manifest) -> Annotations {
    let Manifest { name, version, description, licenses, source, revision, authors, homepage, .. } = manifest;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let texts = [
        ("title", name.clone()),
        ("version", version.clone()),
        ("description", description.clone()),
        ("licenses", text(licenses)),
        ("source", text(source)),
        ("revision", text(revision)),
        ("authors", text(authors)),
        ("url", text(homepage)),
    ];
    let written = texts.into_iter().filter(|(_, text)| !text.is_empty());
    written
        .map(|(name, text)| (format!("org.opencontainers.image.{name}"), visible::line(&text).into_owned()))
        .collect()
}
