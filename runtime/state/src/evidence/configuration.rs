//! New configuration in the result of a run: files from which programs take settings or code because of the file names.
//!
//! The known names are in `readers`. No list of names is complete, so every new name that begins with a dot is included
//! too, except for a few harmless ones. Nothing is refused here: a person should look at these files first.

use super::readers::FoldedName;
use glovebox_journal::event::{ChangeOp, FileChange};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A new file or folder from which programs take settings or code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NewConfiguration {
    /// The path relative to the project. A folder ends with `/`.
    pub path: String,
    /// The program that reads the path; null if no program is known and the name only begins with a dot.
    pub reader: Option<&'static str>,
}

/// Names that begin with a dot and that no program loads code from.
const HARMLESS: [&str; 16] = [
    ".gitignore",
    ".gitkeep",
    ".keep",
    ".mailmap",
    ".dockerignore",
    ".eslintignore",
    ".npmignore",
    ".prettierignore",
    ".editorconfig",
    ".clang-format",
    ".nojekyll",
    ".well-known",
    ".nvmrc",
    ".node-version",
    ".python-version",
    ".ruby-version",
];

/// The kind of the entry at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A file or a symbolic link.
    File,
    /// A folder.
    Folder,
}

/// Returns the new configuration among the net changes. `was_there` returns whether a path existed before as this kind:
/// an entry that replaces one of the other kind is new.
pub fn new<'c>(
    changes: impl IntoIterator<Item = &'c FileChange>,
    was_there: impl Fn(&str, EntryKind) -> bool,
) -> Vec<NewConfiguration> {
    let mut found = BTreeMap::new();
    for change in changes.into_iter().filter(|change| !change.op.removes()) {
        let path = change.path.as_str();
        let Some(ReaderName { end, reader }) = ReaderName::for_path(path) else { continue };
        // In a folder that existed before, the file itself is new.
        let ends = path.match_indices('/').map(|(at, _)| at).filter(|at| *at >= end).chain([path.len()]);
        let kind = |end: usize| match end < path.len() || change.op == ChangeOp::Mkdir {
            true => EntryKind::Folder,
            false => EntryKind::File,
        };
        let Some(end) = ends.into_iter().find(|end| !was_there(&path[..*end], kind(*end))) else { continue };
        found.insert(format!("{}{}", &path[..end], if kind(end) == EntryKind::Folder { "/" } else { "" }), reader);
    }
    found.into_iter().map(|(path, reader)| NewConfiguration { path, reader }).collect()
}

/// Returns true if the name of a changed path suggests that a program reads it.
pub fn may_be_new<'c>(changes: impl IntoIterator<Item = &'c FileChange>) -> bool {
    changes.into_iter().any(|change| !change.op.removes() && ReaderName::for_path(change.path.as_str()).is_some())
}

/// The first component of a path whose name suggests that a program reads it.
struct ReaderName {
    /// End of the component in the path, bytes.
    end: usize,
    reader: Option<&'static str>,
}

