//! Renames inside a view.
//!
//! Both paths must be writable. A directory moves with its current and future content. So for a directory, everything
//! below both paths must be writable and nothing below them may be hidden: renaming a parent would reveal paths that
//! are hidden by name.

use super::View;
use super::error::ViewError;
use super::metadata::Kind;
use super::place::{Holder, last_name};
use super::refuse::{ObjectFault, Operation};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Access;

impl View {
    /// Renames a file or directory. A file or an empty directory at the new path is replaced.
    pub fn rename(&self, from: &ScopePath, to: &ScopePath) -> Result<(), ViewError> {
        let operation = Operation::Rename;
        for end in [from, to] {
            self.require(operation, end, Access::Write)?;
            if self.scope.hides_below(end) {
                return Err(self.refuse_below(operation, end));
            }
        }
        if from.is_root() || to.is_root() || to.is_below(from) {
            return Err(ViewError::Invalid);
        }
        let (source, found) = self.look(operation, from)?;
        let target = self.find(operation, to)?;
        match found.kind {
            Kind::File => {}
            Kind::Directory => self.require_movable_directory(from, to)?,
            Kind::Symlink => return Err(self.refuse_link(operation, from)),
            Kind::Special => return Err(self.refuse_object(operation, from, ObjectFault::Special)),
        }
        if target.found.is_some_and(|found| found.kind == Kind::Directory) {
            self.require_movable_directory(from, to)?;
        }
        match (&source.holder, &target.holder) {
            (Holder::Disk(_, out_of), Holder::Disk(_, into)) => {
                self.charged_entry(to, || rustix::fs::renameat(out_of, last_name(from), into, last_name(to)))
            }
            (Holder::Layer(layered, _), _) => self.rename_in_layer(layered, from, &source, to, &target),
            _ => Err(ViewError::Invalid),
        }
    }

    fn require_movable_directory(&self, from: &ScopePath, to: &ScopePath) -> Result<(), ViewError> {
        for end in [from, to] {
            if !self.scope.writable_subtree(end) {
                return Err(self.refuse_below(Operation::Rename, end));
            }
        }
        Ok(())
    }
}
