//! `apply_patch`: changes to several files in one text, in the format on which OpenAI's models were trained (v4a).
//!
//! Either every change fits and all files are written, or no file is written: each new text is computed before the first write. The
//! lines of a hunk are looked for after the previous hunk. White space at the ends of lines may differ. Lines that a hunk only repeats
//! stay as they are, and added lines get the line ends around them.

use crate::files::{FileUse, Workspace, encoded};
use crate::numbering::Content;
use crate::path::{NamedPath, WorkspacePath};
use crate::text_file::line_ends;
use std::iter::Peekable;
use std::str::Lines;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";

/// A parsed patch.
#[derive(Debug, PartialEq)]
pub(crate) struct Patch<'a>(Vec<Change<'a>>);

#[derive(Debug, PartialEq)]
enum Change<'a> {
    Add { path: NamedPath<'a>, text: String },
    Delete { path: NamedPath<'a> },
    Update { path: NamedPath<'a>, moved: Option<NamedPath<'a>>, hunks: Vec<Hunk<'a>> },
}

/// Consecutive lines and their replacement.
#[derive(Debug, Default, PartialEq)]
struct Hunk<'a> {
    /// A line above the hunk, such as the head of a function.
    under: Option<&'a str>,
    old: Vec<&'a str>,
    new: Vec<NewLine<'a>>,
    at_end: bool,
}

/// A line after a hunk was applied.
#[derive(Debug, PartialEq)]
enum NewLine<'a> {
    /// The line at this position of the old lines.
    Kept(usize),
    Added(&'a str),
}

/// A line of a file with its line end, which is empty only in the last line.
#[derive(Clone, Copy)]
struct Line<'a> {
    text: &'a str,
    end: &'a str,
}

impl<'a> Patch<'a> {
    /// Parses a patch.
    ///
    /// # Errors
    /// The error text is a sentence for the model that says what was not understood and what was expected.
    pub(crate) fn parse(Content(text): Content<'a>) -> Result<Self, String> {
        let mut lines = text.trim().lines().peekable();
        if lines.next().map(str::trim_end) != Some(BEGIN) {
            return Err(format!("the patch does not begin with `{BEGIN}`"));
        }
        let mut changes = Vec::new();
        loop {
            let line = lines.next().ok_or_else(|| format!("the patch does not end with `{END}`"))?;
            if line.trim_end() == END {
                break;
            }
            changes.push(Change::read(line, &mut lines)?);
        }
        if changes.is_empty() { Err("the patch changes no file".to_owned()) } else { Ok(Self(changes)) }
    }

    /// Applies the patch, and returns a description of the changes.
    pub(crate) fn apply(&self, workspace: &Workspace) -> Result<String, String> {
        let done: Vec<_> = self.0.iter().map(|change| change.resolve(workspace)).collect::<Result<_, _>>()?;
        let mut named: Vec<Vec<&str>> = Vec::new();
        for path in done.iter().flat_map(FileEdit::paths) {
            let names: Vec<&str> = path.names().collect();
            if named.contains(&names) {
                return Err(format!("the patch names `{path}` twice: put all changes of a file into one section"));
            }
            named.push(names);
        }
        let mut said = Vec::new();
        for change in done {
            said.push(change.write(workspace)?);
        }
        Ok(said.join("\n"))
    }
}

impl<'a> Change<'a> {
    fn read(line: &'a str, lines: &mut Peekable<Lines<'a>>) -> Result<Self, String> {
        if let Some(path) = line.strip_prefix(ADD) {
            let mut text = String::new();
            while let Some(added) = lines.next_if(|line| !line.starts_with("*** ")) {
                let added =
                    added.strip_prefix('+').ok_or_else(|| format!("`{added}`: lines of a new file begin with `+`"))?;
                text.push_str(added);
                text.push('\n');
            }
            return Ok(Self::Add { path: NamedPath(path.trim()), text });
        }
        if let Some(path) = line.strip_prefix(DELETE) {
            return Ok(Self::Delete { path: NamedPath(path.trim()) });
        }
        let Some(path) = line.strip_prefix(UPDATE) else {
            return Err(format!("`{line}`: expected `{ADD}PATH`, `{DELETE}PATH`, `{UPDATE}PATH` or `{END}`"));
        };
        let moved = lines.next_if(|line| line.starts_with(MOVE)).map(|line| NamedPath(line[MOVE.len()..].trim()));
        let mut hunks = Vec::new();
        while let Some(hunk) = Hunk::read(lines)? {
            hunks.push(hunk);
        }
        match hunks.is_empty() && moved.is_none() {
            true => Err(format!("`{line}` has no lines to change")),
            false => Ok(Self::Update { path: NamedPath(path.trim()), moved, hunks }),
        }
    }

