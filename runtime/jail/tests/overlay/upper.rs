//! Upper folders with changes, as the kernel would have left them.

use super::bench::{Bench, put};
use glovebox_record::scope::Scope;
use glovebox_record::{Digest, FileChange};
use glovebox_workspace::change::{ChangeLimits, FoundChange, Op};
use glovebox_workspace::commit;
use glovebox_workspace::protect::Protected;
use glovebox_workspace::stage::{ViewOverrides, WorkspaceView};
use rustix::fs::{CWD, FileType, Mode, XattrFlags, lsetxattr, mknodat};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Returns the folders of an overlay: the lower layers from the top, the upper folder, and the work folder.
pub(crate) fn parts(view: &WorkspaceView) -> (Vec<PathBuf>, PathBuf, PathBuf) {
    match view.source().unwrap() {
        glovebox_jail_helper::policy::Source::Overlay { lower, upper, work } => (lower, upper, work),
        glovebox_jail_helper::policy::Source::Directory(path) => panic!("{} is a copy", path.display()),
    }
}

pub(crate) fn overlay(made: &Bench, scope: &Scope, overrides: &ViewOverrides) -> WorkspaceView {
    WorkspaceView::overlay(&made.workspace(), &made.dir.path().join("attempt"), scope, overrides).unwrap()
}

pub(crate) fn look(view: &WorkspaceView) -> Vec<FoundChange> {
    view.changes(&ChangeLimits::default(), &Protected::default()).unwrap()
}

/// Returns each change as `op path`, with a leading `!` if it is disallowed.
pub(crate) fn lines(found: &[FoundChange]) -> Vec<String> {
    let line = |change: &FoundChange| {
        let mark = if change.is_allowed() { "" } else { "!" };
        let executable = if matches!(change.op, Op::Write { executable: true, .. }) { "+x" } else { "" };
        format!("{mark}{}{executable} {}", change.op.as_str(), change.path)
    };
    found.iter().map(line).collect()
}

/// Finds the changes, stores their content and applies them.
pub(crate) fn commit(made: &Bench, view: &WorkspaceView) -> Vec<FileChange> {
    let blobs = made.blobs();
    let mut keep = |content: &mut dyn Read| {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes)?;
        let digest = Digest::hash(&bytes);
        fs::write(blobs.join(digest.hex()), &bytes)?;
        Ok(digest)
    };
    let changes = commit::store(&look(view), view, &mut keep).unwrap();
    made.apply(&changes).unwrap();
    changes
}

/// An upper folder that is being filled.
pub(crate) struct Upper(pub(crate) PathBuf);

impl Upper {
    pub(crate) fn of(view: &WorkspaceView) -> Self {
        Self(parts(view).1)
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    pub(crate) fn file(&self, path: &str, content: &str) -> &Self {
        put(&self.at(path), content);
        self
    }

    pub(crate) fn folder(&self, path: &str) -> &Self {
        fs::create_dir_all(self.at(path)).unwrap();
        self
    }

    pub(crate) fn opaque(&self, path: &str) -> &Self {
        self.folder(path).mark(path, "user.overlay.opaque", "y")
    }

    pub(crate) fn gone(&self, path: &str) -> &Self {
        let at = self.at(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        whiteout(&at);
        self
    }

    pub(crate) fn link(&self, path: &str, target: &str) -> &Self {
        symlink(target, self.at(path)).unwrap();
        self
    }

    pub(crate) fn mark(&self, path: &str, name: &str, value: &str) -> &Self {
        lsetxattr(self.at(path), name, value.as_bytes(), XattrFlags::empty()).unwrap();
        self
    }
}

pub(crate) fn whiteout(at: &Path) {
    mknodat(CWD, at.as_os_str().as_bytes(), FileType::CharacterDevice, Mode::empty(), 0).unwrap();
}
