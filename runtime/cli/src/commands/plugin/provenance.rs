//! Provenance in the commands of plugins: which file of provenance is kept, and what is said about it.
//!
//! Nothing depends on provenance: a component without it, or with one that cannot be read, runs as any other. So each command says what
//! it found, and whether a key vouches for it.

use super::shown;
use super::source::ComponentFound;
use crate::exit::{Exit, Stop};
use crate::replaced_file;
use crate::terminal::rows::Rows;
use crate::terminal::{self, visible};
use glovebox_host::inspect::Inspection;
use glovebox_plan::prepare::admission::{provenance_file, read_provenance};
use glovebox_plan::prepare::project::Project;
use glovebox_signing::key::SigningKey;
use glovebox_signing::plugin::{PluginIdentity, SignatureFault};
use glovebox_signing::provenance::{LOCAL_BUILDER, Provenance, ProvenanceFile, SourceRevision};
use glovebox_signing::trust::{Signer, Trust};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// What is known about the provenance of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProvenanceState {
    /// The component has no provenance.
    None,
    /// There is one without a signature: anyone could have written it.
    NotSigned,
    /// A trusted key signed it.
    Verified,
    /// There is one that is damaged, is about another component, or has a signature that does not count.
    Failed,
    /// There is one with signatures, and no key to check them with.
    NotChecked,
}

/// The provenance of a component: what its builder says.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProvenanceReport {
    /// `none`, `not_signed`, `verified`, `failed` or `not_checked`.
    pub state: ProvenanceState,
    /// The key that signed the provenance; null unless the state is `verified`.
    pub signer: Option<Signer>,
    /// Why the provenance does not count; null unless the state is `failed`.
    pub reason: Option<String>,
    /// Ids of the keys that the signatures name. Anyone can write any id.
    named_keys: Vec<String>,
    /// The facts; null if there is no provenance about this component.
    build: Option<BuildFacts>,
}

/// How a component was built.
#[derive(Debug, Serialize, JsonSchema)]
struct BuildFacts {
    /// The build command: a program and its arguments.
    command: Vec<String>,
    /// Who built it: a URI.
    builder: String,
    /// The versions of the tools, by name.
    tools: BTreeMap<String, String>,
    /// The source; null if the builder did not know it.
    source: Option<SourceFacts>,
}

/// The source from which a component was built.
#[derive(Debug, Serialize, JsonSchema)]
struct SourceFacts {
    /// The commit of git.
    commit: String,
    /// Where the repository is; null if the builder did not know it.
    repository: Option<String>,
    /// The folder of the project in the repository; empty for the repository itself.
    folder: String,
    /// True if all files were as in the commit.
    clean: bool,
}

impl BuildFacts {
    fn new(provenance: Provenance) -> Self {
        let Provenance { command, builder, tools, source, .. } = provenance;
        let source = source.map(|source| {
            let SourceRevision { commit, repository, folder, is_clean: clean } = source;
            SourceFacts { commit, repository, folder, clean }
        });
        Self { command, builder, tools, source }
    }
}

impl ProvenanceReport {
    /// Looks at the provenance of a component, with the keys of the project.
    pub fn new(files: &[Vec<u8>], plugin: &PluginIdentity, trust: Option<&Trust>) -> Self {
        let reports = files.iter().map(|bytes| Self::read(bytes, plugin, trust));
        // One that a key vouches for comes first, and one that does not count last.
        let rank = |report: &Self| match report.state {
            ProvenanceState::Verified => 0,
            ProvenanceState::NotChecked => 1,
            ProvenanceState::NotSigned => 2,
            ProvenanceState::None | ProvenanceState::Failed => 3,
        };
        reports.min_by_key(rank).unwrap_or(Self::empty(ProvenanceState::None))
    }

    fn empty(state: ProvenanceState) -> Self {
        Self { state, signer: None, reason: None, named_keys: Vec::new(), build: None }
    }

