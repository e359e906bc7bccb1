//! Renames inside a view.
//!
//! Both ends must be writable. A directory moves with its present and future content, so for a directory both ends must be
//! writable with everything below and hide nothing: renaming an ancestor would reveal paths that are hidden by name.

use super::View;
use super::denied::Denied;
use super::metadata::Kind;
use super::refuse::{Operation, Unusable};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Access;

impl View {
    /// Renames a file or directory, replacing a file or an empty directory at the new path.
    pub fn rename(&self, from: &ScopePath, to: &ScopePath) -> Result<(), Denied> {
        let operation = Operation::Rename;
        for end in [from, to] {
            self.require(operation, end, Access::Write)?;
            if self.scope.hides_below(end) {
                return Err(self.refuse_below(operation, end));
            }
        }
        let (Some(from_name), Some(to_name)) = (from.name(), to.name()) else { return Err(Denied::Invalid) };
        if to.is_below(from) {
            return Err(Denied::Invalid);
        }
        let from_directory = self.parent(operation, from)?;
        let to_directory = self.parent(operation, to)?;
        match Kind::of(&self.look(operation, &from_directory, from)?) {
            Kind::File => {}
            Kind::Directory => self.require_movable_directory(from, to)?,
            Kind::Symlink => return Err(self.refuse_link(operation, from)),
            Kind::Special => return Err(self.refuse_object(operation, from, Unusable::Special)),
        }
        let replaced = self.lstat(operation, &to_directory, to)?;
        if replaced.is_some_and(|stat| Kind::of(&stat) == Kind::Directory) {
            self.require_movable_directory(from, to)?;
        }
        self.charged_entry(to, || rustix::fs::renameat(&from_directory, from_name, &to_directory, to_name))
    }

    fn require_movable_directory(&self, from: &ScopePath, to: &ScopePath) -> Result<(), Denied> {
        for end in [from, to] {
            if !self.scope.writable_subtree(end) {
                return Err(self.refuse_below(Operation::Rename, end));
            }
        }
        Ok(())
    }
}
