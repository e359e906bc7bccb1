//! The manifest of a plugin in a registry: the format of the WebAssembly OCI convention, which `wkg` writes and reads.
//!
//! A plugin is one layer `application/wasm` and a configuration `application/vnd.wasm.config.v0+json`. An artifact with more layers
//! is refused, because nobody would look at the others.

use crate::error::{Fault, RegistryError};
use crate::session::{MANIFEST, ManifestBytes};
use crate::sha256::Sha256Digest;
use oci_client::manifest::{OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageManifest};
use serde::Serialize;
use std::collections::BTreeMap;

/// Media type of the configuration.
const CONFIG_MEDIA_TYPE: &str = "application/vnd.wasm.config.v0+json";
/// Media type of the component.
const LAYER_MEDIA_TYPE: &str = "application/wasm";
/// Time in the configuration. It is always the same, so that the same component always makes the same artifact.
const CREATED: &str = "1970-01-01T00:00:00Z";
/// Maximum number of characters of a media type in a message.
const MEDIA_TYPE_CHARS_SHOWN: usize = 100;

/// The annotations of a manifest, such as `org.opencontainers.image.version`.
pub type Annotations = BTreeMap<String, String>;

/// The component that a manifest describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layer {
    pub(crate) digest: Sha256Digest,
    pub(crate) bytes: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WasmConfig<'a> {
    created: &'static str,
    author: Option<String>,
    architecture: &'static str,
    os: &'static str,
    layer_digests: [String; 1],
    component: ComponentInterface<'a>,
}

/// What a component imports and exports.
#[derive(Debug, Clone, Serialize)]
pub struct ComponentInterface<'a> {
    /// The names of its exports.
    pub exports: &'a [String],
    /// The names of its imports.
    pub imports: &'a [String],
    /// The world that it targets. Always null: `wkg` reads the world from the component.
    pub target: Option<String>,
}

/// Parses a manifest, and checks that it describes one component and nothing else.
///
/// # Errors
///
/// The manifest is malformed, or describes something else.
pub(crate) fn layer(host: &str, found: &ManifestBytes) -> Result<Layer, RegistryError> {
    let other = |text: String| RegistryError::answer(host, Fault::NotAPlugin(text));
    if found.media_type != OCI_IMAGE_MEDIA_TYPE {
        return Err(other(format!("it is `{}`, and not `{OCI_IMAGE_MEDIA_TYPE}`", shown(&found.media_type))));
    }
    let manifest = parse(host, &found.bytes)?;
    let [layer] = manifest.layers.as_slice() else {
        return Err(other(format!("it has {} layers, and a plugin has exactly one", manifest.layers.len())));
    };
    for (part, media_type, expected) in [
        ("configuration", &manifest.config.media_type, CONFIG_MEDIA_TYPE),
        ("layer", &layer.media_type, LAYER_MEDIA_TYPE),
    ] {
        if media_type != expected {
            return Err(other(format!("its {part} is `{}`, and not `{expected}`", shown(media_type))));
        }
    }
    let digest = layer.digest.parse().map_err(|error| RegistryError::malformed(host, MANIFEST, error))?;
    let bytes = layer.size.try_into().map_err(|_| RegistryError::malformed(host, MANIFEST, "a size is negative"))?;
    Ok(Layer { digest, bytes })
}

/// Parses a manifest. Keys that occur twice are refused, because two programs could read different values.
pub(crate) fn parse(host: &str, bytes: &[u8]) -> Result<OciImageManifest, RegistryError> {
    let manifest: OciImageManifest = serde_json::from_slice(bytes)
        .map_err(|error| RegistryError::malformed(host, MANIFEST, format_args!("line {}", error.line())))?;
    match manifest.schema_version {
        2 => Ok(manifest),
        _ => Err(RegistryError::malformed(host, MANIFEST, "its `schemaVersion` is not 2")),
    }
}

/// Returns text of a registry for a message: only printable ASCII, and not too long.
fn shown(text: &str) -> String {
    text.chars().filter(char::is_ascii_graphic).take(MEDIA_TYPE_CHARS_SHOWN).collect()
}

