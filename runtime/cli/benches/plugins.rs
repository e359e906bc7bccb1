//! Measures plugins of each language against the one in Rust: the same plugin, which searches one file, built from the sources of
//! `tests/golden/0.1.0/` and from the components there.
//!
//! `cargo bench --workspace --bench plugins` prints a table. A cold start compiles the component, a warm start finds its machine code. The
//! processor time of a call is that of this process, which makes many calls; its memory is the linear memory of the component. A language
//! whose tool is not there, and a comparison with a program that is not there, is a row `not run`. No result passes or fails.

#![allow(clippy::unwrap_used)] // A benchmark may panic.

#[path = "../../../tests/guests/mod.rs"]
#[allow(dead_code, reason = "the suites of several crates use it")]
mod guests;
#[path = "../../../tests/registries/program.rs"]
mod program;
#[path = "../../../benches/table.rs"]
mod table;

use glovebox_contract::stage_file::StageFile;
use glovebox_contract::{TestRequest, WALL_MS};
use glovebox_host::host::{Host, HostConfig};
use glovebox_host::inspect::{embed, inspect};
use glovebox_record::LimitName;
use program::DebianRegistry;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use table::{median, row, timed};

const GLOVEBOX: &str = env!("CARGO_BIN_EXE_glovebox");
/// Number of calls whose processor time is measured together, because the clock of processors is coarse.
const CALLS: usize = 50;
const PIPELINE: &str =
    "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; todo [type=\"acme.todo\"]; start -> todo -> done }";
const CONFIG: &str =
    "[plugins.\"acme.todo\"]\npath = \"todo.wasm\"\ngrants = { filesystem = \"workspace\", read = [\"src/\"] }\n";
/// What one call gets.
const CASE: &str = r#"{"files": {"src/a.txt": "Nothing to do.\n"}, "expect": {"status": "success"}}"#;
/// Length of the data of the component that is pulled, in bytes.
const PULLED_BYTES: usize = 10 << 20;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn main() {
    table::head();
    let folder = tempfile::tempdir().unwrap();
    let rust = Plugin::kept("Rust", &folder.path().join("rust"), "rust-handler");
    let others = [
        Ok(Plugin::kept("C", &folder.path().join("c"), "c-handler")),
        Plugin::built("JavaScript", &folder.path().join("js"), "js"),
        Plugin::built("Python", &folder.path().join("python"), "python"),
    ];
    for other in others {
        match other {
            Ok(other) => compare(&other, &rust),
            Err(reason) => println!("not run: {reason}"),
        }
    }
    pull(folder.path());
}

/// A project with a plugin of one language.
struct Plugin {
    language: &'static str,
    project: PathBuf,
    component: Vec<u8>,
}

impl Plugin {
    /// Returns a plugin whose component is kept.
    fn kept(language: &'static str, project: &Path, name: &str) -> Self {
        let file = root().join(format!("tests/golden/0.1.0/components/{name}.wasm"));
        Self::new(language, project, fs::read(file).unwrap())
    }

    /// Returns a plugin whose sources are kept, or why it cannot be built.
    fn built(language: &'static str, project: &Path, name: &str) -> Result<Self, String> {
        let sources = project.with_extension("sources");
        for folder in [name, "wit"] {
            let into = if folder == "wit" { sources.join("wit") } else { sources.clone() };
            fs::create_dir_all(&into).unwrap();
            for entry in root().join("tests/golden/0.1.0").join(folder).read_dir().unwrap().map(Result::unwrap) {
                fs::copy(entry.path(), into.join(entry.file_name())).unwrap();
            }
        }
        let tools = ["js/node_modules/.bin", "python/bin"].map(|tool| root().join("target/plugin-tools").join(tool));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(tools.into_iter().chain(std::env::split_paths(&path))).unwrap();
        let mut build = Command::new(GLOVEBOX);
        let build = build.args(["plugin", "build"]).current_dir(&sources).env("PATH", path).output().unwrap();
        match build.status.success() {
            true => Ok(Self::new(language, project, fs::read(sources.join("dist/acme.todo-0.1.0.wasm")).unwrap())),
            false => {
                Err(format!("{language}: {}", String::from_utf8_lossy(&build.stderr).lines().last().unwrap_or("")))
            }
        }
    }

    fn new(language: &'static str, project: &Path, component: Vec<u8>) -> Self {
        fs::create_dir_all(project.join("src")).unwrap();
        fs::write(project.join("todo.wasm"), &component).unwrap();
        fs::write(project.join("pipeline.dot"), PIPELINE).unwrap();
        fs::write(project.join("glovebox.toml"), CONFIG).unwrap();
        fs::write(project.join("src/a.txt"), "Nothing to do.\n").unwrap();
        let plugin = Self { language, project: project.to_owned(), component };
        plugin.glovebox(&["plugin", "lock"]);
        plugin
    }

