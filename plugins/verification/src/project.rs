//! Scripts, make targets and test files of the project, before the first command ran and when the run began. A command is dropped only
//! for something that certainly never existed: a stage of the run may have removed everything else.
//!
//! A command runs the code under test, which may change all of it, so nothing is read after the first one. Anything that cannot be read or
//! decided counts as existing.

use crate::settings::{Base, BaseFile};
use glovebox_plugin_sdk::test_files::{is_searched, is_test_file};
use glovebox_plugin_sdk::{Value, files};

/// Bytes of a `package.json` or a makefile that are read.
const FILE_BYTES_MAX: usize = 1 << 20;
/// Files and folders in which test files are looked for; in a larger project there are some.
const ENTRIES_MAX: usize = 5_000;
/// The file with the scripts of a package.
const PACKAGE: &str = "package.json";
/// The makefiles that make looks for, in its order.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// The parts of a project that explain why a command of the list fails.
#[derive(Debug)]
pub(crate) struct Project {
    /// As it is.
    now: Files,
    /// As it was when the run began.
    base: Files,
    /// True if commands start in the root of the workspace.
    is_root: bool,
}

/// The relevant files of a project at one moment.
#[derive(Debug)]
struct Files {
    package: FileLookup<Value>,
    makefile: FileLookup<Makefile>,
    has_tests: bool,
}

/// A file that was looked for.
#[derive(Debug)]
enum FileLookup<T> {
    Absent,
    /// Its content is unknown.
    Unreadable,
    Read(T),
}

/// The text of the makefile in the folder where commands start.
#[derive(Debug)]
struct Makefile(String);

/// The script of `package.json` that a package manager was asked to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Script<'a>(pub(crate) &'a str);

/// The target that make was asked to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target<'a>(pub(crate) &'a str);

/// The absence of a script, a target or tests that a command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    /// The project has it, or that is unknown.
    None,
    /// The run removed it.
    Removed,
    /// It never existed.
    Always,
}

impl Project {
    /// Reads the folder in which the commands start. A file that is not in the base is unchanged.
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

    /// Creates a project whose `package.json` and makefile are these texts, and were the others when the run began.
    #[cfg(test)]
    pub(crate) fn from_texts(now: [&str; 2], base: [&str; 2], [has_tests, had_tests]: [bool; 2]) -> Self {
        let read = |[package, makefile]: [&str; 2], has_tests| {
            let text = |name: &str| FileLookup::Read(if name == PACKAGE { package } else { makefile }.to_owned());
            Files::read(text, has_tests)
        };
        Self { now: read(now, has_tests), base: read(base, had_tests), is_root: true }
    }

    /// Returns the absence of a name in `scripts` of `package.json`. A command of the operator is dropped only for a `package.json` that never had
    /// the name: without such a file, the one that the run wrote would decide.
    pub(crate) fn script(&self, script: Script<'_>, is_operators: bool) -> Lack {
        let before = match &self.base.package {
            FileLookup::Absent => !is_operators && self.is_root,
            package => package.lacks_script(script),
        };
        Lack::new(self.now.package.lacks_script(script), before)
    }

    /// Returns the absence of a rule that can make a target, now and in the base. A project without a makefile has no rule.
    pub(crate) fn target(&self, target: Target<'_>) -> Lack {
        Lack::new(self.now.makefile.lacks_target(target), self.base.makefile.lacks_target(target))
    }

    /// Returns the absence of files with the name of a test.
    pub(crate) fn tests(&self) -> Lack {
        Lack::new(!self.now.has_tests, !self.base.has_tests)
    }
}

impl Lack {
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
    /// Returns true if it can be read and its `scripts` do not have this name.
    fn lacks_script(&self, Script(name): Script<'_>) -> bool {
        matches!(self, Self::Read(package) if package["scripts"].get(name).is_none())
    }
}

impl FileLookup<Makefile> {
    /// Returns true if no rule can make this target.
    fn lacks_target(&self, target: Target<'_>) -> bool {
        match self {
            Self::Absent => true,
            Self::Unreadable => false,
            Self::Read(makefile) => !target.is_in(makefile),
        }
    }
}

impl Target<'_> {
    /// Returns true if a makefile names the target, or may name any: by a pattern, a variable, another file.
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

/// Returns true if a folder has a file with the name of a test, or more files than are looked at.
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
        assert_eq!(script(without, with), Lack::Removed);
        assert_eq!(script(without, without), Lack::Always);
        assert_eq!(script(with, without), Lack::None);
        assert_eq!(script(without, "{"), Lack::Removed, "an unreadable file counts as complete");
        let target =
            |now: &str, base: &str| Project::from_texts(["", now], ["", base], [true, true]).target(Target("lint"));
        assert_eq!(target("all:\n", "lint:\n"), Lack::Removed);
        assert_eq!(target("all:\n", "all: x\n"), Lack::Always);
        assert_eq!(target("all:\n", "include a.mk\n"), Lack::Removed);
        let tests = |has| Project::from_texts(["", ""], ["", ""], has).tests();
        assert_eq!(tests([false, true]), Lack::Removed);
        assert_eq!(tests([false, false]), Lack::Always);
        assert_eq!(tests([true, false]), Lack::None);
    }

    /// A `package.json` that the run made decides over no command of the operator, and in a folder over none at all: npm looks above it.
    #[test]
    fn a_new_file_drops_no_command_of_the_operator() {
        let lack = |is_root, is_operators| {
            let now = Files::read(|_| FileLookup::Read("{}".to_owned()), true);
            let base = Files::read(|_| FileLookup::Absent, true);
            Project { now, base, is_root }.script(Script("lint"), is_operators)
        };
        assert_eq!(lack(true, false), Lack::Always);
        for (is_root, is_operators) in [(true, true), (false, true), (false, false)] {
            assert_eq!(lack(is_root, is_operators), Lack::Removed);
        }
    }
}
