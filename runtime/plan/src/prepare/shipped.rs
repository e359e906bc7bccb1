//! The settings of a project, as they travel to machines that do not have the project.
//!
//! A [`SettingFiles`] has everything that a binding reads beside the files of the workspace: the configuration, the lock
//! file, the components of plugins and policies with their signatures, and the keys and lists that `[trust]` names. Variables
//! of the environment and the keys of models do not travel: each machine has its own.

use super::component_host;
use super::plugin_bytes;
use super::project::{self, Project};
use super::refusal::{Class, Refusal};
use crate::components::ReadProblem;
use crate::config::{CONFIG_FILE_NAME, HistorySetting, ListSource, TrustKeySource};
use crate::lock::LOCK_FILE_NAME;
use glovebox_record::path::ScopePath;
use glovebox_workspace::regular_file::{self, Links};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Maximum size of a file that the settings name, in bytes. A component has a limit of its own.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The bytes of a component and the files of its signatures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShippedComponent {
    /// The component.
    pub bytes: Arc<[u8]>,
    /// The files of its signatures.
    pub signatures: Vec<Vec<u8>>,
}

/// The components that came with the settings.
#[derive(Debug, Default)]
pub struct ShippedComponents {
    /// The components of plugins, by the names in the configuration.
    pub plugins: BTreeMap<String, ShippedComponent>,
    /// The components of policies, by the names in the configuration.
    pub policies: BTreeMap<String, ShippedComponent>,
}

/// The settings of a project, without its files.
#[derive(Debug, Default)]
pub struct SettingFiles {
    /// The text of the configuration. `None` if the project has none.
    pub config: Option<Vec<u8>>,
    /// The text of the lock file. `None` if the project has none.
    pub lock: Option<Vec<u8>>,
    /// The components.
    pub components: ShippedComponents,
    /// Further files, by their path beside the configuration.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl SettingFiles {
    /// Reads the settings of a project of this machine.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or is outside of the folder of the configuration, so that it has no path on other machines.
    pub fn read(project: &Project) -> Result<Self, Refusal> {
        let mut settings = Self::default();
        if project.config.workspace.history == HistorySetting::Whole {
            let message =
                "`git = \"history\"` under `[workspace]`: the history of the project does not travel to other machines";
            return Err(
                Refusal::new(Class::Invalid, message).with_help("remove the line: commands then see one commit")
            );
        }
        if project.has_config {
            settings.config = read(&project.config_dir.join(CONFIG_FILE_NAME))?;
            settings.lock = read(&project.config_dir.join(LOCK_FILE_NAME))?;
        }
        for (name, entry) in &project.config.plugins {
            let bytes = plugin_bytes::read(project, name, &entry.source).map_err(|error| unread(name, &error))?;
            let signatures = plugin_bytes::signatures(project, name, &entry.source);
            let signatures = signatures.map_err(|reason| unread(name, &ReadProblem { reason, help: None }))?;
            settings.components.plugins.insert(name.clone(), ShippedComponent { bytes: bytes.into(), signatures });
        }
        for (name, file) in component_host::policy_files(project) {
            let bytes = file.bytes.map_err(|error| unread(&name, &error))?;
            let signatures = file.signatures.map_err(|reason| unread(&name, &ReadProblem { reason, help: None }))?;
            settings.components.policies.insert(name, ShippedComponent { bytes, signatures });
        }
        for path in named_files(project) {
            if ScopePath::parse(&path).is_err() {
                let message = format!("`{path}` in glovebox.toml is outside of the folder of the file");
                return Err(Refusal::new(Class::Invalid, message)
                    .with_help("move it beside glovebox.toml: other machines have only that folder"));
            }
            if let Some(bytes) = read(&project.config_dir.join(&path))? {
                settings.files.insert(path, bytes);
            }
        }
        Ok(settings)
    }

    /// Writes the settings to an empty folder of this machine and reads them as a project, whose files are in `workdir`.
    ///
    /// # Errors
    ///
    /// A file cannot be written, or the settings cannot be used on this machine.
    pub fn open(self, workdir: &Path, folder: &Path) -> Result<Project, Refusal> {
        let Self { config, lock, components, files } = self;
        let own = [(CONFIG_FILE_NAME, config), (LOCK_FILE_NAME, lock)];
        let own = own.into_iter().filter_map(|(name, bytes)| Some((name.to_owned(), bytes?)));
        for (path, bytes) in own.chain(files) {
            // The paths come from the record of a run that another user may have started.
            ScopePath::parse(&path)
                .map_err(|error| Refusal::new(Class::Mismatch, format!("the path of a setting: {error}")))?;
            let at = folder.join(&path);
            let made = at.parent().map_or(Ok(()), std::fs::create_dir_all);
            made.and_then(|()| std::fs::write(&at, bytes))
                .map_err(|error| Refusal::io(format!("write `{}`", at.display()), &error))?;
        }
        project::read_shipped(workdir, folder, components)
    }
}

/// Returns the paths of the files that the configuration names and that a binding reads.
fn named_files(project: &Project) -> BTreeSet<String> {
    let trust = project.config.trust.as_ref();
    let keys = trust.into_iter().flat_map(|trust| &trust.keys).filter_map(|key| match &key.source {
        TrustKeySource::File(path) => Some(path.clone()),
        TrustKeySource::Key(_) => None,
    });
    let lists = trust.into_iter().flat_map(|trust| &trust.revocations).filter_map(|list| match list {
        ListSource::File(path) => Some(path.clone()),
        ListSource::Registry(_) | ListSource::Address(_) => None,
    });
    keys.chain(lists).collect()
}

fn read(file: &Path) -> Result<Option<Vec<u8>>, Refusal> {
    match regular_file::read(file, Links::Follow, FILE_BYTES_MAX) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Refusal::io(format!("read `{}`", file.display()), &error)),
    }
}

fn unread(name: &str, error: &ReadProblem) -> Refusal {
    let refusal = Refusal::new(Class::Plugin, format!("`{name}`: {}", error.reason));
    match &error.help {
        Some(help) => refusal.with_help(help.clone()),
        None => refusal,
    }
}
