//! Searches for files by name and for lines by regular expression.
//!
//! A search visits only what the host shows, follows no symbolic links, skips `.git`, and is limited.

use crate::files::spelled;
use crate::path::WorkspacePath;
use crate::text_file::TextFile;
use glovebox_plugin_sdk::pattern::Pattern;
use regex_lite::RegexBuilder;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Maximum number of files and folders that one search visits.
const ENTRIES_MAX: usize = 50_000;

/// The arguments of `grep`.
#[derive(Debug)]
pub(crate) struct Query<'a> {
    pub(crate) expression: &'a str,
    pub(crate) include: Option<&'a str>,
    pub(crate) ignore_case: bool,
}

/// Returns the files below a folder that match a pattern, in the order of their paths.
pub(crate) fn glob(root: &Path, below: WorkspacePath<'_>, pattern: WorkspacePath<'_>) -> Result<Vec<String>, String> {
    let pattern = Pattern::parse(pattern.0)?;
    let base = prefix(below);
    let inside = |path: &String| pattern.matches(path.strip_prefix(&base).unwrap_or(path));
    Ok(walk(root, below)?.into_iter().filter(inside).collect())
}

/// Returns the matching lines of a file, or of all files below a folder, as `path:line: text`. Files that are not text are skipped.
pub(crate) fn grep(root: &Path, below: WorkspacePath<'_>, query: &Query<'_>) -> Result<Vec<String>, String> {
    let expression = RegexBuilder::new(query.expression).case_insensitive(query.ignore_case).build();
    let expression = expression.map_err(|error| format!("`pattern` is not a regular expression: {error}"))?;
    let include = query.include.map(Pattern::parse).transpose()?;
    let single = root.join(below.0).is_file();
    let files = if single { BTreeSet::from([below.0.to_owned()]) } else { walk(root, below)? };
    let mut found = Vec::new();
    for path in files.iter().filter(|path| include.as_ref().is_none_or(|include| include.matches(path))) {
        let Some(file) = fs::read(root.join(path)).ok().and_then(TextFile::decode) else { continue };
        let hits = file.lines().zip(1..).filter(|(line, _)| expression.is_match(line));
        found.extend(hits.map(|(line, number): (&str, usize)| format!("{path}:{number}: {line}")));
    }
    Ok(found)
}

fn walk(root: &Path, below: WorkspacePath<'_>) -> Result<BTreeSet<String>, String> {
    let (mut files, mut seen, mut folders) = (BTreeSet::new(), 0, vec![prefix(below)]);
    while let Some(folder) = folders.pop() {
        let is_base = seen == 0;
        let entries = match fs::read_dir(root.join(&folder)) {
            Ok(entries) => entries,
            Err(error) if is_base => return Err(format!("cannot list `{below}`: {}", spelled(&error))),
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            seen += 1;
            if seen > ENTRIES_MAX {
                return Err(format!("there are more than {ENTRIES_MAX} files; search in a smaller folder"));
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && name != ".git" => folders.push(format!("{folder}{name}/")),
                Ok(kind) if kind.is_file() => _ = files.insert(format!("{folder}{name}")),
                _ => {}
            }
        }
    }
    Ok(files)
}

/// Returns the text before every path below a folder: empty for the root, and otherwise with a `/` at the end.
fn prefix(below: WorkspacePath<'_>) -> String {
    below.names().map(|part| format!("{part}/")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in
            [("src/a.rs", "fn A() {}\nlet x = 1;\n"), ("src/deep/b.rs", "// a\n"), (".git/c.rs", "fn A"), ("d.md", "a")]
        {
            let place = folder.path().join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }
        fs::write(folder.path().join("raw"), [b'a', 0xff, 0]).unwrap();
        folder
    }

    #[test]
    fn finds_files_in_order() {
        let tree = tree();
        let check = |below: &str, pattern: &str, expected: &[&str]| {
            assert_eq!(
                glob(tree.path(), WorkspacePath(below), WorkspacePath(pattern)).unwrap(),
                expected,
                "{pattern} below {below}"
            );
        };
        check("", "*.rs", &["src/a.rs", "src/deep/b.rs"]);
        check("./src/", "*.rs", &["src/a.rs", "src/deep/b.rs"]);
        check("src", "deep/*", &["src/deep/b.rs"]);
        check(".", "*/*.rs", &["src/a.rs"]);
        check("", "none", &[]);
        assert_eq!(
            glob(tree.path(), WorkspacePath("no"), WorkspacePath("*")).unwrap_err(),
            "cannot list `no`: no such file or folder"
        );
    }

    #[test]
    fn finds_lines() {
        let tree = tree();
        let check = |below: &str, query: Query<'_>, expected: &[&str]| {
            assert_eq!(grep(tree.path(), WorkspacePath(below), &query).unwrap(), expected, "{query:?}");
        };
        let plain = Query { expression: r"\ba\b", include: None, ignore_case: false };
        check("", plain, &["d.md:1: a", "src/deep/b.rs:1: // a"]);
        check("src", Query { expression: "a", include: Some("a.*"), ignore_case: true }, &["src/a.rs:1: fn A() {}"]);
        check("src/a.rs", Query { expression: "x", include: None, ignore_case: false }, &["src/a.rs:2: let x = 1;"]);
        let wrong = Query { expression: "(", include: None, ignore_case: false };
        assert!(
            grep(tree.path(), WorkspacePath(""), &wrong)
                .unwrap_err()
                .starts_with("`pattern` is not a regular expression")
        );
    }

    #[cfg(unix)]
    #[test]
    fn follows_no_link() {
        let tree = tree();
        std::os::unix::fs::symlink("/etc", tree.path().join("out")).unwrap();
        std::os::unix::fs::symlink("..", tree.path().join("src/up")).unwrap();
        assert_eq!(
            glob(tree.path(), WorkspacePath(""), WorkspacePath("**")).unwrap(),
            ["d.md", "raw", "src/a.rs", "src/deep/b.rs"]
        );
    }
}
