//! What tests a project without a kind, or beside its kinds: targets of task runners and makefiles, and shell tests.
//!
//! A target counts only if its recipe does more than print. Only the presence of a target of this table is taken from
//! the project's files, never their text.

use super::folder::Folder;
use super::makefile::Makefile;

/// A command that tests a project, and the place where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntryPoint {
    /// The command as a shell text.
    pub(super) command: String,
    /// The file that shows it, for messages.
    pub(super) place: String,
    /// The program that the command needs and that no toolchain contains.
    pub(super) program: Option<&'static str>,
    /// Why this command was chosen.
    pub(super) why: &'static str,
    /// The script that it runs.
    pub(super) script: Option<&'static str>,
    /// True for a task runner, which may also call the tests of other parts of the project.
    pub(super) is_task: bool,
    /// Folders of build results that git ignores and that later runs begin with.
    pub(super) build_folders: Vec<String>,
}

/// Names of a justfile.
const JUSTFILES: [&str; 4] = ["justfile", "Justfile", ".justfile", "JUSTFILE"];
/// Names of the file of the task runner Task.
const TASKFILES: [&str; 8] = [
    "Taskfile.yml",
    "taskfile.yml",
    "Taskfile.yaml",
    "taskfile.yaml",
    "Taskfile.dist.yml",
    "taskfile.dist.yml",
    "Taskfile.dist.yaml",
    "taskfile.dist.yaml",
];
/// Usual names of folders in which makefiles put build results.
const MAKE_BUILD_FOLDERS: [&str; 6] = ["build/", "obj/", "out/", "bin/", ".build/", "_build/"];
/// Targets that run tests, best first.
const TARGETS: [&str; 3] = ["test", "check", "tests"];
/// Folders with tests for bats, best first. The empty name is the project's own folder.
const BATS_FOLDERS: [&str; 4] = ["test/", "tests/", "spec/", ""];
/// Paths of bats in a project that contains bats itself.
const OWN_BATS: [&str; 5] = [
    "test/bats/bin/bats",
    "test/libs/bats/bin/bats",
    "tests/bats/bin/bats",
    "tests/libs/bats/bin/bats",
    "test/test_helper/bats/bin/bats",
];
/// Names of tests for shunit2: folder, prefix and suffix.
const SHUNIT_NAMES: [(&str, &str, &str); 8] = [
    ("test/", "", "_test.sh"),
    ("tests/", "", "_test.sh"),
    ("test/", "test_", ".sh"),
    ("tests/", "test_", ".sh"),
    ("", "", "_test.sh"),
    ("", "test_", ".sh"),
    ("test/", "", ".sh"),
    ("tests/", "", ".sh"),
];
/// Common names of scripts that test a project.
const SCRIPTS: [&str; 8] = [
    "test.sh",
    "tests.sh",
    "run-tests.sh",
    "run_tests.sh",
    "scripts/test.sh",
    "tests/run.sh",
    "tests/test.sh",
    "test/run.sh",
];

/// Returns every entry point of a folder, best first.
pub(super) fn entry_points(folder: &Folder) -> Vec<EntryPoint> {
    [just(folder), task(folder), make(folder), bats(folder), shunit2(folder), script(folder)]
        .into_iter()
        .flatten()
        .collect()
}

fn just(folder: &Folder) -> Option<EntryPoint> {
    let file = JUSTFILES.into_iter().find(|name| folder.has(name))?;
    let text = folder.text(file);
    let target = TARGETS.into_iter().find(|target| text.lines().any(|line| is_recipe(line, target)))?;
    let (command, place) = (format!("just {target}"), format!("{file} (recipe {target})"));
    Some(EntryPoint {
        command,
        place,
        program: Some("just"),
        why: "A recipe of the justfile.",
        script: None,
        is_task: true,
        build_folders: Vec::new(),
    })
}

/// Returns true for the first line of a recipe that can be called without arguments.
fn is_recipe(line: &str, name: &str) -> bool {
    let line = line.strip_prefix('@').unwrap_or(line);
    let Some((head, rest)) = line.strip_prefix(name).and_then(|rest| rest.split_once(':')) else { return false };
    let is_optional = |parameter: &str| parameter.starts_with('*') || parameter.contains('=');
    let is_named = head.is_empty() || head.starts_with([' ', '\t']);
    is_named && !rest.starts_with('=') && head.split_whitespace().all(is_optional)
}

