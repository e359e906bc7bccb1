//! Files that a stage was not allowed to write, grouped by folder: one entry and one remedy for each group.
//!
//! A build writes hundreds of files into one folder, and a person needs one line. The text of a reason comes from the
//! sandbox, never from a stage. The paths come from the stage and are passed on unchanged.

use std::collections::BTreeSet;

/// Beginning of the reason for a path that no write grant covers.
const OUTSIDE: &str = "not in the write scope; ";
/// Beginning of reasons that need no remedy, because files in scratch folders are always dropped.
const SCRATCH: &str = "scratch: ";
/// Beginning of the reason for a granted write that was dropped.
const DROPPED: &str = "dropped: ";

/// The remedy for dropped writes.
const KEEP_DROPPED: &str = "to keep them, set `scenario_writes=\"commit\"`; to let the stage write none, set `allowed_write_paths=\"\"`; \
                            if the stage runs no hold-outs, set `holdouts=false`";

/// A group of files in the same folder with the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded<'a> {
    /// The path of a single file, or the common folder of several files with a final `/`. For scratch files, the first
    /// path.
    pub at: String,
    /// Number of different files.
    pub files: usize,
    /// The reason why the files were not committed.
    pub reason: &'a str,
    paths: BTreeSet<&'a str>,
}

impl<'a> Folded<'a> {
    /// Groups files, given as path and reason. The groups are in the order of their first file.
    pub fn group(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Self> {
        let mut folded: Vec<Self> = Vec::new();
        for (path, reason) in files {
            match folded.iter_mut().find(|known| known.takes(path, reason)) {
                Some(known) => drop(known.paths.insert(path)),
                None => folded.push(Self { at: path.to_owned(), files: 1, reason, paths: BTreeSet::from([path]) }),
            }
        }
        for one in &mut folded {
            one.files = one.paths.len();
            if one.files > 1 && !one.is_scratch() && !one.is_dropped() {
                one.at = folder(&one.paths);
            }
        }
        folded
    }

    /// Returns the paths of the files.
    pub fn paths(&self) -> impl Iterator<Item = &'a str> {
        self.paths.iter().copied()
    }

    /// Returns true for files in scratch folders, which are never kept.
    pub fn is_scratch(&self) -> bool {
        self.reason.starts_with(SCRATCH)
    }

    /// Returns true for files that a grant covers but that were dropped. Each of them is listed by name.
    pub fn is_dropped(&self) -> bool {
        self.reason.starts_with(DROPPED)
    }

    /// Returns the reason. For several files, the remedy for a single file is left out.
    pub fn why(&self) -> &'a str {
        if self.is_outside() && self.files > 1 { OUTSIDE.trim_end_matches("; ") } else { self.reason }
    }

    /// Returns the remedy for dropped files, or for several files in a folder. For a single file, the reason already
    /// contains the remedy.
    pub fn help(&self) -> Option<String> {
        let at = &self.at;
        if self.is_dropped() {
            return Some(KEEP_DROPPED.to_owned());
        }
        (self.is_outside() && self.files > 1).then(|| {
            format!(
                "to discard these files after the stage, add `scratch = [\"{at}\"]` under `[sandbox]` in glovebox.toml; to keep \
                 them, add `{at}` to `allowed_write_paths` of the node"
            )
        })
    }

    /// Returns true for files that no write grant covers.
    pub fn is_outside(&self) -> bool {
        self.reason.starts_with(OUTSIDE)
    }

    fn takes(&self, path: &str, reason: &str) -> bool {
        if self.is_scratch() || self.is_dropped() {
            return self.reason == reason;
        }
        let is_alike = self.reason == reason || self.is_outside() && reason.starts_with(OUTSIDE);
        let top = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
        is_alike && top(&self.at) == top(path)
    }
}

/// Returns the deepest folder that contains all of these paths. The paths must have their first component in common.
fn folder(paths: &BTreeSet<&str>) -> String {
    let above =
        |path: &&str| path.rsplit_once('/').map_or(*path, |(above, _)| above).split('/').map(str::to_owned).collect();
    let common = paths.iter().map(above).reduce(|known: Vec<String>, next: Vec<String>| {
        known.into_iter().zip(next).take_while(|(a, b)| a == b).map(|(name, _)| name).collect()
    });
    common.unwrap_or_default().join("/") + "/"
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTECTED: &str = "`.git` is protected";

    fn shown(files: &[(&str, &str)]) -> Vec<String> {
        let line = |one: &Folded<'_>| format!("{} {} {}", one.files, one.at, one.why());
        Folded::group(files.iter().copied()).iter().map(line).collect()
    }

    #[test]
    fn a_folder_stands_for_its_files() {
        let grant = "not in the write scope; allowed_write_paths=\"x\" would grant it";
        assert_eq!(shown(&[("target/debug/a", grant), ("target/b", grant)]), ["2 target/ not in the write scope"]);
        assert_eq!(
            shown(&[("a/b/c/d", grant), ("a/b/c/e", grant), ("a/b/c/e", grant)]),
            ["2 a/b/c/ not in the write scope"]
        );
        assert_eq!(shown(&[("a", grant), ("a/b", grant)]), ["2 a/ not in the write scope"]);
        assert_eq!(shown(&[("one", grant), ("two", grant)]), [format!("1 one {grant}"), format!("1 two {grant}")]);
        assert_eq!(
            shown(&[("a/.git/x", PROTECTED), ("a/x", grant)]),
            [format!("1 a/.git/x {PROTECTED}"), format!("1 a/x {grant}")]
        );
        assert_eq!(shown(&[("a/x", "scratch: s"), ("b/y", "scratch: s")]), ["2 a/x scratch: s"]);
        assert_eq!(shown(&[("a/x", "dropped: d"), ("b/y", "dropped: d")]), ["2 a/x dropped: d"]);
    }

    #[test]
    fn only_what_a_grant_would_allow_has_a_remedy() {
        let grant = "not in the write scope; allowed_write_paths=\"x\" would grant it";
        let help = |files: &[(&'static str, &'static str)]| Folded::group(files.iter().copied())[0].help();
        assert!(help(&[("target/a", grant), ("target/b", grant)]).unwrap().contains("scratch = [\"target/\"]"));
        assert_eq!(help(&[("target/a", grant)]), None);
        assert!(help(&[("a", "dropped: d")]).unwrap().contains("scenario_writes=\"commit\""));
        assert_eq!(help(&[(".git/a", PROTECTED), (".git/b", PROTECTED)]), None);
    }
}
