//! The signatures of components: `glovebox plugin keygen`, `sign` and `verify`, and the check of every other command that reads
//! a plugin.
//!
//! A component is not signed, its signatures are not valid, or a key signed it. Text, JSON and exit code keep the three apart.

use super::provenance;
use super::source::ComponentFound;
use super::vouched::Vouched;
use super::{inspect_bytes, read_bytes};
use crate::arguments::{KeygenArguments, SignArguments, VerifyPluginArguments};
use crate::exit::{CommandResult, Exit, Stop};
use crate::key_files;
use crate::prepare;
use crate::replaced_file;
use crate::terminal::{self, visible};
use glovebox_host::inspect::Inspection;
use glovebox_plan::components::admission::Admission;
use glovebox_plan::components::{PluginFile, PluginProblem};
use glovebox_plan::config::{Config, is_plugin_name};
use glovebox_plan::prepare::admission::{RevocationWatch, read_signatures, signatures_file};
use glovebox_plan::prepare::project::{self, Project};
use glovebox_record::Digest;
use glovebox_signing::key::SigningKey;
use glovebox_signing::plugin::{FILE_BYTES_MAX, PluginIdentity, Signatures};
use glovebox_signing::trust::{NamePattern, Signer, Trust, TrustedKey};
use glovebox_workspace::regular_file::{self, Links};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

/// Creates a key for signatures.
pub fn keygen(arguments: &KeygenArguments) -> CommandResult {
    let (public_file, key) = key_files::create(&arguments.file)?;
    let (private, public) = (shown(&arguments.file), shown(&public_file));
    terminal::print(format_args!("{key}\n"));
    terminal::say(format_args!("wrote the private key `{private}` and the public key `{public}` ({})\n", key.id()));
    Ok(Exit::Ok)
}

/// Signs a component, and writes the file of its signatures.
pub fn sign(arguments: &SignArguments) -> CommandResult {
    let component = read_identity(&arguments.component, arguments.name.as_deref())?;
    let keys: Vec<SigningKey> =
        arguments.keys.iter().map(|file| key_files::read_private(file, Path::new("."))).collect::<Result<_, _>>()?;
    let text = Signatures::sign(&component, &keys.iter().collect::<Vec<_>>());
    // The same checks as those of every reader, so that nobody gets a file that cannot be read.
    let public: Vec<_> = keys.iter().map(SigningKey::public).collect();
    Signatures::read(text.as_bytes())
        .and_then(|read| read.verify(&component, &public))
        .map_err(|fault| Stop::new(Exit::Usage, format!("these keys cannot sign together: {fault}")))?;
    // Found before the signatures are written, so that a damaged file of provenance leaves nothing half.
    let provenance = match arguments.output {
        None => provenance::to_publish(&arguments.component, &component)?,
        Some(_) => None,
    };
    let file = arguments.output.clone().unwrap_or_else(|| signatures_file(&arguments.component));
    replaced_file::put(&file, &text)?;
    let ids: Vec<String> = public.iter().map(|key| key.id().to_string()).collect();
    let name = named(&component);
    terminal::say(format_args!("signed {name} in `{}` with {}\n", shown(&file), ids.join(", ")));
    provenance.map_or(Ok(()), |bytes| provenance::sign(&arguments.component, &bytes, &keys))?;
    Ok(Exit::Ok)
}

/// What is known about the signatures of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignatureState {
    /// A key signed the component.
    Verified,
    /// The component has no signatures.
    NotSigned,
    /// The component has signatures that do not count.
    Failed,
    /// The component has signatures, and there is no key to check them with.
    NotChecked,
}

/// The document that `plugin verify --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "plugin-verify.json")]
pub struct VerifyFile {
    /// Version of this document.
    schema_version: u32,
    /// Name of the plugin.
    name: String,
    /// Version of the plugin; null for a component without a manifest.
    version: Option<String>,
    /// Digest of the component.
    digest: Digest,
    /// The signatures of the component.
    #[serde(flatten)]
    signature: SignatureReport,
}

