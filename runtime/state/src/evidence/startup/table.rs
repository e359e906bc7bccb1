//! The places from which interpreters, test runners and builds load code or settings automatically.
//!
//! A file is in this table if a program loads it without being told to, and if the file can change whether a check
//! passes. Manifests, such as `package.json` and `Cargo.toml`, are ordinary work and are not in the table. Names are
//! compared without case. No table is complete, so it is used only for information.

use super::programs::Loaded;
use glovebox_record::path::ScopePath;

/// The place of a file.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// A file of this name, in any folder.
    Name(&'static str),
    /// A file whose name begins with this text, in any folder.
    Beginning(&'static str),
    /// A file whose name ends with this text, in any folder.
    Ending(&'static str),
    /// A file whose path ends with these components.
    Path(&'static str),
    /// Any file below a folder of this name. The folder may be anywhere.
    Folder(&'static str),
    /// Any file below a folder whose name ends with this text.
    FolderEnding(&'static str),
}

use Place::{Beginning, Ending, Folder, FolderEnding, Name, Path};

/// Programs, and the places from which they load files.
struct Row {
    /// A name for the programs, for people. [`Loaded::has`] says whether a command starts one of them.
    reader: &'static str,
    /// True if the file is listed only for commands that start one of the programs.
    is_named: bool,
    places: &'static [Place],
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { reader: "Python", is_named: false, places: &[
        Name("sitecustomize.py"), Name("usercustomize.py"), Folder("sitecustomize"), Folder("usercustomize"), Ending(".pth"),
        Ending(".egg-link"), FolderEnding(".dist-info"), FolderEnding(".egg-info"), FolderEnding(".egg"), Ending(".pyc"),
        Ending(".pyd"), Ending(".so"), Name("pyvenv.cfg"), Folder("site-packages"),
    ] },
    Row { reader: "pytest", is_named: true, places: &[
        Name("conftest.py"), Name("pytest.ini"), Name(".pytest.ini"), Name("pytest.toml"), Name(".pytest.toml"), Name("tox.ini"),
    ] },
    Row { reader: "Node", is_named: false, places: &[
        Folder("node_modules"), Name(".npmrc"), Name(".yarnrc"), Name(".yarnrc.yml"), Name(".pnp.cjs"), Name(".pnp.js"),
        Name(".pnp.loader.mjs"), Name("bunfig.toml"), Folder(".yarn"),
    ] },
    Row { reader: "Node's test runners", is_named: true, places: &[
        Beginning("jest.config."), Beginning("vitest.config."), Beginning("vite.config."), Beginning("babel.config."),
        Beginning(".babelrc"), Beginning(".mocharc"), Beginning("playwright.config."), Beginning("ava.config."), Name(".taprc"),
        Name(".swcrc"), Folder("__mocks__"), Beginning("karma.conf."), Beginning("cypress.config."),
    ] },
    Row { reader: "Go", is_named: false, places: &[Name("go.work"), Path("vendor/modules.txt")] },
    Row { reader: "Cargo", is_named: false, places: &[
        Path(".cargo/config"), Path(".cargo/config.toml"), Name("rust-toolchain"), Name("rust-toolchain.toml"),
        Path(".config/nextest.toml"),
    ] },
    Row { reader: "Cargo", is_named: true, places: &[Name("build.rs")] },
    Row { reader: "Java", is_named: false, places: &[
        Folder(".mvn"), Path("meta-inf/services"), Name("junit-platform.properties"), Name("gradle.properties"),
        Name("init.gradle"), Name("init.gradle.kts"), Ending(".init.gradle"), Ending(".init.gradle.kts"), Folder("init.d"),
        Folder("buildsrc"), Name(".jvmopts"), Name(".sbtopts"), Folder("gradle/wrapper"), Folder("meta-inf/services"),
    ] },
    Row { reader: "Gradle", is_named: true, places: &[
        Name("build.gradle"), Name("build.gradle.kts"), Name("settings.gradle"), Name("settings.gradle.kts"),
    ] },
    Row { reader: "make", is_named: true, places: &[Name("makefile"), Name("gnumakefile"), Ending(".mk")] },
    Row { reader: "just", is_named: true, places: &[Name("justfile"), Name(".justfile")] },
    Row { reader: "Ruby", is_named: false, places: &[Name(".rspec"), Path(".bundle/config")] },
    Row { reader: "Ruby", is_named: true, places: &[Name("rakefile"), Name("rakefile.rb")] },
    Row { reader: "PHP", is_named: false, places: &[Name(".user.ini"), Name("php.ini")] },
    Row { reader: "PHP", is_named: true, places: &[Name("phpunit.xml"), Name("phpunit.dist.xml"), Name("phpunit.xml.dist")] },
    Row { reader: "Perl", is_named: false, places: &[Name(".proverc"), Name("sitecustomize.pl")] },
    Row { reader: "R", is_named: false, places: &[Name(".rprofile"), Name(".renviron")] },
    Row { reader: ".NET", is_named: false, places: &[
        Name("directory.build.props"), Name("directory.build.targets"), Name("directory.build.rsp"), Name("nuget.config"),
        Ending(".runsettings"),
    ] },
    Row { reader: "direnv and mise", is_named: false, places: &[Name(".envrc"), Name("mise.toml"), Name(".tool-versions")] },
];

/// Names of files that a shell loads from its home folder.
const OF_HOME: &[&str] = &[
    ".bash_login",
    ".bash_profile",
    ".bashrc",
    ".kshrc",
    ".mkshrc",
    ".profile",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

impl Place {
    /// Returns true if a path in lower case is at this place.
    fn has(self, LowerPath(path): LowerPath<'_>) -> bool {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        match self {
            Name(known) => name == known,
            Beginning(known) => name.starts_with(known),
            Ending(known) => name.ends_with(known),
            Path(known) => path.strip_suffix(known).is_some_and(|above| above.is_empty() || above.ends_with('/')),
            Folder(known) => folders.match_indices(known).any(|(at, _)| {
                let (before, after) = (&folders[..at], &folders[at + known.len()..]);
                (before.is_empty() || before.ends_with('/')) && (after.is_empty() || after.starts_with('/'))
            }),
            FolderEnding(known) => {
                folders.split('/').any(|folder| folder.len() > known.len() && folder.ends_with(known))
            }
        }
    }
}

/// Returns the program that loads a file automatically, whatever the command is.
pub(in crate::evidence) fn any_reader(path: &ScopePath) -> Option<&'static str> {
    let lower = path.as_str().to_lowercase();
    let lower = LowerPath(&lower);
    let by_name = ROWS.iter().find(|row| row.places.iter().any(|place| place.has(lower))).map(|row| row.reader);
    by_name.or_else(|| lower.module().filter(|(folder, _)| SEARCHED.contains(folder)).map(|_| "Python"))
}

/// Returns the program that loads a file, among those that a command starts.
pub(super) fn reader(path: &ScopePath, loaded: &Loaded) -> Option<&'static str> {
    let lower = path.as_str().to_lowercase();
    let lower = LowerPath(&lower);
    let is_loaded = |row: &&Row| loaded.has(row.reader) || (!row.is_named && loaded.is_any);
    let rows = ROWS.iter().filter(is_loaded);
    let by_name = rows.into_iter().find(|row| row.places.iter().any(|place| place.has(lower))).map(|row| row.reader);
    by_name.or_else(|| lower.shadows(loaded).then_some("Python")).or_else(|| lower.by_variable(loaded))
}

/// Folders that Python tools add to the search path, besides the folder in which a command starts.
const SEARCHED: &[&str] = &["", "src", "lib", "python", "test", "tests"];

/// A path of the workspace in lower case.
#[derive(Clone, Copy)]
struct LowerPath<'p>(&'p str);

impl<'p> LowerPath<'p> {
    /// Returns the folder and the module name of a Python file that has the name of a library module. Python loads the
    /// file if the folder is in its search path.
    fn module(self) -> Option<(&'p str, &'p str)> {
        let file = self.0.strip_suffix(".py")?;
        let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
        if name != "__init__" {
            return super::modules::is_of_library(name).then_some((folder, name));
        }
        let (above, package) = folder.rsplit_once('/').unwrap_or(("", folder));
        super::modules::is_of_library(package).then_some((above, package))
    }

    /// Returns true if the file is a module that replaces a library module.
    fn shadows(self, loaded: &Loaded) -> bool {
        if !(loaded.has("Python") || loaded.is_any) {
            return false;
        }
        self.module().is_some_and(|(folder, _)| {
            SEARCHED.contains(&folder) || loaded.folders.iter().any(|searched| searched == folder)
        })
    }

    /// Returns the program that loads a file because an environment variable of the command names it.
    fn by_variable(self, loaded: &Loaded) -> Option<&'static str> {
        let Self(path) = self;
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if loaded.files.iter().any(|file| file == path) {
            return Some("a variable of the command");
        }
        if loaded.homes.iter().any(|home| home == folder) && OF_HOME.contains(&name) {
            return Some("a shell");
        }
        loaded.path.iter().any(|searched| searched == folder).then_some("the search path of the command")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(command: &str, path: &str) -> Option<&'static str> {
        reader(&ScopePath::parse(path).unwrap(), &Loaded::find(&[command.to_owned()], ""))
    }

    #[test]
    fn each_language_loads_its_own_files() {
        for (command, path, expected) in [
            (".venv/bin/python -m pytest -q", "src/sitecustomize.py", Some("Python")),
            (".venv/bin/python -m pytest -q", "src/x-1.dist-info/entry_points.txt", Some("Python")),
            ("python3.12 -m unittest", "lib/x.egg-info/entry_points.txt", Some("Python")),
            ("pytest", "tests/ConfTest.py", Some("pytest")),
            ("python3 -m unittest", "conftest.py", None),
            ("python3 -m unittest", "json.py", Some("Python")),
            ("python3 -m unittest", "src/unittest/__init__.py", Some("Python")),
            ("python3 -m unittest", "src/app/json.py", None),
            ("PYTHONPATH=app python3 -m unittest", "app/json.py", Some("Python")),
            ("cd app && python3 -m unittest", "app/random.py", Some("Python")),
            ("pytest", "src/app/__init__.py", None),
            ("node --test", "node_modules/.bin/x", Some("Node")),
            ("npx jest", "jest.config.js", Some("Node's test runners")),
            ("cargo test", "node_modules/x/index.js", None),
            ("node --test", "a/node_modules/x/index.js", Some("Node")),
            ("node --test", "my_node_modules/x.js", None),
            ("node --test", "src/node_modules.js", None),
            ("go test ./...", "go.work", Some("Go")),
            ("go test ./...", "go.mod", None),
            ("cargo test", "build.rs", Some("Cargo")),
            ("cargo test", "crates/a/.cargo/config.toml", Some("Cargo")),
            ("cargo test", "sitecustomize.py", None),
            ("mvn test", ".mvn/jvm.config", Some("Java")),
            ("./gradlew test", "src/test/resources/META-INF/services/x.Y", Some("Java")),
            ("make test", "GNUmakefile", Some("make")),
            ("make test", "sitecustomize.py", Some("Python")),
            ("BASH_ENV=env.sh sh -c true", "env.sh", Some("a variable of the command")),
            ("HOME=$PWD bash -lc true", ".profile", Some("a shell")),
            ("PATH=tools:$PATH check", "tools/check", Some("the search path of the command")),
            ("sh tests/check.sh", "x.pth", Some("Python")),
            ("sh tests/check.sh", "conftest.py", None),
            ("test -f a && grep -q b c", "x.pth", None),
            ("pytest", "src/main.py", None),
        ] {
            assert_eq!(found(command, path), expected, "{command}: {path}");
        }
    }

    #[test]
    fn what_no_command_loads_has_no_reader() {
        let kept = |path: &str| any_reader(&ScopePath::parse(path).unwrap()).is_some();
        assert!(kept("a/x.pth") && kept("logging.py") && kept("a/node_modules/b/c.js"));
        assert!(!kept("src/main.rs") && !kept("README.md") && !kept("app/views.py") && !kept("app/json.py"));
    }
}
