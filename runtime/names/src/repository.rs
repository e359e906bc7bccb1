//! Names that make git treat a folder as a repository, whatever the folder is called.
//!
//! Git runs commands that a repository's `config` and `hooks` name, and it searches for a repository in the current folder and in
//! every folder above it. So these names are checked in every folder. They are compared as in [`crate::protected`]. This module
//! sees the names in one folder; it reads no files.

use crate::protected::fold;

/// The role of a name in the folder of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Names the current branch or commit.
    Head,
    /// The folder of the objects.
    Objects,
    /// The folder of the branches.
    Refs,
    /// Names the folder that contains the objects and the branches.
    CommonDir,
    /// Settings, which can name programs to run.
    Config,
    /// Another name at which git finds programs to run, or more repositories. It does not make a folder a repository.
    Inner,
}

impl Part {
    /// Returns the role of a name in the folder of a repository. `None` for most names.
    pub fn named(name: &str) -> Option<Self> {
        Some(match &*fold(name) {
            "head" => Self::Head,
            "objects" => Self::Objects,
            "refs" => Self::Refs,
            "commondir" => Self::CommonDir,
            "config" => Self::Config,
            "config.worktree" | "hooks" | "info" | "modules" | "worktrees" => Self::Inner,
            _ => return None,
        })
    }

    /// Returns true if a change at this name can make git run another program, in a folder that is already a repository.
    pub fn names_programs(self) -> bool {
        !matches!(self, Self::Objects | Self::Refs)
    }
}

/// The type of the entry at a part's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A folder.
    Folder,
    /// A file or a link that names a branch or a commit, or that could name one.
    Reference,
    /// Any other file or link.
    Other,
}

/// Returns the names that make a folder a repository, for messages. `None` if the folder is not a repository.
pub fn shape(parts: &[(Part, Kind)]) -> Option<&'static str> {
    let has = |part: Part| parts.iter().any(|(found, _)| *found == part);
    let has_file = |part: Part| parts.iter().any(|(found, kind)| *found == part && *kind != Kind::Folder);
    let has_reference = parts.contains(&(Part::Head, Kind::Reference));
    if has_file(Part::Head) && has(Part::Objects) && has(Part::Refs) {
        Some("`HEAD` beside `objects` and `refs`")
    } else if has_file(Part::Head) && has_file(Part::CommonDir) {
        Some("`HEAD` beside `commondir`")
    } else if has_reference && has_file(Part::Config) {
        Some("a `HEAD` that names a branch or a commit, beside `config`")
    } else {
        None
    }
}

/// Returns true if the content of a `HEAD` file names a branch or a commit. The first 64 bytes of the content are enough.
pub fn names_reference(content: &[u8]) -> bool {
    const NAME_DIGITS: usize = 40;
    let is_name = content.get(..NAME_DIGITS).is_some_and(|name| name.iter().all(u8::is_ascii_hexdigit));
    is_name || content.starts_with(b"ref:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape_of(entries: &[(&str, Kind)]) -> bool {
        let parts: Vec<_> =
            entries.iter().filter_map(|(name, kind)| Part::named(name).map(|part| (part, *kind))).collect();
        shape(&parts).is_some()
    }

    #[test]
    fn what_git_takes_for_a_repository_is_found_in_every_spelling() {
        use Kind::{Folder, Other, Reference};
        let repositories: &[&[(&str, Kind)]] = &[
            &[("HEAD", Reference), ("objects", Folder), ("refs", Folder)],
            &[("HEAD", Other), ("objects", Other), ("refs", Other)],
            &[("head", Reference), ("OBJECTS.", Folder), ("Re\u{200c}fs", Folder)],
            &[("HEAD", Other), ("commondir", Other)],
            &[("HEAD ", Reference), ("config::$DATA", Other)],
        ];
        repositories.iter().for_each(|entries| assert!(shape_of(entries), "{entries:?}"));
        let others: &[&[(&str, Kind)]] = &[
            &[("objects", Folder), ("refs", Folder), ("config", Other)],
            &[("HEAD", Folder), ("objects", Folder), ("refs", Folder)],
            &[("HEAD", Other), ("config", Other)],
            &[("HEAD", Reference), ("config", Folder)],
            &[("HEAD", Reference), ("objects", Folder), ("hooks", Folder)],
            &[("HEAD.md", Reference), ("objects", Folder), ("refs", Folder)],
        ];
        others.iter().for_each(|entries| assert!(!shape_of(entries), "{entries:?}"));
    }

    #[test]
    fn each_name_of_a_repository_is_known_and_the_data_in_it_runs_nothing() {
        for (name, part, runs) in [
            ("HEAD", Some(Part::Head), true),
            ("objects", Some(Part::Objects), false),
            ("refs", Some(Part::Refs), false),
            ("commondir", Some(Part::CommonDir), true),
            ("config", Some(Part::Config), true),
            ("config.worktree", Some(Part::Inner), true),
            ("hooks", Some(Part::Inner), true),
            ("info", Some(Part::Inner), true),
            ("modules", Some(Part::Inner), true),
            ("worktrees", Some(Part::Inner), true),
            ("index", None, false),
        ] {
            assert_eq!(Part::named(name), part);
            assert_eq!(part.is_some_and(Part::names_programs), runs, "{name}");
        }
    }

    #[test]
    fn a_head_names_a_branch_or_a_commit() {
        let digits = [b'a'; 40];
        [b"ref: refs/heads/m".as_slice(), b"ref:\trefs/x", &digits]
            .iter()
            .for_each(|text| assert!(names_reference(text)));
        [b"".as_slice(), b" ref: x", &digits[1..], b"# Heading"]
            .iter()
            .for_each(|text| assert!(!names_reference(text)));
    }
}