    fn resolve(&self, workspace: &Workspace) -> Result<FileEdit<'a>, String> {
        let place = |path: NamedPath<'a>, text: &str| workspace.locate(FileUse::Write(Content(text)), path);
        match self {
            Self::Add { path, text } => {
                let path = place(*path, text)?;
                match workspace.bytes(path).is_ok() {
                    true => Err(format!("`{path}` exists already; change it with `{UPDATE}{path}`")),
                    false => {
                        Ok(FileEdit { write: Some((path, text.clone().into_bytes())), remove: None, verb: "added" })
                    }
                }
            }
            Self::Delete { path } => {
                let path = place(*path, "")?;
                workspace.bytes(path)?;
                Ok(FileEdit { write: None, remove: Some(path), verb: "deleted" })
            }
            Self::Update { path, moved, hunks } => {
                let from = workspace.locate(FileUse::Read, *path)?;
                let file = workspace.file(from)?;
                let text = changed(&file.text, hunks).map_err(|reason| format!("`{from}`: {reason}"))?;
                let to = place(moved.unwrap_or(*path), &text)?;
                let bytes = encoded(from, file.encoding, &text)?;
                let remove = Some(from).filter(|from| !from.names().eq(to.names()));
                remove.map_or(Ok(()), |from| workspace.check_bounds(from))?;
                if remove.is_some() && workspace.bytes(to).is_ok() {
                    return Err(format!("`{to}` exists already; change it with `{UPDATE}{to}`"));
                }
                Ok(FileEdit { write: Some((to, bytes)), remove, verb: "updated" })
            }
        }
    }
}

/// A change that fits.
struct FileEdit<'a> {
    write: Option<(WorkspacePath<'a>, Vec<u8>)>,
    remove: Option<WorkspacePath<'a>>,
    verb: &'static str,
}

impl<'a> FileEdit<'a> {
    /// Returns the paths that the change writes and removes.
    fn paths(&self) -> impl Iterator<Item = WorkspacePath<'a>> + use<'a> {
        self.write.as_ref().map(|(path, _)| *path).into_iter().chain(self.remove)
    }

    fn write(&self, workspace: &Workspace) -> Result<String, String> {
        if let Some((path, bytes)) = &self.write {
            workspace.put(*path, bytes)?;
        }
        if let Some(path) = self.remove {
            workspace.remove(path)?;
        }
        let path = self.write.as_ref().map(|(path, _)| *path).or(self.remove);
        Ok(path.map_or_else(String::new, |path| format!("{} `{path}`", self.verb)))
    }
}

impl<'a> Hunk<'a> {
    /// Reads the next hunk of a file. Returns `None` if another file or the end of the patch follows.
    fn read(lines: &mut Peekable<Lines<'a>>) -> Result<Option<Self>, String> {
        if lines.peek().is_none_or(|line| line.starts_with("*** ")) {
            return Ok(None);
        }
        let mut hunk = Self::default();
        if let Some(head) = lines.next_if(|line| line.starts_with("@@")) {
            hunk.under = Some(head[2..].trim()).filter(|head| !head.is_empty());
        }
        while let Some(line) = lines.next_if(|line| !line.starts_with("@@") && !line.starts_with("*** ")) {
            match line.split_at_checked(1) {
                Some((" ", text)) => hunk.keep(text),
                Some(("-", text)) => hunk.old.push(text),
                Some(("+", text)) => hunk.new.push(NewLine::Added(text)),
                None => hunk.keep(""),
                Some(_) => return Err(format!("`{line}`: lines of a change begin with ` `, `-` or `+`")),
            }
        }
        hunk.at_end = lines.next_if(|line| line.trim_end() == END_OF_FILE).is_some();
        match hunk.old.is_empty() && hunk.new.is_empty() {
            true => Err("a change has no lines after `@@`".to_owned()),
            false => Ok(Some(hunk)),
        }
    }

    /// Returns the new lines of the change at a place. An added line gets the line end of the line that it replaces or precedes.
    fn lines_at<'b>(&'b self, lines: &[Line<'b>], at: usize, usual: &'b str) -> Vec<Line<'b>> {
        let mut next = at;
        let mut new = Vec::new();
        for line in &self.new {
            new.push(match line {
                NewLine::Kept(index) => {
                    next = at + index + 1;
                    lines[at + index]
                }
                NewLine::Added(text) => {
                    let beside = lines.get(next).or(lines.last());
                    Line { text, end: beside.map_or(usual, |line| line.end) }
                }
            });
        }
        new
    }

    /// Adds a line that the change repeats.
    fn keep(&mut self, text: &'a str) {
        self.new.push(NewLine::Kept(self.old.len()));
        self.old.push(text);
    }
}