    fn glovebox(&self, words: &[&str]) {
        run(GLOVEBOX, &self.project, words, &[("GLOVEBOX_CACHE_DIR", self.project.join("../cache"))]);
    }

    /// Runs the pipeline once, after the machine code of all components was removed.
    fn cold(&self) -> Duration {
        fs::remove_dir_all(self.project.join("../cache/aot")).ok();
        self.warm()
    }

    fn warm(&self) -> Duration {
        timed(|| self.glovebox(&["run", "pipeline.dot", "--simulate"]))
    }

    /// Returns the processor time of one call, and the peak of its linear memory in bytes.
    fn call(&self, host: &Host) -> (Duration, u64) {
        let inspection = inspect(&self.component).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let case = StageFile::parse_case(CASE).unwrap();
        let request = TestRequest {
            host,
            bytes: &self.component,
            inspection: &inspection,
            folder: folder.path().canonicalize().unwrap(),
            wall_ms: WALL_MS,
            commands: None,
            input: None,
            cases: (0..CALLS).map(|number| (number.to_string(), case.clone())).collect(),
            only: Some("cases".to_owned()),
        };
        host.load(&self.component).unwrap();
        let before = processor_time();
        let report = glovebox_contract::test(request).unwrap();
        let spent = processor_time().saturating_sub(before);
        assert!(report.checks.iter().all(|check| check.detail.is_none()), "{:?}", report.checks);
        let memory = report.peaks.iter().find(|peak| peak.limit == LimitName::MemoryBytes).map_or(0, |peak| peak.used);
        (spent / CALLS as u32, memory)
    }
}

/// Prints the rows of a language, each with Rust as its baseline.
fn compare(other: &Plugin, rust: &Plugin) {
    let language = other.language;
    row(&format!("cold start of a run, {language}"), 3, || other.cold(), || rust.cold(), "Rust");
    row(&format!("warm start of a run, {language}"), 15, || other.warm(), || rust.warm(), "Rust");
    let host = Host::new(HostConfig::in_process(None, 1)).unwrap();
    let measured = |plugin: &Plugin| plugin.call(&host).0;
    row(&format!("processor time of a call, {language}"), 5, || measured(other), || measured(rust), "Rust");
    let (ours, theirs) = (other.call(&host).1, rust.call(&host).1);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let times = mib(ours) / mib(theirs);
    table::count(&format!("memory of a call, {language}"), mib(ours), &format!("MiB, {times:.1} times that of Rust"));
}

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

/// Measures how long `plugin pull` takes for a component of 10 MB, beside `wkg oci pull` from the same registry.
fn pull(folder: &Path) {
    let Some(registry) = DebianRegistry::start("") else {
        return println!("not run: pull of 10 MB: no docker-registry, which `cargo xtask registry` brings");
    };
    let project = folder.join("pulled");
    fs::create_dir_all(&project).unwrap();
    let large = guests::component(&format!("(func $execute)\n(data \"{}\")", "a".repeat(PULLED_BYTES)));
    let large = embed(&large, r#"{"name":"acme.large","version":"0.1.0"}"#).unwrap();
    fs::write(project.join("large.wasm"), large).unwrap();
    let named = format!("{}/acme/large", registry.address);
    // Each pull has an empty store.
    let glovebox = |words: &[&str]| {
        let store = tempfile::tempdir_in(folder).unwrap();
        let environment = [("GLOVEBOX_DATA_DIR", store.path().to_owned())];
        timed(|| run(GLOVEBOX, &project, &[&["plugin"], words].concat(), &environment))
    };
    glovebox(&["push", "large.wasm", &named]);
    glovebox(&["add", &named, "--accept"]);
    let ours = || glovebox(&["pull"]);
    let wkg = root().join("target/wkg/bin/wkg");
    if !wkg.is_file() {
        let milliseconds = median((0..11).map(|_| ours()).collect()).as_secs_f64() * 1e3;
        table::count("pull of 10 MB", milliseconds, "ms");
        return println!("not run: `wkg oci pull` of 10 MB: no wkg, which `cargo xtask wkg` builds");
    }
    let reference = format!("{named}:0.1.0");
    let words = ["oci", "pull", &*reference, "--insecure", &*registry.address, "-o", "theirs.wasm"];
    let theirs = || timed(|| run(wkg.to_str().unwrap(), &project, &words, &[]));
    row("pull of 10 MB", 11, ours, theirs, "`wkg oci pull`");
}

fn run(program: &str, folder: &Path, words: &[&str], environment: &[(&str, PathBuf)]) {
    let mut command = Command::new(program);
    command.args(words).current_dir(folder).stdin(Stdio::null());
    command.envs(environment.iter().map(|(name, value)| (name, value.as_os_str())));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}