/// The signatures of a component.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SignatureReport {
    /// `verified`, `not_signed`, `failed`, or `not_checked` (only in `plugin inspect`).
    pub state: SignatureState,
    /// The key that signed the component; null unless the state is `verified`.
    pub signer: Option<Signer>,
    /// Why the signatures do not count; null unless the state is `failed`.
    pub reason: Option<String>,
    /// Ids of the keys that the signatures name. Anyone can write any id.
    pub named_keys: Vec<String>,
}

impl SignatureReport {
    /// Creates a report without a signer and without a reason.
    pub fn new(state: SignatureState, signatures: Option<&[u8]>) -> Self {
        let read = signatures.and_then(|bytes| Signatures::read(bytes).ok());
        let named_keys =
            read.iter().flat_map(Signatures::named_keys).map(|key| visible::line(key).into_owned()).collect();
        Self { state, signer: None, reason: None, named_keys }
    }

    /// Checks a file of signatures. Also returns what the user can do about one that does not count.
    pub fn check(trust: &Trust, component: &PluginIdentity, signatures: Option<&[u8]>) -> (Self, Option<&'static str>) {
        let of = |state| Self::new(state, signatures);
        match (trust.check(component, signatures), signatures) {
            (Ok(Some(signer)), _) => (Self { signer: Some(signer), ..of(SignatureState::Verified) }, None),
            (Ok(None), _) | (Err(_), None) => (of(SignatureState::NotSigned), None),
            (Err(fault), Some(_)) => {
                let reason = Some(visible::line(&fault.to_string()).into_owned());
                (Self { reason, ..of(SignatureState::Failed) }, Some(fault.help()))
            }
        }
    }
}

/// Checks the signatures of a component with a key, or with the keys of the project.
pub fn verify(arguments: &VerifyPluginArguments) -> CommandResult {
    let trust = match &arguments.key {
        Some(file) => Arc::new(only(file)?),
        None => prepare::read_project(&arguments.workdir, None)?.trust.ok_or_else(|| {
            Stop::new(Exit::Usage, "there is no key to check signatures with: glovebox.toml has no `[trust]`")
                .with_help("name the author's public key: `--key KEY.pub`")
        })?,
    };
    let component = read_identity(&arguments.component, arguments.name.as_deref())?;
    let signatures = match &arguments.signature {
        None => read_beside(&arguments.component)?.pop(),
        Some(file) => {
            let read = regular_file::read(file, Links::Follow, FILE_BYTES_MAX);
            Some(read.map_err(|error| Stop::io(format!("read the signatures `{}`", shown(file)), &error))?)
        }
    };
    let (signature, help) = SignatureReport::check(&trust, &component, signatures.as_deref());
    let exit = match signature.state {
        SignatureState::Verified => Exit::Ok,
        SignatureState::NotSigned => Exit::Unverified,
        SignatureState::Failed | SignatureState::NotChecked => Exit::Plugin,
    };
    if arguments.json {
        let PluginIdentity { name, version, digest, .. } = component;
        terminal::print_json(&VerifyFile { schema_version: 1, name, version, digest, signature })?;
        return Ok(exit);
    }
    let name = named(&component);
    match (&signature.signer, &signature.reason) {
        (Some(signer), _) => terminal::print(format_args!("verified: {name} is signed by {signer}\n")),
        (None, Some(reason)) => {
            let stop = Stop::new(exit, format!("the signature failed: {reason}"));
            return Err(Stop { help: help.map(str::to_owned), ..stop });
        }
        (None, None) => {
            let file = signatures_file(&arguments.component);
            let message = format!("not signed: {name} has no file of signatures (`{}`)", shown(&file));
            return Err(Stop::new(exit, message).with_help("ask the author for it, or name it: `--signature FILE`"));
        }
    }
    Ok(exit)
}

/// Returns the trust in one key for all names.
fn only(file: &Path) -> Result<Trust, Stop> {
    let name = file.file_name().map(|name| visible::line(&name.to_string_lossy()).into_owned()).unwrap_or_default();
    let key = TrustedKey { name, key: key_files::read_public(file)?, plugins: vec![NamePattern::All], not_after: None };
    Ok(Trust { keys: vec![key], ..Trust::default() })
}