impl ReaderName {
    fn for_path(path: &str) -> Option<Self> {
        let mut begin = 0;
        for name in path.split('/') {
            let (end, folded) = (begin + name.len(), FoldedName::named(name));
            let is_dotted = folded.begins_with_a_dot() && !HARMLESS.contains(&&*name.to_lowercase());
            let reader = folded.reader().filter(|_| is_dotted || end == path.len());
            let reader = reader.or_else(|| folded.reader_of_folder().filter(|_| end < path.len()));
            if is_dotted || reader.is_some() {
                return Some(Self { end, reader });
            }
            begin = end + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_record::path::ScopePath;

    fn found(before: &[&str], changes: &[(&str, ChangeOp)]) -> Vec<String> {
        let changes = changes.iter().map(|(path, op)| FileChange::bare(ScopePath::parse(path).unwrap(), *op));
        let changes: Vec<_> = changes.collect();
        let named = new(&changes, |path, kind| match kind {
            EntryKind::File => before.contains(&path),
            EntryKind::Folder => before.iter().any(|known| known.strip_suffix('/') == Some(path)),
        });
        assert!(named.is_empty() || may_be_new(&changes));
        assert!(!may_be_new(changes.iter().filter(|change| change.op.removes())), "what is gone is not new");
        named.into_iter().map(|new| format!("{} {}", new.path, new.reader.unwrap_or("-"))).collect()
    }

    #[test]
    fn names_that_run_code_are_found_in_every_folder_and_spelling() {
        for (path, expected) in [
            (".proverc", ".proverc prove"),
            ("out/App.Code-Workspace", "out/App.Code-Workspace VS Code"),
            ("out/.ropeproject/config.py", "out/.ropeproject/ Rope"),
            (".vimspector.json", ".vimspector.json Vimspector"),
            (".ycm_extra_conf.py", ".ycm_extra_conf.py YouCompleteMe"),
            (".octaverc", ".octaverc Octave"),
            (".erlang", ".erlang Erlang"),
            (".latexmkrc", ".latexmkrc latexmk"),
            ("latexmkrc", "latexmkrc latexmk"),
            (".Renviron", ".Renviron R"),
            (".jdbrc", ".jdbrc jdb"),
            ("jdb.ini", "jdb.ini jdb"),
            (".byebugrc", ".byebugrc Byebug"),
            (".rdbgrc", ".rdbgrc rdbg"),
            (".rspec", ".rspec Ruby"),
            ("ansible.cfg", "ansible.cfg Ansible"),
            ("jupyter_notebook_config.py", "jupyter_notebook_config.py Jupyter"),
            (".tmuxinator.yml", ".tmuxinator.yml tmuxinator"),
            ("x.sublime-project", "x.sublime-project Sublime Text"),
            (".run/x.xml", ".run/ IntelliJ IDEA"),
            (".sbtrc", ".sbtrc sbt"),
            ("nuget.config", "nuget.config .NET"),
            ("src/Directory.Build.props", "src/Directory.Build.props .NET"),
            (".agents/a.md", ".agents/ agents"),
            (".agent/a.md", ".agent/ agents"),
            (".kilocode/x", ".kilocode/ Kilo Code"),
            (".roomodes", ".roomodes Roo Code"),
            (".cline/x", ".cline/ Cline"),
            (".qoder/x", ".qoder/ Qoder"),
            (".rovodev/x", ".rovodev/ Rovo Dev"),
            (".factory/x", ".factory/ Factory"),
            (".pi/x", ".pi/ pi"),
            ("conftest.py", "conftest.py pytest"),
            ("build.rs", "build.rs Cargo"),
            ("Makefile", "Makefile make"),
            ("Justfile", "Justfile just"),
            ("package.json", "package.json npm"),
            ("build.sbt", "build.sbt sbt"),
            ("project/plugins.sbt", "project/plugins.sbt sbt"),
            ("buildSrc/src/main/java/A.java", "buildSrc/ Gradle"),
            ("wrangler.toml", "wrangler.toml Wrangler"),
            ("mkdocs.yml", "mkdocs.yml MkDocs"),
            ("docs/conf.py", "docs/conf.py Sphinx"),
            ("confte\u{17f}t.py", "confte\u{17f}t.py pytest"),
            ("MAKEFILE", "MAKEFILE make"),
            ("Makefile.", "Makefile. make"),
            ("\u{200b}.gitignore", "\u{200b}.gitignore -"),
            (".gitignore.", ".gitignore. -"),
            (".never-heard-of/a/b", ".never-heard-of/ -"),
            ("a/.env", "a/.env -"),
        ] {
            assert_eq!(found(&[], &[(path, ChangeOp::Write)]), [expected], "{path}");
        }
    }

    #[test]
    fn the_documentation_lists_the_harmless_names() {
        let page = include_str!("../../../../docs/confinement.md");
        let item = page.split_once("but for a few that name no program:").unwrap().1.split_once(';').unwrap().0;
        let listed: Vec<&str> = item.split('`').skip(1).step_by(2).collect();
        assert_eq!(listed, HARMLESS);
    }

    #[test]
    fn ordinary_files_and_those_that_are_gone_are_none() {
        for path in [
            "src/main.rs",
            "a.b/c",
            "Makefile/a",
            "x/package.json/y",
            ".gitignore",
            "docs/.GitKeep",
            "AGENTS.md",
            "buildSrc",
        ] {
            assert_eq!(found(&[], &[(path, ChangeOp::Write)]), [""; 0], "{path}");
        }
        assert_eq!(found(&[], &[(".x", ChangeOp::Delete), (".d", ChangeOp::Rmdir)]), [""; 0]);
    }

    #[test]
    fn only_what_was_not_there_is_named_by_its_outermost_new_folder() {
        use ChangeOp::{Mkdir, Symlink, Write};
        assert_eq!(found(&[".x"], &[(".x", Write), ("Makefile", Symlink)]), ["Makefile make"]);
        let many = [(".d/a", Write), (".d/b/c", Write), (".d", Mkdir), (".e", Mkdir), (".f/.g", Write)];
        assert_eq!(found(&[], &many), [".d/ -", ".e/ -", ".f/ -"]);
        assert_eq!(found(&[".d/"], &many[..3]), [".d/a -", ".d/b/ -"]);
        assert_eq!(found(&[".d/", ".d/b/"], &many[..2]), [".d/a -", ".d/b/c -"]);
    }
    #[test]
    fn what_replaces_a_file_or_a_folder_by_the_other_is_new() {
        use ChangeOp::{Mkdir, Write};
        assert_eq!(found(&["Makefile/"], &[("Makefile", Write)]), ["Makefile make"]);
        assert_eq!(found(&["Makefile"], &[("Makefile", Write)]), [""; 0]);
        assert_eq!(found(&[".d"], &[(".d", Mkdir), (".d/a", Write)]), [".d/ -"]);
    }
}
