//! `cargo xtask projects`: first runs of real projects, as the package registries carry them with their tests.
//!
//! Each project is unpacked twice as a git repository with one commit: in one copy its own test command runs twice without a sandbox, in
//! the other `glovebox init` and two runs. The output of each command is a file beside the copies. It takes minutes and the
//! registries, so it is not part of the tests. A project that cannot be had is listed as not run.

use crate::debian::Mirror;
use crate::process::{at, capture, cargo, demand};
use crate::{Step, repository};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// Maximum time of one command of a project, as `timeout` takes it.
const TIME_MAX: &str = "900";
/// The suites of Debian whose sources are tried.
const SUITES: &str = "bookworm";

/// The registry of a project, and how its client gives the source.
#[derive(Debug, Clone, Copy)]
enum Registry {
    Crates,
    PyPi,
    Npm,
    Debian,
}

/// One project.
struct Project {
    registry: Registry,
    name: &'static str,
    /// The exact version; empty for that of the Debian suite.
    version: &'static str,
    /// Shell text that installs what the tests need, before a run and with the network of the machine.
    install: &'static str,
    /// Shell text that runs the tests, as the project's own documentation says.
    test: &'static str,
    /// The program that the tests need beside those of the registry's client. Empty for none.
    needs: &'static str,
}

/// Makes the only commit of a project, as a clone of a repository has it.
const COMMIT: &str = "git init -q && git add -A && git -c user.name=x -c user.email=x@example.com commit -qm source";
/// The tests of npm packages. One of their scripts asks the registry for known flaws if it may, which says nothing about the tests.
const NPM_TEST: &str = "npm_config_offline=true npm test";
const NPM_INSTALL: &str = "npm install --ignore-scripts --no-audit --no-fund --loglevel=error";

const PROJECTS: [Project; 12] = [
    Project {
        registry: Registry::Crates,
        name: "semver",
        version: "1.0.26",
        install: "cargo fetch -q",
        test: "cargo test -q",
        needs: "",
    },
    Project {
        registry: Registry::Crates,
        name: "itoa",
        version: "1.0.15",
        install: "cargo fetch -q",
        test: "cargo test -q",
        needs: "",
    },
    Project {
        registry: Registry::Crates,
        name: "strsim",
        version: "0.11.1",
        install: "cargo fetch -q",
        test: "cargo test -q",
        needs: "",
    },
    Project {
        registry: Registry::PyPi,
        name: "idna",
        version: "3.10",
        install: "python3 -m venv .venv && .venv/bin/pip install -q -e . pytest",
        test: ".venv/bin/python -m pytest -q",
        needs: "",
    },
    Project {
        registry: Registry::PyPi,
        name: "itsdangerous",
        version: "2.2.0",
        install: "python3 -m venv .venv && .venv/bin/pip install -q -e . pytest freezegun",
        test: ".venv/bin/python -m pytest -q",
        needs: "",
    },
    Project {
        registry: Registry::PyPi,
        name: "packaging",
        version: "24.2",
        install: "python3 -m venv .venv && .venv/bin/pip install -q -e . pytest pretend",
        test: ".venv/bin/python -m pytest -q",
        needs: "",
    },
    Project {
        registry: Registry::Npm,
        name: "minimist",
        version: "1.2.8",
        install: NPM_INSTALL,
        test: NPM_TEST,
        needs: "",
    },
    Project {
        registry: Registry::Npm,
        name: "concat-map",
        version: "0.0.2",
        install: NPM_INSTALL,
        test: NPM_TEST,
        needs: "",
    },
    Project {
        registry: Registry::Npm,
        name: "json-stable-stringify",
        version: "1.1.1",
        install: NPM_INSTALL,
        test: NPM_TEST,
        needs: "",
    },
    Project {
        registry: Registry::Debian,
        name: "zlib",
        version: "",
        install: "./configure",
        test: "make test",
        needs: "",
    },
    Project {
        registry: Registry::Debian,
        name: "http-parser",
        version: "",
        install: "true",
        test: "make test",
        needs: "",
    },
    Project {
        registry: Registry::Debian,
        name: "cjson",
        version: "",
        install: "true",
        test: "cmake -S . -B build && cmake --build build && ctest --test-dir build",
        needs: "cmake",
    },
];

