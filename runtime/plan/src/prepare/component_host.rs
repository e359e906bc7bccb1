//! The built-in components, the plugins of a project, and the host that runs them. The host starts at its first use.

use super::admission::read_signatures;
use super::plugin_bytes;
use super::project::Project;
use super::refusal::Refusal;
use super::shipped::ShippedComponent;
use super::source;
use crate::components::{Builtin, Catalog, PluginFile, ReadProblem};
use crate::config::{PluginEntry, PolicyEntry, RuleEntry};
use glovebox_host::host::Host;
use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::panic;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// The built-in components, each with the handler type that it implements.
pub type Builtins = &'static [(&'static str, Builtin)];

/// The built-in components, and the host of this process.
pub struct ComponentHost {
    builtins: Builtins,
    start: fn() -> Result<Host, Refusal>,
    /// The thread that starts the host. `None` if there is none, or if it was waited for.
    starting: Cell<Option<JoinHandle<Result<Host, Refusal>>>>,
    host: OnceCell<Arc<Host>>,
}

impl ComponentHost {
    /// Creates a host that is started with `start` at its first use, and only once.
    pub fn new(builtins: Builtins, start: fn() -> Result<Host, Refusal>) -> Self {
        Self { builtins, start, starting: Cell::new(None), host: OnceCell::new() }
    }

    /// Begins to start the host on another thread. The first use waits for it, or starts the host if there is no thread.
    pub fn anticipate(&self) {
        let thread = thread::Builder::new().name("component-host".to_owned());
        self.starting.set(thread.spawn(self.start).ok());
    }

    /// Returns the host, and starts it if it is not running yet.
    ///
    /// # Errors
    ///
    /// Fails if the host cannot be started.
    pub fn get(&self) -> Result<&Arc<Host>, Refusal> {
        match self.host.get() {
            Some(host) => Ok(host),
            None => {
                let started = match self.starting.take() {
                    Some(starting) => starting.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked)),
                    None => (self.start)(),
                };
                let host = Arc::new(started?);
                Ok(self.host.get_or_init(|| host))
            }
        }
    }

    /// Returns the built-in components and the bytes of the project's plugins.
    pub fn catalog(&self, project: &Project) -> Catalog {
        let builtins = self.builtins.iter().map(|(name, builtin)| ((*name).to_owned(), builtin.clone()));
        let read = |(name, entry): (&String, &PluginEntry)| {
            if let Some(shipped) = &project.shipped {
                return (name.clone(), shipped_file(shipped.plugins.get(name), &entry.source.to_string()));
            }
            let bytes = plugin_bytes::read(project, name, &entry.source).map(Arc::from);
            let signatures = plugin_bytes::signatures(project, name, &entry.source);
            (name.clone(), PluginFile { path: entry.source.to_string(), bytes, signatures })
        };
        let plugins = project.config.plugins.iter().map(read).collect();
        Catalog {
            builtins: builtins.collect(),
            plugins,
            policies: policy_files(project),
            admission: project.admission(),
        }
    }
}

/// Reads the bytes of the rule plugins that the configuration names.
pub fn rule_files(project: &Project) -> BTreeMap<String, PluginFile> {
    let read = |(name, entry): (&String, &RuleEntry)| (name.clone(), plugin_file(project, name, &entry.path));
    project.config.rules.iter().map(read).collect()
}

/// Reads the bytes of the policies that the configuration names.
pub(super) fn policy_files(project: &Project) -> BTreeMap<String, PluginFile> {
    let read = |(name, entry): (&String, &PolicyEntry)| {
        let file = match &project.shipped {
            Some(shipped) => shipped_file(shipped.policies.get(name), &entry.path),
            None => plugin_file(project, name, &entry.path),
        };
        (name.clone(), file)
    };
    project.config.policies.iter().map(read).collect()
}

fn shipped_file(component: Option<&ShippedComponent>, path: &str) -> PluginFile {
    let absent = || ReadProblem::from("it did not come with the settings of the run".to_owned());
    let bytes = component.map(|component| Arc::clone(&component.bytes)).ok_or_else(absent);
    let signatures = component.map(|component| component.signatures.clone()).unwrap_or_default();
    PluginFile { path: path.to_owned(), bytes, signatures: Ok(signatures) }
}

fn plugin_file(project: &Project, name: &str, path: &str) -> PluginFile {
    let file = project.config_dir.join(path);
    let bytes = source::read_component(&file, project.config.component_bytes(name));
    let bytes = bytes.map(Arc::from).map_err(ReadProblem::from);
    let signatures = if project.trust.is_some() { read_signatures(&file) } else { Ok(Vec::new()) };
    PluginFile { path: path.to_owned(), bytes, signatures }
}
