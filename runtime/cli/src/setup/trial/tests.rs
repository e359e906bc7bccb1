//! Each reason for a failure, with the output of the tool that shows it.

use super::*;
use glovebox_plan::config::Config;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A project, its copy, and a machine.
struct Place {
    folder: tempfile::TempDir,
    machine: Machine,
    failed: FailedTrial,
}

fn place(output: &str) -> Place {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| {
        let path = folder.path().canonicalize().unwrap().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    };
    let machine = Machine {
        project: at("project"),
        home: Some(at("home")),
        path: vec![at("home/bin"), at("opt")],
        environment: None,
    };
    let failed =
        FailedTrial { exit: Some(1), output: output.to_owned(), workspace: at("copy"), ..FailedTrial::default() };
    Place { folder, machine, failed }
}

fn config(text: &str) -> Config {
    Config::parse(text, "").unwrap()
}

impl Place {
    fn diagnosis(&self, text: &str) -> Diagnosis {
        diagnose(&self.failed, &config(text), &self.machine)
    }

    /// Returns the line to paste, and whether a person must agree.
    #[track_caller]
    fn line(&self, text: &str) -> (String, bool) {
        match self.diagnosis(text) {
            Diagnosis::Setting { edit, opens, .. } => {
                assert!(edit.apply(text).is_some(), "{edit}");
                (edit.to_string(), opens.is_some())
            }
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn advises(&self, part: &str) {
        match self.diagnosis("") {
            Diagnosis::Advice(text) => assert!(text.contains(part), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}

fn program(folder: &Path, name: &str) {
    fs::write(folder.join(name), "#!/bin/sh\n").unwrap();
    fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_limit_is_raised() {
    let limited = |name: &str| {
        let mut place = place("");
        place.failed.limit = Some(name.to_owned());
        place
    };
    assert_eq!(limited("processes").line(""), ("`processes = 2048` under `[limits]`".to_owned(), false));
    assert_eq!(limited("wall_ms").line("[limits]\nwall_ms = \"1s\"").0, "`wall_ms = 4000` under `[limits]`");
    assert_eq!(limited("wall_ms").diagnosis(""), Diagnosis::Timeout);
    assert_eq!(limited("max_steps").diagnosis(""), Diagnosis::Unknown);
}

#[test]
fn a_host_is_only_proposed() {
    let mut refused = place("");
    refused.failed.refused_hosts = vec!["api.example.com:443".to_owned()];
    let line = "`network = { proxy = [\"api.example.com\"] }` under `[sandbox]`".to_owned();
    assert_eq!(refused.line("[sandbox]\nnetwork = { proxy = [\"b.example.com\"] }"), (line.clone(), true));
    assert_eq!(place("curl: (6) Could not resolve host: api.example.com").line(""), (line, true));
    place("socket.gaierror: [Errno -3] Temporary failure in name resolution").advises("network = { proxy");
    let mut hostile = place("Could not resolve host: \"]\nnetwork=\"full\"");
    hostile.failed.refused_hosts = vec!["x\"] }\n[exec]".to_owned()];
    assert_eq!(hostile.diagnosis(""), Diagnosis::Unknown);
}

#[test]
fn files_that_a_command_leaves_behind_are_scratch_if_their_folder_is_new() {
    let reason = "not in the write scope; allowed_write_paths=\"x\" would grant it";
    let left = |paths: &[&str]| {
        let mut place = place("");
        place.failed.quarantined = paths.iter().map(|path| ((*path).to_owned(), reason.to_owned())).collect();
        fs::create_dir(place.failed.workspace.join("src")).unwrap();
        place
    };
    let line = |entry: &str| (format!("`scratch = [\"{entry}\"]` under `[sandbox]`"), false);
    assert_eq!(left(&["out/a", "out/b/c"]).line(""), line("out/"));
    assert_eq!(left(&["out/a"]).line(""), line("out/"));
    assert_eq!(left(&["src/gen/a", "src/gen/b"]).line(""), line("src/gen/"));
    left(&["src/a.o", "src/b.o"]).advises("`src/a.o` and 1 other files");
    left(&["a.out"]).advises(".gitignore");
}

#[test]
fn a_program_is_found_in_a_toolchain_or_in_a_folder() {
    let with = |name: &str, folder: usize| {
        let mut place = place(&format!("sh: 1: {name}: not found"));
        place.failed.exit = Some(127);
        program(&place.machine.path[folder], name);
        (place.machine.path[folder].display().to_string(), place)
    };
    let (folder, outside) = with("protoc-x", 1);
    assert_eq!(outside.line(""), (format!("`path = [\"{folder}\"]` under `[exec]`"), false));
    let (folder, home) = with("mine-x", 0);
    assert_eq!(home.line(""), (format!("`path = [\"{folder}\"]` under `[exec]`"), true), "a folder in the home");
    let mut absent = place("make: nowhere-x: No such file or directory");
    absent.failed.exit = Some(2);
    absent.advises("`nowhere-x` is not on this machine");
}

#[test]
fn a_folder_that_a_build_deletes_is_no_cache() {
    let busy = place("Error: EBUSY: resource busy or locked, rmdir '/workspace/dist'");
    let text = "[sandbox]\ncache = [\"dist/\", \"other/\"]";
    assert_eq!(busy.line(text), ("remove \"dist/\" from `cache` under `[sandbox]`".to_owned(), false));
    assert_eq!(busy.diagnosis("[sandbox]\ncache = [\"other/\"]"), Diagnosis::Unknown);
}

#[test]
fn the_history_is_proposed_once_to_a_command_that_reads_it() {
    let git = place("fatal: No names found, cannot describe anything.");
    assert_eq!(git.line(""), ("`git = \"history\"` under `[workspace]`".to_owned(), true));
    assert_eq!(git.diagnosis("[workspace]\ngit = \"history\""), Diagnosis::Unknown);
}

#[test]
fn an_environment_of_python_in_the_home_is_only_proposed() {
    let mut python = place("ModuleNotFoundError: No module named 'pytest'");
    python.advises("`.venv/`");
    for (folder, asks) in [("home/envs/a", true), ("opt/envs/a", false)] {
        let environment = python.folder.path().canonicalize().unwrap().join(folder).display().to_string();
        python.machine.environment = Some(environment.clone());
        assert_eq!(python.line(""), (format!("`venv = \"{environment}\"` under `[exec]`"), asks));
    }
    place("Error: Cannot find module 'left-pad'").advises("npm ci");
}

#[test]
fn an_ignored_file_is_only_proposed() {
    let missing = place("cat: .env: No such file or directory");
    assert_eq!(missing.diagnosis(""), Diagnosis::Unknown);
    fs::write(missing.machine.project.join(".env"), "").unwrap();
    assert_eq!(missing.line(""), ("`include = [\".env\"]` under `[workspace]`".to_owned(), true));
    fs::write(missing.failed.workspace.join(".env"), "").unwrap();
    assert_eq!(missing.diagnosis(""), Diagnosis::Unknown, "it is in the copy");
    let link = place("cat: keys: No such file or directory");
    std::os::unix::fs::symlink("/etc/passwd", link.machine.project.join("keys")).unwrap();
    assert_eq!(link.diagnosis(""), Diagnosis::Unknown);
}

#[test]
fn a_variable_gets_a_value_only_if_that_is_no_secret() {
    let line = |output: &str| place(output).line("").0;
    assert_eq!(line("test.sh: line 3: TZ: unbound variable"), "`env = { TZ = \"UTC\" }` under `[exec]`");
    assert_eq!(line("locale.Error: unsupported locale setting"), "`env = { LC_ALL = \"C.UTF-8\" }` under `[exec]`");
    assert!(line("==2==LeakSanitizer has encountered a fatal error.").contains("detect_leaks=0"));
    place("KeyError: 'DATABASE_URL'").advises("env = { DATABASE_URL = \"…\" }");
}

#[test]
fn what_the_sandbox_cannot_show_is_explained() {
    place("dial unix /var/run/docker.sock: connect: no such file").advises("Docker");
    place("Error: connect ECONNREFUSED 127.0.0.1:5432").advises("start the service in the command");
    place("OSError: AF_UNIX path too long").advises("$TMPDIR");
    place("PermissionError: [Errno 13] Permission denied: bind 0.0.0.0:80").advises("below 1024");
    assert_eq!(place("1 test failed").diagnosis(""), Diagnosis::Unknown);
}
