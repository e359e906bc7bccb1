//! Tests toolchains in temporary home folders: which files of each are shown, and which never are.

use super::*;
use glovebox_record::Network;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// Creates a temporary folder with these files, links (`name -> target`) and, with a final `/`, folders.
fn home(files: &[&str]) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    for file in files {
        let (name, target) = file.split_once(" -> ").map_or((*file, None), |(name, target)| (name, Some(target)));
        let path = home.path().join(name);
        fs::create_dir_all(if name.ends_with('/') { &path } else { path.parent().unwrap() }).unwrap();
        match target {
            Some(target) => symlink(home.path().join(target), path).unwrap(),
            None if name.ends_with('/') => {}
            None => fs::write(path, "").unwrap(),
        }
    }
    home
}

/// Creates a machine whose HOME is `home/me`. `~` in a value stands for the folder `home`.
fn machine(home: &TempDir, variables: &[(&str, &str)]) -> Machine {
    let root = home.path().to_str().unwrap();
    let named =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.replace('~', root));
    Machine::with(|name| named(name).or_else(|| (name == "HOME").then(|| format!("{root}/me"))).map(OsString::from))
}

fn found(toolchain: Toolchain, machine: &Machine, tier: Tier) -> Result<ToolchainFiles, Missing> {
    find(toolchain, machine, tier).and_then(|found| machine.presentable(found))
}

/// Returns the paths relative to the temporary folder.
fn below(home: &TempDir, paths: &[PathBuf]) -> Vec<String> {
    let real = home.path().canonicalize().unwrap();
    let relative =
        |path: &PathBuf| path.strip_prefix(&real).or_else(|_| path.strip_prefix(home.path())).unwrap().to_owned();
    paths.iter().map(|path| relative(path).display().to_string()).collect()
}

fn variable(found: &ToolchainFiles, name: &str) -> Option<String> {
    found.env.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
}

const RUSTUP: [&str; 8] = [
    "me/.cargo/bin/cargo",
    "me/.cargo/registry/",
    "me/.cargo/credentials.toml",
    "me/.cargo/config.toml",
    "me/.rustup/toolchains/stable/bin/cargo",
    "me/.rustup/toolchains/same -> me/.rustup/toolchains/stable",
    "src/rust/build/",
    "me/.rustup/toolchains/own -> src/rust/build",
];

#[test]
fn of_cargos_home_only_programs_and_packages_are_shown() {
    let home = home(&RUSTUP);
    let machine = machine(&home, &[("PATH", "bin:~/me/.cargo/bin"), ("RUSTUP_TOOLCHAIN", "stable")]);
    let found = found(Toolchain::Rust, &machine, Tier::Full).unwrap();
    assert_eq!(below(&home, &found.shown), ["me/.cargo/bin", "src/rust/build", "me/.rustup"]);
    assert_eq!(found.homed, [(home.path().join("me/.cargo/registry"), ".cargo/registry")]);
    assert_eq!(variable(&found, "CARGO_HOME").as_deref(), Some("{home}/.cargo"));
    assert_eq!(variable(&found, "RUSTUP_TOOLCHAIN").as_deref(), Some("stable"));
    let mut policy = ExecPolicy::default();
    add(&mut policy, found, Tier::Full).unwrap();
    let secrets = ["me/.cargo/credentials.toml", "me/.cargo/config.toml"].map(|name| home.path().join(name));
    assert!(
        policy
            .binds
            .iter()
            .all(|bind| !bind.writable && !secrets.iter().any(|secret| secret.starts_with(&bind.source)))
    );
    let registry = policy.binds.iter().find(|bind| bind.source.ends_with("registry")).unwrap();
    assert_eq!(registry.at, format!("{}/.cargo/registry", glovebox_jail::jail::HOME_INSIDE));
}

#[test]
fn without_a_root_of_their_own_commands_use_the_real_paths() {
    let home = home(&RUSTUP);
    let machine = machine(&home, &[("PATH", "~/me/.cargo/bin")]);
    let found = found(Toolchain::Rust, &machine, Tier::Landlock).unwrap();
    assert_eq!(variable(&found, "CARGO_HOME"), Some(home.path().join("me/.cargo").display().to_string()));
    let mut policy = ExecPolicy::default();
    add(&mut policy, found, Tier::Landlock).unwrap();
    assert!(policy.binds.iter().all(|bind| bind.at == bind.source));
}

