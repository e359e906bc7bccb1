//! The scripts, make targets and test files of the project: as they are before the first command, and as they were at the beginning of
//! the run. A command is dropped only if something that it needs certainly never existed. Anything else may have been removed by a
//! stage of the run.
//!
//! Commands run the code under test, which may change all of these files, so nothing is read after the first command. Anything that
//! cannot be read or decided is treated as existing.

use crate::settings::{Base, BaseFile};
use glovebox_plugin_sdk::test_files::{is_searched, is_test_file};
use glovebox_plugin_sdk::{Value, files};

/// Maximum length of a `package.json` or a makefile that is read, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;
/// Maximum number of files and folders that are searched for test files. A larger project is assumed to have test
/// files.
const ENTRIES_MAX: usize = 5_000;
/// File with the scripts of a package.
const PACKAGE: &str = "package.json";
/// Names of makefiles, in the order in which make looks for them.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// The parts of a project from which the failure of a command can be explained.
#[derive(Debug)]
pub(crate) struct Project {
    /// State before the first command.
    now: Files,
    /// State at the beginning of the run.
    base: Files,
    /// True if commands run in the root of the workspace.
    is_root: bool,
}

/// The relevant files of a project at one time.
#[derive(Debug)]
struct Files {
    package: FileLookup<Value>,
    makefile: FileLookup<Makefile>,
    has_tests: bool,
}

/// The result of reading a file.
#[derive(Debug)]
enum FileLookup<T> {
    Absent,
    /// The file exists, but its content is unknown.
    Unreadable,
    Read(T),
}

/// Text of the makefile in the working directory of the commands.
#[derive(Debug)]
struct Makefile(String);

/// Script of `package.json` that a package manager was to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Script<'a>(pub(crate) &'a str);

/// Target that make was to build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target<'a>(pub(crate) &'a str);

/// Whether a script, a target or tests that a command needs are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absence {
    /// They exist, or it is unknown.
    None,
    /// The run removed them.
    Removed,
    /// They never existed.
    Always,
}

impl Project {
    /// Reads the working directory of the commands. A file that is not in the base has not changed since.
    pub(crate) fn read(folder: Option<&str>, base: Option<&Base>) -> Self {
        let now = |name: &str| {
            let path = folder.map_or_else(|| name.to_owned(), |folder| format!("{folder}/{name}"));
            match files::read_text(path, FILE_BYTES_MAX) {
                Ok(text) => FileLookup::Read(text),
                Err(error) if error.code == "not-found" => FileLookup::Absent,
                Err(_) => FileLookup::Unreadable,
            }
        };
        let before = |name: &str| match base.and_then(|base| base.files.get(name)) {
            None => now(name),
            Some(BaseFile::Absent) => FileLookup::Absent,
            Some(BaseFile::Unreadable) => FileLookup::Unreadable,
            Some(BaseFile::Text(text)) => FileLookup::Read(text.clone()),
        };
        let has_tests = has_tests(folder.unwrap_or_default());
        let had_tests = base.map_or(has_tests, |base| base.has_tests);
        let is_root = folder.is_none_or(str::is_empty);
        Self { now: Files::read(now, has_tests), base: Files::read(before, had_tests), is_root }
    }

    /// Creates a project from the texts of `package.json` and makefile, now and at the beginning of the run.
    #[cfg(test)]
    pub(crate) fn from_texts(now: [&str; 2], base: [&str; 2], [has_tests, had_tests]: [bool; 2]) -> Self {
        let read = |[package, makefile]: [&str; 2], has_tests| {
            let text = |name: &str| FileLookup::Read(if name == PACKAGE { package } else { makefile }.to_owned());
            Files::read(text, has_tests)
        };
        Self { now: read(now, has_tests), base: read(base, had_tests), is_root: true }
    }

    /// Returns whether a script is missing in `package.json`. A command of the operator is dropped only if `package.json` existed at
    /// the beginning of the run and never had the script. Otherwise a file that the run wrote would decide.
    pub(crate) fn script(&self, script: Script<'_>, is_operators: bool) -> Absence {
        let before = match &self.base.package {
            FileLookup::Absent => !is_operators && self.is_root,
            package => package.lacks_script(script),
        };
        Absence::new(self.now.package.lacks_script(script), before)
    }

    /// Returns whether a rule for a target is missing, now and at the beginning of the run. A project without a makefile has no rules.
    pub(crate) fn target(&self, target: Target<'_>) -> Absence {
        Absence::new(self.now.makefile.lacks_target(target), self.base.makefile.lacks_target(target))
    }

    /// Returns whether test files are missing.
    pub(crate) fn tests(&self) -> Absence {
        Absence::new(!self.now.has_tests, !self.base.has_tests)
    }
}

impl Absence {
    fn new(now: bool, before: bool) -> Self {
        match (now, before) {
            (false, _) => Self::None,
            (true, false) => Self::Removed,
            (true, true) => Self::Always,
        }
    }
}

impl Files {
    fn read(read: impl Fn(&str) -> FileLookup<String>, has_tests: bool) -> Self {
        let package = match read(PACKAGE) {
            FileLookup::Read(text) => text.parse().map_or(FileLookup::Unreadable, FileLookup::Read),
            FileLookup::Unreadable => FileLookup::Unreadable,
            FileLookup::Absent => FileLookup::Absent,
        };
        let mut makefiles = MAKEFILES.iter().map(|name| match read(name) {
            FileLookup::Read(text) => FileLookup::Read(Makefile(text)),
            FileLookup::Unreadable => FileLookup::Unreadable,
            FileLookup::Absent => FileLookup::Absent,
        });
        let makefile = makefiles.find(|found| !matches!(found, FileLookup::Absent)).unwrap_or(FileLookup::Absent);
        Self { package, makefile, has_tests }
    }
}

