//! Which components may run: those that are signed as the operator requires, and that were not revoked.
//!
//! A project without `[trust]` reads no signature. Revocations apply to every component, the built-in ones included.

use super::{PluginFile, PluginProblem};
use crate::config::CONFIG_FILE_NAME;
use crate::lock::LockedPlugin;
use glovebox_host::inspect::Inspection;
use glovebox_record::Digest;
use glovebox_signing::plugin::PluginIdentity;
use glovebox_signing::revocation::Revocations;
use glovebox_signing::trust::{AcceptedSignature, Trust};
use std::sync::Arc;

/// Trusted keys and revocations. The default trusts no key, requires no signature, and has no revocations.
#[derive(Debug, Clone, Default)]
pub struct Admission {
    /// The keys of `[trust]`. `None` without that table.
    pub trust: Option<Arc<Trust>>,
    /// The lists of revocations.
    pub revocations: Revocations,
}

impl Admission {
    /// Refuses a component that was revoked.
    pub fn refuse_revoked(&self, name: &str, digest: &Digest) -> Result<(), PluginProblem> {
        match self.revocations.find(name, digest) {
            None => Ok(()),
            Some(refused) => Err(PluginProblem {
                name: name.to_owned(),
                message: format!("`{name}` ({digest}) may not run: {refused}"),
                help: Some(refused.help().to_owned()),
            }),
        }
    }

    /// Returns the key that signed a plugin, that of the lock file if it is among several. `None` for a plugin without signatures that
    /// needs none.
    pub fn signer(
        &self,
        name: &str,
        inspection: &Inspection,
        file: &PluginFile,
        locked: Option<&LockedPlugin>,
    ) -> Result<Option<AcceptedSignature>, PluginProblem> {
        let Some(trust) = &self.trust else { return Ok(None) };
        let problem = |message: String, help: Option<String>| PluginProblem { name: name.to_owned(), message, help };
        let unread = |reason: &str| problem(format!("the signatures of `{name}` cannot be read: {reason}"), None);
        let bytes = file.content().map_err(|problem| unread(&problem.reason))?;
        let signatures = file.signatures.as_ref().map_err(|reason| unread(reason))?;
        let version = inspection.manifest.as_ref().map(|manifest| manifest.version.to_string());
        let identity = PluginIdentity::new(name, version, bytes);
        let preferred = locked.and_then(|locked| locked.signer.as_ref()).map(|signer| &signer.key);
        trust.check_any(&identity, signatures, preferred).map_err(|fault| {
            let message = format!("{fault} (`[trust]` in {CONFIG_FILE_NAME})");
            problem(glovebox_names::visible::line(&message).into_owned(), Some(fault.help().to_owned()))
        })
    }
}