/// Returns the text after all hunks were applied in order. The file ends with a line end exactly if it did before, or was empty.
fn changed(text: &str, hunks: &[Hunk<'_>]) -> Result<String, String> {
    let mark = &text[..text.len() - text.trim_start_matches('\u{feff}').len()];
    let own = &text[mark.len()..];
    let usual = line_ends(own).next().unwrap_or("\n");
    let mut lines: Vec<Line<'_>> = own.split_inclusive('\n').map(Line::read).collect();
    let has_end = lines.last().is_none_or(|line| !line.end.is_empty());
    let mut from = 0;
    for hunk in hunks {
        if let Some(head) = hunk.under {
            let found = lines[from..].iter().position(|line| line.text.trim() == head);
            from += 1 + found.ok_or_else(|| format!("the line `{head}` was not found"))?;
        }
        let at = match (hunk.old.is_empty(), hunk.at_end) {
            (true, false) if hunk.under.is_some() => from,
            (true, _) => lines.len(),
            (false, at_end) => place(&lines, from, &hunk.old, at_end)
                .ok_or_else(|| format!("these lines were not found, read the file again:\n{}", hunk.old.join("\n")))?,
        };
        let new = hunk.lines_at(&lines, at, usual);
        lines.splice(at..at + hunk.old.len(), new);
        from = at + hunk.new.len();
    }
    let last = lines.len();
    let lines = lines.iter().zip(1..).map(|(line, number)| match number == last && !has_end {
        true => line.text.to_owned(),
        false => format!("{}{}", line.text, if line.end.is_empty() { usual } else { line.end }),
    });
    Ok(mark.to_owned() + &lines.collect::<String>())
}

impl<'a> Line<'a> {
    /// Separates a line from its line end.
    fn read(line: &'a str) -> Self {
        let end = line_ends(line).next().unwrap_or_default();
        Self { text: &line[..line.len() - end.len()], end }
    }
}

/// Finds the position of lines. Compares them exactly, then without white space at the end, then without white space at both ends.
fn place(lines: &[Line<'_>], from: usize, old: &[&str], at_end: bool) -> Option<usize> {
    let equal: [fn(&str, &str) -> bool; 3] = [
        |one, other| one == other,
        |one, other| one.trim_end() == other.trim_end(),
        |one, other| one.trim() == other.trim(),
    ];
    let last = lines.len().checked_sub(old.len())?;
    let first = if at_end { last.max(from) } else { from };
    equal.iter().find_map(|equal| {
        let stands = |at: &usize| lines[*at..].iter().zip(old).all(|(one, other)| equal(one.text, other));
        (first..=last).find(stands)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbering::ServedLines;
    use glovebox_plugin_sdk::WriteScope;
    use std::fs;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.rs"), "fn one() {\n    1\n}\n\nfn two() {\n    1\n}\n").unwrap();
        fs::write(folder.path().join("old.txt"), "x\n").unwrap();
        let root = folder.path().to_owned();
        (
            folder,
            Workspace {
                root,
                write_scope: WriteScope::from_paths(["./"]),
                known_as: Vec::new(),
                served: ServedLines::default(),
                bounds: None,
            },
        )
    }

    fn apply(workspace: &Workspace, patch: &str) -> Result<String, String> {
        Patch::parse(Content(patch))?.apply(workspace)
    }

    #[test]
    fn files_are_added_updated_moved_and_deleted() {
        let (folder, workspace) = workspace();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).ok();
        let patch = "*** Begin Patch\n*** Add File: b/c.txt\n+new\n+\n*** Update File: a.rs\n@@ fn two() {\n-    1\n+    2\n }\n\
                     *** Delete File: old.txt\n*** End Patch\n";
        assert_eq!(apply(&workspace, patch).unwrap(), "added `b/c.txt`\nupdated `a.rs`\ndeleted `old.txt`");
        assert_eq!(read("a.rs").unwrap(), "fn one() {\n    1\n}\n\nfn two() {\n    2\n}\n");
        assert_eq!((read("b/c.txt").unwrap().as_str(), read("old.txt")), ("new\n\n", None));
        let moved = "*** Begin Patch\n*** Update File: a.rs\n*** Move to: d.rs\n@@\n fn one() {  \n-    1\n+    9\n@@\n+// end\n*** End Patch";
        assert_eq!(apply(&workspace, moved).unwrap(), "updated `d.rs`");
        assert!(read("a.rs").is_none() && read("d.rs").unwrap().ends_with("// end\n"));
    }

    #[test]
    fn a_patch_changes_only_its_lines() {
        let check = |before: &[u8], hunk: &str, after: &[u8]| {
            let (folder, workspace) = workspace();
            fs::write(folder.path().join("a.rs"), before).unwrap();
            let patch = format!("*** Begin Patch\n*** Update File: a.rs\n{hunk}\n*** End Patch");
            apply(&workspace, &patch).unwrap();
            let found = fs::read(folder.path().join("a.rs")).unwrap();
            assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(after), "{hunk}");
        };
        check(b"a\r\nb\r\nc\r\n", "@@\n a\n-b\n+B\n+B2\n c", b"a\r\nB\r\nB2\r\nc\r\n");
        check(b"a  \r\nb\nc", "@@\n a\n-b\n+B", b"a  \r\nB\nc");
        check(b"a\r\nb", "@@\n-b\n+B\n+C", b"a\r\nB\r\nC");
        check(b"a\nb", "@@\n+c", b"a\nb\nc");
        check("\u{feff}a\nb\n".as_bytes(), "@@\n-a\n+x", "\u{feff}x\nb\n".as_bytes());
        check(b"caf\xe9\nb\n", "@@\n café\n-b\n+x", b"caf\xe9\nx\n");
        check(b"a\n", "@@\n-a", b"");
        check(b"", "@@\n+a", b"a\n");
    }

    #[test]
    fn a_patch_that_does_not_fit_changes_nothing() {
        let (folder, workspace) = workspace();
        let before = fs::read_to_string(folder.path().join("a.rs")).unwrap();
        let check = |middle: &str, expected: &str| {
            let patch = format!("*** Begin Patch\n*** Add File: new.txt\n+x\n{middle}\n*** End Patch");
            let reason = apply(&workspace, &patch).unwrap_err();
            assert!(reason.contains(expected), "{middle}: {reason}");
            assert!(!folder.path().join("new.txt").exists(), "{middle}");
            assert_eq!(fs::read_to_string(folder.path().join("a.rs")).unwrap(), before);
        };
        check("*** Update File: a.rs\n@@\n-three\n+four", "these lines were not found");
        check("*** Update File: a.rs\n@@ fn three() {\n-    1", "the line `fn three() {` was not found");
        check("*** Update File: no.rs\n@@\n-a\n+b", "cannot read `no.rs`");
        check("*** Update File: a.rs", "has no lines to change");
        check("*** Update File: a.rs\n@@\nfn one", "lines of a change begin with");
        check("*** Add File: old.txt\n+x", "exists already");
        check("*** Add File: ./new.txt\n+y", "the patch names `./new.txt` twice");
        let section = "*** Update File: a.rs\n@@\n fn one() {\n-    1\n+    9";
        check(&format!("{section}\n{section}"), "the patch names `a.rs` twice");
        check("*** Update File: a.rs\n*** Move to: old.txt", "`old.txt` exists already");
        check("*** Add File: y.txt\nx", "lines of a new file begin with `+`");
        check("*** Delete File: none.txt", "cannot read `none.txt`");
        check("*** Rename File: x", "expected `*** Add File: PATH`");
        check("*** Update File: /etc/passwd\n@@\n-root\n+toor", "is an absolute path outside");
        assert!(apply(&workspace, "*** Begin Patch\n*** End Patch").unwrap_err().contains("changes no file"));
        assert!(apply(&workspace, "hello").unwrap_err().contains("does not begin with"));
        assert!(apply(&workspace, "*** Begin Patch\n*** Add File: x\n+y").unwrap_err().contains("does not end with"));
    }

    #[test]
    fn no_text_breaks_the_reader() {
        let words = [
            "*** Begin Patch",
            "*** Update File: a.rs",
            "@@",
            "@@ fn two() {",
            "-    1",
            "+é",
            " }",
            "",
            "*** End of File",
            "*** End Patch",
            "é",
        ];
        let (_folder, workspace) = workspace();
        for seed in 0..20_000_u64 {
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mut text = String::from("*** Begin Patch\n*** Update File: a.rs\n");
            for _ in 0..6 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.push_str(words[(state >> 33) as usize % words.len()]);
                text.push('\n');
            }
            if let Ok(patch) = Patch::parse(Content(&text)) {
                // Only resolved and not written, so that the file is the same for the next patch.
                patch.0.iter().for_each(|change| drop(change.resolve(&workspace)));
            }
        }
    }
}
