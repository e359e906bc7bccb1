//! Files from which programs take code or settings because of their names: builds, test runners and developer tools.
//!
//! Stages write such files as part of their ordinary work, and the files are not protected. In a stage with access to
//! hold-outs, files for builds matter: code that a builder wrote into such a file runs in the process that loads the
//! file. Names are compared without case, as on a case-insensitive file system. The table is not complete, so it is
//! used only for information.

use glovebox_names::protected::fold;
use glovebox_record::path::ScopePath;

/// Programs, each with the names of the files that it reads.
#[rustfmt::skip]
const NAMES: &[(&str, &[&str])] = &[
    ("pytest", &["conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml"]),
    ("Python", &["sitecustomize.py", "usercustomize.py", "setup.py"]),
    ("npm", &["package.json"]),
    ("make", &["makefile", "gnumakefile"]),
    ("cargo-make", &["makefile.toml"]),
    ("Cargo", &["build.rs", "cargo.toml"]),
    ("Go", &["go.mod", "go.work"]),
    ("Mage", &["magefile.go"]),
    ("CMake", &["cmakelists.txt", "cmakepresets.json", "cmakeuserpresets.json"]),
    ("Conan", &["conanfile.py", "conanfile.txt"]),
    ("Gradle", &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.properties"]),
    ("Maven", &["pom.xml"]),
    ("Ant", &["build.xml"]),
    ("Ruby", &["rakefile", "rakefile.rb", "gemfile", ".rspec"]),
    ("PHP", &["phpunit.xml", "phpunit.dist.xml", "phpunit.xml.dist", "composer.json"]),
    ("just", &["justfile", ".justfile"]),
    ("Task", &["taskfile.yml", "taskfile.yaml", "taskfile.dist.yml", "taskfile.dist.yaml"]),
    ("prove", &[".proverc"]),
    ("R", &[".renviron"]),
    (".NET", &["nuget.config", "directory.build.props", "directory.build.targets", "directory.build.rsp"]),
    ("sbt", &[".sbtrc"]),
    ("Deno", &["deno.json", "deno.jsonc"]),
    ("nox", &["noxfile.py"]),
    ("doit", &["dodo.py"]),
    ("Invoke", &["tasks.py"]),
    ("Fabric", &["fabfile.py"]),
    ("SCons", &["sconstruct", "sconscript"]),
    ("Waf", &["wscript"]),
    ("Zig", &["build.zig"]),
    ("Mix", &["mix.exs"]),
    ("rebar3", &["rebar.config", "rebar.config.script"]),
    ("Nix", &["flake.nix", "shell.nix", "default.nix"]),
    ("Docker", &["dockerfile", "containerfile"]),
    ("Docker Compose", &["docker-compose.yml", "docker-compose.yaml", "compose.yml", "compose.yaml"]),
    ("Meson", &["meson.build", "meson.options", "meson_options.txt"]),
    ("Bazel", &["build.bazel", "module.bazel", "workspace.bazel"]),
    ("npm", &["binding.gyp"]),
    ("Swift", &["package.swift"]),
    ("Danger", &["dangerfile"]),
    ("latexmk", &[".latexmkrc", "latexmkrc"]),
    ("Octave", &[".octaverc"]),
    ("Erlang", &[".erlang"]),
];

/// Developer tools, each with the names of the files and folders that it reads. Checks do not start these programs.
#[rustfmt::skip]
const OF_PEOPLE: &[(&str, &[&str])] = &[
    ("Ansible", &["ansible.cfg"]),
    ("Wrangler", &["wrangler.toml"]),
    ("MkDocs", &["mkdocs.yml"]),
    ("Sphinx", &["conf.py"]),
    ("Jupyter", &[
        "jupyter_config.py", "jupyter_config.json", "jupyter_notebook_config.py", "jupyter_notebook_config.json",
        "jupyter_server_config.py", "jupyter_server_config.json", "jupyter_lab_config.py", "ipython_config.py",
        "ipython_kernel_config.py",
    ]),
    ("tmuxinator", &[".tmuxinator.yml", ".tmuxinator.yaml"]),
    ("Vagrant", &["vagrantfile"]),
    ("Tilt", &["tiltfile"]),
    ("Rope", &[".ropeproject"]),
    ("Vimspector", &[".vimspector.json"]),
    ("YouCompleteMe", &[".ycm_extra_conf.py"]),
    ("IntelliJ IDEA", &[".run"]),
    ("jdb", &[".jdbrc", "jdb.ini"]),
    ("Byebug", &[".byebugrc"]),
    ("rdbg", &[".rdbgrc"]),
    ("agents", &[".agents", ".agent"]),
    ("Kilo Code", &[".kilocode", ".kilocodemodes"]),
    ("Roo Code", &[".roomodes"]),
    ("Cline", &[".cline"]),
    ("Qoder", &[".qoder"]),
    ("Rovo Dev", &[".rovodev"]),
    ("Factory", &[".factory"]),
    ("pi", &[".pi"]),
];

/// Developer tools, each with the endings of the names of the files that it reads.
const OF_PEOPLE_ENDINGS: &[(&str, &[&str])] =
    &[("VS Code", &[".code-workspace"]), ("Sublime Text", &[".sublime-project", ".sublime-workspace"])];

/// Programs, each with the beginnings of the names of the files that it reads.
#[rustfmt::skip]
const BEGINNINGS: &[(&str, &[&str])] = &[
    ("Node's test runners", &[
        "jest.config.", "vitest.config.", "vite.config.", "babel.config.", ".babelrc", ".mocharc", "playwright.config.",
        "karma.conf.", "cypress.config.",
    ]),
    ("Node's tools", &[
        "eslint.config.", ".eslintrc", "prettier.config.", ".prettierrc", "webpack.config.", "rollup.config.", "postcss.config.",
        "tailwind.config.", "next.config.", "nuxt.config.", "svelte.config.", "astro.config.", "commitlint.config.",
        "lint-staged.config.", "gulpfile.", "gruntfile.",
    ]),
];

/// Programs, each with the endings of the names of the files that it reads.
const ENDINGS: &[(&str, &[&str])] = &[
    ("Python", &[".pth"]),
    ("make", &[".mk"]),
    (".NET", &[".csproj", ".fsproj", ".vbproj", ".sln"]),
    ("RubyGems", &[".gemspec"]),
    ("sbt", &[".sbt"]),
];

/// Programs, each with the names of the folders in which it reads every file.
const FOLDERS: &[(&str, &[&str])] = &[("Gradle", &["buildsrc"])];

type Table = &'static [(&'static str, &'static [&'static str])];

