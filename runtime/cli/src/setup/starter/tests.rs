//! Tests with projects of every kind: what is found, and that the checks have no finding for any template.

use super::*;
use glovebox_pipeline::{Inputs, Source};
use glovebox_plan::prepare::survey::{Survey, sources};
use std::fs;
use tempfile::TempDir;

/// Creates a project with these files. A name that ends with `/` is a folder, and ` = ` separates the name from the
/// content.
fn project(files: &[&str]) -> TempDir {
    let project = tempfile::tempdir().unwrap();
    for file in files {
        let (name, text) = file.split_once(" = ").unwrap_or((file, ""));
        let path = project.path().join(name);
        fs::create_dir_all(if name.ends_with('/') { &path } else { path.parent().unwrap() }).unwrap();
        if !name.ends_with('/') {
            fs::write(path, text).unwrap();
        }
    }
    project
}

fn survey(files: &[&str]) -> Survey {
    Survey::for_user(project(files).path(), &|_| None)
}

fn commands(survey: &Survey) -> Vec<String> {
    survey
        .parts
        .iter()
        .flat_map(|part| part.steps.iter().map(|step| format!("{}{}", part.folder, step.command)))
        .collect()
}

/// Checks for every template that the pipeline is formatted, has no finding, and has settings that parse.
fn is_clean(survey: &Survey) {
    for template in Template::ALL {
        let text = pipeline(template, survey).unwrap();
        assert_eq!(glovebox_pipeline::format::format(Source::new(&text)).unwrap(), text);
        let checked =
            glovebox_pipeline::validate(glovebox_pipeline::parse(Source::new(&text)).lower(&Inputs::default()));
        assert_eq!(
            checked.diagnostics.iter().map(|found| &found.message).collect::<Vec<_>>(),
            [] as [&str; 0],
            "{text}"
        );
    }
    let text = settings(survey);
    glovebox_plan::config::Config::parse(&text, "glovebox.toml").unwrap_or_else(|found| panic!("{found:?} in {text}"));
}

#[test]
fn python_is_found_by_its_tests_alone() {
    let found = |files: &[&str]| {
        let survey = survey(files);
        is_clean(&survey);
        (survey.parts[0].kind, survey.parts[0].found.clone(), commands(&survey).join(" "))
    };
    let expected = |file: &str, command: &str| ("Python", format!("{file} (pip)"), command.to_owned());
    let command = "python3 -m unittest discover -s tests";
    assert_eq!(found(&["shop.py", "tests/test_shop.py"]), expected("tests/test_shop.py", command));
    assert_eq!(found(&["shop.py", "test_shop.py"]), expected("test_shop.py", "python3 -m unittest discover"));
    assert_eq!(found(&["Makefile = test:\n\t./t\n", "tests/test_shop.py"]).0, "plain", "the makefile knows better");
    assert_eq!(found(&["shop.py", "tests/data.txt"]).0, "plain");
}