/// Returns the configuration of a component as bytes.
pub(crate) fn config(layer: Sha256Digest, component: ComponentInterface<'_>) -> Vec<u8> {
    let config = WasmConfig {
        created: CREATED,
        author: None,
        architecture: "wasm",
        os: "wasip2",
        layer_digests: [layer.to_string()],
        component,
    };
    json(&config)
}

/// Returns the manifest of a component as bytes.
pub(crate) fn manifest(component: &[u8], config: &[u8], annotations: Annotations) -> Vec<u8> {
    json(&OciImageManifest {
        media_type: Some(OCI_IMAGE_MEDIA_TYPE.to_owned()),
        config: descriptor(CONFIG_MEDIA_TYPE, config),
        layers: vec![descriptor(LAYER_MEDIA_TYPE, component)],
        annotations: Some(annotations).filter(|annotations| !annotations.is_empty()),
        ..OciImageManifest::default()
    })
}

/// Returns the descriptor of some bytes.
pub(crate) fn descriptor(media_type: &str, bytes: &[u8]) -> OciDescriptor {
    OciDescriptor {
        media_type: media_type.to_owned(),
        digest: Sha256Digest::hash(bytes).to_string(),
        size: bytes.len().try_into().unwrap_or(i64::MAX),
        ..OciDescriptor::default()
    }
}

pub(crate) fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("structures of strings and numbers are always JSON")
}

/// Returns the error for a component that is larger than the operator allows.
pub(crate) fn refuse_large(host: &str, layer: Layer, bytes_max: u64) -> Result<(), RegistryError> {
    match layer.bytes > bytes_max {
        true => Err(RegistryError::answer(host, Fault::TooLarge { bytes: layer.bytes, bytes_max })),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn read(bytes: &[u8], media_type: &str) -> Result<Layer, String> {
        let digest = Sha256Digest::hash(bytes);
        let found = ManifestBytes { bytes: bytes.to_vec(), digest, media_type: media_type.to_owned() };
        layer("a.example", &found).map_err(|error| error.to_string())
    }

    fn written() -> Vec<u8> {
        let annotations = [("org.opencontainers.image.version".to_owned(), "1.2.0".to_owned())].into();
        manifest(b"component", b"{}", annotations)
    }

    #[test]
    fn a_written_manifest_is_read_again() {
        let expected = Layer { digest: Sha256Digest::hash(b"component"), bytes: 9 };
        assert_eq!(read(&written(), OCI_IMAGE_MEDIA_TYPE), Ok(expected));
        let config: Value = serde_json::from_slice(&config(
            expected.digest,
            ComponentInterface { exports: &["a:b/c".to_owned()], imports: &[], target: None },
        ))
        .unwrap();
        assert_eq!(config["layerDigests"][0], expected.digest.to_string());
        assert_eq!((&config["os"], &config["component"]["exports"][0]), (&"wasip2".into(), &"a:b/c".into()));
    }

    #[test]
    fn what_is_no_plugin_is_refused() {
        let text = String::from_utf8(written()).unwrap();
        let check = |text: String, media_type: &str, expected: &str| {
            let refused = read(text.as_bytes(), media_type).expect_err("it is refused");
            assert!(refused.contains(expected), "{refused}");
        };
        let image = OCI_IMAGE_MEDIA_TYPE;
        check(text.clone(), "application/vnd.oci.image.index.v1+json", "image.index");
        check(text.clone(), "text/\u{202e}html", "`text/html`");
        check(text.replace("application/wasm", "application/gzip"), image, "its layer is `application/gzip`");
        check(text.replace("vnd.wasm.config", "vnd.oci.image.config"), image, "its configuration is");
        let mut two: OciImageManifest = serde_json::from_str(&text).unwrap();
        two.layers.push(two.layers[0].clone());
        check(serde_json::to_string(&two).unwrap(), image, "it has 2 layers");
        check(text.replace("\"layers\":[", "\"layers\":[],\"x\":["), image, "it has 0 layers");
        check(text.replace("\"size\":9", "\"size\":-9"), image, "negative");
        check(text.replace("\"schemaVersion\":2", "\"schemaVersion\":1"), image, "schemaVersion");
        check(text.replacen("sha256:", "sha512:", 4), image, "sha256:");
        check(text.replace("\"schemaVersion\":2", "\"schemaVersion\":2,\"schemaVersion\":2"), image, "cannot be read");
        check("[]".to_owned(), image, "cannot be read");
    }
}
