//! Python projects: the environment, and the tool that runs the tests.

use super::environment::{CONDA_FILES, Environment, Place, Tool, User};
use super::folder::Folder;
use super::part::{Part, Step};

/// Files that name the test tool, as a dependency or in its settings.
const DECLARATIONS: [&str; 20] = [
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    "noxfile.py",
    "environment.yml",
    "environment.yaml",
    "requirements.txt",
    "requirements-dev.txt",
    "requirements_dev.txt",
    "dev-requirements.txt",
    "requirements-test.txt",
    "requirements-tests.txt",
    "test-requirements.txt",
    "requirements/dev.txt",
    "requirements/test.txt",
    "requirements/tests.txt",
    "requirements/testing.txt",
    "Pipfile",
    "hatch.toml",
];
/// Folders that have no tests of the project.
const NOT_ENTERED: [&str; 8] =
    ["node_modules/", "venv/", "env/", "build/", "dist/", "target/", "vendor/", "third_party/"];

/// Adds the test command of a Python project, and the environment in which it runs.
pub(super) fn look(folder: &Folder, part: &mut Part, user: &User) {
    let tool = tool(folder);
    let environments = user.environments(folder, tool);
    let environment = environments.iter().find(|one| one.has("pytest")).or_else(|| environments.first()).cloned();
    let tool = environment.as_ref().and_then(|environment| environment.tool).unwrap_or(tool);
    let shown = environment.as_ref().map(|environment| match &environment.place {
        Place::Project(name) => format!(", {name}"),
        Place::Machine(path) => format!(", {path}"),
    });
    part.found.push_str(&format!(" ({}{})", tool.as_str(), shown.unwrap_or_default()));
    part.scratch.push(format!("{}.pytest_cache/", folder.below()));
    if let Some(Place::Project(name)) = environment.as_ref().map(|environment| &environment.place) {
        let at = format!("{}{name}/", folder.below());
        part.scratch.retain(|scratch| !at.starts_with(scratch.as_str()));
    }
    let python = match environment.as_ref().map(|environment| &environment.place) {
        Some(Place::Project(name)) => format!("{name}/bin/python"),
        Some(Place::Machine(_)) => "python".to_owned(),
        None => "python3".to_owned(),
    };
    part.has_tests = folder.has_file(|name| !NOT_ENTERED.contains(&name), |_, name| is_test_file(name));
    let has_pytest = environment.as_ref().is_some_and(|environment| environment.has("pytest"));
    if wants_pytest(folder) || (has_pytest && part.has_tests) {
        let copied = environment.as_ref().is_some_and(|environment| environment.has_copy_of_sources(folder));
        part.steps.push(match copied {
            false => Step::test(format!("{python} -m pytest"), "The project names pytest."),
            true => Step::test(
                format!("PYTHONPATH=src {python} -m pytest"),
                "The project names pytest. `PYTHONPATH=src`: the environment has an installed copy of the package, and the \
                 tests must see the sources.",
            ),
        });
        if !has_pytest {
            part.notes.push(missing_pytest(folder, environment.as_ref(), tool));
        }
    } else if let Some(start) = test_folder(folder) {
        part.steps.push(Step::test(
            format!("{python} -m unittest discover{start}"),
            "The project names no test tool: unittest is part of Python.",
        ));
    }
    part.environment = environment;
}

fn missing_pytest(folder: &Folder, environment: Option<&Environment>, tool: Tool) -> String {
    let what = match environment.map(|environment| &environment.place) {
        None => "no virtual environment".to_owned(),
        Some(Place::Project(name)) => format!("no pytest in `{name}/`"),
        Some(Place::Machine(path)) => format!("no pytest in `{path}`"),
    };
    format!("{what} in `./{}`: run `{}` before the first run", folder.below(), tool.install())
}

/// Returns true if the project names pytest, or has a test that only pytest finds.
fn wants_pytest(folder: &Folder) -> bool {
    let is_declared = DECLARATIONS.iter().any(|name| folder.text(name).contains("pytest"));
    let has_file = ["pytest.ini", ".pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py"];
    is_declared
        || has_file.iter().any(|name| folder.has(name))
        || ["tests/", "test/", ""].iter().any(|below| {
            let inner = folder.at(below);
            let tests = inner.entries().into_iter().filter(|entry| is_test_file(&entry.name));
            tests.take(TESTS_READ_MAX).any(|entry| is_for_pytest(&inner.text(&entry.name)))
        })
}

/// Maximum number of test files of a folder that are read.
const TESTS_READ_MAX: usize = 20;

/// Returns true for a test file with functions instead of classes of unittest.
fn is_for_pytest(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("def test_") || line.starts_with("import pytest"))
}

fn is_test_file(name: &str) -> bool {
    name.strip_suffix(".py").is_some_and(|stem| stem.starts_with("test") || stem.ends_with("_test"))
}

/// Returns the first file whose name is that of a test, such as `tests/test_shop.py`.
pub(super) fn test_file(folder: &Folder) -> Option<String> {
    let in_folder = |below: &str| {
        let entries = folder.at(below).entries();
        let test = entries.into_iter().find(|entry| entry.name.starts_with("test") && entry.name.ends_with(".py"))?;
        Some(format!("{below}{}", test.name))
    };
    ["tests/", "test/", ""].into_iter().find_map(in_folder)
}

/// Returns the option with the folder in which unittest starts its search.
fn test_folder(folder: &Folder) -> Option<&'static str> {
    let named = [("tests", " -s tests"), ("test", " -s test")];
    let at_root = || test_file(folder).map(|_| "");
    named.into_iter().find(|(name, _)| folder.has(name)).map(|(_, option)| option).or_else(at_root)
}

/// Returns the tool that creates the environment, by its files. A lock file is more certain than a table of settings.
fn tool(folder: &Folder) -> Tool {
    let locks =
        [("uv.lock", Tool::Uv), ("poetry.lock", Tool::Poetry), ("Pipfile", Tool::Pipenv), ("pdm.lock", Tool::Pdm)];
    let locked = locks.into_iter().find(|(lock, _)| folder.has(lock)).map(|(_, tool)| tool);
    let settings = folder.text("pyproject.toml");
    let tables = [("[tool.poetry]", Tool::Poetry), ("[tool.hatch.envs", Tool::Hatch), ("[tool.tox", Tool::Tox)];
    let table = || tables.into_iter().find(|(table, _)| settings.contains(table)).map(|(_, tool)| tool);
    let files = CONDA_FILES.map(|name| (name, Tool::Conda)).into_iter();
    let mut files = files.chain([("hatch.toml", Tool::Hatch), ("tox.ini", Tool::Tox), ("noxfile.py", Tool::Nox)]);
    locked.or_else(table).or_else(|| Some(files.find(|(name, _)| folder.has(name))?.1)).unwrap_or(Tool::Pip)
}
