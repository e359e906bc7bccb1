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
    Survey::for_project(project(files).path())
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
    assert_eq!(found(&["Makefile = test:", "tests/test_shop.py"]).0, "plain", "the makefile knows better");
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
    check(&["go.mod", "main.go", "main_test.go", "internal/x.go"], &["go test ./..."], &["internal/", "main.go"]);
    check(
        &["pom.xml", "src/main/java/A.java", "src/test/java/ATest.java"],
        &["mvn --offline --batch-mode test"],
        &["src/main/"],
    );
    check(&["build.gradle.kts", "src/main/A.kt"], &["gradle --offline --no-daemon test"], &["src/main/"]);
    check(
        &["pyproject.toml = dev = [\"pytest\"]", "clock/__init__.py", "tests/test_a.py"],
        &["python3 -m pytest"],
        &["clock/"],
    );
    check(&["requirements.txt", "a.py", "test_a.py", "tests/"], &["python3 -m unittest discover -s tests"], &["a.py"]);
    let venv = ["uv.lock", "pytest.ini", "setup.py", ".venv/pyvenv.cfg", "a/b.py"];
    check(&venv, &[".venv/bin/python -m pytest"], &["a/"]);
    let missing = "no pytest in `.venv/` in `./`: run `uv sync` before the first run";
    assert_eq!(survey(&venv).notes, [missing]);
    assert_eq!(survey(&[&venv[..], &[".venv/lib/python3.12/site-packages/pytest/"]].concat()).notes, [] as [&str; 0]);
    let node =
        ["package.json = {\"scripts\":{\"test\":\"x\",\"build\":\"y\"}}", "index.js", "a.test.js", "jest.config.js"];
    check(&node, &["npm run build", "npm test"], &["index.js"]);
    check(&["package.json = {", "src/a.ts"], &["node --test"], &["src/"]);
    check(&["Makefile = CC = cc\n\ntest: all\n\t./t\n", "a.c"], &["make test"], &["a.c"]);
    check(&["test.sh = #!/bin/bash", "bin/"], &["bash test.sh"], &["src/", "test.sh"]);
    check(&[], &["echo 'nothing tests this project yet: write your command into the stage test'; exit 1"], &["src/"]);
}

/// Node's own test runner succeeds without any test, which verifies nothing.
#[test]
fn a_node_project_without_tests_is_told_so() {
    let notes = |files: &[&str]| survey(files).notes.join("\n");
    assert!(notes(&["package.json = {}", "index.js", "latest.js"]).contains("no tests found in `./`"));
    for tests in ["test/a.js", "src/a.test.mjs", "a_test.cjs", "test-a.js", "test.js"] {
        assert_eq!(notes(&["package.json = {}", tests]), "", "{tests}");
    }
    assert_eq!(notes(&["package.json = {\"scripts\":{\"test\":\"x\"}}"]), "");
    assert!(notes(&["package.json = {", "test.js"]).contains("`package.json` could not be read"));
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

#[test]
fn only_build_results_that_git_ignores_are_a_cache() {
    let cache = |files: &[&str]| survey(files).parts.remove(0).caches;
    let package = "package.json = {\"scripts\":{\"build\":\"x\"}}";
    assert_eq!(cache(&["Cargo.toml"]), ["target/"]);
    assert_eq!(cache(&["Cargo.toml", "target/a"]), [] as [&str; 0], "git keeps it");
    assert_eq!(cache(&["Cargo.toml", "target/a", ".gitignore = /target\n"]), ["target/"]);
    assert_eq!(cache(&[package, "dist/a.js"]), [] as [&str; 0]);
    assert_eq!(cache(&[package, ".gitignore = node_modules\ndist\n"]), ["dist/"]);
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