#[test]
fn go_is_its_root_and_its_modules() {
    let files = [
        "go1/bin/go",
        "go1/src/runtime/",
        "bin/go -> go1/bin/go",
        "me/go/pkg/mod/",
        "other/pkg/mod/",
        "me/go/bin/tool",
    ];
    let home = home(&files);
    let found_with = |variables: &[(&str, &str)]| found(Toolchain::Go, &machine(&home, variables), Tier::Full);
    let go = found_with(&[("PATH", "~/bin")]).unwrap();
    assert_eq!(below(&home, &go.shown), ["go1", "me/go/pkg/mod"]);
    assert_eq!(below(&home, &go.path), ["go1/bin"]);
    assert_eq!(variable(&go, "GOTOOLCHAIN").as_deref(), Some("local"));
    let go = found_with(&[("PATH", "~/bin"), ("GOPATH", "~/other:~/me/go")]).unwrap();
    assert_eq!(below(&home, &go.shown)[1], "other/pkg/mod");
    let go = found_with(&[("PATH", "~/bin"), ("GOPATH", "~/me/go"), ("GOMODCACHE", "~/other")]).unwrap();
    assert_eq!(below(&home, &go.shown)[1], "other");
    assert!(found_with(&[("PATH", "~/bin"), ("GOROOT", "~/me")]).unwrap_err().why.contains("Go's root"));
    assert!(found_with(&[("PATH", "~/none")]).unwrap_err().why.contains("no `go` in PATH"));
}

#[test]
fn node_is_its_prefix_and_a_stand_in_is_refused() {
    let home = home(&["n/v1/bin/node", "n/v1/lib/node_modules/npm/", "bin/node -> n/v1/bin/node", "volta/bin/node"]);
    let found_at = |path: &str| found(Toolchain::Node, &machine(&home, &[("PATH", path)]), Tier::Full);
    let node = found_at("~/bin").unwrap();
    assert_eq!(
        (below(&home, &node.shown), below(&home, &node.path)),
        (vec!["n/v1".to_owned()], vec!["n/v1/bin".to_owned()])
    );
    assert!(found_at("~/volta/bin").unwrap_err().why.contains("installed elsewhere"));
    assert!(
        found_at("bin").unwrap_err().why.contains("no `node` in PATH"),
        "relative folders of PATH are not looked at"
    );
}

#[test]
fn python_is_the_interpreter_behind_environments_and_stand_ins() {
    let files = [
        "py/bin/python3.12",
        "py/lib/python3.12/os.py",
        "py/bin/python3 -> py/bin/python3.12",
        "venv/bin/python3 -> py/bin/python3",
        "pyenv/shims/python3",
        "pyenv/versions/3.9/bin/python3",
        "pyenv/versions/3.9/lib/python3.9/os.py",
        "pyenv/version",
    ];
    let home = home(&files);
    fs::write(home.path().join("pyenv/version"), "3.9\n3.8\n").unwrap();
    let shown = |variables: &[(&str, &str)]| {
        let found = found(Toolchain::Python, &machine(&home, variables), Tier::Full);
        found.map(|found| below(&home, &found.shown)).map_err(|missing| missing.why)
    };
    assert_eq!(shown(&[("PATH", "~/venv/bin")]), Ok(vec!["py".to_owned()]));
    assert_eq!(shown(&[("PATH", "~/pyenv/shims:~/py/bin")]), Ok(vec!["pyenv/versions/3.9".to_owned()]));
    let system = [("PATH", "~/pyenv/shims:~/py/bin"), ("PYENV_VERSION", "system")];
    assert_eq!(shown(&system), Ok(vec!["py".to_owned()]));
    for escape in ["..", "../../py", ""] {
        let odd = [("PATH", "~/pyenv/shims"), ("PYENV_VERSION", escape)];
        assert!(shown(&odd).is_err_and(|why| why.contains("elsewhere")) || escape.is_empty(), "{escape}");
    }
}

