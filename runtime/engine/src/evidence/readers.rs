//! Files that a build or a test runner finds by their names and takes code or settings from.
//!
//! They are ordinary work of stages and not protected. Beside hold-outs they matter: what a builder wrote in one runs in the process of
//! whoever reads it. Names are compared without case. The table is not complete, so it only informs.

use glovebox_record::path::ScopePath;

/// Who reads a file, and the names of such files.
#[rustfmt::skip]
const NAMES: &[(&str, &[&str])] = &[
    ("pytest", &["conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml"]),
    ("Python", &["sitecustomize.py", "usercustomize.py", "setup.py"]),
    ("npm", &["package.json"]),
    ("make", &["makefile", "gnumakefile"]),
    ("Cargo", &["build.rs", "cargo.toml"]),
    ("Go", &["go.mod", "go.work"]),
    ("CMake", &["cmakelists.txt"]),
    ("Gradle", &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.properties"]),
    ("Maven", &["pom.xml"]),
    ("Ruby", &["rakefile", "gemfile", ".rspec"]),
    ("PHP", &["phpunit.xml", "phpunit.xml.dist", "composer.json"]),
    ("just", &["justfile", ".justfile"]),
];

/// Who reads a file, and how its name begins.
const BEGINNINGS: &[(&str, &[&str])] = &[(
    "Node's test runners",
    &["jest.config.", "vitest.config.", "vite.config.", "babel.config.", ".babelrc", ".mocharc", "playwright.config."],
)];

/// Who reads a file, and how its name ends.
const ENDINGS: &[(&str, &[&str])] = &[("Python", &[".pth"]), ("make", &[".mk"])];

/// Returns who takes code or settings from a file with this path, if somebody does.
pub(super) fn reader(path: &ScopePath) -> Option<&'static str> {
    let name = path.as_str().rsplit('/').next()?.to_lowercase();
    let found = |table: &'static [(&'static str, &[&str])], is_it: &dyn Fn(&str) -> bool| {
        table.iter().find(|(_, names)| names.iter().any(|known| is_it(known))).map(|(reader, _)| *reader)
    };
    found(NAMES, &|known| name == known)
        .or_else(|| found(BEGINNINGS, &|known| name.starts_with(known)))
        .or_else(|| found(ENDINGS, &|known| name.ends_with(known)))
}

#[cfg(test)]
mod tests {
    use super::reader;
    use glovebox_record::path::ScopePath;

    #[test]
    fn files_are_found_in_every_folder_and_spelling() {
        for (path, expected) in [
            ("conftest.py", Some("pytest")),
            ("tests/deep/ConfTest.py", Some("pytest")),
            ("jest.config.mjs", Some("Node's test runners")),
            ("x/evil.pth", Some("Python")),
            ("GNUmakefile", Some("make")),
            ("build.rs", Some("Cargo")),
            ("src/main.rs", None),
            ("conftest.py/a", None),
        ] {
            assert_eq!(reader(&ScopePath::parse(path).unwrap()), expected, "{path}");
        }
    }
}