fn task(folder: &Folder) -> Option<EntryPoint> {
    let file = TASKFILES.into_iter().find(|name| folder.has(name))?;
    let text = folder.text(file);
    let mut tasks = text.lines().skip_while(|line| line.trim_end() != "tasks:").skip(1);
    let names: Vec<&str> = tasks
        .by_ref()
        .take_while(|line| line.is_empty() || line.starts_with([' ', '#']))
        .filter(|line| !line.trim_start().starts_with('#') && !line.trim().is_empty())
        .collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let first = names.first().map(|line| indent(line))?;
    let is_task = |line: &&str, name: &str| {
        indent(line) == first && line.trim_start().strip_prefix(name).is_some_and(|rest| rest.starts_with(':'))
    };
    let target = TARGETS.into_iter().find(|target| names.iter().any(|line| is_task(line, target)))?;
    let (command, place) = (format!("task {target}"), format!("{file} (task {target})"));
    Some(EntryPoint {
        command,
        place,
        program: Some("task"),
        why: "A task of the Taskfile.",
        script: None,
        is_task: true,
        build_folders: Vec::new(),
    })
}

fn make(folder: &Folder) -> Option<EntryPoint> {
    let file = ["GNUmakefile", "makefile", "Makefile"].into_iter().find(|name| folder.has(name))?;
    let text = folder.text(file);
    let makefile = Makefile::parse(&text);
    let target = TARGETS.into_iter().find(|target| makefile.tests(target))?;
    let (command, place) = (format!("make {target}"), format!("{file} (target {target})"));
    // Make builds again what is older than its sources, so a folder of an earlier run is safe to begin with.
    let is_used = |name: &&str| text.contains(name.trim_end_matches('/')) && folder.ignores(name);
    let build_folders = MAKE_BUILD_FOLDERS.into_iter().filter(is_used).map(str::to_owned).collect();
    Some(EntryPoint {
        command,
        place,
        program: Some("make"),
        why: "A target of the makefile.",
        script: None,
        is_task: true,
        build_folders,
    })
}

fn bats(folder: &Folder) -> Option<EntryPoint> {
    let is_test = |name: &str| name.ends_with(".bats");
    let own = OWN_BATS.into_iter().find(|file| folder.has(file));
    let (below, is_nested) = BATS_FOLDERS.into_iter().find_map(|below| {
        let entries = folder.at(below).entries();
        if entries.iter().any(|entry| is_test(&entry.name)) {
            return Some((below, false));
        }
        let is_own = |name: &str| matches!(name, "bats/" | "libs/" | "test_helper/" | "node_modules/");
        let is_nested = !below.is_empty() && folder.at(below).has_file(|name| !is_own(name), |_, name| is_test(name));
        is_nested.then_some((below, true))
    })?;
    let (program, option) = (own.unwrap_or("bats"), if is_nested { " --recursive" } else { "" });
    let place = if below.is_empty() { "*.bats".to_owned() } else { format!("{below}*.bats") };
    Some(EntryPoint {
        command: format!("{program}{option} {}", if below.is_empty() { "." } else { below.trim_end_matches('/') }),
        place,
        program: own.is_none().then_some("bats"),
        why: "Tests for bats.",
        script: None,
        is_task: false,
        build_folders: Vec::new(),
    })
}

fn shunit2(folder: &Folder) -> Option<EntryPoint> {
    let (below, start, end) = SHUNIT_NAMES.into_iter().find(|(below, start, end)| {
        let inner = folder.at(below);
        let mut entries = inner.entries().into_iter().filter(|entry| !entry.is_folder());
        entries.any(|entry| {
            let is_named = entry.name.starts_with(start) && entry.name.ends_with(end);
            is_named && inner.text(&entry.name).contains("shunit2")
        })
    })?;
    Some(EntryPoint {
        // Without a match, the pattern itself is the name of a file that does not exist, and the command fails. `.s[h]`
        // hides the name from the rule `unfixable_failure_source`, which takes it for a script that the repair should
        // be able to change.
        command: format!("for file in {below}{start}*{}; do sh \"$file\" || exit 1; done", end.replace(".sh", ".s[h]")),
        place: format!("{below}{start}*{end} (shunit2)"),
        program: None,
        why: "Tests for shunit2.",
        script: None,
        is_task: false,
        build_folders: Vec::new(),
    })
}

fn script(folder: &Folder) -> Option<EntryPoint> {
    let script = SCRIPTS.into_iter().find(|name| !folder.text(name).is_empty())?;
    let is_bash = folder.text(script).lines().next().is_some_and(|first| first.contains("bash"));
    let shell = if is_bash { "bash" } else { "sh" };
    let command = format!("{shell} {script}");
    Some(EntryPoint {
        command,
        place: script.to_owned(),
        program: None,
        why: "A script of the project.",
        script: Some(script),
        is_task: false,
        build_folders: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::is_recipe;

    #[test]
    fn a_recipe_is_called_without_arguments() {
        for line in ["test:", "@test: build", "test *arguments:", "test name='x' *rest: build"] {
            assert!(is_recipe(line, "test"), "{line}");
        }
        for line in ["test := 'x'", "tests:", "test name:", "test-all:", "  test:", "alias t := test", "test +names:"] {
            assert!(!is_recipe(line, "test"), "{line}");
        }
    }
}
