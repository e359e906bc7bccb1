//! The component that `plugin inspect` and `plugin rebuild` look at: a file, or a plugin of the project in the current folder.

use super::now::ConfigEntry;
use super::signature::{admission_here, read_beside};
use super::{inspect_bytes, provenance, read_bytes, shown};
use crate::exit::{Exit, Stop};
use crate::terminal::visible;
use glovebox_host::inspect::Inspection;
use glovebox_plan::components::admission::Admission;
use glovebox_plan::config::{ComponentSource, Config, PluginEntry, is_plugin_name};
use glovebox_plan::prepare::admission::{provenance_file, read_provenance};
use glovebox_plan::prepare::plugin_bytes;
use glovebox_plan::prepare::project::{self, Project};
use glovebox_signing::plugin::PluginIdentity;
use std::path::Path;

/// Ending of the name of a file that is never read as the name of a plugin.
const FILE_ENDING: &str = ".wasm";

/// A component, and the files that come with it.
pub struct Subject {
    /// The file, or where the plugin comes from, for messages.
    pub place: String,
    /// The name in the manifest; empty if there is none.
    pub name: String,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// What they contain.
    pub inspection: Inspection,
    /// The files of signatures.
    pub signatures: Vec<Vec<u8>>,
    /// False for a plugin of a registry that was asked for no signatures, because the project trusts no key.
    pub asked_for_signatures: bool,
    /// The files of provenance.
    pub provenance: Vec<Vec<u8>>,
    /// The trusted keys and the revocations.
    pub admission: Admission,
}

impl Subject {
    /// Reads a plugin of the project in the current folder, or a file. A text that is the name of a plugin of the project means that
    /// plugin, unless it ends with `.wasm`.
    ///
    /// # Errors
    ///
    /// Exit 2 for something that does not exist, 7 for a component or a file beside it that cannot be read.
    pub fn read(named: &Path) -> Result<Self, Stop> {
        let name = named.to_str().filter(|name| is_plugin_name(name) && !name.ends_with(FILE_ENDING));
        let project = name.and_then(|_| project::read_project(Path::new("."), None).ok());
        let installed = name.zip(project.as_ref()).and_then(|(name, project)| {
            let entry = project.config.plugins.get(name)?;
            Some((project, name, entry))
        });
        match (installed, name) {
            (Some((project, name, entry)), _) => Self::installed(project, name, entry),
            (None, Some(name)) if !named.exists() => {
                let name = visible::line(name);
                let stop = Stop::new(Exit::Usage, format!("`{name}` is no file, and no plugin of a project here"));
                Err(stop.with_help("see the plugins with `glovebox plugin ls`"))
            }
            _ => Self::file(named),
        }
    }

    fn installed(project: &Project, name: &str, entry: &PluginEntry) -> Result<Self, Stop> {
        let component = ConfigEntry::plugin(name, entry).read(project)?;
        let place = visible::line(&entry.source.to_string()).into_owned();
        let unread = |what: &str, reason: String| {
            let reason = visible::line(&reason).into_owned();
            Stop::new(Exit::Plugin, format!("the {what} of `{name}` cannot be read: {reason}"))
        };
        let signatures = plugin_bytes::unchecked_signatures(project, name, &entry.source);
        let provenance = plugin_bytes::provenance(project, name, &entry.source);
        Ok(Self {
            place,
            name: name.to_owned(),
            bytes: component.bytes,
            inspection: component.inspection,
            signatures: signatures.map_err(|reason| unread("signatures", reason))?,
            provenance: provenance.map_err(|reason| unread("provenance", reason))?,
            asked_for_signatures: project.trust.is_some() || matches!(entry.source, ComponentSource::File(_)),
            admission: project.admission(),
        })
    }

    fn file(file: &Path) -> Result<Self, Stop> {
        let bytes = read_bytes(file, Config::default().component_bytes(""))?;
        let inspection = inspect_bytes(&shown(file), &bytes)?;
        let name = inspection.manifest.as_ref().map(|manifest| manifest.name.clone()).unwrap_or_default();
        let signatures = read_beside(file)?;
        let provenance = read_provenance(file).map_err(|reason| {
            let file = provenance_file(file);
            Stop::new(Exit::Plugin, format!("the provenance `{}` cannot be read: {reason}", shown(&file)))
        })?;
        let admission = admission_here();
        let asked_for_signatures = true;
        Ok(Self {
            place: shown(file),
            name,
            bytes,
            inspection,
            signatures,
            asked_for_signatures,
            provenance,
            admission,
        })
    }

    /// Returns what signatures and provenance are about.
    pub fn identity(&self) -> PluginIdentity {
        provenance::identity(&self.name, &self.inspection, &self.bytes)
    }
}
