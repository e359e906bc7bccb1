//! The client of `oci-client`, with which `wkg` pulls and pushes: it reads what this crate publishes, and this crate what it publishes.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

#[path = "../../../tests/workbench/not_run.rs"]
mod not_run;
#[path = "../../../tests/registries/program.rs"]
mod program;

use glovebox_registry::ComponentInterface;
use glovebox_registry::client::Client;
use glovebox_registry::credential::CredentialPlaces;
use glovebox_registry::reference::Repository;
use oci_client::client::{ClientConfig, ClientProtocol, Config, ImageLayer};
use oci_client::manifest::{OCI_IMAGE_MEDIA_TYPE, OciImageManifest};
use oci_client::secrets::RegistryAuth;
use program::DebianRegistry;
use tokio::runtime::Builder;

const BYTES_MAX: u64 = 1 << 20;
const WASM: &str = "application/wasm";
const CONFIG: &str = "application/vnd.wasm.config.v0+json";

#[test]
fn both_clients_read_each_other() {
    let Some(registry) = DebianRegistry::start("") else {
        return not_run::not_run("artifacts of oci-client", "no docker-registry: run `cargo xtask registry`");
    };
    rustls::crypto::ring::default_provider().install_default().unwrap();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let protocol = ClientProtocol::HttpsExcept(vec![registry.address.clone()]);
    let theirs = oci_client::Client::new(ClientConfig { protocol, ..ClientConfig::default() });
    let ours = Client::new(CredentialPlaces::default()).unwrap();
    let repository: Repository = format!("{}/acme/todo", registry.address).parse().unwrap();

    let component = ComponentInterface { exports: &[], imports: &[], target: None };
    let annotations = [("org.opencontainers.image.version".to_owned(), "1.0.0".to_owned())].into();
    ours.push(&repository, &"1.0.0".parse().unwrap(), b"ours", component, annotations).unwrap();
    let reference: oci_client::Reference = format!("{repository}:1.0.0").parse().unwrap();
    let pulled = runtime.block_on(theirs.pull(&reference, &RegistryAuth::Anonymous, vec![WASM])).unwrap();
    assert_eq!((&*pulled.layers[0].data, pulled.layers.len()), (&b"ours"[..], 1));
    assert_eq!(pulled.config.media_type, CONFIG);
    assert_eq!(pulled.manifest.unwrap().annotations.unwrap()["org.opencontainers.image.version"], "1.0.0");

    let reference: oci_client::Reference = format!("{repository}:2.0.0").parse().unwrap();
    let title = [("org.opencontainers.image.title".to_owned(), "todo.wasm".to_owned())].into();
    let layers =
        [ImageLayer { data: b"theirs".to_vec().into(), media_type: WASM.to_owned(), annotations: Some(title) }];
    let config = Config { data: b"{}".to_vec().into(), media_type: CONFIG.to_owned(), annotations: None };
    let manifest = OciImageManifest::build(&layers, &config, None);
    let manifest = OciImageManifest { media_type: Some(OCI_IMAGE_MEDIA_TYPE.to_owned()), ..manifest };
    let push = theirs.push(&reference, &layers, config, &RegistryAuth::Anonymous, Some(manifest));
    runtime.block_on(push).unwrap();
    let pulled = ours.pull(&repository.at("2.0.0".parse().unwrap()), BYTES_MAX).unwrap();
    assert_eq!(pulled.bytes, b"theirs");
    assert_eq!(ours.versions(&repository).unwrap().len(), 2);
}
