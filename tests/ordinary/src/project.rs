//! The projects in which behaviours run. Each is a script that creates the folder `project` in an empty folder.
//!
//! A project is created anew for each behaviour, and not copied: the programs of the behaviour are part of its first
//! commit, and a linked worktree contains absolute paths.

/// The name and the script of each project.
const PROJECTS: [(&str, &str); 9] = [
    ("plain", include_str!("../projects/plain.sh")),
    ("detached", include_str!("../projects/detached.sh")),
    ("large", include_str!("../projects/large.sh")),
    ("odd", include_str!("../projects/odd.sh")),
    ("shallow", include_str!("../projects/shallow.sh")),
    ("sparse", include_str!("../projects/sparse.sh")),
    ("submodule", include_str!("../projects/submodule.sh")),
    ("venv", include_str!("../projects/venv.sh")),
    ("worktree", include_str!("../projects/worktree.sh")),
];

/// Returns the script of a project.
pub fn find(name: &str) -> Option<&'static str> {
    PROJECTS.iter().find(|(known, _)| *known == name).map(|(_, script)| *script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_each_file_of_the_folder() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/projects");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), PROJECTS.len());
        assert!(find("absent").is_none());
    }
}
