//! What is known about who made a component, and the files that say so.

use crate::exit::Stop;
use crate::replaced_file;
use glovebox_plan::prepare::admission::{provenance_file, signatures_file};
use glovebox_signing::trust::Signer;
use std::path::Path;

/// The signer of a plugin, and the files that come with its component.
#[derive(Debug, Default)]
pub struct Vouched {
    /// The signer. `None` for a plugin that needs no signature and has none, and in a project without `[trust]`.
    pub signer: Option<Signer>,
    /// The file of signatures that counts, if there is one; in a project without `[trust]` the first one.
    pub signatures: Option<Vec<u8>>,
    /// The file of provenance, if there is one about this component.
    pub provenance: Option<Vec<u8>>,
}

impl Vouched {
    /// Writes signatures and provenance beside a component. Removes those that were there if the component has none, because they are
    /// about other bytes. No link below `root` is followed.
    pub fn install(&self, root: &Path, component: &Path) -> Result<(), Stop> {
        let files = [(signatures_file(component), &self.signatures), (provenance_file(component), &self.provenance)];
        files.iter().try_for_each(|(place, content)| match content {
            Some(content) => replaced_file::put_below(root, place, content),
            None => replaced_file::remove_below(root, place),
        })
    }
}