    fn read(bytes: &[u8], plugin: &PluginIdentity, trust: Option<&Trust>) -> Self {
        let failed = |reason: &dyn ToString| Self {
            reason: Some(visible::line(&reason.to_string()).into_owned()),
            ..Self::empty(ProvenanceState::Failed)
        };
        let (file, provenance) = match read_about(bytes, plugin) {
            Ok(read) => read,
            Err(fault) => return failed(&fault),
        };
        let named_keys = file.named_keys().map(|key| visible::line(key).into_owned()).collect();
        let build = Some(BuildFacts::new(provenance));
        let found = match (file.is_signed(), trust) {
            (false, _) => Self::empty(ProvenanceState::NotSigned),
            (true, None) => Self::empty(ProvenanceState::NotChecked),
            (true, Some(trust)) => match trust.check_provenance(plugin, &file) {
                Ok(signer) => Self { signer: Some(signer), ..Self::empty(ProvenanceState::Verified) },
                Err(fault) => failed(&fault),
            },
        };
        Self { named_keys, build, ..found }
    }

    /// Adds the rows of `plugin inspect`.
    pub fn add_to(&self, rows: &mut Rows) {
        if self.state == ProvenanceState::None {
            rows.row("built", "no provenance: nothing says from which source it was built");
            return;
        }
        if let Some(build) = &self.build {
            build.add_to(rows);
        }
        rows.row("vouched", self.vouched());
    }

    /// Returns who vouches for the provenance.
    pub fn vouched(&self) -> String {
        let reason = self.reason.as_deref().unwrap_or_default();
        match (self.state, &self.signer) {
            (_, Some(signer)) => format!("the provenance is signed by {signer}"),
            (ProvenanceState::NotChecked, _) => {
                let keys = self.named_keys.join(", ");
                format!("the provenance is signed, but not checked, since no key is trusted here; it names {keys}")
            }
            (ProvenanceState::Failed, _) => format!("the provenance does not count: {reason}"),
            _ => "the provenance is not signed: anyone could have written it".to_owned(),
        }
    }
}

impl BuildFacts {
    fn add_to(&self, rows: &mut Rows) {
        rows.row("built", source_sentence(self.source.as_ref()));
        rows.row("command", command_line(&self.command));
        let builder = if self.builder == LOCAL_BUILDER { "the machine of a person" } else { &self.builder };
        rows.row("builder", builder);
        let tools: Vec<&str> = self.tools.values().map(String::as_str).collect();
        if !tools.is_empty() {
            rows.row("tools", tools.join(", "));
        }
    }
}

fn source_sentence(source: Option<&SourceFacts>) -> String {
    let Some(SourceFacts { commit, repository, folder, clean }) = source else {
        return "from a source that is not known: the project was in no repository".to_owned();
    };
    let folder = if folder.is_empty() { String::new() } else { format!(", folder `{folder}`") };
    let place = repository.as_ref().map(|repository| format!(" of {repository}")).unwrap_or_default();
    let state = if *clean { "" } else { ", with changes that this commit does not have" };
    visible::line(&format!("from commit {commit}{place}{folder}{state}")).into_owned()
}

/// Returns a command as a person would type it.
pub fn command_line(words: &[String]) -> String {
    let is_plain =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c));
    let quoted = |word: &String| match is_plain(word) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Reads a file of provenance that is about this component.
fn read_about(bytes: &[u8], plugin: &PluginIdentity) -> Result<(ProvenanceFile, Provenance), SignatureFault> {
    let file = ProvenanceFile::read(bytes)?;
    file.require_about(plugin)?;
    let provenance = file.provenance()?;
    Ok((file, provenance))
}

/// Returns the provenance of a component: that which a trusted key signed, else the first one about it.
///
/// # Errors
///
/// There is none about this component. The reason is that of the last one.
pub fn find(files: &[Vec<u8>], plugin: &PluginIdentity, trust: Option<&Trust>) -> Result<Provenance, String> {
    let file = best(files, plugin, trust)
        .map_err(|fault| fault.map_or("it has no provenance".to_owned(), |fault| fault.to_string()))?;
    read_about(file, plugin).map(|(_, provenance)| provenance).map_err(|fault| fault.to_string())
}

