//! Texts for people that are stored with the stage's record.

use glovebox_plugin_sdk::{artifact, log};

/// A text to store with the stage's record.
pub(crate) struct Artifact<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

impl Artifact<'_> {
    /// Stores the text. If it is refused, the stage does not fail.
    pub(crate) fn keep(&self) {
        if let Err(reason) = artifact::put_text(self.name, self.text) {
            log::warn("artifact not kept", &[("name", self.name), ("reason", &reason)]);
        }
    }
}
