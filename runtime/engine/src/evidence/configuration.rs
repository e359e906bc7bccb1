//! New configuration of a run: files that programs take settings or code from because of their names.
//!
//! Known names stand in `readers`. No list of names is complete, so each new name that begins with a dot counts as well, but for a few
//! that name no program. Nothing is refused here: a person should see these files before all others.

use super::readers;
use crate::event::{ChangeOp, FileChange};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A new file or folder from which programs take settings or code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NewConfiguration {
    /// Relative to the project. A folder ends with `/`.
    pub path: String,
    /// Who reads it; null if only its name, which begins with a dot, says that somebody may.
    pub reader: Option<&'static str>,
}

/// Names that begin with a dot and name no program.
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

/// The configuration among what changes leave in the end. `is_there` knows the files and folders of before.
pub fn new<'c>(
    changes: impl IntoIterator<Item = &'c FileChange>,
    is_there: impl Fn(&str) -> bool,
) -> Vec<NewConfiguration> {
    let mut found = BTreeMap::new();
    for change in changes.into_iter().filter(|change| !change.op.removes()) {
        let path = change.path.as_str();
        let Some(Telling { end, reader }) = Telling::of(path) else { continue };
        // A file in a folder that was there is new by itself.
        let ends = path.match_indices('/').map(|(at, _)| at).filter(|at| *at >= end).chain([path.len()]);
        let Some(end) = ends.into_iter().find(|end| !is_there(&path[..*end])) else { continue };
        let is_folder = end < path.len() || change.op == ChangeOp::Mkdir;
        found.insert(format!("{}{}", &path[..end], if is_folder { "/" } else { "" }), reader);
    }
    found.into_iter().map(|(path, reader)| NewConfiguration { path, reader }).collect()
}

/// True if some path among changes has such a name.
pub fn may_be_new<'c>(changes: impl IntoIterator<Item = &'c FileChange>) -> bool {
    changes.into_iter().any(|change| !change.op.removes() && Telling::of(change.path.as_str()).is_some())
}

/// The first name of a path that says that a program reads it.
struct Telling {
    /// Where the name ends.
    end: usize,
    reader: Option<&'static str>,
}

impl Telling {
    fn of(path: &str) -> Option<Self> {
        let mut begin = 0;
        for name in path.split('/') {
            let (end, lower) = (begin + name.len(), name.to_lowercase());
            let is_dotted = lower.starts_with('.') && !HARMLESS.contains(&&*lower);
            let reader = readers::anybody(&lower).filter(|_| is_dotted || end == path.len());
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
        let named = new(&changes, |path| before.contains(&path));
        assert!(named.is_empty() || may_be_new(&changes));
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
            (".never-heard-of/a/b", ".never-heard-of/ -"),
            ("a/.env", "a/.env -"),
        ] {
            assert_eq!(found(&[], &[(path, ChangeOp::Write)]), [expected], "{path}");
        }
    }

    #[test]
    fn the_documentation_lists_every_harmless_name() {
        let page = include_str!("../../../../docs/confinement.md");
        HARMLESS
            .iter()
            .for_each(|name| assert!(page.contains(&format!("`{name}`")), "docs/confinement.md lacks {name}"));
    }

    #[test]
    fn ordinary_files_and_those_that_are_gone_are_none() {
        for path in
            ["src/main.rs", "a.b/c", "Makefile/a", "x/package.json/y", ".gitignore", "docs/.GitKeep", "AGENTS.md"]
        {
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
        assert_eq!(found(&[".d"], &many[..3]), [".d/a -", ".d/b/ -"]);
        assert_eq!(found(&[".d", ".d/b"], &many[..2]), [".d/a -", ".d/b/c -"]);
    }
}
