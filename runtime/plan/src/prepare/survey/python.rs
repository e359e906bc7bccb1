//! Python projects: the virtual environment, and the tool that runs the tests.

use super::folder::Folder;
use super::part::{Part, Step};

/// Usual names of the virtual environment of a project.
const ENVIRONMENTS: [&str; 3] = [".venv", "venv", "env"];
/// Files that name the test tool, as a dependency or in its settings.
const DECLARATIONS: [&str; 9] = [
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    "requirements.txt",
    "requirements-dev.txt",
    "dev-requirements.txt",
    "requirements-test.txt",
    "Pipfile",
];

pub(super) fn look(folder: &Folder, part: &mut Part) {
    let environment = ENVIRONMENTS.into_iter().find(|name| folder.has(format!("{name}/pyvenv.cfg")));
    let installer = installer(folder);
    part.found.push_str(&format!(" ({installer}{})", environment.map(|name| format!(", {name}")).unwrap_or_default()));
    part.scratch.push(format!("{}.pytest_cache/", folder.below()));
    let python = environment.map_or_else(|| "python3".to_owned(), |name| format!("{name}/bin/python"));
    let declared = DECLARATIONS.iter().any(|name| folder.text(name).contains("pytest"));
    if declared || folder.has("pytest.ini") || folder.has("conftest.py") || folder.has("tests/conftest.py") {
        part.steps.push(Step::new("test", format!("{python} -m pytest"), "The project names pytest."));
        let how = match installer {
            "uv" => "uv sync",
            "poetry" => "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install",
            _ => "python3 -m venv .venv && .venv/bin/pip install pytest",
        };
        let what = match environment {
            None => Some("no virtual environment".to_owned()),
            Some(name) if !has_pytest(folder, name) => Some(format!("no pytest in `{name}/`")),
            Some(_) => None,
        };
        part.notes
            .extend(what.map(|what| format!("{what} in `./{}`: run `{how}` before the first run", folder.below())));
    } else if let Some(start) = test_folder(folder) {
        part.steps.push(Step::new(
            "test",
            format!("{python} -m unittest discover{start}"),
            "The project names no test tool: unittest is part of Python.",
        ));
    } else {
        part.steps.push(Step::new(
            "test",
            "PYTHONPYCACHEPREFIX=\"$TMPDIR\" python3 -m compileall -q -x '[.]venv|node_modules' .",
            "The project has no tests yet: this only finds syntax errors. Replace it by your tests.",
        ));
        part.notes.push("no tests found: the stage `test` only looks for syntax errors".to_owned());
    }
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

/// Returns true if pytest is installed in a virtual environment.
fn has_pytest(folder: &Folder, environment: &str) -> bool {
    let lib = folder.at(&format!("{environment}/lib/"));
    lib.entries().iter().any(|version| lib.inner(version).has("site-packages/pytest"))
}

fn installer(folder: &Folder) -> &'static str {
    let locks = [("uv.lock", "uv"), ("poetry.lock", "poetry"), ("Pipfile", "pipenv")];
    let locked = locks.into_iter().find(|(lock, _)| folder.has(lock)).map(|(_, installer)| installer);
    let has_poetry = || folder.text("pyproject.toml").contains("[tool.poetry]").then_some("poetry");
    locked.or_else(has_poetry).unwrap_or("pip")
}