impl FileLookup<Value> {
    /// Returns true if the file can be read and its `scripts` do not contain this name.
    fn lacks_script(&self, Script(name): Script<'_>) -> bool {
        matches!(self, Self::Read(package) if package["scripts"].get(name).is_none())
    }
}

impl FileLookup<Makefile> {
    /// Returns true if no rule can build this target.
    fn lacks_target(&self, target: Target<'_>) -> bool {
        match self {
            Self::Absent => true,
            Self::Unreadable => false,
            Self::Read(makefile) => !target.is_in(makefile),
        }
    }
}

impl Target<'_> {
    /// Returns true if a makefile names the target, or could define any target by a pattern, a variable or another file.
    fn is_in(self, Makefile(text): &Makefile) -> bool {
        text.replace("\\\n", " ").lines().filter(|line| !line.starts_with(['\t', '#'])).any(|line| {
            let first = line.split_whitespace().next().unwrap_or_default();
            let targets = line.split_once(':').map_or("", |(targets, _)| targets);
            matches!(first, "include" | "-include" | "sinclude" | "load" | "define")
                || line.contains("$(eval")
                || !targets.contains('=') && targets.contains(['%', '$'])
                || targets.split_whitespace().any(|target| target == self.0 || target == ".DEFAULT")
        })
    }
}

/// Returns true if a folder contains a test file, or more than [`ENTRIES_MAX`] files and folders, which are not all
/// searched.
fn has_tests(root: &str) -> bool {
    let (mut folders, mut seen) = (vec![String::new()], 0);
    while let Some(folder) = folders.pop() {
        let place = [root, &folder].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        let Ok(nodes) = files::list(&place) else { return true };
        seen += nodes.len();
        if seen > ENTRIES_MAX {
            return true;
        }
        for node in nodes.iter().filter(|node| is_searched(&node.name)) {
            let path = if folder.is_empty() { node.name.clone() } else { format!("{folder}/{}", node.name) };
            match node.kind.as_str() {
                "directory" => folders.push(path),
                _ if is_test_file(&path) => return true,
                _ => {}
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_scripts_that_are_not_there() {
        let lacks = |text: &str| {
            let files = Files::read(|_| FileLookup::Read(text.to_owned()), true);
            files.package.lacks_script(Script("lint"))
        };
        assert!(lacks(r#"{"scripts":{"test":"a"}}"#) && lacks("{}"));
        assert!(!lacks(r#"{"scripts":{"lint":"a"}}"#) && !lacks("") && !lacks("{"));
        assert!(!FileLookup::<Value>::Absent.lacks_script(Script("lint")));
    }

    #[test]
    fn knows_targets_that_nothing_makes() {
        let lacks = |text: &str| FileLookup::Read(Makefile(text.to_owned())).lacks_target(Target("lint"));
        assert!(lacks("all:\n\tlint\n") && lacks("") && lacks("A := $(B:x=y)\n# lint:\n"));
        for text in ["build lint: x\n", "build \\\n  lint \\\n  x:\n", "li%:\n", "$(NAMES): x\n", "include a.mk\n"] {
            assert!(!lacks(text), "{text}");
        }
        for text in ["-include a.mk\n", ".DEFAULT:\n\ttrue\n", "$(foreach a,b,$(eval $(a):))\n"] {
            assert!(!lacks(text), "{text}");
        }
        assert!(FileLookup::Absent.lacks_target(Target("lint")));
        assert!(!FileLookup::<Makefile>::Unreadable.lacks_target(Target("lint")));
    }

    #[test]
    fn what_the_run_removed_is_not_missing() {
        let script = |now: &str, base: &str| {
            Project::from_texts([now, ""], [base, ""], [true, true]).script(Script("lint"), true)
        };
        let (with, without) = (r#"{"scripts":{"lint":"a"}}"#, "{}");
        assert_eq!(script(without, with), Absence::Removed);
        assert_eq!(script(without, without), Absence::Always);
        assert_eq!(script(with, without), Absence::None);
        assert_eq!(script(without, "{"), Absence::Removed, "an unreadable file counts as complete");
        let target =
            |now: &str, base: &str| Project::from_texts(["", now], ["", base], [true, true]).target(Target("lint"));
        assert_eq!(target("all:\n", "lint:\n"), Absence::Removed);
        assert_eq!(target("all:\n", "all: x\n"), Absence::Always);
        assert_eq!(target("all:\n", "include a.mk\n"), Absence::Removed);
        let tests = |has| Project::from_texts(["", ""], ["", ""], has).tests();
        assert_eq!(tests([false, true]), Absence::Removed);
        assert_eq!(tests([false, false]), Absence::Always);
        assert_eq!(tests([true, false]), Absence::None);
    }

    /// A `package.json` that the run created must not cause a command of the operator to be dropped. In a subfolder it must not cause
    /// any command to be dropped, because npm also searches the parent folders.
    #[test]
    fn a_new_file_drops_no_command_of_the_operator() {
        let lack = |is_root, is_operators| {
            let now = Files::read(|_| FileLookup::Read("{}".to_owned()), true);
            let base = Files::read(|_| FileLookup::Absent, true);
            Project { now, base, is_root }.script(Script("lint"), is_operators)
        };
        assert_eq!(lack(true, false), Absence::Always);
        for (is_root, is_operators) in [(true, true), (false, true), (false, false)] {
            assert_eq!(lack(is_root, is_operators), Absence::Removed);
        }
    }
}