#[test]
fn an_environment_is_its_folder_and_its_interpreter() {
    let files = [
        "py/bin/python3.12",
        "py/lib/python3.12/os.py",
        "me/venvs/a/pyvenv.cfg",
        "me/venvs/a/bin/python -> py/bin/python3.12",
        "conda/envs/b/conda-meta/",
        "conda/envs/b/bin/python3.12",
        "conda/envs/b/bin/python -> conda/envs/b/bin/python3.12",
        "me/pyvenv.cfg",
        "me/bin/python -> py/bin/python3.12",
        "me/gone/pyvenv.cfg",
    ];
    let home = home(&files);
    let machine = machine(&home, &[]);
    let found = |name: &str| venv::find(&machine, &home.path().join(name));
    let of_venv = found("me/venvs/a").unwrap();
    assert_eq!(below(&home, &of_venv.path), ["me/venvs/a/bin"]);
    assert_eq!(below(&home, &of_venv.shown), ["me/venvs/a", "py"]);
    assert!(variable(&of_venv, "VIRTUAL_ENV").unwrap().ends_with("/me/venvs/a"));
    let of_conda = found("conda/envs/b").unwrap();
    assert_eq!(below(&home, &of_conda.shown), ["conda/envs/b"]);
    assert!(variable(&of_conda, "CONDA_PREFIX").is_some() && variable(&of_conda, "VIRTUAL_ENV").is_none());
    let why = |name: &str| found(name).unwrap_err().why;
    assert!(why("me").contains("holds more than a toolchain"), "a home is never shown");
    assert!(why("py").contains("is not an environment of Python"));
    assert!(why("me/gone").contains("leads to no interpreter"));
    assert!(why("nowhere").contains("there is no folder"));
}

const JDK: [&str; 6] =
    ["jdk/bin/java", "jdk/lib/modules", "jdk/conf/", "bin/java -> jdk/bin/java", "bin/mvn -> mvn/bin/mvn", "mvn/boot/"];

#[test]
fn maven_is_its_home_its_jdk_and_what_it_downloaded() {
    let more = ["mvn/bin/mvn", "me/.m2/repository/", "me/.m2/settings.xml", "me/.m2/wrapper/dists/"];
    let home = home(&[&JDK[..], &more[..]].concat());
    let machine = machine(&home, &[("PATH", "~/bin")]);
    let java = found(Toolchain::Java, &machine, Tier::Full).unwrap();
    assert_eq!(
        (below(&home, &java.shown), below(&home, &java.path)),
        (vec!["jdk".to_owned()], vec!["jdk/bin".to_owned()])
    );
    let maven = found(Toolchain::Maven, &machine, Tier::Full).unwrap();
    assert_eq!(below(&home, &maven.path), ["mvn/bin", "jdk/bin"]);
    assert_eq!(below(&home, &maven.shown), ["jdk", "mvn"]);
    let homed: Vec<&str> = maven.homed.iter().map(|(_, at)| *at).collect();
    assert_eq!(homed, [".m2/repository", ".m2/wrapper/dists"], "settings.xml may have passwords");
    assert_eq!(variable(&maven, "MAVEN_OPTS"), None);
    let landlock = found(Toolchain::Maven, &machine, Tier::Landlock).unwrap();
    assert!(variable(&landlock, "MAVEN_OPTS").unwrap().ends_with("/me/.m2/repository"));
}

#[test]
fn gradle_is_in_path_or_behind_a_wrapper() {
    let dists = "me/.gradle/wrapper/dists";
    let more = [
        format!("{dists}/gradle-8.9-bin/a/gradle-8.9/bin/gradle"),
        format!("{dists}/gradle-8.10-bin/b/gradle-8.10/bin/gradle"),
        "me/.gradle/caches/modules-2/".to_owned(),
        "me/.gradle/gradle.properties".to_owned(),
    ];
    let files: Vec<&str> = JDK.into_iter().chain(more.iter().map(String::as_str)).collect();
    let home = home(&files);
    let gradle = found(Toolchain::Gradle, &machine(&home, &[("PATH", "~/bin")]), Tier::Full).unwrap();
    let wrapped = "me/.gradle/wrapper/dists/gradle-8.10-bin/b/gradle-8.10";
    assert_eq!(below(&home, &gradle.shown), ["jdk", wrapped, "me/.gradle/caches/modules-2"]);
    assert!(variable(&gradle, "GRADLE_RO_DEP_CACHE").unwrap().ends_with("me/.gradle/caches"));
    let none = found(Toolchain::Gradle, &machine(&home, &[("PATH", "~/bin"), ("GRADLE_USER_HOME", "~/x")]), Tier::Full);
    assert!(none.unwrap_err().why.contains("no `gradle` in PATH"));
    let named = found(Toolchain::Java, &machine(&home, &[("JAVA_HOME", "~/jdk")]), Tier::Full);
    assert_eq!(below(&home, &named.unwrap().shown), ["jdk"]);
}

