//! What the project had before the first command ran: scripts, make targets, test files. Only what is certainly not there drops a command.
//!
//! A command runs the code under test, which may change all of it. So nothing is read after that. What cannot be read or decided counts
//! as being there.

use glovebox_plugin_sdk::{Value, files};

/// Bytes of a `package.json` or a makefile that are read.
const FILE_BYTES_MAX: usize = 1 << 20;
/// Files and folders in which test files are looked for; in a larger project there are some.
const ENTRIES_MAX: usize = 5_000;
/// The makefiles that make looks for, in its order.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];
/// What a file or a folder of tests has in its name.
const TESTS: [&str; 4] = ["test", "tests", "spec", "specs"];
/// Files in which test runners look for tests.
const CODE: [&str; 9] = ["cjs", "cts", "js", "jsx", "mjs", "mts", "py", "ts", "tsx"];

/// A project, as far as a failure may be its list's own.
#[derive(Debug)]
pub(crate) struct Project {
    package: Option<Value>,
    /// An error where it cannot be read.
    makefile: Result<Option<Makefile>, ()>,
    has_tests: bool,
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

/// The name of a file or a folder.
#[derive(Debug, Clone, Copy)]
struct Name<'a>(&'a str);

impl Project {
    /// Looks at the folder in which the commands start.
    pub(crate) fn of(folder: Option<&str>) -> Self {
        let place = |name: &str| folder.map_or_else(|| name.to_owned(), |folder| format!("{folder}/{name}"));
        let package = files::read_text(place("package.json"), FILE_BYTES_MAX).ok();
        let makefile = MAKEFILES.iter().map(|name| match files::read_text(place(name), FILE_BYTES_MAX) {
            Ok(text) => Ok(Some(Makefile(text))),
            Err(error) if error.code == "not-found" => Ok(None),
            Err(_) => Err(()),
        });
        Self {
            package: package.and_then(|text| text.parse().ok()),
            makefile: makefile.into_iter().find(|found| !matches!(found, Ok(None))).unwrap_or(Ok(None)),
            has_tests: has_tests(folder),
        }
    }

    /// A project whose `package.json` and makefile are these texts.
    #[cfg(test)]
    pub(crate) fn of_texts([package, makefile]: [&str; 2], has_tests: bool) -> Self {
        Self { package: package.parse().ok(), makefile: Ok(Some(Makefile(makefile.to_owned()))), has_tests }
    }

    /// True if `package.json` can be read and its `scripts` do not have this name.
    pub(crate) fn lacks_script(&self, script: Script<'_>) -> bool {
        self.package.as_ref().is_some_and(|package| package["scripts"].get(script.0).is_none())
    }

    /// True if no rule of the makefile can make this target. Without a makefile there is none.
    pub(crate) fn lacks_target(&self, target: Target<'_>) -> bool {
        match &self.makefile {
            Ok(makefile) => makefile.as_ref().is_none_or(|makefile| !target.is_in(makefile)),
            Err(()) => false,
        }
    }

    /// True if no file has the name of a test.
    pub(crate) fn lacks_tests(&self) -> bool {
        !self.has_tests
    }
}

impl Target<'_> {
    /// True if a makefile names the target, or may name any: by a pattern, a variable, another file.
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

/// True if a folder has a file with the name of a test, or more files than are looked at.
fn has_tests(root: Option<&str>) -> bool {
    let (mut folders, mut seen) = (vec![(root.unwrap_or_default().to_owned(), false)], 0);
    while let Some((folder, is_of_tests)) = folders.pop() {
        let Ok(nodes) = files::list(&folder) else { return true };
        seen += nodes.len();
        if seen > ENTRIES_MAX {
            return true;
        }
        for node in nodes.iter().filter(|node| !node.name.starts_with('.') && node.name != "node_modules") {
            let is_test = is_of_tests || Name(&node.name).is_of_tests();
            if node.kind == "directory" {
                let path = if folder.is_empty() { node.name.clone() } else { format!("{folder}/{}", node.name) };
                folders.push((path, is_test));
            } else if is_test && node.name.rsplit('.').next().is_some_and(|end| CODE.contains(&end)) {
                return true;
            }
        }
    }
    false
}

impl Name<'_> {
    /// True for `test_a.py`, `a.spec.ts`, `__tests__`.
    fn is_of_tests(self) -> bool {
        self.0.split(|character: char| !character.is_alphanumeric()).any(|part| TESTS.contains(&part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(package: Option<&'static str>, makefile: Result<Option<Makefile>, ()>) -> Project {
        Project { package: package.and_then(|text| text.parse().ok()), makefile, has_tests: true }
    }

    #[test]
    fn knows_scripts_that_are_not_there() {
        let lacks = |text| project(Some(text), Ok(None)).lacks_script(Script("lint"));
        assert!(lacks(r#"{"scripts":{"test":"a"}}"#) && lacks("{}"));
        assert!(!lacks(r#"{"scripts":{"lint":"a"}}"#) && !lacks("") && !lacks("{"));
        assert!(!project(None, Ok(None)).lacks_script(Script("lint")));
    }

    #[test]
    fn knows_targets_that_nothing_makes() {
        let lacks = |text: &str| project(None, Ok(Some(Makefile(text.to_owned())))).lacks_target(Target("lint"));
        assert!(lacks("all:\n\tlint\n") && lacks("") && lacks("A := $(B:x=y)\n# lint:\n"));
        for text in ["build lint: x\n", "build \\\n  lint \\\n  x:\n", "li%:\n", "$(NAMES): x\n", "include a.mk\n"] {
            assert!(!lacks(text), "{text}");
        }
        for text in ["-include a.mk\n", ".DEFAULT:\n\ttrue\n", "$(foreach a,b,$(eval $(a):))\n"] {
            assert!(!lacks(text), "{text}");
        }
        assert!(project(None, Ok(None)).lacks_target(Target("lint")));
        assert!(!project(None, Err(())).lacks_target(Target("lint")));
    }

    #[test]
    fn knows_names_of_tests() {
        for name in ["test_a.py", "a_test.py", "a.spec.ts", "__tests__", "tests"] {
            assert!(Name(name).is_of_tests(), "{name}");
        }
        for name in ["contest.py", "latest.js", "testing", "a.py"] {
            assert!(!Name(name).is_of_tests(), "{name}");
        }
    }
}