/// A file name in the form of the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoldedName(String);

impl FoldedName {
    pub(super) fn named(name: &str) -> Self {
        Self(fold(name).into_owned())
    }

    pub(super) fn begins_with_a_dot(&self) -> bool {
        self.0.starts_with('.')
    }

    /// Returns the program that takes code or settings from every file in a folder with this name, if one is known.
    pub(super) fn reader_of_folder(&self) -> Option<&'static str> {
        find(FOLDERS, |known| self.0 == known)
    }

    /// Returns the program that takes code or settings from a file or folder with this name, if one is known.
    pub(super) fn reader(&self) -> Option<&'static str> {
        let name = self.0.as_str();
        of_build(name)
            .or_else(|| find(OF_PEOPLE, |known| name == known))
            .or_else(|| find(OF_PEOPLE_ENDINGS, |known| name.ends_with(known)))
    }
}

/// Returns the build or test runner that takes code or settings from a file with this path, if one is known.
pub(super) fn reader(path: &ScopePath) -> Option<&'static str> {
    let (folders, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
    let of_folder = || folders.split('/').find_map(|folder| FoldedName::named(folder).reader_of_folder());
    of_build(&fold(name)).or_else(of_folder)
}

fn of_build(name: &str) -> Option<&'static str> {
    find(NAMES, |known| name == known)
        .or_else(|| find(BEGINNINGS, |known| name.starts_with(known)))
        .or_else(|| find(ENDINGS, |known| name.ends_with(known)))
}

fn find(table: Table, is_it: impl Fn(&str) -> bool) -> Option<&'static str> {
    table.iter().find(|(_, names)| names.iter().any(|known| is_it(known))).map(|(reader, _)| *reader)
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
            ("confte\u{17f}t.py", Some("pytest")),
            ("conf\u{200b}test.py", Some("pytest")),
            ("build.sbt", Some("sbt")),
            ("project/plugins.sbt", Some("sbt")),
            ("buildSrc/src/main/java/A.java", Some("Gradle")),
            ("src/buildSrc.rs", None),
            ("Makefile.toml", Some("cargo-make")),
            ("src/SConscript", Some("SCons")),
            ("conanfile.py", Some("Conan")),
            ("tasks.py", Some("Invoke")),
            ("fabfile.py", Some("Fabric")),
            ("phpunit.dist.xml", Some("PHP")),
            ("rakefile.rb", Some("Ruby")),
            ("build.xml", Some("Ant")),
            ("magefile.go", Some("Mage")),
            ("karma.conf.js", Some("Node's test runners")),
            ("cypress.config.ts", Some("Node's test runners")),
            ("CMakePresets.json", Some("CMake")),
            // Checks do not start these programs.
            ("wrangler.toml", None),
            ("app/conf.py", None),
        ] {
            assert_eq!(reader(&ScopePath::parse(path).unwrap()), expected, "{path}");
        }
    }
}
