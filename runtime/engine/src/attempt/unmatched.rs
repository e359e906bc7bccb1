//! Entries of a stage's attributes that match no file: a stage that looks at nothing finds nothing wrong.
//!
//! The entries are compared with the files from which the attempt began. What is not in the workspace at that time is not
//! compared: hold-outs, installed dependencies, files that git ignores, and what the stage itself may write.

use super::Workbench;
use crate::assignment::Assignment;
use globset::GlobBuilder;
use glovebox_pipeline::ir::{HandlerKind, Node};
use glovebox_pipeline::key;
use glovebox_plan::plan::Binding;
use glovebox_record::scope::Entry;
use glovebox_record::{Unmatched, path::ScopePath};
use glovebox_workspace::project::Base;

/// Maximum number of entries that are recorded for an attempt.
const RECORDED_MAX: usize = 20;

impl<B> Workbench<B> {
    /// Returns the entries of `read_paths`, and of `paths` of a `diff-limits` stage, that match no file. `workspace` is the folder
    /// from which the attempt began, relative to the run directory.
    pub(super) fn unmatched(
        &self,
        assignment: &Assignment,
        node: &Node,
        binding: &Binding,
        workspace: &str,
    ) -> Vec<Unmatched> {
        let named = node.access.read_paths.iter().flatten();
        let read = named.filter(|entry| !self.is_elsewhere(entry, binding) && !self.exists(entry, workspace));
        let read = read.map(|entry| (key::READ_PATHS.as_str(), entry.to_string()));
        let counted =
            if node.handler.kind() == HandlerKind::DiffLimits { self.uncounted(assignment, node) } else { Vec::new() };
        let counted = counted.into_iter().map(|entry| (key::PATHS.as_str(), entry));
        let found = read.chain(counted).take(RECORDED_MAX);
        found.map(|(attribute, entry)| Unmatched { attribute: attribute.to_owned(), entry }).collect()
    }

    /// Returns true if the files of an entry can be in another place than the workspace, or can be made by the stage.
    fn is_elsewhere(&self, entry: &Entry, binding: &Binding) -> bool {
        let folders = &self.plan.folders;
        let access = &binding.command_access;
        let own = binding.scope.write.iter().chain(&access.scratch).chain(&access.cache);
        let others = folders.sealed.iter().chain(&folders.dependencies).chain(own);
        let meets = |other: &Entry| other.path().starts_with(entry.path()) || entry.path().starts_with(other.path());
        others.into_iter().any(meets) || self.ignored.ignores(entry.path())
    }

    fn exists(&self, entry: &Entry, workspace: &str) -> bool {
        let at = if entry.path().is_root() { workspace.to_owned() } else { format!("{workspace}/{}", entry.path()) };
        match self.run.dir.symlink_metadata(&at) {
            Ok(found) if found.is_dir() => self.run.dir.read_dir(&at).is_ok_and(|mut entries| entries.next().is_some()),
            Ok(_) => true,
            Err(_) => false,
        }
    }

    /// Returns the entries of `paths` that match neither a file with which the run began nor a changed one.
    fn uncounted(&self, assignment: &Assignment, node: &Node) -> Vec<String> {
        let written = node.attributes.get(key::PATHS).map(|attribute| attribute.value.to_string()).unwrap_or_default();
        let changed: Vec<&ScopePath> = assignment.branch.changes.values().map(|change| &change.path).collect();
        let matches = |entry: &&str| {
            let is_matched = matcher(entry);
            has(&self.base, &is_matched) || changed.iter().any(|path| is_matched(path.as_str()))
        };
        let entries = written.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        entries.filter(|entry| !matches(entry)).map(str::to_owned).collect()
    }
}

fn has(base: &Base, is_matched: &impl Fn(&str) -> bool) -> bool {
    base.files.keys().chain(base.symlinks.keys()).any(|path| is_matched(path))
}

/// Returns a test for the paths that an entry matches: a folder with its slash, a pattern, or one path. A pattern without `/`
/// matches names in every folder. An entry that cannot be compiled matches everything, because the verifier refuses it.
fn matcher(entry: &str) -> Box<dyn Fn(&str) -> bool> {
    let entry = entry.strip_prefix("./").unwrap_or(entry);
    if entry.ends_with('/') || entry.is_empty() {
        let folder = entry.to_owned();
        return Box::new(move |path| path.starts_with(&folder));
    }
    if !entry.contains(['*', '?', '[', '{']) {
        let file = entry.to_owned();
        return Box::new(move |path| {
            path == file || path.strip_prefix(&file).is_some_and(|rest| rest.starts_with('/'))
        });
    }
    let Ok(glob) = GlobBuilder::new(entry).literal_separator(true).build() else { return Box::new(|_| true) };
    let (glob, is_name) = (glob.compile_matcher(), !entry.contains('/'));
    Box::new(move |path| glob.is_match(if is_name { path.rsplit('/').next().unwrap_or(path) } else { path }))
}

#[cfg(test)]
mod tests {
    use super::matcher;

    #[test]
    fn an_entry_matches_what_the_verifier_counts() {
        for (entry, path, expected) in [
            ("src/", "src/a.rs", true),
            ("src/", "src2/a.rs", false),
            ("./src/", "src/a.rs", true),
            ("Cargo.lock", "Cargo.lock", true),
            ("Cargo.lock", "vendor/Cargo.lock", false),
            ("*.rs", "src/a/b.rs", true),
            ("src/*.rs", "src/a/b.rs", false),
            ("src/**/*.rs", "src/a/b.rs", true),
            ("*.{py,pyi}", "a.pyi", true),
            ("[", "anything", true),
        ] {
            assert_eq!(matcher(entry)(path), expected, "{entry} {path}");
        }
    }
}
