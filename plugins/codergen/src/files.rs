//! Reads, writes and edits files of the workspace with `std::fs`.
//!
//! The host enforces the scope. The model gets the host's refusal together with the stage's write scope, so that it can choose another
//! path.

use crate::numbering::{self, Content, ServedLines, ShownText};
use crate::path::{NamedPath, WorkspacePath};
use crate::picture::Picture;
use crate::text_file::{Encoding, TextFile};
use crate::truncate;
use glovebox_plugin_sdk::{WriteScope, files};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Number of lines that a read returns by default.
pub(crate) const READ_LINES_DEFAULT: usize = 2000;

/// The folder in which tools work, and its scope.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// Paths that the stage may write. Used only in messages: the host enforces them.
    pub(crate) write_scope: WriteScope,
    /// Absolute paths that stand for the workspace, such as the one that commands see.
    pub(crate) known_as: Vec<String>,
    pub(crate) served: ServedLines,
    /// Part of the write scope that a subagent may write; `None` for the stage itself.
    pub(crate) bounds: Option<WriteScope>,
}

/// The result of reading a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReadFile {
    pub(crate) text: String,
    pub(crate) picture: Option<Picture>,
}

/// A range of lines of a file.
#[derive(Clone, Copy, Debug)]
struct LineRange {
    /// First line, counted from 1.
    first: usize,
    /// Maximum number of lines.
    limit: usize,
}

/// A replacement of one text by another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edit<'a> {
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
    pub(crate) replace_all: bool,
}

/// What a path is to be used for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FileUse<'a> {
    Read,
    List,
    Write(Content<'a>),
}

impl Workspace {
    /// Converts a path of the model to a path relative to the workspace (decision project-path-is-the-workspace).
    ///
    /// # Errors
    /// The path is absolute and outside of the workspace, or it is to be written and this subagent may not write it. The host also
    /// refuses the first kind of path, and records the refusal.
    pub(crate) fn locate<'p>(&self, wanted: FileUse<'_>, path: NamedPath<'p>) -> Result<WorkspacePath<'p>, String> {
        let located = self.relative(wanted, path)?;
        match wanted {
            FileUse::Write(_) => self.check_bounds(located).map(|()| located),
            FileUse::Read | FileUse::List => Ok(located),
        }
    }

    fn relative<'p>(&self, wanted: FileUse<'_>, path: NamedPath<'p>) -> Result<WorkspacePath<'p>, String> {
        self.within(path).ok_or_else(|| {
            have_refused(wanted, path);
            let NamedPath(path) = path;
            let own = self.known_as.first().map(|name| format!(", or below `{name}`")).unwrap_or_default();
            format!("`{path}` is an absolute path outside of the workspace; write it relative to the workspace{own}")
        })
    }

