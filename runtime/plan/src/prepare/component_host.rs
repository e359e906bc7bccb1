//! The built-in components, the plugins of a project, and the host that runs them. The host starts at its first use.

use super::project::Project;
use super::refusal::Refusal;
use super::source;
use crate::components::{Builtin, Catalog, PluginFile};
use glovebox_host::host::Host;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The built-in components, each with the handler type that it implements.
pub type Builtins = &'static [(&'static str, Builtin)];

/// The built-in components, and the host of this process.
pub struct ComponentHost {
    builtins: Builtins,
    start: fn() -> Result<Host, Refusal>,
    host: OnceCell<Arc<Host>>,
}

impl ComponentHost {
    /// Creates a host that is started with `start` at its first use, and only once.
    pub fn new(builtins: Builtins, start: fn() -> Result<Host, Refusal>) -> Self {
        Self { builtins, start, host: OnceCell::new() }
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
                let host = Arc::new((self.start)()?);
                Ok(self.host.get_or_init(|| host))
            }
        }
    }

    /// Returns the built-in components and the bytes of the project's plugins.
    pub fn catalog(&self, project: &Project) -> Catalog {
        let builtins = self.builtins.iter().map(|(name, builtin)| ((*name).to_owned(), builtin.clone()));
        let plugins = project.config.plugins.iter().map(|(name, entry)| (name, &*entry.path));
        Catalog { builtins: builtins.collect(), plugins: plugin_files(project, plugins) }
    }
}

/// Reads the bytes of the components that the configuration names.
pub fn plugin_files<'a>(
    project: &Project,
    named: impl Iterator<Item = (&'a String, &'a str)>,
) -> BTreeMap<String, PluginFile> {
    let read = |(name, path): (&String, &str)| {
        let bytes = source::read_component(&project.config_dir.join(path), project.config.component_bytes(name));
        (name.clone(), PluginFile { path: path.to_owned(), bytes: bytes.map(Arc::from) })
    };
    named.map(read).collect()
}
