//! Python projects with environments of each tool, in the project and outside of it.

use super::{Project, bare, check, commit, not_run, place, user};
use crate::workbench::{Answer, Workbench, copy_tree, is_on_this_machine, root};
use std::path::{Path, PathBuf};

/// Returns the folder of installed packages of an environment.
fn packages(environment: &Path) -> PathBuf {
    let mut versions = std::fs::read_dir(environment.join("lib")).unwrap().map(|entry| entry.unwrap().path());
    versions.find_map(|path| Some(path.join("site-packages")).filter(|packages| packages.is_dir())).unwrap()
}

/// Creates a virtual environment with the pytest of `cargo xtask pytest`, which has the same files as one installed
/// with pip.
fn environment(at: &Path) -> Result<(), String> {
    std::fs::create_dir_all(at.parent().unwrap()).unwrap();
    user(at.parent().unwrap(), &["python3", "-m", "venv", "--without-pip", &at.display().to_string()])?;
    let pytest = root().join("target/pytest");
    assert!(pytest.join("bin/pytest").is_file(), "{}: run `cargo xtask pytest`", pytest.display());
    copy_tree(&packages(&pytest), &packages(at));
    Ok(())
}

/// Creates the environment of a tool that installs a copy of the project.
fn with_copy(folder: &Path, at: &str) -> Result<(), String> {
    environment(&folder.join(at))?;
    copy_tree(&folder.join("src/clock"), &packages(&folder.join(at)).join("clock"));
    Ok(())
}

#[test]
fn a_python_project_with_a_virtual_environment_succeeds() {
    check(&Project {
        install: |folder| environment(&folder.join(".venv")),
        ..Project::new(
            "python",
            "python3",
            "found    Python project: pyproject.toml (pip, .venv)",
            ".venv/bin/python -m pytest",
        )
    });
}

#[test]
fn a_python_project_of_uv_succeeds() {
    check(&Project {
        install: |folder| environment(&folder.join(".venv")),
        ..Project::new(
            "uv",
            "python3",
            "found    Python project: pyproject.toml (uv, .venv)",
            ".venv/bin/python -m pytest",
        )
    });
}

/// tox installs a copy of the project. The tests must see the sources, or no repair would have an effect: the second part of
/// `check` breaks them.
#[test]
fn a_python_project_of_tox_succeeds() {
    check(&Project {
        install: |folder| with_copy(folder, ".tox/py3.11"),
        ..Project::new(
            "tox",
            "python3",
            "found    Python project: pyproject.toml (tox, .tox/py3.11)",
            "PYTHONPATH=src .tox/py3.11/bin/python -m pytest",
        )
    });
}

#[test]
fn a_python_project_of_nox_succeeds() {
    check(&Project {
        install: |folder| with_copy(folder, ".nox/tests-3-11"),
        ..Project::new(
            "nox",
            "python3",
            "found    Python project: pyproject.toml (nox, .nox/tests-3-11)",
            "PYTHONPATH=src .nox/tests-3-11/bin/python -m pytest",
        )
    });
}

#[test]
fn an_environment_below_a_folder_of_build_results_succeeds() {
    let bench = place("python");
    if let Err(why) = environment(&bench.project().join("build/venv")) {
        return not_run("python", &why);
    }
    bench.write(".gitignore", "build/\n__pycache__/\n");
    commit(&bench);
    bench.glovebox(&["init"]).ends(0).says("(pip, build/venv)").says("build/venv/bin/python -m pytest");
    bare(&bench, &["run"]).ends(0).says("verified     test: sh -c 'build/venv/bin/python -m pytest' exit 0");
}

/// Poetry's default: the environment is in its cache, in a folder with a hash of the project's path.
fn of_poetry() -> Result<(Workbench, PathBuf), String> {
    let bench = place("poetry");
    if !is_on_this_machine("python3") {
        return Err("`python3` is not on this machine".to_owned());
    }
    let program = "import hashlib, base64, os; \
                   print(base64.urlsafe_b64encode(hashlib.sha256(os.getcwd().encode()).digest()).decode()[:8])";
    let project = bench.project().canonicalize().unwrap();
    let hash = std::process::Command::new("python3").args(["-c", program]).current_dir(project).output().unwrap();
    let hash = String::from_utf8(hash.stdout).unwrap();
    let at = bench.outside().canonicalize().unwrap().join(format!("venvs/clock-{}-py3.11", hash.trim()));
    environment(&at)?;
    commit(&bench);
    Ok((bench, at))
}

#[test]
fn an_environment_of_poetry_is_found_and_shown() {
    let (bench, at) = match of_poetry() {
        Ok(made) => made,
        Err(why) => return not_run("poetry", &why),
    };
    let folder = at.parent().unwrap();
    let init = Answer::of(bench.bare(&["init"]).env("POETRY_VIRTUALENVS_PATH", folder));
    init.ends(0).says(&format!("(poetry, {})", at.display())).says("python -m pytest").never_says("note ");
    assert!(bench.read("glovebox.toml").contains(&format!("venv = \"{}\"\n", at.display())));
    let plan = bench.glovebox(&["plan"]);
    plan.ends(0).says(&at.display().to_string());
    let run = bare(&bench, &["run", "--run-id", "first"]);
    run.ends(0).says("verified     test: sh -c 'python -m pytest' exit 0").never_says("uv sync");
    assert_eq!(bench.glovebox(&["diff", "first"]).ends(0).stdout, "");
    bench.glovebox(&["plan", "--deny", &format!("read={}", at.display())]).ends(6).says("`venv` under `[exec]`");
    bench.write(
        "pipeline.dot",
        "digraph show { start; done; show [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"command -v python; \
         echo $VIRTUAL_ENV $PIP_NO_INDEX; touch $VIRTUAL_ENV/x || echo read-only\"]; start -> show -> done }",
    );
    bare(&bench, &["run", "--run-id", "second"]).ends(0);
    let said = bench.run_text("second", "show/tool.stdout.txt");
    let at = at.display();
    assert_eq!(said, format!("{at}/bin/python\n{at} 1\nread-only\n"));
}

#[test]
fn an_environment_that_cannot_be_used_is_an_error_with_its_place() {
    let bench = place("poetry");
    let check = |value: &str, says: &[&str]| {
        bench.write("glovebox.toml", &format!("[exec]\nvenv = \"{value}\"\n"));
        let plan = bench.glovebox(&["plan"]);
        plan.ends(3).says("glovebox.toml:2:8");
        says.iter().for_each(|text| _ = plan.says(text));
    };
    bench.write("pipeline.dot", crate::workbench::LINEAR);
    check(".venv", &["an absolute folder", "is found without this setting"]);
    check("/nowhere/at/all", &["there is no folder `/nowhere/at/all`", "create it again"]);
    let outside = bench.outside().display().to_string();
    check(&outside, &["is not an environment of Python", "pyvenv.cfg", "sys.prefix"]);
    std::fs::write(bench.outside().join("pyvenv.cfg"), "").unwrap();
    check(&outside, &["bin/python` leads to no interpreter", "create it again"]);
    bench.write("env/pyvenv.cfg", "");
    let inside = bench.project().join("env").display().to_string();
    check(&inside, &["which is in the project", "found automatically"]);
    // A file of settings is shared. `check` finds mistakes of the pipeline on machines without the environment too.
    bench.write("glovebox.toml", "[exec]\nvenv = \"/nowhere/at/all\"\n");
    bench.glovebox(&["check", "pipeline.dot"]).ends(0);
}
