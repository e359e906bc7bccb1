//! Loads the policies of a project: components of `[policy]`, which judge tool calls and edges of a run.
//!
//! As for every plugin, the compiler gets only bytes to which the operator agreed.

use super::Binder;
use crate::components::{PluginFile, PluginProblem, ReadProblem};
use crate::config::PolicyEntry;
use crate::lock::LockedPlugin;
use crate::plan::{BoundPolicy, PolicyBinding};
use glovebox_host::inspect::inspect;
use glovebox_host::policy;
use std::fmt;
use std::sync::Arc;

impl Binder<'_> {
    /// Loads every policy, in the order of the file. A policy that may not run is an error.
    pub(super) fn policies(&mut self) -> Vec<BoundPolicy> {
        let config = self.operator.config;
        let mut found = Vec::new();
        for name in config.policies_in_order() {
            let Some(entry) = config.policies.get(name) else { continue };
            match self.policy(name, entry) {
                Ok(component) => found.push(BoundPolicy { name: name.to_owned(), component }),
                Err(problem) => self.errors.plugins.push(problem),
            }
        }
        found
    }

    fn policy(&mut self, name: &str, entry: &PolicyEntry) -> Result<PolicyBinding, PluginProblem> {
        let problem = |message: String, help: Option<String>| PluginProblem { name: name.to_owned(), message, help };
        let unread = |reason: &dyn fmt::Display| format!("policy `{name}` cannot be read: {reason}");
        let unopened = |reason: &str| {
            let help = format!("build it, or set `path` under `[policy.\"{name}\"]` (glovebox.toml:{})", entry.line);
            problem(unread(&reason), Some(help))
        };
        let file = self.catalog.policies.get(name).ok_or_else(|| unopened("its file was not opened"))?;
        let bytes = PluginFile::content(file).map_err(|ReadProblem { reason, .. }| unopened(&reason))?;
        let inspection = inspect(bytes).map_err(|error| problem(unread(&error), error.help()))?;
        if let Some(manifest) = inspection.manifest.as_ref().filter(|manifest| manifest.name != name) {
            let message = format!("the manifest of policy `{name}` names it `{}`", manifest.name);
            let help = format!("rename the table in glovebox.toml to `[policy.\"{}\"]`", manifest.name);
            return Err(problem(message, Some(help)));
        }
        policy::check(&inspection)
            .map_err(|error| problem(format!("`{name}` cannot be used as a policy: {error}"), error.help()))?;
        let admission = &self.catalog.admission;
        admission.refuse_revoked(name, &inspection.digest)?;
        let signer = admission.signer(name, &inspection, file)?;
        let now = LockedPlugin { signer, ..LockedPlugin::for_policy(name, entry, &inspection) };
        if let Err(mismatch) = self.operator.lock.verify(&now) {
            let problem = problem(mismatch.to_string(), Some(mismatch.help().to_owned()));
            if self.plan_only { &mut self.unlocked } else { &mut self.errors.plugins }.push(problem);
            return Ok(PolicyBinding::Unlocked(Arc::new(inspection)));
        }
        let Some(host) = self.host else { return Ok(PolicyBinding::Unlocked(Arc::new(inspection))) };
        let loaded = host.load_policy(bytes, self.operator.config.component_bytes(name));
        let refused = |error: glovebox_host::component::LoadError| {
            problem(format!("policy `{name}` cannot be loaded: {error}"), error.help())
        };
        Ok(PolicyBinding::Loaded(loaded.map_err(refused)?))
    }
}