#[test]
fn each_kind_has_its_commands_and_its_scope() {
    let check = |files: &[&str], expected: &[&str], scope: &[&str]| {
        let survey = survey(files);
        assert_eq!(commands(&survey), expected, "{files:?}");
        assert_eq!(survey.scope, scope, "{files:?}");
        is_clean(&survey);
    };
    check(&["Cargo.toml", "Cargo.lock", "src/lib.rs", "tests/a.rs"], &["cargo test --offline"], &["src/"]);
    let member = ["Cargo.toml = [workspace]\nmembers = [\"a\"]", "a/Cargo.toml", "a/src/lib.rs", "build.rs"];
    check(&member, &["cargo test --workspace --offline"], &["a/"]);
    check(&["Cargo.toml = [workspace]\ndefault-members = [\"a\"]", "src/lib.rs"], &["cargo test --offline"], &["src/"]);
    check(&["go.mod", "main.go", "main_test.go", "internal/x.go"], &["go test ./..."], &["internal/", "main.go"]);
    check(
        &["go.work", "api/go.mod", "api/a.go", "api/a_test.go"],
        &["go list -f '{{.Dir}}/...' -m | xargs go test"],
        &["api/"],
    );
    check(
        &["pom.xml", "src/main/java/A.java", "src/test/java/ATest.java"],
        &["mvn --offline --batch-mode -DfailIfNoTests=true test"],
        &["src/main/"],
    );
    check(&["pom.xml = <modules>", "src/main/A.java"], &["mvn --offline --batch-mode test"], &["src/main/"]);
    check(&["build.gradle.kts", "src/main/A.kt"], &["gradle --offline --no-daemon test"], &["src/main/"]);
    check(
        &["pyproject.toml = dev = [\"pytest\"]", "clock/__init__.py", "tests/test_a.py"],
        &["python3 -m pytest"],
        &["clock/"],
    );
    check(&["requirements.txt", "a.py", "test_a.py", "tests/"], &["python3 -m unittest discover -s tests"], &["a.py"]);
    let venv = ["uv.lock", "pytest.ini", "setup.py", ".venv/pyvenv.cfg", "a/b.py", "tests/test_b.py"];
    check(&venv, &[".venv/bin/python -m pytest"], &["a/"]);
    let missing = "no pytest in `.venv/` in `./`: run `uv sync` before the first run";
    assert_eq!(survey(&venv).notes, [missing]);
    assert_eq!(survey(&[&venv[..], &[".venv/lib/python3.12/site-packages/pytest/"]].concat()).notes, [] as [&str; 0]);
    let node =
        ["package.json = {\"scripts\":{\"test\":\"x\",\"build\":\"y\"}}", "index.js", "a.test.js", "jest.config.js"];
    check(&node, &["npm run build", "npm test"], &["index.js"]);
    check(&["package.json = {}", "src/a.ts", "test/a.js"], &["node --test"], &["src/"]);
    check(&["Makefile = CC = cc\n\ntest: all\n\t./t\n", "a.c", "test.c"], &["make test"], &["a.c"]);
    check(&["test.sh = #!/bin/bash", "bin/"], &["bash test.sh"], &["src/", "test.sh"]);
    for nothing in [&[][..], &["package.json = {", "src/a.ts"], &["Makefile = all:\n\tcc a.c\n", "src/a.c"]] {
        check(nothing, &[NO_COMMAND], &["src/"]);
    }
}

const NO_COMMAND: &str = "echo 'nothing tests this project yet: write your command into the stage test'; exit 1";

/// Node's own test runner succeeds without any test, which verifies nothing.
#[test]
fn a_node_project_without_tests_is_told_so() {
    let notes = |files: &[&str]| survey(files).notes.join("\n");
    assert!(notes(&["package.json = {}", "index.js", "latest.js"]).contains("no tests found in `./`"));
    assert!(notes(&["package.json = {\"scripts\":{\"test\":\"echo none\"}}"]).contains("no tests found in `./`"));
    for tests in ["test/a.js", "src/a.test.mjs", "a_test.cjs", "test-a.js", "test.js"] {
        assert_eq!(notes(&["package.json = {}", tests]), "", "{tests}");
    }
    assert_eq!(notes(&["package.json = {\"scripts\":{\"test\":\"x\"}}"]), "");
    assert!(notes(&["package.json = {", "test.js"]).contains("`package.json` could not be read"));
    let passes = notes(&["package.json = {\"scripts\":{\"test\":\"vitest run --passWithNoTests\"}}"]);
    assert!(passes.contains("passes without any test"), "{passes}");
}