/// Measures the projects with one of these names, or all, with a release build or with the program after `--program`.
pub(crate) fn run(arguments: &[String]) -> Step {
    let (glovebox, names) = match arguments {
        [flag, program, names @ ..] if flag == "--program" => {
            (at(Path::new(program), fs::canonicalize(program))?, names)
        }
        names => {
            demand(cargo(&repository()).args(["build", "--release", "--locked", "--bin", "glovebox"]))?;
            (repository().join("target/release/glovebox"), names)
        }
    };
    let base = repository().join("target/projects");
    at(&base, fs::create_dir_all(&base))?;
    println!("| project | init | plain, again | first run | second run | run folder |\n|---|---|---|---|---|---|");
    let mut has_failed = false;
    for project in PROJECTS.iter().filter(|project| names.is_empty() || names.iter().any(|name| name == project.name)) {
        let row = measure(project, &base, &glovebox).unwrap_or_else(|reason| {
            let first = reason.lines().next().unwrap_or_default();
            format!("not run: {first} | | | | ")
        });
        has_failed |= row.contains("exit ");
        println!("| {} {} | {row} |", project.name, project.version);
    }
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the cells of a project's row.
fn measure(project: &Project, base: &Path, glovebox: &Path) -> Step<String> {
    if !project.needs.is_empty() && Command::new(project.needs).arg("--version").output().is_err() {
        return Err(format!("this machine has no {}", project.needs));
    }
    let folder = base.join(project.name);
    let (plain, boxed) = (folder.join("plain"), folder.join("boxed"));
    let source = source(project, &folder)?;
    for copy in [&plain, &boxed] {
        if copy.exists() {
            at(copy, fs::remove_dir_all(copy))?;
        }
        demand(Command::new("cp").arg("-a").arg(&source).arg(copy))?;
        for script in [COMMIT, project.install] {
            demand(shell(script, copy).stdout(Stdio::null()))?;
        }
    }
    let log = |name: &str| folder.join(format!("{name}.log"));
    let own = |name| took(&mut shell(project.test, &plain), &log(name));
    let plain = format!("{}, {}", own("plain")?, own("again")?);
    let init = took(Command::new(glovebox).arg("init").current_dir(&boxed), &log("init"))?;
    let run =
        |name| took(Command::new("timeout").arg(TIME_MAX).arg(glovebox).arg("run").current_dir(&boxed), &log(name));
    let (first, second) = (run("first")?, run("second")?);
    let runs = boxed.join(".glovebox/runs");
    let newest = at(&runs, fs::read_dir(&runs)).ok().and_then(|all| {
        let folders = all.flatten().filter(|entry| entry.path().is_dir());
        folders.max_by_key(|entry| entry.file_name()).map(|entry| entry.path())
    });
    let size = newest.map(|folder| size(&folder)).transpose()?.unwrap_or_default();
    Ok(format!("{init} | {plain} | {first} | {second} | {size}"))
}

/// Returns the time of a command, or its exit code if it failed. Its output goes to a file.
fn took(command: &mut Command, log: &Path) -> Step<String> {
    let output = at(log, fs::File::create(log))?;
    let errors = at(log, output.try_clone())?;
    let started = Instant::now();
    let ended = command.stdin(Stdio::null()).stdout(output).stderr(errors).status();
    let seconds = started.elapsed().as_secs_f64();
    Ok(match ended.map(|status| status.code()) {
        Ok(Some(0)) => format!("{seconds:.1} s"),
        Ok(code) => format!("exit {} after {seconds:.1} s", code.unwrap_or(-1)),
        Err(error) => format!("exit -1: {error}"),
    })
}

fn shell(text: &str, folder: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args([TIME_MAX, "sh", "-e", "-c", text]).current_dir(folder);
    command
}

/// Returns the size of a folder on disk.
fn size(folder: &Path) -> Step<String> {
    let printed = capture(Command::new("du").arg("-sk").arg(folder))?;
    let kibibytes: u64 = printed.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0);
    Ok(format!("{:.1} MiB", kibibytes as f64 / 1024.0))
}

/// Returns the folder with the unpacked source, which is fetched once.
fn source(project: &Project, folder: &Path) -> Step<PathBuf> {
    let (name, version) = (project.name, project.version);
    let source = folder.join("source");
    if source.exists() {
        return Ok(source);
    }
    let fetched = folder.join("fetched");
    at(&fetched, fs::create_dir_all(&fetched))?;
    let pinned = |separator: &str| format!("{name}{separator}{version}");
    match project.registry {
        Registry::Crates => {
            let manifest = format!(
                "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n\
                 [dependencies]\n{name} = \"={version}\"\n"
            );
            at(&fetched, fs::write(fetched.join("Cargo.toml"), manifest))?;
            at(&fetched, fs::write(fetched.join("lib.rs"), ""))?;
            demand(cargo(&fetched).args(["vendor", "-q", "vendor"]).stdout(Stdio::null()))?;
            at(&source, fs::rename(fetched.join("vendor").join(name), &source))?;
            let _absent = fs::remove_file(source.join(".cargo-checksum.json"));
            return Ok(source);
        }
        Registry::PyPi => {
            let pip = ["-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"];
            demand(Command::new("python3").args(pip).arg(pinned("==")).current_dir(&fetched))?;
        }
        Registry::Npm => {
            demand(Command::new("npm").args(["pack", "-s", &pinned("@")]).current_dir(&fetched).stdout(Stdio::null()))?;
        }
        Registry::Debian => Mirror::open_sources(&folder.join("apt"), SUITES)?.download_source(name, &fetched)?,
    }
    let mut archives = at(&fetched, fs::read_dir(&fetched))?.flatten().map(|entry| entry.path());
    let is_source = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        (name.contains(".tar.") || name.ends_with(".tgz")) && !name.contains(".debian.tar") && !name.ends_with(".asc")
    };
    let archive = archives.find(is_source).ok_or_else(|| format!("no archive of {name} in `{}`", fetched.display()))?;
    let unpacked = folder.join("unpacked");
    at(&unpacked, fs::create_dir_all(&unpacked))?;
    demand(Command::new("tar").args(["-x", "--strip-components=1", "-f"]).arg(&archive).arg("-C").arg(&unpacked))?;
    at(&source, fs::rename(&unpacked, &source))?;
    Ok(source)
}
