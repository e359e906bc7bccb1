//! Decides whether a change that another machine reports can be a change of the stage that it names.
//!
//! The machine that made a stage has compared all files and committed only what the scope allows. This module repeats the part
//! that needs no file: names, protected paths, the write scope, and where links lead. So a machine that lies about its own
//! stage changes no more than the stage may.

use crate::link;
use crate::protect::Protected;
use glovebox_names::visible::is_deceptive;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Scope;
use glovebox_record::{ChangeOp, FileChange};
use std::path::Path;

/// The permissions that a recorded entry may have. Neither the group nor others may write.
const MODE_MASK: u32 = 0o755;

/// Returns why no stage with this scope can have made a committed change. `None` if it can.
pub fn fault(change: &FileChange, scope: &Scope, protected: &Protected) -> Option<String> {
    let path = &change.path;
    let is_allowed = match change.op {
        ChangeOp::Write | ChangeOp::Symlink | ChangeOp::Delete => scope.commits(path),
        ChangeOp::Mkdir => scope.commits_as_directory(path),
        // A folder of which the stage saw only a part may be removed for the stage; the rest stays.
        ChangeOp::Rmdir => scope.commits_directory(path) || scope.hides_below(path) || !scope.grants_all_below(path),
    };
    fault_outside_scope(change, scope, protected)
        .or_else(|| (!is_allowed).then(|| format!("`{path}` is not in the write scope of the stage")))
}

/// As [`fault`], for a change that a person may still allow: only the write scope may forbid it.
pub fn fault_outside_scope(change: &FileChange, scope: &Scope, protected: &Protected) -> Option<String> {
    let FileChange { path, op, digest, mode, target, .. } = change;
    if path.is_root() || path.as_str().chars().any(is_deceptive) {
        return Some("a change has no path, or one that could deceive a reader".to_owned());
    }
    if digest.is_some() != (*op == ChangeOp::Write) || target.is_some() != (*op == ChangeOp::Symlink) {
        return Some(format!("the change of `{path}` is incomplete"));
    }
    if let Some(mode) = mode.filter(|mode| mode & !MODE_MASK != 0) {
        return Some(format!("`{path}` has the permissions {mode:o}"));
    }
    if let Some(reason) = protected.reason(path.as_str()) {
        return Some(reason);
    }
    if scope.is_hidden(path) {
        return Some(format!("`{path}` is hidden from the stage"));
    }
    let target = target.as_ref()?;
    match link::destination(path, Path::new(target)) {
        Err(reason) => Some(format!("`{path}` is a link that must not exist: {reason}")),
        Ok(to) => {
            leads_to_secret(&to, scope, protected).then(|| format!("`{path}` links to a path that no stage may have"))
        }
    }
}

fn leads_to_secret(to: &ScopePath, scope: &Scope, protected: &Protected) -> bool {
    protected.reason(to.as_str()).is_some() || scope.is_hidden(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_record::Digest;
    use glovebox_record::scope::Entry;

    fn entries(texts: &[&str]) -> Vec<Entry> {
        texts.iter().map(|text| Entry::parse(text).unwrap()).collect()
    }

    fn write(path: &str) -> FileChange {
        let change = FileChange::bare(ScopePath::parse(path).unwrap(), ChangeOp::Write);
        FileChange { digest: Some(Digest::hash(b"")), ..change }
    }

    fn link(path: &str, target: &str) -> FileChange {
        let change = FileChange::bare(ScopePath::parse(path).unwrap(), ChangeOp::Symlink);
        FileChange { target: Some(target.to_owned()), ..change }
    }

    fn bare(path: &str, op: ChangeOp) -> FileChange {
        FileChange::bare(ScopePath::parse(path).unwrap(), op)
    }

    #[test]
    fn a_stage_reports_only_changes_of_its_scope() {
        let scope = Scope::new(entries(&["./"]), entries(&["out/", "a/b/one"]), entries(&["out/held/", ".git/"]));
        let protected = Protected::new(&["out/pipeline.dot"]);
        let with_mode = |mode| FileChange { mode: Some(mode), ..write("out/a") };
        let cases = [
            (write("out/a"), None),
            (write("a/b/one"), None),
            (with_mode(0o555), None),
            (link("out/l", "../src/x"), None),
            (bare("out/a", ChangeOp::Delete), None),
            (bare("a/b", ChangeOp::Mkdir), None),
            (bare("out", ChangeOp::Rmdir), None),
            (write("src/a"), Some("not in the write scope")),
            (write("a/b/two"), Some("not in the write scope")),
            (bare("src", ChangeOp::Mkdir), Some("not in the write scope")),
            (bare("src", ChangeOp::Delete), Some("not in the write scope")),
            (bare("src", ChangeOp::Rmdir), Some("not in the write scope")),
            (write("out/held/x"), Some("hidden from the stage")),
            (write("out/pipeline.dot"), Some("protected by this run")),
            (write("out/.git/config"), Some("protected")),
            (write("out/a\u{1b}[2J"), Some("could deceive a reader")),
            (bare("", ChangeOp::Mkdir), Some("has no path")),
            (bare("out/a", ChangeOp::Write), Some("is incomplete")),
            (FileChange { target: Some("x".to_owned()), ..write("out/a") }, Some("is incomplete")),
            (with_mode(0o4755), Some("permissions 4755")),
            (with_mode(0o666), Some("permissions 666")),
            (link("out/l", "/etc/passwd"), Some("its target is absolute")),
            (link("out/l", "../../x"), Some("outside the workspace")),
            (link("out/l", "../.git/config"), Some("no stage may have")),
        ];
        for (change, expected) in cases {
            let found = fault(&change, &scope, &protected);
            match expected {
                None => assert_eq!(found, None, "{change:?}"),
                Some(text) => {
                    assert!(found.as_ref().is_some_and(|found| found.contains(text)), "{change:?}: {found:?}")
                }
            }
        }
        assert_eq!(fault_outside_scope(&write("src/a"), &scope, &protected), None);
        assert!(fault_outside_scope(&write(".git/config"), &scope, &protected).is_some());
    }
}
