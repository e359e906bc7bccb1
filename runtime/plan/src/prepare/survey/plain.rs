//! A project without a known kind: it has a makefile, a test script, or neither.

use super::folder::Folder;
use super::part::{Part, Step};

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
/// The text for a project in which no tests were found.
pub(super) const NO_TESTS: &str = "no tests";
/// Makefile targets that run tests, best first.
const TARGETS: [(&str, &str); 4] =
    [("test", "make test"), ("check", "make check"), ("tests", "make tests"), ("all", "make all")];

pub(super) fn part(folder: &Folder) -> Part {
    let mut part = Part {
        kind: "plain",
        folder: String::new(),
        found: String::new(),
        toolchains: Vec::new(),
        steps: Vec::new(),
        caches: Vec::new(),
        scratch: Vec::new(),
        scripts: Vec::new(),
        notes: Vec::new(),
    };
    let makefile = ["GNUmakefile", "makefile", "Makefile"].into_iter().find(|name| folder.has(name));
    let text = makefile.map(|name| folder.text(name)).unwrap_or_default();
    let is_target = |target: &str| {
        text.lines().any(|line| line.strip_prefix(target).is_some_and(|rest| rest.trim_start().starts_with(':')))
    };
    let script = SCRIPTS.into_iter().find(|name| !folder.text(name).is_empty());
    if let Some((target, command)) = TARGETS.into_iter().find(|(target, _)| is_target(target)) {
        part.found = format!("{} (target {target})", makefile.unwrap_or_default());
        part.steps.push(Step::new("test", command, "A target of the makefile."));
    } else if let Some(script) = script {
        part.found = script.to_owned();
        part.scripts.push(script);
        let is_bash = folder.text(script).lines().next().is_some_and(|first| first.contains("bash"));
        let shell = if is_bash { "bash" } else { "sh" };
        part.steps.push(Step::new("test", format!("{shell} {script}"), "A script of the project."));
    } else {
        part.found = NO_TESTS.to_owned();
        let command = "echo 'nothing tests this project yet: write your command into the stage test'; exit 1";
        part.steps.push(Step::new(
            "test",
            command,
            "Nothing that tests the project was found. Write your command here; until then the stage fails.",
        ));
        part.notes.push(
            "no tests found, so nothing is verified yet: the stage `test` fails until it has the command that tests your project"
                .to_owned(),
        );
    }
    part
}