    /// Returns the path relative to the workspace, or `None` if it is absolute and outside of the workspace.
    fn within<'p>(&self, NamedPath(path): NamedPath<'p>) -> Option<WorkspacePath<'p>> {
        if !path.starts_with('/') {
            return Some(WorkspacePath(path));
        }
        let below = |name: &String| path.strip_prefix(name.as_str());
        let below = |name: &String| below(name).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        self.known_as.iter().find_map(below).map(|rest| WorkspacePath(rest.trim_start_matches('/')))
    }

    /// Records which text of a file an earlier stage of the conversation was shown.
    pub(crate) fn remember(&mut self, path: NamedPath<'_>, shown: ShownText<'_>) {
        let path = self.within(path).unwrap_or(WorkspacePath(path.0));
        self.served.remember(path, shown);
    }

    /// Reads a picture, or numbered lines of a text file. `first` counts from 1.
    pub(crate) fn read(&mut self, path: NamedPath<'_>, first: usize, limit: usize) -> Result<ReadFile, String> {
        let path = self.locate(FileUse::Read, path)?;
        match Picture::from_bytes(self.bytes(path)?) {
            Ok(picture) => Ok(ReadFile { text: picture.line(path)?, picture: Some(picture) }),
            Err(bytes) => {
                let text = self.lines(path, &decoded(path, bytes)?, LineRange { first, limit })?;
                Ok(ReadFile { text, picture: None })
            }
        }
    }

    fn lines(&mut self, path: WorkspacePath<'_>, file: &TextFile, range: LineRange) -> Result<String, String> {
        let lines: Vec<&str> = file.lines().collect();
        let first = range.first.max(1);
        if first > lines.len().max(1) {
            return Err(format!("`{path}` has {} lines, so it has no line {first}", lines.len()));
        }
        let end = lines.len().min((first - 1).saturating_add(range.limit));
        let mut shown = numbering::numbered(first, &lines[first - 1..end]);
        if lines.is_empty() {
            shown.push_str("[the file is empty]");
        } else if end < lines.len() {
            shown.push_str(&format!("\n[{} more lines]", lines.len() - end));
        }
        let shown = truncate::READ.keep_ends(&shown);
        self.served.remember(path, ShownText(&shown));
        Ok(shown)
    }

    /// Writes a whole file, without the line numbers that `read_file` added, and with the line ends and the encoding of the file that it
    /// replaces.
    pub(crate) fn write(&mut self, path: NamedPath<'_>, content: Content<'_>) -> Result<String, String> {
        let path = self.locate(FileUse::Write(content), path)?;
        let stripped = self.served.strip(path, content);
        let text = stripped.as_deref().unwrap_or(content.0);
        // The host records a refused read, so a path that cannot be written is not read.
        let old = self.write_scope.contains(path.0).then(|| self.file(path).ok()).flatten();
        let text = old.as_ref().map_or_else(|| text.to_owned(), |old| old.in_the_form_of(text));
        let encoding = old.map_or(Encoding::Utf8, |old| old.encoding);
        // A text with characters that Latin-1 lacks makes the file UTF-8.
        let bytes = encoding.encode(&text).unwrap_or_else(|_| text.into_bytes());
        self.put(path, &bytes)?;
        let note = if stripped.is_some() { "; the line numbers were removed" } else { "" };
        Ok(format!("wrote {} bytes to `{path}`{note}", bytes.len()))
    }

    /// Replaces a text that occurs exactly once, or all of its occurrences.
    pub(crate) fn edit(&mut self, path: NamedPath<'_>, edit: Edit<'_>) -> Result<String, String> {
        let Edit { old, new, replace_all } = edit;
        let path = self.locate(FileUse::Write(Content(new)), path)?;
        if old.is_empty() {
            return Err("`old_string` is empty; use write_file to write a whole file".to_owned());
        }
        let file = self.file(path)?;
        let found = file.occurrences(old);
        let count = found.len();
        let changed = match count {
            0 if Content(old).looks_numbered() => Err(format!(
                "`old_string` does not occur in `{path}`; it has line numbers, which are not part of the file"
            )),
            0 => Err(format!("`old_string` does not occur in `{path}`")),
            1 => Ok(file.replaced(&found, old, new)),
            _ if replace_all => Ok(file.replaced(&found, old, new)),
            _ => {
                Err(format!("`old_string` occurs {count} times in `{path}`; add lines around it, or set `replace_all`"))
            }
        }?;
        self.put(path, &encoded(path, file.encoding, &changed)?)?;
        Ok(format!("replacements in `{path}`: {count}"))
    }

    /// Reads a whole text file.
    pub(crate) fn file(&self, path: WorkspacePath<'_>) -> Result<TextFile, String> {
        decoded(path, self.bytes(path)?)
    }

    /// Reads a whole file of any kind.
    pub(crate) fn bytes(&self, path: WorkspacePath<'_>) -> Result<Vec<u8>, String> {
        fs::read(self.root.join(path.0)).map_err(|error| format!("cannot read `{path}`: {}", spelled(&error)))
    }

    /// Writes a whole file and creates missing folders.
    pub(crate) fn put(&self, path: WorkspacePath<'_>, bytes: &[u8]) -> Result<(), String> {
        self.check_bounds(path)?;
        let place = self.root.join(path.0);
        make_parent(&place).and_then(|()| fs::write(&place, bytes)).map_err(|error| {
            let (is_denied, scope) = (error.kind() == io::ErrorKind::PermissionDenied, &self.write_scope);
            let scope =
                if is_denied && !scope.is_whole() { format!("; this stage may write {scope}") } else { String::new() };
            format!("cannot write `{path}`: {}{scope}", spelled(&error))
        })
    }
}