/// Reads a component and returns what its signature is about. A component without a manifest needs a name.
fn read_identity(file: &Path, given: Option<&str>) -> Result<PluginIdentity, Stop> {
    let bytes = read_bytes(file, Config::default().component_bytes(""))?;
    let inspection = inspect_bytes(&shown(file), &bytes)?;
    let written = inspection.manifest.as_ref().map(|manifest| manifest.name.as_str());
    let name = match (written, given) {
        (Some(written), Some(given)) if written != given => {
            let message = format!(
                "the manifest of `{}` names the plugin `{}`, and not `{}`",
                shown(file),
                visible::line(written),
                visible::line(given)
            );
            return Err(Stop::new(Exit::Usage, message).with_help("leave out `--name`"));
        }
        (Some(name), _) | (None, Some(name)) => name,
        (None, None) => {
            let message = format!("`{}` has no manifest, so it has no name to sign", shown(file));
            return Err(Stop::new(Exit::Usage, message)
                .with_help("name it as the table in glovebox.toml: `--name acme.review`"));
        }
    };
    if !is_plugin_name(name) {
        let message = format!("`{}` is not a name for a plugin", visible::line(name));
        let help = "two or more words of a-z, 0-9 and `-`, joined by `.`, are expected, such as `acme.review`";
        return Err(Stop::new(Exit::Plugin, message).with_help(help));
    }
    let version = inspection.manifest.as_ref().map(|manifest| manifest.version.to_string());
    Ok(PluginIdentity::new(name, version, &bytes))
}

/// Finds who signed a component that was just read. One file of signatures that counts is enough.
///
/// # Errors
///
/// Exit 7 for a component that was revoked, or that is not signed as the project requires.
pub fn require(
    project: &Project,
    name: &str,
    found: &ComponentFound,
    inspection: &Inspection,
) -> Result<Vouched, Stop> {
    let admission = project.admission();
    admission.refuse_revoked(name, &inspection.digest).map_err(refused)?;
    let provenance = provenance::choose(project, name, found, inspection);
    let mut signatures = found.signatures.clone();
    if project.trust.is_none() {
        let signatures = signatures.ok().and_then(|mut all| (!all.is_empty()).then(|| all.swap_remove(0)));
        return Ok(Vouched { signer: None, signatures, provenance });
    }
    let bytes = Ok(found.bytes.as_slice().into());
    let file = PluginFile { path: found.shown(), bytes, signatures: signatures.clone() };
    let locked = project.lock.plugins.get(name);
    let accepted = admission.signer(name, inspection, &file, locked).map_err(refused)?;
    let counts = accepted.as_ref().map(|accepted| accepted.at);
    let signatures = counts.and_then(|at| Some(signatures.as_mut().ok()?.swap_remove(at)));
    Ok(Vouched { signer: accepted.map(|accepted| accepted.signer), signatures, provenance })
}

/// Refuses a component that was revoked, also outside of any project and in one whose configuration has errors.
pub fn refuse_revoked_here(inspection: &Inspection) -> Result<(), Stop> {
    let name = inspection.manifest.as_ref().map_or("", |manifest| manifest.name.as_str());
    admission_here().refuse_revoked(name, &inspection.digest).map_err(refused)
}

/// Returns the trusted keys and the revocations of the project in the current folder, or the revocations of the user alone.
pub fn admission_here() -> Admission {
    let here = Path::new(".");
    match project::read_project(here, None) {
        Ok(project) => project.admission(),
        Err(_) => Admission { trust: None, revocations: RevocationWatch::new(None, None, here).current() },
    }
}

fn refused(problem: PluginProblem) -> Stop {
    Stop { help: problem.help, ..Stop::new(Exit::Plugin, problem.message) }
}

/// Reads the file of signatures beside a component.
///
/// # Errors
///
/// Exit 7 if there is one that cannot be read.
pub fn read_beside(component: &Path) -> Result<Vec<Vec<u8>>, Stop> {
    read_signatures(component).map_err(|reason| {
        let file = signatures_file(component);
        Stop::new(Exit::Plugin, format!("the signatures `{}` cannot be read: {reason}", shown(&file)))
    })
}

fn named(component: &PluginIdentity) -> String {
    let version =
        component.version.as_deref().map(|version| format!(" {}", visible::line(version))).unwrap_or_default();
    format!("`{}`{version}", component.name)
}

fn shown(file: &Path) -> String {
    visible::line(&file.to_string_lossy()).into_owned()
}