#[test]
fn a_node_project_is_tested_by_its_script_its_packages_or_its_runner() {
    let check = |files: &[&str], expected: &str| {
        let survey = survey(files);
        assert_eq!(commands(&survey), [expected], "{files:?}");
        is_clean(&survey);
    };
    let script = |text: &str| format!("package.json = {{\"scripts\":{{\"test\":\"{text}\"}}}}");
    check(&[&script("vitest run")], "npm test -- --passWithNoTests=false");
    check(&[&script("tsc && vitest run")], "npm test");
    check(&[&script("jest"), "yarn.lock"], "npm test");
    check(&[&script("tap"), ".pnp.cjs", "yarn.lock"], "yarn run test");
    let depends = |runner: &str| format!("package.json = {{\"devDependencies\":{{\"{runner}\":\"1\"}}}}");
    check(&[&depends("vitest"), "node_modules/"], "npx --no vitest run --passWithNoTests=false");
    check(&[&depends("jest"), "node_modules/"], "npx --no jest");
    check(&[&depends("tap"), "node_modules/"], "npx --no tap");
    let packages = ["packages/a/package.json = {\"scripts\":{\"test\":\"x\"}}", "packages/b/package.json = {}"];
    let with = |files: &[&'static str]| [files, &packages[..]].concat();
    check(&with(&["package.json = {\"workspaces\":[\"packages/*\"]}"]), "npm test --workspaces --if-present");
    check(
        &with(&["package.json = {\"workspaces\":{\"packages\":[\"./packages/a\"]}}"]),
        "npm test --workspaces --if-present",
    );
    let pnpm = "pnpm-workspace.yaml = packages:\n  - \"packages/**\"\n";
    check(&with(&["package.json = {}", pnpm]), "pnpm --recursive test");
    check(
        &with(&["package.json = {\"workspaces\":[\"packages/*\"]}", ".pnp.cjs"]),
        "yarn workspaces foreach --all run test",
    );
    check(&["package.json = {\"workspaces\":[\"packages/*\",\"../x\"]}", "packages/a/package.json = {}"], NO_COMMAND);
}

#[test]
fn native_projects_are_found_if_they_declare_tests() {
    let check = |files: &[&str], expected: &[&str]| {
        let survey = survey(files);
        assert_eq!(commands(&survey), expected, "{files:?}");
        is_clean(&survey);
    };
    let ctest = "cd build && ctest --no-tests=error --output-on-failure";
    let cmake = ["cmake -S . -B build && cmake --build build", ctest];
    check(&["CMakeLists.txt = project(a)\nenable_testing()\n", "a.c"], &cmake);
    check(&["CMakeLists.txt = project(a)", "tests/CMakeLists.txt =   ADD_TEST (NAME a COMMAND a)"], &cmake);
    check(&["CMakeLists.txt = include(CTest)", "build/x", ".gitignore = build/"], &cmake);
    check(
        &["CMakeLists.txt = project(a)\n# enable_testing()", "vendor/CMakeLists.txt = enable_testing()"],
        &[NO_COMMAND],
    );
    let other = "cmake -S . -B glovebox-build && cmake --build glovebox-build";
    assert_eq!(commands(&survey(&["CMakeLists.txt = enable_testing()", "build/x"]))[0], other);
    check(
        &["meson.build = project('a', 'c')\ntest('a', exe)\n"],
        &[
            "meson setup --wrap-mode=nodownload build && meson compile -C build",
            "test -n \"$(meson test -C build --no-rebuild --list)\" && meson test -C build --print-errorlogs",
        ],
    );
    check(&["meson.build = project('a', 'c')\ntests = []\n"], &[NO_COMMAND]);
    let check_log = "cd build && make check && find . -name test-suite.log | grep -q .";
    check(
        &["configure.ac", "configure", "Makefile.am = TESTS = a\n"],
        &["mkdir -p build && cd build && sh \"$OLDPWD/configure\" && make", check_log],
    );
    check(
        &["configure.ac", "src/Makefile.am = TESTS += a\n"],
        &["autoreconf --install && mkdir -p build && cd build && sh \"$OLDPWD/configure\" && make", check_log],
    );
    check(&["configure.ac", "Makefile.am = bin_PROGRAMS = a\n"], &[NO_COMMAND]);
    let own = ["configure", "Makefile.in = test: all\n\t./example\n"];
    let configure = "mkdir -p build && cd build && sh \"$OLDPWD/configure\" && make";
    check(&own, &[configure, "cd build && make test"]);
    check(&own[1..], &[NO_COMMAND]);
    check(&["configure", "Makefile.in = all:\n\tcc a.c\n"], &[NO_COMMAND]);
}

#[test]
fn a_tool_that_is_not_installed_is_not_preferred() {
    let programs = project(&["bin/make", "bin/meson", "bin/ninja"]);
    let survey = |files: &[&str]| {
        let path = |name: &str| (name == "PATH").then(|| programs.path().join("bin").into_os_string());
        let survey = Survey::for_user(project(files).path(), &path);
        is_clean(&survey);
        survey
    };
    let cmake = "CMakeLists.txt = enable_testing()";
    let found = survey(&[cmake, "configure", "Makefile.in = test:\n\t./example\n"]);
    assert_eq!(commands(&found)[1], "cd build && make test");
    assert_eq!(
        found.notes,
        ["took `cd build && make test`; not taken: `cd build && ctest --no-tests=error --output-on-failure` \
             (CMakeLists.txt, `cmake` is not installed)"]
    );
    assert_eq!(survey(&[cmake, "meson.build = test('a', b)"]).parts[0].kind, "Meson");
    let make = "Makefile = test:\n\t./demo\n";
    assert_eq!(survey(&[cmake, make]).parts[0].kind, "CMake", "the user is told what to install");
    assert_eq!(survey(&[cmake, "lib/meson.build = test('a', b)"]).parts[0].kind, "CMake");
}

#[test]
fn shell_projects_and_task_runners_are_found() {
    let check = |files: &[&str], expected: &str, found: &str| {
        let survey = survey(files);
        assert_eq!(commands(&survey), [expected], "{files:?}");
        assert_eq!(survey.parts[0].found, found, "{files:?}");
        is_clean(&survey);
    };
    check(&["test/a.bats"], "bats test", "test/*.bats");
    check(&["a.bats"], "bats .", "*.bats");
    check(&["tests/unit/a.bats"], "bats --recursive tests", "tests/*.bats");
    check(&["test/a.bats", "test/bats/bin/bats"], "test/bats/bin/bats test", "test/*.bats");
    let loops = "for file in tests/*_test.s[h]; do sh \"$file\" || exit 1; done";
    check(&["tests/a_test.sh = . shunit2"], loops, "tests/*_test.sh (shunit2)");
    check(&["justfile = test:\n  cargo test\n"], "just test", "justfile (recipe test)");
    check(
        &["Taskfile.yml = version: '3'\ntasks:\n  build:\n    cmds: [x]\n  test:\n    cmds: [y]\n"],
        "task test",
        "Taskfile.yml (task test)",
    );
    check(&["Taskfile.yml = tasks:\n  build:\n    test: x\n"], NO_COMMAND, "no tests");
    check(&["Makefile = check:\n\t./t\n"], "make check", "Makefile (target check)");
}

#[test]
fn of_several_commands_the_note_names_all() {
    let note = |files: &[&str]| {
        let survey = survey(files);
        is_clean(&survey);
        survey.notes.first().cloned().unwrap_or_default()
    };
    let make = "Makefile = test:\n\t./demo\n";
    let cmake = "CMakeLists.txt = enable_testing()";
    let ctest = "`cd build && ctest --no-tests=error --output-on-failure`";
    assert_eq!(note(&[cmake, make]), format!("took {ctest}; not taken: `make test` (Makefile)"));
    let meson = "meson.build = test('a', b)";
    assert!(note(&[cmake, meson]).ends_with("(meson.build)"), "only one tool builds a folder");
    assert_eq!(
        note(&["Cargo.toml", "justfile = test:\n  x\n", make]),
        "took `cargo test --offline`; not taken: `just test` (justfile), `make test` (Makefile)"
    );
    assert_eq!(note(&["Cargo.toml"]), "");
    let none = note(&["package.json = {}", make]);
    assert_eq!(none, "", "the makefile is the only one");
}

/// The makefile of a project whose kind has no tests may call the tools of the kind.
#[test]
fn an_entry_point_keeps_the_toolchains_of_kinds_without_tests() {
    let survey = survey(&["package.json = {}", "Makefile = test:\n\tnode check.js\n"]);
    assert_eq!(commands(&survey), ["make test"]);
    assert!(settings(&survey).contains("toolchains = [\"node\"]"));
    let shell =
        self::survey(&["web/package.json = {\"scripts\":{\"test\":\"x\"}}", "test/a.bats", "Makefile = test:\n\tx\n"]);
    assert_eq!(commands(&shell), ["web/npm test", "bats test"]);
}

#[test]
fn environments_of_python_are_found_in_the_project() {
    let check = |files: &[&str], found: &str, command: &str| {
        let files = [files, &["pyproject.toml = pytest", "tests/test_a.py", "a/b.py"]].concat();
        let survey = survey(&files);
        assert_eq!(survey.parts[0].found, format!("pyproject.toml ({found})"), "{files:?}");
        assert_eq!(commands(&survey), [command], "{files:?}");
        is_clean(&survey);
    };
    let pytest = "lib/python3.12/site-packages/pytest/";
    let of_tox = [".tox/docs/pyvenv.cfg", ".tox/py3.11/pyvenv.cfg", &format!(".tox/py3.11/{pytest}")];
    check(&of_tox, "tox, .tox/py3.11", ".tox/py3.11/bin/python -m pytest");
    check(&[&of_tox[..], &["uv.lock"]].concat(), "tox, .tox/py3.11", ".tox/py3.11/bin/python -m pytest");
    check(&[".nox/tests-3-12/pyvenv.cfg"], "nox, .nox/tests-3-12", ".nox/tests-3-12/bin/python -m pytest");
    check(
        &["build/venv/pyvenv.cfg", &format!("build/venv/{pytest}")],
        "pip, build/venv",
        "build/venv/bin/python -m pytest",
    );
    check(&["env/conda-meta/", "environment.yml"], "conda, env", "env/bin/python -m pytest");
    let copied =
        ["src/a/b.py", ".tox/py/pyvenv.cfg", ".tox/py/lib/python3.12/site-packages/a/", &format!(".tox/py/{pytest}")];
    check(&copied, "tox, .tox/py", "PYTHONPATH=src .tox/py/bin/python -m pytest");
    let noted = |file: &str| survey(&[file, "conftest.py", "tests/test_a.py"]).notes.join("\n");
    for (file, install) in [
        ("tox.ini", "tox run --notest"),
        ("noxfile.py", "nox --install-only"),
        ("uv.lock", "uv sync"),
        ("poetry.lock", "poetry install"),
        ("environment.yml", "conda env create"),
        ("pyproject.toml = [tool.hatch.envs.default]", "hatch env create"),
    ] {
        let marked = [file, "setup.py", "conftest.py", "tests/test_a.py"];
        let notes = survey(&marked).notes.join("\n");
        assert!(notes.contains(&format!("run `{install}` before")), "{file}: {notes}");
    }
    assert!(noted("requirements.txt").contains("python3 -m venv .venv"));
}

#[test]
fn environments_of_python_are_found_outside_of_the_project() {
    let files = [
        "project/pyproject.toml = [tool.poetry]\npytest",
        "project/tests/test_a.py",
        "project/environment.yml = name: shop\n",
    ];
    let place = project(&files);
    let root = place.path().canonicalize().unwrap();
    let (project, home) = (root.join("project"), root.join("home"));
    let found = |path: &str| {
        let environment = root.join(path);
        fs::create_dir_all(environment.join("lib/python3.12/site-packages/pytest")).unwrap();
        fs::create_dir_all(environment.join("conda-meta")).unwrap();
        let survey = Survey::for_user(&project, &|name| match name {
            "HOME" => Some(home.clone().into()),
            "VIRTUAL_ENV" => Some(root.join("active").into()),
            _ => None,
        });
        is_clean(&survey);
        let text = settings(&survey);
        let line = format!("venv = \"{}\"\n", environment.display());
        assert_eq!(commands(&survey), ["python -m pytest"], "{path}");
        assert!(text.contains(&line), "{path}: {text}");
        fs::remove_dir_all(environment).unwrap();
    };
    found("home/miniconda3/envs/shop");
    found("active");
    fs::create_dir_all(home.join(".virtualenvs/any")).unwrap();
    fs::write(home.join(".virtualenvs/any/.project"), format!("{}\n", project.display())).unwrap();
    found("home/.virtualenvs/any");
}

/// In the project of a shell program, no file name has an extension.
#[test]
fn the_scope_of_a_repair_contains_the_folders_of_programs() {
    let scope = |files: &[&str]| survey(files).scope;
    let rbenv = ["bin/rbenv", "libexec/rbenv", "libexec/rbenv-exec", "rbenv.d/exec/a.bash", "test/a.bats", "README.md"];
    assert_eq!(scope(&rbenv), ["bin/", "libexec/", "rbenv.d/"]);
    assert_eq!(scope(&["lib/a", "src/b.c", "test/a.bats", "LICENSE"]), ["lib/", "src/"]);
    assert_eq!(scope(&["bin/tool", ".gitignore = bin/", "test/a.bats"]), ["src/"]);
}

#[test]
fn a_project_of_several_kinds_has_stages_for_each() {
    let files = [
        "Cargo.toml",
        "src/lib.rs",
        "web/package.json = {\"scripts\":{\"test\":\"x\"}}",
        "web/src/a.ts",
        "docs/package.json = {}",
    ];
    let survey = survey(&files);
    assert_eq!(commands(&survey), ["cargo test --offline", "web/npm test"]);
    assert_eq!(survey.scope, ["src/", "web/src/"]);
    is_clean(&survey);
    let text = pipeline(Template::Default, &survey).unwrap();
    assert!(text.contains("test_node_web [") && text.contains("tool_command=\"cd web && npm test\""), "{text}");
    assert!(settings(&survey).contains("toolchains = [\"node\", \"rust\"]"));
}

/// The content of a project's files is never copied into the files that are written.
#[test]
fn texts_of_the_project_are_never_written() {
    let mark = "PWNED";
    let hostile = format!(
        "package.json = {{\"name\":\"a\\\"; $({mark}) `{mark}` \\n{mark}\",\"scripts\":{{\"test\":\"{mark}\",\"build\\\" {mark}\":\"x\",\
         \"build\":\"$({mark})\"}},\"packageManager\":\"{mark}\",\"workspaces\":[\"$({mark})\"]}}"
    );
    let makefile = format!("Makefile = test{mark}: x\n\ntest: $({mark})\n");
    let folder = format!("$({mark})/package.json = {{}}");
    let lines = [format!("a\n{mark}.js"), format!("a\"{mark}.js"), format!("-{mark}.js"), format!("a {mark}/b.js")];
    let mut files = vec![hostile.as_str(), makefile.as_str(), folder.as_str(), "pyproject.toml = pytest"];
    files.extend(lines.iter().map(String::as_str));
    let survey = survey(&files);
    is_clean(&survey);
    for template in Template::ALL {
        let text = pipeline(template, &survey).unwrap() + &settings(&survey);
        assert!(!text.contains(mark), "{text}");
    }
}

/// A cache is a mount point, so a build that deletes the folder would fail. A folder that git ignores is kept without it.
#[test]
fn only_build_results_that_git_does_not_ignore_are_a_cache() {
    let cache = |files: &[&str]| survey(files).parts.remove(0).caches;
    let package = "package.json = {\"scripts\":{\"build\":\"x\",\"test\":\"y\"}}";
    const NONE: [&str; 0] = [];
    assert_eq!(cache(&["Cargo.toml", ".gitignore = x"]), ["target/"]);
    assert_eq!(cache(&["Cargo.toml"]), NONE, "`init` writes a `.gitignore`");
    assert_eq!(cache(&["Cargo.toml", "target/a", ".gitignore = x"]), NONE, "git keeps it");
    assert_eq!(cache(&["Cargo.toml", "target/a", ".gitignore = /target\n"]), NONE);
    assert_eq!(cache(&[package, ".gitignore = node_modules\ndist\n"]), NONE);
    let scratch = survey(&[package, ".gitignore = coverage\ndist\n"]).parts.remove(0).scratch;
    assert_eq!(scratch, ["coverage/"], "the test stage needs the results of the build");
    assert_eq!(cache(&["CMakeLists.txt = enable_testing()", "build/x", ".gitignore = y"]), ["glovebox-build/"]);
}

#[test]
fn a_help_text_offers_only_what_exists() {
    let check = |files: &[&str], expected: &[&str]| {
        let found: Vec<String> = sources(project(files).path()).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{files:?}");
    };
    check(&["app/views/a.py", "main.py", "tests/test_a.py", "README.md"], &["app/", "main.py"]);
    check(&["pom.xml", "src/main/java/A.java", "src/test/java/ATest.java"], &["src/main/"]);
    check(&["notes.txt", "docs/a.md"], &[]);
    check(&["a/a.go", "b/b.go", "c/c.go", "d/d.go", "e/e.go"], &["a/", "b/", "c/", "d/"]);
}