impl Workspace {
    /// Deletes a file.
    pub(crate) fn remove(&self, path: WorkspacePath<'_>) -> Result<(), String> {
        self.check_bounds(path)?;
        fs::remove_file(self.root.join(path.0)).map_err(|error| format!("cannot delete `{path}`: {}", spelled(&error)))
    }

    /// Refuses a path outside of the subagent's write scope, and any path through a symbolic link.
    pub(crate) fn check_bounds(&self, path: WorkspacePath<'_>) -> Result<(), String> {
        let Some(bounds) = &self.bounds else { return Ok(()) };
        if !bounds.contains(path.0) {
            return Err(format!("cannot write `{path}`: this subagent may write {bounds}"));
        }
        let mut place = self.root.to_owned();
        for name in path.names() {
            place.push(name);
            if fs::symlink_metadata(&place).is_ok_and(|found| found.is_symlink()) {
                return Err(format!(
                    "cannot write `{path}`: the path contains a symbolic link, which a subagent must not follow"
                ));
            }
        }
        Ok(())
    }
}

fn decoded(path: WorkspacePath<'_>, bytes: Vec<u8>) -> Result<TextFile, String> {
    TextFile::decode(bytes).ok_or_else(|| format!("cannot read `{path}`: it is not text in UTF-8 or Latin-1"))
}

/// Encodes the new text of a file.
pub(crate) fn encoded(path: WorkspacePath<'_>, encoding: Encoding, text: &str) -> Result<Vec<u8>, String> {
    encoding.encode(text).map_err(|missing| {
        format!("`{path}` is text in Latin-1, which does not have `{missing}`; write the text without it, or convert the file")
    })
}

/// Passes a refused path to the host, so that the host records the refusal. (`std::fs` would remove the first `/`.)
fn have_refused(wanted: FileUse<'_>, NamedPath(path): NamedPath<'_>) {
    if cfg!(target_family = "wasm") {
        // The host's answer is ignored, because the model gets a different message.
        _ = match wanted {
            FileUse::Read => files::read(path).map(drop),
            FileUse::List => files::list(path).map(drop),
            FileUse::Write(Content(content)) => files::write(path, content),
        };
    }
}

/// Creates missing folders. Existing folders are skipped, because the host would refuse and record the creation of one outside of the
/// scope.
fn make_parent(place: &Path) -> io::Result<()> {
    match place.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => fs::create_dir_all(parent),
        _ => Ok(()),
    }
}