/// Returns the file of provenance that a trusted key signed, else one with signatures, else any about the component.
fn best<'f>(
    files: &'f [Vec<u8>],
    plugin: &PluginIdentity,
    trust: Option<&Trust>,
) -> Result<&'f Vec<u8>, Option<SignatureFault>> {
    let (mut about, mut fault) = (Vec::new(), None);
    for bytes in files {
        match read_about(bytes, plugin) {
            Ok((file, _)) => {
                let is_verified = trust.is_some_and(|trust| trust.check_provenance(plugin, &file).is_ok());
                about.push((!is_verified, !file.is_signed(), bytes));
            }
            Err(found) => fault = Some(found),
        }
    }
    let first = about.into_iter().min_by_key(|(is_not_verified, is_not_signed, _)| (*is_not_verified, *is_not_signed));
    first.map(|(.., bytes)| bytes).ok_or(fault)
}

/// Returns the file of provenance that is kept with a component that is installed. One that is not about it is named and left out.
pub fn choose(project: &Project, name: &str, found: &ComponentFound, inspection: &Inspection) -> Option<Vec<u8>> {
    let plugin = identity(name, inspection, &found.bytes);
    let left_out = |reason: &str| {
        let place = found.shown();
        let reason = visible::line(reason);
        terminal::say(format_args!("note: the provenance of `{place}` is left out: {reason}\n"));
    };
    let files = found.provenance.as_ref().map_err(|reason| left_out(reason)).ok()?;
    match best(files, &plugin, project.trust.as_deref()) {
        Ok(file) => Some(file.clone()),
        Err(fault) => {
            fault.iter().for_each(|fault| left_out(&fault.to_string()));
            None
        }
    }
}

/// Returns what signatures and provenance of a component are about.
pub fn identity(name: &str, inspection: &Inspection, bytes: &[u8]) -> PluginIdentity {
    let version = inspection.manifest.as_ref().map(|manifest| manifest.version.to_string());
    PluginIdentity::new(name, version, bytes)
}

/// Reads the provenance beside a component that is published. `None` if there is none.
///
/// # Errors
///
/// Exit 7 if it is damaged, or is that of another component.
pub fn to_publish(component: &Path, plugin: &PluginIdentity) -> Result<Option<Vec<u8>>, Stop> {
    let file = provenance_file(component);
    let damaged = |reason: String| {
        let message =
            format!("the provenance `{}` is not that of this component: {}", shown(&file), visible::line(&reason));
        Stop::new(Exit::Plugin, message).with_help(
            "build the component again with `glovebox plugin build`, or remove the file to publish without it",
        )
    };
    let Some(bytes) = read_provenance(component).map_err(damaged)?.pop() else { return Ok(None) };
    read_about(&bytes, plugin).map_err(|fault| damaged(fault.to_string()))?;
    Ok(Some(bytes))
}

/// Signs the provenance beside a component, which [`to_publish`] returned.
///
/// # Errors
///
/// The file cannot be written.
pub fn sign(component: &Path, bytes: &[u8], keys: &[SigningKey]) -> Result<(), Stop> {
    let broken = |fault: SignatureFault| Stop::new(Exit::Internal, format!("sign the provenance: {fault}"));
    let read = ProvenanceFile::read(bytes).map_err(broken)?;
    let signed = read.sign(&keys.iter().collect::<Vec<_>>()).map_err(broken)?;
    let file = provenance_file(component);
    replaced_file::put(&file, signed)?;
    let provenance = read.provenance().map_err(broken)?;
    let source = source_sentence(BuildFacts::new(provenance).source.as_ref());
    terminal::say(format_args!("signed its provenance in `{}`: built {source}\n", shown(&file)));
    Ok(())
}