#[test]
fn of_etc_only_the_toolchains_own_files_are_shown() {
    let files = [
        "etc/java-17/net.properties",
        "etc/java-17/password",
        "etc/shadow",
        "etc/ssh/key",
        "etc/maven/settings.xml",
        "etc/maven/logging/simple",
        "jdk/conf/net.properties -> etc/java-17/net.properties",
        "jdk/conf/management/password -> etc/java-17/password",
        "jdk/conf/shadow -> etc/shadow",
        "jdk/conf/key -> etc/ssh/key",
        "mvn/conf -> etc/maven",
    ];
    let home = home(&files);
    let secret = home.path().join("etc/java-17/password");
    fs::set_permissions(secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let etc = home.path().canonicalize().unwrap().join("etc");
    let listed = |folder: &str, names: &[&str]| {
        below(&home, &configuration::linked_below(&etc, &[home.path().join(folder)], names))
    };
    assert_eq!(listed("jdk", &["java"]), ["etc/java-17/net.properties"]);
    assert_eq!(listed("mvn", &["maven"]), ["etc/maven/logging/simple", "etc/maven/settings.xml"]);
    assert_eq!(listed("mvn", &["java"]), [] as [&str; 0]);
}

#[test]
fn a_home_is_never_shown_for_a_toolchain_in_it() {
    let home = home(&["me/bin/node", "me/lib/node_modules/", "me/bin/python3", "me/lib/python3.1/os.py"]);
    for toolchain in [Toolchain::Node, Toolchain::Python] {
        let missing = found(toolchain, &machine(&home, &[("PATH", "~/me/bin")]), Tier::Full).unwrap_err();
        assert!(missing.why.contains("holds more than a toolchain"), "{missing:?}");
    }
}

#[test]
fn cargo_builds_in_a_jail_with_a_home_of_its_own() {
    use glovebox_jail::exec::{Command, Program};
    use glovebox_jail::jail::{Jail, JailSetting, Source};
    let place = home(&["root/src/main.rs", "attempt/", "project/"]);
    let at = |name: &str| place.path().canonicalize().unwrap().join(name);
    fs::write(at("root/src/main.rs"), "fn main() { print!(\"built\") }").unwrap();
    fs::write(at("root/Cargo.toml"), "[package]\nname = \"small\"\nedition = \"2024\"\n").unwrap();
    let found = found(Toolchain::Rust, &Machine::here(), Tier::Full).unwrap();
    let mut policy = ExecPolicy::default();
    policy.path.splice(0..0, found.path.clone());
    add(&mut policy, found, Tier::Full).unwrap();
    let setting = JailSetting {
        tier: Tier::Full,
        policy,
        network: Network::None,
        limits: glovebox_record::Limits::default(),
        inside: at("project"),
        inner: Vec::new(),
        kept: Vec::new(),
        hidden: vec![at("project")],
        folder: at("attempt"),
        pulse: glovebox_jail::pulse::Pulse::default(),
    };
    let jail = Jail::open(&setting, Source::Directory(at("root"))).unwrap();
    let text = "cargo run --offline --quiet && touch $CARGO_HOME/own && ls -A $CARGO_HOME && \
                ! touch $CARGO_HOME/registry/x 2>/dev/null";
    let command = Command {
        program: Program::Shell(text.to_owned()),
        cwd: glovebox_record::path::ScopePath::root(),
        env: Vec::new(),
        stdin: None,
        timeout: std::time::Duration::from_secs(120),
    };
    let exit = jail.run(&command, &std::sync::atomic::AtomicBool::new(false)).unwrap();
    let said = String::from_utf8_lossy(&exit.stdout.head).into_owned();
    assert_eq!(exit.code, Some(0), "{said} {}", String::from_utf8_lossy(&exit.stderr.head));
    assert!(said.starts_with("built") && said.contains("own"), "{said}");
    assert!(!said.contains("credentials") && !said.contains("config.toml"), "{said}");
}