/// Describes an error without the error number of the platform.
pub(crate) fn spelled(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or folder".to_owned(),
        io::ErrorKind::PermissionDenied => "not permitted".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        let (root, served) = (folder.path().to_owned(), ServedLines::default());
        let known_as = vec!["/home/me/proj".to_owned(), "/workspace".to_owned()];
        (folder, Workspace { root, write_scope: WriteScope::from_paths(["src/"]), known_as, served, bounds: None })
    }

    fn read(workspace: &mut Workspace, path: NamedPath<'_>, first: usize, limit: usize) -> Result<String, String> {
        workspace.read(path, first, limit).map(|read| read.text)
    }

    #[test]
    fn what_was_read_can_be_written_back() {
        let (_folder, mut workspace) = workspace();
        workspace.write(NamedPath("src/deep/a.rs"), Content("fn a() {\n}\n")).unwrap();
        let served = read(&mut workspace, NamedPath("src/deep/a.rs"), 1, READ_LINES_DEFAULT).unwrap();
        assert_eq!(served, "  1 | fn a() {\n  2 | }");
        let said = workspace.write(NamedPath("src/deep/a.rs"), Content(&format!("{served}\n"))).unwrap();
        assert_eq!(said, "wrote 11 bytes to `src/deep/a.rs`; the line numbers were removed");
        assert_eq!(workspace.file(WorkspacePath("src/deep/a.rs")).unwrap().text, "fn a() {\n}\n");
        let said = workspace.write(NamedPath("b"), Content("  1 | fn a() {")).unwrap();
        assert_eq!(said, "wrote 8 bytes to `b`; the line numbers were removed");
        let said = workspace.write(NamedPath("b"), Content("1\tfn a() {")).unwrap();
        assert_eq!(said, "wrote 8 bytes to `b`; the line numbers were removed");
        assert_eq!(workspace.write(NamedPath("b"), Content("2\tfn a() {")).unwrap(), "wrote 10 bytes to `b`");
    }

    #[test]
    fn reads_a_part() {
        let (_folder, mut workspace) = workspace();
        workspace.write(NamedPath("a"), Content("1\n2\n3\n4\n")).unwrap();
        assert_eq!(read(&mut workspace, NamedPath("a"), 2, 2).unwrap(), "  2 | 2\n  3 | 3\n[1 more lines]");
        assert_eq!(read(&mut workspace, NamedPath("a"), 4, usize::MAX).unwrap(), "  4 | 4");
        assert_eq!(read(&mut workspace, NamedPath("a"), 0, 1).unwrap(), "  1 | 1\n[3 more lines]");
        assert_eq!(read(&mut workspace, NamedPath("a"), 5, 1).unwrap_err(), "`a` has 4 lines, so it has no line 5");
        workspace.write(NamedPath("empty"), Content("")).unwrap();
        assert_eq!(read(&mut workspace, NamedPath("empty"), 1, 9).unwrap(), "[the file is empty]");
        assert_eq!(
            read(&mut workspace, NamedPath("no"), 1, 9).unwrap_err(),
            "cannot read `no`: no such file or folder"
        );
        fs::write(workspace.root.join("raw"), [0xff, 0xfe]).unwrap();
        assert_eq!(
            read(&mut workspace, NamedPath("raw"), 1, 9).unwrap_err(),
            "cannot read `raw`: it is not text in UTF-8 or Latin-1"
        );
    }

    #[test]
    fn edits_only_what_is_unique() {
        let (_folder, mut workspace) = workspace();
        workspace.write(NamedPath("a"), Content("x y x")).unwrap();
        assert_eq!(
            workspace.edit(NamedPath("a"), Edit { old: "y", new: "$0", replace_all: false }).unwrap(),
            "replacements in `a`: 1"
        );
        assert_eq!(
            workspace.edit(NamedPath("a"), Edit { old: "x", new: "z", replace_all: false }).unwrap_err(),
            "`old_string` occurs 2 times in `a`; add lines around it, or set `replace_all`"
        );
        assert_eq!(
            workspace.edit(NamedPath("a"), Edit { old: "x", new: "z", replace_all: true }).unwrap(),
            "replacements in `a`: 2"
        );
        assert_eq!(workspace.file(WorkspacePath("a")).unwrap().text, "z $0 z");
        assert_eq!(
            workspace.edit(NamedPath("a"), Edit { old: "q", new: "z", replace_all: false }).unwrap_err(),
            "`old_string` does not occur in `a`"
        );
        assert!(
            workspace
                .edit(NamedPath("a"), Edit { old: "  1 | z", new: "z", replace_all: false })
                .unwrap_err()
                .contains("line numbers")
        );
        assert!(
            workspace
                .edit(NamedPath("a"), Edit { old: "", new: "z", replace_all: false })
                .unwrap_err()
                .contains("write_file")
        );
    }

    #[test]
    fn line_ends_byte_order_mark_and_encoding_last() {
        let (folder, mut workspace) = workspace();
        let edit = |workspace: &mut Workspace, old, new| {
            workspace.edit(NamedPath("src/a"), Edit { old, new, replace_all: false })
        };
        fs::create_dir(folder.path().join("src")).unwrap();
        let bytes = || fs::read(folder.path().join("src/a")).unwrap();
        fs::write(folder.path().join("src/a"), "\u{feff}one\r\ntwo\r\nthree\n").unwrap();
        assert_eq!(read(&mut workspace, NamedPath("src/a"), 1, 2).unwrap(), "  1 | one\n  2 | two\n[1 more lines]");
        edit(&mut workspace, "one\ntwo\nthree", "one\n2\nmore\nthree").unwrap();
        assert_eq!(bytes(), "\u{feff}one\r\n2\r\nmore\r\nthree\n".as_bytes());
        fs::write(folder.path().join("src/a"), b"caf\xe9\r\nth\xe9\r\n").unwrap();
        assert_eq!(read(&mut workspace, NamedPath("src/a"), 1, 9).unwrap(), "  1 | café\n  2 | thé");
        edit(&mut workspace, "café\nthé", "café\nlé").unwrap();
        assert_eq!(bytes(), b"caf\xe9\r\nl\xe9\r\n");
        let refused = edit(&mut workspace, "lé", "→").unwrap_err();
        assert!(refused.contains("Latin-1, which does not have `→`"), "{refused}");
        workspace.write(NamedPath("src/a"), Content("é\nx\n")).unwrap();
        assert_eq!(bytes(), b"\xe9\r\nx\r\n");
        workspace.write(NamedPath("src/a"), Content("→\n")).unwrap();
        assert_eq!(bytes(), "→\r\n".as_bytes());
    }

    #[test]
    fn the_projects_own_path_is_the_workspace_and_no_other_absolute_path_is() {
        let (folder, mut workspace) = workspace();
        assert_eq!(
            workspace.write(NamedPath("/home/me/proj/src/a"), Content("x\n")).unwrap(),
            "wrote 2 bytes to `src/a`"
        );
        assert_eq!(read(&mut workspace, NamedPath("/workspace//src/a"), 1, 9).unwrap(), "  1 | x");
        assert_eq!(
            workspace.edit(NamedPath("/home/me/proj/src/a"), Edit { old: "x", new: "y", replace_all: false }).unwrap(),
            "replacements in `src/a`: 1"
        );
        let said = workspace.write(NamedPath("/home/me/proj/src/b"), Content("  1 | x")).unwrap();
        assert_eq!(said, "wrote 1 bytes to `src/b`; the line numbers were removed");
        for path in ["/etc/passwd", "/src/a", "/home/me/project2/a", "/"] {
            let expected = format!(
                "`{path}` is an absolute path outside of the workspace; write it relative to the workspace, or below `/home/me/proj`"
            );
            assert_eq!(workspace.write(NamedPath(path), Content("x")).unwrap_err(), expected);
            assert_eq!(read(&mut workspace, NamedPath(path), 1, 9).unwrap_err(), expected);
            assert_eq!(
                workspace.edit(NamedPath(path), Edit { old: "x", new: "y", replace_all: false }).unwrap_err(),
                expected
            );
        }
        assert!(!folder.path().join("home").exists() && !folder.path().join("etc").exists());
    }

    #[test]
    fn a_write_into_a_file_as_a_folder_is_a_sentence() {
        let (_folder, mut workspace) = workspace();
        workspace.write(NamedPath("a"), Content("x")).unwrap();
        assert!(workspace.write(NamedPath("a/b"), Content("x")).unwrap_err().starts_with("cannot write `a/b`: "));
    }
}
