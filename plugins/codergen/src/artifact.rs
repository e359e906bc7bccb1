//! Texts that people find beside the stage's record.

use glovebox_plugin_sdk::{artifact, log};

/// A text to keep beside the stage's record.
pub(crate) struct Artifact<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

impl Artifact<'_> {
    /// Keeps it; a stage does not fail if its record is cut short.
    pub(crate) fn keep(&self) {
        if let Err(reason) = artifact::put_text(self.name, self.text) {
            log::warn("artifact not kept", &[("name", self.name), ("reason", &reason)]);
        }
    }
}
